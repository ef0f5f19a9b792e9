"""Private set intersection of n ≥ 2 parties: the common identifiers, in the same order for all.

Two parties compare tags of an oblivious pseudo-random function (:mod:`crypto.oprf`): Pinkas, Rosulek, Trieu, Yanai
(EUROCRYPT 2020). Three and more parties encrypt in turn around a ring (:mod:`crypto.ring`).

The number of messages depends on sizes that every party hears separately. So all parties compare a digest of the
set sizes before they act on the sizes, and the common identifiers are sent with their number. No party ends well
while a peer that heard something else waits for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crypto.encoding import (
    decode_bits,
    decode_integer,
    decode_words,
    encode_bits,
    encode_integer,
    encode_words,
    expect_length,
)
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.oprf import TAG_WORDS, Tags, oprf_receive, oprf_send
from crypto.pieces import slices
from crypto.ring import Positions, Ring, around
from crypto.rng import Rng
from crypto.rounds import Round, Rounds, receive, send

MIN_PARTIES = 2
MAX_SET = 2**32 - 1
PIECE = 1 << 16
"""Number of tags in a message between two parties."""

_SIZE_BYTES, _DIGEST_BYTES = 8, 16
_SIZE, _AGREE = "intersection/size", "intersection/agree"
_TAGS, _COMMON = "intersection/tags", "intersection/common"

Announced = Callable[[int, Mapping[str, int]], object]
"""An objection to set sizes: called with our own size and the peers' sizes by party; raises to end the run."""


def any_sizes(own: int, others: Mapping[str, int]) -> None:
    """Object to no set sizes."""


def intersect(
    me: str,
    parties: Sequence[str],
    collector: str,
    ids: Sequence[bytes],
    job_hash: bytes,
    rng: Rng,
    announced: Announced = any_sizes,
) -> Rounds[Positions]:
    """Return the positions in ``ids`` of the identifiers that all parties have, in a common order.

    Functionality:  (S_1, ..., S_n) -> to party i the positions in its list of the identifiers that are in
                    all S_j, in a pseudo-random order common to all: the k-th positions of all parties
                    belong to the same identifier.
    Input, each:    ``ids``, different byte strings, at most 2**32 - 1, normalised by the caller. The roster
                    (its order is the ring), ``collector`` and ``job_hash`` are public, equal for all.
                    ``announced`` is called with the set sizes. If it raises, nothing but our size was sent.
    Output, each:   int64, shape (size of the intersection,).
    Leakage:        to all: every party's set size, the size of the intersection, and the party's own common
                    identifiers. For n >= 3, also to the collector: the size of every partial intersection
                    (for every set of parties, the number of identifiers that exactly these parties have).
                    The identifiers of a partial intersection, the collector's own included, stay hidden,
                    because every party has shuffled every list. A coalition that leaves at least one party
                    outside learns no more than the collector; but even without the collector the coalition
                    sees sizes of partial intersections that no member sees alone. If a set is empty, the
                    protocol ends after the sizes. The collector learns the intersection first, and may tell
                    peers less.
    Rounds:         8 for n = 2: "intersection/size", ".../agree", 4 of :func:`crypto.oprf.oprf_receive`
                    with the collector as receiver, "intersection/tags", ".../common". For n >= 3, 2 n + 2:
                    the first two, n - 1 of "intersection/points", ".../tags", ".../common", n - 1 of
                    ".../positions". A long list is sent in pieces.
    Bytes:          with set sizes m_i, N their sum, c the intersection: each 8 * (n - 1) for sizes,
                    16 * (n - 1) for their digest. For n = 2 as :func:`crypto.oprf.oprf_receive`; the
                    collector's peer sends 16 m_i, and the collector sends back 8 + ceil(m_i / 8). For
                    n >= 3, 32 * (N - m_{i+1}) for points; any but the collector 16 * m_{i+1} for tags; each
                    (8 + 4 * c) * (n - 1) for positions; the collector as much again.
    Assumes:        semi-honest parties; authenticated channels; equal 128-bit tags mean equal identifiers
                    (a false match has probability below N**2 * 2**-129). For n = 2 as
                    :func:`crypto.oprf.oprf_receive`; for n >= 3 DDH in the subgroup of prime order and
                    SHA-256 a random oracle.
    Source:         as above; for n >= 3 [T] 5.6, curve operations of :mod:`crypto.curve`, a fresh key per
                    run.

    Raises LocalProtocolError for an impossible roster and for duplicated identifiers, before anything is sent.
    Exceptions of ``announced`` come before anything but sizes is sent.

    Raises RemoteProtocolError for messages of a wrong length, and for sizes or a roster on which parties disagree.
    For n = 2: also for transfers that fail their check, tags that do not ascend, and a wrong number of common tags.
    For n >= 3: also for points that are not canonical, not on the curve, of small order or repeated (also as u and
    1/u, which encryption makes equal), and for positions out of range or repeated.
    """
    _check_roster(me, parties, collector)
    _check_ids(ids)
    ring = Ring(me, parties, collector)
    sizes = yield from _exchange_sizes(ring, len(ids))
    announced(len(ids), {peer: sizes[peer] for peer in ring.peers})
    yield from _agree(ring, sizes, job_hash)
    if 0 in sizes.values():
        return np.zeros(0, np.int64)
    if ring.n > MIN_PARTIES:
        return (yield from around(ring, ids, sizes, job_hash, rng))
    if me == collector:
        return (yield from _collect(ring, ids, sizes[ring.back(1)], job_hash, rng))
    return (yield from _offer(ring, ids, sizes[collector], job_hash, rng))


def _collect(ring: Ring, ids: Sequence[bytes], theirs: int, job_hash: bytes, rng: Rng) -> Rounds[Positions]:
    """Compare our tags with the peer's; tell the peer the common tags. The order is the order of the peer's list."""
    (peer,) = ring.peers
    ours = yield from oprf_receive(ring.me, peer, ids, job_hash, rng)
    parts = []
    for piece in slices(theirs, PIECE):
        payload = yield from receive(_TAGS, peer)
        words = decode_words(payload, TAG_WORDS * (piece.stop - piece.start), peer, _TAGS)
        parts.append(words.reshape(-1, TAG_WORDS))
    tags = np.concatenate(parts)
    if not _ascending(tags):
        raise RemoteProtocolError(peer, _TAGS, "tags that do not ascend")
    positions, common = _matches(ours, tags)
    header = encode_integer(len(positions), _SIZE_BYTES)
    yield from send(_COMMON, {peer: header + encode_bits(common)})
    return positions


def _offer(ring: Ring, ids: Sequence[bytes], theirs: int, job_hash: bytes, rng: Rng) -> Rounds[Positions]:
    """Send our tags in ascending order, independent of the order of ``ids``, and receive the common tags."""
    (peer,) = ring.peers
    tags = yield from oprf_send(ring.me, peer, ids, theirs, job_hash, rng)
    order = np.lexsort(tags.T[::-1])
    for piece in slices(len(ids), PIECE):
        yield from send(_TAGS, {peer: encode_words(tags[order[piece]])})
    payload = yield from receive(_COMMON, peer)
    common = decode_bits(payload[_SIZE_BYTES:], len(ids), peer, _COMMON)
    count = decode_integer(payload[:_SIZE_BYTES], _SIZE_BYTES, theirs + 1, peer, _COMMON)
    if np.count_nonzero(common) != count:
        raise RemoteProtocolError(peer, _COMMON, "another number of common identifiers than is said")
    return order[np.flatnonzero(common)]


def _matches(ours: Tags, theirs: Tags) -> tuple[Positions, NDArray[np.uint8]]:
    """Return where in ``ours`` the common tags are, in the order of ``theirs``, and which of ``theirs`` are common.

    ours, theirs:  shapes (n, 2) and (m, 2), different tags; ``theirs`` ascends.
    Returns int64, shape (c,), and bits: uint8, shape (m,).
    """
    order = np.lexsort(ours.T[::-1])
    ranked = ours[order]
    places = np.searchsorted(ranked[:, 0], theirs[:, 0])
    common = np.zeros(len(theirs), dtype=np.uint8)
    # First words of different tags are hardly ever equal; if they are, try the next place.
    open_ = np.arange(len(theirs))
    while len(open_ := open_[places[open_] < len(ours)]):
        found = ranked[places[open_]]
        equal = found == theirs[open_]
        common[open_[equal.all(axis=1)]] = 1
        open_ = open_[equal[:, 0] & ~equal[:, 1]]
        places[open_] += 1
    return order[places[np.flatnonzero(common)]], common


def _ascending(tags: Tags) -> bool:
    """Return True if every tag is greater than the tag before, first words first."""
    before, after = tags[:-1], tags[1:]
    higher = (after[:, 0] == before[:, 0]) & (after[:, 1] > before[:, 1])
    return bool(((after[:, 0] > before[:, 0]) | higher).all())


def _exchange_sizes(ring: Ring, size: int) -> Rounds[dict[str, int]]:
    """Tell everybody our set's size; return the sizes by party."""
    outgoing = dict.fromkeys(ring.peers, encode_integer(size, _SIZE_BYTES))
    inbox = yield Round(_SIZE, outgoing, frozenset(ring.peers))
    sizes = {peer: decode_integer(inbox[peer], _SIZE_BYTES, MAX_SET + 1, peer, _SIZE) for peer in ring.peers}
    return sizes | {ring.me: size}


def _agree(ring: Ring, sizes: dict[str, int], job_hash: bytes) -> Rounds[None]:
    """Check that all parties go on from the same sizes, roster, collector, job and protocol."""
    # Before version 2, two parties also encrypted around a ring.
    digest = hashlib.sha256(b"jointcut intersection/agree" + (b" 2" if ring.n == MIN_PARTIES else b""))
    names = [party.encode() for party in (ring.collector, *ring.parties)]
    for part in (job_hash, *names, *(sizes[p].to_bytes(_SIZE_BYTES, "little") for p in ring.parties)):
        digest.update(len(part).to_bytes(8, "little") + part)
    ours = digest.digest()[:_DIGEST_BYTES]
    inbox = yield Round(_AGREE, dict.fromkeys(ring.peers, ours), frozenset(ring.peers))
    for peer in ring.peers:
        expect_length(inbox[peer], _DIGEST_BYTES, peer, _AGREE)
        if inbox[peer] != ours:
            raise RemoteProtocolError(
                peer, _AGREE, "set sizes, roster, collector, job or version of the protocol are not ours"
            )


def _check_roster(me: str, parties: Sequence[str], collector: str) -> None:
    if len(parties) < MIN_PARTIES or len(set(parties)) != len(parties):
        raise LocalProtocolError(
            f"an intersection needs {MIN_PARTIES} or more different parties: {len(parties)} names, "
            f"{len(set(parties))} different"
        )
    for name in (me, collector):
        if name not in parties:
            raise LocalProtocolError(f"{name} is not in the roster")


def _check_ids(ids: Sequence[bytes]) -> None:
    if len(ids) > MAX_SET:
        raise LocalProtocolError(f"a set has at most {MAX_SET} identifiers")
    if len(set(ids)) != len(ids):
        raise LocalProtocolError("identifiers are duplicated; each may occur once")
