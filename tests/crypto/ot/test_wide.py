"""Wide transfers: what both sides end with, setup, and a receiver whose columns are not one word of the code."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from crypto.blocks import bits_of
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from crypto.local import Message, run_local
from crypto.ot import code, consistency
from crypto.ot.wide import (
    Choices,
    WideReceiver,
    WideSender,
    message_bytes,
    setup_wide_first,
    setup_wide_receiver,
    setup_wide_second,
    setup_wide_sender,
)
from tests.support.rng import SeededRng
from tests.support.sessions import wide_sessions as sessions
from tests.support.statistics import BYTE_LIMIT, byte_statistic

COUNT = 70
WIDTH = 6  # words of a column: two of choices, four of coins


def chosen(count: int, seed: object = 0) -> Words:
    values = np.frombuffer(SeededRng((seed, "values")).bytes(16 * count), dtype="<u8").reshape(count, 2)
    return values & np.array([2**64 - 1, 2**12 - 1], dtype=np.uint64)


def words_of(values: Words) -> Words:
    """The code words of values, by the definition: sums of the unit vectors' words."""
    bits = np.unpackbits(values.astype("<u8").view(np.uint8), axis=1, bitorder="little")[:, : code.DIMENSION]
    return np.array([np.bitwise_xor.reduce(code.generator()[row == 1], axis=0) for row in bits])


@pytest.mark.parametrize("count", [1, 64, 65, 200])
def test_rows_differ_by_the_word_of_what_is_chosen_where_the_offset_has_ones(count: int) -> None:
    sender, receiver = sessions(count)
    for turn in range(2):
        values = chosen(count, turn)
        payload, t = receiver.extend(Choices.of(values))
        q = sender.extend(payload, count, "step")
        assert t.shape == q.shape == (count, 8)
        assert np.array_equal(q, t ^ words_of(values) & sender.delta)
        assert len(payload) == message_bytes(count)
    assert sender.position == receiver.position > 0


def test_setup_costs_what_is_documented_and_gives_sessions_that_fit() -> None:
    outputs, transcript = run_local(
        {
            "s": setup_wide_sender("s", "r", COUNT, SeededRng("s")),
            "r": setup_wide_receiver("r", "s", COUNT, SeededRng("r")),
        }
    )
    assert (transcript.rounds, transcript.bytes_sent("s"), transcript.bytes_sent("r")) == (3, 6_792, 4096)
    sender, receiver = outputs["s"], outputs["r"]
    assert isinstance(sender, WideSender)
    assert isinstance(receiver, WideReceiver)
    assert sender.session_key == receiver.session_key
    assert 180 < bits_of(sender.delta).sum() < 332  # 256 but for more than six standard deviations
    payload, t = receiver.extend(Choices.of(chosen(COUNT)))
    assert np.array_equal(sender.extend(payload, COUNT, "step"), t ^ words_of(chosen(COUNT)) & sender.delta)


def test_two_sessions_from_the_same_base_transfers_cost_what_is_documented_and_fit() -> None:
    """In opposite directions, with different offsets and keys; each at its capacity."""
    capacities = COUNT, COUNT + 64
    outputs, transcript = run_local(
        {
            "a": setup_wide_first("a", "b", capacities, SeededRng("a")),
            "b": setup_wide_second("b", "a", capacities[::-1], SeededRng("b")),
        }
    )
    assert (transcript.rounds, transcript.bytes_sent("a"), transcript.bytes_sent("b")) == (4, 7_888, 10_856)
    (first, reading), (second, read) = outputs["a"], outputs["b"]
    for sender, receiver, count in ((first, read, capacities[0]), (second, reading, capacities[1])):
        assert sender.session_key == receiver.session_key
        assert 180 < bits_of(sender.delta).sum() < 332
        payload, t = receiver.extend(Choices.of(chosen(count)))
        assert np.array_equal(
            sender.extend(payload, count, "step"), t ^ words_of(chosen(count)) & sender.delta
        )
    assert first.session_key != second.session_key
    assert 180 < bits_of(first.delta ^ second.delta).sum() < 332


@pytest.mark.some(1)
@pytest.mark.parametrize(("time", "culprit"), [(0, "a"), (1, "a"), (2, "b")])
def test_two_sessions_are_checked_in_both_directions(time: int, culprit: str) -> None:
    """Seeds of one direction, the turn of the session, and seeds of the other direction."""
    caught = set()
    for seed in range(4):  # an offset whose bit of the column is 0 does not see the change
        times = itertools.count()

        def tamper(message: Message, times: Iterator[int] = times) -> bytes:
            hit = message.step == "ot/extend" and next(times) == time
            return bytes([message.payload[0] ^ 1]) + message.payload[1:] if hit else message.payload

        parties = {
            "a": setup_wide_first("a", "b", (COUNT, COUNT), SeededRng((seed, "a"))),
            "b": setup_wide_second("b", "a", (COUNT, COUNT), SeededRng((seed, "b"))),
        }
        try:
            run_local(parties, tamper=tamper)
        except RemoteProtocolError as error:
            caught.add((error.culprit, error.step))
    assert caught == {(culprit, "ot/extend")}


def cheating(columns: list[int], guess: list[int], transfer: int = 3, seed: object = "cheat") -> bytes:
    """The message of a receiver that chooses otherwise in some columns of a transfer and believes these bits of Δ."""
    receiver = sessions(seed)[1]
    kept: list[Words] = []
    original = consistency.proof

    def keeping(hashing: consistency.Hashing, t_rows: Words, choices: Words) -> bytes:
        kept.extend([t_rows.copy(), choices.copy()])
        return original(hashing, t_rows, choices)

    try:
        consistency.proof = keeping
        payload, _ = receiver.extend(Choices.of(chosen(COUNT)))
    finally:
        consistency.proof = original
    t_rows, choices = kept
    corrections = bytearray(payload[: 8 * WIDTH * code.LENGTH])
    for column, bit in zip(columns, guess, strict=True):
        corrections[8 * WIDTH * column + transfer // 8] ^= 1 << transfer % 8
        t_rows[column, transfer // 64] ^= np.uint64(bit << transfer % 64)
    challenge = consistency.challenge(receiver.session_key, 0, memoryview(bytes(corrections)), 2)
    return bytes(corrections) + original(challenge, t_rows, choices)


@pytest.mark.some(1)
@pytest.mark.parametrize("transfer", [0, 69, 130, 383])  # the last are the choices' coins
def test_another_choice_in_one_column_is_caught_if_and_only_if_the_offset_has_that_bit(transfer: int) -> None:
    delta = bits_of(sessions("cheat")[0].delta)
    columns = [*range(0, 512, 61), 64, 511]
    assert 0 < delta[columns].sum() < len(columns)
    for column in columns:
        sender = sessions("cheat")[0]
        payload = cheating([column], [0], transfer)
        if delta[column]:
            with pytest.raises(RemoteProtocolError, match="no words of the code") as caught:
                sender.extend(payload, COUNT, "step")
            assert (caught.value.culprit, caught.value.step, sender.position) == ("r", "step", 0)
        else:
            sender.extend(payload, COUNT, "step")


def test_a_guess_of_three_bits_passes_if_all_are_right() -> None:
    columns = [5, 200, 511]
    passed = []
    for number in range(8):
        guess = [number >> i & 1 for i in range(3)]
        try:
            sessions("cheat")[0].extend(cheating(columns, guess), COUNT, "step")
        except RemoteProtocolError:
            continue
        passed.append(guess)
    assert passed == [bits_of(sessions("cheat")[0].delta)[columns].tolist()]


def test_a_message_fits_one_place_of_one_session() -> None:
    receiver = sessions()[1]
    (first, _), (second, _) = (
        receiver.extend(Choices.of(chosen(COUNT))),
        receiver.extend(Choices.of(chosen(COUNT))),
    )
    mixed = first[:-2464] + second[-2464:], second[:-2464] + first[-2464:]
    for earlier, payload in [([], second), *(([first], refused) for refused in (first, *mixed))]:
        sender = sessions()[0]
        for taken in earlier:
            sender.extend(taken, COUNT, "step")
        with pytest.raises(RemoteProtocolError, match="no words of the code"):
            sender.extend(payload, COUNT, "step")
    sender = sessions()[0]
    sender.extend(first, COUNT, "step")
    sender.extend(second, COUNT, "step")


def test_a_message_is_uniform_whatever_is_chosen() -> None:
    """With the hashes of the check, which coins hide."""
    for value in (0, 2**12 - 1):
        messages = (
            sessions((value, seed))[1].extend(Choices.of(np.full((8, 2), value, np.uint64)))[0]
            for seed in range(20)
        )
        tables, hashes = zip(*((m[:-2464], m[-2464:-32]) for m in messages), strict=True)
        assert byte_statistic(b"".join(tables)) < BYTE_LIMIT
        assert byte_statistic(b"".join(hashes)) < BYTE_LIMIT


def test_choices_made_once_serve_any_number_of_sessions() -> None:
    """Each session masks them by its own seeds, and draws its own coins."""
    made = Choices.of(chosen(COUNT))
    seen = []
    for seed in range(3):
        sender, receiver = sessions(("shared", seed))
        payload, t = receiver.extend(made)
        assert np.array_equal(
            sender.extend(payload, COUNT, "step"), t ^ words_of(chosen(COUNT)) & sender.delta
        )
        seen.append(payload)
    for first, second in itertools.combinations(seen, 2):
        different = np.frombuffer(first, np.uint8) ^ np.frombuffer(second, np.uint8)
        assert byte_statistic(different[:-32].tobytes()) < BYTE_LIMIT
    assert repr(made) == f"Choices(count={COUNT})"


def test_both_hashes_of_a_row_have_coins_of_their_own() -> None:
    """Two blocks at the end of a row: with one, the second hash would follow from the first and the choices."""
    assert consistency.padded(2) == 4
    assert consistency.padded(2, 2) == WIDTH
    assert message_bytes(COUNT) == 8 * code.LENGTH * WIDTH + 76 * 2 * 16 + 32


def test_the_challenge_is_of_the_message_its_place_and_the_session() -> None:
    def drawn(key: bytes, position: int, message: bytes) -> list[bytes]:
        hashing = consistency.challenge(key, position, memoryview(message), 2)
        return [one.encrypt(bytes(12), b"", b"any") for one in hashing]

    seen = [drawn(*case) for case in ((b"k", 0, b"m"), (b"k", 0, b"n"), (b"k", 1, b"m"), (b"l", 0, b"m"))]
    assert len({tag for tags in seen for tag in tags}) == 8


def test_sessions_have_no_repr() -> None:
    sender, receiver = sessions()
    assert repr(sender) == "WideSender(peer='r', <secret>)"
    assert repr(receiver) == "WideReceiver(peer='s', <secret>)"


@pytest.mark.parametrize("change", [-1, 1])
def test_a_message_of_another_length_is_refused(change: int) -> None:
    sender, receiver = sessions()
    payload, _ = receiver.extend(Choices.of(chosen(COUNT)))
    with pytest.raises(RemoteProtocolError, match="bytes where") as caught:
        sender.extend((payload + b"\0")[: len(payload) + change], COUNT, "step")
    assert (caught.value.culprit, caught.value.step) == ("r", "step")
