"""The lines of one run: a reveal is on disk before the next message, a charge before it is charged, an end once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rounds import Round, Rounds
from jobs.errors import PartyError
from jobs.ledger import ChargedJob, PrivacyLedger
from party.auditing import RELEASED, RunAudit
from party.owner.audit import FOLDER, Audit
from party.owner.audit_check import check, lines_of
from tests.support import jobs
from tests.support.rng import SeededRng
from tests.support.samples import joint_job

RUN = bytes(16)


@pytest.fixture
def lines(tmp_path: Path) -> RunAudit:
    return RunAudit(Audit(tmp_path), jobs.task_of(joint_job()), RUN, "coordinator")


def revealed(state: Path) -> list[str]:
    return [line.fields["name"] for line in lines_of(state / FOLDER) if line.what == "reveal"]


def protocol(lines: RunAudit, error: Exception | None = None) -> Rounds[str]:
    """Reveals something before each message, and at the end."""
    lines.revealed("one", (), "all", 0)
    yield Round("test/one", {"b": b""}, frozenset("b"))
    lines.revealed("two", (3,), "owner", 1)
    lines.revealed("three", (), "all", 1)
    yield Round("test/two", {"b": b""}, frozenset("b"))
    lines.revealed("four", (), "all", 2)
    if error is not None:
        raise error
    return "done"


def test_what_is_revealed_is_written_before_the_next_message(tmp_path: Path, lines: RunAudit) -> None:
    rounds = lines.before_sending(protocol(lines))
    assert next(rounds).step == "test/one"
    assert revealed(tmp_path) == ["one"]
    assert rounds.send({}).step == "test/two"
    assert revealed(tmp_path) == ["one", "two", "three"]
    with pytest.raises(StopIteration) as over:
        rounds.send({})
    assert over.value.value == "done"
    assert revealed(tmp_path) == ["one", "two", "three", "four"]


def test_what_a_run_revealed_that_failed_is_written_too(tmp_path: Path, lines: RunAudit) -> None:
    rounds = lines.before_sending(protocol(lines, RemoteProtocolError("b", "test/two", "nonsense")))
    next(rounds)
    rounds.send({})
    with pytest.raises(RemoteProtocolError):
        rounds.send({})
    assert revealed(tmp_path) == ["one", "two", "three", "four"]


def test_without_its_line_no_message_leaves(tmp_path: Path, lines: RunAudit) -> None:
    (tmp_path / FOLDER).write_text("")
    rounds = lines.before_sending(protocol(lines))
    with pytest.raises(PartyError) as caught:
        next(rounds)
    assert caught.value.problem.error_id == "audit-failed"


def told(*names: str, **fields: Any) -> Any:
    entries = [{"name": name, "shape": [], "to": "all", "iteration": 0} for name in names]
    return SimpleNamespace(own={"reveals": entries, **fields})


def test_a_result_says_nothing_that_the_audit_has_not(lines: RunAudit) -> None:
    next(lines.before_sending(protocol(lines)))
    lines.check(told("one"))
    lines.check(told("one", "five", repeated=True))
    for names in (["one", "five"], ["one", "one"]):
        with pytest.raises(LocalProtocolError, match="not in the audit"):
            lines.check(told(*names))


def test_a_charge_is_in_the_audit_before_it_is_charged_or_not_charged(
    tmp_path: Path, lines: RunAudit
) -> None:
    ledger = PrivacyLedger(tmp_path / "privacy.sqlite", "table").asked_by("coordinator", lines.charge)
    job = ChargedJob("dp", "sample", bytes(32))
    ledger.give_back(ledger.reserve(job, None))
    found = [line.fields["charged"] for line in lines_of(tmp_path / FOLDER)]
    assert found == ["release", "returned"]
    (tmp_path / FOLDER).rename(tmp_path / "away")
    (tmp_path / FOLDER).write_text("")
    with pytest.raises(PartyError) as caught:
        ledger.reserve(job, None)
    assert caught.value.problem.error_id == "audit-failed"
    assert [entry.state for entry in ledger.entries()] == ["returned"]


def test_a_run_ends_once_and_only_if_it_began(tmp_path: Path, lines: RunAudit) -> None:
    assert lines.end("cancelled", SeededRng(0)) is None
    lines.start()
    head = lines.end(RELEASED, SeededRng(1))
    assert lines.end("bug", SeededRng(2)) is None
    assert check(tmp_path / FOLDER).ends == {RUN.hex(): head}
    *_, end = lines_of(tmp_path / FOLDER)
    assert (end.fields["came_to"], len(end.fields["salt"])) == (RELEASED, 32)
    assert end.fields["salt"] == SeededRng(1).bytes(16).hex()
