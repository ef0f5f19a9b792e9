"""The compiled engine: machine code made in this process, for this CPU, and called with addresses of arrays.

Nothing is kept on disk, so there is nothing to plant. The code addresses memory by the rows of a circuit: what a gate
reads is checked to be in place once for every circuit, the length of a table with every piece.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numpy.typing import NDArray

from crypto.blocks import BLOCK_BITS, BLOCK_BYTES, WORD_BITS, Blocks
from crypto.circuit import Circuit, Group, Kind, Rows
from crypto.compiled.aes import KEY_WORDS, write_key_schedule
from crypto.compiled.forest import write_forest
from crypto.compiled.gates import Evaluate, Garble
from crypto.compiled.inner_products import LANES as LANES_OF_ENTRIES
from crypto.compiled.inner_products import write_inner_products
from crypto.compiled.transpose import LANES, TILE_WORDS, write_transpose
from crypto.encoding import WORD, Words
from crypto.errors import LocalProtocolError
from crypto.inner_products import Places
from crypto.pieces import Piece

_NO_OFFSET = bytes(BLOCK_BYTES)
_ARRAY, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_RoundKeys = ctypes.c_uint64 * KEY_WORDS
_Start = ctypes.c_char * 0
_GATES = [_ARRAY] * 7 + [_NUMBER] * 3


class Compiled:
    """An :class:`crypto.engine.Engine`."""

    def __init__(self, lanes: Sequence[int]) -> None:
        """lanes: on how many words the CPU's AES works at once, most first."""
        self._code = _compile(_module(lanes))
        self._expand_key = self._function("expand_key", [_ARRAY] * 2)
        self._garble = self._function("garble", _GATES)
        self._evaluate = self._function("evaluate", _GATES)
        self._transpose = self._function("transpose", [_ARRAY] * 3 + [_NUMBER])
        self._inner_products = self._function("inner_products", [_ARRAY] * 6 + [_NUMBER] * 2)
        self.hash_nodes = self._function("hash_nodes", [_ARRAY] * 4 + [_NUMBER] * 3)
        self.grow, self.leaves = (
            self._function(name, [_ARRAY] * 4 + [_NUMBER] * 2) for name in ("grow", "leaves")
        )

    def garbler(
        self, circuit: Circuit, n: int, delta: Words, key: bytes, labels: Rows, public: Rows
    ) -> CompiledGates:
        """The garbler's gates."""
        return CompiledGates(self, self._garble, circuit, n, delta.tobytes(), key, labels, public)

    def evaluator(self, circuit: Circuit, n: int, key: bytes, labels: Rows, public: Rows) -> CompiledGates:
        """The evaluator's gates."""
        return CompiledGates(self, self._evaluate, circuit, n, _NO_OFFSET, key, labels, public)

    def transpose(self, rows: Words, scratch: Words, out: Blocks) -> None:
        """As :func:`crypto.blocks.transpose_rows`; needs no scratch, and leaves the rows as they are."""
        width = rows.shape[1]
        assert rows.shape == (BLOCK_BITS, width)
        assert out.shape == (WORD_BITS * width, 2)
        tile = np.empty(TILE_WORDS, dtype=np.uint64)
        self._transpose(_address(rows), _address(tile), _address(out), width)

    def forest(self, key: bytes) -> CompiledForest:
        """What grows trees under a key."""
        return CompiledForest(self, key)

    def inner_products(self, tables: Words, of: Places, vectors: Words, shifts: Words) -> Words:
        """As :func:`crypto.inner_products.inner_products`."""
        count, size = len(of), tables.shape[1]
        assert (vectors.shape, shifts.shape) == ((count, size // WORD_BITS), (count,))
        assert not count or 0 <= of.min() <= of.max() < len(tables)
        assert size & (size - 1) == 0  # an entry is addressed modulo the size
        total, answers = np.empty(LANES_OF_ENTRIES, dtype=np.uint64), np.empty(count, dtype=np.uint64)
        arrays = (np.ascontiguousarray(each) for each in (tables, of, vectors, shifts))
        self._inner_products(*map(_address, (*arrays, total, answers)), count, size)
        return answers

    def round_keys(self, key: bytes) -> ctypes.Array[ctypes.c_uint64]:
        """AES-128's key schedule."""
        assert len(key) == BLOCK_BYTES
        keys = _RoundKeys()
        self._expand_key(key, keys)
        return keys

    def _function(self, name: str, arguments: Sequence[type]) -> ctypes._CFunctionType:
        return ctypes.CFUNCTYPE(None, *arguments)(self._code.get_function_address(name))


class CompiledGates:
    """One side's gates; :class:`crypto.engine.Gates`."""

    def __init__(
        self,
        engine: Compiled,
        function: ctypes._CFunctionType,
        circuit: Circuit,
        n: int,
        delta: bytes,
        key: bytes,
        labels: Rows,
        public: Rows,
    ) -> None:
        assert labels.shape == (circuit.rows, 2 * n)
        assert public.shape == (circuit.public_rows, 2 * n)
        self._engine = engine  # the code lives as long as this does
        self._function = function
        self._n = n
        self._arrays = labels, public, operands_of(circuit)  # so do these
        self._labels, self._public, self._operands = map(_address, self._arrays)
        self._delta = delta
        self.rekey(key)

    def __repr__(self) -> str:
        return f"CompiledGates(n={self._n}, <secret>)"

    def rekey(self, key: bytes) -> None:
        """Go on under another key, with tweaks from zero again."""
        self._round_keys = self._engine.round_keys(key)
        self._tweak = 0

    def run(self, piece: Piece, table: Words) -> None:
        """Work through the groups of the next piece."""
        assert table.nbytes == piece.table_bytes
        self._function(
            self._labels,
            self._public,
            _address(table),
            self._operands,
            _address(piece.steps),
            self._round_keys,
            self._delta,
            len(piece.steps),
            self._n,
            self._tweak,
        )
        self._tweak += 2 * self._n * piece.and_gates


class CompiledForest:
    """Levels of trees under one key; :class:`crypto.engine.Forest`."""

    def __init__(self, engine: Compiled, key: bytes) -> None:
        self._engine = engine
        self._round_keys = engine.round_keys(key)
        self._tweak = 0

    def __repr__(self) -> str:
        return "CompiledForest(<keyed>)"

    def hashes(self, nodes: Blocks) -> tuple[Blocks, Blocks]:
        """As :meth:`crypto.forest.ReferenceForest.hashes`."""
        hashed, sums = np.empty_like(nodes), np.zeros(nodes.shape[1:], dtype=np.uint64)
        arrays = map(_address, (nodes, hashed, sums))
        self._engine.hash_nodes(*arrays, self._round_keys, len(nodes), sums.size, self._tweak)
        self._tweak += nodes.size // 2
        return hashed, sums

    def children(self, nodes: Blocks, hashed: Blocks, corrections: Blocks) -> Blocks:
        """As :meth:`crypto.forest.ReferenceForest.children`."""
        grown = np.empty((2 * len(nodes), *nodes.shape[1:]), dtype=np.uint64)
        _run_level(self._engine.grow, nodes, hashed, corrections, grown)
        return grown

    def leaves(self, nodes: Blocks, hashed: Blocks, corrections: Blocks) -> Words:
        """As :meth:`crypto.forest.ReferenceForest.leaves`."""
        leaves = np.empty((nodes.shape[1], 2 * len(nodes)), dtype=np.uint64)
        _run_level(self._engine.leaves, nodes, hashed, corrections, leaves)
        return leaves


def _run_level(
    function: ctypes._CFunctionType, nodes: Blocks, hashed: Blocks, corrections: Blocks, out: Words
) -> None:
    assert nodes.shape == hashed.shape
    assert nodes.shape[1:] == corrections.shape
    arrays = map(_address, (nodes, hashed, np.ascontiguousarray(corrections), out))
    function(*arrays, len(nodes), corrections.size)


@lru_cache(maxsize=256)
def operands_of(circuit: Circuit) -> Words:
    """What drives each row: rows a and b, each times 2, plus 1 if inverted; shape (rows, 2).

    Raises LocalProtocolError for a gate that reads a row which is not there yet.
    """
    operands = np.zeros((circuit.rows, 2), dtype=np.uint64)
    for group in circuit.groups:
        rows = operands[group.start : group.stop]
        secret_b = group.kind in (Kind.XOR, Kind.AND)
        if group.kind is not Kind.LIFT:
            rows[:, 0] = _rows_below(group.start, group, group.a)
        rows[:, 1] = _rows_below(group.start if secret_b else circuit.public_rows, group, group.b)
        rows <<= np.uint64(1)
        rows[group.invert_a, 0] |= np.uint64(1)
        rows[group.invert_b, 1] |= np.uint64(1)
    return operands


def _rows_below(bound: int, group: Group, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    if len(rows) != group.stop - group.start or not 0 <= rows.min() <= rows.max() < bound:
        raise LocalProtocolError("a circuit whose gates read rows that are not there yet")
    return rows


def _module(lanes: Sequence[int]) -> str:
    module = ir.Module("jointcut")
    write_key_schedule(module, "expand_key")
    Garble(module, "garble", lanes)
    Evaluate(module, "evaluate", lanes)
    write_transpose(module, "transpose", LANES)
    write_forest(module, lanes)
    write_inner_products(module, "inner_products")
    return str(module)


def _compile(text: str) -> binding.ExecutionEngine:
    """Machine code for this CPU. LLVM's passes are left out: what counts is in place, and they take longest."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    features = binding.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=2)
    module = binding.parse_assembly(text)
    module.verify()
    code = binding.create_mcjit_compiler(module, machine)
    code.finalize_object()
    return code


def _address(array: NDArray[np.integer[Any]]) -> int:
    assert array.flags.c_contiguous and array.itemsize == WORD  # noqa: PT018
    if array.flags.writeable:  # a quarter of the time, and small circuits ask often
        return ctypes.addressof(_Start.from_buffer(array.data))
    return array.ctypes.data
