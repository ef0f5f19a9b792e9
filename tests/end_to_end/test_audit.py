"""Audits of three parties: the lines of jobs, and jobs without room for a line."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from crypto.rng import SystemRng
from jobs.errors import PartyError
from party.admission import addresses_after_us
from party.net.control import Release, Start
from party.net.link import Link
from party.owner import audit as module
from party.owner.audit import Audit, Line
from party.owner.config import peers_of
from party.session import TABLE
from party.states import Admitted, Finished, Session
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.network import Network, report_of, sample_network, served, serving, write_job
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def conducted(net: Network, out: Path) -> None:
    async def once() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, out)

    run(once())


def audit_of(net: Network, name: str) -> Audit:
    return Audit(net.config(name).state_dir, SystemRng())


def lines_of(net: Network, name: str) -> list[Line]:
    audit = audit_of(net, name)
    found = audit.checked()
    assert (found.broken, found.torn) == ((), ())
    return list(audit.lines())


def test_a_run_stands_in_the_audits_of_all(net: Network, tmp_path: Path) -> None:
    conducted(net, tmp_path / "out")
    report = report_of(tmp_path / "out")
    runs = set()
    for name in PARTIES:
        lines = lines_of(net, name)
        assert [line.event for line in lines if line.event != "reveal"] == [
            "start",
            "charge",
            "charge",
            *(["sent"] if name == A else []),  # the leader sends the result
            "checked",
            "release",
        ]
        runs |= {line.facts["run"] for line in lines}
        assert {line.facts["job_sha256"] for line in lines} == {net.task.digest.hex()}
        start, *_, release = lines
        assert (start.facts["coordinator"], start.facts["parties"]) == ("coordinator", list(PARTIES))
        assert start.facts["certificate"] == peers_of(net.config(name))["coordinator"].fingerprint
        opened = [line.facts for line in lines if line.event == "reveal"]
        told = [each for each in report["reveals"] if each["to"] in ("all", "leader")]
        if name == A:  # the leader sees all
            assert [(each["name"], each["to"]) for each in opened] == [
                (each["name"], each["to"]) for each in told
            ]
        listed = {(each.name, each.to) for each in net.task.reveals}
        assert {(each["name"], each["to"]) for each in opened} <= listed
        assert release.facts["heads"].keys() == {*PARTIES} - {name}
    assert len(runs) == 1


def test_heads_of_one_stand_with_the_others(net: Network, tmp_path: Path) -> None:
    """No party can rewrite its part alone: the others have its head."""
    for k in range(2):
        conducted(net, tmp_path / f"out-{k}")
    heads = [line.facts["heads"][A] for line in lines_of(net, B) if line.event == "release"]
    assert len(heads) == 2
    for head in heads:
        assert audit_of(net, A).has(head)
        ran = invoke("party", "audit", "verify", "--head", head, "--config", net.config_path(A))
        assert ran.code == 0
    path = audit_of(net, A).path
    kept = path.read_bytes()
    (tmp_path / "rewritten").mkdir()
    rewritten = Audit(tmp_path / "rewritten", SystemRng())
    for line in audit_of(net, A).lines():  # a chain of its own, in order, without one reveal
        if line.event != "charge":
            rewritten.note(line.event, line.facts, durable=False)
    path.write_bytes(rewritten.path.read_bytes())
    assert invoke("party", "audit", "verify", "--config", net.config_path(A)).code == 0
    ran = invoke("party", "audit", "verify", "--head", heads[0], "--config", net.config_path(A))
    assert ran.code == 1
    assert "no line of the audit has the head" in ran.err
    path.write_bytes(kept[: len(kept) // 2])
    ran = invoke("party", "audit", "verify", "--config", net.config_path(A))
    assert (ran.code, "is not whole" in ran.out) == (0, True)
    ran = invoke("party", "audit", "verify", "--head", heads[1], "--config", net.config_path(A))
    assert ran.code == 1
    ran = invoke("party", "audit", "verify", "--head", "xyz", "--config", net.config_path(A))
    assert (ran.code, "64 digits" in ran.err) == (2, True)


async def broken(session: Session, *_: Any) -> Any:
    raise PartyError("data-unreadable", "the table is gone")


async def broken_once_connected(session: Session, *_: Any) -> Any:
    await session.mesh.connect(
        addresses_after_us(session.config, session.task), session.config.timeouts.connect_s
    )
    await broken(session)


FAILURES = pytest.mark.parametrize(
    ("state", "trigger", "action"),
    [(Admitted, Start, broken_once_connected), (Finished, Release, broken)],
    ids=["while it computes", "while it checks"],
)


def fail_at_b(monkeypatch: pytest.MonkeyPatch, state: Any, trigger: Any, action: Any) -> None:
    row = TABLE[state, trigger]

    async def done(session: Session, *given: Any) -> Any:
        return await (action if session.me == B else row.action)(session, *given)

    monkeypatch.setitem(TABLE, (state, trigger), replace(row, action=done))


@FAILURES
def test_heads_of_a_failed_run_stand_with_the_others(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Any, trigger: Any, action: Any
) -> None:
    """Each audit has the heads of the two others, up to the lines about the failure."""
    fail_at_b(monkeypatch, state, trigger, action)
    with pytest.raises(PartyError) as caught:
        conducted(net, tmp_path / "out")
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("data-unreadable", B)
    for owner in PARTIES:
        path = audit_of(net, owner).path
        kept = path.read_bytes()
        before_failure = kept[: kept.index(b'"event":"failure"')]
        for name in {*PARTIES} - {owner}:
            lines = [line for line in lines_of(net, name) if owner in line.facts.get("heads", {})]
            head = lines[-1].facts["heads"][owner]
            assert lines[-1].event in ("failure", "heads")
            verify = ("audit", "verify", "--head", head, "--config", net.config_path(owner))
            assert invoke("party", *verify).code == 0
            path.write_bytes(before_failure[: before_failure.rindex(b"\n") + 1])
            assert invoke("party", *verify).code == 1
            path.write_bytes(kept)


@FAILURES
def test_without_a_head_the_others_hear_the_reason(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Any, trigger: Any, action: Any
) -> None:
    real, path = Audit.head, audit_of(net, B).path

    def head(self: Audit) -> bytes:
        if self.path == path:
            raise PartyError("io-failed", "the audit cannot be written: no work without a line")
        return real(self)

    monkeypatch.setattr(Audit, "head", head)
    fail_at_b(monkeypatch, state, trigger, action)
    with pytest.raises(PartyError):
        conducted(net, tmp_path / "out")
    for name in (A, C):
        lines = lines_of(net, name)
        failure = next(line for line in lines if line.event == "failure")
        # The coordinator, told first, may cancel the job before B's reason is here.
        assert failure.facts["error"] in ("data-unreadable", "cancelled")
        assert not [line for line in lines if B in line.facts.get("heads", {})]


def test_a_disk_that_is_full_ends_the_job_before_anything_is_sent(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    real = Link.send

    async def seen(self: Link, step: str, payload: bytes) -> None:
        sent.append(step)
        await real(self, step, payload)

    monkeypatch.setattr(Link, "send", seen)
    full_from(monkeypatch, net, B, "start")
    with pytest.raises(PartyError) as caught:
        conducted(net, tmp_path / "out")
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("io-failed", B)
    assert sent == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("event", ["charge", "reveal", "checked"])
def test_without_a_line_no_release(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    full_from(monkeypatch, net, B, event)
    with pytest.raises(PartyError) as caught:
        conducted(net, tmp_path / "out")
    assert caught.value.problem.error_id == "io-failed"
    assert not any(net.releases(name) for name in PARTIES)


def test_a_release_that_all_keep_stands_without_its_last_line(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line before the vote has the digest."""
    full_from(monkeypatch, net, B, "release")
    conducted(net, tmp_path / "out")
    assert all(net.releases(name) for name in PARTIES)
    assert net.config(B).ledger.entries()[0].state == "released"
    *_, last = lines_of(net, B)
    assert last.event == "checked"


def full_from(monkeypatch: pytest.MonkeyPatch, net: Network, name: str, event: str) -> None:
    """The disk of a party is full from a line of some event on."""
    real, full = Audit.note, set[Path]()
    path = audit_of(net, name).path

    def note(self: Audit, kind: str, facts: Mapping[str, Any], *, durable: bool = True) -> None:
        if self.path == path and (kind == event or path in full):
            full.add(path)
            raise PartyError("io-failed", "the audit cannot be written: no work without a line")
        real(self, kind, facts, durable=durable)

    monkeypatch.setattr(Audit, "note", note)


def test_refusals_and_failures_are_noted_once(net: Network, tmp_path: Path) -> None:
    net.change(B, lambda fields: fields["policy"].update(min_k=50))

    async def thrice() -> None:
        async with serving(net):
            for k in range(3):
                with pytest.raises(PartyError):
                    await conduct(net.task, net.coordinator, tmp_path / f"out-{k}")

    run(thrice())
    (refusal,) = lines_of(net, B)
    assert refusal.event == "refusal"
    assert (refusal.facts["caller"], refusal.facts["error"]) == ("coordinator", "policy-refused")
    assert "K must be at least 50" in refusal.facts["message"]


def test_a_run_that_fails_is_noted(net: Network, tmp_path: Path) -> None:
    (net.root / f"{C}.csv").write_text("patient,job,age,transfused,surgery\n1,Nobody,5,Y,Knee\n")
    with pytest.raises(PartyError):
        conducted(net, tmp_path / "out")
    events = [line.event for line in lines_of(net, C)]
    assert events == ["start", "charge", "failure"]
    *_, failure = lines_of(net, C)
    assert failure.facts["error"] == "data-unknown-value"
    assert "Nobody" not in json.dumps(failure.facts)


def test_a_refused_proposal_is_noted_with_its_hash(net: Network, tmp_path: Path) -> None:
    net.change(B, lambda fields: fields["policy"].update(min_k=50))
    job = write_job(tmp_path, joint_job())
    with served(net):
        for _ in range(2):
            assert invoke("coordinator", "propose", job, "--config", net.config_path("coordinator")).code == 4
    (refusal,) = lines_of(net, B)
    assert (refusal.event, refusal.facts["job_sha256"]) == ("refusal", net.task.digest.hex())


def test_a_changed_peer_is_named(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            net.change(B, lambda fields: fields["peers"][C].update(address="127.0.0.1:1"))
            await conduct(net.task, net.coordinator, tmp_path / "out")

    with contextlib.suppress(PartyError):
        run(scenario())
    change, *_ = lines_of(net, B)
    assert (change.facts["changed"], change.facts["peers"]) == (["peers"], [C])


def test_a_changed_policy_is_noted_before_it_has_an_effect(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            net.change(B, lambda fields: fields["policy"].update(min_k=50))
            with pytest.raises(PartyError):
                await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    change, refusal = lines_of(net, B)
    assert (change.event, change.facts["changed"]) == ("configuration", ["policy"])
    assert "peers" not in change.facts
    assert change.facts["policy_sha256"] == module.policy_digest(net.config(B))
    assert refusal.event == "refusal"


def test_no_value_of_a_table_is_in_an_audit(net: Network, tmp_path: Path) -> None:
    conducted(net, tmp_path / "out")
    rows = list(csv.DictReader(io.StringIO((net.root / f"{A}.csv").read_text())))
    values = {row[name] for row in rows for name in ("job", "surgery")}
    assert values
    text = audit_of(net, A).path.read_text()
    assert not [value for value in values if f'"{value}"' in text]


def test_an_export_is_of_some_days(net: Network, tmp_path: Path) -> None:
    conducted(net, tmp_path / "out")
    ran = invoke("party", "audit", "export", "--config", net.config_path(A))
    assert len(list(csv.reader(io.StringIO(ran.out)))) == 1 + len(lines_of(net, A))
    for option, day in (("--from", "2999-01-01"), ("--to", "2000-01-01")):
        ran = invoke("party", "audit", "export", option, day, "--config", net.config_path(A))
        assert ran.out == "line,time,event,facts\n"
    ran = invoke(
        "party",
        "audit",
        "export",
        "--from",
        "3000-01-01",
        "--to",
        "2000-01-01",
        "--config",
        net.config_path(A),
    )
    assert ran.code == 2
    assert invoke("party", "audit", "export", "--from", "soon", "--config", net.config_path(A)).code == 2


def test_a_daemon_notes_its_start(net: Network) -> None:
    with served(net, only=[A]):
        pass
    assert not os.path.exists(audit_of(net, A).path)  # `party serve` notes it, not the server inside
