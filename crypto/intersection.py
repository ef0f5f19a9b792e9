"""Private set intersection of n ≥ 2 parties: the common identifiers, in the same order for all.

Two parties compare tags of an oblivious pseudo-random function (:mod:`crypto.oprf`): Pinkas, Rosulek, Trieu, Yanai
(EUROCRYPT 2020). Of three and more parties the collector adds up shares of zero (:mod:`crypto.several_sets`).

The number of messages depends on sizes that every party hears separately. So all parties compare a digest of the
set sizes before they act on the sizes, and the common identifiers are sent with their number. No party ends well
while a peer that heard something else waits for ever.

Identifiers are hashed under a key of the run, made of a coin of each party. The coins are committed to with the
sizes, and opened with the digest. So the key is uniform and new to all if a single party is honest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

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
from crypto.hashing import derive_key
from crypto.oprf import Identifiers, oprf_receive, oprf_send
from crypto.pieces import slices
from crypto.rng import Rng
from crypto.rounds import Round, Rounds, receive, send
from crypto.several_sets import Members, intersect_several
from crypto.tags import TAG_WORDS, Positions, ascend, ascending_order, matches

MIN_PARTIES = 2
MAX_SET = 2**32 - 1
PIECE = 1 << 16
"""Number of tags in a message between two parties."""

_SIZE_BYTES, _DIGEST_BYTES, _COIN_BYTES = 8, 16, 16
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
    Input, each:    ``ids``, different byte strings, at most 2**32 - 1, normalised by the caller. The roster,
                    ``collector`` and ``job_hash`` are public, equal for all. ``announced`` is called with the
                    set sizes. If it raises, nothing but our size and a commitment to a coin was sent.
    Output, each:   int64, shape (size of the intersection,).
    Leakage:        to all: every party's set size, the size of the intersection, and the party's own common
                    identifiers. Nothing else, also to a coalition that leaves at least one party outside,
                    with or without the collector (docs/proofs.md). If a set is empty, the protocol ends
                    after the sizes. The collector learns the intersection first, and may tell peers less.
    Rounds:         8 for n = 2: "intersection/size", ".../agree", 4 of :func:`crypto.oprf.oprf_receive`,
                    ".../tags" and ".../common". 9 for n >= 3: 5 of :func:`crypto.oprf.oprf_first`, and
                    ".../shares" in place of tags. A long list is sent in pieces.
    Bytes:          with set sizes m_i and c the size of the intersection: each 40 * (n - 1) for sizes and
                    commitments, 32 * (n - 1) for their digest and coins; :func:`crypto.oprf.oprf_receive`
                    with the collector as receiver and each other party as sender, for n >= 3 also
                    :func:`crypto.oprf.oprf_first` for every two other parties. For n = 2 the collector's peer
                    sends 16 m_i, and the collector sends back 8 + ceil(m_i / 8). For n >= 3 each but the
                    collector sends 16 * rows for every bin of its identifiers (rows and bins as there); the
                    collector sends 8 + 16 c to each.
    Assumes:        semi-honest parties; authenticated channels; equal 128-bit tags mean equal identifiers, and
                    sums of shares are zero by chance with probability 2**-128; the assumptions of
                    :func:`crypto.oprf.oprf_receive`.
    Source:         n = 2: as above. n >= 3: Kolesnikov, Matania, Pinkas, Rosulek, Trieu (CCS 2017), protocol
                    for semi-honest parties, with secrets of two parties from two functions in place of
                    programmed ones. The functionality: [T] 5.6.

    Raises LocalProtocolError for an impossible roster and for duplicated identifiers, before anything is sent.
    Exceptions of ``announced`` come before anything but sizes is sent.

    Raises RemoteProtocolError for messages of a wrong length, for sizes or a roster on which parties disagree, for a
    coin that is not the committed coin, for transfers that fail their check, and for a wrong number of common tags.
    For n = 2: also for tags that do not ascend. For n >= 3: also for common tags that are not ours or repeated.
    """
    _check_roster(me, parties, collector)
    _check_ids(ids)
    members = Members(me, tuple(parties), collector)
    coin = rng.bytes(_COIN_BYTES)
    sizes, commitments = yield from _exchange_sizes(members, len(ids), _commitment(me, coin))
    announced(len(ids), {peer: sizes[peer] for peer in members.peers})
    key = yield from _agree(members, sizes, commitments, coin, job_hash)
    if 0 in sizes.values():
        return np.zeros(0, np.int64)
    own = Identifiers(ids, key)
    if members.n > MIN_PARTIES:
        return (yield from intersect_several(members, own, sizes, rng))
    if me == collector:
        return (yield from _collect(members, own, sizes[members.peers[0]], rng))
    return (yield from _offer(members, own, sizes[collector], rng))


def _collect(members: Members, own: Identifiers, theirs: int, rng: Rng) -> Rounds[Positions]:
    """Compare our tags with the peer's; tell the peer the common tags. The order is the order of the peer's list."""
    (peer,) = members.peers
    ours = yield from oprf_receive(members.me, peer, own, rng)
    parts = []
    for piece in slices(theirs, PIECE):
        payload = yield from receive(_TAGS, peer)
        words = decode_words(payload, TAG_WORDS * (piece.stop - piece.start), peer, _TAGS)
        parts.append(words.reshape(-1, TAG_WORDS))
    tags = np.concatenate(parts)
    if not ascend(tags):
        raise RemoteProtocolError(peer, _TAGS, "tags that do not ascend")
    positions, common = matches(ours, tags)
    header = encode_integer(len(positions), _SIZE_BYTES)
    yield from send(_COMMON, {peer: header + encode_bits(common)})
    return positions


def _offer(members: Members, own: Identifiers, theirs: int, rng: Rng) -> Rounds[Positions]:
    """Send our tags in ascending order, independent of the order of our list, and receive the common tags."""
    (peer,) = members.peers
    tags = yield from oprf_send(members.me, peer, own, theirs, rng)
    order = ascending_order(tags)
    for piece in slices(len(own), PIECE):
        yield from send(_TAGS, {peer: encode_words(tags[order[piece]])})
    payload = yield from receive(_COMMON, peer)
    common = decode_bits(payload[_SIZE_BYTES:], len(own), peer, _COMMON)
    count = decode_integer(payload[:_SIZE_BYTES], _SIZE_BYTES, theirs + 1, peer, _COMMON)
    if np.count_nonzero(common) != count:
        raise RemoteProtocolError(peer, _COMMON, "another number of common identifiers than is said")
    return order[np.flatnonzero(common)]


def _exchange_sizes(
    members: Members, size: int, commitment: bytes
) -> Rounds[tuple[dict[str, int], dict[str, bytes]]]:
    """Tell everybody our set's size and the commitment to our coin; return sizes and commitments by party."""
    ours = encode_integer(size, _SIZE_BYTES) + commitment
    inbox = yield Round(_SIZE, dict.fromkeys(members.peers, ours), frozenset(members.peers))
    sizes, commitments = {members.me: size}, {members.me: commitment}
    for peer in members.peers:
        expect_length(inbox[peer], len(ours), peer, _SIZE)
        sizes[peer] = decode_integer(inbox[peer][:_SIZE_BYTES], _SIZE_BYTES, MAX_SET + 1, peer, _SIZE)
        commitments[peer] = inbox[peer][_SIZE_BYTES:]
    return sizes, commitments


def _agree(
    members: Members, sizes: dict[str, int], commitments: dict[str, bytes], coin: bytes, job_hash: bytes
) -> Rounds[bytes]:
    """Check that all parties go on from the same sizes, commitments, roster, collector, job and protocol; open the
    coins. Return a key made of all that.
    """
    # Before version 3, only sizes were exchanged, and each function had a key of its own for hashes.
    digest = hashlib.sha256(b"jointcut intersection/agree 3")
    names = [party.encode() for party in (members.collector, *members.parties)]
    numbers = (sizes[party].to_bytes(_SIZE_BYTES, "little") for party in members.parties)
    for part in (job_hash, *names, *numbers, *(commitments[party] for party in members.parties)):
        digest.update(len(part).to_bytes(8, "little") + part)
    ours = digest.digest()[:_DIGEST_BYTES] + coin
    inbox = yield Round(_AGREE, dict.fromkeys(members.peers, ours), frozenset(members.peers))
    coins = {members.me: coin}
    for peer in members.peers:
        expect_length(inbox[peer], len(ours), peer, _AGREE)
        if inbox[peer][:_DIGEST_BYTES] != ours[:_DIGEST_BYTES]:
            raise RemoteProtocolError(
                peer, _AGREE, "set sizes, roster, collector, job or version of the protocol are not ours"
            )
        coins[peer] = inbox[peer][_DIGEST_BYTES:]
        if _commitment(peer, coins[peer]) != commitments[peer]:
            raise RemoteProtocolError(peer, _AGREE, "a coin that is not the committed coin")
    return derive_key(
        b"".join(coins[party] for party in members.parties), b"intersection/ids", digest.digest()
    )


def _commitment(party: str, coin: bytes) -> bytes:
    return hashlib.sha256(b"jointcut intersection/coin" + coin + party.encode()).digest()


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
    if not _all_different(ids):
        raise LocalProtocolError("identifiers are duplicated; each may occur once")


def _all_different(ids: Sequence[bytes]) -> bool:
    """Compare sorted hashes, which is faster than a set; the set decides if two hashes are equal."""
    hashes = np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all()) or len(set(ids)) == len(ids)
