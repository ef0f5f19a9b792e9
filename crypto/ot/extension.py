"""Millions of oblivious transfers out of 128: SoftSpoken, checked, with correlated, random or chosen messages.

Roy, *SoftSpokenOT* (CRYPTO 2022). The 128 columns come in 32 groups of 4. For each group the receiver knows the seeds
of 16 leaves, and the sender knows 15 of these: its bits Δ of the group number the missing leaf
(:mod:`crypto.ot.punctured`). All seeds are expanded to streams, with a bit for each transfer. Let u be the sum of all
streams of a group, and t_b the sum of the streams whose number has bit b. The sender adds up in the same way, with
each number x replaced by x ⊕ Δ. The missing stream then has number 0 and is in no sum. So the sender gets
t_b ⊕ Δ_b·u. The receiver sends u ⊕ r for each group, where r are its choices: 4 bytes per transfer. The sender sends
nothing.

For every transfer j the sender ends with a block q_j, the receiver with t_j = q_j ⊕ r_j·Δ: a *correlated* transfer
of (q_j, q_j ⊕ Δ). Hashing both (:mod:`crypto.hashing`) gives *random* messages; masking with random messages gives
*chosen* messages. With groups of a single column this is the extension of Ishai, Kilian, Nissim and Petrank (CRYPTO
2003), at 16 bytes per transfer.

Δ has 127 uniform bits and lowest bit 1, so Δ also serves as a garbler's free-XOR offset.

A receiver that chooses r differently in the 32 groups would learn bits of Δ from later messages. So every message
of the receiver carries a check. The sender makes the check before it uses a transfer of the message
(:mod:`crypto.ot.consistency`).

A session serves a pair of parties for a job: base transfers once, then any mixture of calls. The first message of
the receiver begins with its part of the trees. All work is done in chunks of ``CHUNK`` transfers, so only inputs and
outputs grow with the count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from crypto import engine
from crypto.blocks import (
    BLOCK_BITS,
    BLOCK_BYTES,
    Blocks,
    bits_of,
    block_of,
    decode_blocks,
    encode_blocks,
    pack_bits,
    words_for,
)
from crypto.encoding import WORD, Words, decode_words, encode_words, expect_length, octets_of
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.hashing import BlockHash, derive_key
from crypto.keystreams import Keystreams, stream_of
from crypto.ot import consistency, punctured
from crypto.ot.base import base_receive, base_send
from crypto.ot.columns import GroupWork
from crypto.pieces import slices
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send

CHUNK = 1 << 16
"""Maximum number of transfers in a message; a multiple of 64."""

WINDOW = 4
"""Chunks of chosen messages that the receiver requests before it waits for the first chunk."""

_BEGIN, _EXTEND, _MESSAGES = "ot/begin", "ot/extend", "ot/messages"
BEGIN_BYTES = 3 * WORD
_CORRELATED, _RANDOM, _CHOSEN = 1, 2, 3

_ROWS = (punctured.BITS, punctured.GROUPS, 1)

Bits = NDArray[np.uint8]


class _End:
    """State that both sides of a session keep alike.

    peer:         the peer.
    session_key:  public to both parties, fresh for the session.
    position:     words of the streams used so far.
    """

    def __init__(self, peer: str, session_key: bytes) -> None:
        self.peer = peer
        self.session_key = session_key
        self.position = 0
        self._keys = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(peer={self.peer!r}, <secret>)"

    def next_number(self) -> int:
        """Return a fresh number to derive a key from; all users of the session take their numbers here."""
        self._keys += 1
        return self._keys


class OtSender(_End):
    """The sender's secrets of a pair of parties: Δ, a seed of each base transfer, and of each leaf but one.

    delta:  the offset, a block; uint64, shape (2,). The lowest bit is 1, in a session made by
            :func:`reverse_sender` 0. Never leaves the party.
    """

    def __init__(self, peer: str, delta: Words, seeds: Blocks, session_key: bytes) -> None:
        super().__init__(peer, session_key)
        self.delta = delta
        self._seeds = seeds
        self._streams: engine.Keystreams = Keystreams(seeds[:0])
        self._trees = b""  # digest of their message; nothing before it
        self._row_masks = (np.uint64(0) - bits_of(delta).astype(np.uint64)).reshape(_ROWS)
        self._work = GroupWork(consistency.padded(words_for(CHUNK)))

    def open(self, message: bytes, step: str) -> None:
        """Take the peer's :meth:`OtReceiver.opening`.

        Raises RemoteProtocolError if the message holds other trees than those of the base transfers.
        """
        bits = bits_of(self.delta)
        leaves = punctured.puncture(self._seeds, bits, message, self.session_key, self.peer, step)
        self._streams = engine.in_force().keystreams(leaves.reshape(-1, 2))
        self._trees = punctured.digest_of(message)

    def extend(self, payload: bytes, count: int, step: str) -> Blocks:
        """Turn the receiver's message for 1 ≤ ``count`` ≤ CHUNK transfers into the blocks q; shape (count, 2).

        Raises RemoteProtocolError for a message of a wrong length, for choices that differ between groups, and as
        :meth:`open`.
        """
        width = consistency.padded(words_for(count))
        due = 0 if self._trees else punctured.MESSAGE_BYTES
        expect_length(payload, due + extension_bytes(count), self.peer, step)
        if due:
            self.open(payload[:due], step)
        corrections = memoryview(payload)[due : -consistency.CHECK_BYTES]
        check = payload[-consistency.CHECK_BYTES :]
        rows, _ = self._work.sums(self._streams, 1, width)
        received = np.frombuffer(corrections, dtype="<u8").reshape(punctured.GROUPS, width)
        rows ^= received & self._row_masks
        q = rows.reshape(BLOCK_BITS, width)
        challenge = consistency.challenge(self._trees, self.position, corrections)
        if not consistency.holds(challenge, q, self._row_masks.reshape(-1, 1), check):
            raise RemoteProtocolError(self.peer, step, "the choices of the transfers differ between columns")
        self.position += width
        return self._work.transpose(q)[:count]


class OtReceiver(_End):
    """The receiver's secrets: the seeds of all leaves, and the coins that hide the choices."""

    def __init__(self, peer: str, pairs: tuple[Blocks, Blocks], session_key: bytes) -> None:
        super().__init__(peer, session_key)
        leaves, self._opening = punctured.grow(pairs, session_key)
        self._trees = punctured.digest_of(self._opening)
        self._streams = engine.in_force().keystreams(leaves.reshape(-1, 2))
        self._coins = stream_of(derive_key(encode_blocks(np.concatenate(pairs, axis=1)), b"ot/coins"))
        self._work = GroupWork(consistency.padded(words_for(CHUNK)))

    def opening(self) -> bytes:
        """Return the sender's part of the trees; afterwards nothing."""
        opening, self._opening = self._opening, b""
        return opening

    def extend(self, choices: Words, count: int) -> tuple[bytes, Blocks]:
        """Return the message for 1 ≤ ``count`` ≤ CHUNK transfers, and the blocks t; shape (count, 2).

        choices:  the choice bits, packed; uint64, shape (ceil(count / 64),), padded with zeros.
        """
        width = consistency.padded(words_for(count))
        coins = np.frombuffer(self._coins.update(bytes(WORD * (width - len(choices)))), dtype="<u8")
        row = np.concatenate([choices, coins])
        rows, corrections = self._work.sums(self._streams, 0, width)
        corrections ^= row
        t = rows.reshape(BLOCK_BITS, width)
        octets = octets_of(corrections)
        challenge = consistency.challenge(self._trees, self.position, octets)
        check = consistency.proof(challenge, t, row.reshape(1, -1))
        self.position += width
        return b"".join((self.opening(), octets, check)), self._work.transpose(t)[:count]


def extension_bytes(count: int) -> int:
    """Return the length of the receiver's message for 1 ≤ ``count`` ≤ CHUNK transfers, but the first of a session."""
    return punctured.GROUPS * WORD * consistency.padded(words_for(count)) + consistency.CHECK_BYTES


def transfer_bytes(count: int) -> int:
    """Return the bytes sent by the receiver for any number of transfers, without "ot/begin" and without trees."""
    return sum(extension_bytes(part.stop - part.start) for part in parts(count))


def parts(count: int) -> Iterator[slice]:
    """Cut ``count`` transfers into chunks."""
    return slices(count, CHUNK)


def setup_sender(me: str, peer: str, rng: Rng) -> Rounds[OtSender]:
    """Set up a session in which ``me`` will send; the peer calls :func:`setup_receiver`.

    Functionality:  a uniform offset Δ (lowest bit 1) to the sender; for every bit of Δ a random pair of
                    seeds to the receiver and the seed of the bit to the sender.
    Input:          none.
    Output:         :class:`OtSender` here, :class:`OtReceiver` at the peer.
    Leakage:        none.
    Rounds:         2 ("ot/base/offer" from the receiver, "ot/base/answer" from the sender).
    Bytes:          4,096 sent by the sender, 32 by the receiver.
    Assumes:        as :func:`crypto.ot.base.base_send`, with the roles exchanged.
    Source:         Roy (CRYPTO 2022), base transfers of the trees.

    Raises RemoteProtocolError for a malformed message of the peer.
    """
    choice_bits = bits_of(np.frombuffer(rng.bytes(BLOCK_BYTES), dtype="<u8"))
    choice_bits[0] = 1  # the garbler's point-and-permute bit
    chosen = yield from base_receive(me, peer, choice_bits.tolist(), rng)
    return OtSender(peer, block_of(choice_bits), _blocks(chosen.seeds), _session_key(chosen.binding))


def setup_receiver(me: str, peer: str, rng: Rng) -> Rounds[OtReceiver]:
    """Set up a session in which ``me`` will receive; see :func:`setup_sender`."""
    sent = yield from base_send(me, peer, BLOCK_BITS, rng)
    zero, one = map(_blocks, zip(*sent.pairs, strict=True))
    return OtReceiver(peer, (zero, one), _session_key(sent.binding))


def reverse_sender(receiver: OtReceiver, rng: Rng) -> Rounds[OtSender]:
    """Set up a session in which the receiver of an existing session will send; its sender calls
    :func:`reverse_receiver`.

    Functionality:  as :func:`setup_sender`, but the lowest bit of Δ is 0: so Δ differs from the existing
                    session's offset, and the lowest bit of the sum of both offsets is 1.
    Input:          the existing session.
    Output:         :class:`OtSender` here, :class:`OtReceiver` at the peer.
    Leakage:        none.
    Rounds:         1 ("ot/begin" and "ot/extend" from the new sender).
    Bytes:          as :func:`random_send` for 128, from the new sender.
    Assumes:        as :func:`random_send`.
    Source:         as :func:`setup_sender`, with random transfers of the existing session as base
                    transfers.

    Raises as :func:`random_send`, at the peer.
    """
    choice_bits = bits_of(np.frombuffer(rng.bytes(BLOCK_BYTES), dtype="<u8"))
    choice_bits[0] = 0
    seeds = yield from random_receive(receiver, choice_bits)
    return OtSender(receiver.peer, block_of(choice_bits), seeds, _reverse_key(receiver))


def reverse_receiver(sender: OtSender) -> Rounds[OtReceiver]:
    """Set up a session in which the sender of an existing session will receive; see :func:`reverse_sender`."""
    pairs = yield from random_send(sender, BLOCK_BITS)
    return OtReceiver(sender.peer, pairs, _reverse_key(sender))


def correlated_send(sender: OtSender, count: int) -> Rounds[Blocks]:
    """Return q; the peer gets t = q ⊕ r·Δ for its choice bits r.

    Functionality:  uniform blocks q_j to the sender; q_j ⊕ r_j·Δ to the receiver.
    Input:          sender: the session and the public count; receiver: ``count`` choice bits.
    Output:         sender: q; receiver: t; each uint64, shape (count, 2).
    Leakage:        none.
    Rounds:         1 ("ot/begin" and "ot/extend" from the receiver, at most CHUNK transfers a message).
    Bytes:          24 and, for every chunk of n ≤ CHUNK transfers, 256 * w + 48 sent by the receiver, w
                    being ceil(n / 64) + 2 made even, and 4,128 more in the first chunk of the session; none by
                    the sender.
    Assumes:        a semi-honest sender; AES-128 in counter mode a PRG; BLAKE3, for trees and for the check, a
                    random oracle. A receiver whose choices differ in k groups is stopped with probability
                    1 − 2·16^−k (:mod:`crypto.ot.consistency`).
    Source:         Roy (CRYPTO 2022), without the final hash.

    Raises LocalProtocolError for a negative count. Raises RemoteProtocolError if the peer's messages have a wrong
    length, a different count, kind or point of the session, trees that are not those of the base transfers, or
    choices that differ between groups.
    """
    _check_count(count)
    q = np.empty((count, 2), dtype=np.uint64)
    yield from _meet(sender, count, _CORRELATED)
    for part in parts(count):
        q[part] = yield from _receive_chunk(sender, part)
    return q


def correlated_receive(receiver: OtReceiver, choice_bits: Bits) -> Rounds[Blocks]:
    """Return t = q ⊕ r·Δ for choice bits r, uint8, shape (count,); see :func:`correlated_send`.

    Raises LocalProtocolError for choice bits that are not a vector of 0 and 1.
    """
    _check_choices(choice_bits)
    t = np.empty((len(choice_bits), 2), dtype=np.uint64)
    yield from _begin(receiver, len(choice_bits), _CORRELATED)
    for part in parts(len(choice_bits)):
        t[part] = yield from _send_chunk(receiver, choice_bits[part])
    return t


def random_send(sender: OtSender, count: int) -> Rounds[tuple[Blocks, Blocks]]:
    """Return two vectors of random messages; the peer gets the entry of its choice at each place.

    Functionality:  uniform blocks (m0_j, m1_j) to the sender; m_{r_j} to the receiver.
    Input:          sender: the session and the public count; receiver: ``count`` choice bits.
    Output:         sender: (m0, m1); receiver: a vector; each uint64, shape (count, 2).
    Leakage:        none.
    Rounds:         1 ("ot/begin" and "ot/extend" from the receiver).
    Bytes:          as :func:`correlated_send`.
    Assumes:        as :func:`correlated_send`; AES-128 an ideal cipher.
    Source:         as :func:`correlated_send`; the hash: Guo et al. (S&P 2020), section 7.4.

    Raises as :func:`correlated_send`.
    """
    _check_count(count)
    zero, one = np.empty((2, count, 2), dtype=np.uint64)
    hashing = _message_hash(sender.session_key, sender.position, count)
    yield from _meet(sender, count, _RANDOM)
    for part in parts(count):
        q = yield from _receive_chunk(sender, part)
        zero[part], one[part] = _both_messages(hashing, q, sender.delta)
    return zero, one


def random_receive(receiver: OtReceiver, choice_bits: Bits) -> Rounds[Blocks]:
    """Return the chosen random messages; see :func:`random_send`.

    Raises LocalProtocolError if choice bits are not a vector of 0 and 1.
    """
    _check_choices(choice_bits)
    count = len(choice_bits)
    messages = np.empty((count, 2), dtype=np.uint64)
    hashing = _message_hash(receiver.session_key, receiver.position, count)
    yield from _begin(receiver, count, _RANDOM)
    for part in parts(count):
        t = yield from _send_chunk(receiver, choice_bits[part])
        messages[part] = _one_message(hashing, t)
    return messages


def chosen_send(sender: OtSender, message_pairs: tuple[Blocks, Blocks]) -> Rounds[None]:
    """Let the peer choose one block of each pair.

    Functionality:  m_{r_j} of (m0_j, m1_j) to the receiver.
    Input:          sender: ``message_pairs``, two arrays of shape (count, 2); receiver: choice bits.
    Output:         receiver: the chosen blocks, uint64, shape (count, 2).
    Leakage:        none.
    Rounds:         2 for every WINDOW * CHUNK transfers begun ("ot/begin" and "ot/extend" from the receiver,
                    "ot/messages" from the sender); 1 for an empty batch.
    Bytes:          as :func:`correlated_send`, and 32 * count sent by the sender.
    Assumes:        as :func:`random_send`.
    Source:         as :func:`random_send`.

    Raises LocalProtocolError for pairs of unequal or wrong shape, RemoteProtocolError as
    :func:`correlated_send`.
    """
    zero, one = message_pairs
    if zero.shape != one.shape or zero.ndim != 2 or zero.shape[1] != 2:
        raise LocalProtocolError(
            f"message pairs of shapes {zero.shape} and {one.shape}, not (count, 2) twice"
        )
    hashing = _message_hash(sender.session_key, sender.position, len(zero))
    yield from _meet(sender, len(zero), _CHOSEN)
    for part in parts(len(zero)):
        q = yield from _receive_chunk(sender, part)
        mask_zero, mask_one = _both_messages(hashing, q, sender.delta)
        masked = np.concatenate([zero[part] ^ mask_zero, one[part] ^ mask_one])
        yield from send(_MESSAGES, {sender.peer: encode_blocks(masked)})


def chosen_receive(receiver: OtReceiver, choice_bits: Bits) -> Rounds[Blocks]:
    """Return the chosen blocks; see :func:`chosen_send`.

    Raises LocalProtocolError for choice bits that are not a vector of 0 and 1, RemoteProtocolError if the
    peer's messages are not exactly 32 bytes per transfer.
    """
    _check_choices(choice_bits)
    count = len(choice_bits)
    messages = np.empty((count, 2), dtype=np.uint64)
    hashing = _message_hash(receiver.session_key, receiver.position, count)
    yield from _begin(receiver, count, _CHOSEN)
    asked: list[slice] = []
    for part in parts(count):
        if len(asked) == WINDOW:  # a bounded number of messages is under way in either direction
            yield from _receive_messages(receiver, choice_bits, messages, asked.pop(0))
        t = yield from _send_chunk(receiver, choice_bits[part])
        messages[part] = _one_message(hashing, t)
        asked.append(part)
    for part in asked:
        yield from _receive_messages(receiver, choice_bits, messages, part)
    return messages


def _receive_messages(receiver: OtReceiver, choice_bits: Bits, messages: Blocks, part: slice) -> Rounds[None]:
    """Unmask the chosen block of every pair of one chunk, in place."""
    count = part.stop - part.start
    payload = yield from receive(_MESSAGES, receiver.peer)
    zero, one = decode_blocks(payload, 2 * count, receiver.peer, _MESSAGES).reshape(2, count, 2)
    messages[part] ^= np.where(choice_bits[part, np.newaxis] == 1, one, zero)


def _begin(receiver: OtReceiver, count: int, kind: int) -> Rounds[None]:
    """Tell the sender the coming call and our place in the session."""
    header = np.array([kind, receiver.position, count], dtype=np.uint64)
    yield from send(_BEGIN, {receiver.peer: encode_words(header)})


def _meet(sender: OtSender, count: int, kind: int) -> Rounds[None]:
    """Check that the receiver is about to make the same call."""
    payload = yield from receive(_BEGIN, sender.peer)
    header = decode_words(payload, 3, sender.peer, _BEGIN).tolist()
    expected = [kind, sender.position, count]
    if header != expected:
        raise RemoteProtocolError(
            sender.peer, _BEGIN, f"kind, position and count of transfers are {header}, not {expected}"
        )


def _send_chunk(receiver: OtReceiver, choice_bits: Bits) -> Rounds[Blocks]:
    payload, t = receiver.extend(pack_bits(choice_bits), len(choice_bits))
    yield from send(_EXTEND, {receiver.peer: payload})
    return t


def _receive_chunk(sender: OtSender, part: slice) -> Rounds[Blocks]:
    payload = yield from receive(_EXTEND, sender.peer)
    return sender.extend(payload, part.stop - part.start, _EXTEND)


def _both_messages(hashing: BlockHash, q: Blocks, delta: Words) -> tuple[Blocks, Blocks]:
    """Hash q and q ⊕ Δ under the same tweaks; a view of the hash's memory."""
    digests = hashing.hash(np.stack([q, q ^ delta]).reshape(2, -1))
    zero, one = digests.reshape(2, len(q), 2)
    return zero, one


def _one_message(hashing: BlockHash, t: Blocks) -> Blocks:
    return hashing.hash(t.reshape(1, -1)).reshape(-1, 2)


def _message_hash(session_key: bytes, position: int, count: int) -> BlockHash:
    """Return a hash for a call, under a fresh key."""
    return BlockHash(derive_key(session_key, b"ot/messages", position), 2 * min(count, CHUNK))


def _session_key(binding: bytes) -> bytes:
    return derive_key(binding, b"ot/session")


def _reverse_key(end: _End) -> bytes:
    return derive_key(end.session_key, b"ot/reverse", end.next_number())


def _blocks(seeds: tuple[bytes, ...]) -> Blocks:
    return np.frombuffer(b"".join(seeds), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _check_count(count: int) -> None:
    if count < 0:
        raise LocalProtocolError(f"{count} transfers asked for")


def _check_choices(choice_bits: Bits) -> None:
    if choice_bits.ndim != 1 or choice_bits.dtype != np.uint8 or (choice_bits > 1).any():
        raise LocalProtocolError("choice bits are a vector of uint8 that holds nothing but 0 and 1")
