"""Faults: each strikes a role, and is mended before the next job."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tests.matrix.cells import COORDINATOR
from tests.matrix.mounts import mount, unmount
from tests.matrix.site import Rehearsal, Site, set_clock
from tests.support.network import GUARD_S

FILLER = "filler"
_YEARS_S = 3 * 365 * 24 * 3600


def nothing(site: Site, run: Rehearsal, victim: str) -> None:
    return


@dataclass(frozen=True)
class Fault:
    """Fault of a process, a connection, a disk or a clock."""

    strike: Callable[[Site, Rehearsal, str], None]
    mend: Callable[[Site, Rehearsal, str], None] = nothing


def _process(site: Site, run: Rehearsal, victim: str) -> subprocess.Popen[str] | subprocess.Popen[bytes]:
    return run.process if victim == COORDINATOR else site.daemons.running[victim].process


def kill(site: Site, run: Rehearsal, victim: str) -> None:
    process = _process(site, run, victim)
    process.kill()
    process.wait(GUARD_S)


def start_again(site: Site, run: Rehearsal, victim: str) -> None:
    if victim != COORDINATOR:
        site.daemons.restart(victim)


def stop(site: Site, run: Rehearsal, victim: str) -> None:
    _process(site, run, victim).send_signal(signal.SIGSTOP)


def go_on(site: Site, run: Rehearsal, victim: str) -> None:
    _process(site, run, victim).send_signal(signal.SIGCONT)


def harm(kind: str) -> Fault:
    """Harm the next bytes of each connection of a role."""

    def strike(site: Site, run: Rehearsal, victim: str) -> None:
        site.links.arm(victim, kind)

    def mend(site: Site, run: Rehearsal, victim: str) -> None:
        site.links.arm(victim, "")

    return Fault(strike, mend)


def fill(site: Site, run: Rehearsal, victim: str) -> None:
    """Leave no byte of a disk free."""
    filler = os.open(site.disk_of(victim) / FILLER, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        with suppress(OSError):
            while free := os.fstatvfs(filler).f_bavail * os.fstatvfs(filler).f_frsize:
                os.posix_fallocate(filler, os.fstat(filler).st_size, free)
    finally:
        os.close(filler)


def make_room(site: Site, run: Rehearsal, victim: str) -> None:
    (site.disk_of(victim) / FILLER).unlink()


def forbid_writing(site: Site, run: Rehearsal, victim: str) -> None:
    """Mount a folder over itself, read-only. The tests are root: permissions would not hold them."""
    folder = site.disk_of(victim)
    mount("--bind", str(folder), str(folder))
    mount("-o", "remount,bind,ro", str(folder))


def allow_writing(site: Site, run: Rehearsal, victim: str) -> None:
    unmount(site.disk_of(victim))


def jump(seconds: int) -> Fault:
    """Let the wall clock of a process jump."""

    def strike(site: Site, run: Rehearsal, victim: str) -> None:
        set_clock(site.clock_of(victim), seconds)

    def mend(site: Site, run: Rehearsal, victim: str) -> None:
        set_clock(site.clock_of(victim), 0)

    return Fault(strike, mend)


FAULTS: Mapping[str, Fault] = {
    "kill": Fault(kill, start_again),
    "stop": Fault(stop, go_on),
    "cut": harm("reset"),
    "delay": harm("delay"),
    "reorder": harm("reorder"),
    "corrupt": harm("flip"),
    "disk full": Fault(fill, make_room),
    "read-only": Fault(forbid_writing, allow_writing),
    "clock forward": jump(_YEARS_S),
    "clock back": jump(-_YEARS_S),
}
