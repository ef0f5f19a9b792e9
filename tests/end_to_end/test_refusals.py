"""Jobs that somebody refuses before or at the start: one error naming who, when and why, and all are free again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coordinator.conduct
from coordinator.run import conduct
from jobs.errors import Exit, PartyError, Problem
from party.owner.identity import make_credentials
from tests.support.commands import listing
from tests.support.duplex import run
from tests.support.identities import write_credentials
from tests.support.loopback import HOST, free_ports
from tests.support.network import Network, call, processes, released, sample_network, serving, write_job
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    monkeypatch.setattr(coordinator.conduct, "_GRACE_S", 0.5)
    made = sample_network(tmp_path / "net")
    for name in (*PARTIES, "coordinator"):
        made.change(name, lambda fields: fields.update(timeouts={"connect_s": 2}))
    return made


def refused(net: Network, out: Path, *, runs_after: bool = False) -> Problem:
    """Run a job that must be refused.

    runs_after:  put every configuration back, and run the job with the same daemons' ports.
    """

    async def once() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, out)

    out.parent.mkdir()
    with pytest.raises(PartyError) as caught:
        run(once())
    assert listing(out.parent) == []
    assert not any(net.releases(party) for party in PARTIES)
    if runs_after:
        for name in (*PARTIES, "coordinator"):
            shutil.copy(net.config_path(name).with_suffix(".good"), net.config_path(name))
        run(once())
        assert sum(released(out, net.bundle).values()) == 60
    return caught.value.problem


def changed(net: Network, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    for each in (*PARTIES, "coordinator"):
        shutil.copy(net.config_path(each), net.config_path(each).with_suffix(".good"))
    net.change(name, change)


def another_certificate(net: Network, name: str) -> str:
    """A certificate of the right name and another key."""
    certificate, _ = write_credentials(net.root / f"false-{name}", make_credentials(name))
    return str(certificate)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"coordinators": ["somebody"]}, "coordinator may not start jobs here"),
        ({"parties": [A]}, "hospital-c may not take part in a job with us"),
        ({"min_k": 3}, "K must be at least 3"),
        ({"max_c": "0.4"}, "sensitive column surgery: C must be at most 2/5, not 1/2 (`policy.max_c`)"),
        ({"disclosure": ["sealed"]}, "disclosure leader is not allowed"),
        ({"columns": {}}, "column age may not be used as qid"),
    ],
)
def test_a_policy(net: Network, tmp_path: Path, policy: dict[str, Any], says: str) -> None:
    changed(net, B, lambda fields: fields["policy"].update(policy))
    problem = refused(net, tmp_path / "outs" / "out", runs_after=True)
    assert (problem.error_id, problem.party, problem.phase) == ("policy-refused", B, "admit")
    assert problem.exit_code == Exit.REFUSED
    assert says in problem.message


def test_a_table_that_is_not_there(net: Network, tmp_path: Path) -> None:
    changed(net, C, lambda fields: fields["data"]["csv"].update(path="/nowhere/patients.csv"))
    problem = refused(net, tmp_path / "outs" / "out")
    assert (problem.error_id, problem.party, problem.phase) == ("file-missing", C, "load")
    assert problem.exit_code == Exit.USAGE
    assert "nowhere" not in problem.message


def test_a_table_with_other_columns(net: Network, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("patient,profession,age,transfused,surgery\n1,Mover,5,Y,Knee\n")
    changed(net, C, lambda fields: fields["data"]["csv"].update(path=str(tmp_path / "other.csv")))
    problem = refused(net, tmp_path / "outs" / "out")
    assert (problem.error_id, problem.party, problem.column) == ("data-missing-column", C, "job")
    assert "profession" not in problem.message


def test_a_party_whose_certificate_the_coordinator_has_wrong(net: Network, tmp_path: Path) -> None:
    false = another_certificate(net, B)
    changed(net, "coordinator", lambda fields: fields["peers"][B].update(certificate=false))
    problem = refused(net, tmp_path / "outs" / "out")
    assert (problem.error_id, problem.party, problem.phase) == ("identity-mismatch", B, "connect")
    assert problem.exit_code == Exit.IDENTITY


def test_a_coordinator_whose_certificate_a_party_has_wrong(net: Network, tmp_path: Path) -> None:
    false = another_certificate(net, "coordinator")
    changed(net, B, lambda fields: fields["peers"]["coordinator"].update(certificate=false))
    problem = refused(net, tmp_path / "outs" / "out")
    assert (problem.error_id, problem.party, problem.phase) == ("tls-failed", B, "connect")
    assert problem.exit_code == Exit.IDENTITY


def cannot_reach(caller: str, callee: str) -> Problem:
    """Return the problem that all others are told, whatever was in the way: no job finds out what listens
    where.
    """
    message = f"{caller} says of {callee}: {caller} cannot reach {callee}"
    return Problem("peer-unreachable", message, caller, "connect", about=callee)


def test_a_party_whose_certificate_another_has_wrong(net: Network, tmp_path: Path) -> None:
    """A calls B: the server's certificate is not the one A knows."""
    false = another_certificate(net, B)
    changed(net, A, lambda fields: fields["peers"][B].update(certificate=false))
    assert refused(net, tmp_path / "outs" / "out", runs_after=True) == cannot_reach(A, B)


def test_a_caller_whose_certificate_another_has_wrong(net: Network, tmp_path: Path) -> None:
    """A calls B: B does not know the certificate A presents."""
    false = another_certificate(net, A)
    changed(net, B, lambda fields: fields["peers"][A].update(certificate=false))
    assert refused(net, tmp_path / "outs" / "out") == cannot_reach(A, B)


def test_a_party_that_another_does_not_know(net: Network, tmp_path: Path) -> None:
    changed(net, C, lambda fields: fields["peers"].pop(A))
    problem = refused(net, tmp_path / "outs" / "out")
    assert (problem.error_id, problem.party, problem.phase) == ("identity-unknown", C, "admit")
    assert problem.exit_code == Exit.IDENTITY
    assert f"no certificate of {A}" in problem.message
    assert "party peers add" in problem.advice(to_owner=False)


def test_a_party_that_another_reaches_at_the_wrong_address(net: Network, tmp_path: Path) -> None:
    address = net.addresses[C]
    changed(net, A, lambda fields: fields["peers"][B].update(address=address))
    assert refused(net, tmp_path / "outs" / "out") == cannot_reach(A, B)


def test_a_party_that_another_calls_where_nobody_is(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All are told the two parties; the address is the business of the caller's owner, whose `peers` say it."""
    (port,) = free_ports(["nobody"]).values()
    changed(net, A, lambda fields: fields["peers"][B].update(address=f"{HOST}:{port}"))
    problem = refused(net, tmp_path / "outs" / "out")
    assert problem == cannot_reach(A, B)
    assert any(
        "Connection refused" in r.getMessage() and f"{HOST}:{port}" in r.getMessage() for r in caplog.records
    )


def test_an_address_that_the_job_gives_is_nobodys_secret(net: Network, tmp_path: Path) -> None:
    given = (net.bundle.job.parties or {})[B].address
    changed(net, "coordinator", lambda fields: fields["peers"][B].pop("address"))
    problem = refused(net, tmp_path / "outs" / "out")
    assert (problem.error_id, problem.party) == ("peer-unreachable", B)
    assert problem.message.startswith(f"coordinator cannot reach {B} at {given}: ")


def without_addresses(root: Path) -> Network:
    made = sample_network(root, parties={name: {} for name in PARTIES})
    for name in (*PARTIES, "coordinator"):
        made.change(name, lambda fields: fields.update(timeouts={"connect_s": 2}))
    return made


@pytest.mark.parametrize(("who", "phase"), [(A, "admit"), ("coordinator", "connect")])
def test_a_job_needs_no_addresses_where_every_node_has_them(tmp_path: Path, who: str, phase: str) -> None:
    net = without_addresses(tmp_path / "net")
    changed(net, who, lambda fields: fields["peers"][C].pop("address"))
    # Afterwards the job runs, with all addresses in `peers`.
    problem = refused(net, tmp_path / "outs" / "out", runs_after=who == "coordinator")
    assert (problem.error_id, problem.party, problem.phase) == ("address-missing", who, phase)
    assert problem.exit_code == Exit.USAGE
    assert f"the configuration of {who} does not say where {C} is reached" in problem.message
    assert "give the party an `address` in `peers`" in problem.advice(to_owner=False) or who == "coordinator"


def test_requirements_that_the_union_does_not_meet(tmp_path: Path) -> None:
    """Nobody's fault: no party is named."""
    net = sample_network(tmp_path / "net", model={"lkc": {"L": "2", "K": "61", "C": "1"}})

    async def scenario() -> Problem:
        async with serving(net):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, tmp_path / "out")
            return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.phase) == ("requirement-unmet", None, "root")
    assert problem.exit_code == Exit.FAILED
    assert "asked is L=2 K=61 (model.lkc)" in problem.message
    assert problem.private == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.more
def test_exit_codes_of_a_real_coordinator(tmp_path: Path) -> None:
    """The command line, with real daemons: refused by policy, then by certificate, then it runs."""
    job, net = write_job(tmp_path / "job", joint_job()), sample_network(tmp_path / "net")
    config = net.config_path("coordinator")
    arguments = ("run", job, "--config", config, "--out", tmp_path / "out", "--format", "json")
    good = config.read_text()
    net.change(B, lambda fields: fields["policy"].update(min_k=3))
    with processes(net):
        ran = call(*arguments)
        assert (ran.code, ran.problem["error"], ran.problem["party"]) == (Exit.REFUSED, "policy-refused", B)
        net.change(B, lambda fields: fields["policy"].update(min_k=2))
        false = another_certificate(net, C)
        net.change("coordinator", lambda fields: fields["peers"][C].update(certificate=false))
        ran = call(*arguments)
        assert (ran.code, ran.problem["error"], ran.problem["party"]) == (
            Exit.IDENTITY,
            "identity-mismatch",
            C,
        )
        assert not (tmp_path / "out").exists()
        config.write_text(good)
        ran = call(*arguments)
        assert ran.code == 0, ran.err
    assert all(len(net.releases(party)) == 1 for party in PARTIES)
