"""Loader of the compiled engine; checks that the machine runs the engine and that results equal the reference."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
from llvmlite import binding

from crypto import engine
from crypto.blocks import BLOCK_BITS, WORD_BITS
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, Rows, To, evaluate_public
from crypto.compiled.aes import lanes_of
from crypto.compiled.engine import Compiled
from crypto.encoding import Words
from crypto.hashing import KEY_BYTES, BlockHash, fixed_key_aes
from crypto.pieces import pieces
from crypto.point_function import LOW_BITS
from crypto.trees import NODES_AT_ONCE, STRAND

_KEYS = tuple(bytes(range(k, k + KEY_BYTES)) for k in (0, 100))
_INSTANCES = 13
_COLUMNS = 11
"""Like _INSTANCES, not a multiple of the words worked on at once."""


class Unusable(Exception):
    """Compiled code does not run on this machine; the text gives the reason."""


class Wrong(Unusable):
    """Compiled code runs, but computes wrong results."""


def load() -> Compiled:
    """Compile for this CPU, and compare with the reference. Raises Unusable."""
    lanes = lanes_of(binding.get_host_cpu_features())
    if not lanes:
        raise Unusable("the CPU has no AES instructions")
    if not _may_run_new_code():
        raise Unusable("the system allows no new executable memory")
    compiled = Compiled(lanes)
    check(compiled)
    return compiled


def check(compiled: engine.Engine) -> None:
    """Compare every kind of gate, on both sides and under two keys, keystreams, a transpose, trees and inner
    products.

    Raises Wrong.
    """
    reference = engine.Reference()
    work = _gates, _streamed, _transposed, _grown, _products
    if any(computed(compiled) != computed(reference) for computed in work):
        raise Wrong("compiled code does not compute what the reference does")


def _may_run_new_code() -> bool:
    """Return True where this process may run new code. Elsewhere LLVM would end the process."""
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        start = ctypes.c_char.from_buffer(page)
        address, size = ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(mmap.PAGESIZE)
        refused = ctypes.CDLL(None).mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC)
        del start
    return not refused


def _gates(tested: engine.Engine) -> list[bytes]:
    """Return all labels and tables of both sides, under two keys in turn."""
    circuit, n = _circuit(), _INSTANCES
    delta = _some(1)[:2] | np.array([1, 0], dtype=np.uint64)
    public = np.where(_some(circuit.public_rows * n) & np.uint64(1), ~np.uint64(0), np.uint64(0))
    public = np.repeat(public[: circuit.public_rows * n].reshape(-1, n), 2, axis=1)
    evaluate_public(circuit, public)
    labels, active = (_some(circuit.rows * n).reshape(circuit.rows, 2 * n) for _ in range(2))
    labels[0] = active[0] = 0
    garbler = tested.garbler(circuit, n, delta, _KEYS[0], labels, public)
    evaluator = tested.evaluator(circuit, n, _KEYS[0], active, public)
    return [
        octets for key in _KEYS for octets in _pass(circuit, n, (garbler, evaluator), key, (labels, active))
    ]


def _pass(
    circuit: Circuit, n: int, sides: tuple[engine.Gates, engine.Gates], key: bytes, rows: tuple[Rows, Rows]
) -> list[bytes]:
    """Garble and evaluate once; labels and tables."""
    seen = []
    for side in sides:
        side.rekey(key)
    for piece in pieces(circuit, n):
        table = np.zeros(piece.table_bytes // 8, dtype=np.uint64)
        for side in sides:
            side.run(piece, table)
        seen.append(table.tobytes())
    return seen + [labels.tobytes() for labels in rows]


def _streamed(tested: engine.Engine) -> list[bytes]:
    """Return keystreams that begin and go on."""
    streams = tested.keystreams(_some(_INSTANCES).reshape(-1, 2))
    rows = [np.zeros((_INSTANCES, width), dtype=np.uint64) for width in (2 * _COLUMNS, 2 * _INSTANCES)]
    for part in rows:
        streams.fill(part)
    return [part.tobytes() for part in rows]


def _transposed(tested: engine.Engine) -> bytes:
    rows = _some(WORD_BITS * _COLUMNS).reshape(BLOCK_BITS, _COLUMNS)
    out = np.empty((WORD_BITS * _COLUMNS, 2), dtype=np.uint64)
    tested.transpose(rows, np.empty(WORD_BITS * _COLUMNS, dtype=np.uint64), out)
    return out.tobytes()


def _grown(tested: engine.Engine) -> list[bytes]:
    """Return sums and leaves of trees, in more than a strand."""
    depth, count = LOW_BITS, STRAND + _INSTANCES
    hashing = BlockHash(_KEYS[1], NODES_AT_ONCE)
    grove = [tested.trees(root, count, depth, hashing) for root in _some(2).reshape(2, 2)]
    corrections = _some((depth + 1) * count).reshape(depth + 1, count, 2)
    seen = []
    for correction in corrections[:depth]:
        for trees in grove:
            seen.append(trees.sum().tobytes())
            trees.grow(correction)
    for trees in grove:
        seen += [trees.sum().tobytes(), trees.vectors(corrections[depth]).tobytes()]
    return seen


def _products(tested: engine.Engine) -> bytes:
    """Return inner products of turned vectors, with planes of more words than are worked on at once."""
    words, n_bits, tables = 16, 3, 2
    planes = _some(words * n_bits * tables // 2).reshape(tables, n_bits, words)
    vectors = _some(_INSTANCES * words // 2).reshape(_INSTANCES, words)
    of = np.arange(_INSTANCES, dtype=np.intp) % tables
    return tested.inner_products(planes, of, vectors, vectors[:, 0] >> np.uint64(8)).tobytes()


def _circuit() -> Circuit:
    """Return a circuit with every kind of gate, with plain and inverted operands."""
    b = Builder("check")
    (x,), (y,), (p,) = (
        b.input(name, held, 2)
        for name, held in (("x", Held.GARBLER), ("y", Held.EVALUATOR), ("p", Held.PUBLIC))
    )
    ands = [b.and_(x[0], y[0]), b.and_(x[1] ^ 1, y[0]), b.and_(x[0], y[1] ^ 1), b.and_(x[1] ^ 1, y[1] ^ 1)]
    sums = [b.xor(ands[0], ands[1]), b.xor(ands[2], ands[3]), b.xor(p[0], ands[0])]
    chosen = [b.and_(p[0], sums[0]), b.and_(p[1] ^ 1, sums[1]), b.and_(p[0], sums[2] ^ 1)]
    b.output("all", To.BOTH, [[*chosen, b.and_(b.and_(chosen[0], chosen[1]), b.xor(chosen[2], sums[0] ^ 1))]])
    return b.build()


def _some(blocks: int) -> Words:
    """Return fixed words that look random."""
    numbers = np.arange(2 * blocks, dtype=np.uint64)
    return np.frombuffer(fixed_key_aes(bytes(KEY_BYTES)).update(numbers.tobytes()), dtype=np.uint64).copy()
