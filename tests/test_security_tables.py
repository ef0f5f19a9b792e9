"""The tables of docs/security.md say what `ALLOWED` and the scores say: same reveals, same parties, finer or not.

The words may differ; names, recipients and the last column must not. A reveal that is added to one of the two and
not to the other fails here.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from anonymize.joint.disclosure import ALLOWED, Allowed, mixed_reveals
from anonymize.joint.lkc.scores.rows import SCORES

DOCS = Path(__file__).resolve().parent.parent / "docs" / "security.md"
SECTION = "## What is revealed, by mode"
HEADINGS = {
    "horizontal/sealed": "Horizontal, `disclosure: sealed`",
    "horizontal/leader": "Horizontal, `disclosure: leader`",
    "horizontal/strict": "Horizontal, `disclosure: strict`",
    "horizontal/sealed/kd": "Horizontal, `method: kd`, `disclosure: sealed`",
    "sequences/horizontal/sealed": "Horizontal, `model: sequences`",
    "vertical/sealed": "Vertical, `disclosure: sealed`",
    "vertical/leader": "Vertical, `disclosure: leader`",
}
MIXED = "Horizontal LKC with `plain` columns"
DP = "Differential privacy"
RECIPIENTS = {"its owner": "owner", "the column's holder": "holder"}
"""A recipient as the tables write it, where that is not the word of the list."""


@dataclass(frozen=True)
class Row:
    """One row of a table. ``marked``: what the last column answers."""

    name: str
    meaning: str
    to: str
    marked: bool


def tables() -> dict[str, list[Row]]:
    """The rows below every heading of the section that has a table, by the heading's text."""
    section = DOCS.read_text().split(f"\n{SECTION}\n")[1].split("\n## ")[0]
    _, *parts = section.split("\n### ")
    found = {}
    for part in parts:
        heading, _, body = part.partition("\n")
        if rows := [row(line) for line in body.splitlines() if line.startswith("| `")]:
            found[heading] = rows
    return found


def row(line: str) -> Row:
    name, meaning, to, answer = (cell.strip() for cell in line.strip().strip("|").split(" | "))
    said = re.match(r"(yes|no)\b", answer.strip("*"))
    assert said, f"{name}: the last column begins with yes or no"
    return Row(name.strip("`"), meaning, RECIPIENTS.get(to, to.split(",")[0]), said[1] == "yes")


def table_of(heading: str) -> list[Row]:
    (found,) = [rows for text, rows in tables().items() if text.startswith(heading)]
    return found


def documented(mode: str) -> list[Row]:
    """The rows that speak of an LKC mode; the published vertical mode adds to the sealed one."""
    sealed = table_of(HEADINGS["vertical/sealed"]) if mode == "vertical/leader" else []
    return [*sealed, *table_of(HEADINGS[mode])]


def documented_of_dp(mode: str) -> list[Row]:
    """The rows of the one DP table that speak of a mode: a row begins with those it is for, or is for all."""
    _, partition, engine = mode.split("/")
    method = "synthetic" if engine == "synthetic" else "diffgen"
    found = []
    for entry in table_of(DP):
        scope = re.match(r"(horizontal|vertical)(?:, `engine: (\w+)`)?|`method: (\w+)`", entry.meaning)
        if scope is None or scope[3] == method or (scope[1] == partition and scope[2] in (None, engine)):
            found.append(entry)
    return found


def allowed(mode: str, mark: str) -> Counter[tuple[str, str, bool]]:
    """What a mode and its scores list; ``mark``: "finer", or "covered" by ε, which the list says in words."""

    def marked(entry: Allowed) -> bool:
        return entry.finer if mark == "finer" else "ε" in entry.meaning

    of_scores = dict.fromkeys(entry for score in SCORES.values() for entry in score.reveals.get(mode, ()))
    return Counter((entry.name, entry.to, marked(entry)) for entry in (*ALLOWED[mode], *of_scores))


def written(rows: list[Row]) -> Counter[tuple[str, str, bool]]:
    return Counter((entry.name, entry.to, entry.marked) for entry in rows)


def test_every_mode_has_its_table() -> None:
    assert set(HEADINGS) | {mode for mode in ALLOWED if mode.startswith("dp/")} == set(ALLOWED)
    assert len(tables()) == len(HEADINGS) + 2


def test_the_table_of_mixed_rows_is_their_list() -> None:
    """Who receives them follows from `deliver`."""
    listed = dict.fromkeys(entry for deliver in ("all", "coordinator") for entry in mixed_reveals(deliver))
    assert written(table_of(MIXED)) == Counter((entry.name, entry.to, entry.finer) for entry in listed)


@pytest.mark.parametrize("mode", HEADINGS)
def test_a_table_is_the_list_of_its_mode(mode: str) -> None:
    assert written(documented(mode)) == allowed(mode, "finer")


@pytest.mark.parametrize("mode", [mode for mode in ALLOWED if mode.startswith("dp/")])
def test_the_dp_table_is_the_lists_of_dp(mode: str) -> None:
    assert written(documented_of_dp(mode)) == allowed(mode, "covered")


def test_no_row_of_the_dp_table_is_for_nothing() -> None:
    rows = [entry for mode in ALLOWED if mode.startswith("dp/") for entry in documented_of_dp(mode)]
    assert set(table_of(DP)) == set(rows)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| `valid` | whether a candidate meets", "| `verdict` | whether a candidate meets"),
        ("(one bit) | its owner | **yes** |", "(one bit) | all | **yes** |"),
        ("| leader | **yes** |", "| leader | no |"),
    ],
)
def test_a_table_that_differs_is_noticed(
    old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another name, another recipient, another answer."""
    text = DOCS.read_text()
    assert old in text
    changed = tmp_path / "security.md"
    changed.write_text(text.replace(old, new))
    monkeypatch.setattr("tests.test_security_tables.DOCS", changed)
    assert any(written(documented(mode)) != allowed(mode, "finer") for mode in HEADINGS)
