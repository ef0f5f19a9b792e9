"""Compiled gates and transposes against the reference, for CPUs of every width that this one can stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crypto import engine
from crypto import pieces as cutting
from crypto.blocks import random_blocks
from crypto.builder import Builder
from crypto.circuit import Circuit, Group, Held, Kind, To
from crypto.errors import LocalProtocolError
from crypto.pieces import pieces
from tests.support.circuits import mixed
from tests.support.rng import SeededRng
from tests.support.slow_hash import permute

pytest.importorskip("llvmlite")

from tests.support.widths import WIDTHS, made

KEYS = bytes(range(16)), bytes(range(100, 116))


def everything(tested: engine.Engine, circuit: Circuit, n: int) -> list[np.ndarray]:
    """All tables and labels of both sides, under one key after the other."""
    rng = SeededRng((circuit.name, n))
    delta = random_blocks(rng, 1)[0] | np.array([1, 0], dtype=np.uint64)
    labels, active = (random_blocks(rng, circuit.rows * n).reshape(circuit.rows, 2 * n) for _ in range(2))
    bits = random_blocks(rng, circuit.public_rows * n).reshape(circuit.public_rows, 2 * n)[
        :, 0::2
    ] & np.uint64(1)
    public = np.repeat(np.uint64(0) - bits, 2, axis=1)
    garbler = tested.garbler(circuit, n, delta, KEYS[0], labels, public)
    evaluator = tested.evaluator(circuit, n, KEYS[0], active, public)
    seen = []
    for key in KEYS:
        garbler.rekey(key)
        evaluator.rekey(key)
        for piece in pieces(circuit, n):
            table = np.zeros(piece.table_bytes // 8, dtype=np.uint64)
            garbler.run(piece, table)
            evaluator.run(piece, table)
            seen.append(table)
        seen += [labels.copy(), active.copy()]
    return seen


@pytest.mark.parametrize("lanes", WIDTHS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 64, 601])
def test_both_sides_compute_the_reference_bit_for_bit(n: int, lanes: tuple[int, ...]) -> None:
    wanted = everything(engine.Reference(), mixed(), n)
    for one, other in zip(everything(made(lanes), mixed(), n), wanted, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(("block_gates", "piece_gates"), [(1, 1), (7, 3), (64, 20)])
def test_any_cut_into_blocks_and_pieces(
    block_gates: int, piece_gates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 3
    monkeypatch.setattr(cutting, "BLOCK_GATES", block_gates)
    monkeypatch.setattr(cutting, "PIECE_BYTES", piece_gates * 32 * n)
    circuit = mixed()  # another one for every cut: pieces are kept
    assert len(pieces(circuit, n)) > 1
    wanted = everything(engine.Reference(), circuit, n)
    for one, other in zip(everything(made((2,)), circuit, n), wanted, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 31])
def test_transpose(width: int) -> None:
    rows = random_blocks(SeededRng(width), 64 * width).reshape(128, width)
    seen, wanted = np.zeros((2, 64 * width, 2), dtype=np.uint64)
    made((2,)).transpose(rows, np.empty(64 * width, dtype=np.uint64), seen)
    engine.Reference.transpose(rows, np.empty(64 * width, dtype=np.uint64), wanted)
    assert np.array_equal(seen, wanted)


def test_the_key_schedule_is_that_of_the_standard() -> None:
    """FIPS 197, A.1: the first and the last round key."""
    given = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    keys = made((2,)).round_keys(given).tobytes()
    assert keys[:16] == given
    assert keys[-16:] == bytes.fromhex("d014f9a8c9ee2589e13f0cc8b6630ca6")


@pytest.mark.parametrize("lanes", WIDTHS, ids=str)
def test_the_hash_is_that_of_the_paper(lanes: tuple[int, ...]) -> None:
    """With empty tables and no permute bit set, instance i has the label H(A, i) ⊕ H(B, n + i)."""
    n, (key, _) = 6, KEYS
    tested, circuit = made(lanes), one_and()
    labels = random_blocks(SeededRng("hash"), 4 * n).reshape(4, 2 * n)
    labels[:, 0::2] &= ~np.uint64(1)
    gates = tested.evaluator(circuit, n, key, labels, np.empty((0, 2 * n), dtype=np.uint64))
    (piece,) = pieces(circuit, n)
    gates.run(piece, np.zeros(4 * n, dtype=np.uint64))
    (a, b, out) = ([int(x) | int(y) << 64 for x, y in labels[row].reshape(-1, 2)] for row in (1, 2, 3))
    for i in range(n):
        assert out[i] == paper(key, a[i], i) ^ paper(key, b[i], n + i)


def paper(key: bytes, x: int, tweak: int) -> int:
    return permute(key, permute(key, x) ^ tweak) ^ permute(key, x)


def one_and() -> Circuit:
    b = Builder("one")
    ((x,),), ((y,),) = b.input("x", Held.XOR_SHARED, 1), b.input("y", Held.XOR_SHARED, 1)
    b.output("z", To.BOTH, [[b.and_(x, y)]])
    return b.build()


@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("row", [-1, 3, 1 << 40])
def test_a_gate_that_reads_a_row_which_is_not_there_is_refused(operand: str, row: int) -> None:
    """Before any code runs: a read beyond the rows would be a read of other memory."""
    circuit = one_and()
    (group,) = circuit.groups
    bent: Group = replace(group, **{operand: np.array([row])})
    with pytest.raises(LocalProtocolError, match="not there yet"):
        everything(made((2,)), replace(circuit, groups=(bent,)), 1)


@pytest.mark.parametrize("kind", [Kind.SELECT, Kind.LIFT])
def test_a_gate_that_reads_a_public_row_which_is_not_there_is_refused(kind: Kind) -> None:
    circuit = mixed()
    at = next(k for k, group in enumerate(circuit.groups) if group.kind is kind)
    group = circuit.groups[at]
    bent = replace(group, b=np.full_like(group.b, circuit.public_rows))
    with pytest.raises(LocalProtocolError, match="not there yet"):
        everything(
            made((2,)), replace(circuit, groups=(*circuit.groups[:at], bent, *circuit.groups[at + 1 :])), 1
        )


def test_a_table_of_another_length_is_refused() -> None:
    circuit = one_and()
    labels = np.zeros((4, 2), dtype=np.uint64)
    gates = made((2,)).evaluator(circuit, 1, KEYS[0], labels, np.empty((0, 2), dtype=np.uint64))
    with pytest.raises(AssertionError):
        gates.run(pieces(circuit, 1)[0], np.zeros(3, dtype=np.uint64))


def test_no_secret_in_the_repr() -> None:
    labels = np.zeros((4, 2), dtype=np.uint64)
    gates = made((2,)).evaluator(one_and(), 1, KEYS[0], labels, np.empty((0, 2), dtype=np.uint64))
    assert repr(gates) == "CompiledGates(n=1, <secret>)"
