"""The check of extended transfers: the hash by hand, who is caught, and what the check says."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from crypto.blocks import bits_of, pack_bits
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from crypto.ot import consistency, extension
from crypto.ot.columns import stream_of
from crypto.ot.extension import OtReceiver, OtSender
from crypto.ot.trees import DEPTH, sums_bytes
from tests.support.rng import SeededRng
from tests.support.sessions import fresh_ot_sessions as sessions
from tests.support.statistics import BYTE_LIMIT, byte_statistic


def product(x: int, y: int) -> int:
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
        total = product(total ^ int.from_bytes(data[i : i + 16], "big"), point)
    return product(total, point)  # the block of lengths follows, a constant


@given(st.binary(min_size=16, max_size=16), st.integers(1, 5), st.randoms())
def test_the_hash_of_the_choices_is_ghash(key: bytes, blocks: int, random: object) -> None:
    choices = np.frombuffer(SeededRng(str(random)).bytes(16 * blocks), dtype=np.uint64)
    rows = np.zeros((128, 2 * blocks), dtype=np.uint64)
    sent = consistency.proof((AESGCM(key),), rows, choices.reshape(1, -1))
    assert len(sent) == consistency.CHECK_BYTES
    assert int.from_bytes(sent[:16], "big") == ghash(key, choices.tobytes())


def message(seed: object, count: int = 70, depth: int = DEPTH) -> tuple[OtSender, OtReceiver, bytes]:
    """A session's first message: what completes the trees, corrections, check."""
    sender, receiver = sessions(seed, depth=depth)
    choices = np.frombuffer(SeededRng((seed, "r")).bytes(count), dtype=np.uint8) & 1
    payload, _ = receiver.extend(pack_bits(choices), count)
    return sender, receiver, payload


def flipped(payload: bytes, columns: list[int], transfer: int, depth: int = DEPTH) -> bytes:
    """The message of a receiver that chooses otherwise in some columns of one transfer."""
    octets = bytearray(payload)
    for column in columns:
        octets[sums_bytes(128, depth) + 8 * 4 * column + transfer // 8] ^= 1 << transfer % 8
    return bytes(octets)


def passes(sender: OtSender, payload: bytes) -> bool:
    """Whether the sender goes on; if not, it names the receiver."""
    stopped = None
    try:
        sender.extend(payload, 70, "step")
    except RemoteProtocolError as error:
        stopped = error
    assert stopped is None or "differ between columns" in str(stopped)
    assert stopped is None or (stopped.culprit, stopped.step) == ("r", "step")
    return stopped is None


def guessing_check(seed: object, said: bytes, depth: int, wrong: dict[int, Words]) -> bytes:
    """The best check of a cheat: its own rows, changed to what it believes that the sender's will be."""
    _, receiver = sessions(seed, depth=depth)
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
    for place, difference in wrong.items():
        t_rows[place] ^= difference
    sums = sums_bytes(128, depth)
    hashing = consistency.challenge(receiver.session_key, 0, memoryview(said)[sums:], sums=said[:sums])
    return original(hashing, t_rows, row)


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("transfer", [0, 69, 200])  # the last is one of the coins
def test_another_choice_in_one_column_passes_only_where_the_offset_has_no_bit_of_its_tree(
    transfer: int, depth: int
) -> None:
    """So what an evaluator guesses of the offset, it pays for with the chance to be caught: 2**-depth to pass."""
    n_trees = 128 // depth
    delta = bits_of(message("one", depth=depth)[0].delta).reshape(depth, n_trees)
    for column in range(n_trees):
        sender, _, payload = message("one", depth=depth)
        # The challenge is of the message: a cheat makes its check for what it sends.
        said = flipped(payload, [column], transfer, depth)[:-48]
        assert passes(sender, said + guessing_check("one", said, depth, {})) == (not delta[:, column].any())


@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (1, 3), (2, 1), (2, 2), (4, 1)])
def test_who_chooses_otherwise_passes_with_one_guess_of_all_bits_of_these_trees(
    depth: int, columns: int
) -> None:
    """All guesses of k bits against one offset: exactly one is right, so k bits are paid with a chance of 2**-k."""
    n_trees = 128 // depth
    cheated = list(range(5, 5 + columns))
    places = [b * n_trees + column for column in cheated for b in range(depth)]
    passed = []
    for guess in range(1 << len(places)):
        sender, _, payload = message("many", depth=depth)
        said = flipped(payload, cheated, 3, depth)[:-48]
        bits = [guess >> i & 1 for i in range(len(places))]
        wrong = {p: np.array([bit << 3, 0, 0, 0], np.uint64) for p, bit in zip(places, bits, strict=True)}
        if passes(sender, said + guessing_check("many", said, depth, wrong)):
            passed.append(bits)
    assert passed == [bits_of(sender.delta)[places].tolist()]


def offset_of(seed: object, tree: int) -> tuple[int, int]:
    """The bits of the sender's offset that belong to a tree of two levels."""
    delta = bits_of(sessions(seed)[0].delta)
    return int(delta[tree]), int(delta[64 + tree])


def test_a_wrong_sum_is_caught_unless_the_sender_does_not_use_it() -> None:
    """A receiver whose trees do not fit learns one bit of the offset with one chance in two, as from its choices."""
    seen = set()
    for tree in range(64):
        low, _ = offset_of("trees", tree)
        for side in (0, 1):
            sender, _, payload = message("trees")
            octets = bytearray(payload)
            octets[32 * tree + 16 * side + 7] ^= 4  # of the sum that serves a sender whose bit is ``side``
            said = bytes(octets[:-48])
            assert passes(sender, said + guessing_check("trees", said, DEPTH, {})) == (low != side)
            seen.add((low, side))
    assert len(seen) == 4


def test_a_wrong_sum_with_the_rows_that_follow_passes_for_one_guess_of_both_bits() -> None:
    """The best such a receiver can do: it knows which leaf the sender has instead if its guess is right."""
    tree, passed = 9, []
    for guess in range(4):
        side, upper = guess & 1, guess >> 1
        sender, _, payload = message("trees")
        octets = bytearray(payload)
        octets[32 * tree + 16 * side] ^= 1
        said = bytes(octets[:-48])
        leaf = leaves_of("trees")[64 * ((1 - upper) << 1 | side) + tree]
        other = bytes([leaf[0] ^ 1]) + leaf[1:]
        differences = np.bitwise_xor(
            *(np.frombuffer(stream_of(s).update(bytes(32)), np.uint64) for s in (leaf, other))
        )
        if passes(sender, said + guessing_check("trees", said, DEPTH, {tree: differences})):
            passed.append((side, upper))
    assert passed == [offset_of("trees", tree)]


def leaves_of(seed: object) -> list[bytes]:
    """What the receiver grew, from the coins of its session."""
    grown: list[list[bytes]] = []
    original = extension.grow

    def kept(*arguments: Any) -> tuple[list[bytes], bytes]:
        grown.append(original(*arguments)[0])
        return original(*arguments)

    with patch.object(extension, "grow", kept):
        sessions(seed)
    return grown[0]


def test_a_check_of_another_message_is_refused() -> None:
    """Neither a message nor its check can be used again at another place of the session."""
    sender, receiver, first = message("again")
    sender.extend(first, 70, "step")
    second, _ = receiver.extend(pack_bits(np.ones(70, dtype=np.uint8)), 70)
    for payload in (
        first[sums_bytes(128) :],
        second[:-48] + first[-48:],
        second[:-1] + bytes([second[-1] ^ 1]),
    ):
        with pytest.raises(RemoteProtocolError, match="differ between columns"):
            sender_at("again", first).extend(payload, 70, "step")
    sender_at("again", first).extend(second, 70, "step")


def sender_at(seed: object, first: bytes) -> OtSender:
    sender, _ = sessions(seed)
    sender.extend(first, 70, "step")
    return sender


def test_every_challenge_is_of_what_the_trees_were_made_of() -> None:
    """So nobody knows a challenge before it has settled on sums, of a later message neither."""
    seen: list[bytes] = []
    original = consistency.challenge

    def kept(key: bytes, position: int, corrections: memoryview, sums: bytes) -> consistency.Hashing:
        seen.append(sums)
        return original(key, position, corrections, sums=sums)

    with patch.object(consistency, "challenge", kept):
        sender, receiver, payload = message("sums")
        sender.extend(payload, 70, "step")
        second, _ = receiver.extend(np.zeros(1, np.uint64), 64)
        sender.extend(second, 64, "step")
    assert seen == [payload[: sums_bytes(128)]] * 4
    row = np.arange(1, 3, dtype=np.uint64).reshape(1, 2)
    checks = {
        consistency.proof(original(bytes(16), 0, memoryview(b""), sums=sums), row, row)
        for sums in (b"", bytes(16), bytes(15) + b"1")
    }
    assert len(checks) == 3


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
