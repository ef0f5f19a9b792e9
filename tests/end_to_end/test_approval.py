"""Jobs that wait for the owners of the data: proposed, shown, decided, run."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.approval import proposed, standings
from coordinator.run import conduct
from jobs.errors import PartyError, Problem
from party.net.control import Standing, Start, Submit, pieces
from party.owner.approvals import MOST_OF_ONE
from party.owner.config import peers_of
from tests.support.approving import approvals_of, approve, asking_network, kept
from tests.support.by_hand import RUN, open_control, submit, tell, until_the_end, works
from tests.support.calls import calling, issued, refused
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.jobs import bundle_of
from tests.support.network import Network, call, processes, served, serving, write_job
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return asking_network(tmp_path / "net")


def states(net: Network, party_of: Callable[..., Any] = standings) -> list[str]:
    """What each party answers: of :func:`standings`, or :func:`proposed`."""

    async def scenario() -> list[str]:
        async with serving(net):
            answers = await party_of(net.task, net.coordinator)
            return [a.state if isinstance(a, Standing) else a.problem.error_id for a in answers.values()]

    return run(scenario())


def failed(net: Network, out: Path) -> Problem:
    async def scenario() -> Problem:
        async with serving(net):
            return await refused(conduct(net.task, net.coordinator, out))

    problem = run(scenario())
    assert not out.exists()
    return problem


def runs(net: Network, out: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await works(net, out)

    run(scenario())


def test_a_job_is_proposed_approved_by_all_and_run(net: Network, tmp_path: Path) -> None:
    assert states(net) == ["unknown"] * 3
    assert states(net, proposed) == ["waiting"] * 3
    approve(net, A)
    approvals_of(net, B).deny(kept(net, B), "no ethics vote", "owner")
    problem = failed(net, tmp_path / "out")
    assert problem.error_id == "approval-needed"
    assert problem.exit_code == 4
    assert A not in problem.message
    assert f"{B} denied the job: no ethics vote" in problem.message
    assert f"{C} waits for its approval" in problem.message
    approve(net, B)
    approve(net, C, runs=1)
    assert states(net) == ["approved"] * 3
    runs(net, tmp_path / "out")
    assert states(net) == ["approved", "approved", "ended"]
    assert f"{C} approved runs that are over" in failed(net, tmp_path / "again").message


def test_a_run_that_one_owner_has_not_approved_costs_the_others_none_of_theirs(
    net: Network, tmp_path: Path
) -> None:
    states(net, proposed)
    approve(net, A, runs=1)
    failed(net, tmp_path / "out")
    assert kept(net, A).runs == 1


def test_who_asks_nobody_says_so(tmp_path: Path) -> None:
    net = asking_network(tmp_path / "net", [B])
    assert states(net, proposed) == ["automatic", "waiting", "automatic"]
    assert approvals_of(net, A).listed() == []


def test_what_the_policy_refuses_is_not_kept(net: Network) -> None:
    net.change(B, lambda fields: fields["policy"].update(min_k=50))
    assert states(net, proposed) == ["waiting", "refused", "waiting"]
    assert approvals_of(net, B).listed() == []


def test_a_coordinator_that_does_not_ask_is_refused_before_the_table_is_read(net: Network) -> None:
    """It skips what an honest one looks at first."""
    net.change(B, lambda fields: fields["data"]["csv"].update(path="nowhere.csv"))

    async def scenario() -> Problem:
        async with serving(net, only=[B]):
            return await tell(net, B, *submit(net))

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.phase) == ("approval-needed", B, "approve")


def test_a_job_other_than_the_one_that_was_approved_is_not(net: Network) -> None:
    states(net, proposed)
    approve(net, B)
    other = bundle_of(joint_job(model={"lkc": {"L": "2", "K": "3", "C": "0.5"}}))

    async def scenario() -> Problem:
        async with serving(net, only=[B]):
            return await tell(net, B, *(Submit(RUN, piece) for piece in pieces("bundle", other.encoded)))

    assert run(scenario()).error_id == "approval-needed"


def test_an_approval_taken_back_after_admission_stops_the_start(net: Network) -> None:
    states(net, proposed)
    approve(net, B)

    async def scenario() -> Problem:
        calls: list[Any] = []
        async with serving(net, only=[B]):
            stream = await open_control(net, B, calls)
            for request in submit(net):
                await stream.write(request)
            await stream.read()
            approvals_of(net, B).deny(kept(net, B), "no more", "owner")
            await stream.write(Start())
            *_, last = await until_the_end(stream)
            await stream.close()
            await calls[0].close()
            return last.problem

    problem = run(scenario())
    assert (problem.error_id, problem.phase) == ("approval-needed", "start")


def test_a_run_that_was_replayed_is_refused(net: Network) -> None:
    """The number of a run that began is good for no other, whatever was approved."""
    states(net, proposed)
    approve(net, B)
    approvals = approvals_of(net, B)
    approvals.begin(kept(net, B).binding_now(net.config(B)), RUN, B)

    async def scenario() -> Problem:
        async with serving(net, only=[B]):
            return await tell(net, B, *submit(net), Start())

    problem = run(scenario())
    assert (problem.error_id, problem.phase) == ("peer-protocol", "start")


def test_another_certificate_of_a_peer_needs_approval_again(net: Network, tmp_path: Path) -> None:
    states(net, proposed)
    for party in PARTIES:
        approve(net, party)
    tls = issued(net, C)
    net.change(C, lambda fields: fields.update(tls=tls))
    for party in (A, B, "coordinator"):
        net.change(party, lambda fields: fields["peers"][C].update(certificate=tls["certificate"]))
    assert states(net) == ["waiting"] * 3
    assert failed(net, tmp_path / "out").error_id == "approval-needed"
    for party in PARTIES:
        approve(net, party)
    runs(net, tmp_path / "out")


def test_proposals_do_not_pile_up(net: Network) -> None:
    async def scenario() -> list[str]:
        found = []
        async with serving(net, only=[B]), calling(net.coordinator) as calls:
            for number in range(MOST_OF_ONE + 1):
                bundle = bundle_of(joint_job(name=f"job-{number}"))
                parts = [Submit(RUN, piece) for piece in pieces("bundle", bundle.encoded)]
                try:
                    found.append((await calls.propose(B, net.addresses[B], parts)).state)
                except PartyError as error:
                    found.append(error.problem.error_id)
        return found

    assert run(scenario()) == ["waiting"] * MOST_OF_ONE + ["proposals-full"]


@pytest.mark.parametrize(
    "parts",
    [
        [Submit(RUN, piece) for piece in pieces("bundle", b"no job")],
        [],
        [Start()],
        [Submit(RUN, piece) for piece in pieces("bundle", b"x" * (9 << 20))],
    ],
    ids=["no job", "nothing", "another request", "too much"],
)
def test_what_is_no_proposal_is_refused_and_the_next_is_taken(net: Network, parts: list[Any]) -> None:
    async def scenario() -> tuple[Problem, str]:
        async with serving(net, only=[B]), calling(net.coordinator) as calls:
            problem = await refused(calls.propose(B, net.addresses[B], parts))
            good = [Submit(RUN, piece) for piece in pieces("bundle", net.bundle.encoded)]
            return problem, (await calls.propose(B, net.addresses[B], good)).state

    problem, state = run(scenario())
    assert problem.error_id in ("job-invalid", "peer-protocol", "cancelled")
    assert state == "waiting"


def test_who_may_start_no_jobs_may_propose_and_ask_nothing(net: Network) -> None:
    for party in PARTIES:
        net.change(party, lambda fields: fields["policy"].update(coordinators=["somebody"]))
    assert states(net, proposed) == ["policy-refused"] * 3
    assert states(net) == ["policy-refused"] * 3


def test_the_command_lines(net: Network, tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", joint_job())
    conf = ("--config", net.config_path("coordinator"))

    def at(party: str, *words: str | Path) -> Any:
        return invoke("party", *words, "--config", net.config_path(party))

    with served(net):
        assert invoke("coordinator", "status", job, *conf).code == 4
        proposed_now = invoke("coordinator", "propose", job, *conf)
        assert proposed_now.code == 0
        assert proposed_now.out.count("waits for its approval") == 3
        assert "waiting" in at(A, "jobs").out
        assert at(A, "approve", "sample").code == 1  # it was not shown
        for party in PARTIES:
            assert at(party, "show", "sample").code == 0
            assert at(party, "approve", "sample", "--runs", "1", "--until", "2999-12-31").code == 0
        assert invoke("coordinator", "status", job, *conf).code == 0
        assert at(B, "deny", "sample", "--reason", "changed our mind").code == 0
        ran = invoke("coordinator", "run", job, "--out", tmp_path / "out", *conf)
        assert ran.code == 4
        assert f"{B} denied the job: changed our mind" in ran.err
        assert invoke("coordinator", "propose", job, *conf).code == 4
    assert "any number of runs" in at(A, "approve", "sample").out
    assert "runs left: any number" in at(A, "show", "sample").out
    assert at(A, "approve", "sample", "--until", "2001-01-01").code == 2
    assert at(A, "approve", "sample", "--until", "tomorrow").code == 2
    assert at(A, "show", "nothing").code == 2


def test_what_an_owner_reads(net: Network) -> None:
    """Who asks, our columns, what all see, what others learn, the requirement, the budget, what has changed."""
    states(net, proposed)
    approve(net, B)
    other = bundle_of(joint_job(model={"lkc": {"L": "2", "K": "3", "C": "0.5"}}))
    changed = Network(net.root, other, net.addresses)
    states(changed, proposed)
    shown = invoke("party", "show", other.digest.hex()[:12], "--config", net.config_path(B))
    text = shown.out
    assert "proposed by coordinator at" in text
    assert "  age: qid: by which persons could be recognized" in text
    assert changed.task.model.requirement_words(changed.task) in text
    for each in changed.task.reveals:
        assert each.meaning in text
    assert "LKC releases: 0 charged" in text
    assert "Other than in sample" in text
    assert "  model.lkc.K: 2 -> 3" in text
    assert (
        "every group of records that are alike in at most L=2 of the quasi-identifiers: at least K=3" in text
    )
    assert f"  the leader, {A}: " in text
    assert f"certificate of {C}: {peers_of(net.config(B))[C].fingerprint}" in text


def test_a_daemon_killed_when_a_run_was_counted_does_not_give_it_back(net: Network, tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", joint_job())
    conf = ("--config", net.config_path("coordinator"))
    with processes(net) as running:
        assert call("propose", job, *conf).code == 0
        for party in PARTIES:
            approve(net, party, runs=1)
        assert call("run", job, "--out", tmp_path / "out", *conf).code == 0
        running.signal(B, signal.SIGKILL)
        running.restart(B)
        ran = call("run", job, "--out", tmp_path / "again", *conf, "--format", "json")
        assert ran.code == 4
        assert json.loads(ran.err.splitlines()[-1])["error"] == "approval-needed"
    assert not (tmp_path / "again").exists()
