"""`clusters` of a job: the public model by which every holder labels its records, and the model's file ([CLU]).

The bundle has the model itself, not a path, so that policy, hash and signatures cover the model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from jobs.errors import ConfigError
from jobs.file.fields import Fields, Name, parse_model
from jobs.file.yaml_text import is_too_deep
from jobs.json_text import read_json

MAX_CLUSTERS = 256
MAX_COORDINATES = 1 << 20
"""Most coordinates of all centroids together."""
GREATEST = 1 << 16
"""Largest coordinate: :data:`anonymize.clusters.UNIT`."""
DIGEST_CHARS = 16
_DECIMAL = re.compile("[+]?0*[0-9]{1,5}")


def _coordinate(value: object) -> int:
    """Return a whole number, or its text. A job file with a model has texts, like all YAML here."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return int(value)
    if type(value) is not int:
        raise ValueError(f"write a whole number from 0 to {GREATEST}")
    return value


Coordinate = Annotated[int, Field(ge=0, le=GREATEST), BeforeValidator(_coordinate)]
Centroid = tuple[Coordinate, ...]


class ModelColumn(Fields):
    """A column of a model."""

    name: str = Field(description="A quasi-identifier of the job.")
    values: str = Field(
        pattern=f"^[0-9a-f]{{{DIGEST_CHARS}}}$",
        description="Digest of its leaves, or of the edges of its grid: a model fits only this column.",
    )


class ClusterModel(Fields):
    """Centroids of clusters, as `coordinator clusters fit` writes them. Public with the job."""

    version: Literal["1"] = Field(description="Version of the format.")
    method: Literal["kmeans", "bisecting"] = Field(description="How the centroids were found.")
    columns: tuple[ModelColumn, ...] = Field(
        min_length=1,
        description="In order; a number has one coordinate, any other column one coordinate for each leaf.",
    )
    centroids: tuple[Centroid, ...] = Field(
        min_length=2,
        max_length=MAX_CLUSTERS,
        description="Cluster by cluster, 2^16 times the features, from 0 to 65,536; all clusters together at most "
        "1,048,576 numbers.",
    )

    @model_validator(mode="before")
    @classmethod
    def _bounded(cls, fields: Any) -> Any:
        """Check sizes before each number is read."""
        centroids = fields.get("centroids") if isinstance(fields, Mapping) else None
        if isinstance(centroids, list | tuple):
            sizes = {len(each) if isinstance(each, list | tuple) else -1 for each in centroids}
            if len(centroids) > MAX_CLUSTERS or max(sizes, default=0) * len(centroids) > MAX_COORDINATES:
                raise ValueError(f"more than {MAX_CLUSTERS} clusters or {MAX_COORDINATES} coordinates")
            if len(sizes) > 1:
                raise ValueError("centroids of different length")
            if len({str(each) for each in centroids}) < len(centroids):
                raise ValueError("two centroids are equal, so a cluster has no record")
        return fields

    @property
    def count(self) -> int:
        return len(self.centroids)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the model, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def digest(self) -> str:
        """Digest of the whole model. The digest tells two models apart."""
        return hashlib.sha256(self.encoded).hexdigest()[:DIGEST_CHARS]

    @property
    def encoded(self) -> bytes:
        """Content of the file."""
        return json.dumps(self.model_dump(mode="json"), separators=(",", ":")).encode() + b"\n"


def _form_of_model(value: object) -> str:
    return "<path>" if isinstance(value, str) else "<file>"


class ClusterSettings(Fields):
    """Settings of `goal: clusters`."""

    model: Annotated[
        Annotated[str, Tag("<path>")] | Annotated[ClusterModel, Tag("<file>")], Discriminator(_form_of_model)
    ] = Field(
        description="Path of the file that `coordinator clusters fit` wrote, relative to the job file, or"
        " the content of the file. Everybody who sees the job sees the model."
    )
    publish: Name | None = Field(
        default=None,
        description="Name of the published column with each record's cluster, from 0. single: optional. "
        "horizontal: required, because the parties see these counts. An attacker who knows a "
        "person's quasi-identifiers can compute the cluster.",
    )

    @property
    def opened(self) -> ClusterModel:
        """Model, after its file was read."""
        assert isinstance(self.model, ClusterModel)
        return self.model

    @property
    def domain(self) -> tuple[str, ...]:
        """Labels of clusters."""
        return tuple(map(str, range(self.opened.count)))


def read_model(text: str, where: str) -> ClusterModel:
    """Read a model file. Raises ConfigError for anything malformed, such as a number written as text."""
    try:
        fields = read_json(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("job-invalid", f"{where}: is not JSON") from error
    if is_too_deep(fields):
        raise ConfigError("job-invalid", f"{where}: is nested too deeply")
    model = parse_model(ClusterModel, fields, where, "job-invalid")
    if model.model_dump(mode="json") != fields:
        raise ConfigError("job-invalid", f"{where}: centroids: write numbers, not texts")
    return model
