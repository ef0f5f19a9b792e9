"""Parties that die, connections that break, tables and disks that fail: a job ends cleanly, or it is whole.

After each fault the same daemons, or the one that was started again, do the next job. More of the same between real
daemons under load: `end_to_end/test_faults_of_processes.py`, `end_to_end/test_faults_of_messages.py`.
"""

from __future__ import annotations

import asyncio
import random
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from coordinator.conduct import Conductor
from coordinator.run import conduct
from coordinator.simulate import lay_out
from jobs.data.sources import Csv
from jobs.errors import PartyError
from jobs.lkc import shuffled
from jobs.lkc.result import Made
from jobs.lkc.rows import RowCoding
from jobs.loading import open_task
from jobs.task import Task
from tests.support import jobs
from tests.support.dp_jobs import dp_joint, dp_network
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.loopback import free_ports
from tests.support.network import GUARD_S, Network, Processes, processes, sample_network, serving
from tests.support.proxy import Proxy
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job
from tests.support.soak import allow_many, complaints, wait_for_ends, work

A, B, C = PARTIES
COORDINATOR = "coordinator"
PHASES = ("submit", "compute", "collect", "deliver")
"""The coordinator's steps before the commit, at the beginning of which something happens."""


def at(phase: str, happens: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen once, when the coordinator begins a step."""
    honest, done = getattr(Conductor, phase), []

    async def interrupted(self: Conductor, *rest: Any) -> Any:
        if not done:
            done.append(happens())
        return await honest(self, *rest)

    monkeypatch.setattr(Conductor, phase, interrupted)


def before_the_mix(happens: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen once, when the first party has run its protocol, before it reads its rows again."""
    honest, done = shuffled.row_coding, []

    def interrupted(task: Task, result: Made) -> RowCoding:
        if not done:
            done.append(happens())
        return honest(task, result)

    monkeypatch.setattr(shuffled, "row_coding", interrupted)


def kept(net: Network) -> list[Path]:
    """Return the files that parties keep, hidden folders included."""
    return [path for party in net.roster for path in net.releases(party)]


async def ends(net: Network, out: Path) -> str:
    """Run a job; return the id of its error, or `ran`. It leaves all of a release or nothing."""
    before = kept(net)
    try:
        async with asyncio.timeout(GUARD_S):
            await conduct(net.task, net.coordinator, out)
    except PartyError as error:
        assert not out.exists()
        assert [path for path in out.parent.iterdir() if path.name.startswith(".")] == []
        assert kept(net) == before
        return error.problem.error_id
    assert len(kept(net)) == len(before) + len(net.roster)
    return "ran"


async def works_again(net: Network, out: Path) -> None:
    """The next job runs, once the last one is put away."""
    async with asyncio.timeout(GUARD_S):
        while (said := await ends(net, out)) != "ran":
            assert said in {"busy", "peer-unreachable"}
            await asyncio.sleep(0.5)


def impatient(net: Network) -> Network:
    for name in (*net.roster, COORDINATOR):
        timeouts = {"connect_s": 3, "round_s": 25}
        net.change(name, lambda fields, said=timeouts: fields.update(timeouts=said))
    return net


# ---- processes


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    net = impatient(sample_network(tmp_path_factory.mktemp("processes") / "net", 90, disclosure="sealed"))
    with processes(net) as running:
        yield running


def dies(
    daemons: Processes, tmp_path: Path, phase: str, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = daemons.net
    with monkeypatch.context() as once:
        at(phase, lambda: daemons.signal(victim, signal.SIGKILL), once)
        said = run(ends(net, tmp_path / "out"))
    assert said in {"peer-lost", "peer-unreachable", "cancelled"}
    daemons.restart(victim)
    run(works_again(net, tmp_path / "again"))


CELLS = [(phase, victim) for phase in PHASES for victim in PARTIES]


@pytest.mark.more
@pytest.mark.parametrize(("phase", "victim"), [("compute", B), ("collect", A), ("deliver", C)])
def test_a_party_that_is_killed(
    daemons: Processes, tmp_path: Path, phase: str, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies(daemons, tmp_path, phase, victim, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "victim"), CELLS)
def test_any_party_that_is_killed_in_any_phase(
    daemons: Processes, tmp_path: Path, phase: str, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies(daemons, tmp_path, phase, victim, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "victim"), CELLS)
def test_any_party_that_freezes_in_any_phase(
    daemons: Processes, tmp_path: Path, phase: str, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as once:
        at(phase, lambda: daemons.signal(victim, signal.SIGSTOP), once)
        try:
            said = run(ends(daemons.net, tmp_path / "out"))
        finally:
            daemons.signal(victim, signal.SIGCONT)
    assert said in {"peer-lost", "peer-unreachable", "cancelled", "peer-timeout"}
    run(works_again(daemons.net, tmp_path / "again"))


def test_a_disk_that_is_full_when_the_release_comes(
    daemons: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of hospital-b may be longer than its log is now, and its ledger, with some bytes: no release fits."""
    state = daemons.net.root / B
    pid = daemons.running[B].process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    longest = max(path.stat().st_size for path in state.rglob("*") if path.is_file())
    report = 3000

    def fills() -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (min(longest, report), before[1]))

    with monkeypatch.context() as once:
        at("deliver", fills, once)
        assert run(ends(daemons.net, tmp_path / "out")) == "io-failed"
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    run(works_again(daemons.net, tmp_path / "again"))


@pytest.mark.slow
def test_two_hundred_jobs_leave_nothing_behind(tmp_path: Path) -> None:
    """Memory, threads and open files stay as they are after the first forty; the records agree with the jobs."""
    net = sample_network(tmp_path / "net", 90, disclosure="sealed")
    allow_many(net)
    with processes(net) as daemons:
        after = [held for _, held in work(net, daemons, tmp_path, 200)]
        wait_for_ends(net)
        assert complaints(net, daemons, 200) == []
    for party in PARTIES:
        then, now = after[39][party], after[-1][party]
        assert now.memory <= then.memory + 30
        assert now.threads <= then.threads + 2
        assert now.files <= then.files + 8


# ---- tables and ledgers


def shortened(text: str) -> str:
    return "\n".join(text.splitlines()[:-1]) + "\n"


BETWEEN_PASSES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "a row less": lambda path: path.write_text(shortened(path.read_text())),
    "a value changed": lambda path: path.write_text(path.read_text().replace("Heart", "Knee", 1)),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 9),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("what", BETWEEN_PASSES)
def test_a_table_that_changes_between_the_passes(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with `plain` columns are read again when all groups are known."""
    net = sample_network(tmp_path / "net", columns=columns(ward={"role": "plain"}))
    for party in PARTIES:
        table = tmp_path / "net" / f"{party}.csv"
        jobs.write_csv(table, [{**row, "ward": "7"} for row in sample_rows(20)], [*COLUMNS, "ward"])
    table, whole = tmp_path / "net" / f"{A}.csv", (tmp_path / "net" / f"{A}.csv").read_bytes()

    async def scenario() -> str:
        async with serving(net):
            with monkeypatch.context() as once:
                before_the_mix(lambda: BETWEEN_PASSES[what](table), once)
                said = await ends(net, tmp_path / "out")
            table.write_bytes(whole)
            await works_again(net, tmp_path / "again")
            return said

    ends_with = {"result-mismatch", "data-unreadable", "data-missing-column", "file-missing"}
    # Whether a file that is gone is missing or fails depends on what was about to be done with it.
    assert run(scenario()) in (ends_with | {"io-failed"} if what == "deleted" else ends_with)


HARMED: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: path.write_bytes(b"x" * 9000),
    "a folder": lambda path: (path.unlink(missing_ok=True), path.mkdir()),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("what", HARMED)
@pytest.mark.parametrize("phase", ["submit", "compute"])
def test_a_ledger_that_cannot_be_used(
    tmp_path: Path, what: str, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is computed, and what was spent stays spent."""
    net = dp_network(tmp_path, jobs.bundle_of(dp_joint("horizontal")))
    for party in PARTIES:
        net.change(party, lambda fields: fields["policy"].update(epsilon_budget="3"))
    ledger = net.root / A / "state" / "privacy.sqlite"

    async def scenario() -> tuple[str, str]:
        async with serving(net):
            await works_again(net, tmp_path / "first")
            whole = ledger.read_bytes()
            other = Network(net.root, jobs.bundle_of(dp_joint("horizontal", name="another")), net.addresses)
            with monkeypatch.context() as once:
                at(phase, lambda: HARMED[what](ledger), once)
                said = await ends(other, tmp_path / "out")
            if ledger.is_dir():
                ledger.rmdir()
            ledger.write_bytes(whole)
            await asyncio.sleep(0.2)
            return said, await ends(other, tmp_path / "again")

    assert run(scenario()) == ("budget-ledger", "ran")
    assert net.config(A).ledger.spent() == 2
    elsewhere = {net.config(party).ledger.spent() for party in (B, C)}
    assert elsewhere <= {2, 3}  # what had left them when they heard of it is spent


# ---- connections


def behind_proxies(root: Path) -> tuple[Network, dict[str, Proxy]]:
    root.mkdir()
    task = open_task(jobs.bundle_of(joint_job(disclosure="sealed")))
    rows, roster = sample_rows(60), task.job.roster
    sources = {p: Csv(jobs.write_csv(root / f"{p}.csv", rows[i::3], COLUMNS)) for i, p in enumerate(roster)}
    ports, fronts = free_ports(roster), free_ports(roster)
    addresses = lay_out(root, task, sources, ports, {ports[p]: fronts[p] for p in roster})
    net = impatient(Network(root, task.bundle, addresses))
    return net, {p: Proxy(ports[p], fronts[p]) for p in roster}


KINDS = ("fin", "reset", "flip", "delay", "stall")


async def _trials(tmp_path: Path, plans: list[tuple[str, str, float]]) -> list[tuple[str, str]]:
    """Kind, party, and after which part of what its proxy carries in a job; how each job ended."""
    net, proxies = behind_proxies(tmp_path / "net")
    said = []
    async with AsyncExitStack() as stack:
        for proxy in proxies.values():
            await stack.enter_async_context(proxy)
        await stack.enter_async_context(serving(net))
        await works_again(net, tmp_path / "undisturbed")
        totals = {party: proxy.carried for party, proxy in proxies.items()}
        for number, (kind, party, part) in enumerate(plans):
            proxies[party].arm(kind, int(part * totals[party]))
            said.append((kind, await ends(net, tmp_path / f"out-{number}")))
            proxies[party].arm("", 0)
            await works_again(net, tmp_path / f"again-{number}")
    return said


def expected(said: list[tuple[str, str]]) -> bool:
    return all(
        how == "ran" if kind == "delay" else how in {"ran", "peer-lost", "peer-unreachable", "peer-timeout"}
        for kind, how in said
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_breaks(tmp_path: Path, kind: str) -> None:
    said = run(_trials(tmp_path, [(kind, C, 0.4)]))
    assert expected(said), said
    assert kind == "delay" or said != [(kind, "ran")]


@pytest.mark.slow
def test_connections_that_break_anywhere(tmp_path: Path) -> None:
    coins = random.Random(1)  # noqa: S311  where faults happen
    plans = [(coins.choice(KINDS), coins.choice(PARTIES), 0.9 * coins.random()) for _ in range(60)]
    said = asyncio.run(_trials(tmp_path, plans))
    assert expected(said), said
