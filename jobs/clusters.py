"""A job's model of clusters, over the columns of the job ([CLU])."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

import numpy as np

from anonymize.clusters import Clusters, n_features
from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.table import QidColumn
from jobs.file.clusters import DIGEST_CHARS, ClusterModel


def digest_of(column: QidColumn) -> str:
    """Return the digest of a column's values, in the form of a model."""
    values = column.values
    if isinstance(values, Grid):
        leaves: Sequence[str] = [values.edge_label(i) for i in range(len(values.edges))]
    else:
        leaves = values.leaves
    text = json.dumps([column.is_numeric, *leaves], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def clusters_of(model: ClusterModel, schema: Sequence[QidColumn]) -> Clusters:
    """Return the model over the columns of a schema. Raises SchemaError for a model that does not fit."""
    for problem in _misfits(model, schema):
        raise SchemaError(
            "job-invalid",
            f"model.lkc.clusters.model: {problem}",
            remedy="fit a model for this job: coordinator clusters fit",
        )
    numbers = {column.name: i for i, column in enumerate(schema)}
    return Clusters(tuple(numbers[name] for name in model.names), np.array(model.centroids, dtype=np.int64))


def _misfits(model: ClusterModel, schema: Sequence[QidColumn]) -> Iterator[str]:
    known = {column.name: column for column in schema}
    for column in model.columns:
        if column.name not in known:
            yield f"the job has no quasi-identifier {column.name!r}"
        elif column.values != digest_of(known[column.name]):
            yield f"column {column.name} has a different taxonomy or grid than the model"
    if len(set(model.names)) < len(model.columns):
        yield "a column is named twice"
    wanted = sum(n_features(known[name]) for name in model.names if name in known)
    if len(model.centroids[0]) != wanted:
        yield f"the model's centroids have {len(model.centroids[0])} coordinates, but the columns {wanted}"
