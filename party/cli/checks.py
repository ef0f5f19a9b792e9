"""Checks of `party check`: state folder, disk, certificates, connections to peers."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jobs.errors import PartyError
from jobs.version import __version__, talks_with
from party.net.client import Calls, Described
from party.owner.config import NodeConfig, credentials_of, trusted_peers
from party.owner.identity import in_words, read_bytes, validity

Status = Literal["PASS", "WARN", "FAIL"]

WARN_BYTES, FAIL_BYTES = 2 << 30, 100 << 20
"""Free space of the disk of `state_dir`, below which a release of many rows, or any release, may not fit."""
CLOCKS_S = 60.0
"""Largest difference of two clocks without a warning. Certificates are valid by the clock of each party."""
_REACH_S = 3.0


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
    folder = next(each for each in (state_dir, *state_dir.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        yield Check(
            "FAIL",
            "state folder",
            f"{folder} cannot be written: {error.strerror}. What to do: give the folder to the daemon's user, "
            "mode 0700, on a disk that is not read-only",
        )
        return
    yield Check("PASS", "state folder", f"{state_dir} can be written")
    free = shutil.disk_usage(folder).free
    status: Status = "PASS" if free >= WARN_BYTES else "WARN" if free >= FAIL_BYTES else "FAIL"
    cure = "" if status == "PASS" else ". What to do: free space; releases stay until you remove them"
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


def checks_of_peers(config: NodeConfig) -> list[Check]:
    """Call every peer with an address: name, TCP, TLS, version, clock and round trip."""
    return asyncio.run(_checks_of_peers(config))


async def _checks_of_peers(config: NodeConfig) -> list[Check]:
    patient = config.model_copy(
        update={
            "timeouts": config.timeouts.model_copy(
                update={"connect_s": min(_REACH_S, config.timeouts.connect_s)}
            )
        }
    )
    calls = Calls(patient, credentials_of(config), trusted_peers(config))
    addresses = {name: entry.address for name, entry in config.peers.items()}
    try:
        return await asyncio.gather(
            *(_check_of_peer(calls, name, address) for name, address in addresses.items())
        )
    finally:
        await calls.close()


async def _check_of_peer(calls: Calls, name: str, address: str | None) -> Check:
    about = f"peer {name}"
    if address is None:
        return Check("PASS", about, "no address in `peers`, so the peer calls us, or jobs say the address")
    try:
        found = await calls.describe(name, address)
    except PartyError as error:
        return Check("FAIL", about, error.problem.text(to_owner=True))
    if not talks_with(found.version):
        return Check(
            "FAIL", about, f"version {found.version} does not talk with {__version__}. {_same_version(name)}"
        )
    if cures := list(_cures(name, found)):
        return Check("WARN", about, "; ".join(cures))
    return Check(
        "PASS", about, f"{address}, version {found.version}, {found.round_s * 1000:.0f} ms{_clock(found)}"
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
