"""Arithmetic circuits against Python integers: exhaustive for small widths, edges and random for large."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.builder import Builder, Word, subtract
from crypto.circuit import Circuit, Held, To, evaluate
from crypto.circuits import arithmetic as ar
from crypto.errors import LocalProtocolError
from tests.support.circuits import apply, as_signed, circuit_of, every, some

SMALL = [(w, every(w, w)) for w in (1, 2, 3, 4)]
LARGE = [(w, some(w, 200, w, w)) for w in (8, 31, 64)]
CASES = [pytest.param(w, pairs, id=str(w)) for w, pairs in SMALL + LARGE]


@pytest.mark.parametrize(("width", "pairs"), CASES)
def test_comparisons(width: int, pairs: list[tuple[int, int]]) -> None:
    def less(b: Builder, x: Word, y: Word) -> list[int]:
        return [
            ar.less(b, x, y),
            ar.less_in_blocks(b, x, y),
            ar.less_signed(b, x, y),
            ar.equal(b, x, y),
        ]

    expected = [
        3 * (x < y) + 4 * (as_signed(x, width) < as_signed(y, width)) + 8 * (x == y) for x, y in pairs
    ]
    assert apply(less, (width, width), pairs) == expected


def test_comparison_of_different_widths() -> None:
    pairs = every(2, 4)
    assert apply(lambda b, x, y: [ar.less(b, x, y)], (2, 4), pairs) == [x < y for x, y in pairs]
    assert apply(lambda b, x, y: [ar.less(b, y, x)], (2, 4), pairs) == [y < x for x, y in pairs]
    assert apply(lambda b, x, y: [ar.equal(b, x, y)], (2, 4), pairs) == [x == y for x, y in pairs]


def test_comparison_costs() -> None:
    ripple = circuit_of(lambda b, x, y: [ar.less(b, x, y)], (32, 32))
    assert (ripple.and_gates, ripple.and_depth) == (32, 32)
    blocks = circuit_of(lambda b, x, y: [ar.less_in_blocks(b, x, y)], (32, 32))
    assert (blocks.and_gates, blocks.and_depth) == (7 * 32 // 4 + 3, 32 // 4 + 3)


@pytest.mark.parametrize("width", [1, 3, 5])
def test_less_constant(width: int) -> None:
    values = every(width)
    for bound in range(-1, (1 << width) + 2):
        expected = [x < bound for (x,) in values]
        assert apply(lambda b, x, bound=bound: [ar.less_constant(b, x, bound)], (width,), values) == expected


def test_less_constant_is_cheap() -> None:
    assert circuit_of(lambda b, x: [ar.less_constant(b, x, 0b1011000)], (7,)).and_gates == 3
    assert circuit_of(lambda b, x: [ar.less_constant(b, x, 1 << 6)], (7,)).and_gates == 0


@pytest.mark.parametrize("width", [1, 2, 5, 9])
def test_bit_reductions(width: int) -> None:
    values = every(width)
    top = (1 << width) - 1

    def reduced(b: Builder, x: Word) -> list[int]:
        return [ar.all_of(b, x), ar.any_of(b, x), ar.is_zero(b, x)]

    assert apply(reduced, (width,), values) == [(x == top) + 2 * (x > 0) + 4 * (x == 0) for (x,) in values]


def test_reductions_of_nothing_and_of_thousands() -> None:
    assert apply(lambda b, x: [ar.all_of(b, []), ar.any_of(b, [])], (1,), [(0,)]) == [1]
    b = Builder("conjunction")
    bits = [bit for (bit,) in b.input("x", Held.GARBLER, 1, 5000)]
    b.output("o", To.BOTH, [[ar.all_of(b, bits)]])
    circuit = b.build()
    assert (circuit.and_gates, circuit.and_depth) == (4999, 13)


@pytest.mark.parametrize(("width", "pairs"), CASES)
def test_sums_and_differences(width: int, pairs: list[tuple[int, int]]) -> None:
    modulus = 1 << width
    assert apply(ar.add, (width, width), pairs) == [(x + y) % modulus for x, y in pairs]
    assert apply(subtract, (width, width), pairs) == [(x - y) % modulus for x, y in pairs]
    if width < 64:
        assert apply(ar.add_wide, (width, width), pairs) == [x + y for x, y in pairs]


def test_addition_costs() -> None:
    circuit = circuit_of(ar.add, (32, 32))
    assert (circuit.and_gates, circuit.and_depth) == (31, 31)


def test_add_of_different_widths() -> None:
    pairs = every(2, 4)
    assert apply(ar.add_wide, (2, 4), pairs) == [x + y for x, y in pairs]


@pytest.mark.parametrize("width", [1, 2, 5])
def test_negate_if(width: int) -> None:
    pairs = every(1, width)
    expected = [-x % (1 << width) if choice else x for choice, x in pairs]
    assert apply(lambda b, c, x: ar.negate_if(b, c[0], x), (1, width), pairs) == expected


@given(st.lists(st.integers(1, 6), max_size=6), st.data())
def test_totals_and_prefix_sums(widths: list[int], data: st.DataObject) -> None:
    values = [data.draw(st.integers(0, 2**w - 1)) for w in widths]
    assert apply(lambda b, *x: ar.total(b, x), widths, [tuple(values)] if widths else [()]) == [sum(values)]
    if widths:
        expected = sum(sum(values[: i + 1]) % 32 << 5 * i for i in range(len(values)))

        def joined(b: Builder, *x: Word) -> list[int]:
            return [bit for word in ar.prefix_sums(b, x, 5) for bit in word]

        assert apply(joined, widths, [tuple(values)]) == [expected]


def test_total_never_overflows() -> None:
    for n in range(1, 20):
        assert apply(lambda b, *x: ar.total(b, x), [2] * n, [(3,) * n]) == [3 * n]
        assert apply(lambda b, *x: ar.total(b, x), [1] * n, [(1,) * n]) == [n]


@pytest.mark.parametrize(("width", "count"), [(1, 1), (1, 3), (3, 2), (4, 2), (2, 4)])
def test_totals_of_absolutes(width: int, count: int) -> None:
    """Of all words there are, the least one, too, which has no opposite; in just enough bits, and modulo fewer."""
    rows = every(*[width] * count)
    expected = [sum(abs(as_signed(x, width)) for x in row) for row in rows]
    for bits in (max(expected).bit_length(), 1):
        found = apply(lambda b, *x, bits=bits: ar.total_of_absolutes(b, x, bits), [width] * count, rows)
        assert found == [value % (1 << bits) for value in expected]


def test_counting_bits_is_cheap() -> None:
    circuit = circuit_of(lambda b, *x: ar.total(b, x), [1] * 64)
    assert circuit.and_gates <= 64


PRODUCTS = [(w, v, every(w, v)) for w, v in ((1, 1), (1, 4), (3, 3), (4, 2), (4, 4))]
PRODUCTS += [(w, v, some(w, 100, w, v)) for w, v in ((16, 16), (31, 25), (33, 31), (8, 56))]


@pytest.mark.parametrize(("width", "other", "pairs"), PRODUCTS)
def test_products(width: int, other: int, pairs: list[tuple[int, int]]) -> None:
    assert apply(ar.multiply, (width, other), pairs) == [x * y for x, y in pairs]


def by_public(width: int, other: int) -> Circuit:
    b = Builder("public factor")
    (x,), (y,) = b.input("x", Held.GARBLER, width), b.input("y", Held.PUBLIC, other)
    b.output("o", To.BOTH, [ar.multiply_by_public(b, x, y)])
    return b.build()


@pytest.mark.parametrize(("width", "other", "pairs"), PRODUCTS)
def test_products_by_a_public_factor(width: int, other: int, pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(column, dtype=np.uint64).reshape(-1, 1) for column in zip(*pairs, strict=True))
    found = evaluate(by_public(width, other), len(pairs), {"x": x, "y": y})["o"]
    assert found.reshape(-1).tolist() == [x * y for x, y in pairs]


def test_product_costs() -> None:
    assert circuit_of(ar.multiply, (32, 32)).and_gates <= 2 * 32 * 32
    assert by_public(16, 16).and_gates <= 16 * 16 / 2 + 16
    assert by_public(34, 30).and_gates <= 34 * (30 / 3 + 3)


@pytest.mark.parametrize("held", [Held.PUBLIC, Held.EVALUATOR])
def test_shifts(held: Held) -> None:
    """By any number, also beyond the width; free where the number is public."""
    b = Builder("shift")
    (x,), (amount,) = b.input("x", Held.GARBLER, 6), b.input("amount", held, 4)
    b.output("o", To.BOTH, [ar.shift_right(b, x, amount)])
    circuit, pairs = b.build(), every(6, 4)
    words, amounts = (np.array(column, dtype=np.uint64).reshape(-1, 1) for column in zip(*pairs, strict=True))
    found = evaluate(circuit, len(pairs), {"x": words, "amount": amounts})["o"]
    assert found.reshape(-1).tolist() == [word >> places for word, places in pairs]
    assert bool(circuit.and_gates) == (held is Held.EVALUATOR)


def test_constants_and_extension() -> None:
    assert apply(lambda b, x: ar.constant(5, 4), (1,), [(0,)]) == [5]
    assert apply(lambda b, x: ar.constant(-2, 4), (1,), [(0,)]) == [14]
    assert apply(lambda b, x: ar.extend(x, 5), (3,), [(6,)]) == [6]
    assert apply(lambda b, x: ar.extend(x, 5, signed=True), (3,), [(6,)]) == [30]
    assert apply(lambda b, x: ar.extend(x, 2), (3,), [(6,)]) == [2]


@pytest.mark.parametrize(("value", "width"), [(16, 4), (-9, 4), (1, 0)])
def test_constants_that_do_not_fit_are_refused(value: int, width: int) -> None:
    with pytest.raises(LocalProtocolError, match="does not fit"):
        ar.constant(value, width)
