"""Rows of n ≥ 2 parties shuffled so that nobody learns a row's owner: added up in secret slots, then sorted.

Every row is a string of bytes of a public width. The leader draws a permutation and assigns each party as many
slots as the party has rows. Every party fills a sheet of all slots, with zeros outside its own. Then it adds
(exclusive or) the keystream of a seed shared with the leader, and sends the sheet to the deputy. The leader adds
the keystreams of all parties to its own sheet. The keystreams cancel when the deputy adds up all sheets. The deputy
finds the rows by slot, and sorts the rows. The leader knows the owner of every slot and sees no sheet. The deputy
sees the content of every slot and cannot tell the owner, since every single sheet is uniform to the deputy. This is
a network of dining cryptographers (Chaum, J. Cryptology 1988) in which the leader is the only neighbour of all and
assigns the turns to speak.

A row travels with a coin and a digest of both, so that nobody can change a row in a foreign slot: to make the
digest right, an attacker would have to know row and coin. Rows are announced with their coins. So equal rows
differ, and each owner finds its own. A single bit for all says that every party received the same rows and found
all its own. A deputy that announces different rows does not learn who misses a row.

A recipient outside the protocol has a separate key. Then rows are sealed to the key, and the boxes are shuffled. So
neither leader and recipient nor deputy and recipient together learn origins. A box is libsodium's sealed box: an
ephemeral X25519 key, and XSalsa20-Poly1305 under the secret common to the ephemeral key and the recipient's key,
with the BLAKE2b digest of both keys as nonce. Boxes are assembled here because libsodium's own function draws its
coins itself.

Not claimed: that rows are true, or that leader and deputy together learn nothing. libsodium runs in constant time;
sorting and comparing here do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from nacl.bindings import crypto_box, crypto_box_seal_open, crypto_box_seed_keypair
from nacl.exceptions import CryptoError
from numpy.typing import NDArray

from crypto.encoding import (
    WORD,
    as_words,
    decode_integer,
    decode_words,
    encode_integer,
    encode_integers,
    encode_words,
    expect_length,
)
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rng import SEED_BYTES, Prg, Rng, uniform_permutation
from crypto.rounds import Round, Rounds, receive, send
from crypto.shares import ComputePair, open_vector, setup_shares, share_vector

Rows: TypeAlias = NDArray[np.uint8]
"""Shape (n_rows, width)."""

KEY_BYTES = 32
SEAL_BYTES = 48
"""Bytes of a box beyond its content: ephemeral key 32, tag 16."""
SLIP_BYTES = 16
"""Bytes of the digest by which a sender recognizes its box."""
VOUCHER_BYTES = 32
"""Bytes after the content of a row in a slot: coin 16, digest 16."""
PIECE_BYTES = 1 << 20
MAX_ROWS = 1 << 40
_NONCE_BYTES = 24
_DIGEST_BYTES = _COIN_BYTES = 16
_WIDTH_BITS = 64
_ANY_SCALAR = X25519PrivateKey.from_private_bytes(bytes(KEY_BYTES))
_AGREED, _SLOTS, _SHEET, _TOLD = "mix/agreed", "mix/slots", "mix/sheet", "mix/told"
_FOUND, _SETTLED = "mix/found", "mix/settled"


class OpeningKey:
    """A recipient's key for a run. public: 32 bytes."""

    def __init__(self, rng: Rng) -> None:
        self.public, self._secret = crypto_box_seed_keypair(rng.bytes(KEY_BYTES))

    def __repr__(self) -> str:
        return "OpeningKey(<secret>)"

    def opened(self, boxes: Rows, suspects: str, step: str) -> Rows:
        """Open boxes; shape (n_boxes, width of a box - 48), in the order of the boxes.

        suspects:  name in the error.

        Raises RemoteProtocolError for a box that the key does not open, or if the boxes are not sorted or two boxes
        have the same ephemeral key. The order must hide nothing, and a repeated box marks its row.
        """
        keys = _strings(boxes[:, :KEY_BYTES])
        if (keys[1:] <= keys[:-1]).any():
            raise RemoteProtocolError(suspects, step, "boxes out of order, or the same box twice")
        try:
            opened = b"".join(crypto_box_seal_open(box.tobytes(), self.public, self._secret) for box in boxes)
        except CryptoError as error:
            raise RemoteProtocolError(suspects, step, "a box cannot be opened") from error
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

    slips:  16 bytes of the SHA-256 of every box, sorted: shape (total, 16).
    boxes:  at the deputy, to be passed on: shape (total, width + 48), sorted; None elsewhere.
    """

    slips: Rows = field(repr=False)
    boxes: Rows | None = field(repr=False)


def checked_key(payload: bytes, peer: str, step: str) -> bytes:
    """Check and return a recipient's public key, as sent by a peer. Raises RemoteProtocolError for an impossible
    key.
    """
    expect_length(payload, KEY_BYTES, peer, step)
    try:
        _ANY_SCALAR.exchange(X25519PublicKey.from_public_bytes(payload))  # refuses the neutral element
    except ValueError as error:
        raise RemoteProtocolError(peer, step, "a key of small order") from error
    return payload


def slips_of(boxes: Rows) -> Rows:
    """Return the digest by which each box is recognized; shape (n_boxes, 16), sorted."""
    return _sorted(_digests(boxes))


def mix_rows(
    me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int, rng: Rng
) -> Rounds[Rows]:
    """Put all parties' rows together, to every party, and hide the owner of each row.

    Functionality:  (rows_1, ..., rows_n) -> the multiset of all rows, sorted by their bytes, to every
                    party.
    Input, each:    ``rows``, shape (m_i, width); width and ``total`` (the sum of the m_i) public, equal for
                    all.
    Output, each:   shape (total, width). Every party has found its own rows among the output.
    Leakage:        the rows. To the leader every m_i, n ≥ 3 (with two parties, each knows the peer's from
                    the total). Every party can subtract its own rows; a coalition can subtract the rows of
                    its members. A deputy that announces false rows does not hear which party misses rows,
                    only that a party does.
    Rounds:         6 ("mix/agreed", "mix/slots", "mix/sheet", "mix/told", "mix/found", "mix/settled"), 4
                    for two parties: the leader waits for nothing between slots and sheet, and there is no
                    "mix/found".
    Bytes:          every party 32 (n - 1), its digest; all but the leader 24 more, the leader 8
                    (total - m_leader) for slots and n - 1 at the end; all but the deputy (width + 32)
                    total; the deputy (width + 16) total (n - 1); every party outside the pair 16 to the
                    leader.
    Assumes:        leader and deputy do not collude (the rest may, with the leader or with the deputy);
                    AES-CTR a PRG; SHA-256 of row and coin a random oracle, against rows changed on the way;
                    private authenticated channels.
    Source:         Chaum, The dining cryptographers problem (J. Cryptology 1988). Our addition: the leader
                    assigns the turns to speak and shares all keys, because the leader does not collude with
                    the only listener.

    Raises LocalProtocolError for rows of a wrong dtype or shape; RemoteProtocolError, naming the possible culprits,
    if public inputs differ, the number of rows is not ``total``, a slot is assigned twice, a row is not as its
    owner sent it, or, at every party alike, parties received different rows or miss rows.
    """
    _check_input(me, parties, pair, rows, total)
    own = _coined(rows, rng)
    found = yield from _mixed(me, parties, pair, own, total, b"", rng)
    told = yield from _told(me, parties, pair, own, found, total, rng)
    return _without_coins(told)


def mix_for_recipient(
    me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int, recipient: bytes, rng: Rng
) -> Rounds[Mixed]:
    """Put all parties' rows together for a recipient outside the protocol, and hide the owner of each row.

    Functionality:  (rows_1, ..., rows_n) -> boxes to ``recipient``, one for each row, sorted by their
                    bytes, to the deputy; the digests of the boxes to every party.
    Input, each:    ``rows``, ``total`` as :func:`mix_rows`; ``recipient``, a public key of 32 bytes, is
                    compared.
    Output, each:   :class:`Mixed`. Every party has found its own boxes among the output.
    Leakage:        to the leader every m_i. To the recipient the rows without owners, even together with
                    leader or deputy, except for the rows of colluding parties.
    Rounds:         as :func:`mix_rows`.
    Bytes:          as there with width + 48 for width; but the deputy announces 16 total (n - 1): no two
                    boxes are equal, so boxes are recognized without coins.
    Assumes:        as there; sealed boxes (X25519, XSalsa20-Poly1305) hide their content against chosen
                    boxes.
    Source:         as there; sealed boxes as in libsodium.

    Raises as there.
    """
    _check_input(me, parties, pair, rows, total)
    own = sealed(rows, recipient, rng)
    found = yield from _mixed(me, parties, pair, _coined(own, rng), total, recipient, rng)
    boxes = None if found is None else _without_coins(found)
    slips = None if boxes is None else slips_of(boxes)
    told = yield from _told(me, parties, pair, slips_of(own), slips, total, rng)
    return Mixed(told, boxes)


def _mixed(
    me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int, recipient: bytes, rng: Rng
) -> Rounds[Rows | None]:
    """Return the rows of all parties, with coins, sorted, at the deputy; None elsewhere."""
    seed = rng.bytes(SEED_BYTES)
    met = yield from _agreed(me, parties, pair, rows, total, recipient, seed)
    slots = yield from _slots(
        me, pair, len(rows), total, {peer: found.count for peer, found in met.items()}, rng
    )
    seeds = [found.seed for found in met.values()] if me == pair.leader else [seed]
    sheet = _Sheet(slots, _vouched(rows), seeds)
    size = _piece_rows(rows.shape[1] + _DIGEST_BYTES)
    pieces = (sheet.piece(start, min(start + size, total)) for start in range(0, total, size))
    if me != pair.deputy:
        for piece in pieces:
            yield from send(_SHEET, {pair.deputy: piece.tobytes()})
        return None
    others = frozenset(party for party in parties if party != me)
    found = [np.zeros((0, rows.shape[1]), np.uint8)]
    for piece in pieces:
        found.append(_vouched_for((yield from _added_up(piece, others)), others))
    return _sorted(np.concatenate(found))


@dataclass(frozen=True)
class _Met:
    """A peer as the leader knows it. count: number of rows. seed: of the keystream."""

    count: int = field(repr=False)
    seed: bytes = field(repr=False)


def _agreed(
    me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int, recipient: bytes, seed: bytes
) -> Rounds[dict[str, _Met]]:
    """Compare all public inputs before a row leaves. A recipient with a separate key per party could tell the owner
    of a row by the key.

    Returns, at the leader, the count and seed of each peer; empty elsewhere.
    """
    peers = [party for party in parties if party != me]
    ours = hashlib.sha256(encode_integers((rows.shape[1], total), WORD) + recipient).digest()
    outgoing = dict.fromkeys(peers, ours)
    if me != pair.leader:
        outgoing[pair.leader] += encode_integer(len(rows), WORD) + seed
    inbox = yield Round(_AGREED, outgoing, frozenset(peers))
    met = {}
    for peer in peers:
        theirs, more = inbox[peer][: len(ours)], inbox[peer][len(ours) :]
        if theirs != ours:
            raise RemoteProtocolError(peer, _AGREED, "another key, width or number of rows than we know")
        expect_length(more, WORD + SEED_BYTES if me == pair.leader else 0, peer, _AGREED)
        if me == pair.leader:
            met[peer] = _Met(decode_integer(more[:WORD], WORD, total + 1, peer, _AGREED), more[WORD:])
    if me == pair.leader and sum(found.count for found in met.values()) + len(rows) != total:
        raise RemoteProtocolError(
            " or ".join(peers), _AGREED, "numbers of rows that do not add up to the total"
        )
    return met


def _slots(
    me: str, pair: ComputePair, count: int, total: int, counts: dict[str, int], rng: Rng
) -> Rounds[NDArray[np.int64]]:
    """Return ``count`` slots of our own, in an order without information: int64, shape (count,).

    counts:  at the leader, the number of slots of every peer.
    """
    if me != pair.leader:
        told = yield from _received(pair.leader, _SLOTS, count, WORD)
        slots = decode_words(told.tobytes(), count, pair.leader, _SLOTS)
        if (slots >= total).any() or len(np.unique(slots)) < count:
            raise RemoteProtocolError(pair.leader, _SLOTS, "a missing slot, or the same slot twice")
        return slots.astype(np.int64)
    order = uniform_permutation(rng, total)
    ends = np.cumsum([count, *counts.values()])
    for peer, start, end in zip(counts, ends[:-1], ends[1:], strict=True):
        for piece in _pieces(_rows(encode_words(as_words(order[start:end])), WORD)):
            yield from send(_SLOTS, {peer: piece.tobytes()})
    return order[:count]


class _Sheet:
    """The message of a party to the deputy, made piece by piece from the first slot on. A sheet holds the party's
    rows in their slots, zeros elsewhere, and is masked by the keystreams of ``seeds``.

    slots:  shape (m,). rows: shape (m, width).
    """

    def __init__(self, slots: NDArray[np.int64], rows: Rows, seeds: Sequence[bytes]) -> None:
        order = np.argsort(slots)
        self._slots, self._rows = slots[order], rows[order]
        self._masks = [Prg(seed) for seed in seeds]

    def __repr__(self) -> str:
        return "_Sheet(<secret>)"

    def piece(self, start: int, stop: int) -> Rows:
        """Return the slots from ``start`` on, the end of the previous piece: shape (stop - start, width)."""
        first, last = np.searchsorted(self._slots, (start, stop))
        sheet = np.zeros((stop - start, self._rows.shape[1]), dtype=np.uint8)
        sheet[self._slots[first:last] - start] = self._rows[first:last]
        for mask in self._masks:
            sheet ^= _rows(mask.bytes(sheet.size), sheet.shape[1])
        return sheet


def _added_up(own: Rows, others: frozenset[str]) -> Rounds[Rows]:
    """Return a piece of the sum of all sheets, at the deputy, free of keystreams."""
    inbox = yield Round(_SHEET, {}, others)
    for peer in sorted(others):
        expect_length(inbox[peer], own.size, peer, _SHEET)
        own ^= _rows(inbox[peer], own.shape[1])
    return own


def _coined(rows: Rows, rng: Rng) -> Rows:
    """Return every row with a fresh coin: shape (n_rows, width + 16)."""
    return np.hstack([rows, _rows(rng.bytes(_COIN_BYTES * len(rows)), _COIN_BYTES)])


def _without_coins(rows: Rows) -> Rows:
    return np.ascontiguousarray(rows[:, :-_COIN_BYTES])


def _vouched(rows: Rows) -> Rows:
    """Return every row (with coin) with a digest of row and coin: shape (n_rows, width + 16)."""
    return np.hstack([rows, _digests(rows)])


def _vouched_for(found: Rows, suspects: frozenset[str]) -> Rows:
    """Return rows and coins as their owners sent them.

    Raises RemoteProtocolError if a row is changed, or a slot is empty.
    """
    said = found[:, :-_DIGEST_BYTES]
    if (_digests(said) != found[:, -_DIGEST_BYTES:]).any():
        raise RemoteProtocolError(" or ".join(sorted(suspects)), _SHEET, "a row is not as its owner sent it")
    return said


def _digests(rows: Rows) -> Rows:
    """Return 16 bytes of the SHA-256 of every row: shape (n_rows, 16)."""
    size, content = rows.shape[1], np.ascontiguousarray(rows).reshape(-1).data
    each = (hashlib.sha256(content[start : start + size]) for start in range(0, rows.size, size))
    return _rows(b"".join(digest.digest()[:_DIGEST_BYTES] for digest in each), _DIGEST_BYTES)


def _told(
    me: str, parties: Sequence[str], pair: ComputePair, own: Rows, found: Rows | None, total: int, rng: Rng
) -> Rounds[Rows]:
    """Send every party all rows found by the deputy. Every party checks their order and looks for its own rows.

    own:  our rows, in the announced form. found: all rows, at the deputy.
    """
    if found is None:
        told = yield from _received(pair.deputy, _TOLD, total, own.shape[1])
        if not in_order(told):
            raise RemoteProtocolError(pair.deputy, _TOLD, "rows out of order")
    else:
        told = found
        for piece in _pieces(told):
            yield from send(_TOLD, {peer: piece.tobytes() for peer in parties if peer != me})
    yield from _settle(me, parties, pair, told, rng, is_complete=_all_told(own, told))
    return told


def _settle(
    me: str, parties: Sequence[str], pair: ComputePair, told: Rows, rng: Rng, *, is_complete: bool
) -> Rounds[None]:
    """End the run with an error at every party, unless all received the same rows and found their own
    (``is_complete``).

    Every party outside the pair sends the leader a digest of the received rows, or coins if a row is missing. The
    leader tells all parties if every digest equals its own. So only the leader hears who misses rows. The deputy
    hears nothing new: it knows if all honest parties received the same rows and everything of theirs. The leader
    does not learn the missing rows.
    """
    others = [party for party in parties if party != me]
    digest = hashlib.sha256(told.data).digest()[:_DIGEST_BYTES]
    if me == pair.leader:
        heard = frozenset(others) - {pair.deputy}
        inbox = yield Round(_FOUND, {}, heard)
        for peer in heard:
            expect_length(inbox[peer], _DIGEST_BYTES, peer, _FOUND)
        is_settled = is_complete and all(inbox[peer] == digest for peer in heard)
        yield from send(_SETTLED, dict.fromkeys(others, bytes([is_settled])))
    else:
        if me != pair.deputy:
            yield from send(_FOUND, {pair.leader: digest if is_complete else rng.bytes(_DIGEST_BYTES)})
        answer = yield from receive(_SETTLED, pair.leader)
        is_settled = decode_integer(answer, 1, 2, pair.leader, _SETTLED) == 1 and is_complete
    if not is_settled:
        reason = "rows are missing, or not everybody was told the same"
        raise RemoteProtocolError(" or ".join(others), _TOLD, reason)


def _received(peer: str, step: str, count: int, width: int) -> Rounds[Rows]:
    """Receive ``count`` rows of a peer, piece by piece; shape (count, width)."""
    received = []
    for start in range(0, count, _piece_rows(width)):
        payload = yield from receive(step, peer)
        expect_length(payload, min(_piece_rows(width), count - start) * width, peer, step)
        received.append(payload)
    return _rows(b"".join(received), width)


def _all_told(own: Rows, told: Rows) -> bool:
    """Return True if all our rows, pairwise different, are among the announced rows ``told``; ``told`` is sorted."""
    ours, among = _strings(own), _strings(told)
    times = np.searchsorted(among, ours, "right") - np.searchsorted(among, ours, "left")
    return bool((times > 0).all())


def agree_width(
    me: str,
    parties: Sequence[str],
    pair: ComputePair,
    needed: int,
    widths: Sequence[int],
    job_hash: bytes,
    rng: Rng,
) -> Rounds[int]:
    """Find the least of the public widths that holds every party's rows, and hide the owner of the longest row.

    Functionality:  (w_1, ..., w_n) -> the least of ``widths`` that is no less than any w_i, to every party.
    Input, each:    ``needed``, the party's w_i; ``widths`` ascending, and ``job_hash``: public and equal
                    for all.
    Output, each:   the width.
    Leakage:        the width; to each party or coalition the least width that holds the rows of all parties
                    outside (with two parties: the peer's).
    Rounds:         as :func:`crypto.shares.setup_shares`, :func:`~crypto.shares.share_vector` and
                    :func:`~crypto.shares.open_vector` of len(widths) words of 64 bits. Bytes: as there.
    Assumes:        as there.
    Source:         disjunction by random multiples: a word for every width, 0 if our rows fit, else random.
                    So the sum over all parties is 0 if all rows fit, else 0 only with probability 2**-64;
                    folklore.

    Raises LocalProtocolError if ``needed`` exceeds all widths. Raises RemoteProtocolError if no width fits, or the
    result is below ``needed``: then a party did not follow the protocol.
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
            " or ".join(party for party in parties if party != me), "shares/open", "an impossible width"
        )
    return fitting[0]


def _check_input(me: str, parties: Sequence[str], pair: ComputePair, rows: Rows, total: int) -> None:
    if pair.leader == pair.deputy or not {me, pair.leader, pair.deputy} <= set(parties):
        raise LocalProtocolError("leader and deputy must be two different parties of the roster, as we must")
    if rows.ndim != 2 or rows.dtype != np.uint8 or not rows.shape[1]:
        raise LocalProtocolError(f"rows are bytes of one width, not {rows.dtype} of shape {rows.shape}")
    if not len(rows) <= total < MAX_ROWS:
        raise LocalProtocolError("we have more rows than all together")


def _piece_rows(width: int) -> int:
    return max(PIECE_BYTES // width, 1)


def _pieces(rows: Rows) -> Iterator[Rows]:
    """Cut rows into pieces of at most PIECE_BYTES, or of a single row."""
    size = _piece_rows(rows.shape[1])
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _rows(content: bytes, width: int) -> Rows:
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, width)


def _strings(rows: Rows) -> NDArray[Any]:
    """Return rows as strings, which compare byte by byte; shape (n_rows,)."""
    return np.ascontiguousarray(rows).reshape(-1).view(f"S{rows.shape[1]}")


def in_order(rows: Rows) -> bool:
    """Return True if rows are sorted by their bytes."""
    strings = _strings(rows)
    return not (strings[1:] < strings[:-1]).any()


def _sorted(rows: Rows) -> Rows:
    return rows[np.argsort(_strings(rows), kind="stable")]
