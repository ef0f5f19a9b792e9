"""Reveals of a joint run, as in the result of every party."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from anonymize.joint.disclosure import PRIVATE, RevealLedger
from jobs.errors import PartyError


@dataclass(frozen=True, kw_only=True)
class Revealing:
    """Reveals in a result.

    reveals:      the reveal ledger as every party has it.
    own_reveals:  also the party's private entries (its own validity bits, tests against its own columns).
    repeated:     the result of an earlier run, given again: nothing was computed, opened or charged.
    """

    reveals: tuple[dict[str, Any], ...] = ()
    own_reveals: tuple[dict[str, Any], ...] = ()
    repeated: bool = False

    @property
    def told(self) -> dict[str, Any]:
        return {"reveals": list(self.reveals), "repeated": self.repeated}

    @property
    def own(self) -> dict[str, Any]:
        return {"reveals": list(self.own_reveals)}

    def after(self, ledger: RevealLedger) -> Self:
        """Return the result with the reveals before the run."""
        before = tuple(reveal_fields(ledger))
        return replace(self, reveals=before + self.reveals, own_reveals=before + self.own_reveals)

    def completed(self, told: Sequence[Mapping[str, Any]]) -> Self:
        """Return the result with the reveals, and with `repeated`. Raises PartyError if the parties differ."""
        return replace(self, reveals=tuple(told[0].get("reveals", ())), repeated=repeated_in(told))


def repeated_in(told: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if all parties repeated the result of an earlier run, False if none. Raises PartyError."""
    said = [each.get("repeated") for each in told]
    if not isinstance(said[0], bool) or any(word is not said[0] for word in said):
        raise PartyError("result-mismatch", "some parties gave an earlier result again, others did not")
    return said[0]


def revealed(ledger: RevealLedger) -> dict[str, Any]:
    """Return the reveals of a run's ledger, in the form of results."""
    own = tuple(reveal_fields(ledger, private=True))
    return {"reveals": tuple(reveal_fields(ledger)), "own_reveals": own}


def reveal_fields(ledger: RevealLedger, *, private: bool = False) -> list[dict[str, Any]]:
    """Return the reveal ledger as in the report: the reveals that every party sees happen.

    private:  include the party's private entries (its own validity bits, tests against its own columns).
    """
    return [
        {"name": r.name, "shape": list(r.shape), "to": r.to, "iteration": r.iteration}
        for r in ledger.reveals
        if private or r.to not in PRIVATE
    ]
