"""What `party check` looks at besides a job: one finding for each thing, PASS, WARN or FAIL, with what to do."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.errors import PartyError, Problem
from party.net.control import Described
from party.net.protocol import OURS, Talked, common
from party.owner.config import RELAYED, PartyConfig, credentials_of, installed_peers
from party.owner.identity import Peer, expires_soon, in_words, validity
from party.owner.in_force import Running
from party.owner.readiness import LEAST_FREE_BYTES, free_bytes

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
RESULTS = (PASS, WARN, FAIL)
"""From best to worst. WARN: work goes on, but not for ever. FAIL: jobs, or jobs with this peer, do not run."""
ENOUGH_FREE_BYTES = 1 << 30
CLOCKS_DIFFER_S = 60.0
"""Certificates are dated back by five minutes: beyond that a new one is refused; warned of well before."""
CLOCKS_FAR_S = 300.0

Describe = Callable[[str, str], Awaitable[Described]]
"""Ask a peer at an address who it is. Raises PartyError that says what is in the way."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. subject: a word for a thing of ours, or a peer's name.

    error:  the id of what went wrong, where it is one of the catalogue; the command ends with the first FAIL's.
    """

    result: str
    subject: str
    message: str
    remedy: str = ""
    problem: Problem | None = None

    @property
    def words(self) -> str:
        """A line for people."""
        todo = f". What to do: {self.remedy}" if self.remedy and self.result != PASS else ""
        return f"{self.subject:12} {self.result}  {self.message}{todo}"

    @property
    def fields(self) -> dict[str, Any]:
        """The same for programs."""
        named = {key: value for key, value in asdict(self).items() if key != "problem"}
        return named | {"error": self.problem.error_id if self.problem else None}


def worst(findings: Iterable[Finding]) -> str:
    """The worst result of all."""
    return max((finding.result for finding in findings), key=RESULTS.index, default=PASS)


def first_failed(findings: Iterable[Finding]) -> PartyError | None:
    """What the first FAIL says, as an error."""
    for failed in findings:
        if failed.result == FAIL:
            message = f"{failed.subject}: {failed.message}"
            error = PartyError("config-invalid", message, remedy=failed.remedy)
            error.problem = failed.problem or error.problem
            return error
    return None


# ---- of our own


def own_findings(config: PartyConfig, daemon: Running | None) -> list[Finding]:
    """Certificates, key, state folder, disk and daemon. Raises what loading our own identity raises."""
    return [
        *_certificates(config),
        _key(config),
        _state(config.state_dir),
        _disk(config.state_dir),
        _daemon(daemon),
    ]


def _certificates(config: PartyConfig) -> Iterator[Finding]:
    own = credentials_of(config).certificate
    renewal = f"{config.PROGRAM} renew; then every peer has to install the new certificate"
    yield _expiry("certificate", own, renewal)
    for name, found in installed_peers(config).items():
        if isinstance(found, Peer):
            remedy = f"ask {name} for a new one; peers add {name} CERTIFICATE --replace --fingerprint SHA256"
            yield _expiry(name, found.certificate, remedy)
        else:
            yield _problem(name, found)


def _expiry(subject: str, pem: bytes, remedy: str) -> Finding:
    soon, until = expires_soon(pem), in_words(validity(pem)[1])
    days = (validity(pem)[1] - datetime.now(UTC)).days
    return Finding(WARN if soon else PASS, subject, f"certificate valid until {until}, {days} days", remedy)


def _problem(subject: str, problem: Problem) -> Finding:
    """FAIL, with all that the owner may read."""
    private = f" [{problem.private}]" if problem.private else ""
    return Finding(FAIL, subject, f"{problem.message}{private}", problem.advice(to_owner=True), problem)


def _key(config: PartyConfig) -> Finding:
    mode = stat.S_IMODE(config.tls.key.stat().st_mode)
    if mode & 0o007:
        return Finding(
            WARN, "key", f"everybody may read or write it (mode {mode:o})", f"chmod 600 {config.tls.key}"
        )
    return Finding(PASS, "key", "not for everybody")


def _state(folder: Path) -> Finding:
    """Whether who runs this can keep things there; a folder that is not there yet is made by the daemon."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        _touch(there)
    except OSError as error:
        message = f"{there} cannot be written: {error.strerror}"
        remedy = "give it to the daemon's user, and run this command as that user"
        return Finding(FAIL, "state", message, remedy)
    if there != folder:
        return Finding(PASS, "state", f"{folder} will be made by `party serve`")
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return Finding(WARN, "state", f"others than its owner may look into {folder}", f"chmod 700 {folder}")
    return Finding(PASS, "state", f"{folder} can be written, by its owner alone")


def _touch(folder: Path) -> None:
    """Make a file and take it away. Raises OSError."""
    probe = folder / ".check"
    probe.unlink(missing_ok=True)
    with suppress(FileExistsError):  # another check, at the same time
        probe.open("x").close()
    probe.unlink(missing_ok=True)


def _disk(folder: Path) -> Finding:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = free_bytes(there)
    result = FAIL if free < LEAST_FREE_BYTES else WARN if free < ENOUGH_FREE_BYTES else PASS
    remedy = "free space, or move `state_dir`: without room no job can be charged, and none runs"
    return Finding(result, "disk", f"{free / (1 << 30):.1f} GiB free at {there}", remedy)


def _daemon(daemon: Running | None) -> Finding:
    if daemon is None:
        return Finding(WARN, "daemon", "none runs on this `state_dir`", "start it: party serve")
    result = WARN if daemon.restart_for else PASS
    return Finding(result, "daemon", str(daemon), "restart it, or take the change back")


# ---- of peers


async def peer_findings(config: PartyConfig, describe: Describe) -> list[Finding]:
    """Call every peer that has an address, all at once, and say what came of it."""
    peers = {name: peer for name, peer in installed_peers(config).items() if isinstance(peer, Peer)}
    found = await asyncio.gather(*(_called(config, peer, describe) for peer in peers.values()))
    return [finding for of_peer in found for finding in of_peer]


async def _called(config: PartyConfig, peer: Peer, describe: Describe) -> Sequence[Finding]:
    address = peer.address or _relayed(config, peer.name)
    if address is None:
        return [_not_called(config, peer.name)]
    try:
        said = await describe(peer.name, address)
    except PartyError as error:
        return [_problem(peer.name, error.problem)]
    ms = f"{1000 * said.round_trip_s:.1f} ms"
    reached = Finding(
        PASS, peer.name, f"answers at {address}: name, TCP, TLS and certificate; round trip {ms}"
    )
    return [
        reached if said.name == peer.name else _misnamed(peer, said),
        _version(config.name, peer.name, said.talked),
        _clock(peer.name, said),
    ]


def _relayed(config: PartyConfig, name: str) -> str | None:
    """Where a party without an address is called, if our relay connects us; coordinators are never called."""
    return RELAYED if config.relay is not None and name not in config.policy.coordinators else None


def _not_called(config: PartyConfig, name: str) -> Finding:
    if name in config.policy.coordinators or config.dials_what_jobs_say:
        return Finding(PASS, name, "not called: it calls us, or jobs say where it is")
    remedy = f"give {name} an `address` under `peers`, unless it comes before us in every roster and calls us"
    return Finding(WARN, name, "not called: it has no address here", remedy)


def _misnamed(peer: Peer, said: Described) -> Finding:
    message = (
        f"at {peer.address} is a daemon that calls itself {said.name}, with the certificate of {peer.name}"
    )
    return Finding(FAIL, peer.name, message, f"ask {peer.name} which name its configuration has")


def _version(me: str, name: str, talked: Talked) -> Finding:
    try:
        protocol = common({me: OURS, name: talked})
    except PartyError as error:
        return _problem(name, error.problem)
    if talked.version == OURS.version:
        return Finding(PASS, name, f"version {talked.version}, as ours")
    message = (
        f"version {talked.version or 'not told'}, ours is {OURS.version}; both speak protocol {protocol}"
    )
    return Finding(WARN, name, message, "install the same version at every party and the coordinator")


def _clock(name: str, said: Described) -> Finding:
    if said.clock_s is None:
        return Finding(WARN, name, "does not tell its time", "install the same version at every party")
    give_or_take = said.round_trip_s / 2
    apart = abs(said.clock_s) - give_or_take
    result = FAIL if apart > CLOCKS_FAR_S else WARN if apart > CLOCKS_DIFFER_S else PASS
    message = f"its clock is {said.clock_s:+.1f} s from ours, give or take {give_or_take:.1f} s"
    problem = Problem("tls-failed", f"{name}: {message}") if result == FAIL else None
    return Finding(result, name, message, "compare both with the time; let NTP set them", problem)
