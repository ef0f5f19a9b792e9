"""A party's daemon, or a coordinator, to which things can be done in any phase of a run; root's, too.

Run as a program in place of `jointcut.isolated`. What steers it are files beside its configuration:

* `hold`: the name of a phase (:data:`PHASES`). When a run comes to it, the file is renamed to `held`, and the run
  goes on when that is gone.
* `clock`: how wrong its wall clock is, in libfaketime's words (`-1d`), where libfaketime is installed. The monotonic
  clock stays right. The clock by which TLS judges certificates is the wall clock.

Folders that nobody may write are so for it though root starts it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

CLOCK, HOLD, HELD = "clock", "hold", "held"
PHASES = ("handed in", "table", "protocol", "signing", "commit", "kept")
"""handed in: the bundle is here; nobody has asked the policy. table: it is about to be read. protocol: its first
turn. signing: the result is known. commit: what was delivered is checked and set aside; the vote comes next. kept:
the release is in place; nobody was told."""

_BEFORE = {"Submitted": "handed in", "Approved": "table", "Checked": "commit"}
"""Phases that begin with a state of the session's table."""
_LONGEST_S = 60.0
_FAKETIME = {
    "FAKETIME_NO_CACHE": "1",
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # or threads that wait for a moment would not wait
}
_VERSION_3, _DAC_OVERRIDE = 0x20080522, 1
"""Linux: capget(2), capabilities(7)."""


def libfaketime() -> Path | None:
    """Debian's libfaketime for programs with threads, if it is installed."""
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def command(program: str) -> list[str]:
    """As :func:`jointcut.launcher.command`."""
    return [sys.executable, "-P", str(Path(__file__).resolve()), program]


def start_with_a_clock_of_its_own(clock: Path) -> None:
    """Begin anew with libfaketime, if it is installed and we have not."""
    library = libfaketime()
    if library is None or "LD_PRELOAD" in os.environ:
        return
    clock.write_text("+0")
    told = {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock)}
    os.execve(sys.executable, [*command(sys.argv[1]), *sys.argv[2:]], os.environ | _FAKETIME | told)  # noqa: S606


def no_more_than_files_say() -> None:
    """Give up root's right to write what its permissions forbid, for this thread and those it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, held = (ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, held) == 0
    for i in (0, 1):  # effective, permitted
        held[i] &= ~(1 << _DAC_OVERRIDE)
    assert libc.capset(header, held) == 0


class Holding:
    """Stops a run in the phase that a file names, until another file is gone."""

    def __init__(self, folder: Path) -> None:
        self._hold, self._held = folder / HOLD, folder / HELD
        self._never = (
            threading.Event()
        )  # under libfaketime `time.sleep` fails where the monotonic clock is right

    def at(self, phase: str) -> None:
        """Wait, if this is the phase."""
        if self._hold.is_file() and self._hold.read_text() == phase:
            self._hold.rename(self._held)
            until = time.monotonic() + _LONGEST_S
            while self._held.exists() and time.monotonic() < until:
                self._never.wait(0.005)


def hold_in_phases(holding: Holding) -> None:
    """Let the daemon of this process come by ``holding`` in every phase."""
    from crypto.rounds import Rounds
    from party import computation, delivery, session
    from party.states import Broke

    step, turn, attest, kept = (
        session.take_step,
        computation._Reporter.turn,
        computation.attest,
        delivery._kept,
    )

    async def held_step(of: Any, trigger: Any) -> None:
        phase = _BEFORE.get(type(of.state).__name__)
        if phase is not None and not isinstance(trigger, Broke):
            await asyncio.to_thread(holding.at, phase)
        await step(of, trigger)

    def held_turn(*said: Any) -> None:
        holding.at("protocol")
        turn(*said)

    def held_attest(*said: Any) -> Rounds[Any]:
        holding.at("signing")
        return (yield from attest(*said))

    async def held_kept(*said: Any) -> None:
        await asyncio.to_thread(holding.at, "kept")
        await kept(*said)

    session.take_step = held_step
    computation._Reporter.turn = held_turn  # type: ignore[method-assign]
    computation.attest = held_attest
    delivery._kept = held_kept


def main() -> None:
    folder = Path(sys.argv[sys.argv.index("--config") + 1]).parent
    start_with_a_clock_of_its_own(folder / CLOCK)
    if os.geteuid() == 0:
        no_more_than_files_say()
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from jointcut import isolated

    if sys.argv[1] == "party":
        hold_in_phases(Holding(folder))
    isolated.run()


if __name__ == "__main__":
    main()
