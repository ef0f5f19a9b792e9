"""The fault matrix: each party of a sealed job and its coordinator, in each phase of a run, and what befalls it.

All are processes, with a proxy on each connection. A cell is a run that is held in a phase (at the party which it
befalls; for the coordinator, at the leader), harmed, and let go on. It must end in bounded time: whole, with the
table of an undisturbed run for the coordinator and at every party, or with a documented error and nothing kept.
Then what was done is undone, the same daemons do the next job, and what they keep is looked through: no process, no
temporary or hidden file, no connection too many, an audit whose lines follow each other, a ledger that knows each
release. `make faults` runs all cells and prints the table; docs/faults.md has it.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from jobs.errors import CATALOGUE, PartyError
from tests.attacks.befalling import COORDINATOR
from tests.attacks.site import Site, a_site
from tests.support import harmed
from tests.support.harmed import PHASES
from tests.support.samples import PARTIES

LEADER = PARTIES[0]
ROLES: Mapping[str, str] = dict(
    zip(("coordinator", "leader", "deputy", "other"), (COORDINATOR, *PARTIES), strict=True)
)
LONGEST_B = 200
"""A file on a full disk: shorter than a ledger, a part of a release or a line that is added to a log."""
PAUSE_S = 1.5
"""Shorter than what makes a peer a lost one."""
WHOLE = "ran"
KEPT = "; all parties keep it"
"""Behind how a coordinator ended to which something happened when it had delivered: it has no release then."""
SOME = "; not all keep it (N22)"
"""The two generals' window: a party loses all its links after it has voted, and before all have all votes."""
LINKS_LOST = {"kill", "cut", "stall", "reorder", "corrupt"}

LOST = {"peer-lost", "peer-unreachable", "peer-timeout", "cancelled"}
UNWRITABLE = {"io-failed", "budget-ledger", "audit-failed"}

Fault = Callable[[Site, str], AbstractContextManager[Callable[[], object]]]
"""Entered with somebody's name, it gives what befalls them; left, it is undone."""


# ---- processes


def _signal(site: Site, name: str, number: signal.Signals) -> None:
    if name != COORDINATOR:
        site.daemons.signal(name, number)
    elif not site.running[-1].over:
        site.running[-1].process.send_signal(number)


@contextmanager
def killed(site: Site, name: str) -> Iterator[Callable[[], object]]:
    """Gone; another is started in its place."""
    yield lambda: _signal(site, name, signal.SIGKILL)
    if name != COORDINATOR:
        site.daemons.restart(name)


@contextmanager
def paused(site: Site, name: str) -> Iterator[Callable[[], object]]:
    """Stopped for a moment, while its connections stand."""

    def befalls() -> None:
        _signal(site, name, signal.SIGSTOP)
        asyncio.get_running_loop().call_later(PAUSE_S, _signal, site, name, signal.SIGCONT)

    yield befalls


@contextmanager
def frozen(site: Site, name: str) -> Iterator[Callable[[], object]]:
    """Stopped until the others are done, while its connections stand."""
    run = len(site.running)
    try:
        yield lambda: _signal(site, name, signal.SIGSTOP)
    finally:
        if name != COORDINATOR:
            site.daemons.signal(name, signal.SIGCONT)
        elif len(site.running) > run:
            site.running[run].process.send_signal(signal.SIGCONT)


# ---- disks and clocks


@contextmanager
def full(site: Site, name: str) -> Iterator[Callable[[], object]]:
    """No file can grow beyond some bytes."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    yield lambda: resource.prlimit(site.pid(name), resource.RLIMIT_FSIZE, (LONGEST_B, unlimited[1]))
    if name != COORDINATOR:
        resource.prlimit(site.pid(name), resource.RLIMIT_FSIZE, unlimited)


@contextmanager
def unwritable(site: Site, name: str) -> Iterator[Callable[[], object]]:
    """Nothing in its state folder may be written, nor anything added."""
    state = site.state(name)

    def permit(mode: int) -> None:
        for path in (state, *state.rglob("*")):
            path.chmod(mode | 0o100 if path.is_dir() else mode)

    try:
        yield lambda: permit(0o400)
    finally:
        permit(0o600)


def clock_by(jump: str) -> Fault:
    """Its wall clock jumps."""

    @contextmanager
    def jumped(site: Site, name: str) -> Iterator[Callable[[], object]]:
        clock = site.folder(name) / harmed.CLOCK
        try:
            yield lambda: clock.write_text(jump)
        finally:
            clock.write_text("+0")

    return jumped


# ---- connections


def connections(kind: str) -> Fault:
    """The next bytes over each of its connections are cut off, late, or others."""

    @contextmanager
    def met(site: Site, name: str) -> Iterator[Callable[[], object]]:
        def arm(kind: str) -> None:
            for proxy in site.connections(name):
                proxy.arm(kind, 0)

        try:
            yield lambda: arm(kind)
        finally:
            arm("")

    return met


FAULTS: Mapping[str, tuple[Fault, set[str]]] = {
    "kill": (killed, LOST | {WHOLE, "killed"}),
    "stop, go on": (paused, LOST | {WHOLE}),
    "stop for good": (frozen, LOST | {WHOLE}),
    "cut": (connections("reset"), LOST | {WHOLE}),
    "stall": (connections("stall"), LOST | {WHOLE}),
    "delay": (connections("delay"), {WHOLE}),
    "reorder": (connections("swap"), LOST | {WHOLE}),
    "corrupt": (connections("flip"), LOST | {WHOLE}),
    "disk full": (full, UNWRITABLE | LOST | {WHOLE}),
    "state read-only": (unwritable, UNWRITABLE | LOST | {WHOLE}),
    "clock ahead": (clock_by("+30d"), {WHOLE}),
    "clock back": (clock_by("-1d"), {WHOLE, "tls-failed"}),
}
"""By name: what befalls, and how a run may end. A day ago the certificates of the site were not valid yet."""
OWN_FAULTS = {"kill", "disk full", "state read-only"}
"""Whom these befall may lack the last line about a run in its audit, or in its ledger."""

Cell = tuple[str, str, str]
"""Role, phase, fault."""
CELLS: Sequence[Cell] = tuple(product(ROLES, PHASES, FAULTS))


def possible(cell: Cell) -> bool:
    """Whether this machine can do it."""
    return not cell[2].startswith("clock") or harmed.libfaketime() is not None


@dataclass(frozen=True)
class Ended:
    """How the run of a cell ended, and after how many seconds from what befell it."""

    how: str
    seconds: float


@dataclass(frozen=True)
class _Books:
    """What each party keeps: releases, runs in the audit without an end, releases that the ledger does not know."""

    releases: Mapping[str, int]
    unended: Mapping[str, int]
    uncounted: Mapping[str, int]

    @classmethod
    def of(cls, site: Site) -> _Books:
        """Raises PartyError for an audit that is broken."""
        return cls(
            site.n_releases(),
            {party: site.audit(party)[1] for party in PARTIES},
            {party: site.uncounted(party) for party in PARTIES},
        )


async def cell_of(site: Site, role: str, phase: str, fault: str) -> Ended:
    """Do one cell; return how its run ended. Asserts all that the matrix asks for but that."""
    name, before, out = ROLES[role], _Books.of(site), site.new_out()
    watched = LEADER if name == COORDINATOR else name
    later = 1
    with FAULTS[fault][0](site, name) as befalls:
        run = await site.comes_to(watched, phase, out)
        befalls()
        since = time.monotonic()
        site.goes_on(watched)
        if name == COORDINATOR and fault == "stop for good":
            await site.works(site.new_out())
            later += 1
        else:
            await run.ended()
        seconds = time.monotonic() - since
    how = await run.ended()
    await site.works(site.new_out() if out.exists() else out)
    await site.leaves_nothing()
    n_kept = _check_books(site, before, later, name if fault in OWN_FAULTS else "")
    if 0 < n_kept < len(PARTIES):
        assert fault in LINKS_LOST, f"kept by {n_kept} of {len(PARTIES)}"
        assert phase in ("commit", "kept")
        how += SOME
    elif how != WHOLE and n_kept:
        assert name == COORDINATOR, f"{how}, but the release is kept"
        how += KEPT
    assert how != WHOLE or n_kept
    return Ended(how, seconds)


def _check_books(site: Site, before: _Books, later: int, harmed_party: str) -> int:
    """What the parties keep must be accounted for; return how many of them keep the release of this run.

    later:  how many runs came to a release after it.
    """
    now = _Books.of(site)
    found = {party: n - before.releases[party] - later for party, n in now.releases.items()}
    assert set(found.values()) <= {0, 1}
    for party in PARTIES:
        assert site.bugs(party) == []
        if party == harmed_party:
            continue
        assert now.unended[party] == before.unended[party], f"{party}: a run without an end in the audit"
        assert now.uncounted[party] == before.uncounted[party], f"{party}: its ledger lacks a release"
    site.check_tables()
    return sum(found.values())


async def cells_of(site: Site, cells: Iterable[Cell]) -> AsyncIterator[tuple[Cell, Ended]]:
    """Do cells, one after the other. One that breaks what the matrix asks for ends as BROKEN."""
    async with AsyncExitStack() as stack:
        for proxy in site.proxies.values():
            await stack.enter_async_context(proxy)
        await site.works(site.new_out())
        site.notice_files()
        for cell in cells:
            try:
                yield cell, await cell_of(site, *cell)
            except (AssertionError, PartyError, TimeoutError) as broken:
                yield cell, Ended(f"{BROKEN}: {type(broken).__name__} {broken}", 0)


BROKEN = "BROKEN"


def wrong(cell: Cell, ended: Ended) -> bool:
    """Whether a run ended as it must not."""
    how = ended.how.removesuffix(KEPT if cell[0] == "coordinator" else SOME)
    return how not in {WHOLE, "killed"} | CATALOGUE.keys() or how not in FAULTS[cell[2]][1]


def table(found: Mapping[Cell, Ended]) -> Iterator[str]:
    """How each cell ended, in Markdown; what must not be is bold."""
    yield f"| who, what | {' | '.join(PHASES)} | slowest |"
    yield "| --- " * (len(PHASES) + 2) + "|"
    for role, fault in dict.fromkeys((role, fault) for role, _, fault in found):
        row = {phase: found.get((role, phase, fault)) for phase in PHASES}
        said = [
            "–" if each is None else f"**{each.how}**" if wrong((role, phase, fault), each) else each.how
            for phase, each in row.items()
        ]
        slowest = max(each.seconds for each in row.values() if each is not None)
        yield f"| {role}, {fault} | {' | '.join(said)} | {slowest:.1f} s |"


async def _main(only: Sequence[str]) -> int:
    cells = [cell for cell in CELLS if possible(cell) and all(word in " ".join(cell) for word in only)]
    if not all(map(possible, CELLS)):
        print("libfaketime is not installed (apt-get install faketime): clocks are left as they are")
    found: dict[Cell, Ended] = {}
    with tempfile.TemporaryDirectory() as folder, a_site(Path(folder)) as site:
        async for cell, ended in cells_of(site, cells):
            found[cell] = ended
            print(
                "-" if wrong(cell, ended) else "+",
                *cell,
                "→",
                ended.how,
                f"{ended.seconds:.1f} s",
                flush=True,
            )
    print(*table(found), sep="\n")
    bad = sum(map(wrong, found, found.values()))
    print(f"{len(found)} cells, {bad} of them wrong")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(sys.argv[1:])))
