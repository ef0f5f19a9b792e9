"""Lines about who was turned away: bounded for each caller, with a count of what was left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Problem
from party.net.refusing import MOST, STRANGER, WINDOW_S, Refusals
from party.owner.audit import FOLDER, Audit
from party.owner.audit_check import lines_of
from tests.support.duplex import run

PROBLEM = Problem("identity-unknown", "says the test", phase="submit")


def written(state: Path) -> list[dict[str, Any]]:
    return [dict(line.fields) for line in lines_of(state / FOLDER)]


def test_a_line_says_who_and_why(tmp_path: Path) -> None:
    run(Refusals(Audit(tmp_path)).note("hospital-b", PROBLEM, job="sample", address=""))
    assert written(tmp_path) == [
        {"caller": "hospital-b", "error": "identity-unknown", "phase": "submit", "job": "sample"}
    ]


def test_what_others_wrote_makes_no_line_of_its_own(tmp_path: Path) -> None:
    run(Refusals(Audit(tmp_path)).note(STRANGER, PROBLEM, address="a\n{}\x1b[2J" * 100))
    (line,) = written(tmp_path)
    assert line["address"].isprintable()
    assert len(line["address"]) <= 500


def test_a_flood_leaves_so_many_lines_and_a_count(tmp_path: Path) -> None:
    """And nobody else's lines are left out for it."""
    now = [0.0]
    refusals = Refusals(Audit(tmp_path), lambda: now[0])

    async def scenario() -> None:
        for _ in range(1000):
            await refusals.note(STRANGER, PROBLEM)
        await refusals.note("hospital-b", PROBLEM)
        now[0] = WINDOW_S
        await refusals.note(STRANGER, PROBLEM)
        await refusals.settle()

    run(scenario())
    found = written(tmp_path)
    assert [line.get("caller", STRANGER) for line in found] == [STRANGER] * MOST + ["hospital-b", STRANGER]
    assert [line.get("left_out", 0) for line in found] == [0] * (MOST + 1) + [1000 - MOST]


def test_what_was_left_out_is_said_when_it_is_over(tmp_path: Path) -> None:
    refusals = Refusals(Audit(tmp_path), lambda: 0.0)

    async def scenario() -> None:
        for _ in range(MOST + 7):
            await refusals.note("hospital-b", PROBLEM)
        await refusals.settle()
        await refusals.settle()

    run(scenario())
    assert written(tmp_path)[MOST:] == [{"caller": "hospital-b", "left_out": 7}]


def test_connections_without_a_peer_are_one_line(tmp_path: Path) -> None:
    refusals = Refusals(Audit(tmp_path))
    for connections in (0, 7, 0):
        run(refusals.strangers(connections))
    assert written(tmp_path) == [{"error": "tls-failed", "connections": 7}]


def test_a_line_that_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FOLDER).write_text("")
    run(Refusals(Audit(tmp_path)).note("hospital-b", PROBLEM))
    assert "who was turned away is not in the audit" in caplog.text
