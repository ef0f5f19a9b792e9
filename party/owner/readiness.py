"""Whether a daemon would take a job now, as far as that is not the job's own matter.

A daemon that runs a job is ready: who asks next is told `busy`, or waits.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from jobs.errors import IdentityError, PartyError
from party.owner.in_force import InForce

LEAST_FREE_BYTES = 64 << 20
"""With less room in the state folder no job is begun well: a release and its records would not fit."""
CONFIGURATION, CERTIFICATE, STATE, LEAVING = "configuration", "certificate", "state", "leaving"
REASONS = (CONFIGURATION, CERTIFICATE, STATE, LEAVING)
"""Why a daemon is not ready: its files cannot be taken over; its own certificate is not valid now; the state folder
cannot be written or is full; it was told to stop."""


class Readiness:
    """Of one daemon. ``leaving``: it was told to stop."""

    def __init__(self, in_force: InForce, state_dir: Path) -> None:
        self._in_force = in_force
        self._state_dir = state_dir
        self.leaving = False

    def why_not(self) -> tuple[str, ...]:
        """Which of ``REASONS`` there are; none if it is ready. Reads files, changes nothing."""
        found = {_of_files(self._in_force)}
        found |= {STATE} if not _has_room(self._state_dir) else set()
        found |= {LEAVING} if self.leaving else set()
        return tuple(reason for reason in REASONS if reason in found)


def _of_files(in_force: InForce) -> str:
    """What is wrong with them; empty if nothing is."""
    try:
        in_force.examine()
    except IdentityError:
        return CERTIFICATE
    except PartyError:
        return CONFIGURATION
    return ""


def free_bytes(folder: Path) -> int:
    """What is free for us on the disk of a folder. Raises OSError."""
    return shutil.disk_usage(folder).free


def _has_room(folder: Path) -> bool:
    try:
        return os.access(folder, os.W_OK | os.X_OK) and free_bytes(folder) >= LEAST_FREE_BYTES
    except OSError:
        return False
