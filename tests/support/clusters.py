"""A model of clusters for the sample columns, and jobs with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jobs.clusters import digest_of
from jobs.file.schema import qid_of
from tests.support import jobs
from tests.support.samples import columns, joint_job, single_job

COLUMNS = columns(transfused={"role": "plain"})
"""The sample columns: what was the class is a column like any other."""
NO_PLAIN = columns(transfused=None)
NEAR = (
    (46341, 0, 0, 0, 10000),
    (0, 46341, 0, 0, 30000),
    (0, 0, 46341, 0, 60000),
)
"""Centroids over job (four leaves) and age: a young janitor, a mover, an old lawyer."""
LABEL = "cluster"


def model(
    names: Sequence[str] = ("job", "age"),
    centroids: Sequence[Sequence[int]] = NEAR,
    **changes: Any,
) -> dict[str, Any]:
    """A model file's fields; ``changes`` replace keys."""
    digests = _digests()
    fields = {
        "version": "1",
        "method": "kmeans",
        "columns": [{"name": name, "values": digests[name]} for name in names],
        "centroids": [list(each) for each in centroids],
    }
    return {**fields, **changes}


@cache
def _digests() -> Mapping[str, str]:
    """Return the digest of each quasi-identifier of the sample."""
    task = jobs.task_of(single_job(goal="general"))
    return {column.name: digest_of(column) for column in qid_of(task.job, task.taxonomies)}


def clusters(publish: str | None = LABEL, **of_model: Any) -> dict[str, Any]:
    """The key `clusters` with the model in it."""
    asked: dict[str, Any] = {"model": model(**of_model)}
    return asked if publish is None else {**asked, "publish": publish}


def single_clusters(publish: str | None = LABEL, **changes: Any) -> dict[str, Any]:
    """A job of one holder."""
    return single_job(**{**_keys(publish), **changes})


def joint_clusters(**changes: Any) -> dict[str, Any]:
    """A horizontal job of three parties."""
    return joint_job(**{**_keys(LABEL), "disclosure": "sealed", **changes})


def _keys(publish: str | None) -> dict[str, Any]:
    return {"goal": "clusters", "clusters": clusters(publish), "columns": COLUMNS}


def cluster_of(row: Mapping[str, str]) -> str:
    """The nearest centroid of a row of the sample columns, from its texts; of equals the first."""
    point = [46341 * (row["job"] == job) for job in ("Janitor", "Mover", "Lawyer", "?")]
    point.append(
        (int(row["age"]) // 10 * 10 + 5) * 65536 // 100
        + ((int(row["age"]) // 10 * 10 + 5) * 65536 % 100 >= 50)
    )
    distances = [sum((a - b) ** 2 for a, b in zip(point, each, strict=True)) for each in NEAR]
    return str(distances.index(min(distances)))
