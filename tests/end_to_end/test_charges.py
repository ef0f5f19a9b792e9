"""A release that was not delivered is not called released, and is not lost: a retry gives it again, uncharged."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from crypto.rounds import Rounds
from jobs.errors import PartyError, Problem
from jobs.owner import durable
from jobs.owner.charge import Release
from party import ends
from party.net.control import Delivered, Finished
from party.net.waiting import stopped
from party.owner.config import LEDGER
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.duplex import GUARD_S, run
from tests.support.joint import sample_rows
from tests.support.network import Network, report_of, sample_network, serving
from tests.support.samples import COLUMNS, PARTIES, joint_job
from tests.support.saying import saying, when

A, B, C = PARTIES


def limited(folder: Path, **job: Any) -> Network:
    """Three parties whose policies allow one LKC release of their tables."""
    net = sample_network(folder, **job)
    for party in PARTIES:
        net.change(party, lambda fields: fields["policy"].update(max_lkc_releases=1))
    return net


def conducted(net: Network, out: Path, daemons: Mapping[str, Any] | None = None) -> None:
    async def scenario() -> None:
        async with serving(net, daemons):
            await conduct(net.task, net.coordinator, out)

    run(scenario())


def failed(net: Network, out: Path, daemons: Mapping[str, Any] | None = None) -> Problem:
    with pytest.raises(PartyError) as caught:
        conducted(net, out, daemons)
    return caught.value.problem


def states(net: Network) -> list[list[str]]:
    return [[entry.state for entry in net.config(party).ledger.entries()] for party in PARTIES]


def told(net: Network, party: str = A) -> str:
    return invoke("party", "budget", "--config", net.config_path(party)).out


def full_disk(out: Path) -> Any:
    """While a party answers, the coordinator loses the place where the release should go."""

    def occupied(event: Any) -> list[Any]:
        out.mkdir(exist_ok=True)
        return [event]

    return occupied


@pytest.mark.some(1)
@pytest.mark.parametrize("deliver", ["all", "coordinator"])
def test_the_last_permit_is_not_lost_with_a_release_that_nobody_got(tmp_path: Path, deliver: str) -> None:
    net, out = limited(tmp_path / "net", deliver=deliver), tmp_path / "out"
    problem = failed(net, out, {B: saying(when(Finished, full_disk(out)))})
    assert problem.error_id == "output-exists"
    assert states(net) == [["finished"]] * 3
    assert [net.releases(party) for party in PARTIES] == [[], [], []]
    assert "lkc  charged, not delivered; the result is kept  epsilon 0  sample" in told(net)
    assert "released" not in told(net)
    out.rmdir()
    conducted(net, out)
    assert report_of(out)["rows"] == 60
    assert states(net) == [["released"]] * 3
    checked = (
        "files checked here"
        if deliver == "all"
        else "files at the coordinator only, digest from the coordinator"
    )
    assert checked in told(net)
    release = invoke("party", "verify", out, "--config", net.config_path(C))
    assert release.code == 0, release.err


def test_the_same_job_counts_once_and_another_not_at_all(tmp_path: Path) -> None:
    net = limited(tmp_path / "net")
    for i in range(3):
        conducted(net, tmp_path / f"out-{i}")
    assert states(net) == [["released"]] * 3
    (entry,) = net.config(A).ledger.entries()
    assert len({d.release for d in entry.deliveries}) == 3  # other orders of rows, other times
    other = Network(net.root, jobs.bundle_of(joint_job(name="other")), net.addresses)
    problem = failed(other, tmp_path / "none")
    assert (problem.error_id, problem.phase) == ("policy-refused", "admit")
    assert states(net) == [["released"]] * 3


def test_the_same_job_on_a_changed_table_needs_another_permit_everywhere(tmp_path: Path) -> None:
    """Also where the own table is unchanged: two tables that differ by one party's rows tell more than one."""
    net = limited(tmp_path / "net")
    conducted(net, tmp_path / "out")
    jobs.write_csv(net.config(C).source.path, sample_rows(60)[2::3][:-1], COLUMNS)
    assert failed(net, tmp_path / "none").error_id == "policy-refused"
    net.change(C, lambda fields: fields["policy"].update(max_lkc_releases=2))
    problem = failed(net, tmp_path / "none")
    assert (problem.error_id, problem.party in (A, B)) == ("policy-refused", True)
    assert states(net)[:2] == [["released"], ["released"]]


def test_a_run_that_ends_before_it_begins_costs_nothing(tmp_path: Path) -> None:
    net = limited(tmp_path / "net")
    net.change(B, lambda fields: fields["policy"].update(coordinators=["somebody"]))
    assert failed(net, tmp_path / "out").error_id == "policy-refused"
    assert states(net) == [[], [], []]


def test_a_party_that_keeps_silent_in_the_end_has_kept_its_release(tmp_path: Path) -> None:
    net = limited(tmp_path / "net")
    conducted(net, tmp_path / "out", {B: saying(when(Delivered, lambda event: [event]))})
    assert states(net) == [["released"]] * 3


class Locked:
    """Ledger that another program keeps locked, as a backup does."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._connection: sqlite3.Connection | None = None

    def lock(self) -> None:
        self._connection = sqlite3.connect(self._ledger, isolation_level=None)
        self._connection.execute("BEGIN EXCLUSIVE")

    def unlock(self) -> None:
        assert self._connection is not None
        self._connection.close()


@pytest.mark.parametrize(
    ("most", "message"),
    [
        (
            1,
            "the privacy ledger cannot be written, and has no line yet of how earlier runs ended: no job begins",
        ),
        (2, "the privacy ledger cannot be read or written"),
    ],
)
def test_no_end_of_a_run_is_forgotten_while_the_ledger_cannot_be_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    most: int,
    message: str,
) -> None:
    """Ends wait for the ledger, before later runs begin. No run begins if no further end may wait."""
    monkeypatch.setattr(ends, "MOST_WAITING", most)
    monkeypatch.setattr(durable, "_BUSY_S", 0.05)
    net, taken = sample_network(tmp_path / "net"), tmp_path / "taken"
    other = Network(net.root, jobs.bundle_of(joint_job(name="other")), net.addresses)
    locked = Locked(net.config(B).state_dir / LEDGER)
    said = "how a run ended could not be noted in the ledger yet: budget-ledger"

    def locking(event: Any) -> list[Any]:
        if taken.exists():
            locked.lock()
        return [event]

    async def failing(asked: Network, out: Path) -> Problem:
        with pytest.raises(PartyError) as caught:
            await conduct(asked.task, net.coordinator, out)
        return caught.value.problem

    async def scenario() -> None:
        taken.mkdir()
        async with serving(net, {B: saying(when(Finished, locking))}):
            assert (await failing(net, taken)).error_id == "output-exists"
            async with asyncio.timeout(GUARD_S):
                while said not in caplog.messages:
                    await asyncio.sleep(0.01)
            taken.rmdir()
            problem = await failing(other, tmp_path / "none")
            assert (problem.error_id, problem.party, problem.message) == ("budget-ledger", B, message)
            locked.unlock()
            assert [entry.ended for entry in net.config(B).ledger.entries()] == [""]
            await conduct(other.task, net.coordinator, tmp_path / "out")

    with caplog.at_level("INFO", "party"):
        run(scenario())
    assert [entry.ended for entry in net.config(B).ledger.entries()] == ["cancelled", ""]
    assert states(net) == [["finished", "released"]] * 3


def test_a_kept_release_is_noted_once_the_ledger_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk or a locked ledger spoils no release that all parties keep; the next run finds the line."""
    monkeypatch.setattr(durable, "_BUSY_S", 0.05)
    net = sample_network(tmp_path / "net")
    other = Network(net.root, jobs.bundle_of(joint_job(name="other")), net.addresses)
    locked = Locked(net.config(B).state_dir / LEDGER)

    def locking(event: Any) -> list[Any]:
        if isinstance(event, Finished) and not tmp_path.joinpath("first").exists():
            locked.lock()
        return [event]

    async def scenario() -> None:
        async with serving(net, {B: saying(locking)}):
            await conduct(net.task, net.coordinator, tmp_path / "first")
            locked.unlock()
            await conduct(other.task, net.coordinator, tmp_path / "second")

    run(scenario())
    assert states(net) == [["released", "released"]] * 3
    (first, _) = net.config(B).ledger.entries()
    assert first.ended == ""
    assert [each.agreed for each in first.deliveries] == [True]


def test_a_run_meets_no_reservation_of_a_lost_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that still computes after its run was lost holds no charge, and opens nothing."""
    net = limited(tmp_path / "net")
    computing, go_on = threading.Event(), threading.Event()
    opened = Release.opened

    def slow(self: Release, *arguments: Any) -> Rounds[Any]:
        if self.ledger.data == net.config(B).ledger.data and not computing.is_set():
            computing.set()
            go_on.wait(GUARD_S)
        return (yield from opened(self, *arguments))

    async def scenario() -> None:
        async with serving(net) as servers:
            lost = asyncio.create_task(conduct(net.task, net.coordinator, tmp_path / "lost"))
            await asyncio.to_thread(computing.wait, GUARD_S)
            await stopped(lost)
            async with asyncio.timeout(GUARD_S):
                while not all(server.idle for server in servers.values()):
                    await asyncio.sleep(0.01)
            try:
                await conduct(net.task, net.coordinator, tmp_path / "out")
            finally:
                go_on.set()

    monkeypatch.setattr(Release, "opened", slow)
    run(scenario())
    assert states(net) == [["returned", "released"]] * 3
    ended = [entry.ended for entry in net.config(B).ledger.entries()]
    assert ended == ["cancelled", ""]
