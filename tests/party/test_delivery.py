"""Releases that a party keeps: those that every party has checked, and nothing else."""

from __future__ import annotations

import asyncio
import errno
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import pytest

import party.daemon as daemon
import party.delivery as delivery
from coordinator.conduct import Conductor
from jobs.errors import JobFailed, PartyError, Problem
from jobs.options import NO_OPTIONS
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_ACCOUNT, OWN_PAGE
from jobs.release.making import write_joint_release
from jobs.release.sums import SUMS, write_sums
from jobs.stopwatch import Stopwatch
from party.agreement import Agreement
from party.net.mesh import Mesh
from party.owner.accounts import BEING_MADE, FAILED, LOST, UNFINISHED, accounts, give_up, words_of
from party.owner.config import Limits
from party.owner.problems import ProblemBook
from tests.support.by_hand import works
from tests.support.commands import listing
from tests.support.duplex import run
from tests.support.network import GUARD_S, Network, report_of, sample_network, serving
from tests.support.samples import PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def test_what_is_delivered_is_what_the_coordinator_has(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    run(scenario())
    for party in PARTIES:
        folder = net.account(party).parent
        assert sorted(p.name for p in folder.iterdir()) == [SUMS, TABLE, OWN_ACCOUNT, OWN_PAGE, PAGE, REPORT]
        for name in (SUMS, TABLE, REPORT):
            assert (folder / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert report_of(tmp_path / "out")["rows"] == 60


@pytest.mark.parametrize(("most", "said"), [(40_000, ""), (400, "peer-protocol")])
def test_a_release_may_be_as_large_as_its_result_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, said: str
) -> None:
    """The bound is on what does not follow from the result: the report, not the table."""
    net = sample_network(tmp_path / "net", n_rows=3000)

    async def scenario() -> str:
        async with serving(net), Conductor(net.task, net.coordinator, lambda party, turn: None) as conductor:
            await conductor.connect()
            await conductor.submit()
            await conductor.compute()
            collected = await conductor.collect()
            out.mkdir()
            release = write_joint_release(net.task, out, collected, NO_OPTIONS, Stopwatch(print)).digest
            monkeypatch.setattr(Limits, "delivery_bytes", most)
            try:
                await conductor.deliver(out, release)
            except PartyError as error:
                return error.problem.error_id
            return ""

    out = tmp_path / "out"
    assert run(scenario()) == said
    assert (out / TABLE).stat().st_size > 40_000 > (out / REPORT).stat().st_size > 400


def test_a_party_that_keeps_a_release_ends_the_stream(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for no farewell of the coordinator, and for no connection of a peer."""
    go_on, out = asyncio.Event(), tmp_path / "out"
    original = Mesh.close

    async def held(self: Mesh) -> None:
        await go_on.wait()
        await original(self)

    monkeypatch.setattr(Mesh, "close", held)

    async def scenario() -> None:
        async with serving(net) as servers:
            async with Conductor(net.task, net.coordinator, lambda party, turn: None) as conductor:
                await conductor.connect()
                await conductor.submit()
                await conductor.compute()
                collected = await conductor.collect()
                out.mkdir()
                release = write_joint_release(net.task, out, collected, NO_OPTIONS, Stopwatch(print)).digest
                assert await conductor.deliver(out, release) == []
                await asyncio.gather(*conductor._readers)
                assert all(server.idle for server in servers.values())
            go_on.set()

    run(scenario())


def test_a_forged_delivery_is_refused_and_not_kept(net: Network, tmp_path: Path) -> None:
    """A coordinator that delivers another table than was computed is found out by every party."""
    forged = tmp_path / "forged"
    forged.mkdir()

    async def deliver_forged() -> None:
        async with Conductor(net.task, net.coordinator, lambda party, turn: None) as conductor:
            await conductor.connect()
            await conductor.submit()
            await conductor.compute()
            await conductor.collect()
            (forged / TABLE).write_text("job,age,transfused,surgery\n" + 'Any,"[0,100)",Y,Knee\n' * 60)
            (forged / REPORT).write_text(f'{{"job_sha256": "{net.bundle.digest.hex()}"}}')
            await conductor.deliver(forged, write_sums(forged, (TABLE, REPORT)))

    async def scenario() -> Problem:
        async with serving(net):
            with pytest.raises(JobFailed) as caught:
                await deliver_forged()
            return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.phase) == ("result-mismatch", "deliver")
    assert all(net.releases(party) == [] for party in PARTIES)


# ---- the owner's own account


def _account(folder: Path) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((folder / OWN_ACCOUNT).read_text())
    return fields


class Slow:
    """An account that takes until it is let go; ``begun``: how often it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self.threads: list[str] = []
        self.go = Event()
        self._original = delivery.account_of
        monkeypatch.setattr(delivery, "account_of", self._account_of)

    def _account_of(self, *arguments: Any) -> dict[str, Any]:
        self.begun += 1
        self.threads.append(current_thread().name)
        assert self.go.wait(GUARD_S)
        return self._original(*arguments)


def test_neither_a_release_nor_the_next_job_waits_for_own_accounts(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)

    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "first")
            await works(net, tmp_path / "second")
            states = [_account(folder).get(UNFINISHED) for name in PARTIES for folder in net.releases(name)]
            assert states == [BEING_MADE] * 6
            assert slow.threads == ["accounts"] * 3  # at each daemon one is begun, and one waits for it
            slow.go.set()

    run(scenario())
    for name in PARTIES:
        accounts = [_account(folder) for folder in net.releases(name)]
        assert len({account["run"] for account in accounts}) == 2
        assert all(account["data"]["used"] == 20 for account in accounts)


def test_a_daemon_that_is_stopped_writes_its_accounts_first(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)

    async def scenario() -> None:
        async with serving(net) as servers:
            await works(net, tmp_path / "out")
            stopping = asyncio.create_task(servers[PARTIES[0]].stop())
            await asyncio.wait({stopping}, timeout=1.0)
            assert not stopping.done()
            slow.go.set()
            await stopping
            assert UNFINISHED not in _account(net.releases(PARTIES[0])[0])

    run(scenario())


def test_a_daemon_that_is_stopped_does_not_wait_for_ever_for_its_accounts(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Unfinished accounts are lost with the daemon, which `party accounts` says, and the next daemon's too."""
    slow = Slow(monkeypatch)
    monkeypatch.setattr(daemon, "ACCOUNTS_S", 0.1)

    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    run(scenario())
    state = net.config(PARTIES[0]).state_dir
    (folder,) = net.releases(PARTIES[0])
    assert "unfinished accounts: 1" in caplog.text
    assert _account(folder)[UNFINISHED] == BEING_MADE
    ((_, shown),) = accounts(state, 5, lost=True)
    assert words_of(shown) == [f"not finished: {LOST}"]
    assert (give_up(state), give_up(state), _account(folder)[UNFINISHED]) == (1, 0, LOST)
    slow.go.set()


def test_a_daemon_that_is_stopped_in_the_middle_still_says_what_a_release_did(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other parties' last words are never heard, the coordinator leaves, and everything is stopped."""
    kept = asyncio.Event()

    async def endless(self: Agreement) -> None:
        kept.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Agreement, "ended", endless)
    monkeypatch.setattr("party.net.client._CLOSE_S", 0.1)

    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    run(scenario())
    assert kept.is_set()
    for name in PARTIES:
        (folder,) = net.releases(name)
        assert UNFINISHED not in _account(folder)


def test_a_run_that_fails_looks_at_no_own_records(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)
    slow.go.set()

    async def refused(self: Agreement) -> None:
        raise JobFailed(Problem("result-mismatch", "nobody keeps it"))

    monkeypatch.setattr(Agreement, "reached", refused)

    async def scenario() -> None:
        async with serving(net):
            with pytest.raises(JobFailed):
                await works(net, tmp_path / "out")

    run(scenario())
    assert slow.begun == 0


def test_a_release_stands_without_its_account(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(folder: Path, fields: Mapping[str, Any]) -> Path:
        raise OSError(errno.ENOSPC, "no space", str(folder))

    monkeypatch.setattr(delivery, "write_own_account", full)

    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    run(scenario())
    for name in PARTIES:
        (folder,) = net.releases(name)
        assert listing(folder) == [SUMS, TABLE, OWN_PAGE, PAGE, REPORT]
        assert [entry.state for entry in net.config(name).ledger.entries()] == ["released"]
        ((_, problem),) = ProblemBook(net.config(name).state_dir).entries(1)
        assert (problem["error"], problem["phase"]) == ("io-failed", "account")
    assert str(folder) in caplog.text


def test_an_account_that_cannot_be_made_says_so(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> dict[str, Any]:
        raise MemoryError

    monkeypatch.setattr(delivery, "account_of", broken)

    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    run(scenario())
    assert [_account(net.releases(name)[0])[UNFINISHED] for name in PARTIES] == [FAILED] * 3


def test_an_owner_who_watches_is_told_of_the_own_rows(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> str:
        async def scenario() -> None:
            async with serving(net):
                await works(net, tmp_path / f"out-{sys.stderr.isatty()}")

        run(scenario())
        return capsys.readouterr().err

    words = "20 rows read, 0 left out, 20 used"
    assert words not in told()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert told().count(words) == len(PARTIES)
