"""What both passes need of an SQL engine: everything in which engines differ, and nothing else.

An engine is never asked what a cell means. It tells different cells apart (:meth:`Session.key`), gives them as Arrow
values, whose text is made here as that of any other source is, and joins what this process makes of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from jobs.data.arrow import pa


def quoted(name: str) -> str:
    """An identifier in standard SQL, as most engines take it."""
    return '"' + name.replace('"', '""') + '"'


class Session(Protocol):
    """One engine at work on one table, which stays what it is until the session ends.

    What an engine raises comes out of here as DataError, with its words for the owner alone: they may quote cells.
    """

    @property
    def table(self) -> str:
        """What stands behind FROM: one item, without an alias."""
        ...

    def key(self, name: str) -> str:
        """The expression that tells cells of a column apart: equal in SQL only where the texts are equal.

        Equality in SQL must be that of hash joins: where it takes different cells for equal, as numbers -0 and 0 or
        texts under a collation, the expression says something else instead. Null counts as itself, so a column of
        text had better give '' for it, which is the same cell.
        """
        ...

    def texts(self, name: str, keys: pa.Array) -> pa.DictionaryArray:
        """The texts of some keys of a column, as :func:`jobs.data.texts.as_text` writes those of its cells."""
        ...

    def number(self, name: str) -> tuple[str, str] | None:
        """The expressions of a column's number as a double, and of whether it is NaN; None for other columns.

        Only where the double is the one that the cell's text is read as: of doubles, and of integers of up to 64 bits
        whose conversion rounds to the nearest. Null stays null.
        """
        ...

    def query(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Run one query; to be read to its end before the next."""
        ...

    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The keys of some columns, row by row, in the same order each time as long as the table does not change.

        A column is called as in the table.
        """
        ...

    def look_up(self, keys: pa.Array, codes: pa.Array) -> str:
        """Hand a small table over; return what stands behind JOIN: an item with columns `cell` and `code`.

        keys:  each different, none null, as :meth:`query` gave them. codes: integers of the least signed type.
        """
        ...
