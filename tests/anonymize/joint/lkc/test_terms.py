"""Terms of contexts at the compute pair: exact at the bounds of all widths, and no wider than these ask for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from anonymize.joint.engine import Engine, carried, public_circuit
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.scores.terms import COUNT_WIDTHS, FEWEST, terms_beside
from anonymize.table import MAX_RECORDS, Ints
from anonymize.tds import Observer
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.circuits.score import f
from crypto.local import run_local
from crypto.rounds import Rounds
from tests.support.computations import numbers_of, watched
from tests.support.sessions import two_party_sessions

WIDE = 62


def showing(width: int) -> Circuit:
    b = Builder(f"showing/{width}")
    b.output("shown", To.BOTH, b.input("word", Held.CARRIED, width))
    return b.build()


def opened_terms(counts: Ints, bounds: Ints, penalties: Ints) -> list[int]:
    """The terms of rows dealt out as shares, opened."""
    mine = np.random.default_rng(1).integers(0, 1 << 63, counts.shape).astype(np.uint64)
    shares = {"g": mine, "e": counts.astype(np.uint64) - mine}

    def protocol(engine: Engine, share: Any) -> Rounds[list[int]]:
        beside = public_circuit(7), 1, {"word": np.array([[99]], dtype=np.uint64)}
        words, others = yield from terms_beside(engine, share, bounds, penalties, WIDE, beside)
        told = yield from engine.run(showing(7), 1, {"word": carried(others, "word")})
        assert numbers_of(told, "shown") == [99]
        outputs = yield from engine.run(showing(WIDE), len(words), {"word": words})
        return numbers_of(outputs, "shown")

    engines = zip("ge", (Engine(session, Observer()) for session in two_party_sessions()), strict=True)
    results, _ = run_local({name: protocol(engine, shares[name]) for name, engine in engines})
    assert results["g"] == results["e"]
    return results["g"]


def expected(counts: Ints, penalties: Ints) -> list[int]:
    rows = zip(counts.tolist(), penalties.tolist(), strict=True)
    return [f(sum(row)) - sum(map(f, row)) + (penalty if any(row) else 0) for row, penalty in rows]


def at_the_bounds() -> tuple[Ints, Ints]:
    """Counts and bounds about every power of two at which the width changes, more than a batch of each."""
    counts, bounds = [], []
    for width in COUNT_WIDTHS[:-1]:
        for size in ((1 << width) - 1, 1 << width):
            for small in (0, 1, size // 3, size):
                for row in ((size, 0), (size - small, small), (small // 2, size - small), (0, 0), (0, 1)):
                    counts += [row, row[::-1]]
                    bounds += [(max(row[0], size - small), max(1, small, row[1])), (size, size)]
    counts += [(MAX_RECORDS // 2, MAX_RECORDS - MAX_RECORDS // 2), (MAX_RECORDS, 0), (0, 0)]
    bounds += [counts[-3], counts[-2], (MAX_RECORDS, 0)]
    return np.array(counts), np.maximum(np.array(bounds), np.array(counts))


def test_terms_are_exact_about_every_width() -> None:
    counts, bounds = at_the_bounds()
    kept = bounds.sum(axis=1) <= MAX_RECORDS
    counts, bounds = counts[kept], bounds[kept]
    assert len(counts) > FEWEST * len(COUNT_WIDTHS) // 2
    penalties = np.arange(len(counts)) % 5 * 1_512_775
    assert opened_terms(counts, bounds, penalties) == expected(counts, penalties)


@pytest.mark.parametrize("n_classes", [1, 3, 5])
def test_terms_beside_any_number_of_classes(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    bounds = rng.integers(0, 900, (90, n_classes))
    counts = rng.integers(0, bounds + 1)
    counts[0] = 0
    penalties = rng.integers(0, 3_000_000, 90)
    assert opened_terms(counts, bounds, penalties) == expected(counts, penalties)


def test_a_count_takes_the_width_of_its_own_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of the context, nor of the widest of all; too few for a batch go with the next."""
    computed = watched(monkeypatch)
    bounds = np.array([(400, 10)] * 90 + [(3000, 50)] * 70 + [(130, 90)] * 5)
    penalties = np.ones(len(bounds), dtype=np.int64)
    assert opened_terms(bounds, bounds, penalties) == expected(bounds, penalties)
    ran = [(e.circuit.name.split("/")[0], e.circuit, e.batch) for e in computed if e.role is Held.GARBLER]
    assert [(circuit.inputs["count"].width, batch) for kind, circuit, batch in ran if kind == "f"] == [
        (4, 90),
        (6, 70),
        (9, 100),
        (12, 70),
    ]
    assert [(circuit.inputs["count"].width, batch) for kind, circuit, batch in ran if kind == "most"] == [
        (9, 95),
        (12, 70),
    ]


def test_costs_of_terms_and_scores() -> None:
    """AND gates of one instance."""
    assert {w: circuits.f_circuit(w).and_gates for w in (4, 6, 9, 12, 16)} == {
        4: 14,
        6: 60,
        9: 224,
        12: 884,
        16: 1196,
    }
    most = circuits.most_circuit(9, 21)
    width = most.outputs["most"].width
    of_term = circuits.term_circuit(2, circuits.f_bits(9), width).and_gates + most.and_gates
    assert of_term < circuits.f_circuit(9).and_gates + 110
    assert all(narrow < wide for narrow, wide in pairwise(COUNT_WIDTHS))
