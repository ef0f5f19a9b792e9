"""t-closeness by its definition, in fractions: how far the values of a group are from those of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

Row = Mapping[str, str]


def apart(group: Sequence[object], table: Sequence[object]) -> Fraction:
    """Return the difference of the two, as shares: values are equally far from each other."""
    common = (
        min(Fraction(group.count(v), len(group)), Fraction(table.count(v), len(table))) for v in set(table)
    )
    return 1 - sum(common, Fraction(0))


def moved(group: Sequence[object], table: Sequence[object], row: Sequence[object]) -> Fraction:
    """Return the average way of records that are moved in order from one to the other, as a share of the
    whole row.

    Each group record stands for as many as there are in the table, and the other way round.
    """
    ours = sorted(row.index(value) for value in group for _ in table)
    theirs = sorted(row.index(value) for value in table for _ in group)
    far = sum(abs(one - other) for one, other in zip(ours, theirs, strict=True))
    return Fraction(far, len(ours) * max(len(row) - 1, 1))


@dataclass(frozen=True)
class Close:
    """By sensitive column how far groups may be from the table, and the row of its values if they have one."""

    table: Sequence[Row]
    columns: Mapping[str, tuple[Fraction, Sequence[str] | None]]

    def holds(self, group: Sequence[Row]) -> bool:
        return all(self.distance(name, group) <= most for name, (most, _) in self.columns.items())

    def distance(self, name: str, group: Sequence[Row]) -> Fraction:
        _, row = self.columns[name]
        ours, theirs = [r[name] for r in group], [r[name] for r in self.table]
        return apart(ours, theirs) if row is None else moved(ours, theirs, row)
