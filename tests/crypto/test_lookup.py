"""Look-ups at shared indices: output, laws of what is opened, cost, hostile messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto import inner_products, lookup, point_function
from crypto.circuit import Held
from crypto.encoding import Words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.lookup import LookUps, Question, Tables
from crypto.rounds import Rounds
from tests.support import ideal
from tests.support.chi_square import chi_square
from tests.support.examples import examples
from tests.support.look_ups import OPEN, SIGN, indices_of, opening_bytes, point_bytes, vector_bytes
from tests.support.rng import SeededRng
from tests.support.sessions import OPENING_BYTES, ot_sessions, transfer_bytes
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

Plain = tuple[Words, Words, NDArray[np.int64]]
"""Indices, tables, and which each is of."""


Sizes = int | tuple[int, ...]


WIDTH = 64


def party(
    look_ups: Any, bits: Sizes, calls: list[list[Question]], width: int = WIDTH
) -> Rounds[list[list[Words]]]:
    look_ups.start(*((bits,) if isinstance(bits, int) else bits))
    answers = []
    for questions in calls:
        answers.append((yield from look_ups.look_up(questions, width)))
    return answers


def shared(calls: list[list[Plain]]) -> dict[str, list[list[Question]]]:
    rng = np.random.default_rng(1)
    questions: dict[str, list[list[Question]]] = {"g": [], "e": []}
    for call in calls:
        own = [rng.integers(0, 1 << 63, len(indices), dtype=np.uint64) for indices, _, _ in call]
        asked = [(x, i - x, Tables(words), of) for x, (i, words, of) in zip(own, call, strict=True)]
        questions["g"].append([Question(x, tables, of) for x, _, tables, of in asked])
        questions["e"].append([Question(x, tables, of) for _, x, tables, of in asked])
    return questions


def run(
    bits: Sizes,
    calls: list[list[Plain]],
    seed: object = 0,
    *,
    width: int = WIDTH,
    is_ideal: bool = False,
    **how: Any,
) -> tuple[dict[str, list[list[Words]]], Transcript]:
    sender, receiver = ot_sessions(seed, "g", "e")
    asked = shared(calls)
    parties: dict[str, Any] = {
        "g": LookUps(sender, SeededRng((seed, "g"))),
        "e": LookUps(receiver, SeededRng((seed, "e"))),
    }
    if is_ideal:
        parties = {
            "g": ideal.IdealLookUps(Held.GARBLER, "e", SeededRng("g")),
            "e": ideal.IdealLookUps(Held.EVALUATOR, "g", SeededRng("e")),
        }
    return run_local({name: party(parties[name], bits, asked[name], width) for name in parties}, **how)


def expect(calls: list[list[Plain]], outputs: dict[str, list[list[Words]]], width: int = WIDTH) -> None:
    mask = np.uint64((1 << width) - 1)
    for call, g, e in zip(calls, outputs["g"], outputs["e"], strict=True):
        for (indices, tables, of), one, other in zip(call, g, e, strict=True):
            assert not (one & ~mask).any()
            assert not (other & ~mask).any()
            assert ((one + other) & mask).tolist() == (tables[of, indices.astype(np.int64)] & mask).tolist()


def random_plain(count: int, n_tables: int, width: int, bits: int = 40, seed: int = 0) -> Plain:
    rng = np.random.default_rng((seed, count, n_tables, width))
    tables = rng.integers(0, 1 << bits, (n_tables, 1 << width), dtype=np.uint64)
    return (
        rng.integers(0, 1 << width, count).astype(np.uint64),
        tables,
        rng.integers(0, n_tables, count),
    )


CALLS = [
    [random_plain(5, 2, 9), random_plain(7, 3, 6)],
    [random_plain(70, 1, 8), random_plain(0, 1, 7)],
    [random_plain(50, 20, 7, bits=63), random_plain(3, 2, 7, bits=1)],
]


@pytest.mark.parametrize("is_ideal", [False, True])
def test_answers_are_the_entries(is_ideal: bool) -> None:
    outputs, _ = run(9, CALLS, is_ideal=is_ideal)
    expect(CALLS, outputs)


def test_answers_with_ideal_unit_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The users of unit vectors are right on their own."""
    monkeypatch.setattr(lookup, "unit_vectors", ideal.unit_vectors)
    outputs, _ = run(9, CALLS)
    expect(CALLS, outputs)


@pytest.mark.parametrize("width", [6, 7, 8])
def test_every_index_of_a_table(width: int) -> None:
    _, tables, _ = random_plain(1, 1, width)
    size = 1 << width
    calls = [[(np.arange(size).astype(np.uint64), tables, np.zeros(size, np.int64))]]
    expect(calls, run(8, calls)[0])


@settings(max_examples=examples(15), deadline=None)
@given(st.data())
def test_any_numbers_of_look_ups_in_any_tables(data: st.DataObject) -> None:
    bits = data.draw(st.integers(7, 10))
    plain = st.builds(
        random_plain,
        st.integers(0, 90),
        st.integers(1, 4),
        st.integers(6, bits),
        st.integers(1, 63),
        st.integers(0, 99),
    )
    calls = data.draw(st.lists(st.lists(plain, min_size=1, max_size=3), min_size=1, max_size=3))
    expect(calls, run(bits, calls)[0])


def test_large_tables() -> None:
    calls = [[random_plain(3, 2, 16), random_plain(3, 1, 12), random_plain(3, 1, 6)]]
    expect(calls, run(16, calls)[0])


def test_the_largest_tables() -> None:
    calls = [[random_plain(2, 1, 20)]]
    expect(calls, run(20, calls)[0])


def opened(transcript: Transcript) -> list[Words]:
    """Return the values that both parties' messages of every opening open: x − r."""
    sent = [[indices_of(m) for m in transcript.view(name) if m.step == OPEN] for name in ("g", "e")]
    return [one + other for one, other in zip(*sent, strict=True)]


@pytest.mark.parametrize("index", [0, 77])
def test_what_is_opened_and_either_message_is_uniform_whatever_the_index(index: int) -> None:
    count = 4000
    plain = (np.full(count, index, np.uint64), random_plain(1, 1, 8)[1], np.zeros(count, np.int64))
    _, transcript = run(8, [[plain]])
    (shifts,) = opened(transcript)
    assert chi_square(np.bincount((shifts & np.uint64(255)).astype(np.int64), minlength=256)) < BYTE_LIMIT
    for message in transcript.messages:
        if message.step == OPEN:
            words = indices_of(message)
            assert chi_square(np.bincount(words.astype(np.int64), minlength=256)) < BYTE_LIMIT


def test_no_unit_vector_is_used_twice() -> None:
    """The same index opens other numbers every time, within a call and between calls, from stock or not."""
    same = (np.full(40, 5, np.uint64), random_plain(1, 1, 16)[1], np.zeros(40, np.int64))
    _, transcript = run(16, [[same], [same], [same]])
    shifts = np.concatenate(opened(transcript)) & np.uint64(0xFFFF)
    assert len(shifts) == len(set(shifts.tolist())) == 120


def test_shares_of_answers_are_uniform() -> None:
    count = 2000
    tables = np.arange(256, dtype=np.uint64)[None]
    outputs, _ = run(8, [[(np.full(count, 9, np.uint64), tables, np.zeros(count, np.int64))]])
    for name in ("g", "e"):
        answers = (outputs[name][0][0] & np.uint64(255)).astype(np.int64)
        assert chi_square(np.bincount(answers, minlength=256)) < BYTE_LIMIT


def test_cost_is_as_documented() -> None:
    """Missing vectors are made, and as many again, as many as before, or 64; vectors in stock cost one round."""
    bits, calls = 8, [[random_plain(100, 1, 8)], [random_plain(60, 1, 7), random_plain(40, 2, 8)]]
    _, transcript = run(bits, calls)
    made, blocks = 200, vector_bytes(bits) * 200
    of_reverse, of_each = 24 + transfer_bytes(128), 24 + transfer_bytes((bits + 1) * made)
    openings = 2 * (opening_bytes(100) + 8 * 100)
    assert transcript.rounds == 1 + (2 + 4) + 2 * 2
    assert (
        transcript.bytes_sent("g") == OPENING_BYTES + of_each + blocks + point_bytes(bits) * made + openings
    )
    assert transcript.bytes_sent("e") == of_reverse + of_each + blocks + 30 * made + openings
    for counts, batches in (((100, 101), [200, 201]), ((1,), [65]), ((300, 400), [600, 700])):
        calls = [[random_plain(count, 1, 7)] for count in counts]
        _, transcript = run(7, calls)
        leaves = [m for m in transcript.view("g") if m.step == "point_function/leaves"]
        assert [len(m.payload) // 16 for m in leaves] == batches
        assert transcript.rounds == 1 + 6 * len(batches) + 2 * len(counts)


def test_no_indices_cost_nothing() -> None:
    none = (np.zeros(0, np.uint64), random_plain(1, 1, 7)[1], np.zeros(0, np.int64))
    outputs, transcript = run(7, [[none], []])
    assert not transcript.messages
    assert [[words.tolist() for words in call] for call in outputs["g"]] == [[[]], []]


def test_more_look_ups_than_unit_vectors_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They go batch by batch, across the ends of questions."""
    monkeypatch.setattr(point_function, "CHUNK", 80)
    assert point_function.most_at_once(7) == 10
    calls = [[random_plain(12, 2, 7), random_plain(15, 1, 6), random_plain(4, 1, 7)]]
    outputs, transcript = run(7, calls)
    expect(calls, outputs)
    openings = [len(m.payload) for m in transcript.view("g") if m.step == OPEN]
    assert openings == [opening_bytes(10)] * 3 + [opening_bytes(1)]
    assert transcript.rounds == 1 + 4 * (6 + 2)


def test_parts_of_a_cache_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inner_products, "_WORDS_AT_ONCE", 1)
    expect(CALLS, run(9, CALLS)[0])


def test_golden_transcripts(golden: Golden) -> None:
    golden.check("look_up", "three calls", run(9, CALLS, "golden")[1].digest())


@pytest.mark.parametrize("culprit", ["g", "e"])
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda p: p[:-1], "prescribed"),
        (lambda p: p + bytes(4), "prescribed"),
        (lambda p: bytes([p[0] ^ 1]) + p[1:], "other look-ups"),
        (lambda p: p[:17] + b"\1" + p[18:], "too large"),
        (lambda p: p[:-1] + bytes([p[-1] | 8]), "padding"),
    ],
)
def test_hostile_openings_are_refused(culprit: str, change: Any, match: str) -> None:
    def tamper(message: Message) -> bytes:
        hit = message.step == OPEN and message.sender == culprit
        return change(message.payload) if hit else message.payload

    with pytest.raises(RemoteProtocolError, match=match) as error:
        run(7, [[random_plain(3, 1, 7)]], tamper=tamper)
    assert (error.value.culprit, error.value.step) == (culprit, OPEN)


@pytest.mark.parametrize("culprit", ["g", "e"])
@pytest.mark.parametrize("change", [lambda p: p[:-1], lambda p: p + b"\0"])
def test_hostile_signs_are_refused(culprit: str, change: Any) -> None:
    def tamper(message: Message) -> bytes:
        hit = message.step == SIGN and message.sender == culprit
        return change(message.payload) if hit else message.payload

    with pytest.raises(RemoteProtocolError, match="prescribed") as error:
        run(7, [[random_plain(3, 1, 7)]], tamper=tamper)
    assert (error.value.culprit, error.value.step) == (culprit, SIGN)


def signs_and_corrections(transcript: Transcript, count: int) -> list[tuple[Words, Words]]:
    """Return the corrections and the words of the signs that each party sent."""
    found = []
    for name in ("g", "e"):
        (opening,) = [m.payload for m in transcript.view(name) if m.step == OPEN]
        (sign,) = [m.payload for m in transcript.view(name) if m.step == SIGN]
        bits = np.unpackbits(np.frombuffer(opening[16 + 4 * count :], np.uint8), bitorder="little")[:count]
        found.append((bits.astype(np.int64), np.frombuffer(sign, np.uint8)))
    return found


@pytest.mark.parametrize("entry", [0, 255])
def test_signs_are_sent_under_uniform_masks_whatever_the_entry(entry: int) -> None:
    count = 4000
    plain = (np.full(count, 3, np.uint64), np.full((1, 256), entry, np.uint64), np.zeros(count, np.int64))
    outputs, transcript = run(8, [[plain]], width=8)
    expect([[plain]], outputs, 8)
    for bits, octets in signs_and_corrections(transcript, count):
        assert len(octets) == count
        assert chi_square(np.bincount(octets, minlength=256)) < BYTE_LIMIT
        assert abs(bits.mean() - 0.5) < 0.05
    for name in ("g", "e"):
        answers = outputs[name][0][0].astype(np.int64)
        assert chi_square(np.bincount(answers, minlength=256)) < BYTE_LIMIT


@pytest.mark.parametrize("is_ideal", [False, True])
@pytest.mark.parametrize("width", [1, 7, 8, 9, 33, 63, 64])
def test_entries_modulo_any_width(width: int, is_ideal: bool) -> None:
    outputs, _ = run(9, CALLS, width=width, is_ideal=is_ideal)
    expect(CALLS, outputs, width)


@pytest.mark.parametrize("width", [0, 65])
def test_widths_that_there_are_not(width: int) -> None:
    look_ups = LookUps(ot_sessions()[0], SeededRng(0))
    look_ups.start(7)
    with pytest.raises(LocalProtocolError):
        next(look_ups.look_up([_question()], width))


def test_parties_that_ask_otherwise_part() -> None:
    """One entry of a table that differs, or another table for an index."""
    indices, words, of = random_plain(4, 2, 7)
    other = words.copy()
    other[1, 127] ^= np.uint64(1)
    tables = Tables(words)
    for theirs in (Question(indices, Tables(other), of), Question(indices, tables, 1 - of)):
        sender, receiver = ot_sessions(0, "g", "e")
        parties = {
            "g": party(LookUps(sender, SeededRng("g")), 7, [[Question(indices, tables, of)]]),
            "e": party(LookUps(receiver, SeededRng("e")), 7, [[theirs]]),
        }
        with pytest.raises(RemoteProtocolError, match="other look-ups"):
            run_local(parties)


def _question(shares: int = 2, tables: tuple[int, int] = (1, 128), of: list[int] | None = None) -> Question:
    places = np.array([0, 0] if of is None else of)
    return Question(np.zeros(shares, np.uint64), Tables(np.zeros(tables, np.uint64)), places)


@pytest.mark.parametrize(
    "question",
    [
        _question(tables=(1, 256)),
        _question(tables=(1, 32)),
        _question(tables=(1, 96)),
        _question(shares=3),
        _question(of=[0, 1]),
        _question(of=[0, -1]),
    ],
)
def test_questions_that_cannot_be_are_refused_before_anything_is_sent(question: Question) -> None:
    look_ups = LookUps(ot_sessions()[0], SeededRng(0))
    look_ups.start(7)
    with pytest.raises(LocalProtocolError):
        next(look_ups.look_up([question], WIDTH))


@pytest.mark.parametrize("sizes", [(), (6,), (21,), (6, 8), (8, 21)])
def test_sizes_that_there_are_not(sizes: tuple[int, ...]) -> None:
    with pytest.raises(LocalProtocolError):
        LookUps(ot_sessions()[0], SeededRng(0)).start(*sizes)


def test_no_size_no_look_ups() -> None:
    with pytest.raises(LocalProtocolError):
        next(LookUps(ot_sessions()[0], SeededRng(0)).look_up([_question()], WIDTH))


@pytest.mark.parametrize("is_ideal", [False, True])
def test_every_table_takes_the_smallest_unit_vectors_that_it_fits(is_ideal: bool) -> None:
    calls = [
        [random_plain(20, 1, 9), random_plain(30, 2, 7), random_plain(3, 1, 8), random_plain(70, 1, 10)],
        [random_plain(40, 2, 6), random_plain(9, 1, 8)],
    ]
    outputs, transcript = run((10, 8), calls, is_ideal=is_ideal)
    expect(calls, outputs)
    if is_ideal:
        return
    openings = [len(m.payload) for m in transcript.view("g") if m.step == OPEN]
    assert openings == [opening_bytes(count) for count in (33 + 90, 49)]
    leaves = [len(m.payload) // 16 for m in transcript.view("g") if m.step == "point_function/leaves"]
    assert leaves == [33 + 64 + 90 + 90]
    assert transcript.rounds == 1 + 6 + 2 * 2


def makings(sizes: Sizes, asked: list[tuple[int, int]]) -> list[int]:
    """The numbers of unit vectors of all sizes that each making makes, for calls given by number and bits."""
    calls = [[random_plain(count, 1, width)] for count, width in asked]
    outputs, transcript = run(sizes, calls)
    expect(calls, outputs)
    made = [len(m.payload) // 16 for m in transcript.view("g") if m.step == "point_function/leaves"]
    assert transcript.rounds == 1 + 6 * len(made) + 2 * len(calls)
    return made


def test_a_making_makes_vectors_of_all_sizes() -> None:
    """Beside missing vectors: first as many of the other sizes, later as many as a batch of the size took before."""
    assert makings((10, 8), [(20, 10), (15, 7), (90, 9)]) == [(20 + 64) + 20, (26 + 84) + (15 - 5)]


def test_larger_vectors_in_stock_are_taken_where_smaller_ones_are_missing() -> None:
    """But not where they do not suffice, either: then missing vectors are made."""
    first = (20 + 64) + 20
    assert makings((10, 8), [(20, 10), (64, 8)]) == [first]
    assert makings((10, 8), [(20, 10), (65, 8)]) == [first, (45 + 64)]
    assert makings((10, 8), [(20, 8), (64, 8), (21, 10)]) == [first, (1 + 64) + 64]


def test_secrets_are_in_no_repr() -> None:
    assert "secret" in repr(LookUps(ot_sessions()[0], SeededRng(0)))
    assert repr(_question()) == "Question()"
