"""The check of extended transfers: the hash by hand, who is caught, and what the check says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from crypto.blocks import bits_of, pack_bits
from crypto.errors import RemoteProtocolError
from crypto.ot import consistency
from crypto.ot.extension import OtReceiver, OtSender
from crypto.ot.punctured import BITS, GROUPS
from tests.support.rng import SeededRng
from tests.support.sessions import ot_sessions as sessions
from tests.support.statistics import BYTE_LIMIT, byte_statistic


def field_product(x: int, y: int) -> int:
    """In GF(2^128), in the order of bits that GCM has: NIST SP 800-38D, algorithm 1."""
    z, v = 0, y
    for i in range(127, -1, -1):
        if x >> i & 1:
            z ^= v
        v = v >> 1 ^ (0xE1 << 120 if v & 1 else 0)
    return z


def ghash(key: bytes, data: bytes) -> int:
    """The linear part of the tag of ``data`` as additional data."""
    point = int.from_bytes(Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(bytes(16)), "big")  # noqa: S305
    total = 0
    for i in range(0, len(data), 16):
        total = field_product(total ^ int.from_bytes(data[i : i + 16], "big"), point)
    return field_product(total, point)  # the block of lengths follows, a constant


@given(st.binary(min_size=16, max_size=16), st.integers(1, 5), st.randoms())
def test_the_hash_of_the_choices_is_ghash(key: bytes, blocks: int, random: object) -> None:
    choices = np.frombuffer(SeededRng(str(random)).bytes(16 * blocks), dtype=np.uint64)
    rows = np.zeros((128, 2 * blocks), dtype=np.uint64)
    sent = consistency.proof((AESGCM(key),), rows, choices.reshape(1, -1))
    assert len(sent) == consistency.CHECK_BYTES
    assert int.from_bytes(sent[:16], "big") == ghash(key, choices.tobytes())


def message(seed: object, count: int = 70) -> tuple[OtSender, OtReceiver, bytes]:
    sender, receiver = sessions(seed)
    choices = np.frombuffer(SeededRng((seed, "r")).bytes(count), dtype=np.uint8) & 1
    payload, _ = receiver.extend(pack_bits(choices), count)
    return sender, receiver, payload


def flipped(payload: bytes, groups: list[int], transfer: int, width: int = 4) -> bytes:
    """The message of a receiver that chooses otherwise in some groups of columns of one transfer."""
    octets = bytearray(payload)
    for group in groups:
        octets[8 * width * group + transfer // 8] ^= 1 << transfer % 8
    return bytes(octets)


def bits_of_groups(seed: object) -> list[list[int]]:
    """Return the bits of Δ by group."""
    return bits_of(message(seed)[0].delta).reshape(BITS, GROUPS).T.tolist()


@pytest.mark.some(1)
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("transfer", [0, 69, 200])  # the last is one of the coins
def test_another_choice_in_one_group_is_caught_if_and_only_if_the_offset_has_a_bit_there(
    transfer: int, first: int
) -> None:
    """So what an evaluator guesses of the offset, it pays for with the chance to be caught. A case has a quarter
    of the groups.
    """
    delta = bits_of_groups("one")
    assert {True, False} == {any(bits) for bits in delta}
    for group in range(first, GROUPS, 4):
        sender, _, payload = message("one")
        cheat = flipped(payload, [group], transfer)
        # The challenge is of the message: a cheat makes its check for what it sends.
        cheat = cheat[:-48] + honest_check("one", cheat[:-48])
        if any(delta[group]):
            with pytest.raises(RemoteProtocolError, match="differ between columns") as caught:
                sender.extend(cheat, 70, "step")
            assert (caught.value.culprit, caught.value.step) == ("r", "step")
        else:
            sender.extend(cheat, 70, "step")


def honest_check(seed: object, corrections: bytes) -> bytes:
    """The check of the receiver's own rows, under the challenge of another message."""
    original = consistency.challenge
    try:
        consistency.challenge = lambda key, position, _: original(key, position, corrections)  # type: ignore[assignment]
        return message(seed)[2][-48:]
    finally:
        consistency.challenge = original


@pytest.mark.parametrize("groups", [[5], [31], pytest.param([0, 7], marks=pytest.mark.more)])
def test_a_guess_of_k_groups_is_caught_with_probability_one_minus_sixteen_to_the_minus_k(
    groups: list[int],
) -> None:
    """All guesses of the bits of k groups against one offset: exactly one is right."""
    delta = bits_of_groups("many")
    passed = []
    for guess in product(product((0, 1), repeat=BITS), repeat=len(groups)):
        sender, _, payload = message("many")
        cheat = flipped(payload, groups, 3)[:-48]
        check = guessing_check("many", cheat, dict(zip(groups, guess, strict=True)))
        try:
            sender.extend(cheat + check, 70, "step")
        except RemoteProtocolError:
            continue
        passed.append([list(bits) for bits in guess])
    assert passed == [[delta[group] for group in groups]]


def guessing_check(seed: object, corrections: bytes, guess: dict[int, tuple[int, ...]]) -> bytes:
    """The best check of a cheat that believes these bits of the offset: its rows changed as the sender's will be."""
    _, receiver = sessions(seed)
    choices = np.frombuffer(SeededRng((seed, "r")).bytes(70), dtype=np.uint8) & 1
    rows: list[np.ndarray] = []
    original = consistency.proof

    def kept(hashing: consistency.Hashing, t_rows: np.ndarray, row: np.ndarray) -> bytes:
        rows.extend([t_rows.copy(), row.copy()])
        return original(hashing, t_rows, row)

    try:
        consistency.proof = kept  # type: ignore[assignment]
        receiver.extend(pack_bits(choices), 70)
    finally:
        consistency.proof = original
    t_rows, row = rows
    for group, bits in guess.items():
        t_rows[group::GROUPS, 0] ^= np.array(bits, dtype=np.uint64) << np.uint64(3)
    return original(consistency.challenge(receiver._trees, 0, corrections), t_rows, row)


def test_a_check_of_another_message_is_refused() -> None:
    """Neither a message nor its check can be used again at another place of the session."""
    sender, receiver, first = message("again")
    sender.extend(first, 70, "step")
    second, _ = receiver.extend(pack_bits(np.ones(70, dtype=np.uint8)), 70)
    for payload in (first, second[:-48] + first[-48:], second[:-1] + bytes([second[-1] ^ 1])):
        with pytest.raises(RemoteProtocolError, match="differ between columns"):
            sender_at("again", first).extend(payload, 70, "step")
    sender_at("again", first).extend(second, 70, "step")


def sender_at(seed: object, first: bytes) -> OtSender:
    sender, _ = sessions(seed)
    sender.extend(first, 70, "step")
    return sender


@pytest.mark.more
def test_the_hash_of_the_choices_is_uniform_whatever_they_are() -> None:
    for filling in (0, 1):
        seen = b""
        for seed in range(400):
            _, receiver = sessions((seed, "uniform"))
            payload, _ = receiver.extend(pack_bits(np.full(64, filling, dtype=np.uint8)), 64)
            seen += payload[-48:]
        assert byte_statistic(seen) < BYTE_LIMIT


def test_no_transfer_is_used_before_the_check() -> None:
    """A message that fails leaves the session where it was."""
    sender, _, payload = message("place")
    with pytest.raises(RemoteProtocolError):
        sender.extend(payload[:-1] + bytes([payload[-1] ^ 1]), 70, "step")
    assert sender.position == 0
