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

import pytest

from coordinator.run import conduct
from jobs.lkc import mixed
from jobs.lkc.result import Made
from jobs.lkc.rows import RowCoding
from jobs.task import Task
from tests.attacks.befalling import PHASES, at, behind_proxies, ends, impatient, works_again
from tests.support import jobs
from tests.support.dp_jobs import dp_joint, dp_network
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.network import Network, Processes, processes, sample_network, serving
from tests.support.samples import COLUMNS, PARTIES, columns

A, B, C = PARTIES


def before_the_mix(happens: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen once, when the first party has run its protocol, before it reads its rows again."""
    honest, done = mixed.row_coding, []

    def interrupted(task: Task, result: Made) -> RowCoding:
        if not done:
            done.append(happens())
        return honest(task, result)

    monkeypatch.setattr(mixed, "row_coding", interrupted)


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


def test_what_could_not_be_taken_away_goes_with_the_next_release(tmp_path: Path) -> None:
    """A state folder that could not be written to when a run ended still has what was set aside, unlocked."""
    net = sample_network(tmp_path / "net")
    left = net.root / B / "state" / "releases" / ".sample-0123456789ab-abcd_123"
    left.mkdir(parents=True)
    (left / ".jointcut-lock").touch()

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert not left.exists()
    assert len(net.releases(B)) == 1


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
