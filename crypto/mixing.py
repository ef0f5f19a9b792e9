"""Rows of n ≥ 2 parties put together so that nobody learns whose a row is: sealed, mixed twice, sorted.

Every row is a string of bytes of one public width. Each party seals its rows to a key that the deputy draws for the
run, and sends them to the leader, who sorts all boxes by their first 32 bytes, which are random, and passes them to
the deputy, who opens them and sorts the rows: of nobody's order anything is left. The leader sees which boxes are
whose and cannot open them; the deputy opens them and cannot tell whose they are. This is a mix (Chaum, CACM 1981) of
two stages, of which the second is also a recipient.

A recipient outside the protocol has a key of its own: then rows are sealed to it first, and what is mixed are those
boxes. So the leader and that recipient together learn nothing of origins, nor do the deputy and that recipient.

A box is libsodium's sealed box: an ephemeral X25519 key, and XSalsa20-Poly1305 under the secret that it has in common
with the recipient's key, the nonce being the BLAKE2b digest of both keys. It is put together here from the same parts
because libsodium's own function draws its coins itself. Whoever cannot make a box of a given content cannot change it
or replay it unseen: another ephemeral key is another nonce, and the same one twice is refused.

Not claimed: that rows are true, or that leader and deputy together learn nothing. libsodium runs in constant time;
sorting and comparing here do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from nacl.bindings import crypto_box, crypto_box_seal_open, crypto_box_seed_keypair
from nacl.exceptions import CryptoError
from numpy.typing import NDArray

from crypto.curve import exponentiate
from crypto.encoding import WORD, as_words, decode_integer, encode_integer, encode_integers, expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Round, Rounds, receive, send
from crypto.shares import ComputePair, open_vector, setup_shares, share_vector

Rows: TypeAlias = NDArray[np.uint8]
"""Shape (n_rows, width)."""

KEY_BYTES = 32
SEAL_BYTES = 48
"""What a box has more than its content: ephemeral key 32, tag 16."""
SLIP_BYTES = 16
"""Of the digest by which a sender knows its box again."""
PIECE_BYTES = 1 << 20
MAX_ROWS = 1 << 40
_NONCE_BYTES = 24
_WIDTH_BITS = 64
_ANY_SCALAR = X25519PrivateKey.from_private_bytes(bytes(KEY_BYTES))
_KEY, _AGREED, _BOXES, _MIXED, _TOLD = "mix/key", "mix/agreed", "mix/boxes", "mix/mixed", "mix/told"


class OpeningKey:
    """A recipient's key for one run. public: 32 bytes."""

    def __init__(self, rng: Rng) -> None:
        self.public, self._secret = crypto_box_seed_keypair(rng.bytes(KEY_BYTES))

    def __repr__(self) -> str:
        return "OpeningKey(<secret>)"

    def opened(self, boxes: Rows, suspects: str, step: str) -> Rows:
        """Open boxes; shape (n_boxes, width of a box - 48), in their order.

        suspects:  whom to name.

        Raises RemoteProtocolError for a box that is no box to this key, or if the boxes are not sorted or two have
        the same ephemeral key: in their order nothing may be hidden, and a box that comes twice marks its row.
        """
        keys = _strings(boxes[:, :KEY_BYTES])
        if (keys[1:] <= keys[:-1]).any():
            raise RemoteProtocolError(suspects, step, "boxes out of order, or the same box twice")
        try:
            opened = b"".join(crypto_box_seal_open(box.tobytes(), self.public, self._secret) for box in boxes)
        except CryptoError as error:
            raise RemoteProtocolError(suspects, step, "a box that cannot be opened") from error
        return _rows(opened, boxes.shape[1] - SEAL_BYTES)


def sealed(rows: Rows, public: bytes, rng: Rng) -> Rows:
    """Seal every row to a public key of 32 bytes; shape (n_rows, width + 48), sorted by the boxes' bytes."""
    boxes = b"".join(_box(row.tobytes(), public, rng) for row in rows)
    return _sorted(_rows(boxes, rows.shape[1] + SEAL_BYTES))


def _box(row: bytes, public: bytes, rng: Rng) -> bytes:
    ephemeral, secret = crypto_box_seed_keypair(rng.bytes(KEY_BYTES))
    nonce = hashlib.blake2b(ephemeral + public, digest_size=_NONCE_BYTES).digest()
    return ephemeral + crypto_box(row, nonce, public, secret)


@dataclass(frozen=True, slots=True)
class Mixed:
    """Boxes for a recipient outside the protocol.

    slips:  of every box 16 bytes of its SHA-256, sorted: shape (total, 16).
    boxes:  at the deputy, to be passed on: shape (total, width + 48), sorted; None elsewhere.
    """

    slips: Rows = field(repr=False)
    boxes: Rows | None = field(repr=False)


def checked_key(payload: bytes, peer: str, step: str) -> bytes:
    """A recipient's public key, as a peer says it. Raises RemoteProtocolError for what can be none."""
    expect_length(payload, KEY_BYTES, peer, step)
    try:
        exponentiate(_ANY_SCALAR, payload)
    except ValueError as error:
        raise RemoteProtocolError(peer, step, "a key of small order") from error
    return payload


def slips_of(boxes: Rows) -> Rows:
    """By what each box is known again; shape (n_boxes, 16), sorted."""
    slips = b"".join(hashlib.sha256(box.tobytes()).digest()[:SLIP_BYTES] for box in boxes)
    return _sorted(_rows(slips, SLIP_BYTES))


def mix_rows(
    me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int, rng: Rng
) -> Rounds[Rows]:
    """Put all parties' rows together, to every party, without saying whose a row is.

    Functionality:  (rows_1, ..., rows_n) -> the multiset of all rows, sorted by their bytes, to every party.
    Input, each:    ``rows``, shape (m_i, width); width and ``total`` (the sum of the m_i) public, equal for all.
    Output, each:   shape (total, width). Every party has found its own rows among them.
    Leakage:        the rows. To the leader every m_i, n ≥ 3 (of two parties each knows the other's from the total).
                    Every party can take its own rows away, a coalition theirs.
    Rounds:         5 ("mix/key", "mix/agreed", "mix/boxes", "mix/mixed", "mix/told"); for two parties 3, without
                    "mix/boxes".
    Bytes:          with b = width + 48: every party 32 (n - 1), its digest, and all but the leader 8 more; a party
                    outside the pair b m_i; the leader b (total - m_deputy); the deputy (32 + width total) (n - 1).
    Assumes:        leader and deputy do not collude; sealed boxes (X25519, XSalsa20-Poly1305) hide their content
                    and the key that they are for, against chosen boxes; private authenticated channels.
    Source:         Chaum, Untraceable electronic mail, return addresses, and digital pseudonyms (CACM 1981), with
                    sealed boxes as in libsodium.

    Raises LocalProtocolError for rows that are no such array; RemoteProtocolError, naming who may have caused it, if
    public inputs differ, rows are not as many as ``total``, a box comes twice or cannot be opened, or our rows are
    not all among those that the deputy tells.
    """
    found = yield from _mixed(me, parties, pair, rows, total, b"", rng)
    told = yield from _told(me, parties, pair, found, total, rows.shape[1])
    _require_own(rows, told, pair)
    return told


def mix_for_recipient(
    me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int, recipient: bytes, rng: Rng
) -> Rounds[Mixed]:
    """Put all parties' rows together for a recipient outside the protocol, without saying whose a row is.

    Functionality:  (rows_1, ..., rows_n) -> boxes to ``recipient``, one for each row, sorted by their bytes, to the
                    deputy; by what each box is known again to every party.
    Input, each:    ``rows``, ``total`` as :func:`mix_rows`; ``recipient``, a public key of 32 bytes, is compared.
    Output, each:   :class:`Mixed`. Every party has found its own boxes among them.
    Leakage:        to the leader every m_i. To the recipient the rows: it does not learn whose they are, nor does it
                    together with leader or deputy, but for those of the parties it colludes with.
    Rounds:         as :func:`mix_rows`.
    Bytes:          as there with width + 48 for width; but the deputy tells 16 total (n - 1).
    Assumes:        as there.
    Source:         as there; a second layer to the last stage is Chaum's cascade.

    Raises as there.
    """
    boxes = sealed(rows, recipient, rng)
    found = yield from _mixed(me, parties, pair, boxes, total, recipient, rng)
    told = yield from _told(me, parties, pair, None if found is None else slips_of(found), total, SLIP_BYTES)
    _require_own(slips_of(boxes), told, pair)
    return Mixed(told, found)


def _mixed(
    me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int, recipient: bytes, rng: Rng
) -> Rounds[Rows | None]:
    """The sorted rows of all at the deputy, None elsewhere."""
    _check_input(me, parties, pair, rows, total)
    key = OpeningKey(rng) if me == pair.deputy else None
    public = yield from _key(me, parties, pair, key)
    counts = yield from _agreed(me, parties, pair, rows, total, public + recipient)
    if key is None:
        boxes = yield from _collected(me, pair, sealed(rows, public, rng), counts)
        for piece in _pieces(boxes):
            to, step = (pair.deputy, _MIXED) if me == pair.leader else (pair.leader, _BOXES)
            yield from send(step, {to: piece.tobytes()})
        return None
    boxes = yield from _received(pair.leader, _MIXED, total - len(rows), rows.shape[1] + SEAL_BYTES)
    others = key.opened(boxes, " or ".join(party for party in parties if party != me), _MIXED)
    return _sorted(np.concatenate([rows, others]))


def _key(me: str, parties: Sequence[str], pair: ComputePair, key: OpeningKey | None) -> Rounds[bytes]:
    """The deputy's key for this run, at every party."""
    if key is not None:
        yield from send(_KEY, {party: key.public for party in parties if party != me})
        return key.public
    public = yield from receive(_KEY, pair.deputy)
    return checked_key(public, pair.deputy, _KEY)


def _agreed(
    me: str,
    parties: Sequence[str],
    pair: ComputePair,
    rows: Rows,
    total: int,
    keys: bytes,
) -> Rounds[dict[str, int]]:
    """Compare all that is public, before a box leaves: whoever gave each party another key could tell the rows apart
    by the key that opens them.

    Returns, at the leader, how many rows each other party has; nothing elsewhere.
    """
    peers = [party for party in parties if party != me]
    ours = hashlib.sha256(encode_integers((rows.shape[1], total), WORD) + keys).digest()
    outgoing = dict.fromkeys(peers, ours)
    if me != pair.leader:
        outgoing[pair.leader] += encode_integer(len(rows), WORD)
    inbox = yield Round(_AGREED, outgoing, frozenset(peers))
    counts = {}
    for peer in peers:
        theirs, count = inbox[peer][: len(ours)], inbox[peer][len(ours) :]
        if theirs != ours:
            suspects = dict.fromkeys(party for party in (peer, pair.deputy) if party != me)
            reason = "another key, width or number of rows than we know"
            raise RemoteProtocolError(" or ".join(suspects), _AGREED, reason)
        expect_length(count, WORD if me == pair.leader else 0, peer, _AGREED)
        if me == pair.leader:
            counts[peer] = decode_integer(count, WORD, total + 1, peer, _AGREED)
    if me == pair.leader and sum(counts.values()) + len(rows) != total:
        raise RemoteProtocolError(
            " or ".join(peers), _AGREED, "other numbers of rows than add up to the total"
        )
    return counts


def _collected(me: str, pair: ComputePair, own: Rows, counts: dict[str, int]) -> Rounds[Rows]:
    """At the leader the boxes of all but the deputy, sorted; elsewhere our own."""
    if me != pair.leader:
        return own
    size = own.shape[1]
    left = {peer: count for peer, count in counts.items() if peer != pair.deputy}
    received: dict[str, list[Rows]] = {peer: [] for peer in left}
    while waiting := frozenset(peer for peer, count in left.items() if count):
        inbox = yield Round(_BOXES, {}, waiting)
        for peer in sorted(waiting):
            count = min(left[peer], _piece_rows(size))
            expect_length(inbox[peer], count * size, peer, _BOXES)
            received[peer].append(_rows(inbox[peer], size))
            left[peer] -= count
    known = set(_keys_of(own))
    for peer, boxes in received.items():
        theirs = [key for piece in boxes for key in _keys_of(piece)]
        if len(known) + len(theirs) != len(known := known | set(theirs)):
            raise RemoteProtocolError(peer, _BOXES, "the same box twice")
    return _sorted(np.concatenate([own, *(piece for boxes in received.values() for piece in boxes)]))


def _told(
    me: str, parties: Sequence[str], pair: ComputePair, found: Rows | None, total: int, width: int
) -> Rounds[Rows]:
    """What the deputy has, at every party; others hold its order against it."""
    if found is not None:
        others = [party for party in parties if party != me]
        for piece in _pieces(found):
            yield from send(_TOLD, dict.fromkeys(others, piece.tobytes()))
        return found
    told = yield from _received(pair.deputy, _TOLD, total, width)
    if not in_order(told):
        raise RemoteProtocolError(pair.deputy, _TOLD, "rows out of order")
    return told


def _received(peer: str, step: str, count: int, width: int) -> Rounds[Rows]:
    """So many rows of a peer, piece by piece; shape (count, width)."""
    received = []
    for start in range(0, count, _piece_rows(width)):
        payload = yield from receive(step, peer)
        expect_length(payload, min(_piece_rows(width), count - start) * width, peer, step)
        received.append(payload)
    return _rows(b"".join(received), width)


def _require_own(own: Rows, told: Rows, pair: ComputePair) -> None:
    """Raise RemoteProtocolError unless all that is ours is told, as often as we have it."""
    ours, counts = np.unique(_strings(own), return_counts=True)
    among = np.sort(_strings(told))
    found = np.searchsorted(among, ours, "right") - np.searchsorted(among, ours, "left")
    if (found < counts).any():
        raise RemoteProtocolError(f"{pair.leader} or {pair.deputy}", _TOLD, "rows of ours are missing")


def agree_width(
    me: str,
    parties: Sequence[str],
    pair: ComputePair,
    needed: int,
    widths: Sequence[int],
    job_hash: bytes,
    rng: Rng,
) -> Rounds[int]:
    """Find the least of some public widths that holds every party's rows, without saying whose is the longest.

    Functionality:  (w_1, ..., w_n) -> the least of ``widths`` that is no less than any w_i, to every party.
    Input, each:    ``needed``, its w_i; ``widths`` ascending, and ``job_hash``: public and equal for all.
    Output, each:   the width.
    Leakage:        the width; to each party the least width that holds the rows of all others, to a coalition that of
                    all outside (with two parties: the other's).
    Rounds:         as :func:`crypto.shares.setup_shares`, :func:`~crypto.shares.share_vector` and
                    :func:`~crypto.shares.open_vector` of len(widths) words of 64 bits. Bytes: as there.
    Assumes:        as there.
    Source:         disjunction by random multiples: a word for every width, 0 where our rows fit and random
                    elsewhere, so that the sum of all is 0 where all fit, and else with probability 2**-64; folklore.

    Raises LocalProtocolError if ``needed`` exceeds all widths, RemoteProtocolError if no width holds what others
    have, or ours: then somebody did not follow the protocol.
    """
    if needed > widths[-1]:
        raise LocalProtocolError(f"rows have at most {widths[-1]} bytes")
    session = yield from setup_shares(me, parties, pair, job_hash, rng)
    words = as_words([int.from_bytes(rng.bytes(WORD), "little") if needed > width else 0 for width in widths])
    share = yield from share_vector(session, words)
    opened = yield from open_vector(session, len(widths), _WIDTH_BITS, share)
    assert opened is not None  # we are of the roster
    fitting = [width for width, word in zip(widths, opened.tolist(), strict=True) if not word]
    if not fitting or fitting[0] < needed:
        raise RemoteProtocolError(
            " or ".join(party for party in parties if party != me), "shares/open", "a width that cannot be"
        )
    return fitting[0]


def _check_input(me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int) -> None:
    if pair.leader == pair.deputy or not {me, pair.leader, pair.deputy} <= set(parties):
        raise LocalProtocolError("leader and deputy must be two different parties of the roster, as we must")
    if rows.ndim != 2 or rows.dtype != np.uint8 or not rows.shape[1]:
        raise LocalProtocolError(f"rows are bytes of one width, not {rows.dtype} of shape {rows.shape}")
    if not len(rows) <= total < MAX_ROWS:
        raise LocalProtocolError("we have more rows than all together")


def _keys_of(boxes: Rows) -> list[bytes]:
    return [box.tobytes() for box in boxes[:, :KEY_BYTES]]


def _piece_rows(width: int) -> int:
    return max(PIECE_BYTES // width, 1)


def _pieces(rows: Rows) -> Iterator[Rows]:
    """Cut rows into pieces of at most PIECE_BYTES, or one row."""
    size = _piece_rows(rows.shape[1])
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _rows(content: bytes, width: int) -> Rows:
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, width)


def _strings(rows: Rows) -> NDArray[Any]:
    """Rows as strings, which compare byte by byte; shape (n_rows,)."""
    return np.ascontiguousarray(rows).reshape(-1).view(f"S{rows.shape[1]}")


def in_order(rows: Rows) -> bool:
    """Whether rows are sorted by their bytes."""
    strings = _strings(rows)
    return not (strings[1:] < strings[:-1]).any()


def _sorted(rows: Rows) -> Rows:
    return rows[np.argsort(_strings(rows), kind="stable")]
