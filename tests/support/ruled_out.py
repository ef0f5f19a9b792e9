"""Inference by ruling values out, by its definition, on rows of values; and the algorithms that [MSA]
publishes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

Row: TypeAlias = tuple[object, ...]
Cell: TypeAlias = tuple[int, object]
"""A column, by its number, and one of its values."""


@dataclass(frozen=True)
class Sensitive:
    """A sensitive column. bound: C of its protected values. at_most: values of it in one attack; None: any number."""

    values: Sequence[object]
    protected: Collection[object]
    bound: Fraction | None = None
    at_most: int | None = None


def attacks(columns: Sequence[Sensitive], most: int) -> Iterator[tuple[tuple[Cell, ...], Cell]]:
    """Every set of at most so many values that can be ruled out, with every value that is then inferred."""
    values = [(i, value) for i, column in enumerate(columns) for value in column.values]
    for size in range(most + 1):
        for out in combinations(values, size):
            for i, value in values:
                if (i, value) in out or value not in columns[i].protected:
                    continue
                used = Counter(column for column, _ in (*out, (i, value)))
                limits = [(used[j], column.at_most) for j, column in enumerate(columns)]
                if all(limit is None or n <= limit for n, limit in limits):
                    yield out, (i, value)


def tells_at_most(rows: Sequence[Row], columns: Sequence[Sensitive], most: int) -> bool:
    """Return True if no attack leaves a share above the bound of what it infers."""
    for out, (i, value) in attacks(columns, most):
        left = [row for row in rows if not any(row[column] == v for column, v in out)]
        bound = columns[i].bound
        if bound is not None and left and Fraction(sum(row[i] == value for row in left), len(left)) > bound:
            return False
    return True


def is_diverse(rows: Sequence[Row], columns: Sequence[Sensitive], least: int) -> bool:
    """Return True if no attack that rules out at most l − 2 values leaves only what it infers."""
    for out, (i, value) in attacks(columns, least - 2):
        left = [row for row in rows if not any(row[column] == v for column, v in out)]
        if left and all(row[i] == value for row in left):
            return False
    return True


def fewest_deletions(
    rows: Sequence[Row], n_columns: int, at_most: Mapping[int, int] | None = None
) -> int | None:
    """[MSA] Definition 6: how few values must be deleted to delete all rows; with ``at_most`` of some columns its
    Definition 7: None where no such values do."""
    values = sorted({(i, row[i]) for row in rows for i in range(n_columns)}, key=str)
    for size in range(len(values) + 1):
        for out in combinations(values, size):
            used = Counter(column for column, _ in out)
            if all(used[i] <= limit for i, limit in (at_most or {}).items()) and all(
                any(row[column] == v for column, v in out) for row in rows
            ):
                return size
    return None


def is_recursive(counts: Sequence[int], c: Fraction, least: int) -> bool:
    """Recursive (c, l)-diversity of one column: the greatest count is at most c times the sum from the l-th on.

    TKDD 2007, Definition 4.3, with "at most" for "less than", as C is meant; and the same for whichever of the other
    l − 2 greatest the attacker leaves.
    """
    greatest = sorted((n for n in counts if n), reverse=True)
    return not greatest or greatest[0] <= c * sum(greatest[least - 1 :])


def disjoint_rows(rows: Sequence[Row]) -> list[Row]:
    """[MSA] Fig. 6, to the end: rows without a common value, those with the rarest values first; ties in order."""
    frequency = Counter((i, value) for row in rows for i, value in enumerate(row))
    chosen: list[Row] = []
    for row in sorted(rows, key=lambda row: sum(frequency[i, value] for i, value in enumerate(row))):
        if all(a != b for other in chosen for a, b in zip(row, other, strict=True)):
            chosen.append(row)
    return chosen


def published_check(rows: Sequence[Row], least: int) -> bool:
    """[MSA] Fig. 6."""
    return len(disjoint_rows(rows)) >= least


def published_check_of_columns(rows: Sequence[Row], least: int, limits: Sequence[int]) -> bool:
    """[MSA] Fig. 7. limits: L_i of every column."""
    chosen = disjoint_rows(rows)
    if len(chosen) >= least:
        return True
    frequency = Counter((i, value) for row in rows for i, value in enumerate(row))
    rest = list((Counter(rows) - Counter(chosen)).elements())
    x = len(chosen)
    for row in sorted(rest, key=lambda row: sum(frequency[i, value] for i, value in enumerate(row))):
        chosen.append(row)
        found = _greatest(chosen, x + 1, limits)
        if sum(found[:x]) > len(chosen):
            chosen.pop()
        elif sum(found) <= len(chosen):
            x += 1
            if x == least:
                return True
    return False


def _greatest(rows: Sequence[Row], how_many: int, limits: Sequence[int]) -> list[int]:
    frequency = Counter((i, value) for row in rows for i, value in enumerate(row))
    used: Counter[int] = Counter()
    found: list[int] = []
    for (i, _), n in frequency.most_common():
        if used[i] < limits[i] and len(found) < how_many:
            used[i] += 1
            found.append(n)
    return found
