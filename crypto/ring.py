"""The positions of the common identifiers of n parties, by commutative encryption around a ring ([T] 5.6).

Every party's identifiers are hashed onto Curve25519 and travel around a ring. Each party raises the points to its
secret power and shuffles them. After n hops each list is under all n keys, and equal identifiers are equal points.
The collector compares the lists and sends the positions of the full intersection back along the hops. Every hop
undoes its shuffle. Agrawal, Evfimievski, Srikant, SIGMOD 2003, for two parties; around a ring as in Vaidya and
Clifton, J. Computer Security 2005. :mod:`crypto.intersection` uses the ring for three parties and more, and states
functionality and costs; the sizes are known before.

Every hop back states the size of the intersection: no party ends well while a peer that heard something else waits
for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crypto.curve import POINT_BYTES, Scalar, draw_scalar, exponentiate, hash_to_curve, is_on_curve
from crypto.encoding import decode_integer, encode_integer, expect_length
from crypto.errors import RemoteProtocolError
from crypto.pieces import slices
from crypto.rng import Rng, uniform_permutation
from crypto.rounds import Inbox, Round, Rounds

Positions = NDArray[np.int64]

PIECE = 1 << 13
"""Number of elements in a message."""

_SIZE_BYTES, _TAG_BYTES, _POSITION_BYTES = 8, 16, 4
_POINTS, _TAGS = "intersection/points", "intersection/tags"
_COMMON, _POSITIONS = "intersection/common", "intersection/positions"


def around(
    ring: Ring, ids: Sequence[bytes], sizes: Mapping[str, int], job_hash: bytes, rng: Rng
) -> Rounds[Positions]:
    """Return the positions of the common identifiers; no size in ``sizes`` is 0. See the module."""
    key = draw_scalar(rng)
    prefix = b"jointcut intersection 1" + job_hash

    # At hop k we hold the list of the k-th party before us; hop 0 is our own: hash, encrypt, shuffle.
    shuffles = [uniform_permutation(rng, len(ids))]
    points: Iterable[bytes] = (exponentiate(key, hash_to_curve(prefix, ids[i])) for i in shuffles[0])
    for hop in range(1, ring.n):
        received = yield from _pass_on(ring, key, points, sizes[ring.back(hop - 1)], sizes[ring.back(hop)])
        shuffles.append(uniform_permutation(rng, len(received)))
        points = [received[i] for i in shuffles[-1]]

    common = yield from _compare(ring, [point[:_TAG_BYTES] for point in points], sizes)
    for hop in range(ring.n - 1, 0, -1):
        common = shuffles[hop][common]
        common = yield from _hand_back(ring, common, sizes[ring.back(hop - 1)])
    return shuffles[0][common]


class Ring:
    """The roster as a ring, seen from a party."""

    def __init__(self, me: str, parties: Sequence[str], collector: str) -> None:
        self.me = me
        self.parties = tuple(parties)
        self.collector = collector
        self.n = len(parties)
        self._place = self.parties.index(me)

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(party for party in self.parties if party != self.me)

    def back(self, steps: int) -> str:
        """Return the party ``steps`` places before us; ourselves at 0."""
        return self.parties[(self._place - steps) % self.n]

    def after(self, party: str) -> str:
        """Return the next party. ``party`` is the last to encrypt the list of the next party."""
        return self.parties[(self.parties.index(party) + 1) % self.n]


def _pass_on(
    ring: Ring, key: Scalar, points: Iterable[bytes], sending: int, receiving: int
) -> Rounds[list[bytes]]:
    """Send a list to the next party, and return the previous party's list under our key too."""
    before, after, source = ring.back(1), ring.back(-1), iter(points)
    encrypted: list[bytes] = []
    for out, into in _in_steps((sending, receiving)):
        outgoing = {after: b"".join(next(source) for _ in range(out))} if out else {}
        inbox = yield Round(_POINTS, outgoing, frozenset((before,)) if into else frozenset())
        if into:
            piece = _decode_points(inbox, into, before)
            encrypted.extend(_exponentiate(key, point, before) for point in piece)
    # Looked for among the results: clamped powers of u and 1/u are equal, and would be the next party's doubles.
    if len(set(encrypted)) != receiving:
        raise RemoteProtocolError(before, _POINTS, "a point occurs twice")
    return encrypted


def _compare(ring: Ring, tags: list[bytes], sizes: Mapping[str, int]) -> Rounds[Positions]:
    """Return the positions of the intersection in the list that we were the last to encrypt."""
    if ring.me != ring.collector:
        for piece in slices(len(tags), PIECE):
            yield Round(_TAGS, {ring.collector: b"".join(tags[piece])})
        return (yield from _receive_common(ring, sizes))
    lists = yield from _receive_tags(ring, sizes)
    lists[ring.me] = tags
    places = {party: _places(listed, party) for party, listed in lists.items()}
    common = sorted(set.intersection(*(set(place) for place in places.values())))
    found = {party: np.array([place[tag] for tag in common], np.int64) for party, place in places.items()}
    yield Round(_COMMON, dict.fromkeys(ring.peers, encode_integer(len(common), _SIZE_BYTES)))
    for piece in slices(len(common), PIECE):
        yield Round(_COMMON, {peer: _encode_positions(found[peer][piece]) for peer in ring.peers})
    return found[ring.me]


def _receive_tags(ring: Ring, sizes: Mapping[str, int]) -> Rounds[dict[str, list[bytes]]]:
    """Return every peer's list: the list of the party after the peer, under all keys."""
    lists: dict[str, list[bytes]] = {peer: [] for peer in ring.peers}
    for batch in _in_steps([sizes[ring.after(peer)] for peer in ring.peers]):
        awaited = {peer: size for peer, size in zip(ring.peers, batch, strict=True) if size}
        inbox = yield Round(_TAGS, {}, frozenset(awaited))
        for peer, size in awaited.items():
            expect_length(inbox[peer], _TAG_BYTES * size, peer, _TAGS)
            lists[peer] += _cut(inbox[peer], _TAG_BYTES)
    return lists


def _receive_common(ring: Ring, sizes: Mapping[str, int]) -> Rounds[Positions]:
    """Receive the size of the intersection and its positions in the list that we were the last to encrypt."""
    collector, waits = ring.collector, frozenset((ring.collector,))
    inbox = yield Round(_COMMON, {}, waits)
    bound = min(sizes.values()) + 1
    count = decode_integer(inbox[collector], _SIZE_BYTES, bound, collector, _COMMON)
    parts = []
    for piece in slices(count, PIECE):
        inbox = yield Round(_COMMON, {}, waits)
        parts.append(_decode_positions(inbox[collector], piece.stop - piece.start, collector, _COMMON))
    return _checked(parts, sizes[ring.after(ring.me)], collector, _COMMON)


def _hand_back(ring: Ring, positions: Positions, size: int) -> Rounds[Positions]:
    """Give the previous party its positions, and receive ours, in a list of ``size``, from the next.

    The first message holds the number of positions, and is sent even without positions.
    """
    before, after = ring.back(1), ring.back(-1)
    header, parts = encode_integer(len(positions), _SIZE_BYTES), []
    for piece in slices(len(positions), PIECE) if len(positions) else (slice(0, 0),):
        payload = header + _encode_positions(positions[piece])
        inbox = yield Round(_POSITIONS, {before: payload}, frozenset((after,)))
        if not inbox[after].startswith(header):
            raise RemoteProtocolError(after, _POSITIONS, "another number of common identifiers")
        theirs = inbox[after][len(header) :]
        parts.append(_decode_positions(theirs, piece.stop - piece.start, after, _POSITIONS))
        header = b""
    return _checked(parts, size, after, _POSITIONS)


def _decode_points(inbox: Inbox, count: int, peer: str) -> list[bytes]:
    """Decode ``count`` points, each canonical and on the curve."""
    expect_length(inbox[peer], POINT_BYTES * count, peer, _POINTS)
    points = _cut(inbox[peer], POINT_BYTES)
    if not all(map(is_on_curve, points)):
        raise RemoteProtocolError(peer, _POINTS, "a point that is not on the curve")
    return points


def _exponentiate(key: Scalar, point: bytes, peer: str) -> bytes:
    try:
        return exponentiate(key, point)
    except ValueError as error:  # an all-zero result
        raise RemoteProtocolError(peer, _POINTS, "a point of small order") from error


def _places(tags: list[bytes], party: str) -> dict[bytes, int]:
    """Index a list of tags, which must be different."""
    places = {tag: i for i, tag in enumerate(tags)}
    if len(places) != len(tags):
        raise RemoteProtocolError(party, _TAGS, "a tag occurs twice")
    return places


def _encode_positions(positions: Positions) -> bytes:
    return positions.astype("<u4").tobytes()


def _decode_positions(payload: bytes, count: int, peer: str, step: str) -> Positions:
    expect_length(payload, _POSITION_BYTES * count, peer, step)
    return np.frombuffer(payload, "<u4").astype(np.int64)


def _checked(parts: list[Positions], size: int, peer: str, step: str) -> Positions:
    """Join positions, which must be different and lie in a list of ``size`` elements."""
    positions = np.concatenate([np.zeros(0, np.int64), *parts])
    if positions.size and (positions.max() >= size or len(np.unique(positions)) != len(positions)):
        raise RemoteProtocolError(peer, step, "positions out of range or repeated")
    return positions


def _cut(payload: bytes, width: int) -> list[bytes]:
    return [payload[i : i + width] for i in range(0, len(payload), width)]


def _in_steps(counts: Sequence[int]) -> Iterator[list[int]]:
    """Cut several streams of elements into messages, side by side; 0 where a stream has ended."""
    for start in range(0, max(counts), PIECE):
        yield [min(PIECE, max(count - start, 0)) for count in counts]
