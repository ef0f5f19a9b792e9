"""Fractions: exact order against Python's, ties."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from crypto.builder import FALSE, TRUE, Builder, Literal, Word
from crypto.circuit import Circuit, Held, Kind, To, evaluate
from crypto.circuits import fraction as fr
from crypto.errors import LocalProtocolError
from tests.support.circuits import apply, every, some


def second_wins(b: Builder, *words: Word) -> list[Literal]:
    """Return 1 if the second of two fractions is greater, of numerator, denominator, numerator, denominator."""
    entries = [fr.Entry(TRUE, *pair, [FALSE]) for pair in (words[:2], words[2:])]
    return fr.best_fraction(b, entries)[1]


def test_the_order_of_two_fractions() -> None:
    cases = [c for c in every(3, 2, 3, 2) if c[1] and c[3]]
    cases += [c for c in some(1, 100, 3, 2, 3, 2) if c[1] and c[3]]
    found = apply(second_wins, (3, 2, 3, 2), cases)
    assert found == [Fraction(n, d) < Fraction(m, e) for n, d, m, e in cases]


def test_wide_fractions() -> None:
    cases = [c for c in some(2, 100, 56, 31, 56, 31) if c[1] and c[3]]
    cases += [(n, d, n, d) for n, d, _, _ in cases[:20]]
    found = apply(second_wins, (56, 31, 56, 31), cases)
    assert found == [Fraction(n, d) < Fraction(m, e) for n, d, m, e in cases]


def test_public_denominators_halve_the_products() -> None:
    def gates(held: Held) -> int:
        b = Builder("cost")
        n = b.input("n", Held.GARBLER, 40, 2)
        d = b.input("d", held, 16, 2)
        b.output("less", To.BOTH, [second_wins(b, n[0], d[0], n[1], d[1])])
        circuit = b.build()
        assert (circuit.gates(Kind.SELECT) > 0) == (held is Held.PUBLIC)
        return circuit.and_gates

    assert gates(Held.PUBLIC) < 0.56 * gates(Held.EVALUATOR)


def tournament(n: int, held: Held) -> Circuit:
    b = Builder("best")
    valid = b.input("valid", Held.GARBLER, 1, n)
    numerators = b.input("numerators", Held.GARBLER, 4, n)
    denominators = b.input("denominators", held, 3, n)
    ties = b.input("ties", Held.EVALUATOR, 2, n)
    entries = [fr.Entry(v[0], *rest) for v, *rest in zip(valid, numerators, denominators, ties, strict=True)]
    found, index = fr.best_fraction(b, entries)
    b.output("valid", To.BOTH, [[found]])
    b.output("index", To.BOTH, [index])
    return b.build()


@pytest.mark.parametrize("held", [Held.PUBLIC, Held.EVALUATOR])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_best_fraction(n: int, held: Held) -> None:
    batch = 400
    rng = np.random.default_rng(n)
    inputs = {
        "valid": rng.integers(0, 2, (batch, n), dtype=np.uint64),
        "numerators": rng.integers(0, 16, (batch, n), dtype=np.uint64),
        "denominators": rng.integers(1, 8, (batch, n), dtype=np.uint64),
        "ties": rng.integers(0, 4, (batch, n), dtype=np.uint64),
    }
    out = evaluate(tournament(n, held), batch, inputs)
    decided_by_tie = 0
    for i in range(batch):
        rows = [tuple(int(inputs[name][i, k]) for name in inputs) for k in range(n)]
        ranked = [(Fraction(num, den), -tie, -k) for k, (ok, num, den, tie) in enumerate(rows) if ok]
        expected = (1, -max(ranked)[2]) if ranked else (0, 0)
        assert (int(out["valid"][i, 0]), int(out["index"][i, 0])) == expected
        decided_by_tie += len(ranked) > 1 and sorted(ranked)[-1][0] == sorted(ranked)[-2][0]
    assert decided_by_tie > 0 or n == 1


def test_no_entries_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match="no entries"):
        fr.best_fraction(Builder("none"), [])
