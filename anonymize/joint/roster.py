"""Who takes part in a joint run, as one party sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Roster:
    """Who takes part. ``parties`` is in job order, the same at every party.

    deputy: evaluates circuits with the leader (sealed runs).
    linked: with whom we have a link; with all others where nothing is said.
    """

    me: str
    parties: tuple[str, ...]
    leader: str
    deputy: str = ""
    linked: tuple[str, ...] | None = None

    @property
    def leads(self) -> bool:
        return self.me == self.leader

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(party for party in self.parties if party != self.me)

    @property
    def peers(self) -> tuple[str, ...]:
        """With whom we have a link."""
        return self.others if self.linked is None else self.linked

    @property
    def suspects(self) -> str:
        """Whom to name where the sum of what all others sent is impossible: with three or more, each of them."""
        return " or ".join(self.others)
