"""Insecure ideal twins of the arithmetic protocols: the same signatures, everything in the clear.

What uses a protocol is tested with its twin in its place, as the hybrid model does it. One party sends its
inputs as JSON, the other evaluates the functionality literally; shares are split by a fixed stream, so the
twins' outputs are additive shares too, but hide nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from crypto.encoding import Words
from crypto.intersection import Announced, Positions, any_sizes
from crypto.joint_histogram import NO_LABEL, HistogramShape, Labels
from crypto.paillier import PrivateKey, PublicKey
from crypto.polynomial import Polynomial, PolynomialShape
from crypto.rng import Rng, uniform_words
from crypto.rounds import Round, Rounds, receive, send
from crypto.scalar_product import ProductShape
from crypto.shares import Bits, ComputePair, Shares, dtype
from tests.support.rng import SeededRng

MODULUS = 1 << 64


def split(values: Sequence[int]) -> tuple[Words, Words]:
    """Two additive shares modulo 2**64 of each value; the same ones every time."""
    first = uniform_words(SeededRng("ideal"), len(values))
    return first, np.array([value % MODULUS for value in values], np.uint64) - first


def tell(peer: str, value: Any) -> Rounds[None]:
    yield from send("ideal", {peer: json.dumps(value).encode()})


def hear(peer: str) -> Rounds[Any]:
    return json.loads((yield from receive("ideal", peer)))


def scalar_product_holder(
    peer: str, key: PrivateKey, vectors: Words, shape: ProductShape, rng: Rng
) -> Rounds[Words]:
    yield from tell(peer, vectors.tolist())
    return split([0] * shape.count)[0]


def scalar_product_masker(
    peer: str, key: PublicKey, vectors: Words, shape: ProductShape, rng: Rng
) -> Rounds[Words]:
    theirs = yield from hear(peer)
    pairs = zip(theirs, vectors.tolist(), strict=True)
    return split([sum(a * b for a, b in zip(x, y, strict=True)) for x, y in pairs])[1]


def evaluated(polynomials: Sequence[Polynomial], points: Sequence[int]) -> list[int]:
    return [sum(c * a**i for i, c in enumerate(p)) for p, a in zip(polynomials, points, strict=True)]


def value_receiver(
    peer: str, key: PrivateKey, points: Sequence[int], shape: PolynomialShape, rng: Rng
) -> Rounds[list[int]]:
    return evaluated((yield from hear(peer)), points)


def value_sender(
    peer: str, key: PublicKey, polynomials: Sequence[Polynomial], shape: PolynomialShape, rng: Rng
) -> Rounds[None]:
    yield from tell(peer, [list(polynomial) for polynomial in polynomials])


def share_receiver(
    peer: str, key: PrivateKey, points: Sequence[int], shape: PolynomialShape, rng: Rng
) -> Rounds[Words]:
    return split(evaluated((yield from hear(peer)), points))[1]


def share_sender(
    peer: str, key: PublicKey, polynomials: Sequence[Polynomial], shape: PolynomialShape, rng: Rng
) -> Rounds[Words]:
    yield from tell(peer, [list(polynomial) for polynomial in polynomials])
    return split([0] * shape.count)[0]


def intersect(
    me: str,
    parties: Sequence[str],
    collector: str,
    ids: Sequence[bytes],
    job_hash: bytes,
    rng: Rng,
    announced: Announced = any_sizes,
) -> Rounds[Positions]:
    """Everybody tells everybody; the common order is that of the identifiers, which the real one hides."""
    peers = [party for party in parties if party != me]
    payload = json.dumps([identifier.hex() for identifier in ids]).encode()
    inbox = yield Round("ideal", dict.fromkeys(peers, payload), frozenset(peers))
    sets = [set(map(bytes.fromhex, json.loads(inbox[peer]))) for peer in peers]
    announced(len(ids), dict(zip(peers, map(len, sets), strict=True)))
    places = {identifier: i for i, identifier in enumerate(ids)}
    return np.array([places[i] for i in sorted(set(ids).intersection(*sets))], np.int64)


class Session:
    """State of the twins of share and transfer sessions: the peer or the roster."""

    def __init__(self, peer: str, pair: ComputePair | None = None, parties: Sequence[str] = ()) -> None:
        self.me = self.peer = peer
        self.pair = pair
        self.parties = tuple(parties)


def joint_histogram_send(
    sender: Session,
    labels: Labels,
    shape: HistogramShape,
    rng: Rng,
    weights: Labels | None = None,
    groups: Labels | None = None,
) -> Rounds[Shares]:
    amounts = np.ones(shape.records, np.int64) if weights is None else weights
    yield from tell(sender.peer, [labels.tolist(), amounts.tolist()])
    cells = _cells(shape, groups)
    zeros = split([0] * math.prod(cells))[0].astype(dtype(shape.width)).reshape(cells)
    return zeros[0] if groups is None else zeros


def joint_histogram_receive(
    receiver: Session, labels: Labels, shape: HistogramShape, groups: Labels | None = None
) -> Rounds[Shares]:
    theirs, weights = yield from hear(receiver.peer)
    counts = np.zeros(_cells(shape, groups), dtype=object)
    group = np.repeat(np.arange(len(counts)), [shape.records] if groups is None else groups)
    for g, a, b, weight in zip(group, theirs, labels.tolist(), weights, strict=True):
        if NO_LABEL not in (a, b):
            counts[g, a, b] += weight
    shares = split(counts.ravel().tolist())[1].astype(dtype(shape.width)).reshape(counts.shape)
    return shares[0] if groups is None else shares


def _cells(shape: HistogramShape, groups: Labels | None) -> tuple[int, int, int]:
    return 1 if groups is None else len(groups), shape.sender_labels, shape.receiver_labels


def setup_shares(
    me: str, parties: Sequence[str], pair: ComputePair, job_hash: bytes, rng: Rng
) -> Rounds[Session]:
    return Session(me, pair, parties)
    yield


def share_vector(
    session: Session, values: Shares, counted: Mapping[str, Bits] | None = None
) -> Rounds[Shares | None]:
    """Everybody tells the leader; leader's and deputy's shares differ by a fixed stream."""
    assert session.pair is not None
    leader, deputy = session.pair.leader, session.pair.deputy
    zeros = split([0] * len(values))
    if session.me != leader:
        yield from tell(leader, values.tolist())
        return zeros[1].astype(values.dtype) if session.me == deputy else None
    peers = [party for party in session.parties if party != leader]
    inbox = yield Round("ideal", {}, frozenset(peers))
    vectors = {leader: values} | {peer: np.array(json.loads(inbox[peer]), values.dtype) for peer in peers}
    own = [words if counted is None else words * counted[party] for party, words in vectors.items()]
    return sum(own, start=zeros[0].astype(values.dtype))


def open_vector(
    session: Session,
    count: int,
    width: int,
    share: Shares | None = None,
    recipients: Collection[str] | None = None,
) -> Rounds[Shares | None]:
    """Leader and deputy tell the recipients their shares."""
    assert session.pair is not None
    to = set(session.parties if recipients is None else recipients)
    pair = {session.pair.leader, session.pair.deputy}
    outgoing = {} if share is None else dict.fromkeys(to - {session.me}, json.dumps(share.tolist()).encode())
    senders = frozenset(pair - {session.me}) if session.me in to else frozenset()
    inbox = yield Round("ideal", outgoing, senders)
    if session.me not in to:
        return None
    own = np.zeros(count, dtype(width)) if share is None else share
    return sum((np.array(json.loads(inbox[peer]), dtype(width)) for peer in senders), start=own)
