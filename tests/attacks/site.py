"""Three daemons and a coordinator, all processes, with a proxy on every connection; and what they leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from coordinator import simulate
from party.owner.audit import FOLDER
from party.owner.audit_check import check, lines_of
from tests.attacks.befalling import COORDINATOR, Proxy, kept
from tests.support import harmed
from tests.support.bare import bare
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, Network, Processes, processes, released, sample_network, write_job
from tests.support.samples import PARTIES

TIMEOUTS = {"keepalive_s": 1, "connect_s": 3, "round_s": 8, "coordinator_s": 8, "submit_s": 8}
LONGEST_S = 45.0
"""A run that takes longer hangs: several times what the time-outs come to."""
FEW_FILES = 12
"""More open files of a daemon than when the site was new: connections that are about to be given up."""
_NOT_YET = {"busy", "peer-unreachable"}
_LOCKS = {".lock", ".jointcut-lock"}

Pair = tuple[str, str]
"""Who dials, and whom."""


@dataclass
class Run:
    """A coordinator at work."""

    out: Path
    process: Process
    said: asyncio.Task[tuple[bytes, bytes]]

    @property
    def over(self) -> bool:
        return self.process.returncode is not None

    async def ended(self) -> str:
        """How it ended: `ran`, the id of its error, or `killed`. Raises TimeoutError if it hangs."""
        async with asyncio.timeout(LONGEST_S):
            _, told = await asyncio.shield(self.said)
        if self.process.returncode == 0:
            assert self.out.is_dir()
            return "ran"
        assert not self.out.exists()
        if self.process.returncode == -signal.SIGKILL:
            return "killed"
        errors = [said["error"] for line in told.splitlines() if "error" in (said := json.loads(line))]
        assert errors, told
        return str(errors[-1])


@dataclass
class Site:
    """The daemons of a job, the proxies between all, and where releases go."""

    daemons: Processes
    proxies: Mapping[Pair, Proxy]
    job: Path
    root: Path
    running: list[Run] = field(default_factory=list)
    seen: dict[Path, Any] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    n: int = 0

    @property
    def net(self) -> Network:
        return self.daemons.net

    @property
    def outs(self) -> Path:
        return self.root / "outs"

    def new_out(self) -> Path:
        self.n += 1
        return self.outs / str(self.n)

    def folder(self, name: str) -> Path:
        """Where a party, or the coordinator, has its configuration."""
        return self.net.root / name

    def state(self, name: str) -> Path:
        """What a party keeps in; what the coordinator writes to."""
        return self.outs if name == COORDINATOR else self.net.config(name).state_dir

    def pid(self, name: str) -> int:
        """The process of a party, or of the coordinator that was begun last."""
        return self.running[-1].process.pid if name == COORDINATOR else self.daemons.running[name].process.pid

    def connections(self, name: str) -> list[Proxy]:
        """The proxies on all connections of somebody."""
        return [proxy for pair, proxy in self.proxies.items() if name in pair]

    async def begin(self, out: Path) -> Run:
        """Start a coordinator."""
        config = self.net.config_path(COORDINATOR)
        said = ("run", self.job, "--out", out, "--config", config, "--format", "json")
        program = [*harmed.command("coordinator"), *map(str, said)]
        process = await asyncio.create_subprocess_exec(
            *program, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, env=bare()
        )
        self.running.append(Run(out, process, asyncio.create_task(process.communicate())))
        return self.running[-1]

    async def works(self, out: Path) -> None:
        """A run comes to a release, once what was before is put away."""
        until = time.monotonic() + LONGEST_S
        while (how := await (await self.begin(out)).ended()) != "ran":
            assert how in _NOT_YET, how
            assert time.monotonic() < until, how
            await asyncio.sleep(0.3)

    async def comes_to(self, name: str, phase: str, out: Path) -> Run:
        """Start a run, and return when it is held in a phase at a party."""
        folder = self.folder(name)
        (folder / harmed.HOLD).write_text(phase)
        run, until = await self.begin(out), time.monotonic() + LONGEST_S
        while not (folder / harmed.HELD).exists():
            assert not run.over, run.said.result()
            assert time.monotonic() < until, f"{phase} is not reached"
            await asyncio.sleep(0.01)
        return run

    def goes_on(self, name: str) -> None:
        """Let a run that is held at a party go on."""
        (self.folder(name) / harmed.HELD).unlink()

    # ---- what is left

    def n_releases(self) -> dict[str, int]:
        """By party; half-written ones included."""
        return {party: len(self.net.releases(party)) for party in PARTIES}

    def check_tables(self) -> None:
        """All releases that anybody has have the rows of the first."""
        for folder in {*kept(self.net), *self.outs.iterdir()} - self.seen.keys():
            self.seen[folder] = released(folder, self.net.bundle)
        assert len({frozenset(rows.items()) for rows in self.seen.values()}) == 1

    async def leaves_nothing(self) -> None:
        """Processes, hidden and temporary files and connections go within a moment."""
        until = time.monotonic() + GUARD_S
        while left := [*self._strangers(), *self._hidden(), *self._open(), *(self.root / "tmp").iterdir()]:
            assert time.monotonic() < until, left
            await asyncio.sleep(0.05)

    def _strangers(self) -> list[str]:
        """Processes of this site that neither are daemons nor were started by one that lives."""
        ours = {daemon.process.pid for daemon in self.daemons.running.values()}
        mark, found = f"TMPDIR={self.root / 'tmp'}".encode(), {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                    found[int(process.name)] = parent
            except OSError:  # it has ended
                continue
        return [
            f"process {pid}"
            for pid, parent in found.items()
            if pid not in ours and parent not in {*ours, *found}
        ]

    def _hidden(self) -> list[Path]:
        places = [self.outs, *(self.state(party) for party in PARTIES)]
        return [path for place in places for path in place.rglob(".*") if path.name not in _LOCKS]

    def _n_files(self, name: str) -> int:
        return len(os.listdir(f"/proc/{self.pid(name)}/fd"))

    def notice_files(self) -> None:
        """Take what the daemons have open now, files and sockets, for what they need."""
        self.files = {party: self._n_files(party) for party in PARTIES}

    def _open(self) -> list[str]:
        return [
            f"{party} has {now} files open"
            for party, then in self.files.items()
            if (now := self._n_files(party)) > then + FEW_FILES
        ]

    def audit(self, name: str) -> tuple[list[str], int]:
        """What the owner should know of its audit, and how many runs have begun there and not ended.

        Raises PartyError if its lines do not follow each other.
        """
        folder = self.state(name) / FOLDER
        runs = {what: set[str]() for what in ("start", "end")}
        for line in lines_of(folder):
            runs.get(line.what, set()).add(str(line.fields.get("run")))
        return check(folder).notes, len(runs["start"] - runs["end"])

    def uncounted(self, name: str) -> int:
        """How many releases a party keeps of which its ledger does not know."""
        entries = self.net.config(name).ledger.entries()
        return len(self.net.releases(name)) - sum(len(entry.deliveries) for entry in entries)

    def bugs(self, name: str) -> list[str]:
        """Lines of a party's log that tell of a bug."""
        return [
            line for line in self.daemons.log(name).splitlines() if "Traceback" in line or '"bug"' in line
        ]


def _dialled(names: Sequence[str]) -> list[Pair]:
    """Who dials whom: the coordinator all, a party those after it."""
    return [*((COORDINATOR, name) for name in names), *combinations(names, 2)]


def _with_proxies(net: Network) -> dict[Pair, Proxy]:
    """Put a proxy on every connection, by the configurations of those who dial."""
    pairs = _dialled(net.roster)
    fronts = free_ports([f"{a} {b}" for a, b in pairs])
    proxies = {}
    for (dials, dialled), front in zip(pairs, fronts.values(), strict=True):
        proxies[dials, dialled] = Proxy(int(net.addresses[dialled].partition(":")[2]), front)
        address = f"{HOST}:{front}"
        net.change(dials, lambda said, to=dialled, at=address: said["peers"][to].update(address=at))  # type: ignore[misc]
    for name in (*net.roster, COORDINATOR):
        net.change(name, lambda said: said.update(timeouts=TIMEOUTS))
    return proxies


@contextmanager
def a_site(root: Path) -> Iterator[Site]:
    """Daemons that can be harmed, behind proxies that are not serving yet."""
    net = sample_network(root / "net", disclosure="sealed")
    proxies = _with_proxies(net)
    job = write_job(root / "job", json.loads(net.bundle.job.canonical()))
    for folder in ("outs", "tmp"):
        (root / folder).mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate, "command", harmed.command)
        patch.setenv("TMPDIR", str(root / "tmp"))
        with processes(net) as daemons:
            yield Site(daemons, proxies, job, root)
