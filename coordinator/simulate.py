"""Joint job with all parties on this machine: a real daemon for each, throw-away certificates, loopback.

Only the result folder stays, with each party's account for its owner: the user has all tables.
"""

from __future__ import annotations

import logging
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from anonymize.errors import AnonymizeError
from coordinator.arguments import source_of
from coordinator.daemons import Daemons
from coordinator.owner_figures import keep_own_of_all, tell_own_of_all
from coordinator.progress import CONSOLE, OWN_FIGURES, Voice
from coordinator.run import run_joint
from jobs.data.dialect import SNIFFED, Dialect
from jobs.data.sources import Source
from jobs.errors import ConfigError, Exit, PartyError
from jobs.options import NO_OPTIONS, Options
from jobs.owner.objections import allowance
from jobs.release.folder import OWN_PAGE, refuse_existing
from jobs.task import Task
from party.owner.accounts import BEING_MADE, UNFINISHED, accounts
from party.owner.config import CoordinatorConfig, PartyConfig, load_config
from party.owner.peer_files import CERTIFICATE, make_identity

log = logging.getLogger("coordinator")

COORDINATOR = "coordinator"
CONFIG = "config.yaml"
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_ACCOUNT_S, _POLL_S = 600.0, 0.05
"""Seconds for the daemons to finish the accounts of their own records, and seconds between two looks."""


def run_simulated(
    task: Task,
    sources: Mapping[str, Source],
    out: Path,
    options: Options = NO_OPTIONS,
    voice: Voice = CONSOLE,
) -> Path:
    """Start a daemon per party, run the job, clean up. Raises ConfigError if the folder exists."""
    refuse_existing(out)
    with parties_on_loopback(task, sources) as config:
        try:
            run_joint(task, config, out, options, voice)
        except PartyError as error:
            raise _with_the_owners_view(error, task, sources) from error
        own = own_accounts(task, config, voice=voice)
        pages = {party: page for party in own for page in _own_pages(_state_of(config, party))}
    keep_own_of_all(out, own, pages)
    tell_own_of_all(own, voice.note)
    return out


def own_accounts(
    task: Task, config: CoordinatorConfig, runs: int = 1, voice: Voice = CONSOLE
) -> dict[str, dict[str, Any]]:
    """Return each party's own account of the last of ``runs`` runs of a job. All runs came to a release."""
    with voice.progress(task.job.name, len(task.job.roster)) as progress:
        progress.phase(OWN_FIGURES)
        until = time.monotonic() + _ACCOUNT_S
        found = {party: _account(_state_of(config, party), runs, until) for party in task.job.roster}
    for party in [party for party, account in found.items() if account is None]:
        log.warning("%s gives no account of its records", party, extra={"job": task.job.name})
    return {party: account for party, account in found.items() if account is not None}


def _account(state_dir: Path, runs: int, until: float) -> dict[str, Any] | None:
    """Wait for a party's accounts, written by the daemon after a run; return the last account."""
    while True:
        made = [own for _, own in accounts(state_dir, runs, lost=False) if own.get(UNFINISHED) != BEING_MADE]
        if len(made) == runs:
            return None if UNFINISHED in made[-1] else made[-1]
        if time.monotonic() > until:
            return None
        time.sleep(_POLL_S)


def _own_pages(state_dir: Path) -> Iterator[str]:
    """Yield the page of a party for its owner, which stands before the account does."""
    for path, _ in accounts(state_dir, 1, lost=False):
        page = path.parent / OWN_PAGE
        if page.is_file():
            yield page.read_text(encoding="utf-8")


def _state_of(config: CoordinatorConfig, party: str) -> Path:
    """Return the state folder of a party, as made by :func:`lay_out`."""
    return load_config(PartyConfig, config.peers[party].certificate.parents[1] / CONFIG).state_dir


def _with_the_owners_view(error: PartyError, task: Task, sources: Mapping[str, Source]) -> Exception:
    """Add a daemon's private messages for its owner: the user of a simulation owns all tables."""
    source = sources.get(error.problem.party or "")
    if source is not None and error.problem.exit_code is Exit.DATA:
        try:
            task.load(source, error.problem.party or "")
        except AnonymizeError as own:
            return PartyError(
                own.error_id,
                str(own),
                party=error.problem.party,
                phase=error.problem.phase,
                column=own.column,
                private=own.private,
                remedy=own.remedy,
            )
    return error


Between = Callable[[Sequence[int]], AbstractContextManager[Mapping[int, int]]]
"""Function for an intermediary between the parties: takes the ports, yields the ports for peers."""


@contextmanager
def directly(ports: Sequence[int]) -> Iterator[Mapping[int, int]]:
    """Put nothing in between."""
    yield {port: port for port in ports}


@contextmanager
def parties_on_loopback(
    task: Task, sources: Mapping[str, Source], between: Between = directly
) -> Iterator[CoordinatorConfig]:
    """Run a daemon per party during the block; yield the coordinator's configuration."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jointcut-")))
        with _signals_held():
            daemons = stack.enter_context(Daemons())
        ports = free_ports(task.job.roster)
        reached = stack.enter_context(between(list(ports.values())))
        lay_out(root, task, sources, ports, reached)
        daemons.start({name: root / name / CONFIG for name in task.job.roster})
        yield load_config(CoordinatorConfig, root / COORDINATOR / CONFIG)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait for the end of the block: nobody would stop a process started halfway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = {n: signal.signal(n, lambda number, _: held.append(number)) for n in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for signum in held:
        signal.raise_signal(signum)


def lay_out(
    root: Path,
    task: Task,
    sources: Mapping[str, Source],
    ports: Mapping[str, int],
    reached: Mapping[int, int],
) -> dict[str, str]:
    """Make a folder with identity and configuration for every party and the coordinator.

    ports: where each party listens; ``reached`` maps the ports to the ports for peers. Returns the parties'
           addresses for peers.
    """
    roster = task.job.roster
    if COORDINATOR in roster:
        raise ConfigError("usage", f"a party of a simulated job cannot be called {COORDINATOR}")
    addresses = {party: f"127.0.0.1:{reached[ports[party]]}" for party in roster}
    names = [*roster, COORDINATOR]
    for name in names:
        make_identity(root / name, name)
    for name in names:
        settings = _settings(name, {other: _peer(root, other, addresses) for other in names if other != name})
        if name != COORDINATOR:
            settings |= _party_settings(task, name, f"127.0.0.1:{ports[name]}", sources[name])
        (root / name / CONFIG).write_text(yaml.safe_dump(settings, sort_keys=False))
    return addresses


def _peer(root: Path, name: str, addresses: Mapping[str, str]) -> dict[str, str]:
    address = {"address": addresses[name]} if name in addresses else {}
    return {"certificate": str(root / name / CERTIFICATE)} | address


def _settings(name: str, peers: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": 1,
        "name": name,
        "tls": {"certificate": CERTIFICATE, "key": "tls/key.pem"},
        "peers": dict(peers),
    }


def _party_settings(task: Task, name: str, address: str, source: Source) -> dict[str, Any]:
    """Return a party's settings: the table, and an explicit policy for only the job, which needs no approval."""
    return {
        "listen": address,
        "data": source.settings(),
        "policy": {"approval": "automatic", **allowance(task, name, COORDINATOR)},
    }


def free_ports(names: Sequence[str]) -> dict[str, int]:
    """Return a free port for each name."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in names]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return {name: each.getsockname()[1] for name, each in zip(names, sockets, strict=True)}


def sources_of(task: Task, given: Mapping[str, Path], dialect: Dialect = SNIFFED) -> dict[str, Source]:
    """Return a table per party of the job. Raises ConfigError for a missing or unknown table."""
    roster = task.job.roster
    for name in given:
        if name not in roster:
            raise ConfigError(
                "usage", f"--data {name}: the job has no party {name}; the parties are {', '.join(roster)}"
            )
    missing = [name for name in roster if name not in given]
    if missing:
        raise ConfigError(
            "usage", "no table for " + ", ".join(missing), remedy="give --data NAME=FILE for each party"
        )
    return {name: source_of(given[name], dialect) for name in roster}
