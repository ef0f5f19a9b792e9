"""Domains of columns, by digest. A data set's owner pins the digests, so that releases have the same cells."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from anonymize.dates import DateGrid
from anonymize.grid import Grid, plain
from anonymize.shallow_taxonomy import ShallowTaxonomy
from anonymize.taxonomy import MISSING, SEPARATOR, Taxonomy
from jobs.file.columns import NumericDomain
from jobs.file.schema import grid_of
from jobs.task import Task


def domains_of(task: Task) -> dict[str, str]:
    """Return the digest of the domain of every column with grouped values: SHA-256, hexadecimal, by name.

    Columns with a taxonomy, a grid or a clock have grouped values. A list of values (`domain`) groups nothing.
    """
    found = {name: domain_of(task, name) for name in task.job.columns}
    return {name: digest for name, digest in found.items() if digest is not None}


def domain_of(task: Task, name: str) -> str | None:
    """Return the digest of the domain of a column, or None for a column without grouped values."""
    column, values = task.job.columns[name], task.taxonomies.get(name)
    if column.clock is not None:
        clock = ";".join(f"{key}={value}" for key, value in sorted(column.clock.model_dump().items()))
        return _digest(f"clock;{clock};relative={bool(column.relative)}")
    return None if values is None else digest_of(values)


def digest_of(values: Taxonomy | Grid) -> str:
    """Return the digest of a taxonomy or of a grid.

    For a taxonomy: of a file with a line ``leaf;parent;...;root`` for each value, in order; with `level`: of this
    file, and a line for each published value. For a grid: of its edges, and of `?` if rows without a number are kept;
    dates count by the number of their day (1 is 0001-01-01).
    """
    missing = [MISSING] if isinstance(values, Grid) and values.missing_leaf else []
    if isinstance(values, DateGrid):
        days = (str(int(edge) // values.per_day) for edge in values.edges)
        return _digest("dates;" + SEPARATOR.join([*days, *missing]))
    if isinstance(values, Grid):
        return _digest("grid;" + SEPARATOR.join([*map(plain, values.edges), *missing]))
    deeper = _paths(values.deeper) if isinstance(values, ShallowTaxonomy) else []
    return _digest("".join(f"{SEPARATOR.join(reversed(path))}\n" for path in [*deeper, *_paths(values)]))


def digest_of_grid(name: str, numeric: NumericDomain) -> str:
    """Return the digest of a grid in the form of a job file or a policy. Raises SchemaError."""
    return digest_of(grid_of(name, numeric))


def _paths(taxonomy: Taxonomy) -> list[list[str]]:
    """Return the labels from the root to each value, in the order of values."""
    found: list[list[str]] = []
    above: dict[int, list[str]] = {0: []}
    for place, children in enumerate(taxonomy.children):
        path = [*above.pop(place), taxonomy.printed[place]]
        above |= dict.fromkeys(children, path)
        if not children:
            found.append(path)
    return found


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the columns with changed domains, by name, in the order of the job."""
    return [name for name, digest in now.items() if before.get(name, digest) != digest]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
