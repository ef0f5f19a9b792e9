"""Shares of unit vectors: output, laws of points and messages, cost, hostile messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crypto import engine, trees
from crypto.circuit import Held
from crypto.encoding import Words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.ot.extension import OtReceiver, OtSender
from crypto.point_function import Transfers, UnitVectors, most_at_once, open_transfers, unit_vectors
from crypto.rounds import Rounds
from tests.support import ideal
from tests.support.chi_square import chi_square
from tests.support.look_ups import point_bytes, vector_bytes
from tests.support.rng import SeededRng
from tests.support.sessions import OPENING_BYTES, ot_sessions, transfer_bytes
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

LEVEL, LEAVES = "point_function/level", "point_function/leaves"
Batches = list[tuple[int, int]]


def party(
    forward: OtSender | OtReceiver, batches: Batches, seed: object, make: Any = unit_vectors
) -> Rounds[list[UnitVectors]]:
    rng = SeededRng(seed)
    transfers = yield from open_transfers(forward, rng)
    made = []
    for bits, count in batches:
        made.append((yield from make(transfers, {bits: count}, rng))[bits])
    return made


def run(
    batches: Batches, seed: object = 0, make: Any = unit_vectors, **how: Any
) -> tuple[list[tuple[UnitVectors, UnitVectors]], Transcript]:
    sender, receiver = ot_sessions(seed, "g", "e")
    parties = {
        "g": party(sender, batches, (seed, "g"), make),
        "e": party(receiver, batches, (seed, "e"), make),
    }
    outputs, transcript = run_local(parties, **how)
    return list(zip(outputs["g"], outputs["e"], strict=True)), transcript


def opened(g: UnitVectors, e: UnitVectors) -> tuple[Words, Words]:
    """Points, and where the vectors are 1, which must be one place each."""
    ones = np.unpackbits((g.vectors ^ e.vectors).view(np.uint8), axis=1, bitorder="little")
    assert (ones.sum(axis=1) == 1).all()
    return (g.points + e.points) & np.uint64((1 << g.bits) - 1), ones.argmax(axis=1).astype(np.uint64)


@pytest.mark.parametrize("make", [unit_vectors, ideal.unit_vectors], ids=["real", "ideal"])
def test_vectors_are_1_at_the_points_and_nowhere_else(make: Any) -> None:
    batches = [(7, 130), (8, 1), (9, 65), (13, 64), (14, 3), (15, 2), (16, 2), (20, 1)]
    results, _ = run(batches, make=make)
    for (bits, count), (g, e) in zip(batches, results, strict=True):
        points, places = opened(g, e)
        assert g.vectors.shape == e.vectors.shape == (count, (1 << bits) // 64)
        assert len(g) == count
        assert points.tolist() == places.tolist()


SIZES = {16: 3, 7: 130, 10: 65}
"""Vectors that are made side by side, the largest first."""


def of_sizes(
    seed: object = 0, make: Any = unit_vectors
) -> tuple[list[tuple[UnitVectors, UnitVectors]], Transcript]:
    def one(forward: OtSender | OtReceiver, seed: object) -> Rounds[list[UnitVectors]]:
        rng = SeededRng(seed)
        transfers = yield from open_transfers(forward, rng)
        made = yield from make(transfers, SIZES, rng)
        return [made[bits] for bits in SIZES]

    sender, receiver = ot_sessions(seed, "g", "e")
    outputs, transcript = run_local({"g": one(sender, (seed, "g")), "e": one(receiver, (seed, "e"))})
    return list(zip(outputs["g"], outputs["e"], strict=True)), transcript


@pytest.mark.parametrize("make", [unit_vectors, ideal.unit_vectors], ids=["real", "ideal"])
def test_several_sizes_side_by_side(make: Any) -> None:
    """Each size has its own points, in the rounds of the largest."""
    results, transcript = of_sizes(make=make)
    for (bits, count), (g, e) in zip(SIZES.items(), results, strict=True):
        points, places = opened(g, e)
        assert (g.bits, len(g), g.vectors.shape) == (bits, count, (count, (1 << bits) // 64))
        assert points.tolist() == places.tolist()
        assert len(set(points.tolist())) > count // 3
    if make is unit_vectors:
        assert transcript.rounds == 1 + 2 + 16 - 7
        of_each = 24 + transfer_bytes(sum((bits + 1) * count for bits, count in SIZES.items()))
        of_each += sum(vector_bytes(bits) * count for bits, count in SIZES.items())
        extra = sum(point_bytes(bits) * count for bits, count in SIZES.items())
        assert transcript.bytes_sent("g") == OPENING_BYTES + of_each + extra
        small = 30 * sum(SIZES.values())
        assert transcript.bytes_sent("e") == 24 + transfer_bytes(128) + of_each + small


def test_a_part_of_a_batch() -> None:
    ((g, e),), _ = run([(8, 10)])
    points, places = opened(g[4:], e[4:])
    assert points.tolist() == places.tolist() == opened(g, e)[0][4:].tolist()


def test_points_and_either_share_of_them_are_uniform() -> None:
    results, _ = run([(8, 4000)])
    ((g, e),) = results
    for words in (g.points, e.points, (g.points + e.points) & np.uint64(255)):
        assert chi_square(np.bincount(words.astype(np.int64), minlength=256)) < BYTE_LIMIT


def test_shares_of_vectors_are_half_ones_everywhere() -> None:
    """A share alone does not show the place: not even on average over many."""
    ((g, e),), _ = run([(8, 4000)])
    points = (g.points + e.points) & np.uint64(255)
    for share in (g, e):
        bits = np.unpackbits(share.vectors.view(np.uint8), axis=1, bitorder="little")
        assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.05
        at_the_point = bits[np.arange(len(bits)), points.astype(np.int64)]
        assert abs(at_the_point.mean() - 0.5) < 0.05


def corrections_of(transcript: Transcript, count: int) -> Words:
    """The corrections that both parties' messages of a level make, a block each: shape (n, count, 2)."""
    blocks = []
    for step in (LEVEL, LEAVES):
        sent = [[m.payload for m in transcript.view(name) if m.step == step] for name in ("g", "e")]
        for one, other in zip(*sent, strict=True):
            size = min(len(one), len(other)) // (16 * count) * 16 * count
            both = [np.frombuffer(payload[:size], np.uint64) for payload in (one, other)]
            blocks += [*(both[0] ^ both[1]).reshape(-1, count, 2)]
    return np.array(blocks)


def low_leaves_of(transcript: Transcript) -> np.ndarray:
    """The corrections of 16 bits that both parties' messages make: of the fourth level, which sends nothing else."""
    sent = [[m.payload for m in transcript.view(name) if m.step == LEVEL][3] for name in ("g", "e")]
    one, other = (np.frombuffer(payload, "<u2") for payload in sent)
    return one ^ other


def test_corrections_are_uniform_and_tell_nothing_of_the_point() -> None:
    """All that a party learns of the other's messages; with its own they are these and nothing else."""
    count, bits = 2000, 8
    ((g, e),), transcript = run([(bits, count)])
    corrections = corrections_of(transcript, count)
    assert len(corrections) == bits - 4 + 1
    assert chi_square(np.bincount(corrections.view(np.uint8).ravel(), minlength=256)) < BYTE_LIMIT
    assert len({block.tobytes() for block in corrections.reshape(-1, 2)}) == (bits - 4 + 1) * count
    low_leaves = low_leaves_of(transcript)
    assert chi_square(np.bincount(low_leaves.view(np.uint8), minlength=256)) < BYTE_LIMIT
    points = (g.points + e.points) & np.uint64(255)
    of_leaves = [low_leaves >> np.uint16(place) for place in range(16)]
    for words in (*corrections[:, :, 0], *of_leaves):
        for place in range(bits):
            taken = (points >> np.uint64(place) & np.uint64(1)).astype(np.int64)
            low = words.astype(np.int64) & 1
            table = np.bincount(2 * taken + low, minlength=4).reshape(2, 2)
            expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / count
            assert ((table - expected) ** 2 / expected).sum() < 26  # one degree of freedom, p = 3e-7


def test_what_the_garbler_sends_for_points_is_uniform() -> None:
    count, bits = 1000, 8
    _, transcript = run([(bits, count)])
    (payload,) = [m.payload for m in transcript.view("e") if m.step == LEAVES]
    words = np.frombuffer(payload[16 * count :], np.uint8)
    assert len(words) == point_bytes(bits) * count
    assert chi_square(np.bincount(words, minlength=256)) < BYTE_LIMIT


def test_batches_have_nothing_in_common() -> None:
    results, transcript = run([(9, 50), (9, 50)])
    (g, e), (later_g, later_e) = results
    assert opened(g, e)[0].tolist() != opened(later_g, later_e)[0].tolist()
    rows = {row.tobytes() for each in (g, later_g) for row in each.vectors}
    assert len(rows) == 100
    payloads = [m.payload for m in transcript.messages if m.step in (LEVEL, LEAVES)]
    assert len(set(payloads)) == len(payloads)


@pytest.mark.parametrize(("bits", "count"), [(7, 5), (12, 70), (16, 3)])
def test_cost_is_as_documented(bits: int, count: int) -> None:
    _, transcript = run([(bits, count)])
    assert transcript.rounds == 1 + 2 + max(bits - 7, 4)
    of_reverse = 24 + transfer_bytes(128)
    of_each = 24 + transfer_bytes((bits + 1) * count) + vector_bytes(bits) * count
    assert transcript.bytes_sent("g") == OPENING_BYTES + of_each + point_bytes(bits) * count
    assert transcript.bytes_sent("e") == of_reverse + of_each + 30 * count


def test_golden_transcripts(golden: Golden) -> None:
    _, transcript = run([(7, 3), (11, 70)], "golden")
    golden.check("point_function", "unit_vectors", transcript.digest())
    golden.check("point_function", "several sizes", of_sizes("golden")[1].digest())


def test_the_lowest_bit_of_the_offsets_sum_is_1() -> None:
    sender, receiver = ot_sessions(0, "g", "e")
    parties = {"g": open_transfers(sender, SeededRng("g")), "e": open_transfers(receiver, SeededRng("e"))}
    ends, _ = run_local(parties)
    assert [int(ends[name].offset[0]) & 1 for name in ("g", "e")] == [1, 0]
    assert [ends[name].role for name in ("g", "e")] == [Held.GARBLER, Held.EVALUATOR]
    assert "secret" in repr(ends["g"])


@pytest.mark.parametrize("step", [LEVEL, LEAVES])
@pytest.mark.parametrize("culprit", ["g", "e"])
@pytest.mark.parametrize("change", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b""])
def test_messages_of_another_length_are_refused(step: str, culprit: str, change: Any) -> None:
    def tamper(message: Message) -> bytes:
        hit = message.step == step and message.sender == culprit
        return change(message.payload) if hit else message.payload

    with pytest.raises(RemoteProtocolError) as error:
        run([(8, 3)], tamper=tamper)
    assert (error.value.culprit, error.value.step) == (culprit, step)


def test_choices_that_differ_between_columns_are_refused_in_both_directions() -> None:
    for culprit in ("g", "e"):
        seen: list[str] = []

        def tamper(message: Message, culprit: str = culprit, seen: list[str] = seen) -> bytes:
            if message.step == "ot/extend" and message.sender == culprit:
                seen.append(message.step)
                return message.payload[:-49] + bytes([message.payload[-49] ^ 1]) + message.payload[-48:]
            return message.payload

        with pytest.raises(RemoteProtocolError, match="differ between columns") as error:
            run([(8, 3)], tamper=tamper)
        assert error.value.culprit == culprit
        assert seen


@pytest.mark.parametrize(("bits", "count"), [(6, 1), (21, 1), (8, 0), (8, 7282), (16, 3856)])
def test_batches_that_cannot_be_are_refused_before_anything_is_sent(bits: int, count: int) -> None:
    sender, receiver = ot_sessions(0, "g", "e")
    with pytest.raises(LocalProtocolError, match="no batch"):
        next(unit_vectors(Transfers(Held.GARBLER, sender, receiver), {9: 1, bits: count}, SeededRng(0)))


def test_vectors_count_as_work_for_which_compiling_pays() -> None:
    heard: list[str] = []
    engine.after(10, lambda: heard.append("enough"))
    run([(8, 9)])
    assert heard == ["enough"]  # 9 at either party
    engine.after(19, lambda: heard.append("more"))
    run([(8, 9)])
    assert heard == ["enough"]


def test_transfers_of_signs_are_in_step() -> None:
    """Each party knows the peer's mask of its own coin, and not the other mask; the coins are uniform."""
    ((g, e),), _ = run([(8, 4000)])
    for sender, receiver in ((g.signs, e.signs), (e.signs, g.signs)):
        masks, coins = np.stack([sender.zero, sender.one]), receiver.coin.astype(np.int64)
        assert receiver.chosen.tolist() == masks[coins, np.arange(4000)].tolist()
        assert not (receiver.chosen == masks[1 - coins, np.arange(4000)]).any()
        assert abs(coins.mean() - 0.5) < 0.05
        assert chi_square(np.bincount((sender.zero & np.uint64(255)).astype(np.int64))) < BYTE_LIMIT


def test_most_at_once() -> None:
    """One message of transfers, and vectors of 32 MiB."""
    expected = {7: 8192, 8: 7281, 16: 3855, 17: 2048, 18: 1024, 20: 256}
    assert {bits: most_at_once(bits) for bits in expected} == expected


def test_strands_and_slices_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, _ = run([(9, 20)])
    monkeypatch.setattr(trees, "STRAND", 7)
    monkeypatch.setattr(trees, "NODES_AT_ONCE", 3)
    ((g, e),), _ = run([(9, 20)])
    points, places = opened(g, e)
    assert points.tolist() == places.tolist() == opened(*usual[0])[0].tolist()
