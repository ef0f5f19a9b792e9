"""How jobs ended, in words that say nothing of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import CATALOGUE, Exit, Problem
from party.operations.tally import OTHER, OUTCOMES, OVER, Tally, outcome_of

ROOT = Path(__file__).resolve().parents[3]


def test_every_error_there_is_has_one_of_the_words() -> None:
    found = {
        outcome_of(Problem(error_id, "x"), phase) for error_id in CATALOGUE for phase in ("admit", "run")
    }
    assert found | {OVER} == set(OUTCOMES)
    assert outcome_of(None, "commit") == OVER


def test_what_an_answer_about_the_table_says_is_not_told() -> None:
    """Neither which answer it was, nor that it was one: those errors, and refusals for what the table has."""
    lines = (ROOT / "docs" / "errors.md").read_text().splitlines()
    answers = [line.split("`")[1] for line in lines if line.startswith("| an answer: ")]
    assert len(answers) > 10
    for phase in ("admit", "load", "connect", "root", "deliver"):
        assert {outcome_of(Problem(answer, "x"), phase) for answer in answers} == {OTHER}
    of_data = {error_id for error_id, kind in CATALOGUE.items() if kind.exit_code in {Exit.DATA, Exit.BUDGET}}
    assert {outcome_of(Problem(error_id, "x"), "load") for error_id in of_data} == {OTHER}


@pytest.mark.parametrize(
    ("phase", "outcome"),
    [("propose", "refused"), ("submit", "refused"), ("admit", "refused"), ("load", OTHER), ("root", OTHER)],
)
def test_a_refusal_is_one_only_before_the_table_is_looked_at(phase: str, outcome: str) -> None:
    """`own_k` and `min_common` refuse for what the table has."""
    assert outcome_of(Problem("policy-refused", "x"), phase) == outcome


def test_counts_have_every_outcome_from_the_start() -> None:
    tally = Tally()
    assert tally.counts() == dict.fromkeys(OUTCOMES, 0)
    tally.note(None, "commit")
    tally.note(Problem("busy", "x"), "submit")
    tally.note(None, "commit")
    assert {name: n for name, n in tally.counts().items() if n} == {OVER: 2, "busy": 1}
