"""Oblivious transfers with 2**76 messages each: an extension over a linear code, checked.

Orrù, Orsini, Scholl, *Actively secure 1-out-of-N OT extension* (CT-RSA 2017). In :mod:`crypto.ot.extension` the
receiver's choice is a bit, the same in all columns; here the choice is a word of the code of
:mod:`crypto.ot.code`. For every transfer j the receiver ends with a row t_j, the sender with q_j = t_j ⊕ C(d_j)·Δ
(bit by bit), where d_j is the receiver's choice. So q_j ⊕ C(x)·Δ is t_j for x = d_j, and involves at least 172
unknown bits of Δ for any other x. The relation is linear: it holds for sums of rows and the sum of their choices.

Every message carries a check that the columns come from a single code word per transfer
(:mod:`crypto.ot.consistency`). The sender uses no row before the check.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crypto import engine
from crypto.blocks import BLOCK_BITS, WORD_BITS, Blocks, bits_of, encode_blocks, words_for
from crypto.encoding import WORD, Words, expect_length, octets_of
from crypto.errors import RemoteProtocolError
from crypto.hashing import derive_key
from crypto.keystreams import stream_of
from crypto.ot import code, consistency
from crypto.ot.columns import ColumnWork
from crypto.ot.extension import (
    OtReceiver,
    OtSender,
    random_receive,
    random_send,
    reverse_receiver,
    reverse_sender,
    setup_receiver,
    setup_sender,
)
from crypto.rng import Rng, uniform_words
from crypto.rounds import Rounds

VALUE_WORDS = 2
"""Words of a receiver's choice: of 128 bits the first 76 count, the remaining bits are 0."""

_HASHES = 2
_CHECK_BYTES = code.DIMENSION * _HASHES * 16 + consistency.DIGEST_BYTES


class _End:
    """State that both sides keep alike: the peer, a key public to both, and the used words of the streams."""

    def __init__(self, peer: str, session_key: bytes, capacity: int) -> None:
        self.peer = peer
        self.session_key = session_key
        self.position = 0
        self._work = ColumnWork(code.LENGTH, _padded(capacity))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(peer={self.peer!r}, <secret>)"


class WideSender(_End):
    """The sender's secrets: Δ, and a seed a column.

    delta:  512 uniform bits; uint64, shape (8,). Never leaves the party.
    """

    def __init__(self, peer: str, delta: Words, seeds: Blocks, session_key: bytes, capacity: int) -> None:
        super().__init__(peer, session_key, capacity)
        self.delta = delta
        self._streams = engine.in_force().keystreams(seeds)
        self._row_masks = (np.uint64(0) - bits_of(delta).astype(np.uint64))[:, np.newaxis]

    def extend(self, payload: bytes, count: int, step: str) -> Words:
        """Turn the receiver's message for 1 ≤ ``count`` ≤ capacity transfers into the rows q; shape (count, 8).

        Raises RemoteProtocolError for a message of a wrong length, or for columns that do not come from code words.
        """
        width = _padded(count)
        expect_length(payload, message_bytes(count), self.peer, step)
        corrections, check = memoryview(payload)[:-_CHECK_BYTES], payload[-_CHECK_BYTES:]
        rows = self._work.expand(self._streams, self._work.first, width)
        masked = self._work.rows(self._work.second, width)
        received = np.frombuffer(corrections, dtype="<u8").reshape(code.LENGTH, width)
        np.bitwise_and(received, self._row_masks, out=masked)
        np.bitwise_xor(rows, masked, out=rows)
        challenge = consistency.challenge(self.session_key, self.position, corrections, _HASHES)
        if not consistency.holds(challenge, rows, self._row_masks, check, code.encode_columns):
            raise RemoteProtocolError(
                self.peer, step, "the choices of the transfers are no words of the code"
            )
        self.position += width
        return self._work.transpose(rows)[:count]


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices of 1 or more transfers, turned and encoded once for any number of sessions.

    count:    number of transfers.
    columns:  the bits of the choices as rows; uint64, shape (76, ceil(count / 64)).
    encoded:  the same rows of the code words; uint64, shape (512, ceil(count / 64)).
    """

    count: int
    columns: Words = field(repr=False)
    encoded: Words = field(repr=False)

    @staticmethod
    def of(values: Words) -> Choices:
        """Prepare ``values``; uint64, shape (count, 2): 76 bits count, the remaining bits are 0."""
        used = words_for(len(values))
        padded = np.zeros((used * WORD_BITS, VALUE_WORDS), dtype=np.uint64)
        padded[: len(values)] = values
        # A transpose of squares of 64 bits is its own inverse; input and output have opposite layouts.
        rows = np.ascontiguousarray(padded.reshape(used, WORD_BITS, VALUE_WORDS).transpose(2, 1, 0))
        squares = ColumnWork(BLOCK_BITS, used).transpose(rows.reshape(BLOCK_BITS, used))
        turned = squares.reshape(used, WORD_BITS, VALUE_WORDS).transpose(2, 1, 0).reshape(BLOCK_BITS, used)
        columns = turned[: code.DIMENSION]
        return Choices(len(values), columns, code.encode_columns(columns))


class WideReceiver(_End):
    """The receiver's secrets: both seeds of every column, and the coins that hide the choices."""

    def __init__(self, peer: str, pairs: tuple[Blocks, Blocks], session_key: bytes, capacity: int) -> None:
        super().__init__(peer, session_key, capacity)
        self._zero, self._one = map(engine.in_force().keystreams, pairs)
        self._coins = stream_of(derive_key(b"".join(map(encode_blocks, pairs)), b"ot/wide/coins"))

    def extend(self, choices: Choices) -> tuple[bytes, Words]:
        """Return the message for 1 to capacity transfers, and the rows t; uint64, shape (count, 8)."""
        width, used = _padded(choices.count), words_for(choices.count)
        coins = self._draw(width - used)
        rows = self._work.expand(self._zero, self._work.first, width)
        corrections = self._work.expand(self._one, self._work.second, width)
        np.bitwise_xor(corrections, rows, out=corrections)
        corrections[:, :used] ^= choices.encoded
        corrections[:, used:] ^= code.encode_columns(coins)
        octets = octets_of(corrections)
        challenge = consistency.challenge(self.session_key, self.position, octets, _HASHES)
        check = consistency.proof(challenge, rows, np.concatenate([choices.columns, coins], axis=1))
        self.position += width
        return b"".join((octets, check)), self._work.transpose(rows)[: choices.count]

    def _draw(self, width: int) -> Words:
        """Return fresh coins; uint64, shape (76, width)."""
        coins = self._coins.update(bytes(WORD * code.DIMENSION * width))
        return np.frombuffer(coins, dtype="<u8").reshape(code.DIMENSION, -1).astype(np.uint64)


def message_bytes(count: int) -> int:
    """Return the length of the receiver's message for ``count`` transfers."""
    return code.LENGTH * WORD * _padded(count) + _CHECK_BYTES


def setup_wide_sender(me: str, peer: str, capacity: int, rng: Rng) -> Rounds[WideSender]:
    """Set up a session in which ``me`` will have Δ; the peer calls :func:`setup_wide_receiver`.

    Functionality:  512 uniform bits Δ to the sender; for each bit a random pair of seeds to the receiver
                    and the seed of the bit to the sender.
    Input:          ``capacity``: transfers of a message at most; public, equal for both.
    Output:         :class:`WideSender` here, :class:`WideReceiver` at the peer.
    Leakage:        none.
    Rounds:         3 ("ot/base/offer" from the sender, "ot/base/answer" from the receiver, "ot/begin" and
                    "ot/extend" from the sender).
    Bytes:          6,792 sent by the sender (32, 24 and 6,736), 4,096 by the receiver.
    Assumes:        as :func:`crypto.ot.extension.random_send`, with the roles exchanged.
    Source:         Orrù, Orsini, Scholl (CT-RSA 2017), initialization; the 512 base transfers are extended
                    transfers.

    Raises RemoteProtocolError for a malformed message of the peer.
    """
    session = yield from setup_receiver(me, peer, rng)
    return (yield from _become_sender(session, capacity, rng))


def setup_wide_receiver(me: str, peer: str, capacity: int, rng: Rng) -> Rounds[WideReceiver]:
    """Set up a session in which the peer will have Δ; see :func:`setup_wide_sender`."""
    session = yield from setup_sender(me, peer, rng)
    return (yield from _become_receiver(session, capacity))


def setup_wide_first(
    me: str, peer: str, capacities: tuple[int, int], rng: Rng
) -> Rounds[tuple[WideSender, WideReceiver]]:
    """Set up two sessions, one in each direction, from the same base transfers; the peer calls
    :func:`setup_wide_second`.

    Functionality:  twice :func:`setup_wide_sender`, with exchanged roles.
    Input:          ``capacities``: of the session in which we have Δ, and of the session in which the peer
                    has Δ; public, equal for both.
    Output:         :class:`WideSender` and :class:`WideReceiver`, here and at the peer.
    Leakage:        none.
    Rounds:         4 ("ot/base/offer" from the first, "ot/base/answer" from the second, "ot/begin" and
                    "ot/extend" twice from the first, "ot/begin" and "ot/extend" from the second).
    Bytes:          7,888 sent by the first (6,792 as there, and 1,096 for
                    :func:`crypto.ot.extension.reverse_sender`), 10,856 by the second (4,096 and 6,760).
    Assumes:        as :func:`crypto.ot.extension.random_send`, with each party in both roles.
    Source:         as there; the second session's base transfers are extended transfers of the first.

    Raises RemoteProtocolError for a malformed message of the peer.
    """
    session = yield from setup_receiver(me, peer, rng)
    sender = yield from _become_sender(session, capacities[0], rng)
    turned = yield from reverse_sender(session, rng)
    return sender, (yield from _become_receiver(turned, capacities[1]))


def setup_wide_second(
    me: str, peer: str, capacities: tuple[int, int], rng: Rng
) -> Rounds[tuple[WideSender, WideReceiver]]:
    """Set up two sessions, one in each direction; see :func:`setup_wide_first`."""
    session = yield from setup_sender(me, peer, rng)
    receiver = yield from _become_receiver(session, capacities[1])
    turned = yield from reverse_receiver(session)
    return (yield from _become_sender(turned, capacities[0], rng)), receiver


def _become_sender(session: OtReceiver, capacity: int, rng: Rng) -> Rounds[WideSender]:
    delta = uniform_words(rng, code.WORD_LENGTH)
    seeds = yield from random_receive(session, bits_of(delta))
    return WideSender(session.peer, delta, seeds, derive_key(session.session_key, b"ot/wide"), capacity)


def _become_receiver(session: OtSender, capacity: int) -> Rounds[WideReceiver]:
    pairs = yield from random_send(session, code.LENGTH)
    return WideReceiver(session.peer, pairs, derive_key(session.session_key, b"ot/wide"), capacity)


def _padded(count: int) -> int:
    return consistency.padded(words_for(count), _HASHES)
