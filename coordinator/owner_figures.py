"""Owners' private figures about their tables, if the owners are the readers: on the console, and in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from coordinator.progress import CONSOLE, Note
from jobs.data.counted import counted, noun
from jobs.data.rows_read import RowsRead
from jobs.data.sources import Source
from jobs.options import UNLIMITED
from jobs.reading import notes_on_dates
from jobs.release.folder import OWN, as_json, write_for_owner
from jobs.task import Task


def tell_rows(rows: RowsRead, strays: Sequence[str] = (), note: Note = CONSOLE.note) -> None:
    """Tell a single holder the left-out rows and cells, if any. strays: values outside all domains, in sentences."""
    if rows.n_dropped or rows.outside or rows.marks:
        note("\n".join([*rows.words(), *strays]), **rows.fields())


def tell_dates(source: Source, task: Task) -> None:
    """Tell a single holder the stated forms of dates that fit no column with dates."""
    for words in notes_on_dates(source, task):
        CONSOLE.note(words)


def tell_refused(n_refused: int, note: Note = CONSOLE.note) -> None:
    """Say whether groups follow from quasi-identifiers alone; only the raw table shows the fact."""
    if n_refused:
        words = (
            f"{counted(n_refused, 'cut', 'cuts')} that K allows {noun(n_refused, 'was', 'were')} refused because "
            "of sensitive columns. A reader who knows the quasi-identifiers of all records may find these cuts, "
            "and so learn about the values of the groups that were not made (docs/security.md)"
        )
    else:
        words = "no cut was refused because of sensitive columns: groups follow from quasi-identifiers alone"
    note(words, refused_for_sensitive=n_refused)


def charged_words(charged: Sequence[Fraction], limit: str = "") -> list[str]:
    """Say the sum of the ledger of a single holder's table, and the meaning of a sum over several releases."""
    total, runs = f"{float(sum(charged, Fraction(0))):g}", counted(len(charged), "run", "runs")
    lines = [f"privacy ledger of the table: epsilon {total} charged, by {runs}{limit}"]
    if len(charged) > 1:
        together = (
            f"all these releases together protect like a single release with epsilon {total}, not like each "
            "release alone"
        )
        lines.append(f"warning: epsilon adds up: {together}")
    return lines


def _limit_words(limit: Fraction) -> str:
    return (
        "; the run set no limit (`--budget`)"
        if limit == UNLIMITED
        else f"; limit of this run: {float(limit):g}"
    )


def tell_charged(charged: Sequence[Fraction], limit: Fraction, note: Note = CONSOLE.note) -> None:
    """Say the sum of all DP releases of a single holder's table."""
    if charged:
        note("\n".join(charged_words(charged, _limit_words(limit))), **charged_fields(charged))


def charged_fields(charged: Sequence[Fraction]) -> dict[str, str | int]:
    """Return the charges as fields for programs."""
    return {"charged": str(sum(charged, Fraction(0))), "runs": len(charged)}


def tell_own_of_all(accounts: Mapping[str, Mapping[str, Any]], note: Note = CONSOLE.note) -> None:
    """Tell each party's account to a reader with all tables; of rows only necessary sentences."""
    for party, account in accounts.items():
        data, records = account["data"], account.get("records", {})
        lines = list(account["in_words"]) if _needs_words(data) else []
        lines += records.get("in_words", ())
        if lines:
            told = {key: value for key, value in records.items() if key != "in_words"}
            note("\n".join(f"{party}: {line}" for line in lines), party=party, **data, **told)


def _needs_words(data: Mapping[str, Any]) -> bool:
    """Return True if rows were left out or are outside, or ids were matched."""
    return data["read"] != data["used"] or "outside" in data or "matched" in data


def keep_own_of_all(out: Path, accounts: Mapping[str, Mapping[str, Any]], pages: Mapping[str, str]) -> None:
    """Put each party's account and page beside the release, for the owner of all tables."""
    folder = out / OWN
    folder.mkdir(mode=0o700)
    for party, account in accounts.items():
        write_for_owner(folder / f"{party}.json", as_json(account))
    for party, page in pages.items():
        write_for_owner(folder / f"{party}.html", page)
