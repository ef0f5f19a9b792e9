"""Plain evaluation: forms of inputs and outputs, shapes, refusals, and the packing of values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.builder import Builder, add
from crypto.circuit import Circuit, Group, Held, Kind, To, bits_of_values, evaluate, values_of_bits
from crypto.errors import LocalProtocolError


def everything() -> Circuit:
    """One input of every form and one output of every form; each output is the sum of all inputs."""
    b = Builder("everything")
    forms = [held for held in Held if held is not Held.MASK]
    words = [b.input(held.value, held, 8, 2) for held in forms]
    sums = words[0]
    for others in words[1:]:
        sums = [add(b, x, y) for x, y in zip(sums, others, strict=True)]
    for to in To:
        b.output(to.value, to, sums)
    return b.build()


@pytest.mark.parametrize("batch", [0, 1, 64, 65])
def test_the_clear_knows_no_shares(batch: int) -> None:
    circuit = everything()
    rng = np.random.default_rng(batch)
    names = [name for name, g in circuit.inputs.items() if g.held is not Held.MASK]
    inputs = {name: rng.integers(0, 256, (batch, 2), dtype=np.uint64) for name in names}
    expected = sum(inputs.values()) % 256
    outputs = evaluate(circuit, batch, inputs)
    assert set(outputs) == {to.value for to in To}
    for values in outputs.values():
        assert values.dtype == np.uint64
        assert np.array_equal(values, expected)


@given(st.integers(1, 64), st.integers(0, 5), st.integers(1, 4), st.data())
def test_bits_and_values(width: int, batch: int, count: int, data: st.DataObject) -> None:
    entries = data.draw(
        st.lists(st.integers(0, 2**width - 1), min_size=batch * count, max_size=batch * count)
    )
    values = np.array(entries, dtype=np.uint64).reshape(batch, count)
    bits = bits_of_values(values, width)
    assert bits.shape == (count * width, batch)
    assert [
        [int(v) >> i & 1 for v in values[:, k]] for k in range(count) for i in range(width)
    ] == bits.tolist()
    assert np.array_equal(values_of_bits(bits, width), values)


def identity() -> Circuit:
    b = Builder("identity")
    b.output("o", To.BOTH, b.input("x", Held.GARBLER, 3, 2))
    return b.build()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros((2, 2), dtype=np.uint64), "shape"),
        (np.zeros(2, dtype=np.uint64), "shape"),
        (np.zeros((1, 2)), "integer type"),
        (np.array([[-1, 0]]), "negative"),
        (np.array([[8, 0]], dtype=np.uint64), "do not fit 3 bits"),
    ],
)
def test_bad_values_are_refused_without_being_shown(values: np.ndarray, reason: str) -> None:
    with pytest.raises(LocalProtocolError, match=reason) as caught:
        evaluate(identity(), 1, {"x": values})
    assert "identity: input x" in str(caught.value)
    assert "8" not in str(caught.value)


def test_unknown_and_missing_names_are_refused() -> None:
    values = np.zeros((1, 2), dtype=np.uint64)
    for inputs in ({}, {"y": values}, {"x": values, "y": values}):
        with pytest.raises(LocalProtocolError, match="inputs"):
            evaluate(identity(), 1, inputs)


def test_any_integer_type_and_booleans_are_taken() -> None:
    for dtype in (np.int64, np.uint8, np.bool_):
        values = np.array([[1, 0]], dtype=dtype)
        assert evaluate(identity(), 1, {"x": values})["o"].tolist() == [[1, 0]]


def test_part_of_a_group() -> None:
    group = Group(Kind.AND, 10, 15, np.arange(5), np.arange(5, 10), np.array([0, 2, 4]), np.array([1]))
    part = group.part(1, 3)
    assert (part.start, part.stop, part.a.tolist(), part.b.tolist()) == (11, 13, [1, 2], [6, 7])
    assert (part.invert_a.tolist(), part.invert_b.tolist()) == ([1], [0])
