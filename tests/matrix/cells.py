"""Cells of the matrix, and the errors that each may end with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.matrix.rehearsal import PHASES
from tests.support.samples import PARTIES

COORDINATOR = "coordinator"
ROLES: Mapping[str, str] = {
    "coordinator": COORDINATOR,
    "leader": PARTIES[0],
    "deputy": PARTIES[1],
    "third party": PARTIES[2],
}
"""Party of each role in a sealed job: the leader garbles circuits, and the deputy evaluates them."""

LOST = frozenset({"peer-lost", "peer-unreachable", "peer-timeout", "tls-failed", "cancelled"})
"""Errors about a party that is gone. A proxy takes the connection to a daemon that is not there: TLS then fails."""
NO_DISK = frozenset({"io-failed", "budget-ledger", "cancelled"})
NO_TRUST = frozenset({"tls-failed", "config-changed", "peer-unreachable", "peer-lost", "cancelled"})

ABORTS: Mapping[str, frozenset[str]] = {
    "kill": LOST,
    "stop": LOST,
    "cut": LOST,
    "delay": frozenset(),
    "reorder": LOST,
    "corrupt": LOST,
    "disk full": NO_DISK,
    "read-only": NO_DISK,
    "clock forward": NO_TRUST,
    "clock back": NO_TRUST,
}
"""Errors that a job may end with, by fault. Late bytes alone end no job."""


@dataclass(frozen=True)
class Cell:
    """Fault at a role, at the beginning of a phase."""

    role: str
    phase: str
    fault: str

    @property
    def victim(self) -> str:
        return ROLES[self.role]

    @property
    def has_clock(self) -> bool:
        """True if a clock jumps."""
        return self.fault.startswith("clock")

    def __str__(self) -> str:
        return "-".join((self.role, self.phase, self.fault)).replace(" ", "_")


CELLS: Sequence[Cell] = [Cell(role, phase, fault) for role in ROLES for phase in PHASES for fault in ABORTS]

NOTES = (
    "Reorder and corrupt change bytes of a connection: TLS notices, and the connection ends. Messages of a party "
    "that come in another order, or changed under TLS: end_to_end/test_faults_of_messages.py, "
    "attacks/test_tampered_messages.py.",
    "The coordinator has no state folder: disk full and read-only mean the folder of its releases.",
    "A clock jumps by 3 years, beyond all certificates, and is put right before the next job.",
)
"""Meaning of cells, below the table."""
