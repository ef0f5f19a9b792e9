"""F(x) bit for bit, and the gain made of it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.builder import Builder, Word
from crypto.circuit import Held, To, evaluate
from crypto.circuits import score
from crypto.errors import LocalProtocolError
from tests.support.circuits import apply, as_signed, circuit_of, some
from tests.support.examples import examples


def reference(x: int) -> int:
    """semantics §3.4, written out again."""
    if x < 2:
        return 0
    table = [round(2**20 * math.log2(1 + j / 512)) for j in range(513)]
    k = int(math.log2(x)) if x < 2**20 else x.bit_length() - 1
    fraction = (x << (30 - k)) - 2**30
    i = fraction >> 21
    t = (fraction >> 9) & 4095
    log = table[i] + (((table[i + 1] - table[i]) * t) >> 12)
    return x * (k * 2**20 + log)


def test_the_table_is_the_rounded_logarithm() -> None:
    assert len(score.log2_table()) == 513
    assert list(score.log2_table()) == [round(2**20 * math.log2(1 + j / 512)) for j in range(513)]
    distances = [abs(2**20 * math.log2(1 + j / 512) % 1 - 0.5) for j in range(513)]
    assert min(distances) > 1e-3  # no rounding is close, so floats decide this test safely, too


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13])
def test_f_is_exact_for_every_word_of_a_small_width(width: int) -> None:
    values = [(x,) for x in range(1 << width)]
    assert apply(score.f_word, (width,), values) == [score.f(x) for (x,) in values]


@pytest.mark.some(1)
@pytest.mark.parametrize("width", [16, 20, 21, 22, 23, 27, 31])
def test_f_is_exact_for_large_words(width: int) -> None:
    powers = [(1 << k) + d for k in range(1, width) for d in (-1, 0, 1)]
    values = [*((v,) for v in (*powers, *range(500))), *some(width, 2000, width)]
    assert apply(score.f_word, (width,), values) == [reference(x) for (x,) in values]


def test_no_line_of_the_table_is_further_from_the_logarithm_than_its_bound() -> None:
    """All 2^21 fractions of F; numbers of more bits have the logarithm of a fraction or of a greater one below the
    next.
    """
    table, step = np.array(score.log2_table()), np.arange(4096)
    for i, slope in enumerate(np.diff(table)):
        found = table[i] + (slope * step >> 12)
        fraction = 1 + (i + step / 4096) / 512
        next_fraction = 1 + (i + (step + 1) / 4096) / 512
        assert (found - 2**20 * np.log2(fraction)).max() <= score.LOG_ERROR
        assert (2**20 * np.log2(next_fraction) - found).max() <= score.LOG_ERROR


@given(st.integers(0, 2**31 - 1))
def test_f_in_the_clear(x: int) -> None:
    assert score.f(x) == reference(x)
    exact = 2**20 * x * math.log2(x) if x > 1 else 0
    assert abs(score.f(x) - exact) <= 3e-6 * x * 2**20
    assert score.f(x) < 2**56


def test_f_refuses_what_it_is_not_defined_for() -> None:
    for x in (-1, 2**31):
        with pytest.raises(LocalProtocolError):
            score.f(x)
    with pytest.raises(LocalProtocolError, match="31 bits"):
        circuit_of(score.f_word, (32,))


def test_costs_are_as_documented() -> None:
    found = {width: circuit_of(score.f_word, (width,)).and_gates for width in (4, 6, 8, 10, 20, 31)}
    assert found == {4: 11, 6: 55, 8: 146, 10: 350, 20: 1547, 31: 2180}


def plain_gain(children: list[list[int]]) -> int:
    parent = [sum(column) for column in zip(*children, strict=True)]
    impurity = lambda counts: score.f(sum(counts)) - sum(score.f(n) for n in counts)  # noqa: E731
    return impurity(parent) - sum(impurity(child) for child in children)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_gain(n_children: int, n_classes: int, data: st.DataObject) -> None:
    width = 6
    count = st.integers(0, 2**width - 1)
    children = [data.draw(st.lists(count, min_size=n_classes, max_size=n_classes)) for _ in range(n_children)]
    parent = [sum(column) for column in zip(*children, strict=True)]
    b = Builder("gain")
    words = b.input("children", Held.GARBLER, width, n_children * n_classes)
    totals = b.input("parent", Held.PUBLIC, width + 2, n_classes)
    rows = [words[i * n_classes : (i + 1) * n_classes] for i in range(n_children)]
    gain = score.gain(b, score.impurity(b, totals), rows)
    b.output("gain", To.BOTH, [gain])
    inputs = {
        "children": np.array([children], dtype=np.uint64).reshape(1, -1),
        "parent": np.array([parent], dtype=np.uint64),
    }
    found = as_signed(int(evaluate(b.build(), 1, inputs)["gain"][0, 0]), len(gain))
    assert found == plain_gain(children)


def test_impurity_approximates_the_entropy() -> None:
    counts = (300, 100)
    (found,) = apply(lambda b, *x: score.impurity(b, x), (9, 9), [counts])
    n = sum(counts)
    entropy = -sum(c / n * math.log2(c / n) for c in counts)
    assert Fraction(found, n << 20) == pytest.approx(entropy, abs=1e-5)


def test_sum_of_f() -> None:
    def function(b: Builder, *words: Word) -> Word:
        return score.sum_of_f(b, words)

    cases = [(0, 0, 0), (5, 31, 17), (31, 31, 31)]
    assert apply(function, (5, 5, 5), cases) == [sum(score.f(x) for x in case) for case in cases]
