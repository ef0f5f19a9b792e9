"""Cuts of a batch: chunks cover it, fit the memory, and the look-ahead fits the window."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto import batch
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To

SIZES = {"tiny": (2, 1), "wide": (3000, 2), "deep": (2, 20_000)}


@cache
def circuit(name: str) -> Circuit:
    """Build a circuit of so many choices and gates."""
    choices, gates = SIZES[name]
    b = Builder("sized")
    bits = [x for (x,) in b.input("y", Held.EVALUATOR, 1, choices)]
    for _ in range(gates):
        bits.append(b.and_(bits[-1] ^ 1, bits[-2] ^ 1))
    b.output("o", To.BOTH, [bits[-1:]])
    return b.build()


@given(st.sampled_from(sorted(SIZES)), st.integers(0, 40_000))
def test_chunks_cover_the_batch_within_the_limits(name: str, size: int) -> None:
    chosen = circuit(name)
    run = batch.Run(chosen, size, {}, b"")
    ends = [0, *(chunk.stop for chunk in run.chunks)]
    assert [chunk.start for chunk in run.chunks] == ends[:-1]
    assert ends[-1] == size
    lengths = [chunk.stop - chunk.start for chunk in run.chunks]
    for n in lengths:
        assert 0 < n <= batch.BLOCK_GATES
        assert n * chosen.rows * 16 <= batch.ROWS_BYTES
    assert all(n % 64 == 0 or n < 64 for n in lengths[:-1])


@given(st.lists(st.tuples(st.sampled_from(sorted(SIZES)), st.integers(0, 20_000)), min_size=1, max_size=4))
def test_choices_ahead_of_several_runs_are_bounded(sizes: list[tuple[str, int]]) -> None:
    """As many turns as may be, and no more: one turn earlier, the bounds would not hold."""
    runs = [batch.Run(circuit(name), size, {}, b"") for name, size in sizes]
    turns = batch.turns_of(runs)
    of_chunks = iter([size for run in runs for size in run.choice_bytes])
    choice_bytes = [0 if turn.chunk is None else next(of_chunks) for turn in turns]
    assert [turn.chunk for turn in turns] == [chunk for run in runs for chunk in run.chunks or [None]]
    afters = [turn.after for turn in turns]
    assert afters == sorted(afters)

    def fits(place: int, after: int) -> bool:
        beyond = sum(choice_bytes[after + 1 : place + 1])
        return place - after < batch.LOOKAHEAD and beyond <= batch.WINDOW_BYTES

    for place, after in enumerate(afters):
        assert 0 <= after <= place
        assert fits(place, after)
        assert after == 0 or not fits(place, after - 1)


def test_chunks_are_of_about_one_size() -> None:
    lengths = [c.stop - c.start for c in batch.Run(circuit("tiny"), 10_000, {}, b"").chunks]
    assert lengths == [5056, 4944]


def test_a_circuit_larger_than_the_memory_goes_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "ROWS_BYTES", 1000)
    assert len(batch.Run(circuit("deep"), 3, {}, b"").chunks) == 3
