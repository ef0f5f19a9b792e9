"""Intersection of three and more parties: shares of zero by hand, hints, cost, hostile messages, the common order."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from crypto import okvs, zero_shares
from crypto.encoding import Words, encode_words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.hashing import derive_key
from crypto.local import Message
from crypto.oprf import Hashed, Shape, Tagged, oprf_receive, oprf_send
from crypto.rng import Rng
from crypto.rounds import Rounds, side_by_side
from tests.support import ideal
from tests.support.intersections import (
    AGREE,
    COMMON,
    COUNT,
    HINT,
    JOB,
    OT,
    SALT,
    SAME,
    SIZE,
    TABLE,
    changing,
    common_ids,
    flipped,
    named,
    run,
)
from tests.support.rng import SeededRng
from tests.support.statistics import BYTE_LIMIT, byte_statistic
from tests.support.vectors import Golden

Functions = dict[tuple[str, str], dict[bytes, Tagged]]
"""By sender and receiver, what each identifier is to them, of all that one of them has."""


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Functions:
    """The functions of a run, which are the ideal ones."""
    found: Functions = {}

    def keep(pair: tuple[str, str], ids: Sequence[bytes], tagged: Tagged) -> Tagged:
        for i, identifier in enumerate(ids):
            one = Tagged(tagged.hashed.of(slice(i, i + 1)), tagged.tags[i : i + 1])
            found.setdefault(pair, {})[identifier] = one
        return tagged

    def receive(me: str, peer: str, ids: Sequence[bytes], job: bytes, rng: Rng) -> Rounds[Tagged]:
        return keep((peer, me), ids, (yield from ideal.oprf_receive(me, peer, ids, job, rng)))

    def send(me: str, peer: str, ids: Sequence[bytes], count: int, job: bytes, rng: Rng) -> Rounds[Tagged]:
        return keep((me, peer), ids, (yield from ideal.oprf_send(me, peer, ids, count, job, rng)))

    monkeypatch.setattr(zero_shares, "oprf_receive", receive)
    monkeypatch.setattr(zero_shares, "oprf_send", send)
    return found


@pytest.mark.parametrize("n", [3, 4])
def test_what_the_collector_reads_of_an_identifier_is_what_is_said(functions: Functions, n: int) -> None:
    """From each hint by hand: the sum of the tags of both directions with every fellow, and of nothing else."""
    sets = named(*["abcdefg", "gfedcbx", "efgxyz", "agxz"][:n])
    _, transcript = run(sets)
    for me in list(sets)[1:]:
        (hint,) = [m.payload for m in transcript.messages if (m.step, m.sender) == (HINT, me)]
        (salt,) = [m.payload for m in transcript.messages if (m.step, m.sender) == (SALT, me)]
        table = np.frombuffer(hint, dtype="<u8").astype(np.uint64).reshape(-1, 2)
        fellows = [fellow for fellow in list(sets)[1:] if fellow != me]
        for identifier in sets[me]:
            toward = functions[me, "p0"][identifier]
            keys = toward.hashed.salted(salt).keys(Shape.of(len(sets[me])))
            share = okvs.decode(table, keys) ^ toward.tags
            between = [functions[pair][identifier].tags for f in fellows for pair in ((me, f), (f, me))]
            assert np.array_equal(share, np.bitwise_xor.reduce(between))


def test_no_coalition_has_all_that_a_share_is_made_of(functions: Functions) -> None:
    """A tag under a key of the sender's is known to a fellow that has the identifier and to no other."""
    sets = named("abcd", "abcx", "bcxy", "cdxy")
    run(sets)
    for me, fellow in itertools.permutations(list(sets)[1:], 2):
        assert set(functions[me, fellow]) == {*sets[me], *sets[fellow]}
    tags = [each.tags.tobytes() for known in functions.values() for each in known.values()]
    assert len(set(tags)) == len(tags)


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("lists", [("abcdefgh", "abcdefgh", "abcdefgh"), ("abc", "stuvwx", "suw")])
def test_hints_are_uniform_whatever_the_identifiers(lists: tuple[str, ...]) -> None:
    """All rows: those that nobody needs, too, so nothing tells which these are."""
    seen = [
        m.payload for seed in range(4) for m in run(named(*lists), seed=seed)[1].messages if m.step == HINT
    ]
    assert byte_statistic(b"".join(seen)) < BYTE_LIMIT
    rows = {payload[i : i + 16] for payload in seen for i in range(0, len(payload), 16)}
    assert len(rows) == sum(map(len, seen)) // 16


@pytest.mark.usefixtures("functions")
def test_the_common_order_is_drawn_by_the_collector() -> None:
    letters = "abcdefghijklmnop"
    sets = named(letters, letters[::-1], letters[3:] + letters[:3])
    orders = [common_ids(sets, run(sets, seed=seed)[0]) for seed in range(3)]
    for order in orders:
        assert order != sorted(order)
    assert len(set(map(tuple, orders))) == 3


@pytest.mark.usefixtures("functions")
def test_large_sets_travel_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crypto.tags.PIECE", 3)
    sets = named("abcdefghijk", "zyxkjih", "kjihgfw")
    outputs, transcript = run(sets)
    assert sorted(common_ids(sets, outputs)) == [b"h", b"i", b"j", b"k"]
    assert [len(m.payload) for m in transcript.view("p1") if m.step == COMMON] == [48, 16]


@pytest.mark.usefixtures("functions")
def test_bins_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parties that have different numbers of bins, and hints of several messages."""
    monkeypatch.setattr("crypto.oprf.BIN", 40)
    sets = {f"p{i}": [b"%d" % k for k in range(first, last)] for i, (first, last) in enumerate(SPANS)}
    outputs, transcript = run(sets)
    assert sorted(common_ids(sets, outputs)) == sorted(b"%d" % k for k in range(60, 100))
    hints = {me: sum((m.step, m.sender) == (HINT, me) for m in transcript.messages) for me in sets}
    assert hints == {"p0": 0, "p1": 5, "p2": 2}


SPANS = [(0, 110), (60, 260), (20, 100)]


@pytest.mark.parametrize("n", [2, 3])
def test_rounds_of_several_bins_are_as_documented(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """One after the other in one direction, they cost no round; in both directions at most one each."""
    monkeypatch.setattr("crypto.oprf.BIN", 40)
    sets = {f"p{i}": [b"%d" % k for k in range(first, last)] for i, (first, last) in enumerate(SPANS[:n])}
    outputs, transcript = run(sets)
    assert len(common_ids(sets, outputs)) == {2: 50, 3: 40}[n]
    further = max(Shape.of(len(ids)).bins for ids in list(sets.values())[1:]) - 1
    assert further == 4
    assert transcript.rounds == 8 if n == 2 else 10 < transcript.rounds <= 10 + further


def table_bytes(size: int) -> int:
    """One bin of choices, as the docstring of the tables says."""
    words = -(-(3 * -(-13 * size // 30) + 64) // 64) + 4
    return 4096 * (words + words % 2) + 2464


@pytest.mark.parametrize("lists", [("abcde", "cdefgh", "bcdxyzw"), ("ab", "bc", "b", "b")])
@pytest.mark.parametrize("collector", [0, 1])
def test_cost_is_as_documented(lists: tuple[str, ...], collector: int) -> None:
    sets = named(*lists)
    n, c = len(sets), len(set.intersection(*map(set, lists)))
    outputs, transcript = run(sets, collector=f"p{collector}")
    assert len(common_ids(sets, outputs)) == c
    for i, (me, ids) in enumerate(sets.items()):
        received = 4096 + table_bytes(len(ids))
        if i == collector:
            expected = (n - 1) * (24 + received + 8 + 16 * c)
        else:
            hint = 16 + 16 * (3 * -(-13 * len(ids) // 30) + 64)
            expected = (n - 1) * (24 + 7_272) + (n - 2) * (received + 8) + hint
        assert transcript.bytes_sent(me) == expected
    assert transcript.rounds == 10
    assert set(transcript.steps) == {SIZE, AGREE, *OT, TABLE, SALT, HINT, COUNT, SAME, COMMON}


def test_golden_transcript_of_four(golden: Golden) -> None:
    _, transcript = run(named("abcde", "cdefgh", "bcdxyzw", "cd"), seed="golden")
    golden.check("intersection", "4 parties", transcript.digest())


def harming(step: str, culprit: str, harm: Callable[[bytes], bytes]) -> Callable[[Message], bytes]:
    return lambda m: harm(m.payload) if (m.step, m.sender) == (step, culprit) else m.payload


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize(
    ("step", "culprit", "harm", "reason"),
    [
        (SALT, "p1", lambda p: p[:-1], "bytes"),
        (SALT, "p2", lambda p: b"", "bytes"),
        (HINT, "p1", lambda p: p[:-1], "bytes"),
        (HINT, "p2", lambda p: p + bytes(16), "bytes"),
        (COUNT, "p0", lambda p: p[:-1], "bytes"),
        (COUNT, "p0", lambda p: b"\x06" + p[1:], "out of range"),
        (COUNT, "p0", lambda p: b"\xff" * 8, "out of range"),
        (COMMON, "p0", lambda p: p[:-1], "bytes"),
        (COMMON, "p0", lambda p: p[:16] + p[:16] + p[32:], "occurs twice"),
        (COMMON, "p0", lambda p: flipped(p, 100), "no identifier of ours"),
        (COMMON, "p0", lambda p: bytes(16) + p[16:], "no identifier of ours"),
    ],
)
def test_a_hostile_message_names_the_culprit(
    step: str, culprit: str, harm: Callable[[bytes], bytes], reason: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        run(named("abcde", "bcdef", "cdefg"), tamper=harming(step, culprit, harm))
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


@pytest.mark.parametrize(
    ("step", "culprit"), [(OT[0], "p2"), (OT[1], "p0"), (OT[1], "p1"), (TABLE, "p0"), (TABLE, "p2")]
)
def test_a_hostile_message_of_the_functions_names_the_culprit(step: str, culprit: str) -> None:
    with pytest.raises(RemoteProtocolError, match="bytes where") as caught:
        run(named("abc", "bcd", "cde"), tamper=harming(step, culprit, lambda p: p[:-1]))
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


def test_a_fellow_that_says_back_what_it_hears_is_refused() -> None:
    """Else the functions of both directions were one, and shares zero wherever a party has an identifier."""
    ids = [b"a", b"b"]
    party = side_by_side(
        [
            oprf_send("p1", "p2", ids, len(ids), JOB, SeededRng("sends")),
            oprf_receive("p1", "p2", ids, JOB, SeededRng("receives")),
        ]
    )
    with pytest.raises(RemoteProtocolError, match="differ between columns") as caught:
        answer_with_its_own_words(party)
    assert caught.value.culprit == "p2"


def answer_with_its_own_words(party: Rounds[list[Tagged]]) -> None:
    said = next(party)
    while True:
        said = party.send({peer: said.outgoing[peer] for peer in said.wait_for})


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: b"\x02" + p[1:]])
@pytest.mark.parametrize("culprit", ["p1", "p2"])
def test_who_says_another_number_is_named_with_the_collector(
    culprit: str, harm: Callable[[bytes], bytes]
) -> None:
    """Nobody else knows which of the two it was."""
    with pytest.raises(RemoteProtocolError, match="another number") as caught:
        run(named("abcde", "bcdef", "cdefg"), tamper=harming(SAME, culprit, harm))
    assert (caught.value.culprit, caught.value.step) == (f"p0 or {culprit}", SAME)


@pytest.mark.usefixtures("functions")
def test_two_numbers_told_are_noticed_before_any_tag_is_awaited() -> None:
    """The collector tells p2 of one less, and would send it as many tags as it said."""
    sets = named("abcd", "abcd", "abcd")

    def tamper(message: Message) -> bytes:
        hit = (message.step, message.recipient) == (COUNT, "p2")
        return b"\x03" + message.payload[1:] if hit else message.payload

    with pytest.raises(RemoteProtocolError, match="another number") as caught:
        run(sets, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p0 or p2", SAME)


@pytest.mark.usefixtures("functions")
def test_no_flipped_bit_of_a_number_leaves_a_party_waiting_or_blames_others_alone() -> None:
    """Whose message it was is among those who are named, or stops first itself and can only name all others."""
    sets = named("abcd", "dcbx", "ybcd")
    for number, message in enumerate(run(sets)[1].messages):
        bits = {SIZE: 64, AGREE: 128, COUNT: 64, SAME: 64}.get(message.step, 0)
        for bit in range(bits):
            with pytest.raises(RemoteProtocolError) as caught:
                run(sets, tamper=changing(number, functools.partial(flipped, bit=bit)))
            suspects = set(caught.value.culprit.split(" or "))
            assert message.sender in suspects or suspects == sets.keys() - {message.sender}


@pytest.mark.usefixtures("functions")
def test_a_false_hint_drops_identifiers_and_adds_none() -> None:
    sets = named("abcdef", "abcdxy", "bcdefz")
    outputs, _ = run(sets, tamper=harming(HINT, "p1", lambda p: p[:320] + bytes(len(p) - 320)))
    assert set(common_ids(sets, outputs)) < {b"b", b"c", b"d"}


@pytest.mark.usefixtures("functions")
def test_hashes_that_do_not_fit_end_the_run_before_a_hint_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(okvs, "encode", lambda *_: None)
    with pytest.raises(LocalProtocolError, match="do not fit"):
        run(named("abc", "bcd", "cde"))


@pytest.mark.usefixtures("functions")
def test_nobody_but_who_sends_a_hint_chooses_how_it_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys are other ones than those of the function, and others for each hint: by hand, from the salt."""
    laid_out: list[bytes] = []
    table = Hashed.table

    def seen(self: Hashed, *given: object) -> Words:
        laid_out.append(self.words.tobytes())
        return table(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Hashed, "table", seen)
    tagged = Tagged(Hashed(np.arange(12, dtype=np.uint64).reshape(3, 4)), np.zeros((3, 2), dtype=np.uint64))
    for seed in range(2):
        sent = list(zero_shares._send_hint("c", tagged, tagged.tags, SeededRng(seed)))
        (salt, _) = [each.outgoing["c"] for each in sent]
        prefix, text = derive_key(salt, b"oprf/salt"), tagged.hashed.words.tobytes()
        parts = [text[i : i + 32] for i in range(0, 96, 32)]
        expected = b"".join(hashlib.blake2b(prefix + part, digest_size=32).digest() for part in parts)
        assert laid_out.pop() == expected
        assert salt == SeededRng(seed).bytes(16)


def test_a_hint_of_many_is_read_for_those_alone_that_have_a_share() -> None:
    """Without a run: a table of random values, read with the same and with other hashes."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**63, (50, 4)).astype(np.uint64)
    values = rng.integers(0, 2**63, (40, 2)).astype(np.uint64)
    shape = Shape.of(40)
    free = rng.integers(0, 2**63, (shape.rows, 2)).astype(np.uint64)
    table = Hashed(words[:40]).salted(bytes(16)).table(shape, values, free)
    read = zero_shares._read_hint("p", 40, Tagged(Hashed(words), np.zeros((50, 2), dtype=np.uint64)))
    next(read)
    read.send({"p": bytes(16)})
    with pytest.raises(StopIteration) as caught:
        read.send({"p": encode_words(table)})
    assert np.array_equal(caught.value.value[:40], values)
    assert len({tuple(row) for row in caught.value.value.tolist()}) == 50
