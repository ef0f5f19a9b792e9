"""Private set intersection: output, common order, cost, hostile messages, what the views of two parties show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import engine, intersection
from crypto.encoding import encode_words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.intersection import intersect
from crypto.local import Message, run_local
from crypto.oprf import Identifiers
from crypto.rounds import Rounds, send
from crypto.tags import Positions, Tags
from tests.support import ideal
from tests.support.engines import compiled
from tests.support.examples import examples
from tests.support.intersections import (
    AGREE,
    COMMON,
    JOB,
    SHARES,
    SIZE,
    TABLE,
    TAGS,
    Sets,
    changing,
    common_ids,
    flipped,
    named,
    run,
)
from tests.support.rng import SeededRng
from tests.support.statistics import BYTE_LIMIT, byte_statistic
from tests.support.vectors import Golden

OT = ("ot/base/offer", "ot/base/answer", "ot/begin", "ot/extend")

identifiers = st.binary(max_size=3)


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), n=st.integers(2, 4))
def test_positions_are_those_of_the_plain_intersection(data: st.DataObject, n: int) -> None:
    pool = data.draw(st.lists(identifiers, unique=True, max_size=12))
    members = st.lists(st.sampled_from(pool), unique=True) if pool else st.just([])
    sets = {f"p{i}": data.draw(members) for i in range(n)}
    outputs, _ = run(sets, collector=data.draw(st.sampled_from(list(sets))))
    assert sorted(common_ids(sets, outputs)) == sorted(set.intersection(*map(set, sets.values())))
    assert all(positions.dtype == np.int64 for positions in outputs.values())


@settings(max_examples=examples(60), deadline=None)
@given(ours=st.sets(identifiers, max_size=12), theirs=st.sets(identifiers, max_size=12))
def test_the_same_over_the_ideal_twin_of_the_tags(ours: set[bytes], theirs: set[bytes]) -> None:
    sets = {"p0": sorted(ours), "p1": sorted(theirs)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intersection, "oprf_receive", ideal.oprf_receive)
        patch.setattr(intersection, "oprf_send", ideal.oprf_send)
        outputs, _ = run(sets)
    assert sorted(common_ids(sets, outputs)) == sorted(ours & theirs)


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


def tags_of(sets: Sets, seed: object = 0) -> dict[str, Tags]:
    """Return the tags of both parties, noted in a :func:`run`."""
    tags: dict[str, Tags] = {}

    def noting(real: Callable[..., Rounds[Tags]]) -> Callable[..., Rounds[Tags]]:
        def noted(me: str, *rest: Any) -> Rounds[Tags]:
            tags[me] = yield from real(me, *rest)
            return tags[me]

        return noted

    with pytest.MonkeyPatch.context() as patch:
        for name in ("oprf_receive", "oprf_send"):
            patch.setattr(intersection, name, noting(getattr(intersection, name)))
        run(sets, seed=seed)
    return tags


def test_the_common_order_of_two_parties_is_that_of_their_tags() -> None:
    sets = named("abcdefg", "gfedcbx")
    tags = tags_of(sets)
    ranks = {identifier: tuple(tag) for identifier, tag in zip(sets["p1"], tags["p1"].tolist(), strict=True)}
    outputs, transcript = run(sets)
    assert common_ids(sets, outputs) == sorted([b"b", b"c", b"d", b"e", b"f", b"g"], key=ranks.__getitem__)
    (sent,) = [m.payload for m in transcript.messages if m.step == TAGS]
    assert sent == encode_words(np.array(sorted(ranks.values()), dtype=np.uint64))


def test_order_and_tags_change_with_coins_and_job() -> None:
    sets = named("abcdefghijklmnop", "ponmlkjihgfedcba")
    first, again, other_job, other_key = run(sets), run(sets), run(sets, job=b"another"), run(sets, seed=1)
    assert common_ids(sets, first[0]) == common_ids(sets, again[0])
    assert common_ids(sets, first[0]) != common_ids(sets, other_job[0])
    assert common_ids(sets, first[0]) != common_ids(sets, other_key[0])
    sent = []
    for _, transcript in (first, other_job, other_key):
        (payload,) = [m.payload for m in transcript.messages if m.step == TAGS]
        sent.append({payload[i : i + 16] for i in range(0, len(payload), 16)})
    assert not sent[0] & sent[1]
    assert not sent[0] & sent[2]


def table_bytes(size: int) -> int:
    """One bin, as the docstring of the tables says."""
    words = -(-(3 * -(-13 * size // 30) + 64) // 64) + 4
    return 4096 * (words + words % 2) + 2464


@pytest.mark.parametrize("lists", [("abcde", "cdefgh"), ("a", "b"), ("abcdefghijklmnopqrs", "s")])
@pytest.mark.parametrize("collector", [0, 1])
def test_cost_of_two_parties_is_as_documented(lists: tuple[str, str], collector: int) -> None:
    sets = named(*lists)
    names, sizes = list(sets), [len(members) for members in lists]
    _, transcript = run(sets, collector=names[collector])
    other = 1 - collector
    told = 8 + -(-sizes[other] // 8)
    assert transcript.bytes_sent(names[collector]) == 72 + 4096 + table_bytes(sizes[collector]) + told
    assert transcript.bytes_sent(names[other]) == 72 + 6_792 + 16 * sizes[other]
    assert transcript.rounds == 8
    assert set(transcript.steps) == {SIZE, AGREE, *OT, TABLE, TAGS, COMMON}


@pytest.mark.some(2)
@pytest.mark.parametrize("lists", [("abcde", "cdefgh", "bcdxyzw"), ("ab", "bc", "b", "b")])
@pytest.mark.parametrize("collector", [0, 1])
def test_cost_of_several_parties_is_as_documented(lists: tuple[str, ...], collector: int) -> None:
    sets = named(*lists)
    names, n = list(sets), len(sets)
    _, transcript = run(sets, collector=names[collector])
    sizes = [len(members) for members in lists]
    c = len(set.intersection(*map(set, lists)))
    for i, me in enumerate(names):
        taken = n - 1 if i == collector else n - 2
        equals = [j for j in range(n) if j not in (i, collector)]
        rows = 3 * -(-13 * sizes[i] // 30) + 64
        told = (8 + 16 * c) * (n - 1) if i == collector else 16 * rows
        between = sum(7_888 if i < j else 10_856 for j in equals)
        setups = 4096 * taken if i == collector else 6_792 + between
        functions = setups + table_bytes(sizes[i]) * taken
        assert transcript.bytes_sent(me) == (40 + 32) * (n - 1) + functions + told
    assert transcript.rounds == 9
    assert set(transcript.steps) == {SIZE, AGREE, *OT, TABLE, SHARES, COMMON}


def test_an_empty_set_ends_it_after_the_sizes() -> None:
    _, transcript = run(named("abc", "", "ab"))
    assert transcript.steps == (SIZE, AGREE)
    assert transcript.rounds == 2


def test_large_sets_of_two_parties_travel_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intersection, "PIECE", 3)
    sets = named("abcdefghijk", "zyxkjih")
    outputs, transcript = run(sets)
    assert sorted(common_ids(sets, outputs)) == [b"h", b"i", b"j", b"k"]
    assert [len(m.payload) for m in transcript.view("p0") if m.step == TAGS] == [48, 48, 16]


@pytest.mark.by_lot(2)
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("compiling", ["p0", "p1"])
def test_engines_of_parties_may_differ(n: int, compiling: str) -> None:
    """Message by message."""
    if isinstance(other := compiled(), str):
        pytest.skip(other)
    sets = named("abcdefghijk", "kjihxyz", "abcijkz")
    sets = {me: [member * (3 + 40 * i) for i, member in enumerate(sets[me])] for me in list(sets)[:n]}
    sets["p1"][:4] = sets["p0"][:4]
    plain = engine.Reference()

    def under(used: engine.Engine, rounds: Rounds[Positions]) -> Rounds[Positions]:
        inbox = None
        while True:
            engine.use(used)
            try:
                inbox = yield rounds.send(inbox)
            except StopIteration as end:
                return end.value

    def seen(engines: Mapping[str, engine.Engine]) -> tuple[str, list[bytes]]:
        parties = {
            me: under(engines.get(me, plain), intersect(me, list(sets), "p0", sets[me], JOB, SeededRng(me)))
            for me in sets
        }
        outputs, transcript = run_local(parties)
        return transcript.digest(), [positions.tobytes() for positions in outputs.values()]

    assert seen({compiling: other}) == seen({})
    assert seen({})[1] != [b""] * n


def test_equal_hashes_of_different_identifiers_are_no_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intersection, "hash", lambda identifier: len(identifier), raising=False)
    sets = named("abc", "bcd")
    assert sorted(common_ids(sets, run(sets)[0])) == [b"b", b"c"]
    with pytest.raises(LocalProtocolError, match="duplicated"):
        run(named("abca", "bcd"))


def test_golden_transcripts(golden: Golden) -> None:
    for lists in (("abcde", "cdefgh"), ("abcde", "cdefgh", "bcdxyzw")):
        _, transcript = run(named(*lists), seed="golden")
        golden.check("intersection", f"{len(lists)} parties", transcript.digest())


def test_what_the_offering_party_sees_is_uniform_whatever_the_identifiers() -> None:
    """All but sizes and the bits that are the output: the table is masked, and so are the hashes of its check."""
    for members in ("abcdefgh", "stuvwxyz"):
        seen = b"".join(
            m.payload
            for seed in range(6)
            for m in run(named(members, "st"), seed=(members, seed))[1].view("p1")
            if m.step == TABLE
        )
        assert byte_statistic(seen) < BYTE_LIMIT


def test_tags_of_what_is_not_common_are_uniform_to_the_collector() -> None:
    seen = b"".join(
        m.payload[:-16]
        for seed in range(6)
        for m in run({"p0": [b"a"], "p1": [b"%d" % i for i in range(256)]}, seed=seed)[1].view("p0")
        if m.step == TAGS
    )
    rows = np.frombuffer(seen, np.uint8).reshape(-1, 16)[:, :7]  # the lower bytes of what is sorted
    assert byte_statistic(rows.tobytes()) < BYTE_LIMIT


@pytest.mark.some(16)
@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b""])
@pytest.mark.parametrize(
    ("step", "culprit"),
    [
        (SIZE, "p0"),
        (SIZE, "p1"),
        (AGREE, "p1"),
        ("ot/base/offer", "p1"),
        ("ot/base/answer", "p0"),
        ("ot/begin", "p1"),
        ("ot/extend", "p1"),
        (TABLE, "p0"),
        (TAGS, "p1"),
        (COMMON, "p0"),
    ],
)
def test_a_wrong_length_names_the_culprit(step: str, culprit: str, harm: Callable[[bytes], bytes]) -> None:
    with pytest.raises(RemoteProtocolError, match="bytes where") as caught:
        run(named("abcde", "bcdef"), tamper=harming(step, culprit, harm))
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


def harming(step: str, culprit: str, harm: Callable[[bytes], bytes]) -> Callable[[Message], bytes]:
    return lambda m: harm(m.payload) if (m.step, m.sender) == (step, culprit) else m.payload


@pytest.mark.some(9)
@pytest.mark.parametrize(
    ("step", "culprit", "harm", "reason"),
    [
        (SIZE, "p1", lambda p: b"\xff" * 8 + p[8:], "out of range"),
        (AGREE, "p1", lambda p: bytes(16) + p[16:], "are not ours"),
        (AGREE, "p1", lambda p: p[:16] + bytes(16), "not the committed coin"),
        (TABLE, "p0", lambda p: flipped(p, 8 * 5000), "no words of the code"),
        (TABLE, "p0", lambda p: flipped(p, 8 * len(p) - 1), "no words of the code"),
        (TABLE, "p0", lambda p: flipped(p, 8 * (len(p) - 40)), "no words of the code"),
        (TAGS, "p1", lambda p: p[:16] * (len(p) // 16), "do not ascend"),
        (TAGS, "p1", lambda p: p[16:] + p[:16], "do not ascend"),
        (TAGS, "p1", lambda p: p[:16] + p[:8] + bytes(8) + p[32:], "do not ascend"),
        (COMMON, "p0", lambda p: p[:8] + b"\xff", "padding"),
        (COMMON, "p0", lambda p: b"\xff" * 8 + p[8:], "out of range"),
        (COMMON, "p0", lambda p: b"\x06" + p[1:8] + b"\x3f", "out of range"),
        (COMMON, "p0", lambda p: flipped(p, 0), "another number"),
        (COMMON, "p0", lambda p: flipped(p, 64), "another number"),
    ],
)
def test_a_hostile_message_names_the_culprit(
    step: str, culprit: str, harm: Callable[[bytes], bytes], reason: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        run(named("abcde", "bcdefg"), tamper=harming(step, culprit, harm))
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


def test_more_common_identifiers_than_the_collector_has_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="out of range") as caught:
        run(named("ab", "bcdefg"), tamper=harming(COMMON, "p0", lambda p: b"\x03" + bytes(7) + b"\x07"))
    assert (caught.value.culprit, caught.value.step) == ("p0", COMMON)


@pytest.mark.some(1)
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("sets", [named("abcd", "dcbx"), named("ab", "cd"), named("ab", "")])
def test_no_flipped_bit_of_a_number_leaves_a_party_waiting(sets: Sets, first: int) -> None:
    """Every bit of every size, and a fifth of those of commitment, digest, coin, count and answer: somebody refuses.
    A case has a quarter of them.
    """
    for number, message in enumerate(run(sets)[1].messages):
        bits = 8 * len(message.payload) if message.step in (SIZE, AGREE, COMMON) else 0
        sizes = range(first, 64, 4) if message.step == SIZE else ()
        for bit in {*sizes, *range(first, bits, 20)}:
            with pytest.raises(RemoteProtocolError):
                run(sets, tamper=changing(number, lambda p, bit=bit: flipped(p, bit)))


@pytest.mark.parametrize("size", [4, 0])
def test_a_false_size_shows_before_anything_made_of_identifiers(size: int) -> None:
    def tamper(message: Message) -> bytes:
        hit = (message.step, message.sender) == (SIZE, "p2")
        return size.to_bytes(8, "little") + message.payload[8:] if hit else message.payload

    with pytest.raises(RemoteProtocolError, match="set sizes") as caught:
        run(named("abcde", "bcdef", "cdefg"), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p2", AGREE)


@pytest.mark.parametrize("sets", [named("abc", "bc"), named("abc", "bc", "c")])
def test_who_objects_to_the_sizes_sends_nothing_after_its_own(sets: Sets) -> None:
    class Objection(Exception):
        pass

    heard, sent = [], []

    def object_to(own: int, others: Mapping[str, int]) -> None:
        heard.append((own, dict(others)))
        raise Objection

    def noted(message: Message) -> bytes:
        sent.append((message.sender, message.step))
        return message.payload

    parties = {me: intersect(me, list(sets), "p0", sets[me], JOB, SeededRng(me)) for me in sets}
    parties["p1"] = intersect("p1", list(sets), "p0", sets["p1"], JOB, SeededRng(1), object_to)
    with pytest.raises(Objection):
        run_local(parties, tamper=noted)
    assert heard == [(2, {me: len(ids) for me, ids in sets.items() if me != "p1"})]
    assert {step for sender, step in sent if sender == "p1"} == {SIZE}
    assert {step for _, step in sent} <= {SIZE, AGREE}


@pytest.mark.parametrize("collector", ["p0", "p1"])
def test_parties_that_name_different_collectors_or_jobs_part_after_the_sizes(collector: str) -> None:
    sets = named("abc", "bcd")
    job = JOB if collector == "p1" else b"another"
    parties = {
        "p0": intersect("p0", list(sets), "p0", sets["p0"], JOB, SeededRng(0)),
        "p1": intersect("p1", list(sets), collector, sets["p1"], job, SeededRng(1)),
    }
    with pytest.raises(RemoteProtocolError, match="roster, collector, job or version") as caught:
        run_local(parties)
    assert (caught.value.culprit, caught.value.step) == ("p1", AGREE)


@pytest.mark.parametrize("lists", [("a", "a"), ("a", "a", "a")])
def test_a_party_of_a_version_without_coins_is_refused_at_the_sizes(lists: tuple[str, ...]) -> None:
    with pytest.raises(RemoteProtocolError, match="bytes where") as caught:
        run(named(*lists), tamper=harming(SIZE, "p1", lambda p: p[:8]))
    assert (caught.value.culprit, caught.value.step) == ("p1", SIZE)


def test_the_key_of_the_hashes_changes_with_the_coin_of_any_party() -> None:
    """Also if all others repeat their coins: so nobody can choose the key."""
    keys: list[bytes] = []

    def noted(ids: Sequence[bytes], key: bytes) -> Identifiers:
        keys.append(key)
        return Identifiers(ids, key)

    sets = named("ab", "bc", "b")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intersection, "Identifiers", noted)
        for changed in (None, *sets):
            run_local(
                {
                    me: intersect(me, list(sets), "p0", sets[me], JOB, SeededRng((me, me == changed)))
                    for me in sets
                }
            )
    assert [len(set(keys[i : i + 3])) for i in range(0, 12, 3)] == [1] * 4
    assert len(set(keys)) == 4


def test_nobody_learns_a_coin_before_all_have_committed_to_theirs() -> None:
    coins: dict[object, bytes] = {}

    class Noting(SeededRng):
        def bytes(self, n: int) -> bytes:
            drawn = super().bytes(n)
            coins.setdefault(self, drawn)
            return drawn

    sets = named("ab", "bc", "b")
    parties = {me: intersect(me, list(sets), "p0", sets[me], JOB, Noting(me)) for me in sets}
    _, transcript = run_local(parties)
    seen = [message.payload for message in transcript.messages if message.step == SIZE]
    assert len(coins) == 3
    assert all(coin not in payload for coin in coins.values() for payload in seen)
    opened = {m.sender: m.payload[16:] for m in transcript.messages if m.step == AGREE}
    assert set(opened.values()) == set(coins.values())


def test_a_coin_that_another_party_committed_to_cannot_be_taken_over() -> None:
    """The commitment names its party."""
    copied: dict[str, bytes] = {}

    def copying(message: Message) -> bytes:
        start = {SIZE: 8, AGREE: 16}.get(message.step)
        if start is None or message.recipient != "p2":
            return message.payload
        if message.sender == "p0":
            copied[message.step] = message.payload[start:]
        return message.payload[:start] + copied[message.step]

    sets = named("ab", "bc", "b")
    with pytest.raises(RemoteProtocolError) as caught:
        run(sets, tamper=copying)
    assert caught.value.step == AGREE


def test_a_wrong_step_names_the_culprit() -> None:
    def confused() -> Rounds[Positions]:
        yield from send(SHARES, {"p0": bytes(32)})
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
