"""The builder: folding, sharing of gates, what compilation keeps and how it groups it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.builder import FALSE, TRUE, Builder, add, subtract
from crypto.circuit import BLOCKS, Circuit, Held, Kind, Region, To, evaluate
from crypto.errors import LocalProtocolError
from tests.support.circuits import apply, every
from tests.support.examples import examples


def inputs(b: Builder, *held: Held) -> list[int]:
    return [b.input(f"x{i}", h, 1)[0][0] for i, h in enumerate(held)]


def test_constants_and_repeated_operands_fold() -> None:
    b = Builder("fold")
    (x,) = inputs(b, Held.GARBLER)
    assert b.xor(x, x) == FALSE
    assert b.xor(x, x ^ 1) == TRUE
    assert b.xor(x, FALSE) == x
    assert b.xor(TRUE, x) == x ^ 1
    assert b.and_(x, TRUE) == x
    assert b.and_(FALSE, x) == FALSE
    assert b.and_(x, x) == x
    assert b.and_(x, x ^ 1) == FALSE
    assert b.or_(x, TRUE) == TRUE
    assert b.mux(TRUE, x, FALSE) == x
    b.output("x", To.BOTH, [[x]])
    assert b.build().groups == ()


def test_equal_gates_are_built_once() -> None:
    b = Builder("share")
    x, y = inputs(b, Held.GARBLER, Held.EVALUATOR)
    assert b.and_(x, y) == b.and_(y, x)
    assert b.xor(x, y) == b.xor(y, x)
    assert b.xor(x ^ 1, y) == b.xor(x, y) ^ 1
    assert b.and_(x ^ 1, y) != b.and_(x, y)


def test_what_no_output_needs_is_dropped() -> None:
    b = Builder("dead")
    x, y = inputs(b, Held.GARBLER, Held.EVALUATOR)
    b.and_(b.xor(x, y), y)
    b.output("o", To.BOTH, [[b.xor(x, y)]])
    circuit = b.build()
    assert (circuit.and_gates, circuit.gates(Kind.XOR), circuit.rows) == (0, 1, 4)


@pytest.mark.parametrize("gate", ["xor", "and_", "or_"])
@pytest.mark.parametrize(
    "held", [(Held.GARBLER, Held.GARBLER), (Held.PUBLIC, Held.GARBLER), (Held.PUBLIC,) * 2]
)
def test_every_gate_on_every_kind_of_operand(gate: str, held: tuple[Held, Held]) -> None:
    plain = {"xor": lambda p, q: p ^ q, "and_": lambda p, q: p & q, "or_": lambda p, q: p | q}[gate]
    for flip_x, flip_y in every(1, 1):
        b = Builder("gate")
        x, y = inputs(b, *held)
        b.output("o", To.BOTH, [[getattr(b, gate)(x ^ flip_x, y ^ flip_y)]])
        bits = np.array(every(1, 1), dtype=np.uint64)
        out = evaluate(b.build(), 4, {"x0": bits[:, :1], "x1": bits[:, 1:]})["o"][:, 0]
        assert out.tolist() == [plain(p ^ flip_x, q ^ flip_y) for p, q in every(1, 1)]


def test_public_operands_cost_no_and_gate() -> None:
    b = Builder("public")
    x, p, q = inputs(b, Held.GARBLER, Held.PUBLIC, Held.PUBLIC)
    b.output("o", To.BOTH, [[b.and_(b.and_(p, q), x), b.xor(p, x), b.and_(p, q)]])
    circuit = b.build()
    assert circuit.and_gates == 0
    kinds = (Kind.PUBLIC_AND, Kind.SELECT, Kind.XOR, Kind.LIFT)
    assert [circuit.gates(kind) for kind in kinds] == [1, 1, 1, 2]


def test_mux() -> None:
    expected = [one if choice else zero for choice, one, zero in every(1, 1, 1)]
    assert apply(lambda b, c, x, y: [b.mux(c[0], x[0], y[0])], (1, 1, 1), every(1, 1, 1)) == expected


@pytest.mark.parametrize("width", [1, 2, 4])
def test_add_and_subtract(width: int) -> None:
    pairs = every(width, width)
    assert apply(add, (width, width), pairs) == [(x + y) % (1 << width) for x, y in pairs]
    assert apply(subtract, (width, width), pairs) == [(x - y) % (1 << width) for x, y in pairs]


def test_levels_are_as_few_as_the_circuit_is_deep() -> None:
    b = Builder("deep")
    bits = [x for (x,) in b.input("x", Held.GARBLER, 1, 64)]
    while len(bits) > 1:
        bits = [b.and_(b.xor(p, q), q) for p, q in zip(bits[::2], bits[1::2], strict=True)]
    b.output("o", To.BOTH, [bits])
    assert b.build().and_depth == 6


def check_order(circuit: Circuit) -> None:
    """Every operand is an input or comes from an earlier group; rows are dense."""
    next_row = 1 + sum(circuit.region_rows[r] for r in Region if r is not Region.PUBLIC)
    next_public = circuit.region_rows[Region.PUBLIC]
    for g in circuit.public_groups:
        assert g.start == next_public
        assert max(*g.a, *g.b) < g.start
        next_public = g.stop
    for g in circuit.groups:
        assert g.start == next_row
        assert g.a.max() < g.start or g.kind is Kind.LIFT
        assert g.b.max() < (g.start if g.kind in (Kind.XOR, *BLOCKS) else circuit.public_rows)
        assert len(g.a) == len(g.b) == g.stop - g.start
        next_row = g.stop
    assert (next_row, next_public) == (circuit.rows, circuit.public_rows)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_random_circuits_equal_their_gates_one_by_one(data: st.DataObject) -> None:
    b = Builder("random")
    held = data.draw(
        st.lists(st.sampled_from([Held.GARBLER, Held.EVALUATOR, Held.PUBLIC]), min_size=1, max_size=4)
    )
    literals = [FALSE, *inputs(b, *held)]
    batch = 5
    rng = np.random.default_rng(0)
    given_values = {f"x{i}": rng.integers(0, 2, (batch, 1), dtype=np.uint64) for i in range(len(held))}
    plain = [np.zeros(batch, dtype=np.uint64), *(v[:, 0] for v in given_values.values())]
    for _ in range(data.draw(st.integers(0, 25))):
        i, j = (data.draw(st.integers(0, len(literals) - 1)) for _ in range(2))
        flip_i, flip_j = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
        x, y = plain[i] ^ np.uint64(flip_i), plain[j] ^ np.uint64(flip_j)
        if data.draw(st.booleans()):
            literals.append(b.and_(literals[i] ^ flip_i, literals[j] ^ flip_j))
            plain.append(x & y)
        else:
            literals.append(b.xor(literals[i] ^ flip_i, literals[j] ^ flip_j))
            plain.append(x ^ y)
    b.output("o", To.BOTH, [[x] for x in literals])
    circuit = b.build()
    check_order(circuit)
    out = evaluate(circuit, batch, given_values)["o"]
    assert np.array_equal(out, np.stack(plain, axis=1))


def test_the_digest_tells_circuits_apart() -> None:
    def one(
        name: str = "c", held: Held = Held.GARBLER, to: To = To.BOTH, width: int = 2, gate: str = "and_"
    ) -> bytes:
        b = Builder(name)
        (x,) = b.input("x", held, width)
        b.output("o", to, [[getattr(b, gate)(x[0], x[1])]])
        return b.build().digest

    variants = [
        one(),
        one(name="d"),
        one(held=Held.EVALUATOR),
        one(to=To.GARBLER),
        one(width=3),
        one(gate="or_"),
        one(gate="xor"),
    ]
    assert len(set(variants)) == len(variants)
    assert one() == one()


def test_bad_declarations_are_refused() -> None:
    b = Builder("bad")
    (x,) = b.input("x", Held.GARBLER, 2)
    b.output("o", To.BOTH, [x])
    for bad in (
        lambda: b.input("x", Held.GARBLER, 2),
        lambda: b.input("y", Held.GARBLER, 0),
        lambda: b.input("y", Held.GARBLER, 65),
        lambda: b.input("y", Held.GARBLER, 1, 0),
        lambda: b.input("y", Held.MASK, 1),
        lambda: b.output("o", To.BOTH, [x]),
        lambda: b.output("p", To.BOTH, []),
        lambda: b.output("p", To.BOTH, [x, x[:1]]),
        lambda: b.output("p", To.BOTH, [x * 40]),
    ):
        with pytest.raises(LocalProtocolError, match="bad: "):
            bad()
