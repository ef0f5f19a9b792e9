"""The common identifiers of three sets and more: shares of zero for each identifier, in tables for the collector.

Every two parties beside the collector have a secret for each identifier that both have, from two oblivious
pseudo-random functions (:mod:`crypto.oprf`): each party evaluates the other's function at its own identifiers, and
its own function anywhere. Neither can compute the secret of an identifier outside its own set. A party's *share* for
an identifier is the sum of its secrets with all other parties, so the shares of an identifier that all have add up
to zero. Each party puts its shares into a table (:mod:`crypto.okvs`), masked by a function between the party and the
collector. The collector reads the shares of its own identifiers, and keeps the identifiers whose shares add up to
zero. Kolesnikov, Matania, Pinkas, Rosulek, Trieu (CCS 2017), with conditional shares of zero.

:mod:`crypto.intersection` uses this module for three parties and more, and states functionality and costs; the sizes
are known before. The argument is in docs/proofs.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from crypto import engine, okvs
from crypto.encoding import Words, decode_integer, decode_words, encode_integer, encode_words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.oprf import STEPS, Hashed, Identifiers, Shape, oprf_first, oprf_receive, oprf_second, oprf_send
from crypto.pieces import slices
from crypto.rng import Rng, uniform_permutation, uniform_words
from crypto.rounds import Round, Rounds, abreast, receive, send
from crypto.tags import TAG_WORDS, Positions, Tags, matches

PIECE = 1 << 16
"""Number of tags in a message."""

_SIZE_BYTES, _HASH_BYTES = 8, 32
_SHARES, _COMMON = "intersection/shares", "intersection/common"
_PLACES = b"jointcut intersection/places"


@dataclass(frozen=True)
class Members:
    """The parties of an intersection, seen from one of them."""

    me: str
    parties: tuple[str, ...]
    collector: str

    @property
    def n(self) -> int:
        return len(self.parties)

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(party for party in self.parties if party != self.me)

    @property
    def equals(self) -> tuple[str, ...]:
        """Peers beside the collector."""
        return tuple(peer for peer in self.peers if peer != self.collector)


def intersect_several(
    members: Members, own: Identifiers, sizes: Mapping[str, int], rng: Rng
) -> Rounds[Positions]:
    """Return the positions of the common identifiers; no size in ``sizes`` is 0. See the module."""
    if members.me == members.collector:
        return (yield from _collect(members, own, sizes, rng))
    return (yield from _contribute(members, own, sizes, rng))


def _contribute(members: Members, own: Identifiers, sizes: Mapping[str, int], rng: Rng) -> Rounds[Positions]:
    """Send our shares to the collector; learn which of our identifiers are common, in the order of the collector."""
    me, collector = members.me, members.collector
    shared = [_secrets(members, peer, own, sizes[peer], rng) for peer in members.equals]
    masking = oprf_send(me, collector, own, sizes[collector], rng)
    masks, *secrets = yield from abreast(STEPS, [masking, *shared])
    for table in _tables(masks, reduce(np.bitwise_xor, secrets), rng):
        yield from send(_SHARES, {collector: encode_words(table)})
    payload = yield from receive(_COMMON, collector)
    count = decode_integer(payload, _SIZE_BYTES, min(sizes.values()) + 1, collector, _COMMON)
    parts = []
    for piece in slices(count, PIECE):
        payload = yield from receive(_COMMON, collector)
        parts.append(decode_words(payload, TAG_WORDS * (piece.stop - piece.start), collector, _COMMON))
    told = np.concatenate([np.zeros(0, np.uint64), *parts]).reshape(-1, TAG_WORDS)
    positions, ours = matches(masks, told)
    if len(np.unique(positions)) != count or not ours.all():
        raise RemoteProtocolError(collector, _COMMON, "a tag that is not of ours, or is repeated")
    return positions


def _secrets(members: Members, peer: str, own: Identifiers, theirs: int, rng: Rng) -> Rounds[Tags]:
    """Return the secrets of our identifiers with a peer: sums of our function and the peer's."""
    first = members.parties.index(members.me) < members.parties.index(peer)
    run = oprf_first if first else oprf_second
    given, taken = yield from run(members.me, peer, own, theirs, rng)
    return given ^ taken


def _collect(members: Members, own: Identifiers, sizes: Mapping[str, int], rng: Rng) -> Rounds[Positions]:
    """Add up the shares of our identifiers; tell each party the tags of the common identifiers, in a random order."""
    taken = [oprf_receive(members.me, peer, own, rng) for peer in members.peers]
    masks = dict(zip(members.peers, (yield from abreast(STEPS, taken)), strict=True))
    sums = np.zeros((len(own), TAG_WORDS), dtype=np.uint64)
    shapes = {peer: Shape.of(sizes[peer]) for peer in members.peers}
    bins = {peer: _hashed(masks[peer]).by_bin(shapes[peer]) for peer in members.peers}
    for number in range(max(shape.bins for shape in shapes.values())):
        sending = [peer for peer in members.peers if number < shapes[peer].bins]
        inbox = yield Round(_SHARES, {}, frozenset(sending))
        for peer in sending:
            rows = shapes[peer].rows
            table = decode_words(inbox[peer], TAG_WORDS * rows, peer, _SHARES).reshape(rows, TAG_WORDS)
            hashed, numbers = next(bins[peer])
            sums[numbers] ^= okvs.decode(table, hashed.keys(shapes[peer])) ^ masks[peer][numbers]
    common = np.flatnonzero(~sums.any(axis=1))
    common = common[uniform_permutation(rng, len(common))]
    yield from send(_COMMON, dict.fromkeys(members.peers, encode_integer(len(common), _SIZE_BYTES)))
    for piece in slices(len(common), PIECE):
        yield from send(_COMMON, {peer: encode_words(masks[peer][common[piece]]) for peer in members.peers})
    return common


def _tables(masks: Tags, shares: Tags, rng: Rng) -> Iterator[Words]:
    """Yield, bin after bin, tables that map places to masked shares: uniform for whoever does not know the masks."""
    shape = Shape.of(len(masks))
    for hashed, numbers in _hashed(masks).by_bin(shape):
        fill = uniform_words(rng, TAG_WORDS * shape.rows).reshape(shape.rows, TAG_WORDS)
        values = shares[numbers] ^ masks[numbers]
        fits = len(numbers) <= shape.capacity
        table = okvs.encode(hashed.keys(shape), values, fill) if fits else None
        if table is None:
            raise LocalProtocolError("the hashes of the identifiers do not fit; another run has others")
        yield table


def _hashed(masks: Tags) -> Hashed:
    """Hash masks to bins and places in tables. Whoever does not know a mask does not know its places."""
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)
    places = np.broadcast_to(np.frombuffer(_PLACES, dtype=np.uint8), (len(masks), len(_PLACES)))
    return Hashed(engine.in_force().digests(np.concatenate([places, octets], axis=1), _HASH_BYTES))
