"""`party audit` on an audit that somebody wrote to, or took away."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crypto.rng import SystemRng
from jobs.errors import Exit
from party.owner.accounts import RELEASES
from party.owner.approvals import Approvals
from party.owner.audit import Audit
from tests.support.commands import Ran, invoke
from tests.support.network import GUARD_S, Network, processes, sample_network
from tests.support.samples import PARTIES

A = PARTIES[0]


@pytest.fixture
def net(tmp_path: Path) -> Network:
    made = sample_network(tmp_path / "net")
    made.config(A).state_dir.mkdir()
    return made


def audit_of(net: Network) -> Audit:
    return Audit(net.config(A).state_dir, SystemRng())


def audit(net: Network, *arguments: str) -> Ran:
    return invoke("party", "audit", *arguments, "--config", net.config_path(A))


def forge(net: Network, **fields: Any) -> None:
    own = {"line": 2, "time": "2026-01-02T12:00:00+00:00", "event": "stop", "salt": "", "before": ""}
    with audit_of(net).path.open("ab") as file:
        file.write(json.dumps(own | fields).encode() + b"\n")


def test_forged_lines_are_exported(net: Network) -> None:
    audit_of(net).note("serve", {})
    forge(net, time="yesterday")
    forge(net, time="2026-01-02T12:00:00")
    forge(net, user="\ud800")
    ran = audit(net, "export", "--from", "2026-01-02", "--to", "2026-01-02")
    assert (ran.code, ran.err) == (0, "")
    head, *rows = ran.out.splitlines()
    assert head == "line,time,event,facts"
    assert [row.split(",")[1] for row in rows] == [
        "yesterday",
        "2026-01-02T12:00:00",
        "2026-01-02T12:00:00+00:00",
    ]
    assert "\\ud800" in rows[2]
    as_json = audit(net, "export", "--from", "2026-01-02", "--to", "2026-01-02", "--format", "json")
    found = [json.loads(line) for line in as_json.out.splitlines()]
    assert [each["time"] for each in found] == [row.split(",")[1] for row in rows]
    assert [set(each) for each in found] == [{"line", "time", "event", "facts"}] * 3
    assert found[2]["facts"] == {"user": "\ud800"}


def test_a_changed_line_leaves_the_lines_before_it(net: Network) -> None:
    """The line after the changed line is the first that does not follow."""
    audit_of(net).note("serve", {})
    for _ in range(4):
        audit_of(net).note("stop", {})
    lines = audit_of(net).path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"stop", b"spot")
    audit_of(net).path.write_bytes(b"".join(lines))
    ran = audit(net, "verify")
    assert ran.code != 0
    assert "line 4 of the audit does not follow from the line before" in ran.err
    assert "lines 1 to 2 are as they were written" in ran.err


# ---- an audit that is gone


def take_away(net: Network, how: str) -> None:
    path = audit_of(net).path
    if how == "gone":
        path.unlink(missing_ok=True)
    else:
        path.write_bytes({"emptied": b"", "without a line": b"\n"}[how])


HOW = pytest.mark.parametrize("how", ["gone", "emptied", "without a line"])


@HOW
@pytest.mark.parametrize("again", [False, True])
def test_an_audit_without_the_lines_of_decisions_is_no_audit(net: Network, how: str, *, again: bool) -> None:
    approvals, now = Approvals(net.config(A).state_dir), datetime.now(UTC)
    approvals.propose(net.task, "coordinator", now)
    assert (
        invoke("party", "deny", net.task.digest.hex(), "--reason", "no", "--config", net.config_path(A)).code
        == 0
    )
    if again:
        approvals.ask_again(net.task, "coordinator", now)
    assert audit(net, "verify").code == 0
    take_away(net, how)
    ran = audit(net, "verify")
    assert ran.code == Exit.FAILED
    assert (
        "the audit has no line, but the owner has decided on jobs: lines of the audit are missing" in ran.err
    )


@HOW
def test_an_audit_without_the_lines_of_releases_is_no_audit(net: Network, how: str) -> None:
    (net.config(A).state_dir / RELEASES / "sample-0123456789ab").mkdir(parents=True)
    take_away(net, how)
    ran = audit(net, "verify")
    assert ran.code == Exit.FAILED
    assert "the audit has no line, but releases were delivered" in ran.err


@HOW
def test_an_audit_before_any_work_may_be_empty(net: Network, how: str) -> None:
    """A proposal that waits has no line with some policies, and a hidden folder is half-written."""
    state = net.config(A).state_dir
    Approvals(state).propose(net.task, "coordinator", datetime.now(UTC))
    (state / RELEASES / ".half").mkdir(parents=True)
    take_away(net, how)
    assert audit(net, "verify").code == 0


# ---- an audit that was begun anew


def events_of(net: Network) -> list[str]:
    return [line.event for line in audit_of(net).lines()]


@HOW
@pytest.mark.parametrize("running", [False, True])
def test_an_audit_that_was_begun_anew_is_told_until_the_owner_accepts_it(
    net: Network, how: str, *, running: bool
) -> None:
    with processes(net, [A]) as daemons:
        assert audit(net, "verify").code == 0
        if not running:
            daemons.running[A].process.terminate()
            daemons.running[A].process.wait(GUARD_S)
        take_away(net, how)
        ran = audit(net, "verify")
        assert (ran.code, "but a daemon has started: lines of the audit are missing" in ran.err) == (1, True)
        if running:
            audit_of(net).note("sign-in", {})
        else:
            daemons.restart(A)
            assert "the audit was begun anew" in daemons.log(A)
        ran = audit(net, "verify")
        assert ran.code == Exit.FAILED
        assert "the audit was begun anew" in ran.err
        assert "party audit verify --accept" in ran.err
        before = audit_of(net).path.read_bytes()
        assert audit(net, "verify", "--accept").code == 0
        assert audit_of(net).path.read_bytes().startswith(before)
        assert events_of(net)[-1] == "begun-anew"
        daemons.signal(A, signal.SIGTERM)
        daemons.restart(A)
        assert audit(net, "verify").code == 0
        assert audit(net, "verify", "--accept").code == 0
        assert events_of(net).count("begun-anew") == 1
    assert "begun anew" not in "".join(line["message"] for line in daemons.log_of_this_life(A))


def test_a_daemon_that_is_killed_before_the_beginning_is_kept_gives_no_alarm(net: Network) -> None:
    """The line is there, its beginning is not."""
    audit_of(net).note("serve", {})
    assert audit(net, "verify").code == 0
    with processes(net, [A]) as daemons:
        daemons.signal(A, signal.SIGKILL)
        daemons.restart(A)
        assert audit(net, "verify").code == 0
        assert "begun anew" not in daemons.log(A)


def test_an_audit_from_a_backup_is_accepted_as_it_was(net: Network) -> None:
    with processes(net, [A]):
        pass
    path = audit_of(net).path
    kept = path.read_bytes()
    path.unlink()
    with processes(net, [A]):
        assert audit(net, "verify").code == 1
    path.write_bytes(kept)
    assert audit(net, "verify").code == 0
