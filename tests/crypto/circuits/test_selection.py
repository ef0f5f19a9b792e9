"""Choosing circuits: exhaustive where small, random against Python else; ties and invalid entries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.builder import Builder, Word
from crypto.circuit import Circuit, Held, To, evaluate
from crypto.circuits import selection as se
from crypto.errors import LocalProtocolError
from tests.support.circuits import apply, as_signed, circuit_of, every
from tests.support.examples import examples


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_one_hot(width: int) -> None:
    assert apply(se.one_hot, (width,), every(width)) == [1 << v for (v,) in every(width)]
    assert apply(lambda b, x: se.one_hot(b, []), (1,), [(0,)]) == [1]


def test_one_hot_costs() -> None:
    assert circuit_of(se.one_hot, (2,)).and_gates == 1
    assert circuit_of(se.one_hot, (6,)).and_gates < 64


@given(st.integers(1, 5), st.data())
def test_lookup(width: int, data: st.DataObject) -> None:
    table = data.draw(st.lists(st.integers(0, 2**7 - 1), max_size=2**width))
    expected = [*table, *[0] * (2**width - len(table))]
    found = apply(lambda b, x: se.lookup(b, se.one_hot(b, x), table, 7), (width,), every(width))
    assert found == expected


def test_lookup_itself_is_free() -> None:
    plain = circuit_of(se.one_hot, (6,)).and_gates
    table = circuit_of(lambda b, x: se.lookup(b, se.one_hot(b, x), range(64), 6), (6,))
    assert table.and_gates == plain


@given(st.integers(1, 7), st.integers(1, 12), st.data())
@settings(max_examples=examples(40))
def test_entry(bits: int, width: int, data: st.DataObject) -> None:
    table = data.draw(st.lists(st.integers(0, 2**width - 1), min_size=2**bits, max_size=2**bits))
    assert apply(lambda b, x: se.entry(b, x, table, width), (bits,), every(bits)) == table


def test_an_entry_costs_less_than_a_line_for_each() -> None:
    table = [7 * i % 1009 for i in range(512)]
    decoded = circuit_of(lambda b, x: se.lookup(b, se.one_hot(b, x), table, 10), (9,)).and_gates
    assert 3 * circuit_of(lambda b, x: se.entry(b, x, table, 10), (9,)).and_gates < decoded


@pytest.mark.parametrize("entries", [3, 5])
def test_an_entry_is_of_a_whole_table(entries: int) -> None:
    with pytest.raises(LocalProtocolError, match="table"):
        circuit_of(lambda b, x: se.entry(b, x, [0] * entries, 1), (2,))


@pytest.mark.parametrize(("table", "width"), [([0] * 5, 3), ([8], 3), ([1, -2], 4), ([-1], 4)])
def test_bad_tables_are_refused(table: list[int], width: int) -> None:
    with pytest.raises(LocalProtocolError, match="table"):
        circuit_of(lambda b, x: se.lookup(b, se.one_hot(b, x), table, width), (2,))


def test_choose_and_keep() -> None:
    cases = every(1, 2, 3)
    expected = [one if choice else zero for choice, one, zero in cases]
    assert apply(lambda b, c, x, y: se.choose(b, c[0], x, y), (1, 2, 3), cases) == expected
    assert apply(lambda b, c, x: se.keep_if(b, c[0], x), (1, 3), every(1, 3)) == [
        x if c else 0 for c, x in every(1, 3)
    ]


def plain_argmax(keys: list[int], valid: list[int]) -> int | None:
    ranked = [(key, -i) for i, (key, flag) in enumerate(zip(keys, valid, strict=True)) if flag]
    return -max(ranked)[1] if ranked else None


def best_of(n: int, width: int, *, signed: bool = False) -> Circuit:
    """A circuit of n keys with flags and payloads; the parts of the winner are its outputs."""
    b = Builder("best")
    keys = b.input("keys", Held.GARBLER, width, n)
    flags = [x for (x,) in b.input("valid", Held.EVALUATOR, 1, n)]
    payloads = b.input("payloads", Held.GARBLER, 4, n)
    best = se.argmax(b, keys, valid=flags, payloads=payloads, signed=signed)
    for name in ("index", "key", "payload"):
        b.output(name, To.BOTH, [getattr(best, name)])
    b.output("valid", To.BOTH, [[best.valid]])
    return b.build()


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13])
def test_argmax(n: int, signed: bool) -> None:
    width, batch = 3, 300
    rng = np.random.default_rng(n)
    inputs = {
        "keys": rng.integers(0, 1 << width, (batch, n), dtype=np.uint64),
        "valid": rng.integers(0, 2, (batch, n), dtype=np.uint64)
        & rng.integers(0, 2, (batch, n), dtype=np.uint64),
        "payloads": rng.integers(0, 16, (batch, n), dtype=np.uint64),
    }
    out = evaluate(best_of(n, width, signed=signed), batch, inputs)
    for i in range(batch):
        keys = [int(k) for k in inputs["keys"][i]]
        ranked = [as_signed(k, width) if signed else k for k in keys]
        winner = plain_argmax(ranked, inputs["valid"][i].tolist())
        found = tuple(int(out[name][i, 0]) for name in ("valid", "index", "key", "payload"))
        if winner is None:
            assert found[:2] == (0, 0)
            assert found[3] == 0
        else:
            assert found == (1, winner, keys[winner], int(inputs["payloads"][i, winner]))


def test_nothing_of_an_invalid_winner_shows() -> None:
    circuit = best_of(2, 3)
    inputs = {name: np.array([[7, 5]], dtype=np.uint64) for name in ("keys", "payloads")}
    out = evaluate(circuit, 1, {**inputs, "valid": np.zeros((1, 2), dtype=np.uint64)})
    assert [int(v[0, 0]) for v in out.values()] == [0, 0, 0, 0]


def test_argmax_costs_three_words_an_entry() -> None:
    b = Builder("cost")
    keys = b.input("keys", Held.GARBLER, 20, 64)
    b.output("index", To.BOTH, [se.argmax(b, keys).index])
    assert b.build().and_gates <= 63 * 61 + 64 + 20


def test_keys_that_do_not_match_are_refused() -> None:
    b = Builder("bad")
    for keys in ([], [[0], [0, 0]]):
        with pytest.raises(LocalProtocolError, match="keys"):
            se.argmax(b, keys)


@pytest.mark.parametrize(("words", "widths"), [([], r"\[\]"), ([[0, 0], [0]], r"\[1, 2\]")])
def test_words_without_a_greatest_are_refused(words: list[Word], widths: str) -> None:
    b = Builder("bad")
    with pytest.raises(LocalProtocolError, match=f"{len(words)} words of widths {widths}"):
        se.maximum(b, words)
    with pytest.raises(LocalProtocolError, match=f"{len(words)} words of widths {widths}"):
        se.sum_of_maxima(b, [[[0, 0]], words])


@pytest.mark.parametrize(("widths", "shown"), [((), r"\[\]"), ((3, 5), r"\[3, 5\]"), ((8,), r"\[8\]")])
def test_weights_that_the_random_number_cannot_hold_are_refused(widths: tuple[int, ...], shown: str) -> None:
    """Cut to the width of r, 16 would count as 0."""
    b = Builder("bad")
    weights = [b.input(f"w{i}", Held.GARBLER, width)[0] for i, width in enumerate(widths)]
    (r,) = b.input("r", Held.GARBLER, 4)
    with pytest.raises(LocalProtocolError, match=f"weights of widths {shown}, to select by 4 bits"):
        se.select_below(b, weights, r)


@given(st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(max_examples=examples(50), deadline=None)
def test_sum_of_maxima(groups: list[list[int]]) -> None:
    flat = [v for group in groups for v in group]

    def function(b: Builder, *words: Word) -> Word:
        rest = iter(words)
        return se.sum_of_maxima(b, [[next(rest) for _ in group] for group in groups])

    assert apply(function, [4] * len(flat), [tuple(flat)]) == [sum(max(g) for g in groups)]
    assert apply(lambda b, *w: se.maximum(b, w), [4] * len(flat), [tuple(flat)]) == [max(flat)]


@pytest.mark.parametrize("weights", [[1], [0, 1], [3, 0, 2], [1, 1, 1, 1], [0, 0, 5, 0, 2]])
def test_selection_by_a_random_number_is_exact(weights: list[int]) -> None:
    """Over all r below the total, entry i is chosen exactly w_i times; an entry of weight 0 never."""
    n, total = len(weights), sum(weights)
    cases = [(*weights, r) for r in range(total)]
    found = apply(lambda b, *x: se.select_below(b, x[:-1], x[-1]), [3] * n + [4], cases)
    assert [found.count(i) for i in range(n)] == weights
    assert found == sorted(found)


def test_selection_outside_the_precondition_gives_0() -> None:
    assert apply(lambda b, *x: se.select_below(b, x[:-1], x[-1]), [3, 3, 4], [(2, 1, 3), (2, 1, 15)]) == [
        0,
        0,
    ]
