"""Fate of the rows of a table: for its owner's own console and files; never shared, logged or sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from jobs.data.counted import counted

WITHOUT_VALUE, UNUSABLE = "missing", "unusable"
"""Reasons that a cell drops its row: it is empty or `?`; or (DP jobs) it fits nothing in the column's domain."""
REASONS: Mapping[str, str] = {
    WITHOUT_VALUE: "no value (an empty cell or `?`)",
    UNUSABLE: "a value that is no number or not in the domain",
}
FEW = 0.5
"""Below this share of matched ids the owner is told what may be wrong with them."""
_HINT = (
    "fewer than half of the ids match: ids are compared after Unicode NFKC and without blanks around them, upper and "
    "lower case differ; prefixes, leading zeros or `.0` may differ between the tables"
)


@dataclass(frozen=True)
class Stray:
    """A value outside its domain, and the number of its row, from 1: for the owner alone."""

    row: int = field(repr=False)
    value: str = field(repr=False)


@dataclass(frozen=True)
class RowsRead:
    """Numbers of rows.

    dropped:  by column and reason; a row counts at every column that drops it, so these may add up to more than
              ``read - used``.
    outside:  DP jobs: by column, rows with a value outside the domain.
    beyond:   DP jobs per person: rows left out because as many others of the same person count as may.
    inside:   of the columns in ``outside``, rows with a value of the domain; what is missing is in neither.
    strays:   of these columns, the first value outside. In no file: only a single holder's console shows it.
    """

    read: int = field(repr=False)
    used: int = field(repr=False)
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    outside: Mapping[str, int] = field(default_factory=dict, repr=False)
    beyond: int = field(default=0, repr=False)
    inside: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False, kw_only=True)
    strays: Mapping[str, Stray] = field(default_factory=dict, repr=False, compare=False, kw_only=True)

    @property
    def n_dropped(self) -> int:
        """Rows left out."""
        return self.read - self.used

    @property
    def usable(self) -> int:
        """Rows that lack nothing; of these the ones beyond are left out, too."""
        return self.used + self.beyond

    def leaving_out(self, beyond: int) -> RowsRead:
        """The same where so many more rows are left out for what else there is of their persons."""
        return replace(self, used=self.used - beyond, beyond=self.beyond + beyond)

    def mostly_outside(self, share: Fraction) -> list[str]:
        """Return the columns of which more than this share of the cells fits nowhere in the domain."""
        return [name for name, n in self.outside.items() if n > share * (n + self.inside.get(name, 0))]

    def fields(self) -> dict[str, Any]:
        """As they stand in a report or an own account."""
        dropped = {name: dict(reasons) for name, reasons in self.dropped.items()}
        outside = {"outside": dict(self.outside)} if self.outside else {}
        beyond = {"beyond": self.beyond} if self.beyond else {}
        return {"read": self.read, "dropped": dropped, **beyond, "used": self.used, **outside}

    def words(self) -> list[str]:
        """The same in sentences."""
        read = counted(self.read, "row", "rows")
        lines = [f"{read} read, {self.n_dropped:,} left out, {self.used:,} used"]
        for name, reasons in self.dropped.items():
            lines += [f"left out: {_rows_have(n)} {REASONS[why]} in {name}" for why, n in reasons.items()]
        if self.beyond:
            lines.append(
                f"left out: {_rows_have(self.beyond)} as many others of the same person as may count"
            )
        return lines + [
            f"{_rows_have(n)} a value outside the domain of {name}" for name, n in self.outside.items()
        ]


def _rows_have(n: int) -> str:
    return counted(n, "row has", "rows have")


def matched_fields(n_ids: int, n_matched: int) -> dict[str, int]:
    """Vertical: how many of the owner's ids all parties have."""
    return {"ids": n_ids, "matched": n_matched}


def matched_words(n_ids: int, n_matched: int) -> list[str]:
    """The same in sentences, with a hint where few of them match."""
    lines = [f"{n_matched:,} of your {counted(n_ids, 'id', 'ids')} matched"]
    return [*lines, _HINT] if n_matched < FEW * n_ids else lines
