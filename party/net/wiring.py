"""Links of a run: direct or carried. The module knows no network.

The compute pair has a link with every party. Two parties outside the pair have no direct link, unless the mode says
so: leader or deputy carries the messages, sealed from end to end (:mod:`party.net.carried`). So n parties have
2 (n - 2) + 1 links, and not n (n - 1) / 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Wiring:
    """Links of a run, seen from a party.

    pair:   the compute pair: leader and deputy.
    apart:  further pairs of parties with a direct link: the traffic tells more than the compute pair may know.
    """

    me: str
    parties: tuple[str, ...]
    pair: tuple[str, str]
    apart: frozenset[frozenset[str]] = frozenset()

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {party: place for place, party in enumerate(self.parties)}

    def carrier(self, one: str, other: str) -> str | None:
        """Return the party that carries the messages between two parties; None for a direct link.

        Leader and deputy share the work.
        """
        if one in self.pair or other in self.pair or frozenset((one, other)) in self.apart:
            return None
        return self.pair[(self._places[one] + self._places[other]) % 2]

    @cached_property
    def peers(self) -> tuple[str, ...]:
        """All other parties, in the order of the roster."""
        return tuple(party for party in self.parties if party != self.me)

    @cached_property
    def direct(self) -> tuple[str, ...]:
        """Peers with a direct link."""
        return tuple(peer for peer in self.peers if self.carrier(self.me, peer) is None)

    @cached_property
    def called(self) -> tuple[str, ...]:
        """Peers that we call: those with a direct link that come after us in the roster."""
        return tuple(peer for peer in self.direct if self.after(peer))

    @cached_property
    def carried(self) -> Mapping[str, str]:
        """Carriers by peer, for peers without a direct link."""
        carriers = {peer: self.carrier(self.me, peer) for peer in self.peers}
        return {peer: carrier for peer, carrier in carriers.items() if carrier is not None}

    def served(self, party: str) -> tuple[str, ...]:
        """Return the parties whose messages to and from a given party we carry."""
        if party == self.me:
            return ()
        return tuple(p for p in self.peers if p != party and self.carrier(p, party) == self.me)

    @cached_property
    def carriages(self) -> tuple[str, ...]:
        """Peers with a second stream, for carried messages: our carriers, or the parties that we serve."""
        carriers = set(self.carried.values())
        return tuple(peer for peer in self.peers if peer in carriers or self.served(peer))

    def after(self, peer: str) -> bool:
        """Return True if we call the peer: the peer comes after us in the roster."""
        return self._places[peer] > self._places[self.me]
