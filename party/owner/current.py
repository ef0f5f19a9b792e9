"""Job that runs now, as the owner may see the job: public names and the progress, which the log has, too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CurrentJob:
    """Job that runs now.

    phase:  as in the log.
    turn:   last turn of the protocol's loop, or last sweep; 0 before the first.
    """

    job: str
    job_sha256: str
    coordinator: str
    phase: str
    turn: int
