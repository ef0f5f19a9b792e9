"""Fate of the rows of a table, and the meter of a pass: for its owner's own console and files.

The numbers are never shared, logged or sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

from jobs.data.counted import counted, noun

WITHOUT_VALUE, UNUSABLE = "missing", "unusable"
"""Reasons for a cell to drop its row: empty or `?`; or (DP jobs) the cell fits nothing in the column's domain."""
REASONS: Mapping[str, str] = {
    WITHOUT_VALUE: "no value (an empty cell, `?` or a text of `missing`)",
    UNUSABLE: "a value that is no number or not in the domain",
}
FEW = 0.5
"""Share of matched ids below which the owner reads about possible errors in the ids."""
_HINT = (
    "fewer than half of the ids match: ids are compared after Unicode NFKC and without blanks around them, upper and "
    "lower case differ; prefixes, leading zeros or `.0` may differ between the tables: `normalize` at the id column "
    "of the job brings ids into one form"
)


@dataclass(frozen=True)
class Stray:
    """Value outside its domain, and its row number, from 1: for the owner alone."""

    row: int = field(repr=False)
    value: str = field(repr=False)


@dataclass(frozen=True)
class RowsRead:
    """Numbers of rows.

    dropped:  by column and reason; a row counts at every column that drops the row, so the sum may exceed
              ``read - used``.
    outside:  DP jobs, and jobs with the key `outside`: rows with a value outside the domain, by column.
    beyond:   DP jobs per person: rows left out beyond the allowed number of the same person's rows.
    inside:   of the columns in ``outside``, rows with a value of the domain; missing cells are in neither
              count.
    strays:   of the same columns, the first value outside. Only a single holder's console shows the value,
              no file.
    marks:    rows with each of the owner's texts for a missing cell, by coded column; for the console alone.
    listed:   of these texts, the texts that the job also lists as values, by column.
    """

    read: int = field(repr=False)
    used: int = field(repr=False)
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    outside: Mapping[str, int] = field(default_factory=dict, repr=False)
    beyond: int = field(default=0, repr=False)
    inside: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False, kw_only=True)
    strays: Mapping[str, Stray] = field(default_factory=dict, repr=False, compare=False, kw_only=True)
    marks: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict, repr=False, compare=False, kw_only=True
    )
    listed: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict, repr=False, compare=False, kw_only=True
    )

    @classmethod
    def of_report(cls, fields: Mapping[str, Any]) -> RowsRead:
        """Return the numbers of the key `data` of a report. Further keys of a model are left out."""
        return cls(**{key: value for key, value in fields.items() if key in cls.__dataclass_fields__})

    @property
    def n_dropped(self) -> int:
        """Rows left out."""
        return self.read - self.used

    @property
    def usable(self) -> int:
        """Number of complete rows. The rows ``beyond`` are also left out of the used rows."""
        return self.used + self.beyond

    def leaving_out(self, beyond: int) -> RowsRead:
        """Return the counts with the given number of further rows left out because of the person's remaining rows."""
        return replace(self, used=self.used - beyond, beyond=self.beyond + beyond)

    def mostly_outside(self, share: Fraction) -> list[str]:
        """Return the columns with more than the given share of the cells outside the domain."""
        return [name for name, n in self.outside.items() if n > share * (n + self.inside.get(name, 0))]

    def fields(self) -> dict[str, Any]:
        """Return the fields for a report or an own account."""
        dropped = {name: dict(reasons) for name, reasons in self.dropped.items()}
        outside = {"outside": dict(self.outside)} if self.outside else {}
        beyond = {"beyond": self.beyond} if self.beyond else {}
        return {"read": self.read, "dropped": dropped, **beyond, "used": self.used, **outside}

    def words(self) -> list[str]:
        """Return the counts in sentences."""
        read = counted(self.read, "row", "rows")
        lines = [f"{read} read, {self.n_dropped:,} left out, {self.used:,} used"]
        for name, reasons in self.dropped.items():
            lines += [f"left out: {_rows_have(n)} {REASONS[why]} in {name}" for why, n in reasons.items()]
        if self.beyond:
            lines.append(
                f"left out: {_rows_have(self.beyond)} as many others of the same person as may count"
            )
        return lines + self.mark_words() + self.outside_words()

    def mark_words(self) -> list[str]:
        """Return the owner's texts of missing cells in sentences, the most frequent text first."""
        lines = []
        for name, found in self.marks.items():
            each = sorted(found.items(), key=lambda mark: (-mark[1], mark[0]))
            texts = ", ".join(f"{text!r} in {counted(n, 'row', 'rows')}" for text, n in each)
            lines.append(f"missing cells of {name}: {texts}")
        for name, listed in self.listed.items():
            lines.append(
                f"warning: the job lists {', '.join(map(repr, listed))} as {noun(len(listed), 'a value', 'values')} "
                f"of {name}, and `missing` or `map` under `data` makes the cells missing"
            )
        return lines

    def outside_words(self) -> list[str]:
        """Return the counts of values outside a domain in sentences."""
        return [f"{_rows_have(n)} a value outside the domain of {name}" for name, n in self.outside.items()]


def _rows_have(n: int) -> str:
    return counted(n, "row has", "rows have")


def matched_fields(n_ids: int, n_matched: int) -> dict[str, int]:
    """Return the number of the owner's ids common to all parties, in a vertical job."""
    return {"ids": n_ids, "matched": n_matched}


def matched_words(n_ids: int, n_matched: int) -> list[str]:
    """Return sentences on the matched ids, with a hint if few match."""
    lines = [f"{n_matched:,} of your {counted(n_ids, 'id', 'ids')} matched"]
    return [*lines, _HINT] if n_matched < FEW * n_ids else lines


Rows: TypeAlias = Callable[[], int | None]
"""Function that gives the number of rows of a table, about; None: unknown."""


class Meter:
    """Receiver of the progress of each pass over a table, for the owner's console. This meter ignores everything."""

    def rows(self, read: int, of: Rows) -> None:
        """Note the number of rows that a pass has read so far. of: gives the rows of the table."""


NO_METER = Meter()
