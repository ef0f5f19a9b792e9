"""Checks of `party check`: state folder, disk, certificates, connections to peers."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from jobs.errors import ConfigError, PartyError
from jobs.task import Task
from jobs.version import __version__, talks_with
from party.admission import wiring_of
from party.net.client import Calls, Described
from party.net.relayed import check_relay
from party.net.sockets import Obstacle
from party.net.wiring import Wiring
from party.owner.config import NodeConfig, PartyConfig, address_of, credentials_of, trusted_peers
from party.owner.identity import in_words, read_bytes, validity

Status = Literal["PASS", "WARN", "FAIL"]

WARN_BYTES, FAIL_BYTES = 2 << 30, 100 << 20
"""Free space of the disk of `state_dir`, below which a release of many rows, or any release, may not fit."""
_FREE_SPACE = "free space; releases stay until you remove them"
CLOCKS_S = 60.0
"""Largest difference of two clocks without a warning. Certificates are valid by the clock of each party."""
_REACH_S = 6.0
"""Time for a peer to be reached. A relay waits 3 s for a party before it says that the party is away."""


@dataclass(frozen=True)
class Check:
    """Result of a check. words: what was found and, of a warning or a failure, what to do."""

    status: Status
    about: str
    words: str

    def __str__(self) -> str:
        return f"  {self.status}         {self.about}: {self.words}"


def checks_of_state(state_dir: Path) -> Iterator[Check]:
    """Check that a daemon can write its folder durably, and how much space is left."""
    folder = next(each for each in (state_dir, *state_dir.parents) if os.path.lexists(each))
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        cure = "give the folder to the daemon's user, mode 0700, on a disk that is not read-only"
        if error.errno == errno.ENOSPC:
            cure = _FREE_SPACE
        yield Check(
            "FAIL", "state folder", f"{folder} cannot be written: {error.strerror}. What to do: {cure}"
        )
        return
    yield Check("PASS", "state folder", f"{state_dir} can be written")
    free = shutil.disk_usage(folder).free
    status: Status = "PASS" if free >= WARN_BYTES else "WARN" if free >= FAIL_BYTES else "FAIL"
    cure = "" if status == "PASS" else f". What to do: {_FREE_SPACE}"
    yield Check(status, "disk", f"{free / (1 << 30):.1f} GiB free{cure}")


def checks_of_certificates(config: NodeConfig, warnings: Mapping[str, str]) -> Iterator[Check]:
    """Check our own certificate, every peer's and the relay's. An unusable certificate of a peer stops that peer
    alone.

    warnings:  :func:`party.owner.config.certificate_warnings` of the configuration.
    """
    files = {config.name: config.tls.certificate}
    files |= {name: entry.certificate for name, entry in config.peers.items()}
    files |= {} if config.relay is None else {config.relay.name: config.relay.certificate}
    for name, file in files.items():
        if name in warnings:
            yield Check("WARN", f"certificate of {name}", warnings[name])
        else:
            end = in_words(validity(read_bytes(file))[1])
            yield Check("PASS", f"certificate of {name}", f"valid until {end}")


def checks_of_relay(config: NodeConfig) -> Iterator[Check]:
    """Check that the relay, if the configuration has a relay, can be reached and knows us."""
    if config.relay is None:
        return
    try:
        asyncio.run(check_relay(_patient(config)))
    except Obstacle as error:
        yield Check("FAIL", "relay", f"{error.reason}. What to do: {error.remedy}")
    else:
        yield Check("PASS", "relay", f"{config.relay.name} at {config.relay.address} knows us")


def checks_of_peers(config: NodeConfig) -> list[Check]:
    """Call every peer with an address: name, TCP, TLS, version, clock and round trip."""
    silent = "no address in `peers`, so the peer calls us, or jobs say the address"
    planned = {name: entry.address or _uncalled(name, silent) for name, entry in config.peers.items()}
    return list(map(_or_not_needed, asyncio.run(_checks_of_calls(config, planned))))


def checks_of_links(config: PartyConfig, task: Task) -> list[Check]:
    """Call the parties that we call in a job, as :func:`checks_of_peers`; say why other parties are not called."""
    if config.name not in task.job.roster:  # the policy's objection says so
        return []
    wiring = wiring_of(config.name, task)
    planned = {name: _planned(config, task, wiring, name) for name in wiring.peers}
    return asyncio.run(_checks_of_calls(config, planned))


def _planned(config: PartyConfig, task: Task, wiring: Wiring, name: str) -> str | Check:
    """Return the address of a party that we call in a job, or the check of a party that we do not call."""
    if name in wiring.carried:
        carrier = wiring.carried[name]
        return _uncalled(name, f"not called: in this job {carrier} carries the messages between us")
    if name not in wiring.called:
        return _uncalled(name, "not called: in this job the peer calls us")
    try:
        return address_of(config, task.job, name)
    except ConfigError as error:
        return Check("FAIL", f"peer {name}", error.problem.text(to_owner=True))


def _uncalled(name: str, words: str) -> Check:
    return Check("PASS", f"peer {name}", words)


def _or_not_needed(check: Check) -> Check:
    """Say, of a peer that is not reached, how to learn if a job needs the call."""
    if check.status != "FAIL":
        return check
    return replace(check, words=f"{check.words}. Does a job need the call? party check --peers --job FILE")


async def _checks_of_calls(config: NodeConfig, planned: Mapping[str, str | Check]) -> list[Check]:
    """Call peers. planned: by peer the address, or the check of a peer that is not called."""
    calls = Calls(_patient(config), credentials_of(config), trusted_peers(config))
    try:
        return await asyncio.gather(*(_check_of_peer(calls, name, plan) for name, plan in planned.items()))
    finally:
        await calls.close()


def _patient(config: NodeConfig) -> NodeConfig:
    """Return a configuration that waits for nobody longer than ``_REACH_S``."""
    connect_s = min(_REACH_S, config.timeouts.connect_s)
    return config.model_copy(update={"timeouts": config.timeouts.model_copy(update={"connect_s": connect_s})})


async def _check_of_peer(calls: Calls, name: str, plan: str | Check) -> Check:
    if isinstance(plan, Check):
        return plan
    about = f"peer {name}"
    try:
        found = await calls.describe(name, plan)
    except PartyError as error:
        return Check("FAIL", about, error.problem.text(to_owner=True))
    if not talks_with(found.version):
        return Check(
            "FAIL", about, f"version {found.version} does not talk with {__version__}. {_same_version(name)}"
        )
    if cures := list(_cures(name, found)):
        return Check("WARN", about, "; ".join(cures))
    return Check(
        "PASS", about, f"{plan}, version {found.version}, {found.round_s * 1000:.0f} ms{_clock(found)}"
    )


def _cures(name: str, found: Described) -> Iterator[str]:
    if found.version.split(".")[:2] != __version__.split(".")[:2]:
        yield f"version {found.version}, and ours is {__version__}. {_same_version(name)}"
    if found.apart_s is not None and abs(found.apart_s) > CLOCKS_S:
        side = "ahead of" if found.apart_s > 0 else "behind"
        yield (
            f"its clock is {abs(found.apart_s):.0f} s {side} ours. What to do: let both machines ask a time server"
        )


def _same_version(name: str) -> str:
    return f"What to do: agree with {name} on a day to install the same version"


def _clock(found: Described) -> str:
    return "" if found.apart_s is None else f", clocks {abs(found.apart_s):.1f} s apart"
