"""How a batch is cut: chunks cover it, fit the memory, and the look-ahead fits the window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto import batch
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, Region, To


def circuit(choices: int, gates: int) -> Circuit:
    b = Builder("sized")
    bits = [x for (x,) in b.input("y", Held.EVALUATOR, 1, choices)]
    for _ in range(gates):
        bits.append(b.and_(bits[-1] ^ 1, bits[-2] ^ 1))
    b.output("o", To.BOTH, [bits[-1:]])
    return b.build()


SIZES = {
    name: circuit(*size) for name, size in {"tiny": (2, 1), "wide": (3000, 2), "deep": (2, 20_000)}.items()
}


@given(st.sampled_from(sorted(SIZES)), st.integers(0, 40_000))
def test_chunks_cover_the_batch_within_the_limits(name: str, size: int) -> None:
    chosen = SIZES[name]
    run = batch.Run(chosen, size, {}, b"")
    ends = [0, *(chunk.stop for chunk in run.chunks)]
    assert [chunk.start for chunk in run.chunks] == ends[:-1]
    assert ends[-1] == size
    lengths = [chunk.stop - chunk.start for chunk in run.chunks]
    for n in lengths:
        assert 0 < n <= batch.BLOCK_GATES
        assert n * chosen.rows * 16 <= batch.ROWS_BYTES
    choice_bytes = 16 * chosen.region_rows[Region.EVALUATOR] * max(lengths, default=1)
    assert 1 <= run.lookahead <= batch.LOOKAHEAD
    assert (run.lookahead - 1) * choice_bytes <= batch.WINDOW_BYTES
    assert all(n % 64 == 0 or n < 64 for n in lengths[:-1])


def test_chunks_are_of_about_one_size() -> None:
    lengths = [c.stop - c.start for c in batch.Run(SIZES["tiny"], 10_000, {}, b"").chunks]
    assert lengths == [5056, 4944]


def test_a_circuit_larger_than_the_memory_goes_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "ROWS_BYTES", 1000)
    assert len(batch.Run(SIZES["deep"], 3, {}, b"").chunks) == 3
