"""Parties of a joint run, as a party sees them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Roster:
    """Parties of a run. ``parties`` is in job order, the same at every party.

    deputy: evaluates circuits with the leader (sealed runs).
    """

    me: str
    parties: tuple[str, ...]
    leader: str
    deputy: str = ""

    @property
    def leads(self) -> bool:
        return self.me == self.leader

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(party for party in self.parties if party != self.me)

    @property
    def judges(self) -> str:
        """Leader and deputy, named if the pair has judged wrongly or sends different messages."""
        return f"{self.leader} or {self.deputy}"

    @property
    def suspects(self) -> str:
        """Parties to name for an impossible sum of all others' messages: with three or more, each of them."""
        return " or ".join(self.others)
