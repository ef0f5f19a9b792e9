"""The only place for a job at a party."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.errors import PartyError
from party.states import Session


@dataclass
class Place:
    """Only place for a job at a party. The place is taken before the bundle is read, so that bundles do not pile
    up.

    session:  the job in the place, once its bundle is here.
    """

    taken: bool = False
    session: Session | None = None

    def take(self, me: str) -> None:
        """Take the place. Raises PartyError if another job has the place."""
        if self.taken:
            raise PartyError("busy", f"{me} is running another job", party=me)
        self.taken = True

    def leave(self) -> None:
        """Give the place back; only the taker does."""
        self.taken, self.session = False, None
