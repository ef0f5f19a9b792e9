"""Parties over loopback mTLS: daemons in this process (quick, and they can be made to misbehave), or real ones."""

from __future__ import annotations

import asyncio
import json
import select
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from coordinator.simulate import CONFIG, COORDINATOR, lay_out
from jobs.data.sources import Csv
from jobs.file.bundle import Bundle
from jobs.loading import open_task
from jobs.release.csv import REPORT, TABLE, read_csv
from jobs.release.folder import OWN_ACCOUNT
from jobs.task import Task
from jointcut import launcher
from party.cli.daemons import LOG
from party.daemon import Daemon
from party.net.mesh import Dial
from party.net.server import PartyServer
from party.owner.accounts import UNFINISHED
from party.owner.config import CoordinatorConfig, PartyConfig, load_config
from party.owner.in_force import Refresh
from tests.support import jobs
from tests.support.bare import bare
from tests.support.commands import Ran
from tests.support.joint import sample_rows
from tests.support.loopback import HOST, free_ports
from tests.support.placed import placed
from tests.support.samples import COLUMNS, joint_job

GUARD_S = 30.0
"""A test that takes longer hangs; nothing is asserted about times below it."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""Writes YAML with libyaml, where it is there, in a tenth of the time of Python."""

MakeDaemon = Callable[[PartyConfig, Callable[[PartyConfig], Dial], Refresh], Daemon]


def yaml_of(fields: Mapping[str, Any]) -> str:
    """Return a configuration or a job as YAML."""
    text = yaml.dump(fields, Dumper=_DUMPER, sort_keys=False)
    assert isinstance(text, str)
    return text


@dataclass
class Network:
    """Folders with identities and configurations of the parties of a job and its coordinator."""

    root: Path
    bundle: Bundle
    addresses: dict[str, str]

    @property
    def task(self) -> Task:
        return open_task(self.bundle)

    @property
    def roster(self) -> tuple[str, ...]:
        return self.bundle.job.roster

    @property
    def coordinator(self) -> CoordinatorConfig:
        return load_config(CoordinatorConfig, self.root / COORDINATOR / CONFIG)

    def config_path(self, name: str) -> Path:
        return self.root / name / CONFIG

    def config(self, name: str) -> PartyConfig:
        return load_config(PartyConfig, self.config_path(name))

    def change(self, name: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Rewrite a configuration."""
        path = self.config_path(name)
        fields = yaml.load(path.read_text(), Loader=_LOADER)  # noqa: S506  a safe loader
        change(fields)
        path.write_text(yaml_of(fields))

    def releases(self, party: str) -> list[Path]:
        """Return the releases that were delivered to a party; hidden folders are half-written ones."""
        folder = self.root / party / "state" / "releases"
        return sorted(folder.iterdir()) if folder.exists() else []

    def account(self, party: str) -> Path:
        """The account of a party's one release; daemons, not in this thread, write it once the run is over."""
        (folder,) = self.releases(party)
        deadline = time.monotonic() + GUARD_S
        account = folder / OWN_ACCOUNT
        while not account.is_file() or UNFINISHED in json.loads(account.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return account


def network(root: Path, bundle: Bundle, tables: Mapping[str, Path]) -> Network:
    """Lay out a network for a job; ``tables`` by party."""
    sources = {name: Csv(path) for name, path in tables.items()}
    ports = free_ports(bundle.job.roster)
    lay_out(root, open_task(bundle), sources, ports, {port: port for port in ports.values()})
    made = Network(root, bundle, {name: f"{HOST}:{port}" for name, port in ports.items()})
    for party in bundle.job.roster:  # tests run several jobs on one network
        made.change(party, lambda fields: fields["policy"].update(max_lkc_releases=100, other_domains=True))
    return made


def sample_network(root: Path, n_rows: int = 60, **job: Any) -> Network:
    """The sample job with its rows dealt out among its parties."""
    fields = joint_job(**job)
    bundle = jobs.bundle_of(fields)
    rows, parties = sample_rows(n_rows), list(fields["parties"])
    root.mkdir(parents=True, exist_ok=True)
    tables = {}
    for i, name in enumerate(parties):
        tables[name] = jobs.write_csv(root / f"{name}.csv", rows[i :: len(parties)], COLUMNS)
    return network(root, bundle, tables)


# ---- daemons in this process


@asynccontextmanager
async def serving(
    net: Network, daemons: Mapping[str, MakeDaemon] | None = None, only: Sequence[str] | None = None
) -> AsyncIterator[dict[str, PartyServer]]:
    """Serve parties of a network in this process, some of them by other daemons than ours."""
    servers = {}
    try:
        for name in net.roster if only is None else only:
            make = (daemons or {}).get(name, Daemon)
            servers[name] = PartyServer(net.config(name), make, net.config_path(name))
            await servers[name].start()
        yield servers
    finally:
        await asyncio.gather(*(server.stop() for server in servers.values()))


@contextmanager
def served(net: Network, only: Sequence[str] | None = None) -> Iterator[None]:
    """Serve parties of a network from a thread of this process: as real daemons, but at once."""
    started: Future[Callable[[], object]] = Future()

    async def serve() -> None:
        stopped = asyncio.Event()
        async with serving(net, only=only):
            loop = asyncio.get_running_loop()
            started.set_result(lambda: loop.call_soon_threadsafe(stopped.set))
            await stopped.wait()

    with ThreadPoolExecutor(1) as thread:
        work = thread.submit(asyncio.run, serve())
        wait((started, work), timeout=GUARD_S, return_when=FIRST_COMPLETED)
        if work.done():
            work.result()
        stop = started.result(0)
        try:
            yield
        finally:
            stop()
            work.result(GUARD_S)


# ---- daemons as processes


class DaemonProcess:
    """Process of `party serve`. Leaving the block asks the process to stop, and kills the process if necessary."""

    def __init__(self, name: str, folder: Path, prefix: Sequence[str] = ()) -> None:
        serve = [*prefix, *command("serve", "--config", folder / CONFIG, "--format", "json", program="party")]
        with (folder / LOG).open("ab") as log:
            self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=log)

    def __enter__(self) -> DaemonProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)  # without waiting for a job
        try:
            self.process.wait(GUARD_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def wait_until_it_listens(self) -> None:
        """Wait for the first line."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], GUARD_S)
        assert ready
        assert json.loads(self.process.stdout.readline())["event"] == "listening"


@dataclass
class Processes:
    """Real daemons, by party."""

    net: Network
    running: dict[str, DaemonProcess] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)
    prefixes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Words before the command of a party's daemon."""

    def start(self, *names: str) -> None:
        for name in names:
            self.lives[name] = len(self.log(name))
            self.running[name] = DaemonProcess(name, self.net.root / name, self.prefixes.get(name, ()))
        for name in names:
            self.running[name].wait_until_it_listens()

    def signal(self, name: str, number: signal.Signals) -> None:
        self.running[name].process.send_signal(number)

    def restart(self, name: str) -> None:
        """Start a daemon that was killed again."""
        self.running[name].process.wait(GUARD_S)
        self.running[name].__exit__(None, None, None)
        self.start(name)

    def log(self, name: str) -> str:
        """Everything a party's daemons ever logged."""
        path = self.net.root / name / "log"
        return path.read_text() if path.exists() else ""

    def log_of_this_life(self, name: str) -> list[dict[str, Any]]:
        """Return the log of the daemon since it was started last; a line that is being written does not count."""
        log = self.log(name)
        lines = log[self.lives[name] : log.rfind("\n") + 1].splitlines()
        assert all(line.startswith("{") for line in lines), (
            f"{log[: self.lives[name]][-400:]!r}, then {lines}"
        )
        return [json.loads(line) for line in lines]


@contextmanager
def processes(
    net: Network, only: Sequence[str] | None = None, prefixes: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Processes]:
    """Run real daemons while the block runs."""
    running = Processes(net, prefixes=prefixes or {})
    try:
        running.start(*(net.roster if only is None else only))
        yield running
    finally:
        for daemon in running.running.values():
            daemon.process.send_signal(signal.SIGCONT)
            daemon.process.send_signal(signal.SIGINT)
        for daemon in running.running.values():
            daemon.__exit__(None, None, None)


def command(*arguments: str | Path, program: str = "coordinator") -> list[str]:
    return [*launcher.command(program), *map(str, arguments)]


def call(*arguments: str | Path, program: str = "coordinator", cwd: Path | None = None) -> Ran:
    """Run one of our programs to its end."""
    done = subprocess.run(
        command(*arguments, program=program),
        capture_output=True,
        text=True,
        timeout=2 * GUARD_S,
        cwd=cwd,
        env=bare(),
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def write_job(folder: Path, fields: Mapping[str, Any], name: str = "job.yaml") -> Path:
    """Write a job as YAML, with copies of the taxonomies that it names elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    columns = {name: _beside(column, folder) for name, column in fields["columns"].items()}
    path.write_text(yaml_of(placed({**fields, "columns": columns})))
    return path


def _beside(column: Any, folder: Path) -> Any:
    """A column of a job whose taxonomy lies in the folder of the job: commands take it from nowhere else."""
    file = column.get("taxonomy") if isinstance(column, Mapping) else None
    if not isinstance(file, str) or not Path(file).is_absolute():
        return column
    copy = folder / "hierarchies" / Path(file).name
    copy.parent.mkdir(exist_ok=True)
    if copy.resolve() != Path(file).resolve():
        shutil.copy(file, copy)
    return {**column, "taxonomy": str(copy.relative_to(folder))}


def released(folder: Path, bundle: Bundle) -> Any:
    """The multiset of rows of a result folder."""
    return jobs.multiset(read_csv(folder / TABLE, bundle.job.published))


def report_of(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / REPORT).read_text())
    assert isinstance(found, dict)
    return found
