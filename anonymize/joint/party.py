"""Party of a sealed run, with the common start of these runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.pair import Pair, open_pair
from anonymize.joint.roster import Roster
from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds


@dataclass(frozen=True)
class Party:
    """Party: its part of the pair, the reveal ledger, and its observer."""

    pair: Pair
    ledger: RevealLedger
    observer: Observer = field(repr=False)


def begin(
    roster: Roster, job_hash: bytes, rng: Rng, ledger: RevealLedger, observer: Observer | None
) -> Rounds[Party]:
    """Open the pair. Rounds, bytes and errors as in :func:`anonymize.joint.pair.open_pair`."""
    observer = observer or Observer()
    observer.phase("setup")
    return Party((yield from open_pair(roster, job_hash, rng, observer)), ledger, observer)
