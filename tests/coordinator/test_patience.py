"""Coordinators that wait for approvals and for their turn, and that try again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator import patience
from coordinator.patience import Patience, run_patiently
from coordinator.progress import Voice
from jobs.errors import PartyError, Problem
from jobs.options import NO_OPTIONS
from jointcut.api.voices import Silent
from party.owner.approvals import Approvals, terms_of
from tests.support.commands import invoke
from tests.support.hostile import answer, conducting, submission
from tests.support.house import House
from tests.support.network import GUARD_S, Network, call, sample_network, serving, write_job
from tests.support.samples import PARTIES, joint_job, single_job

A, B, C = PARTIES


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "ASK_S", 0.05)
    monkeypatch.setattr(patience, "PAUSE_S", 0.05)
    monkeypatch.setattr(patience, "SIGN_S", 0.05)


@pytest.fixture
def net(tmp_path: Path) -> Network:
    made = sample_network(tmp_path / "net")
    write_job(tmp_path, joint_job())
    return made


@pytest.fixture
def hasty(net: Network) -> None:
    """Let the coordinator soon take a party for absent."""
    net.change("coordinator", lambda fields: fields.update(timeouts={"connect_s": 0.3}))


@dataclass
class Run:
    """Run of the job of a network, with the notes that it gives."""

    net: Network
    out: str = "out"
    notes: list[dict[str, object]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.net.root / self.out

    def _note(self, text: str, **fields: object) -> None:
        self.notes.append({"text": text, **fields})

    def begin(self, wait_s: float = 0, retries: int = 0) -> asyncio.Task[Path]:
        voice = Voice(lambda *_: Silent(), self._note)
        given = self.net.task, self.net.coordinator, self.folder, Patience(wait_s, retries), NO_OPTIONS, voice
        return asyncio.create_task(asyncio.to_thread(run_patiently, *given))

    async def has(self, met: Callable[[dict[str, object]], bool]) -> None:
        async with asyncio.timeout(GUARD_S):
            while not any(map(met, self.notes)):
                await asyncio.sleep(0.01)


async def problem_of(task: asyncio.Task[Any]) -> Problem:
    with pytest.raises(PartyError) as caught:
        await task
    return caught.value.problem


@asynccontextmanager
async def occupied(net: Network, party: str) -> AsyncIterator[None]:
    """Keep a party's place with a job whose bundle never ends."""
    async with conducting(net, "coordinator", party) as first:
        await first.write(submission(b"{", last=False))
        while (await problem_of_a_try(net, party)) != "busy":
            await asyncio.sleep(0.01)
        yield


async def problem_of_a_try(net: Network, party: str) -> str:
    event = await answer(net, "coordinator", party, b"{}")
    return "busy" if "busy" in event.failed.problem else ""


async def decided(net: Network, party: str, decision: str, *more: str) -> None:
    """Let the owner of a party decide on the job of a network."""
    config = net.config_path(party)
    words = (decision, net.task.digest.hex(), *more, "--config", config)
    assert (await asyncio.to_thread(call, *words, program="party")).code == 0


def test_a_job_has_its_turn_when_the_other_job_ends(net: Network) -> None:
    async def scenario() -> None:
        run = Run(net)
        async with serving(net):
            async with occupied(net, B):
                task = run.begin(wait_s=GUARD_S)
                await run.has(lambda note: note.get("event") == "queued")
            await task
        queued = [note for note in run.notes if note.get("event") == "queued"]
        assert queued == [{"text": f"waits at {B}: 1 job ahead", "event": "queued", "party": B, "ahead": 1}]
        assert (run.folder / "anonymized.csv").is_file()

    asyncio.run(scenario())


def test_jobs_that_wait_run_one_after_the_other(net: Network) -> None:
    async def scenario() -> None:
        runs = [Run(net, f"out-{number}") for number in range(3)]
        async with serving(net):
            await asyncio.gather(*(run.begin(wait_s=GUARD_S) for run in runs))
        assert all((run.folder / "anonymized.csv").is_file() for run in runs)

    asyncio.run(scenario())


class Party:
    """Stream of a party that tells places in the queue, and then nothing."""

    def __init__(self, *ahead: int) -> None:
        self._ahead = iter(ahead)

    async def read(self) -> int:
        for ahead in self._ahead:
            return ahead
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ((), "runs other jobs"),
        ((1,), "runs other jobs: 1 job is ahead"),
        ((3, 2), "runs other jobs: 2 jobs are ahead"),
    ],
)
def test_a_wait_ends_with_the_place_in_the_queue(told: tuple[int, ...], said: str) -> None:
    notes: list[str] = []

    async def scenario() -> Problem:
        stream: Any = Party(*told)
        until = asyncio.get_running_loop().time() + 0.1
        turn = patience._turn(C, stream, until, lambda text, **_: notes.append(text))
        return await problem_of(asyncio.create_task(turn))

    problem = asyncio.run(scenario())
    assert (problem.error_id, problem.party, problem.message) == ("busy", C, f"{C} {said}")
    assert "--wait" in problem.remedy
    assert len(notes) == len(told)


@pytest.mark.parametrize("told", [(1,), (3, 2), (0,)])
def test_a_wait_without_time_left_takes_a_free_place_alone(told: tuple[int, ...]) -> None:
    """Each party had some seconds more for jobs ahead to end: a job of many parties waited long beyond its time."""

    async def scenario() -> float:
        stream: Any = Party(*told)
        begun = asyncio.get_running_loop().time()
        turn = patience._turn(C, stream, begun, lambda *_, **__: None)
        if told == (0,):
            await turn
        else:
            assert (await problem_of(asyncio.create_task(turn))).error_id == "busy"
        return asyncio.get_running_loop().time() - begun

    assert asyncio.run(scenario()) < patience.ASK_S / 2


def test_a_wait_that_is_over_leaves_nothing(net: Network) -> None:
    async def scenario() -> Problem:
        async with serving(net), occupied(net, C):
            return await problem_of(Run(net).begin(wait_s=0.5))

    assert asyncio.run(scenario()).error_id == "busy"
    assert not (net.root / "out").exists()


def test_a_job_waits_for_its_owners(net: Network) -> None:
    net.change(A, lambda fields: fields["policy"].pop("approval"))
    net.change(C, lambda fields: fields["policy"].pop("approval"))

    async def scenario() -> None:
        run = Run(net)
        async with serving(net):
            task = run.begin(wait_s=GUARD_S)
            await run.has(lambda note: note.get("parties") == [A, C])
            await decided(net, A, "approve")
            await run.has(lambda note: note.get("parties") == [C])
            await decided(net, C, "approve")
            await task
        assert (run.folder / "anonymized.csv").is_file()
        assert [note["text"] for note in run.notes if note.get("event") == "approval"] == [
            f"waits for the approval of {A}, {C}",
            f"waits for the approval of {C}",
        ]

    asyncio.run(scenario())


@pytest.mark.parametrize("denied", [False, True])
def test_a_wait_for_owners_ends(net: Network, denied: bool) -> None:
    net.change(A, lambda fields: fields["policy"].pop("approval"))

    async def scenario() -> Problem:
        run = Run(net)
        async with serving(net):
            task = run.begin(wait_s=GUARD_S if denied else 0.3)
            if denied:
                await run.has(lambda note: note.get("event") == "approval")
                await decided(net, A, "deny", "--reason", "too fine")
            return await problem_of(task)

    problem = asyncio.run(scenario())
    assert problem.error_id == ("approval-denied" if denied else "approval-waiting")


def test_an_approval_that_ends_during_the_wait_is_asked_for_again(net: Network) -> None:
    """Two runs of the job wait for the last owner. One takes the approved run of the first owner."""
    net.change(A, lambda fields: fields["policy"].pop("approval"))
    net.change(C, lambda fields: fields["policy"].pop("approval"))
    config, now = net.config(A), datetime.now(UTC)
    approvals = Approvals(config.state_dir)

    async def scenario() -> None:
        run = Run(net)
        async with serving(net):
            task = run.begin(wait_s=GUARD_S)
            await run.has(lambda note: note.get("parties") == [A, C])
            await decided(net, A, "approve")
            await run.has(lambda note: note.get("parties") == [C])
            terms = terms_of(config, net.task, "coordinator")
            approvals.begin(net.task.digest, "coordinator", terms, bytes(16), now)
            async with asyncio.timeout(GUARD_S):
                while not approvals.waiting(now):
                    await asyncio.sleep(0.01)
            await decided(net, A, "approve")
            await decided(net, C, "approve")
            await task
        assert (run.folder / "anonymized.csv").is_file()

    asyncio.run(scenario())


@pytest.mark.usefixtures("hasty")
def test_a_denial_ends_the_wait_for_a_party_that_is_away(net: Network) -> None:
    net.change(C, lambda fields: fields["policy"].pop("approval"))

    async def scenario() -> Problem:
        run = Run(net)
        async with serving(net, only=[B, C]):
            task = run.begin(wait_s=GUARD_S)
            await run.has(lambda note: note.get("event") == "absent")
            await decided(net, C, "deny", "--reason", "too fine")
            return await problem_of(task)

    assert asyncio.run(scenario()).error_id == "approval-denied"


@pytest.mark.usefixtures("hasty")
def test_a_refusal_ends_the_wait_for_a_party_that_is_away(net: Network) -> None:
    net.change(C, lambda fields: fields["policy"].update(min_k=50))

    async def scenario() -> Problem:
        async with serving(net, only=[B, C]):
            return await problem_of(Run(net).begin(wait_s=GUARD_S))

    assert asyncio.run(scenario()).error_id == "policy-refused"


@pytest.mark.usefixtures("hasty")
def test_a_party_that_comes_late_is_tried_again(net: Network) -> None:
    async def scenario() -> None:
        run = Run(net)
        async with serving(net, only=[A, B]):
            task = run.begin(retries=20)
            await run.has(lambda note: note.get("event") == "retry")
            async with serving(net, only=[C]):
                await task
        assert (run.folder / "anonymized.csv").is_file()
        first = run.notes[0]
        assert (first["attempt"], first["most"], first["error"]) == (2, 21, "peer-unreachable")
        assert first["party"] == C
        assert str(first["text"]).endswith("attempt 2 of 21 in 0.05 s")

    asyncio.run(scenario())


@pytest.mark.usefixtures("hasty")
def test_a_party_that_is_away_for_a_while_is_waited_for(net: Network) -> None:
    """First while the owners decide, then before its turn: no attempt is used up."""
    net.change(A, lambda fields: fields["policy"].pop("approval"))

    async def scenario() -> None:
        run = Run(net)
        async with serving(net, only=[A, B]):
            async with serving(net, only=[C]):
                task = run.begin(wait_s=GUARD_S)
                await run.has(lambda note: note.get("event") == "approval")
            await run.has(lambda note: note.get("event") == "absent")
            await decided(net, A, "approve")
            async with serving(net, only=[C]):
                await task
        assert (run.folder / "anonymized.csv").is_file()
        absent = [note for note in run.notes if note.get("event") == "absent"]
        assert {name for note in absent for name in note["parties"]} == {C}  # type: ignore[attr-defined]  # names
        assert all(str(note["text"]).startswith("waits: ") for note in absent), absent

    asyncio.run(scenario())


def test_a_job_that_fails_after_the_wait_is_tried_again(net: Network) -> None:
    """The time of a run does not count, and a party that is free is taken without any time left."""
    wait_s, begun = 0.2, 0

    async def attempt() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            await asyncio.sleep(2 * wait_s)
        if begun < 3:
            raise PartyError("peer-lost", "went away", party=B)

    async def scenario() -> None:
        readiness = patience.Readiness(net.task, net.coordinator, wait_s, lambda *_, **__: None)
        async with serving(net):
            await patience._retried(partial(readiness.awaited, attempt), 2, lambda *_, **__: None)

    asyncio.run(scenario())
    assert begun == 3


def test_pauses_between_turns_count_as_waiting(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that gives turns, and refuses each job as busy, holds nobody longer than the time."""
    wait_s, begun = GUARD_S, 0
    monkeypatch.setattr(patience, "PAUSE_S", 0.6)

    async def attempt() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            readiness._left_s = 0.5
        raise PartyError("busy", "runs another job", party=B)

    async def scenario() -> Problem:
        async with serving(net):
            return await problem_of(asyncio.create_task(readiness.awaited(attempt)))

    readiness = patience.Readiness(net.task, net.coordinator, wait_s, lambda *_, **__: None)
    assert asyncio.run(scenario()).error_id == "busy"
    assert begun == 2


def test_a_note_is_given_again_after_another() -> None:
    notes: list[str] = []
    note = patience._unrepeated(lambda text, **_: notes.append(text))
    for text in ("absent", "absent", "queued", "absent"):
        note(text, event="waits")
    assert notes == ["absent", "queued", "absent"]


@pytest.mark.parametrize("wait_s", [0, 0.2])
def test_attempts_are_limited(net: Network, wait_s: float) -> None:
    net.change("coordinator", lambda fields: fields.update(timeouts={"connect_s": 0.2}))

    async def scenario() -> list[object]:
        run = Run(net)
        async with serving(net, only=[A, B]):
            problem = await problem_of(run.begin(wait_s=wait_s, retries=2))
        assert (problem.error_id, problem.party) == ("peer-unreachable", C)
        return [note["text"] for note in run.notes if note.get("event") == "attempt"]

    assert asyncio.run(scenario()) == ["attempt 2 of 3 failed", "attempt 3 of 3 failed"]


@pytest.mark.parametrize("wait_s", [0, 60])
def test_a_folder_that_exists_is_refused_before_anybody_is_called(net: Network, wait_s: float) -> None:
    run = Run(net)
    run.folder.mkdir()

    async def scenario() -> Problem:
        return await problem_of(run.begin(wait_s=wait_s, retries=2))

    problem = asyncio.run(scenario())
    assert (problem.error_id, run.notes) == ("output-exists", [])


@pytest.mark.parametrize(("failures", "begun"), [("lost busy busy", 4), ("busy", 1)])
def test_a_party_that_still_ends_the_lost_run_is_tried_again(
    failures: str, begun: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party that is busy with the job of another is not: `--wait` is for that."""
    monkeypatch.setattr(patience, "PAUSE_S", 0.001)
    errors = iter({"lost": "peer-lost"}.get(word, word) for word in failures.split())
    made = []

    async def attempt() -> None:
        made.append(error := next(errors, ""))
        if error:
            raise PartyError(error, "is away or runs a job", party=B)

    with suppress(PartyError):
        asyncio.run(patience._retried(attempt, 20, lambda *_, **__: None))
    assert (len(made), made[-1]) == (begun, "" if begun > 1 else "busy")


def test_a_refusal_is_not_tried_again(net: Network) -> None:
    net.change(B, lambda fields: fields["policy"].update(min_k=1000))

    async def scenario() -> Problem:
        run = Run(net)
        async with serving(net):
            problem = await problem_of(run.begin(retries=5))
        assert run.notes == []
        return problem

    assert asyncio.run(scenario()).error_id == "policy-refused"


def test_the_command_takes_a_time_and_attempts(net: Network) -> None:
    house = House(net)
    run = ("run", "--out", net.root / "out", "--format", "json")
    for wrong in ("30", "m", "1.5h", "0m", "-3m"):
        ran = house.coordinator(*run, "--wait", wrong)
        assert ran.code == 2
        assert "e.g. 15m or 1h" in ran.problem["message"]
    assert house.coordinator(*run, "--retries", "101").code == 2


@pytest.mark.parametrize("option", [("--wait", "1m"), ("--retries", "1")])
def test_a_single_holder_waits_for_nobody(tmp_path: Path, option: tuple[str, str]) -> None:
    job = write_job(tmp_path, single_job())
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out", *option, "--format", "json")
    assert (ran.code, ran.problem["error"]) == (2, "usage")
    assert "--wait and --retries are for joint jobs" in ran.problem["message"]
