"""Waiting for a turn, and trying again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coordinator.conduct
import coordinator.patience
from coordinator.conduct import Conductor
from coordinator.patience import connected, repeated, seconds_of
from jobs.errors import ConfigError, Exit, JobFailed, PartyError, Problem, TransportError
from party.net import control
from party.net.protocol import OURS, Talked
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.network import Processes, processes, report_of, sample_network, write_job
from tests.support.samples import PARTIES, joint_job, single_job

A, B, C = PARTIES


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("168h", 604_800)])
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "0m", "1.5h", "-1s", "2d", "169h", "30 m", "٣m"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError):
        seconds_of(text)


# ---- tries


def tried(
    monkeypatch: pytest.MonkeyPatch, ends: list[Exception | None], retries: int
) -> tuple[int, list[float]]:
    """How often work that ends so is begun, and the pauses. Raises what the work does."""
    pauses: list[float] = []
    monkeypatch.setattr(coordinator.patience, "sleep", pauses.append)
    begun = iter(ends)

    def work() -> None:
        if (error := next(begun)) is not None:
            raise error

    repeated(work, retries)
    return len(ends) - len(list(begun)), pauses


def lost() -> TransportError:
    return TransportError("peer-lost", "away", party=B)


def test_what_fails_with_exit_code_3_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(monkeypatch, [None], 0) == (1, [])
    assert tried(monkeypatch, [lost(), lost(), None, None], 2) == (3, [5, 10])
    assert tried(monkeypatch, [*[lost()] * 6, None], 6) == (7, [5, 10, 20, 40, 60, 60])


def test_the_last_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for retries in (0, 2):
        with pytest.raises(TransportError):
            tried(monkeypatch, [lost()] * (retries + 1), retries)


@pytest.mark.parametrize(
    "error", [PartyError("policy-refused", "no"), ValueError("bug"), OSError(28, "full")]
)
def test_nothing_else_is_done_again(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    with pytest.raises(type(error)):
        tried(monkeypatch, [error, None], 5)


# ---- turns


class OneByOne:
    """Calls to parties where it is our turn at once, except that it notes the order of our asking."""

    def __init__(self, *_: object) -> None:
        self.asked: list[str] = []
        self.granted: set[str] = set()

    async def talked(self, peer: str, address: str) -> Talked:
        return OURS

    async def standing(self, peer: str, address: str, job_hash: bytes) -> control.Standing:
        return control.Standing("automatic")

    async def open_queue(self, peer: str, address: str) -> Any:
        assert self.granted == set(self.asked), "asked for a turn while waiting for another"
        self.asked.append(peer)
        return Granting(peer, self.granted)

    async def close(self) -> None:
        pass


class Granting:
    def __init__(self, peer: str, granted: set[str]) -> None:
        self._peer, self._granted = peer, granted
        self._news = iter([control.Queued(2), control.Queued(1), control.Queued(0)])

    async def read(self) -> control.Event:
        await asyncio.sleep(0.001)
        event = next(self._news, None)
        if event is None:
            await asyncio.Event().wait()
        assert event is not None
        if event.before == 0:
            self._granted.add(self._peer)
        return event

    async def write(self, request: control.Request) -> None:
        assert request == control.Still()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("roster", [(A, B, C), (C, A, B), (B, C, A)])
def test_turns_are_taken_one_by_one_in_the_order_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roster: tuple[str, ...]
) -> None:
    """Whatever the roster says, and so two coordinators cannot wait for each other."""
    monkeypatch.setattr(coordinator.conduct, "Calls", OneByOne)
    parties = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate(roster)}
    net = sample_network(tmp_path / "net", parties=parties, leader=A)
    told: list[tuple[str, int]] = []

    async def scenario() -> Conductor:
        conductor = Conductor(net.task, net.coordinator, lambda *_: None, lambda *each: told.append(each))
        await conductor.connect(wait_s=10)
        await conductor._close()
        return conductor

    conductor = run(scenario())
    assert conductor._calls.asked == [A, B, C]  # type: ignore[attr-defined]
    assert tuple(conductor._members) == roster
    assert told == [(name, before) for name in (A, B, C) for before in (2, 1, 0)]


class Trying:
    """A conductor that fails to connect so often as there are errors."""

    def __init__(self, errors: list[str]) -> None:
        self.errors, self.waited = errors, list[float]()

    async def connect(self, wait_s: float = 0) -> None:
        self.waited.append(wait_s)
        if self.errors:
            raise JobFailed(Problem(self.errors.pop(0), "no", A))


def connecting(
    monkeypatch: pytest.MonkeyPatch, errors: list[str], wait_s: float, rest_s: float = 0.001
) -> list[float]:
    monkeypatch.setattr(coordinator.patience, "_REST_S", (rest_s, rest_s))
    trying = Trying(errors)
    make: Callable[[], Any] = lambda: trying  # noqa: E731
    run(connected(make, wait_s))
    return trying.waited


def test_whoever_loses_a_turn_or_finds_no_room_gets_back_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = connecting(monkeypatch, ["busy", "turn-lost", "busy"], 30)
    assert len(waited) == 4
    assert 30 == round(waited[0]) > waited[1] > waited[2] > waited[3] > 20
    assert connecting(monkeypatch, [], 0) == [0]


@pytest.mark.parametrize(
    ("error", "wait_s", "rest_s"), [("peer-lost", 30, 0.001), ("busy", 0, 0.001), ("busy", 1, 2)]
)
def test_nobody_waits_longer_than_said_or_for_anything_else(
    monkeypatch: pytest.MonkeyPatch, error: str, wait_s: float, rest_s: float
) -> None:
    with pytest.raises(JobFailed) as caught:
        connecting(monkeypatch, [error], wait_s, rest_s)
    assert caught.value.problem.error_id == error


# ---- the command


def test_waiting_is_for_jobs_of_several_parties(tmp_path: Path) -> None:
    job = write_job(tmp_path, single_job())
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out", "--wait", "1m", "--format", "json")
    assert (ran.code, ran.problem["error"]) == (Exit.USAGE, "usage")


def test_a_run_is_tried_again_when_a_party_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = sample_network(tmp_path / "net")
    for name in (*PARTIES, "coordinator"):
        net.change(name, lambda fields: fields.update(timeouts={"connect_s": 0.5}))
    job = write_job(tmp_path, joint_job())
    daemons: list[Processes] = []
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        daemons[0].start(B)

    monkeypatch.setattr(coordinator.patience, "sleep", pause)
    with processes(net, only=[A, C]) as running:
        daemons.append(running)
        run_it = (
            "run",
            job,
            "--config",
            net.config_path("coordinator"),
            "--retries",
            "3",
            "--format",
            "json",
        )
        ran = invoke("coordinator", *run_it, "--out", tmp_path / "out")
        assert ran.code == 0, ran.err
        again = invoke("coordinator", *run_it, "--out", tmp_path / "again")
    assert pauses == [5]
    notes = [line for line in ran.lines if line["event"] == "note"]
    assert [(note["retries_left"], note["failed"]["error"]) for note in notes] == [(3, "peer-unreachable")]
    assert not [line for line in again.lines if line["event"] == "note"]
    assert report_of(tmp_path / "out")["cut"] == report_of(tmp_path / "again")["cut"]
