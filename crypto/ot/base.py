"""Base oblivious transfer in the prime-order group of edwards25519, a few hundred at a time.

Chou and Orlandi, *The simplest protocol for oblivious transfer* (LATINCRYPT 2015), figure 1, as random transfers:
the sender's two messages are keys derived by the protocol, and the receiver gets the key of its choice. The group
is libsodium's (PyNaCl); every received point must be canonical, on the curve, in the subgroup of prime order and
not the identity. libsodium multiplies no other point.

Not claimed: Python does not run in constant time. The receiver computes both candidates for each point before it
picks a candidate, and no code here branches on a secret bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from nacl.bindings import (
    crypto_core_ed25519_add,
    crypto_core_ed25519_is_valid_point,
    crypto_core_ed25519_scalar_reduce,
    crypto_core_ed25519_sub,
    crypto_scalarmult_ed25519_base_noclamp,
    crypto_scalarmult_ed25519_noclamp,
)
from nacl.exceptions import RuntimeError as PointRefused

from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rng import SEED_BYTES, Rng
from crypto.rounds import Rounds, receive, send

POINT_BYTES = 32
_WIDE_SCALAR_BYTES = 64  # reduced modulo the group order: uniform up to 2**-250
_OFFER, _ANSWER = "ot/base/offer", "ot/base/answer"


@dataclass(frozen=True, slots=True)
class SentSeeds:
    """Output of the sender: both seeds of every transfer, and a public digest of the exchange."""

    pairs: tuple[tuple[bytes, bytes], ...] = field(repr=False)
    binding: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChosenSeeds:
    """Output of the receiver: the chosen seed of every transfer, and the same digest."""

    seeds: tuple[bytes, ...] = field(repr=False)
    binding: bytes = field(repr=False)


def base_send(me: str, peer: str, count: int, rng: Rng) -> Rounds[SentSeeds]:
    """Run ``count`` random transfers as the sender.

    Functionality:  for every i, random seeds (k0_i, k1_i) to the sender and k_{c_i} to the receiver.
    Input:          sender: none; receiver: ``count`` choice bits. The count is public and equal.
    Output:         sender: ``count`` pairs of 16-byte seeds; receiver: a seed of each pair. Both: a digest
                    of both messages and both names, fresh and public.
    Leakage:        none.
    Rounds:         2 ("ot/base/offer" from the sender, "ot/base/answer" from the receiver).
    Bytes:          32 sent by the sender, 32 * count by the receiver.
    Assumes:        semi-honest parties; authenticated channels; CDH on edwards25519; SHA-256 a random
                    oracle.
    Source:         Chou, Orlandi (LATINCRYPT 2015), figure 1, without the encryption step.

    Raises LocalProtocolError for a negative count, RemoteProtocolError for a message of a wrong length or an
    invalid point.
    """
    if count < 0:
        raise LocalProtocolError(f"{count} transfers asked for")
    y = _scalar(rng)
    offer = crypto_scalarmult_ed25519_base_noclamp(y)
    yield from send(_OFFER, {peer: offer})
    payload = yield from receive(_ANSWER, peer)
    expect_length(payload, POINT_BYTES * count, peer, _ANSWER)
    # The key point of choice 0 is y * R, of choice 1 y * (R - S) = y * R - y * S.
    offset = crypto_scalarmult_ed25519_noclamp(y, offer)
    pairs = []
    for index in range(count):
        answer = payload[POINT_BYTES * index :][:POINT_BYTES]
        zero = _times(y, answer, peer, _ANSWER)
        one = crypto_core_ed25519_sub(zero, offset)
        pairs.append((_seed(index, offer, answer, zero), _seed(index, offer, answer, one)))
    return SentSeeds(tuple(pairs), _binding(me, peer, offer, payload))


def base_receive(me: str, peer: str, choice_bits: Sequence[int], rng: Rng) -> Rounds[ChosenSeeds]:
    """Run ``len(choice_bits)`` random transfers as the receiver; everything else as :func:`base_send`.

    Raises LocalProtocolError for a choice that is not 0 or 1, RemoteProtocolError as the sender.
    """
    if any(bit not in (0, 1) for bit in choice_bits):
        raise LocalProtocolError("choice bits are 0 or 1")
    offer = yield from receive(_OFFER, peer)
    expect_length(offer, POINT_BYTES, peer, _OFFER)
    if not crypto_core_ed25519_is_valid_point(offer):
        raise _refused(peer, _OFFER)
    scalars = [_scalar(rng) for _ in choice_bits]
    answers = [_answer(offer, x, bit) for x, bit in zip(scalars, choice_bits, strict=True)]
    joined = b"".join(answers)
    yield from send(_ANSWER, {peer: joined})
    seeds = (
        _seed(index, offer, answer, crypto_scalarmult_ed25519_noclamp(x, offer))
        for index, (x, answer) in enumerate(zip(scalars, answers, strict=True))
    )
    return ChosenSeeds(tuple(seeds), _binding(peer, me, offer, joined))


def _scalar(rng: Rng) -> bytes:
    return crypto_core_ed25519_scalar_reduce(rng.bytes(_WIDE_SCALAR_BYTES))


def _answer(offer: bytes, x: bytes, bit: int) -> bytes:
    """Return x * G + bit * S."""
    zero = crypto_scalarmult_ed25519_base_noclamp(x)
    return (zero, crypto_core_ed25519_add(zero, offer))[bit]


def _times(y: bytes, point: bytes, peer: str, step: str) -> bytes:
    """Return y times a received point."""
    try:
        return crypto_scalarmult_ed25519_noclamp(y, point)
    except PointRefused:
        raise _refused(peer, step) from None


def _refused(peer: str, step: str) -> RemoteProtocolError:
    return RemoteProtocolError(peer, step, "not a point of the prime-order group")


def _seed(index: int, offer: bytes, answer: bytes, point: bytes) -> bytes:
    """Hash a key point with the index and the exchange, so equal points give different seeds."""
    text = b"jointcut/ot/base" + index.to_bytes(8, "little") + offer + answer + point
    return hashlib.sha256(text).digest()[:SEED_BYTES]


def _binding(sender: str, receiver: str, offer: bytes, answers: bytes) -> bytes:
    h = hashlib.sha256(b"jointcut/ot/binding")
    for part in (sender.encode(), receiver.encode(), offer, answers):
        h.update(len(part).to_bytes(8, "little") + part)
    return h.digest()
