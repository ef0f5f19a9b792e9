"""Private set intersection of n ≥ 2 parties: which identifiers all have, in one order.

Parties compare tags of oblivious pseudo-random functions (:mod:`crypto.oprf`). Two take one such function: Pinkas,
Rosulek, Trieu, Yanai (EUROCRYPT 2020). Three and more make shares of zero out of several (:mod:`crypto.zero_shares`).

How many messages there are depends on sizes that every party hears for itself. So all compare a digest of the
set sizes before they act on them, and who tells what is common says how much it is: no party ends well while another,
which heard something else, waits for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from crypto.encoding import (
    decode_bits,
    decode_integer,
    encode_bits,
    encode_integer,
    expect_length,
)
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.oprf import oprf_receive, oprf_send
from crypto.rng import Rng
from crypto.rounds import Round, Rounds, receive, send
from crypto.tags import Positions, ascending, matches, ranking, receive_tags, send_tags
from crypto.zero_shares import Roster, collect, contribute

MIN_PARTIES = 2
MAX_SET = 2**32 - 1

_SIZE_BYTES, _DIGEST_BYTES = 8, 16
_SIZE, _AGREE = "intersection/size", "intersection/agree"
_TAGS, _COMMON = "intersection/tags", "intersection/common"


def intersect(
    me: str, parties: Sequence[str], collector: str, ids: Sequence[bytes], job_hash: bytes, rng: Rng
) -> Rounds[Positions]:
    """Return the positions in ``ids`` of the identifiers that all parties have, in a common order.

    Functionality:  (S_1, ..., S_n) -> to party i the positions in its list of the identifiers that are in
                    all S_j, in one pseudo-random order that is the same for all: the k-th positions of all
                    parties belong to one identifier.
    Input, each:    ``ids``, different byte strings, at most 2**32 - 1; normalising them is the caller's. The
                    roster, ``collector`` and ``job_hash`` are public, equal for all.
    Output, each:   int64, shape (size of the intersection,).
    Leakage:        to all: every party's set size, the size of the intersection, and which of their own
                    identifiers are in it; to any coalition of parties no more than these say of its members. If a
                    set is empty, the protocol ends after the sizes. The collector learns what is common first, and
                    may tell others less.
    Rounds:         8 for n = 2: "intersection/size", ".../agree", 4 of :func:`crypto.oprf.oprf_receive` with the
                    collector as receiver, "intersection/tags", ".../common". For n >= 3, 10: the same 6, with any
                    two but the collector in both roles besides, "intersection/salt" with ".../hint", ".../count",
                    ".../same", ".../common"; and at most one more for each further bin of choices. A long list is
                    sent in pieces.
    Bytes:          with set sizes m_i, c the intersection: each 8 * (n - 1) for sizes, 16 * (n - 1) for their digest.
                    For n = 2 as :func:`crypto.oprf.oprf_receive`, and 16 m_i by the other than the collector, which
                    sends it 8 + ceil(m_i / 8). For n >= 3, as a receiver of :func:`crypto.oprf.oprf_receive` n - 1
                    times by the collector, n - 2 times by the others, as a sender n - 1 times by these; 16, and
                    16 * rows a bin of one's own, by the others for hints, and 8 * (n - 2); 8 + 16 * c to each
                    by the collector.
    Assumes:        authenticated channels; as :func:`crypto.oprf.oprf_receive`; equal 128-bit tags mean equal
                    identifiers, and shares of 128 bits are zero only where all have an identifier (false with
                    probability below N**2 * 2**-129, N being all identifiers). Parties that deviate: docs/crypto.md.
    Source:         Pinkas et al. (2020) for n = 2; for n >= 3 Kolesnikov et al. (CCS 2017).

    Raises LocalProtocolError for a roster that cannot be and for duplicated identifiers, before anything is
    sent; RemoteProtocolError for messages of another length, sizes, a roster or a number of common identifiers that
    parties do not hold alike, transfers that fail their check; for n = 2 tags that do not ascend and common ones that
    are not as many as said; for n >= 3 common tags that are repeated or not our identifiers'.
    """
    _check_roster(me, parties, collector)
    _check_ids(ids)
    roster = Roster(me, tuple(parties), collector)
    sizes = yield from _exchange_sizes(roster, len(ids))
    yield from _agree(roster, sizes, job_hash)
    if 0 in sizes.values():
        return np.zeros(0, np.int64)
    if len(parties) > MIN_PARTIES:
        work = collect if me == collector else contribute
        return (yield from work(roster, ids, sizes, job_hash, rng))
    (peer,) = roster.peers
    if me == collector:
        return (yield from _collect(me, peer, ids, sizes[peer], job_hash, rng))
    return (yield from _offer(me, peer, ids, sizes[peer], job_hash, rng))


def _collect(
    me: str, peer: str, ids: Sequence[bytes], theirs: int, job_hash: bytes, rng: Rng
) -> Rounds[Positions]:
    """Compare our tags with the peer's, and tell it which of its own are common; the order is that of its list."""
    ours = yield from oprf_receive(me, peer, ids, job_hash, rng)
    tags = yield from receive_tags(_TAGS, peer, theirs)
    if not ascending(tags):
        raise RemoteProtocolError(peer, _TAGS, "tags that do not ascend")
    positions, common = matches(ours.tags, tags)
    header = encode_integer(len(positions), _SIZE_BYTES)
    yield from send(_COMMON, {peer: header + encode_bits(common)})
    return positions


def _offer(
    me: str, peer: str, ids: Sequence[bytes], theirs: int, job_hash: bytes, rng: Rng
) -> Rounds[Positions]:
    """Send our tags in ascending order, which says nothing of ours, and hear which are common."""
    ours = yield from oprf_send(me, peer, ids, theirs, job_hash, rng)
    order = ranking(ours.tags)
    yield from send_tags(_TAGS, {peer: ours.tags[order]})
    payload = yield from receive(_COMMON, peer)
    common = decode_bits(payload[_SIZE_BYTES:], len(ids), peer, _COMMON)
    count = decode_integer(payload[:_SIZE_BYTES], _SIZE_BYTES, theirs + 1, peer, _COMMON)
    if np.count_nonzero(common) != count:
        raise RemoteProtocolError(peer, _COMMON, "another number of common identifiers than is said")
    return order[np.flatnonzero(common)]


def _exchange_sizes(roster: Roster, size: int) -> Rounds[dict[str, int]]:
    """Tell everybody our set's size; return the sizes by party."""
    outgoing = dict.fromkeys(roster.peers, encode_integer(size, _SIZE_BYTES))
    inbox = yield Round(_SIZE, outgoing, frozenset(roster.peers))
    sizes = {
        peer: decode_integer(inbox[peer], _SIZE_BYTES, MAX_SET + 1, peer, _SIZE) for peer in roster.peers
    }
    return sizes | {roster.me: size}


def _agree(roster: Roster, sizes: dict[str, int], job_hash: bytes) -> Rounds[None]:
    """Make sure that all parties go on from the same sizes, roster, collector, job and protocol.

    Raises RemoteProtocolError that names all peers if one does not: any of them may have told it another size.
    """
    # Earlier versions encrypt around a ring, or have no salt; each protocol has a number of its own.
    version = b" 2" if len(roster.parties) == MIN_PARTIES else b" 4"
    digest = hashlib.sha256(b"jointcut intersection/agree" + version)
    names = [party.encode() for party in (roster.collector, *roster.parties)]
    for part in (job_hash, *names, *(sizes[p].to_bytes(_SIZE_BYTES, "little") for p in roster.parties)):
        digest.update(len(part).to_bytes(8, "little") + part)
    ours = digest.digest()[:_DIGEST_BYTES]
    inbox = yield Round(_AGREE, dict.fromkeys(roster.peers, ours), frozenset(roster.peers))
    for peer in roster.peers:
        expect_length(inbox[peer], _DIGEST_BYTES, peer, _AGREE)
        if inbox[peer] != ours:
            reason = "set sizes, roster, collector, job or version of the protocol are not ours"
            raise RemoteProtocolError(" or ".join(roster.peers), _AGREE, reason)


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
