"""What is said on the console about the rows of a table, where its owner is the one who reads there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from jobs.data.counted import counted, noun
from jobs.data.rows_read import RowsRead
from jobs.data.tables import Table
from party.cli.console import note
from party.costs import rows_told


def tell_rows(rows: RowsRead) -> None:
    """Say what was left out of a single holder's table, if anything was."""
    if rows.n_dropped or rows.outside:
        note("\n".join(rows.words()), **rows.fields())


def tell_refused(n_refused: int) -> None:
    """Say whether groups follow from quasi-identifiers alone, which only the raw table tells."""
    if n_refused:
        words = (
            f"{counted(n_refused, 'cut', 'cuts')} that K allows {noun(n_refused, 'was', 'were')} refused for what is "
            "asked of sensitive columns: who knows the quasi-identifiers of all records may find out which, and so "
            "something of the values that groups would have had (docs/security.md)"
        )
    else:
        words = (
            "no cut was refused for what is asked of sensitive columns: groups follow from quasi-identifiers "
            "alone"
        )
    note(words, refused_for_sensitive=n_refused)


def tell_rows_of_all(tables: Mapping[str, Table]) -> None:
    """Say it of every party's table, to somebody who has them all; in vertical jobs how many ids match, too."""
    n_matched = _n_matched(tables)
    for party, table in tables.items():
        if n_matched is not None or table.rows.n_dropped or table.rows.outside:
            account = rows_told(table, n_matched)
            words = "\n".join(f"{party}: {line}" for line in account["in_words"])
            note(words, party=party, **account["data"])


def _n_matched(tables: Mapping[str, Table]) -> int | None:
    """How many ids all tables have; None where nothing is matched."""
    ids = [frozenset(table.ids) for table in tables.values() if table.ids is not None]
    return len(reduce(frozenset.intersection, ids)) if ids else None
