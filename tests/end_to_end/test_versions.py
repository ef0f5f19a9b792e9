"""Programs of different versions in one run: they speak the protocol before together, or say why they do not."""

from __future__ import annotations

import select
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from coordinator.approval import Answers, proposed
from coordinator.conduct import Conductor
from coordinator.run import conduct
from coordinator.simulate import CONFIG
from jobs.errors import PartyError, Problem
from jobs.release_csv import REPORT
from party.daemon import Daemon
from party.net.control import Request, Standing, Submit
from party.net.protocol import OURS, Talked
from party.owner.audit import FOLDER
from party.owner.audit_check import lines_of
from tests.support.bare import bare
from tests.support.duplex import run
from tests.support.former import command_of, former
from tests.support.network import (
    GUARD_S,
    MakeDaemon,
    Network,
    call,
    command,
    processes,
    released,
    sample_network,
    serving,
    write_job,
)
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES
COORDINATOR = "coordinator"
FORMER = Talked(OURS.oldest - 1 if OURS.oldest else 0, OURS.newest - 1, "0.9")
NEXT = Talked(OURS.newest, OURS.newest + 1, "9.8")
FAR = Talked(OURS.newest + 1, OURS.newest + 2, "9.9")


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def of_version(talked: Talked) -> partial[Daemon]:
    return partial(Daemon, talked=talked)


def spoken(net: Network, party: str) -> list[int]:
    """The protocols of the runs that began at a party."""
    lines = lines_of(net.root / party / "state" / FOLDER)
    return [line.fields["protocol"] for line in lines if line.what == "start"]


@pytest.mark.parametrize(
    ("versions", "protocol"),
    [
        ({}, OURS.newest),
        ({A: FORMER}, FORMER.newest),
        ({B: FORMER, C: FORMER}, FORMER.newest),
        ({A: NEXT, B: NEXT, C: NEXT}, OURS.newest),
        ({A: FORMER, B: OURS, C: OURS}, FORMER.newest),
    ],
)
def test_all_speak_the_greatest_that_all_know(
    net: Network, tmp_path: Path, versions: dict[str, Talked], protocol: int
) -> None:
    async def scenario() -> None:
        async with serving(net, {name: of_version(talked) for name, talked in versions.items()}):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert sum(released(tmp_path / "out", net.bundle).values()) == 60
    assert [spoken(net, party) for party in PARTIES] == [[protocol]] * 3
    checked = call("verify", write_job(tmp_path, joint_job()), tmp_path / "out")
    assert checked.code == 0, checked.err


def conductor_of(net: Network, kind: type[Conductor] = Conductor, talked: Talked = OURS) -> Conductor:
    return kind(net.task, net.coordinator, lambda *_: None, talked=talked)


def failed(net: Network, conductor: Conductor, daemons: Mapping[str, MakeDaemon] | None = None) -> Problem:
    """What a run ends with."""

    async def started() -> None:
        await conductor.connect()
        async with conductor:
            await conductor.submit()
            await conductor.compute()

    async def scenario() -> Problem:
        async with serving(net, daemons):
            with pytest.raises(PartyError) as caught:
                await started()
            return caught.value.problem

    return run(scenario())


@pytest.mark.parametrize(("versions", "ours"), [({B: FAR}, OURS), ({A: FORMER, B: NEXT}, OURS), ({}, FAR)])
def test_who_have_none_in_common_say_so_before_a_table_is_read(
    net: Network, versions: dict[str, Talked], ours: Talked
) -> None:
    daemons = {name: of_version(talked) for name, talked in versions.items()}
    problem = failed(net, conductor_of(net, talked=ours), daemons)
    assert (problem.error_id, problem.phase) == ("version-mismatch", "connect")
    for talked in (ours, *versions.values()):
        if talked != OURS or not versions:
            assert str(talked) in problem.message
    assert [spoken(net, party) for party in PARTIES] == [[], [], []]


class Presuming(Conductor):
    """A coordinator that wants a protocol that nobody speaks."""

    async def submit(self) -> None:
        self._protocol = FAR.newest
        await super().submit()


class Dividing(Conductor):
    """A coordinator that tells the first party another protocol than the others."""

    told = OURS.newest

    async def _tell_all(self, request: Request) -> None:
        for member in self._members.values():
            told = self.told if member.name == A else OURS.newest + OURS.oldest - self.told
            ours = replace(request, protocol=told) if isinstance(request, Submit) else request
            await member.stream.write(ours)


def test_a_party_refuses_what_it_does_not_speak_and_notes_who_wanted_it(net: Network) -> None:
    problem = failed(net, conductor_of(net, Presuming))
    assert (problem.error_id, problem.phase) == ("version-mismatch", "submit")
    assert f"wants protocol {FAR.newest}" in problem.message
    assert str(OURS) in problem.message
    assert problem.party is not None
    lines = list(lines_of(net.root / problem.party / "state" / FOLDER))
    (refusal,) = [line.fields for line in lines if line.what == "refusal"]
    assert (refusal["caller"], refusal["error"]) == (COORDINATOR, "version-mismatch")


@pytest.mark.parametrize("told", [OURS.newest, OURS.oldest])
def test_parties_that_were_told_different_protocols_send_nothing(
    net: Network, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is refused may see its stream end before it reads why, and then says that the other went away."""
    monkeypatch.setattr(Dividing, "told", told)
    assert failed(net, conductor_of(net, Dividing)).error_id in ("version-mismatch", "peer-lost")
    for party in PARTIES:
        lines = list(lines_of(net.root / party / "state" / FOLDER))
        assert [line for line in lines if line.what == "reveal"] == []


def test_a_proposal_is_said_to_be_of_another_version_too(net: Network) -> None:
    async def scenario() -> Answers:
        async with serving(net, {B: of_version(FAR), C: of_version(FORMER)}):
            return await proposed(net.task, net.coordinator)

    answers = run(scenario())
    refused = answers[B]
    assert isinstance(refused, PartyError)
    assert refused.problem.error_id == "version-mismatch"
    assert [answers[name] for name in (A, C)] == [Standing("automatic")] * 2


# ---- with the program as it was


@contextmanager
def serving_as_it_was(net: Network, state: Path, names: Collection[str]) -> Iterator[None]:
    """Run daemons of an earlier state while the block runs."""
    with ExitStack() as stack:
        for name in names:
            serve = [
                *command_of(state, "party"),
                "serve",
                "--format",
                "json",
                "--config",
                str(net.root / name / CONFIG),
            ]
            log = stack.enter_context((net.root / name / "former.log").open("ab"))
            daemon = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=log, env=bare())
            stack.callback(lambda each: each.wait(GUARD_S), daemon)
            stack.callback(daemon.terminate)
            assert daemon.stdout is not None
            stack.enter_context(daemon.stdout)
            assert select.select([daemon.stdout], [], [], GUARD_S)[0]
            assert b"listening" in daemon.stdout.readline()
        yield


@pytest.mark.slow
@pytest.mark.parametrize("of_former", [[A], [B, C], [COORDINATOR], [A, COORDINATOR]])
def test_the_program_before_this_protocol_works_with_this_one(
    net: Network, tmp_path: Path, of_former: list[str]
) -> None:
    state = former(OURS.newest - 1, tmp_path / "former")
    job = write_job(tmp_path, joint_job())
    daemons = [name for name in of_former if name != COORDINATOR]
    conducting = command_of(state, COORDINATOR) if COORDINATOR in of_former else command()
    with (
        serving_as_it_was(net, state, daemons),
        processes(net, [name for name in PARTIES if name not in daemons]),
    ):
        arguments = [
            "run",
            str(job),
            "--config",
            str(net.config_path(COORDINATOR)),
            "--out",
            str(tmp_path / "out"),
        ]
        done = subprocess.run(
            [*conducting, *arguments], capture_output=True, timeout=2 * GUARD_S, env=bare(), check=False
        )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / REPORT).is_file()
    assert [len(net.releases(party)) for party in PARTIES] == [1, 1, 1]
    for party in PARTIES:
        if party not in daemons:
            assert spoken(net, party) == [OURS.newest - 1]
    checked = call("verify", job, tmp_path / "out")
    assert checked.code == 0, checked.err
