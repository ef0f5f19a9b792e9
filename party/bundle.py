"""The bundle: the canonical job with the bytes of its taxonomy files. Its SHA-256 is the job hash that policy,
every message and the report bind (DESIGN §9).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from anonymize.accounting import Dp
from anonymize.errors import DataError, SchemaError
from anonymize.grid import Grid, from_cuts, from_step
from anonymize.joint.columns import Columns, class_schema
from anonymize.joint.dp import DpRequest, check_request
from anonymize.joint.dp_thesis_horizontal import check_ranges
from anonymize.joint.sealed import check_grids
from anonymize.privacy import Lkc
from anonymize.table import QidColumn, Schema, SensitiveColumn, SetRule
from anonymize.taxonomy import Taxonomy, from_arx_csv, from_nested
from party.errors import ConfigError
from party.job import Column, DpModel, Job, LkcModel, NumericDomain, parse_job
from party.yaml_text import parse_yaml, read_text

FORMAT = 1
MAX_BUNDLE_BYTES = 64 << 20
ROOT = "*"


@dataclass(frozen=True)
class Bundle:
    """A job and its taxonomy files, by column. In the job the taxonomy of a filed column is its file's name."""

    job: Job
    files: Mapping[str, str]

    @cached_property
    def encoded(self) -> bytes:
        """The bundle as canonical JSON in UTF-8."""
        parts = {
            "bundle": FORMAT,
            "job": json.loads(self.job.canonical()),
            "files": dict(sorted(self.files.items())),
        }
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> bytes:
        """The job hash, 32 bytes."""
        return hashlib.sha256(self.encoded).digest()

    @cached_property
    def taxonomies(self) -> Mapping[str, Taxonomy | Grid]:
        """The value hierarchy of every column that is specialized. Raises SchemaError."""
        return {name: self._values(name, self.job.columns[name]) for name in self.job.generalized}

    def _values(self, name: str, column: Column) -> Taxonomy | Grid:
        if column.numeric is not None:
            return _grid(name, column.numeric)
        missing_leaf = column.missing != "drop"
        tree = column.set.taxonomy if column.set is not None else column.taxonomy
        if isinstance(tree, str):
            return from_arx_csv(self.files[name], name, missing_leaf=missing_leaf)
        if tree is None:  # a sensitive column of a DP job: its values below one root
            assert column.domain is not None
            tree = {ROOT: list(column.domain)}
        return from_nested(tree, name, missing_leaf=missing_leaf)

    def schema(self, domains: Mapping[str, tuple[str, ...]] | None = None) -> Schema:
        """The public schema. ``domains`` fills in those a single-holder job leaves to its data.

        Raises SchemaError if a taxonomy or grid is malformed or the domains multiply to too many cells, DataError
        if a protected value is not in the domain that the data gave.
        """
        job, found = self.job, domains or {}
        class_names = job.names("class")
        class_name = class_names[0] if class_names else None
        return Schema(
            tuple(self._generalized(name) for name in job.generalized),
            class_name,
            self._domain(class_name, found) if class_name else ("",),
            tuple(self._sensitive(n, found) for n in job.names("sensitive") if n not in job.generalized),
        )

    def _generalized(self, name: str) -> QidColumn:
        sets = self.job.columns[name].set
        rule = None if sets is None else SetRule(sets.separator, sets.max_items)
        return QidColumn(name, self.taxonomies[name], rule)

    def _domain(self, name: str, found: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        return self.job.columns[name].domain or found[name]

    def _sensitive(self, name: str, found: Mapping[str, tuple[str, ...]]) -> SensitiveColumn:
        column, domain = self.job.columns[name], self._domain(name, found)
        protected = domain if column.values is None else column.values
        for value in sorted(set(protected) - set(domain)):  # only where the data gave the domain
            raise DataError(
                "data-unknown-value",
                f"column {name}: the protected value {value!r} is in no row, so nothing would protect it",
                column=name,
                remedy="correct `values` or the data; or list all values of the column in `domain`",
            )
        places = tuple(domain.index(value) for value in protected)
        confidence = column.C if column.C is not None else self.lkc.C
        return SensitiveColumn(name, domain, places, confidence)

    @property
    def lkc(self) -> LkcModel:
        """The model of an LKC job."""
        assert self.job.model.lkc is not None
        return self.job.model.lkc

    @property
    def requirement(self) -> Lkc:
        """L, K and whether parties are held to C too; the bounds stand with the sensitive columns."""
        return Lkc(self.lkc.L, self.lkc.K, bool(self.job.insider))

    @property
    def dp(self) -> DpModel:
        """The model of a DP job."""
        assert self.job.model.dp is not None
        return self.job.model.dp

    @property
    def dp_requirement(self) -> Dp:
        model = self.dp
        return Dp(
            model.epsilon,
            model.specializations,
            model.utility,
            model.max_rows,
            model.max_cells,
            model.max_fanout,
        )

    @property
    def dp_request(self) -> DpRequest:
        """What the parties of a joint DP job compute."""
        return DpRequest(self.schema(), self.dp_requirement, self.digest, self.dp.noise, self.dp.engine)

    def result_schema(self) -> Schema:
        """The schema of a joint run's T_g: in vertical runs all parties know class counts only."""
        return class_schema(self.schema()) if self.job.partition == "vertical" else self.schema()

    @property
    def holders(self) -> Columns:
        """Who holds which column of a vertical job."""
        job = self.job
        owner = {name: party for party in job.roster for name in job.contributed_by(party)}
        (class_name,) = job.names("class") or (None,)
        return Columns(
            tuple(owner[name] for name in job.generalized),
            tuple(owner[name] for name in job.names("sensitive") if name not in job.generalized),
            tuple(owner[name] for name in job.names("plain")),
            job.columns[class_name].shared_by if class_name else None,
        )


def _grid(name: str, numeric: NumericDomain) -> Grid:
    if numeric.step is not None:
        return from_step(numeric.min, numeric.max, numeric.step, name)
    return from_cuts(numeric.min, numeric.max, numeric.cuts or (), name)


def load_bundle(path: Path) -> Bundle:
    """Read a job file and the taxonomy files it names, and check all that can be checked without data.

    Raises ConfigError or SchemaError.
    """
    job = parse_job(parse_yaml(read_text(path), str(path)), str(path))
    files = {}
    columns = {}
    for name, column in job.columns.items():
        columns[name] = column
        if (file := _taxonomy_file(column)) is not None:
            files[name] = read_text(path.parent / file)
            columns[name] = _with_taxonomy(column, f"{name}.csv")
    bundle = Bundle(job.model_copy(update={"columns": columns}), files)
    _check(bundle)
    return bundle


def _taxonomy_file(column: Column) -> str | None:
    """The file that a column's taxonomy is in, if it is in one."""
    tree = column.set.taxonomy if column.set is not None else column.taxonomy
    return tree if isinstance(tree, str) else None


def _with_taxonomy(column: Column, file: str) -> Column:
    if column.set is not None:
        return column.model_copy(update={"set": column.set.model_copy(update={"taxonomy": file})})
    return column.model_copy(update={"taxonomy": file})


def decode_bundle(encoded: bytes) -> Bundle:
    """Read a bundle as a coordinator sent it. Raises ConfigError or SchemaError on anything not canonical."""
    try:
        parts: Any = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        raise ConfigError("job-invalid", "the bundle is not JSON") from error
    if (
        not isinstance(parts, dict)
        or parts.get("bundle") != FORMAT
        or not isinstance(parts.get("files"), dict)
    ):
        raise ConfigError("job-invalid", "the bundle has another format; compare versions")
    bundle = Bundle(
        parse_job(parts.get("job"), "bundle"), {str(k): str(v) for k, v in parts["files"].items()}
    )
    if not _is_canonical(bundle, encoded):
        raise ConfigError("job-invalid", "the bundle is not in canonical form; compare versions")
    _check(bundle)
    return bundle


def _is_canonical(bundle: Bundle, encoded: bytes) -> bool:
    """Return whether the bundle has exactly the files it names, and encodes to the same bytes."""
    named = {n for n, c in bundle.job.columns.items() if _taxonomy_file(c) is not None}
    try:
        return named == set(bundle.files) and bundle.encoded == encoded
    except UnicodeEncodeError:  # JSON can escape what is no character
        return False


def _check(bundle: Bundle) -> None:
    """Everything that needs no data: taxonomies, grids, domains, the size of the bundle."""
    if len(bundle.encoded) > MAX_BUNDLE_BYTES:
        raise SchemaError("domain-too-large", f"the bundle has more than {MAX_BUNDLE_BYTES} bytes")
    for name in bundle.job.generalized:
        if bundle.taxonomies[name].root.last < 1:
            raise SchemaError("taxonomy-invalid", f"column {name} has no values", column=name)
    if bundle.job.partition != "single":
        schema = bundle.schema()
        if (bundle.job.partition, bundle.job.disclosure) == ("horizontal", "sealed"):
            check_grids(schema)
    if bundle.job.model.dp is not None:
        _check_dp(bundle)


def _check_dp(bundle: Bundle) -> None:
    """What of a DP job can be refused before anything is sent: values for OTHER, sizes, ranges.

    Raises SchemaError, or PrivacyError for more cells than a joint job may have.
    """
    for name, values in bundle.taxonomies.items():
        column = bundle.job.columns[name]
        if column.set is not None and isinstance(values, Taxonomy):
            _check_items(name, values, column.set.separator)
        other = column.other
        if other is not None and isinstance(values, Taxonomy) and other not in values.leaves:
            raise SchemaError(
                "job-invalid", f"columns.{name}: `other` must be a value of its taxonomy", column=name
            )
    if bundle.job.partition != "single":
        check_request(bundle.dp_request, 0)
    if bundle.dp.engine == "thesis":
        check_ranges(bundle.dp_request, bundle.job.partition)


def _check_items(name: str, values: Taxonomy, separator: str) -> None:
    """Combinations are printed as lists of items, so those must be told apart. Raises SchemaError."""
    if len(set(values.printed)) < len(values.printed):
        raise SchemaError(
            "taxonomy-invalid",
            f"set-valued column {name}: two nodes of its taxonomy print alike",
            column=name,
        )
    if any(separator in label for label in values.printed):
        raise SchemaError(
            "taxonomy-invalid",
            f"set-valued column {name}: a node's label has the separator in it",
            column=name,
        )
