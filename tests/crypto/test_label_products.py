"""Products of carried bits and shared words: output, uniform messages, cost, hostile messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.batch import CarriedWords
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.encoding import Words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.label_products import DTYPES, products
from crypto.local import Message, Transcript, run_local
from crypto.lookup import LookUps
from crypto.rounds import Rounds
from tests.support.chi_square import chi_square
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.sessions import OPENING_BYTES, transfer_bytes, two_party_sessions
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

TOLD, CHOSEN = "label_products/told", "label_products/chosen"
Factors = Sequence[tuple[Sequence[int], Words]]
"""Bits, and the words of each: what the sides share."""


def carry() -> Circuit:
    """A bit that both share, and its opposite, as labels of an input and of an inverted wire."""
    b = Builder("carry")
    ((bit,),) = b.input("bit", Held.XOR_SHARED, 1)
    ((one,),) = b.input("one", Held.GARBLER, 1)
    b.output("bit", To.CARRIED, [[b.and_(bit, one) ^ 1]])
    return b.build()


def side(
    session: Any, bits: Sequence[Sequence[int]], words: Sequence[Words], width: int, seed: object
) -> Rounds[list[Words]]:
    look_ups = LookUps(session.transfers, SeededRng((seed, session.role.value)))
    transfers = yield from look_ups.transfers()
    carried: list[CarriedWords] = []
    for each in bits:
        inputs = {"bit": np.array(each, dtype=np.uint64).reshape(-1, 1)}
        if session.role is Held.GARBLER:
            inputs["one"] = np.ones((len(each), 1), dtype=np.uint64)
        carried.append((yield from session.run(carry(), len(each), inputs))["bit"])
    return (yield from products(transfers, list(zip(carried, words, strict=True)), width))


def run(factors: Factors, width: int, seed: int = 0, **how: Any) -> tuple[list[list[Words]], Transcript]:
    rng = np.random.default_rng(seed)
    masks = [rng.integers(0, 2, len(bits)) for bits, _ in factors]
    parts = [rng.integers(0, 1 << 63, words.shape, dtype=np.uint64) for _, words in factors]
    g, e = two_party_sessions(seed)
    own = [
        [1 - int(b) ^ int(m) for b, m in zip(bits, mask, strict=True)]
        for (bits, _), mask in zip(factors, masks, strict=True)
    ]
    rest = [words - part for (_, words), part in zip(factors, parts, strict=True)]
    parties = {
        "g": side(g, own, parts, width, seed),
        "e": side(e, [m.tolist() for m in masks], rest, width, seed),
    }
    outputs, transcript = run_local(parties, **how)
    return [outputs["g"], outputs["e"]], transcript


def random_factors(seed: int, shapes: Sequence[tuple[int, int]]) -> Factors:
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(0, 2, n).tolist(), rng.integers(0, 1 << 63, (n, m), dtype=np.uint64)) for n, m in shapes
    ]


def expect(factors: Factors, shares: list[list[Words]], width: int) -> None:
    for (bits, words), one, other in zip(factors, *shares, strict=True):
        wanted = words * np.array(bits, dtype=np.uint64)[:, None]
        mask = np.uint64((1 << width) - 1)
        assert one.shape == other.shape == words.shape
        assert np.array_equal((one + other) & mask, wanted & mask)
        assert not ((one | other) & ~mask).any()


@pytest.mark.parametrize("width", [*DTYPES])
@pytest.mark.parametrize(
    "shapes", [[(1, 1)], [(70, 8)], [(5, 9), (3, 1), (64, 17)], [(2, 0), (4, 3)]], ids=str
)
def test_shares_add_up_to_the_products(width: int, shapes: list[tuple[int, int]]) -> None:
    factors = random_factors(width, shapes)
    shares, _ = run(factors, width)
    expect(factors, shares, width)


@settings(max_examples=examples(15), deadline=None)
@given(st.data())
def test_any_bits_and_words(data: st.DataObject) -> None:
    width = data.draw(st.sampled_from([*DTYPES]))
    n, m = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 20))
    edges = st.sampled_from([0, 1, (1 << width) - 1, 1 << width - 1, (1 << 64) - 1])
    words = data.draw(st.lists(edges, min_size=n * m, max_size=n * m))
    bits = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    factors = [(bits, np.array(words, dtype=np.uint64).reshape(n, m))]
    shares, _ = run(factors, width, data.draw(st.integers(0, 1 << 20)))
    expect(factors, shares, width)


def test_nothing_is_sent_for_no_words() -> None:
    shares, transcript = run([([1, 0], np.zeros((2, 0), dtype=np.uint64))], 16)
    assert [[each.shape for each in own] for own in shares] == [[(2, 0)]] * 2
    assert not {m.step for m in transcript.messages} & {TOLD, CHOSEN}


@pytest.mark.parametrize("bit", [0, 1])
def test_messages_and_shares_are_uniform_for_any_bit(bit: int) -> None:
    """For words that are all 0 or all ones."""
    for word in (0, (1 << 64) - 1):
        factors = [([bit] * 500, np.full((500, 9), word, dtype=np.uint64))]
        shares, transcript = run(factors, 16, bit)
        sent = [m.payload for m in transcript.messages if m.step in (TOLD, CHOSEN)]
        assert len(sent) == 2
        for data in (*sent, *(own[0].astype("<u2").tobytes() for own in shares)):
            assert chi_square(np.bincount(np.frombuffer(data, np.uint8), minlength=256)) < BYTE_LIMIT


def test_the_same_bits_and_words_give_other_messages_in_each_call() -> None:
    factors = [([1, 0, 1], np.full((3, 9), 7, dtype=np.uint64))] * 2
    _, transcript = run(factors, 16)
    for step in (TOLD, CHOSEN):
        (payload,) = [m.payload for m in transcript.messages if m.step == step]
        rows = np.frombuffer(payload, "<u2").reshape(6, 9)
        assert len({row.tobytes() for row in rows}) == 6


@pytest.mark.parametrize(("n", "m", "width"), [(1, 1, 16), (70, 9, 16), (70, 9, 64)])
def test_cost_is_as_documented(n: int, m: int, width: int) -> None:
    _, before = run([([1] * n, np.zeros((n, 0), dtype=np.uint64))], width)
    _, transcript = run(random_factors(1, [(n, m)]), width)
    assert (
        transcript.rounds == before.rounds + 1
    )  # the garbler speaks first, right after the tables of the bits
    told = n * m * width // 8
    of_transfers = 24 + transfer_bytes(n) + OPENING_BYTES  # the first of the session
    assert transcript.bytes_sent("g") - before.bytes_sent("g") == told + of_transfers
    assert transcript.bytes_sent("e") - before.bytes_sent("e") == told


def test_many_words_go_in_pieces() -> None:
    """So no message is longer than a party takes, however many words there are."""
    factors = random_factors(0, [(3, 400_000)])
    shares, transcript = run(factors, 16)
    expect(factors, shares, 16)
    for step in (TOLD, CHOSEN):
        sizes = [len(m.payload) for m in transcript.messages if m.step == step]
        assert max(sizes) <= 1 << 20
        assert sum(sizes) == 2 * 3 * 400_000


@pytest.mark.parametrize(("step", "culprit"), [(TOLD, "g"), (CHOSEN, "e")])
@pytest.mark.parametrize("change", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b""])
def test_messages_of_another_length_are_refused(step: str, culprit: str, change: Any) -> None:
    def tamper(message: Message) -> bytes:
        return change(message.payload) if message.step == step else message.payload

    with pytest.raises(RemoteProtocolError) as error:
        run(random_factors(0, [(3, 5)]), 16, tamper=tamper)
    assert (error.value.culprit, error.value.step) == (culprit, step)


def test_words_of_another_shape_are_refused_before_anything_is_sent() -> None:
    labels = CarriedWords(None, np.zeros((1, 3, 2), dtype=np.uint64), np.arange(3, dtype=np.uint64))
    for bits, words in (
        (labels, np.zeros((2, 4))),
        (labels, np.zeros(3)),
        (labels.resized(2), np.zeros((3, 1))),
    ):
        with pytest.raises(LocalProtocolError, match="words of"):
            next(products(None, [(bits, words.astype(np.uint64))], 16))  # type: ignore[arg-type]


def test_golden_transcripts(golden: Golden) -> None:
    golden.check("label_products", "two factors", run(random_factors(3, [(5, 9), (2, 1)]), 16)[1].digest())
