"""The ring of three and more parties: common order, shuffles, cost, hostile messages, what the views show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from crypto import ring
from crypto.curve import draw_scalar, exponentiate, hash_to_curve
from crypto.errors import RemoteProtocolError
from crypto.local import Message
from tests.support.chi_square import chi_square
from tests.support.intersections import (
    AGREE,
    COMMON,
    JOB,
    POINTS,
    POSITIONS,
    SIZE,
    TAGS,
    changing,
    common_ids,
    flipped,
    named,
    run,
)
from tests.support.rng import SeededRng
from tests.support.statistics import BYTE_LIMIT


def test_the_common_order_is_that_of_the_encrypted_identifiers() -> None:
    """Recomputed from the parties' keys, independently of the ring."""
    sets = named("abcdefg", "gfedcbx", "zyxgfed")
    outputs, _ = run(sets, collector="p1")
    keys = [draw_scalar(SeededRng((0, me))) for me in sets]

    def encrypted(identifier: bytes) -> bytes:
        point = hash_to_curve(b"jointcut intersection 1" + JOB, identifier)
        for key in keys:
            point = exponentiate(key, point)
        return point

    assert common_ids(sets, outputs) == sorted([b"d", b"e", b"f", b"g"], key=encrypted)


def test_large_sets_travel_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "PIECE", 3)
    sets = named("abcdefghijk", "zyxkjih", "kjihgfw")
    outputs, transcript = run(sets)
    assert sorted(common_ids(sets, outputs)) == [b"h", b"i", b"j", b"k"]
    assert max(len(m.payload) for m in transcript.messages) == 3 * 32
    handed_back = [len(m.payload) for m in transcript.view("p0") if m.step == POSITIONS]
    assert handed_back == [8 + 3 * 4, 4] * 2


@pytest.mark.parametrize("members", ["abcdefgh", "stuvwxyz"])
def test_points_are_uniform_whatever_the_identifiers(members: str) -> None:
    seen = np.zeros(256, np.int64)
    for seed in range(40):
        _, transcript = run(named(members, "abcd", "ab"), seed=seed)
        message = next(m for m in transcript.view("p1") if m.step == POINTS)
        rows = np.frombuffer(message.payload, np.uint8).reshape(-1, 32)[:, :31]
        seen += np.bincount(rows.ravel(), minlength=256)
    assert chi_square(seen) < BYTE_LIMIT


def test_the_collector_cannot_place_its_own_identifiers() -> None:
    """The place of the collector's first identifier in the list it gets back is uniform over the runs."""
    size, runs = 6, 180
    sets = named(*["abcdef"[:size]] * 3)
    landed = np.zeros(size, np.int64)
    for seed in range(runs):
        _, transcript = run(sets, seed=seed)
        point = hash_to_curve(b"jointcut intersection 1" + JOB, b"a")
        for me in sets:
            point = exponentiate(draw_scalar(SeededRng((seed, me))), point)
        (tags,) = [m.payload for m in transcript.view("p0") if m.step == TAGS and m.sender == "p2"]
        landed[tags.index(point[:16]) // 16] += 1
    assert chi_square(landed) < 35.9  # 5 degrees of freedom, p = 1e-6


def test_every_hop_shuffles() -> None:
    """The tags of each list come in an order other than the one the list had at any earlier hop."""
    sets = named(*["abcdefghijklmnopqrst"] * 3)
    keys = {me: draw_scalar(SeededRng((0, me))) for me in sets}
    _, transcript = run(sets)
    hops: dict[str, list[list[int]]] = {me: [] for me in sets}

    def ranks(owner: str, through: list[str], points: list[bytes]) -> list[int]:
        order = {}
        for i, identifier in enumerate(sets[owner]):
            point = hash_to_curve(b"jointcut intersection 1" + JOB, identifier)
            for me in through:
                point = exponentiate(keys[me], point)
            order[point] = i
        return [order[point] for point in points]

    names = list(sets)
    for k, owner in enumerate(names):
        ring = names[k:] + names[:k]
        for hop in range(2):
            messages = [m for m in transcript.messages if (m.sender, m.step) == (ring[hop], POINTS)]
            payload = messages[hop].payload
            points = [payload[i : i + 32] for i in range(0, len(payload), 32)]
            hops[owner].append(ranks(owner, ring[: hop + 1], points))
    orders = [tuple(order) for owner in names for order in hops[owner]]
    assert len(set(orders)) == 6
    assert tuple(range(20)) not in orders


def test_only_positions_of_the_intersection_come_back() -> None:
    """Non-collectors see, after the points, one count and as many positions as there are common ids."""
    sets = named("abcd", "abxy", "acxz")
    _, transcript = run(sets)
    for me in ("p1", "p2"):
        after = [m for m in transcript.view(me) if m.step in (TAGS, COMMON, POSITIONS)]
        assert [len(m.payload) for m in after] == [8, 4, 8 + 4, 8 + 4]


def other_point(payload: bytes, replacement: int) -> bytes:
    return replacement.to_bytes(32, "little") + payload[32:]


@pytest.mark.parametrize(
    ("step", "culprit", "harm", "reason"),
    [
        (SIZE, "p1", lambda p: p[:-1], "bytes"),
        (SIZE, "p1", lambda p: p + b"\0", "bytes"),
        (SIZE, "p1", lambda p: b"\xff" * 8, "out of range"),
        (AGREE, "p1", lambda p: p[:-1], "bytes"),
        (AGREE, "p1", lambda p: p + b"\0", "bytes"),
        (AGREE, "p1", lambda p: bytes(16), "are not ours"),
        (POINTS, "p1", lambda p: p[:-1], "bytes"),
        (POINTS, "p1", lambda p: p + bytes(32), "bytes"),
        (POINTS, "p1", lambda p: b"", "bytes"),
        (POINTS, "p1", lambda p: other_point(p, 2), "not on the curve"),
        (POINTS, "p1", lambda p: other_point(p, 2**255 - 19 + 4), "not on the curve"),
        (POINTS, "p1", lambda p: other_point(p, 0), "not on the curve"),
        (POINTS, "p1", lambda p: other_point(p, 1), "small order"),
        (POINTS, "p1", lambda p: p[:32] * (len(p) // 32), "occurs twice"),
        (TAGS, "p1", lambda p: p[:-1], "bytes"),
        (TAGS, "p1", lambda p: p + b"\0", "bytes"),
        (TAGS, "p1", lambda p: p[:16] * (len(p) // 16), "occurs twice"),
        (COMMON, "p0", lambda p: p[:-1], "bytes"),
        (COMMON, "p0", lambda p: p + b"\0", "bytes"),
        (COMMON, "p0", lambda p: b"\xff" * len(p), "out of range"),
        (COMMON, "p0", lambda p: b"\x01" + p[1:] if len(p) == 8 else p, "bytes"),
        (COMMON, "p0", lambda p: p if len(p) == 8 else p[:4] * (len(p) // 4), "repeated"),
        (POSITIONS, "p2", lambda p: p[:-1], "bytes"),
        (POSITIONS, "p2", lambda p: p + b"\0", "bytes"),
        (POSITIONS, "p2", lambda p: b"", "another number"),
        (POSITIONS, "p2", lambda p: b"\xff" * len(p), "another number"),
        (POSITIONS, "p2", lambda p: p[:8] + p[8:12] * (len(p) // 4 - 2), "repeated"),
        (POSITIONS, "p2", lambda p: p[:8] + b"\xff" * (len(p) - 8), "out of range"),
    ],
)
def test_a_hostile_message_names_the_culprit(
    step: str, culprit: str, harm: Callable[[bytes], bytes], reason: str
) -> None:
    def tamper(message: Message) -> bytes:
        hit = (message.step, message.sender) == (step, culprit)
        return harm(message.payload) if hit else message.payload

    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        run(named("abcde", "bcdef", "cdefg"), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


def numbers(message: Message) -> int:
    """Count the bytes of a message that all parties must hold alike: sizes, digest, counts; not points or
    positions.
    """
    if message.step in (SIZE, AGREE, POSITIONS):
        return 16 if message.step == AGREE else 8
    return 8 if message.step == COMMON and len(message.payload) == 8 else 0  # not the three positions


@pytest.mark.some(1)
@pytest.mark.parametrize("first", range(4))
def test_no_flipped_bit_leaves_a_party_waiting(first: int) -> None:
    """Every bit of every size, digest and count, in every message: somebody refuses. A case has two of each byte."""
    sets = named("abcd", "dcbx", "ybcd")
    for number, message in enumerate(run(sets)[1].messages):
        for bit in range(first, 8 * numbers(message), 4):
            with pytest.raises(RemoteProtocolError):
                run(sets, tamper=changing(number, lambda p, bit=bit: flipped(p, bit)))


def test_a_number_that_becomes_zero_leaves_no_party_waiting() -> None:
    sets = named("abcd", "dcbx", "ybcd")
    for number, message in enumerate(run(sets)[1].messages):
        if length := numbers(message):
            with pytest.raises(RemoteProtocolError) as caught:
                run(sets, tamper=changing(number, lambda p, n=length: bytes(n) + p[n:]))
            if message.step in (AGREE, POSITIONS):
                assert (caught.value.culprit, caught.value.step) == (message.sender, message.step)


def test_points_that_encryption_makes_equal_are_the_senders_fault() -> None:
    """u and 1/u differ by the point of order two, which a clamped scalar removes."""
    u = int.from_bytes(hash_to_curve(b"any", b"point"), "little")
    pair = [value.to_bytes(32, "little") for value in (u, pow(u, -1, 2**255 - 19))]
    key = draw_scalar(SeededRng("any"))
    assert pair[0] != pair[1]
    assert exponentiate(key, pair[0]) == exponentiate(key, pair[1])
    sets = named("abc", "bcd", "cde")
    first = next(
        i
        for i, m in enumerate(run(sets)[1].messages)
        if (m.sender, m.recipient, m.step) == ("p1", "p2", POINTS)
    )
    with pytest.raises(RemoteProtocolError, match="occurs twice") as caught:
        run(sets, tamper=changing(first, lambda p: b"".join(pair) + p[64:]))
    assert (caught.value.culprit, caught.value.step) == ("p1", POINTS)


def test_a_bit_flipped_in_a_point_drops_an_identifier_or_is_refused() -> None:
    """A flipped point is off the curve half of the time; else it is another, unmatched identifier."""
    refused = 0
    sets = named("ab", "ab", "ab")
    for position in range(16):

        def tamper(message: Message, at: int = position) -> bytes:
            if (message.step, message.sender, message.recipient) != (POINTS, "p1", "p2"):
                return message.payload
            return (
                bytes([message.payload[0] ^ 1 << at % 8, message.payload[1] ^ at // 8]) + message.payload[2:]
            )

        try:
            outputs, _ = run(sets, tamper=tamper)
        except RemoteProtocolError as error:
            refused += (error.culprit, error.step) == ("p1", POINTS)
        else:
            assert len(outputs["p0"]) == 1
    assert 0 < refused < 16
