"""An independent check that a released table is LKC-private.

This is the definition and nothing else ([T] Definition 3.1): for every subset of at most L quasi-identifier
columns, every group of records that agree on it has at least K members, and no protected value is more
frequent in it than C. It works on the labels that are about to be published and shares no code with the
algorithms that produced them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from anonymize.release import LabelledColumn, Release


@dataclass(frozen=True)
class Bound:
    """At most ``confidence`` of any group may have any one of these values of a sensitive column."""

    column: str
    values: frozenset[str]
    confidence: Fraction


@dataclass(frozen=True)
class Finding:
    """A group that is not allowed: the columns it agrees on and the threshold it breaks."""

    columns: tuple[str, ...]
    threshold: str
    sensitive: str | None = None

    def __str__(self) -> str:
        where = ", ".join(self.columns) if self.columns else "no column"
        what = f"C for {self.sensitive}" if self.sensitive else "K"
        return f"a group on {where} violates {what}"


def verify_lkc(
    release: Release, qid: Sequence[str], max_known: int, min_size: int, bounds: Sequence[Bound]
) -> Finding | None:
    """Return the first violation found, or None if the table is LKC-private.

    A column with one label in the whole table splits no group, so subsets that contain it repeat smaller
    ones; those columns are passed over.
    """
    codes = {name: label_codes(release.columns[name]) for name in qid}
    telling = [name for name in qid if codes[name].max(initial=0) > 0]
    flags = [_flags(release.columns[bound.column], bound) for bound in bounds]
    rows, weights = _distinct_rows([codes[name] for name in telling] + flags, release.n_rows)
    group_codes = dict(zip(telling, rows, strict=False))
    flag_codes = rows[len(telling) :]
    for size in range(min(max_known, len(telling)) + 1):
        for columns in combinations(telling, size):
            groups = number_rows(
                [group_codes[name] for name in columns], len(weights), 8 * len(weights) + 1024
            )
            found = _violation(groups, weights, flag_codes, min_size, bounds)
            if found is not None:
                return Finding(columns, "K" if found is _TOO_SMALL else "C", found or None)
    return None


def verify_cells(release: Release, columns: Sequence[str], bounds: Sequence[Bound]) -> Finding | None:
    """Return the first violation of C among rows that agree on all ``columns``, or None."""
    codes = [label_codes(release.columns[name]) for name in columns]
    groups = number_rows(codes, release.n_rows, 8 * release.n_rows + 1024)
    flags = [_flags(release.columns[bound.column], bound) for bound in bounds]
    found = _violation(groups, np.ones(release.n_rows, dtype=np.int64), flags, 0, bounds)
    return None if found is None else Finding(tuple(columns), "C", found)


_TOO_SMALL = ""
_KEY_SPACE = 1 << 62


def _violation(
    groups: NDArray[np.int64],
    weights: NDArray[np.int64],
    flags: Sequence[NDArray[np.int64]],
    min_size: int,
    bounds: Sequence[Bound],
) -> str | None:
    """Return the name of a sensitive column bound too weakly, ``_TOO_SMALL`` for K, or None."""
    sizes = np.bincount(groups, weights).astype(np.int64)
    if (sizes[sizes > 0] < min_size).any() or (min_size > 0 and len(groups) == 0):
        return _TOO_SMALL
    for flag, bound in zip(flags, bounds, strict=True):
        if bound.confidence >= 1:
            continue
        for value in range(1, int(flag.max(initial=0)) + 1):
            holding = flag == value
            hits = np.bincount(groups[holding], weights[holding], minlength=len(sizes)).astype(np.int64)
            if (hits * bound.confidence.denominator > sizes * bound.confidence.numerator).any():
                return bound.column
    return None


def label_codes(column: LabelledColumn) -> NDArray[np.int64]:
    """Number the labels that occur, equal labels alike: what a reader of the table can tell apart."""
    present = np.bincount(column.codes, minlength=len(column.labels)) > 0
    seen = dict.fromkeys(label for label, is_seen in zip(column.labels, present, strict=True) if is_seen)
    numbers: Mapping[str, int] = {label: i for i, label in enumerate(seen)}
    by_code = np.array([numbers.get(label, -1) for label in column.labels], dtype=np.int64)
    return by_code[column.codes]


def _flags(column: LabelledColumn, bound: Bound) -> NDArray[np.int64]:
    """Number the protected values 1, 2, ...; 0 for all others."""
    protected = {value: i for i, value in enumerate(sorted(bound.values), start=1)}
    by_code = np.array([protected.get(label, 0) for label in column.labels], dtype=np.int64)
    return by_code[column.codes]


def _distinct_rows(
    columns: Sequence[NDArray[np.int64]], n_rows: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Join equal rows; return the columns of the distinct ones and how often each occurs."""
    keys = number_rows(columns, n_rows)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return [column[first] for column in columns], counts


def number_rows(
    columns: Sequence[NDArray[np.int64]], n_rows: int, limit: int = _KEY_SPACE
) -> NDArray[np.int64]:
    """Number rows, up to about ``limit``, so that exactly rows that agree on all columns share one."""
    groups = np.zeros(n_rows, dtype=np.int64)
    bound = 1
    for column in columns:
        radix = int(column.max(initial=0)) + 1
        if bound * radix > limit:
            groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
            bound = int(groups.max(initial=0)) + 1
        groups = groups * radix + column
        bound *= radix
    return groups
