"""The compiled engine: machine code made in this process, for this CPU, and called with addresses of arrays.

Nothing is kept on disk, so nothing can be planted. The code addresses memory by the rows of a circuit. Every
circuit is checked once: gates read only rows already in place. The length of a table is checked with each piece, the
shapes of trees, planes and vectors with each call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from llvmlite import binding, ir
from numpy.typing import NDArray

from crypto import trees
from crypto.blocks import BLOCK_BITS, WORD_BITS, Blocks, Octets, encode_blocks
from crypto.circuit import BLOCKS, Circuit, Kind, Rows, columns_of
from crypto.compiled import blake2b
from crypto.compiled.aes import KEY_WORDS, write_key_schedule
from crypto.compiled.gates import Evaluate, Garble
from crypto.compiled.inner_products import SCRATCH_ROWS, SCRATCH_WORDS, write_inner_products
from crypto.compiled.keystreams import write_keystreams
from crypto.compiled.transpose import LANES, TILE_WORDS, write_transpose
from crypto.compiled.trees import write_grow, write_leaves
from crypto.encoding import WORD, Words
from crypto.errors import LocalProtocolError
from crypto.hashing import BlockHash
from crypto.inner_products import Places
from crypto.pieces import Piece

_NO_OFFSET = np.zeros(2, dtype=np.uint64)
_ARRAY, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_GATES = [_ARRAY] * 7 + [_NUMBER] * 3


class Compiled:
    """An :class:`crypto.engine.Engine`."""

    def __init__(self, lanes: Sequence[int]) -> None:
        """Compile.

        lanes: the numbers of words on which the CPU's AES works at once, most first.
        """
        self._code = _compile(_module(lanes))
        self._expand_keys = self._function("expand_keys", [_ARRAY] * 2 + [_NUMBER])
        self._garble = self._function("garble", _GATES)
        self._evaluate = self._function("evaluate", _GATES)
        self.keystream = self._function("keystreams", [_ARRAY] * 2 + [_NUMBER] * 3)
        self._transpose = self._function("transpose", [_ARRAY] * 3 + [_NUMBER])
        self._inner_products = self._function("inner_products", [_ARRAY] * 6 + [_NUMBER] * 3)
        self.grow = self._function("grow", [_ARRAY] * 5 + [_NUMBER] * 5)
        self.leaves = self._function("leaves", [_ARRAY] * 4 + [_NUMBER] * 3)
        self._digests = blake2b.Digests(_compile, blake2b.lanes_of(binding.get_host_cpu_features()))

    def garbler(
        self, circuit: Circuit, n: int, delta: Words, key: bytes, labels: Rows, public: Rows
    ) -> CompiledGates:
        """Return the garbler's gates."""
        return CompiledGates(self, self._garble, circuit, n, delta, key, labels, public)

    def evaluator(self, circuit: Circuit, n: int, key: bytes, labels: Rows, public: Rows) -> CompiledGates:
        """Return the evaluator's gates."""
        return CompiledGates(self, self._evaluate, circuit, n, _NO_OFFSET, key, labels, public)

    def keystreams(self, seeds: Blocks) -> CompiledKeystreams:
        """Return keystreams like :class:`crypto.keystreams.Keystreams`."""
        return CompiledKeystreams(self, seeds)

    def transpose(self, rows: Words, scratch: Words, out: Blocks) -> None:
        """Transpose like :func:`crypto.blocks.transpose_rows`, without scratch; the rows do not change."""
        width = rows.shape[1]
        assert rows.shape == (BLOCK_BITS, width)
        assert out.shape == (WORD_BITS * width, 2)
        tile = np.empty(TILE_WORDS, dtype=np.uint64)
        self._transpose(_address(rows), _address(tile), _address(out), width)

    def trees(self, root: Words, count: int, depth: int, hashing: BlockHash) -> CompiledTrees:
        """Return trees like :class:`crypto.trees.Trees`."""
        return CompiledTrees(self, root, count, depth, hashing)

    def inner_products(self, planes: Words, of: Places, vectors: Words, shifts: Words) -> Words:
        """Return inner products like :func:`crypto.inner_products.inner_products`."""
        (n_tables, n_bits, words), count = planes.shape, len(shifts)
        assert n_bits <= WORD_BITS
        assert words & (words - 1) == 0
        assert vectors.shape == (count, words)
        assert of.shape == shifts.shape
        assert not count or 0 <= of.min() <= of.max() < n_tables
        scratch = np.empty(SCRATCH_ROWS * words + SCRATCH_WORDS, dtype=np.uint64)
        products = np.empty(count, dtype=np.uint64)
        given = map(np.ascontiguousarray, (planes, of.astype(np.int64, copy=False), vectors, shifts))
        arrays = *given, scratch, products
        self._inner_products(*map(_address, arrays), count, n_bits, words)
        return products

    def digests(self, rows: Octets, size: int) -> Words:
        """Digest like :func:`crypto.digests.digests_of`."""
        return self._digests(rows, size)

    def round_keys(self, keys: bytes) -> Words:
        """Return the key schedules of AES-128 for keys of 16 bytes each; shape (n, KEY_WORDS)."""
        given = np.frombuffer(keys, dtype=np.uint64).reshape(-1, 2)
        expanded = np.empty((len(given), KEY_WORDS), dtype=np.uint64)
        self._expand_keys(_address(given), _address(expanded), len(given))
        return expanded

    def _function(self, name: str, arguments: Sequence[type]) -> ctypes._CFunctionType:
        return ctypes.CFUNCTYPE(None, *arguments)(self._code.get_function_address(name))


class CompiledGates:
    """Gates of a side; :class:`crypto.engine.Gates`."""

    def __init__(
        self,
        engine: Compiled,
        function: ctypes._CFunctionType,
        circuit: Circuit,
        n: int,
        delta: Words,
        key: bytes,
        labels: Rows,
        public: Rows,
    ) -> None:
        assert labels.shape == (circuit.rows, 2 * n)
        assert public.shape == (circuit.public_rows, 2 * n)
        self._engine = engine  # the code lives as long as this does
        self._function = function
        self._n = n
        self._arrays = labels, public, operands_of(circuit), np.ascontiguousarray(delta)
        self._labels, self._public, self._operands, self._delta = map(_address, self._arrays)
        self.rekey(key)

    def __repr__(self) -> str:
        return f"CompiledGates(n={self._n}, <secret>)"

    def rekey(self, key: bytes) -> None:
        """Go on under a new key, with tweaks from zero again."""
        self._round_keys = self._engine.round_keys(key)
        self._tweak = 0

    def run(self, piece: Piece, table: Words) -> None:
        """Work through the groups of the next piece."""
        assert table.nbytes == piece.table_bytes
        steps = piece.steps
        self._function(
            self._labels,
            self._public,
            _address(table),
            self._operands,
            _address(steps),
            _address(self._round_keys),
            self._delta,
            len(steps),
            self._n,
            self._tweak,
        )
        self._tweak += self._n * piece.blocks


class CompiledKeystreams:
    """Keystreams that go on together; :class:`crypto.engine.Keystreams`."""

    def __init__(self, engine: Compiled, seeds: Blocks) -> None:
        self._engine = engine  # the code lives as long as this does
        self._round_keys = engine.round_keys(encode_blocks(seeds))
        self._block = 0

    def __repr__(self) -> str:
        return f"CompiledKeystreams(n={len(self._round_keys)}, <secret>)"

    def fill(self, rows: Words) -> None:
        """Fill row i with the next blocks of stream i; shape (n, width), contiguous, ``width`` even."""
        n, width = rows.shape
        assert n == len(self._round_keys)
        assert width % 2 == 0
        self._engine.keystream(_address(self._round_keys), _address(rows), n, width, self._block)
        self._block += width // 2


@dataclass(frozen=True, slots=True)
class _Strands:
    """Strands of ``size`` trees each, ``n`` of them, one behind the other; part: their trees among all."""

    part: slice
    n: int
    size: int
    nodes: Words = field(repr=False)
    hashes: Words = field(repr=False)


class CompiledTrees:
    """Trees of a batch; :class:`crypto.engine.Trees`.

    A level is grown when its hashes are asked for: both happen in one pass.
    """

    def __init__(self, engine: Compiled, root: Words, count: int, depth: int, hashing: BlockHash) -> None:
        self._engine = engine  # the code lives as long as this does
        self._round_keys = engine.round_keys(hashing.key)
        self._hashing = hashing
        self._count, self._room, self._n_nodes = count, 1 << depth, 1
        self._root = root
        self._correction: Blocks | None = None
        whole = count - count % trees.STRAND
        both = (slice(0, whole), trees.STRAND), (slice(whole, count), count - whole)
        parts = [(part, size) for part, size in both if part.start < part.stop]
        ahead = max(size for _, size in parts)
        # The vectors of a strand take the place of the strand before, which is read no more; there is room for the
        # first. So the memory is touched once.
        self._memory = np.empty((ahead + count, 2 * self._room), dtype=np.uint64)
        nodes = self._memory[ahead:]
        self._strands = [self._strands_of(part, size, nodes[part]) for part, size in parts]

    def __repr__(self) -> str:
        return f"CompiledTrees(count={self._count}, <secret>)"

    def _strands_of(self, part: slice, size: int, memory: Words) -> _Strands:
        nodes = memory.reshape(-1, self._room, size, 2)
        return _Strands(part, len(nodes), size, nodes, np.empty_like(nodes))

    def sum(self) -> Blocks:
        """Grow the level and hash it; return the XOR of the hashes of every tree, shape (count, 2)."""
        if self._correction is None:
            return self._hash_roots()
        sums = np.zeros((self._count, 2), dtype=np.uint64)
        for strands in self._strands:
            blocks = 2 * self._n_nodes * strands.n * strands.size
            self._engine.grow(
                _address(strands.nodes),
                _address(strands.hashes),
                _address(self._correction[strands.part]),
                _address(sums[strands.part]),
                _address(self._round_keys),
                strands.n,
                strands.size,
                self._room,
                self._n_nodes,
                self._hashing.take(blocks),
            )
        self._n_nodes *= 2
        return sums

    def _hash_roots(self) -> Blocks:
        hashed = trees.hash_of(self._hashing, np.tile(self._root, (self._count, 1)))
        for strands in self._strands:
            strands.nodes[:, 0] = self._root
            strands.hashes[:, 0] = hashed[strands.part].reshape(strands.n, strands.size, 2)
        return hashed

    def grow(self, correction: Blocks) -> None:
        """Go on to the next level, of which there is one. correction: for every tree, shape (count, 2)."""
        assert correction.shape == (self._count, 2)
        assert self._n_nodes < self._room
        self._correction = np.ascontiguousarray(correction)

    def vectors(self, correction: Blocks) -> Words:
        """Return the corrected hashes of the last level, leaf after leaf; shape (count, 2 * n_leaves).

        The trees end with this: the vectors take the memory of the nodes.
        """
        assert correction.shape == (self._count, 2)
        assert self._n_nodes == self._room
        correction = np.ascontiguousarray(correction)
        out = self._memory[: self._count]
        for strands in self._strands:
            self._engine.leaves(
                _address(strands.nodes),
                _address(strands.hashes),
                _address(correction[strands.part]),
                _address(out[strands.part]),
                strands.n,
                strands.size,
                self._room,
            )
        return out


@lru_cache(maxsize=256)
def operands_of(circuit: Circuit) -> Words:
    """Return the operands of each row: rows a and b, each times 2, plus 1 if inverted; shape (rows, 2).

    Raises LocalProtocolError for a gate that reads a row before the row is there.
    """
    gates = columns_of(circuit.groups)
    starts = np.repeat(gates.starts, gates.lengths)
    secret_b = np.repeat(np.isin(gates.kinds, (Kind.XOR, *BLOCKS)), gates.lengths)
    bounds = starts, np.where(secret_b, starts, circuit.public_rows)
    operands = np.zeros((circuit.rows, 2), dtype=np.uint64)
    read = (gates.a, gates.invert_a), (gates.b, gates.invert_b)
    for column, bound, (rows, inverted) in zip(operands.T, bounds, read, strict=True):
        if len(rows) != len(bound) or ((rows < 0) | (rows >= bound)).any():
            raise LocalProtocolError("a circuit whose gates read rows that are not there yet")
        column[gates.rows] = rows << 1
        column[gates.rows[inverted]] |= np.uint64(1)
    return operands


def _module(lanes: Sequence[int]) -> str:
    module = ir.Module("jointcut")
    write_key_schedule(module, "expand_keys")
    Garble(module, "garble", lanes)
    Evaluate(module, "evaluate", lanes)
    write_keystreams(module, "keystreams", lanes)
    write_transpose(module, "transpose", LANES)
    write_grow(module, "grow", lanes)
    write_leaves(module, "leaves")
    write_inner_products(module, "inner_products")
    return str(module)


def _compile(text: str) -> binding.ExecutionEngine:
    """Compile to machine code for this CPU. LLVM's passes are left out: passes take longest, and the kernels have
    all that counts.
    """
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


def _address(array: NDArray[np.uint64] | NDArray[np.int64]) -> int:
    assert array.flags.c_contiguous
    assert array.itemsize == WORD
    return array.ctypes.data
