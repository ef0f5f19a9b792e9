"""A joint job with all its parties on this machine: one real daemon each, throw-away certificates, loopback.

Nothing is left behind but the result folder.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from anonymize.errors import AnonymizeError
from coordinator.run import run_joint
from party.bundle import Bundle
from party.config import CoordinatorConfig, load_config
from party.data import Source, load
from party.errors import ConfigError, Exit, PartyError, TransportError
from party.peer_files import CERTIFICATE, make_identity

COORDINATOR = "coordinator"
_START_S = 30
_STOP_S = 5


def run_simulated(bundle: Bundle, sources: Mapping[str, Source], out: Path) -> Path:
    """Start one daemon per party, run the job, clean up."""
    with parties_on_loopback(bundle, sources) as config:
        try:
            return run_joint(bundle, config, out)
        except PartyError as error:
            raise _with_the_owners_view(error, bundle, sources) from error


def _with_the_owners_view(error: PartyError, bundle: Bundle, sources: Mapping[str, Source]) -> Exception:
    """Whoever simulates owns all tables: show what a daemon tells its owner only."""
    source = sources.get(error.problem.party or "")
    if source is not None and error.problem.exit_code is Exit.DATA:
        try:
            load(source, bundle, error.problem.party or "")
        except AnonymizeError as own:
            return PartyError(
                own.error_id,
                str(own),
                party=error.problem.party,
                phase=error.problem.phase,
                column=own.column,
                private=own.private,
            )
    return error


Between = Callable[[Sequence[int]], AbstractContextManager[Mapping[int, int]]]
"""Puts something between the parties: given their ports, yields the ports by which others reach them."""


@contextmanager
def directly(ports: Sequence[int]) -> Iterator[Mapping[int, int]]:
    """Nothing in between."""
    yield {port: port for port in ports}


@contextmanager
def parties_on_loopback(
    bundle: Bundle, sources: Mapping[str, Source], between: Between = directly
) -> Iterator[CoordinatorConfig]:
    """Run one `party serve` process per party while the block runs; yield the coordinator's configuration."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jointcut-")))
        ports = dict(zip(bundle.job.roster, _free_ports(len(bundle.job.roster)), strict=True))
        reached = stack.enter_context(between(list(ports.values())))
        addresses = {party: f"127.0.0.1:{reached[port]}" for party, port in ports.items()}
        names = [*bundle.job.roster, COORDINATOR]
        for name in names:
            make_identity(root / name, name)
        for name in names:
            peers = {
                other: {"certificate": str(root / other / CERTIFICATE)}
                | ({"address": addresses[other]} if other in addresses else {})
                for other in names
                if other != name
            }
            settings = _settings(name, peers)
            if name != COORDINATOR:
                settings |= _party_settings(bundle, name, f"127.0.0.1:{ports[name]}", sources[name])
            (root / name / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        for name in bundle.job.roster:
            stack.enter_context(_daemon(name, root / name))
        yield load_config(CoordinatorConfig, root / COORDINATOR / "config.yaml")


def _settings(name: str, peers: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": 1,
        "name": name,
        "tls": {"certificate": CERTIFICATE, "key": "tls/key.pem"},
        "peers": dict(peers),
    }


def _party_settings(bundle: Bundle, name: str, address: str, source: Source) -> dict[str, Any]:
    """A party's part: its table, and an explicit policy that allows this job and nothing else."""
    job, held = bundle.job, bundle.job.held_by(name)
    bounds = [job.columns[c].C or job.model.lkc.C for c in job.names("sensitive") if c in held]
    policy: dict[str, Any] = {
        "coordinators": [COORDINATOR],
        "parties": [party for party in job.roster if party != name],
        "columns": {column: [job.columns[column].role] for column in held},
        "min_l": job.model.lkc.L,
        "min_k": job.model.lkc.K,
        "disclosure": [job.disclosure],
    }
    if bounds:
        policy["max_c"] = str(max(bounds))
    if any(job.columns[column].shared_by == name for column in held):
        policy["share_class"] = True
    table = {"path": str(source.path.resolve())} | (
        {"delimiter": source.delimiter} if source.kind == "csv" else {}
    )
    return {"listen": address, "data": {source.kind: table}, "policy": policy}


def _free_ports(n: int) -> list[int]:
    """Ports that are free now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def _daemon(name: str, folder: Path) -> Iterator[None]:
    """Run one party's daemon; it is asked to stop at the end, and killed if it does not."""
    command = [
        sys.executable,
        "-m",
        "party",
        "serve",
        "--config",
        str(folder / "config.yaml"),
        "--format",
        "json",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise _did_not_start(name, folder / "log")
            assert json.loads(line)["event"] == "listening"
            yield
        finally:
            _stop(process)


def _did_not_start(name: str, log: Path) -> PartyError:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("{")]
    try:
        said = json.loads(lines[-1]).get("message", "") if lines else ""
    except ValueError:
        said = ""
    return TransportError("peer-unreachable", f"the daemon of {name} did not start: {said}", party=name)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def sources_of(bundle: Bundle, given: Mapping[str, Path]) -> dict[str, Source]:
    """One table per party of the job. Raises ConfigError if one is missing, unknown or not there."""
    roster = bundle.job.roster
    for name in given:
        if name not in roster:
            raise ConfigError(
                "usage", f"--data {name}: the job has no such party; it has {', '.join(roster)}"
            )
    missing = [name for name in roster if name not in given]
    if missing:
        raise ConfigError(
            "usage", "no table for " + ", ".join(missing), remedy="give --data NAME=FILE for each party"
        )
    return {name: source_of(given[name]) for name in roster}


def source_of(path: Path) -> Source:
    """A table by its file name: .parquet, or CSV."""
    if not path.is_file():
        raise ConfigError("file-missing", f"{path} is not a file")
    return Source("parquet" if path.suffix == ".parquet" else "csv", path)
