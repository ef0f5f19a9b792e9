"""What n ≥ 3 parties have in common: every identifier gets shares that add up to zero only where all have it.

As in Kolesnikov, Matania, Pinkas, Rosulek, Trieu (CCS 2017): *conditional zero-sharing*. Any two parties but the
collector evaluate two functions of :mod:`crypto.oprf`, one under the key of either, each at its own identifiers. A
party's share of an identifier is the sum (over GF(2)) of its tags in all of these; a tag is in the shares of two
parties, so the shares of what all of them have add up to zero. Every one of them hands its shares to the collector in
a *hint*: a table of :mod:`crypto.okvs`, masked by tags of a function that the collector evaluated at its own
identifiers. So the collector reads shares of its own identifiers alone, and learns of these which add up to zero.

The paper programs its functions with shares that each party draws; here the values of the functions are the shares.
:mod:`crypto.intersection` says what this does; the sizes are known before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crypto import okvs
from crypto.encoding import Words, decode_integer, decode_words, encode_integer, encode_words, expect_length
from crypto.errors import RemoteProtocolError
from crypto.oprf import Shape, Tagged, oprf_receive, oprf_send
from crypto.rng import SEED_BYTES, Rng, uniform_permutation, uniform_words
from crypto.rounds import Round, Rounds, receive, send, side_by_side
from crypto.tags import TAG_WORDS, Positions, Tags, ascending, matches, ranking, receive_tags, send_tags

_SALT, _HINT, _COUNT = "intersection/salt", "intersection/hint", "intersection/count"
_SAME, _COMMON = "intersection/same", "intersection/common"
_SIZE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Roster:
    """Who takes part, seen from one party."""

    me: str
    parties: tuple[str, ...]
    collector: str

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(party for party in self.parties if party != self.me)

    @property
    def fellows(self) -> tuple[str, ...]:
        """The peers without the collector."""
        return tuple(party for party in self.peers if party != self.collector)


def collect(
    roster: Roster, ids: Sequence[bytes], sizes: Mapping[str, int], job_hash: bytes, rng: Rng
) -> Rounds[Positions]:
    """The collector: find what all have, in an order that it draws, and tell the others; no size is 0."""
    me, peers = roster.me, roster.peers
    tagged = yield from side_by_side([oprf_receive(me, peer, ids, job_hash, rng) for peer in peers])
    shares = yield from side_by_side(
        [_read_hint(peer, sizes[peer], own) for peer, own in zip(peers, tagged, strict=True)]
    )
    common = np.flatnonzero(~np.bitwise_xor.reduce(shares, axis=0).any(axis=1))
    common = common[uniform_permutation(rng, len(common))]
    yield from send(_COUNT, dict.fromkeys(peers, encode_integer(len(common), _SIZE_BYTES)))
    yield from send_tags(_COMMON, {peer: own.tags[common] for peer, own in zip(peers, tagged, strict=True)})
    return common


def contribute(
    roster: Roster, ids: Sequence[bytes], sizes: Mapping[str, int], job_hash: bytes, rng: Rng
) -> Rounds[Positions]:
    """Any other: give the collector our shares of zero, and hear what is common; no size is 0."""
    me, collector = roster.me, roster.collector
    senders = [oprf_send(me, peer, ids, sizes[peer], job_hash, rng) for peer in (collector, *roster.fellows)]
    receivers = [oprf_receive(me, peer, ids, job_hash, rng) for peer in roster.fellows]
    tagged = yield from side_by_side([*senders, *receivers])
    masked = np.bitwise_xor.reduce([each.tags for each in tagged], axis=0)
    toward = tagged[0]
    del tagged
    yield from _send_hint(collector, toward, masked, rng)
    count = yield from _hear_count(roster, min(sizes.values()))
    told = yield from receive_tags(_COMMON, collector, count)
    order = ranking(told)
    if not ascending(told[order]):
        raise RemoteProtocolError(collector, _COMMON, "a tag occurs twice")
    found, known = matches(toward.tags, told[order])
    if not known.all():
        raise RemoteProtocolError(collector, _COMMON, "a tag that no identifier of ours has")
    positions = np.empty(count, dtype=np.int64)
    positions[order] = found
    return positions


def _send_hint(collector: str, toward: Tagged, masked: Tags, rng: Rng) -> Rounds[None]:
    """Send a table for each bin of our identifiers, in which the collector finds what is masked with its own tags.

    Rows that we do not need are drawn: so a table is uniform as its values are, and does not say for whom it is.
    The hashes that lay it out are salted: those of the function have a key on which the collector has the last word;
    so it could look for one under which identifiers that it guesses do not fit together, and see if the run ends.
    """
    shape, salt = Shape.of(len(masked)), rng.bytes(SEED_BYTES)
    yield from send(_SALT, {collector: salt})
    for part, numbers in toward.hashed.salted(salt).by_bin(shape):
        free = uniform_words(rng, shape.rows * TAG_WORDS).reshape(-1, TAG_WORDS)
        yield from send(_HINT, {collector: encode_words(part.table(shape, masked[numbers], free))})


def _read_hint(peer: str, size: int, own: Tagged) -> Rounds[Words]:
    """Return the peer's share of each of our identifiers; something random, of those that it has not."""
    shape = Shape.of(size)
    shares = own.tags.copy()
    salt = yield from receive(_SALT, peer)
    expect_length(salt, SEED_BYTES, peer, _SALT)
    for part, numbers in own.hashed.salted(salt).by_bin(shape):
        payload = yield from receive(_HINT, peer)
        table = decode_words(payload, shape.rows * TAG_WORDS, peer, _HINT).reshape(-1, TAG_WORDS)
        shares[numbers] ^= okvs.decode(table, part.keys(shape))
    return shares


def _hear_count(roster: Roster, bound: int) -> Rounds[int]:
    """Return how many the collector says are common, at most ``bound``, if it says the same to all.

    Raises RemoteProtocolError that names a fellow and the collector if that fellow says another: one of them lies.
    """
    header = yield from receive(_COUNT, roster.collector)
    count = decode_integer(header, _SIZE_BYTES, bound + 1, roster.collector, _COUNT)
    fellows = roster.fellows
    inbox = yield Round(_SAME, dict.fromkeys(fellows, header), frozenset(fellows))
    for peer in fellows:
        if inbox[peer] != header:
            suspects = f"{roster.collector} or {peer}"
            raise RemoteProtocolError(suspects, _SAME, "another number of common identifiers")
    return count
