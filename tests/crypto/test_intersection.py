"""Private set intersection: output, common order, cost, hostile messages, what the views show."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import intersection
from crypto.curve import draw_scalar, exponentiate, hash_to_curve
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.intersection import Positions, intersect
from crypto.local import Message, Transcript, run_local
from crypto.rounds import Rounds, send
from tests.support.chi_square import chi_square
from tests.support.rng import SeededRng
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

JOB = bytes(32)
SIZE, AGREE = "intersection/size", "intersection/agree"
POINTS, TAGS = "intersection/points", "intersection/tags"
COMMON, POSITIONS = "intersection/common", "intersection/positions"
Sets = dict[str, list[bytes]]


def run(
    sets: Sets, collector: str = "p0", seed: object = 0, job: bytes = JOB, **how: object
) -> tuple[dict[str, Positions], Transcript]:
    parties = {me: intersect(me, list(sets), collector, sets[me], job, SeededRng((seed, me))) for me in sets}
    return run_local(parties, **how)  # type: ignore[arg-type]


def named(*lists: str) -> Sets:
    return {f"p{i}": [character.encode() for character in members] for i, members in enumerate(lists)}


def changing(number: int, harm: Callable[[bytes], bytes]) -> Callable[[Message], bytes]:
    """Change one message of a run, by its place in the honest transcript."""
    places = itertools.count()
    return lambda message: harm(message.payload) if next(places) == number else message.payload


def flipped(payload: bytes, bit: int) -> bytes:
    changed = bytearray(payload)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def common_ids(sets: Sets, outputs: dict[str, Positions]) -> list[bytes]:
    """Return the common identifiers in the common order, which must be the same at all parties."""
    found = [[sets[me][i] for i in outputs[me]] for me in sets]
    assert all(ids == found[0] for ids in found)
    return found[0]


identifiers = st.binary(max_size=3)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n=st.integers(2, 4))
def test_positions_are_those_of_the_plain_intersection(data: st.DataObject, n: int) -> None:
    pool = data.draw(st.lists(identifiers, unique=True, max_size=12))
    members = st.lists(st.sampled_from(pool), unique=True) if pool else st.just([])
    sets = {f"p{i}": data.draw(members) for i in range(n)}
    outputs, _ = run(sets, collector=data.draw(st.sampled_from(list(sets))))
    assert sorted(common_ids(sets, outputs)) == sorted(set.intersection(*map(set, sets.values())))
    assert all(positions.dtype == np.int64 for positions in outputs.values())


@pytest.mark.parametrize(
    ("sets", "size"),
    [
        (named("", ""), 0),
        (named("abc", ""), 0),
        (named("", "abc", "abc"), 0),
        (named("a", "a"), 1),
        (named("a", "b"), 0),
        (named("abc", "def", "ghi"), 0),
        (named("ab", "bc", "ca"), 0),
        (named("abcd", "dcba", "badc", "cdab"), 4),
    ],
)
def test_edges(sets: Sets, size: int) -> None:
    outputs, _ = run(sets)
    assert len(common_ids(sets, outputs)) == size


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


def test_order_and_points_change_with_key_and_job() -> None:
    sets = named("abcdefghijklmnop", "ponmlkjihgfedcba")
    first, again, other_job, other_key = (
        run(sets),
        run(sets),
        run(sets, job=b"another"),
        run(sets, seed=1),
    )
    assert common_ids(sets, first[0]) == common_ids(sets, again[0])
    assert common_ids(sets, first[0]) != common_ids(sets, other_job[0])
    assert common_ids(sets, first[0]) != common_ids(sets, other_key[0])
    points = [{m.payload for m in t.messages if m.step == POINTS} for _, t in (first, other_job, other_key)]
    assert not points[0] & points[1]
    assert not points[0] & points[2]


@pytest.mark.parametrize(
    "lists", [("abcde", "cdefgh"), ("abcde", "cdefgh", "bcdxyzw"), ("ab", "bc", "b", "b")]
)
@pytest.mark.parametrize("collector", [0, 1])
def test_cost_is_as_documented(lists: tuple[str, ...], collector: int) -> None:
    sets = named(*lists)
    names, n = list(sets), len(sets)
    _, transcript = run(sets, collector=names[collector])
    sizes = [len(members) for members in lists]
    c = len(set.intersection(*map(set, lists)))
    for i, me in enumerate(names):
        following = sizes[(i + 1) % n]
        expected = (8 + 16) * (n - 1) + 32 * (sum(sizes) - following) + (8 + 4 * c) * (n - 1)
        expected += (8 + 4 * c) * (n - 1) if i == collector else 16 * following
        assert transcript.bytes_sent(me) == expected
    assert transcript.rounds == 2 * n + 2
    assert set(transcript.steps) == {SIZE, AGREE, POINTS, TAGS, COMMON, POSITIONS}


def test_an_empty_set_ends_it_after_the_sizes() -> None:
    _, transcript = run(named("abc", "", "ab"))
    assert transcript.steps == (SIZE, AGREE)
    assert transcript.rounds == 2


def test_large_sets_travel_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intersection, "PIECE", 3)
    sets = named("abcdefghijk", "zyxkjih", "kjihgfw")
    outputs, transcript = run(sets)
    assert sorted(common_ids(sets, outputs)) == [b"h", b"i", b"j", b"k"]
    assert max(len(m.payload) for m in transcript.messages) == 3 * 32
    handed_back = [len(m.payload) for m in transcript.view("p0") if m.step == POSITIONS]
    assert handed_back == [8 + 3 * 4, 4] * 2


def test_golden_transcripts(golden: Golden) -> None:
    for lists in (("abcde", "cdefgh"), ("abcde", "cdefgh", "bcdxyzw")):
        _, transcript = run(named(*lists), seed="golden")
        golden.check("intersection", f"{len(lists)} parties", transcript.digest())


@pytest.mark.parametrize("members", ["abcdefgh", "stuvwxyz"])
def test_points_are_uniform_whatever_the_identifiers(members: str) -> None:
    seen = np.zeros(256, np.int64)
    for seed in range(40):
        _, transcript = run(named(members, "abcd"), seed=seed)
        (message,) = [m for m in transcript.view("p1") if m.step == POINTS]
        rows = np.frombuffer(message.payload, np.uint8).reshape(-1, 32)[:, :31]
        seen += np.bincount(rows.ravel(), minlength=256)
    assert chi_square(seen) < BYTE_LIMIT


@pytest.mark.parametrize("n", [2, 3])
def test_the_collector_cannot_place_its_own_identifiers(n: int) -> None:
    """Where the collector's first identifier lands in the list it gets back is uniform over the runs."""
    size, runs = 6, 180
    sets = named(*["abcdef"[:size]] * n)
    landed = np.zeros(size, np.int64)
    for seed in range(runs):
        _, transcript = run(sets, seed=seed)
        point = hash_to_curve(b"jointcut intersection 1" + JOB, b"a")
        for me in sets:
            point = exponentiate(draw_scalar(SeededRng((seed, me))), point)
        (tags,) = [m.payload for m in transcript.view("p0") if m.step == TAGS and m.sender == f"p{n - 1}"]
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


@pytest.mark.parametrize("size", [4, 0])
def test_a_false_size_shows_before_the_points(size: int) -> None:
    def tamper(message: Message) -> bytes:
        hit = (message.step, message.sender) == (SIZE, "p2")
        return size.to_bytes(8, "little") if hit else message.payload

    with pytest.raises(RemoteProtocolError, match="set sizes") as caught:
        run(named("abcde", "bcdef", "cdefg"), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p2", AGREE)


THREE_COMMON = [named("abcd", "dcbx"), named("abcd", "dcbx", "ybcd")]


def numbers(message: Message) -> int:
    """How many bytes of a message all parties must hold alike: sizes, digest, counts; not points or positions."""
    if message.step in (SIZE, AGREE, POSITIONS):
        return 16 if message.step == AGREE else 8
    return 8 if message.step == COMMON and len(message.payload) == 8 else 0  # not the three positions


@pytest.mark.parametrize("sets", [*THREE_COMMON, named("ab", "cd"), named("ab", "")])
def test_no_flipped_bit_leaves_a_party_waiting(sets: Sets) -> None:
    """Every bit of every size, digest and count, in every message: somebody refuses."""
    for number, message in enumerate(run(sets)[1].messages):
        for bit in range(8 * numbers(message)):
            with pytest.raises(RemoteProtocolError):
                run(sets, tamper=changing(number, lambda p, bit=bit: flipped(p, bit)))


@pytest.mark.parametrize("sets", THREE_COMMON)
def test_a_number_that_becomes_zero_leaves_no_party_waiting(sets: Sets) -> None:
    for number, message in enumerate(run(sets)[1].messages):
        if length := numbers(message):
            with pytest.raises(RemoteProtocolError) as caught:
                run(sets, tamper=changing(number, lambda p, n=length: bytes(n) + p[n:]))
            if message.step in (AGREE, POSITIONS):
                assert (caught.value.culprit, caught.value.step) == (message.sender, message.step)


@pytest.mark.parametrize("collector", ["p0", "p1"])
def test_parties_that_name_different_collectors_or_jobs_part_after_the_sizes(collector: str) -> None:
    sets = named("abc", "bcd")
    job = JOB if collector == "p1" else b"another"
    parties = {
        "p0": intersect("p0", list(sets), "p0", sets["p0"], JOB, SeededRng(0)),
        "p1": intersect("p1", list(sets), collector, sets["p1"], job, SeededRng(1)),
    }
    with pytest.raises(RemoteProtocolError, match="roster, collector or job") as caught:
        run_local(parties)
    assert (caught.value.culprit, caught.value.step) == ("p1", AGREE)


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
    sets = named("ab", "ab")
    for position in range(16):

        def tamper(message: Message, at: int = position) -> bytes:
            if (message.step, message.sender) != (POINTS, "p1"):
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


def test_a_wrong_step_names_the_culprit() -> None:
    def confused() -> Rounds[Positions]:
        yield from send(POINTS, {"p0": bytes(32)})
        return np.zeros(0, np.int64)

    honest = intersect("p0", ["p0", "p1"], "p0", [b"a"], JOB, SeededRng(0))
    with pytest.raises(RemoteProtocolError) as caught:
        run_local({"p0": honest, "p1": confused()})
    assert (caught.value.culprit, caught.value.step) == ("p1", SIZE)


@pytest.mark.parametrize(
    ("me", "parties", "collector", "ids", "match"),
    [
        ("p0", ["p0"], "p0", [], "2 or more"),
        ("p0", ["p0", "p1", "p1"], "p0", [], "3 names, 2 different"),
        ("p0", ["p0", "p1"], "p7", [], "p7 is not"),
        ("p7", ["p0", "p1"], "p0", [], "p7 is not"),
        ("p0", ["p0", "p1"], "p0", [b"secret-id", b"secret-id"], "duplicated"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(
    me: str, parties: list[str], collector: str, ids: list[bytes], match: str
) -> None:
    with pytest.raises(LocalProtocolError, match=match) as caught:
        next(intersect(me, parties, collector, ids, JOB, SeededRng(0)))
    assert "secret" not in str(caught.value)
