"""A coordinator that stops, dies or lies when it has delivered: all parties keep the release or none does."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from coordinator.conduct import Conductor
from jobs.errors import BudgetError, TransportError
from jobs.options import NO_OPTIONS
from jobs.owner.ledger import PrivacyLedger
from jobs.release.csv import REPORT, TABLE
from jobs.release.making import write_joint_release
from jobs.release.sums import SUMS, write_sums
from jobs.stopwatch import Stopwatch
from party.agreement import CHECKED
from party.daemon import Daemon
from party.net import control
from party.net.control import Envelope, pieces
from party.session import BINDING, ENDS
from party.states import Session
from tests.support.bare import bare
from tests.support.by_hand import works
from tests.support.commands import listing
from tests.support.duplex import run
from tests.support.meddling import CUT, Meddler
from tests.support.network import (
    GUARD_S,
    Network,
    Processes,
    call,
    command,
    processes,
    sample_network,
    serving,
    write_job,
)
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


@pytest.fixture(params=["all", "coordinator"])
def net(tmp_path: Path, request: pytest.FixtureRequest) -> Network:
    return sample_network(tmp_path / "net", deliver=request.param)


def ledgers(net: Network) -> list[list[str]]:
    return [[entry.state for entry in net.config(party).ledger.entries()] for party in PARTIES]


def tables(net: Network) -> list[list[str]]:
    """Return every party's files of releases, hidden ones too."""
    return [[path for path in listing(net.root / party) if "/releases/" in path] for party in PARTIES]


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(GUARD_S):
        while not met():
            await asyncio.sleep(0.02)


class ByHand:
    """A coordinator that has computed, and delivers as the test says."""

    def __init__(self, conductor: Conductor, folder: Path, release: bytes) -> None:
        self._conductor = conductor
        self._folder = folder
        self.release = release

    def last_words(self, release: bytes) -> list[control.Request]:
        """All that is said to a party in the end."""
        if self._conductor._task.job.deliver == "coordinator":
            return [control.Stored(release)]
        names = self._conductor._task.delivered
        return [
            control.Release(p) for name in names for p in pieces(name, (self._folder / name).read_bytes())
        ]

    async def say(self, party: str, requests: Sequence[control.Request]) -> None:
        for request in requests:
            await self._conductor._members[party].stream.write(request)

    async def deliver(self, *parties: str) -> None:
        for party in parties:
            await self.say(party, self.last_words(self.release))

    async def say_nothing_more(self) -> None:
        """Half-close every stream."""
        for member in self._conductor._members.values():
            await member.stream._call.done_writing()

    async def vanish(self) -> None:
        """Without a farewell."""
        await self._conductor._calls.close()

    async def cancel(self) -> None:
        with suppress(TransportError):  # the parties have ended the job
            await self._conductor._tell_all(control.Cancel())

    async def heard(self, *parties: str) -> dict[str, type[Any]]:
        """The last word of these parties, of all if none is named."""
        last: dict[str, type[Any]] = {}
        async with asyncio.timeout(GUARD_S):
            while not last.keys() >= set(parties or PARTIES):
                name, event = await self._conductor._news.get()
                if isinstance(event, control.Delivered | control.Failed):
                    last[name] = type(event)
        return last


@asynccontextmanager
async def computed(net: Network) -> AsyncIterator[ByHand]:
    """A run that is over but for the delivery."""
    conductor = Conductor(net.task, net.coordinator, lambda party, turn: None)
    await conductor.connect()
    try:
        await conductor.submit()
        await conductor.compute()
        collected = await conductor.collect()
        folder = net.root / f"made-{secrets.token_hex(4)}"
        folder.mkdir()
        watch = Stopwatch(lambda name: None)
        release = write_joint_release(net.task, folder, collected, NO_OPTIONS, watch).digest
        yield ByHand(conductor, folder, release)
    finally:
        await conductor._close()


async def bound(servers: Mapping[str, Any], parties: Sequence[str]) -> None:
    """Wait until these have checked what was delivered to them. A party that keeps the release leaves the place."""
    daemons = [servers[party]._daemon for party in parties]

    def is_bound(daemon: Any) -> bool:
        session = daemon._place.session
        return session is None or isinstance(session.state, BINDING + ENDS)

    await until(lambda: all(map(is_bound, daemons)))


async def all_idle(servers: Mapping[str, Any]) -> None:
    await until(lambda: all(server.idle for server in servers.values()))


@pytest.mark.by_lot(1)
@pytest.mark.parametrize("leaves", ["vanish", "cancel"])
def test_a_coordinator_that_leaves_when_it_has_delivered_to_all(net: Network, leaves: str) -> None:
    async def scenario() -> None:
        async with serving(net) as servers:
            async with computed(net) as job:
                await job.deliver(*PARTIES)
                await bound(servers, PARTIES)
                await getattr(job, leaves)()
                await all_idle(servers)
            assert ledgers(net) == [["released"]] * 3
            await works(net, net.root / "out")

    run(scenario())
    assert all(len(net.releases(party)) == 2 for party in PARTIES)
    assert not any(Path(path).name.startswith(".") for found in tables(net) for path in found)


@pytest.mark.by_lot(1)
@pytest.mark.parametrize("leaves", ["vanish", "cancel"])
@pytest.mark.parametrize("some", [(A,), (B, C)], ids=["one", "two"])
def test_a_coordinator_that_leaves_when_it_has_delivered_to_some(
    net: Network, some: Sequence[str], leaves: str
) -> None:
    async def scenario() -> None:
        async with serving(net) as servers:
            async with computed(net) as job:
                await job.deliver(*some)
                await bound(servers, some)
                await getattr(job, leaves)()
                await all_idle(servers)
            assert ledgers(net) == [["finished"]] * 3
            await until(lambda: all(e.ended for p in PARTIES for e in net.config(p).ledger.entries()))
            assert [path for found in tables(net) for path in found if SUMS in path or "/." in path] == []
            await works(net, net.root / "out")

    run(scenario())


def test_a_coordinator_that_vanishes_while_the_end_is_being_noted(tmp_path: Path) -> None:
    """The stream of the run is over; the entry in the ledger has its end all the same."""
    net = sample_network(tmp_path / "net")
    noting, go_on, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
    honest = Session.hear_peers

    class Watched(Daemon):
        async def conduct(self, *given: Any) -> None:
            try:
                await super().conduct(*given)
            finally:
                gone.set()

    async def held(self: Session) -> None:
        if self.me == B:
            noting.set()
            await go_on.wait()
        await honest(self)

    async def scenario() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Session, "hear_peers", held)
            async with serving(net, {B: Watched}) as servers:
                async with computed(net) as job:
                    await job.say_nothing_more()
                    await noting.wait()
                    await job.vanish()
                    await gone.wait()
                    go_on.set()
                    await all_idle(servers)
                await until(lambda: all(e.ended for p in PARTIES for e in net.config(p).ledger.entries()))

    run(scenario())


def test_an_end_that_the_ledger_does_not_take_is_noted_after_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, refused = sample_network(tmp_path / "net"), list[str]()
    honest = PrivacyLedger.end

    def refusing(self: PrivacyLedger, number: int, error_id: str, party: str) -> None:
        if len(refused) < len(PARTIES):
            refused.append(error_id)
            raise BudgetError("budget-ledger", "the privacy ledger cannot be read or written")
        honest(self, number, error_id, party)

    def ended() -> list[bool]:
        return [
            bool(e.ended) or e.state == "released" for p in PARTIES for e in net.config(p).ledger.entries()
        ]

    async def scenario() -> None:
        monkeypatch.setattr(PrivacyLedger, "end", refusing)
        async with serving(net) as servers:
            async with computed(net) as job:
                await job.say_nothing_more()
                await until(lambda: len(refused) == len(PARTIES))
                await all_idle(servers)
            assert ended() == [False] * 3
            await works(net, net.root / "out")
            await until(lambda: all(ended()))

    run(scenario())


def test_files_that_an_earlier_run_could_not_remove_are_removed(tmp_path: Path) -> None:
    """A daemon goes on after its disk was read-only: nobody starts it again."""
    net = sample_network(tmp_path / "net")

    async def scenario() -> None:
        async with serving(net):
            left = net.root / B / "state" / "releases" / ".sample-0123456789ab-abcd_123"
            left.mkdir(parents=True)
            (left / ".jointcut-lock").touch()
            await works(net, net.root / "out")
            assert not left.exists()

    run(scenario())


@pytest.mark.some(1)
def test_a_coordinator_that_falls_silent_when_it_has_delivered_to_some(net: Network) -> None:
    timeouts = {"coordinator_s": 1}
    for party in PARTIES:
        net.change(party, lambda fields: fields.update(timeouts=timeouts))

    async def scenario() -> None:
        async with serving(net) as servers:
            async with computed(net) as job:
                await job.deliver(A, C)
                await all_idle(servers)
            assert ledgers(net) == [["finished"]] * 3
            assert [path for found in tables(net) for path in found if SUMS in path or "/." in path] == []

    run(scenario())


def test_a_coordinator_that_tells_parties_of_different_files(net: Network) -> None:
    """A report of another time passes every party's own check; so does any digest where it has no files."""

    async def scenario() -> None:
        async with serving(net) as servers, computed(net) as job:
            other = job.last_words(b"e" * 32)
            if net.task.job.deliver == "all":
                folder = net.root / "other"
                folder.mkdir()
                other = list(_with_another_time(job, folder))
            await job.deliver(A, B)
            await job.say(C, other)
            assert await job.heard() == dict.fromkeys(PARTIES, control.Failed)
            await all_idle(servers)
        assert ledgers(net) == [["finished"]] * 3
        assert [entry.ended for p in PARTIES for entry in net.config(p).ledger.entries()] == [
            "result-mismatch"
        ] * 3
        assert [path for found in tables(net) for path in found if SUMS in path or "/." in path] == []

    run(scenario())


def _with_another_time(job: ByHand, folder: Path) -> Sequence[control.Request]:
    """The same release, made a year before."""
    for name in (TABLE, REPORT):
        (folder / name).write_bytes((job._folder / name).read_bytes())
    report = (folder / REPORT).read_text()
    year = report.split('"finished": "')[1][:4]
    (folder / REPORT).write_text(report.replace(f'"finished": "{year}', f'"finished": "{int(year) - 1}'))
    write_sums(folder, (TABLE, REPORT))
    return [
        control.Release(piece)
        for name in (REPORT, SUMS)
        for piece in pieces(name, (folder / name).read_bytes())
    ]


@pytest.mark.some(1)
def test_a_party_that_is_gone_before_its_vote_is_out(net: Network) -> None:
    """Its links break with the vote, before it has heard the others'; those who are left withdraw."""

    async def cut(envelope: Envelope) -> AsyncIterator[Envelope | str]:
        yield CUT if envelope.step == CHECKED else envelope

    async def too_late(envelope: Envelope) -> AsyncIterator[Envelope | str]:
        if (envelope.step, envelope.recipient) != (CHECKED, B):
            yield envelope

    async def scenario() -> None:
        daemons = {A: Meddler(too_late), B: Meddler(cut), C: Meddler(too_late)}
        async with serving(net, daemons) as servers, computed(net) as job:
            await job.deliver(*PARTIES)
            assert await job.heard() == dict.fromkeys(PARTIES, control.Failed)
            await all_idle(servers)
        assert ledgers(net) == [["finished"]] * 3

    run(scenario())
    assert [path for found in tables(net) for path in found if SUMS in path or "/." in path] == []


# ---- real processes


@pytest.mark.more
def test_a_party_that_is_killed_with_its_vote_out(tmp_path: Path) -> None:
    """The window: the others keep what it checked. What it hid is swept when it starts again."""
    net = sample_network(tmp_path / "net")

    async def killed_while_a_has_nothing() -> None:
        async with computed(net) as job:
            await job.deliver(B, C)
            await until(lambda: any("/." in path and path.endswith(SUMS) for path in tables(net)[2]))
            await asyncio.sleep(0.3)
            daemons.signal(C, signal.SIGKILL)
            await job.deliver(A)
            assert await job.heard(A, B) == dict.fromkeys((A, B), control.Delivered)

    with processes(net) as daemons:
        run(killed_while_a_has_nothing())
        assert any("/." in path for path in tables(net)[2])
        daemons.restart(C)
        assert ledgers(net) == [["released"], ["released"], ["finished"]]
        assert [entry.ended for entry in net.config(C).ledger.entries()] == ["peer-lost"]
        assert tables(net)[2] == []
        run(works(net, net.root / "out"))
    assert "charges and questions of runs lost with an earlier daemon: 1" in daemons.log(C)
    assert "removed 1 releases that runs killed earlier left unfinished" in daemons.log(C)
    assert [len(net.releases(party)) for party in PARTIES] == [2, 2, 1]


@pytest.mark.some(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_coordinator_process_that_ends_while_it_delivers(tmp_path: Path, number: signal.Signals) -> None:
    """Whenever it was: all or none; and its next run to the same place finds nothing in its way."""
    net = sample_network(tmp_path / "net")
    job, out = write_job(tmp_path / "job", joint_job()), tmp_path / "outs" / "out"
    out.parent.mkdir()
    start = command("run", job, "--out", out, "--config", net.config_path("coordinator"), "--format", "json")
    with processes(net) as daemons:
        process = subprocess.Popen(
            start, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=bare()
        )
        assert process.stderr is not None
        assert any(json.loads(line).get("phase") == "deliver" for line in process.stderr)
        process.send_signal(number)
        run(until(lambda: all(ended(daemons, party) for party in PARTIES)))
        assert {len(kept(found)) for found in tables(net)} in ({0}, {1})
        process.kill()
        process.communicate(timeout=GUARD_S)
        again = call("run", job, "--out", out, "--config", net.config_path("coordinator"))
        assert again.code == 0, again.err
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert {len(kept(found)) for found in tables(net)} in ({1}, {2})
    assert not any(is_hidden(path) for found in tables(net) for path in found)


def kept(found: Sequence[str]) -> list[str]:
    return [path for path in found if path.endswith(SUMS) and not is_hidden(path)]


def is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in Path(path.split("/releases/")[1]).parts)


def ended(daemons: Processes, party: str) -> bool:
    lines = daemons.log_of_this_life(party)
    return bool(lines) and not lines[-1]["message"].startswith("started by")
