"""Three daemons and a coordinator: each connection through a proxy, each state folder on a small disk."""

from __future__ import annotations

import asyncio
import atexit
import json
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

from coordinator.run import conduct
from coordinator.simulate import COORDINATOR
from jobs.errors import PartyError
from tests.matrix.mounts import small_disk, unmount
from tests.matrix.rehearsal import PAUSED
from tests.support import jobs
from tests.support.bare import bare
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, Network, Processes, processes, released, sample_network, write_job
from tests.support.proxy import Proxy
from tests.support.samples import PARTIES
from tests.support.silent import SILENT

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc")
"""C compiler, for clocks that jump. libfaketime takes locks: a daemon that forks stands still under it."""
NODES = (*PARTIES, COORDINATOR)


class Defect(Exception):
    """State that no fault may lead to."""


def until(met: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + GUARD_S
    while not met():
        if time.monotonic() > deadline:
            raise Defect(otherwise)
        time.sleep(0.02)


class Links:
    """Proxies between every two of us, by who calls and who is called. They run in a thread of their own."""

    def __init__(self, net: Network) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._stack = AsyncExitStack()
        pairs = [(caller, called) for caller in NODES for called in PARTIES if caller != called]
        ports = free_ports(map(str, pairs))
        self._proxies = {
            pair: Proxy(int(net.addresses[pair[1]].rsplit(":", 1)[1]), ports[str(pair)]) for pair in pairs
        }
        for caller, called in pairs:
            address = f"{HOST}:{ports[str((caller, called))]}"
            net.change(
                caller, lambda fields, at=(called, address): fields["peers"][at[0]].update(address=at[1])
            )

    def __enter__(self) -> Links:
        self._thread.start()
        for proxy in self._proxies.values():
            self._do(self._stack.enter_async_context(proxy))
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(GUARD_S)
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(GUARD_S)

    def arm(self, node: str, kind: str) -> None:
        """Let each link of a node do something with its next bytes; empty: nothing."""

        async def arm() -> None:
            for pair, proxy in self._proxies.items():
                if node in pair:
                    proxy.arm(kind, 0)

        self._do(arm())


class Rehearsal:
    """Process of a coordinator that stops at the beginning of a phase; started before it is needed."""

    def __init__(self, prefix: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as err:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "tests.matrix.rehearsal"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
                cwd=ROOT,
                env=bare(),
            )

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def begin(self, phase: str, *words: str | Path) -> None:
        """Run a job; return at the beginning of a phase."""
        self.tell(json.dumps({"phase": phase, "words": list(map(str, words))}))
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], GUARD_S)
        if not ready or self.process.stdout.readline().strip() != PAUSED:
            raise Defect(f"the job does not come to {phase}: {self.said()[-1:]}")

    def go_on(self) -> None:
        self.tell("")

    def end(self) -> int:
        """Wait for the end; return the exit code."""
        try:
            return self.process.wait(GUARD_S)
        except subprocess.TimeoutExpired:
            raise Defect("the coordinator does not end") from None

    def said(self) -> list[dict[str, Any]]:
        """Return what the coordinator printed on standard error."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@dataclass
class Site:
    """The daemons and what is between them. clocks: the processes' clocks can jump."""

    folder: Path
    net: Network
    links: Links
    daemons: Processes
    clocks: bool
    next: Rehearsal = field(init=False)
    usual: Any = None
    """Rows of an undisturbed run."""
    n: int = 0

    def __post_init__(self) -> None:
        self._fields = json.loads(self.net.bundle.job.canonical())
        self.next = self._rehearsal()

    @property
    def outs(self) -> Path:
        return self.disk_of(COORDINATOR)

    def disk_of(self, node: str) -> Path:
        return self.net.root / node / ("outs" if node == COORDINATOR else "state")

    def clock_of(self, node: str) -> Path:
        return self.net.root / node / "clock"

    def _rehearsal(self) -> Rehearsal:
        prefix = under_clock(self.clock_of(COORDINATOR)) if self.clocks else ()
        return Rehearsal(prefix, self.folder / "coordinator.log")

    def job(self, name: str) -> Path:
        """Write a job that no ledger knows."""
        return write_job(self.folder / "jobs", {**self._fields, "name": name}, f"{name}.yaml")

    @contextmanager
    def rehearsing(self, phase: str, name: str) -> Iterator[Rehearsal]:
        """Run a job to the beginning of a phase; it goes on in the block."""
        run, job = self.next, self.job(name)
        config = self.net.config_path(COORDINATOR)
        try:
            run.begin(phase, "run", job, "--out", self.outs / name, "--config", config, "--format", "json")
            yield run
        finally:
            run.close()
            self.next = self._rehearsal()

    def works(self, name: str, out: Path | None = None) -> None:
        """Run another job. Raises Defect if the daemons are not free for it in time, or if it fails.

        out:  the folder of the release, if not the one of the job's name.
        """
        out = out or self.outs / name
        bundle = jobs.bundle_of({**self._fields, "name": name})
        net, said = Network(self.net.root, bundle, self.net.addresses), ""
        deadline = time.monotonic() + GUARD_S
        while time.monotonic() < deadline:
            try:
                asyncio.run(conduct(net.task, net.coordinator, out, voice=SILENT))
            except PartyError as error:
                said = error.problem.error_id
                if said not in {"busy", "peer-unreachable"}:
                    break
                time.sleep(0.1)
            else:
                if self.usual is not None and self.table_of(out) != self.usual:
                    raise Defect("the next job has another table")
                return
        raise Defect(f"the next job does not run: {said}")

    def table_of(self, folder: Path) -> Any:
        return released(folder, self.net.bundle)

    def close(self) -> None:
        self.next.close()


def under_clock(clock: Path) -> Sequence[str]:
    """Return the words before a command whose wall clock has its offset in a file."""
    set_clock(clock, 0)
    return ("env", f"LD_PRELOAD={_library()}", f"CLOCK_OFFSET={clock}")


def set_clock(clock: Path, seconds: int) -> None:
    """Let a wall clock jump. The processes have the file in their memory: it is changed in place."""
    with clock.open("r+b" if clock.exists() else "wb") as file:
        file.write(struct.pack("@l", seconds))


@cache
def _library() -> Path:
    """Compile clock.c once for this process."""
    assert COMPILER
    made = Path(tempfile.mkdtemp(prefix="jointcut-clock-")) / "clock.so"
    atexit.register(shutil.rmtree, made.parent)
    source = Path(__file__).with_name("clock.c")
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


@contextmanager
def a_site(folder: Path, *, clocks: bool = False) -> Iterator[Site]:
    """Make a site for cells. clocks: for those whose clocks jump."""
    folder.mkdir(parents=True, exist_ok=True)
    net = sample_network(folder / "net", 90, disclosure="sealed")
    for name in NODES:
        timeouts = {"connect_s": 3, "round_s": 15, "coordinator_s": 15}
        net.change(name, lambda fields, said=timeouts: fields.update(timeouts=said))
    for party in PARTIES:
        many = {"max_lkc_releases": 10**6, "max_questions": 10**6}
        net.change(party, lambda fields, said=many: fields["policy"].update(said))
    with ExitStack() as stack:
        links = stack.enter_context(Links(net))
        prefixes = {party: under_clock(net.root / party / "clock") for party in PARTIES if clocks}
        for node in NODES:
            disk = net.root / node / ("outs" if node == COORDINATOR else "state")
            if small_disk(disk):
                stack.callback(unmount, disk)
        daemons = stack.enter_context(processes(net, prefixes=prefixes))
        site = Site(folder, net, links, daemons, clocks)
        stack.callback(site.close)
        site.works("undisturbed")
        site.usual = site.table_of(site.outs / "undisturbed")
        yield site
