"""Garbled circuits: half-gates with free XOR, many instances side by side, tables in pieces.

Zahur, Rosulek, Evans, *Two halves make a whole* (EUROCRYPT 2015), figure 2; free XOR of Kolesnikov and
Schneider (ICALP 2008); point and permute; the hash is TMMO (:mod:`crypto.hashing`). An AND gate costs two
blocks of table, every other gate nothing.

Wires are rows: uint64, shape (rows, 2 * n), the blocks of n instances side by side. For the garbler a row
holds *zero labels*, the labels of value 0; the label of 1 is that ⊕ Δ, and the lowest bit of Δ is set, so
the lowest bits of a pair differ. For the evaluator a row holds the one label of each pair that is *active*.
Row 0, constant zero, is zero on both sides. A public bit p that becomes a secret wire has active label 0,
so zero label p·Δ: the hash is circular correlation robust for labels of anyone's choice, while Δ is secret.

With X^c the label of a pair whose lowest bit is c, and p the lowest bit of a zero label, neither half
needs a case distinction (figure 2 says the same with X_0 and X_1):

    T_G = H(A^0) ⊕ H(A^1) ⊕ p_b·Δ        T_E = H(B^0) ⊕ H(B^1) ⊕ A_0
    C_0 = H(A^0) ⊕ H(B^0) ⊕ p_a·p_b·Δ

A :class:`Garbling` and an :class:`Evaluation` of the same circuit, number of instances and key go through
the same pieces in the same order, and so through the same tweaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crypto.circuit import Circuit, Group, Kind, Rows, evaluate_public
from crypto.encoding import Words
from crypto.hashing import BlockHash

BLOCK_GATES = 1 << 13
"""Gates times instances garbled at once, at most (a single gate of more instances goes alone)."""

PIECE_BYTES = 1 << 20
"""Table bytes of one piece, at most (unless a single block has more)."""

GATE_BYTES = 32

_ONE = np.uint64(1)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_LONG_ROW = 1024  # words; longer rows are combined one by one, shorter ones gathered


@dataclass(frozen=True, slots=True)
class Piece:
    """Groups that are garbled together, and the length of their table."""

    groups: tuple[Group, ...]
    table_bytes: int


@lru_cache(maxsize=256)
def pieces(circuit: Circuit, n: int) -> tuple[Piece, ...]:
    """Cut a circuit into pieces for ``n`` instances. All but the last have a table."""
    done: list[Piece] = []
    groups: list[Group] = []
    size = 0
    for group in _blocks(circuit, max(1, BLOCK_GATES // n)):
        cost = GATE_BYTES * n * (group.stop - group.start) if group.kind is Kind.AND else 0
        if size and size + cost > PIECE_BYTES:
            done.append(Piece(tuple(groups), size))
            groups, size = [], 0
        groups.append(group)
        size += cost
    return (*done, Piece(tuple(groups), size))


def _blocks(circuit: Circuit, gates: int) -> Iterator[Group]:
    """Cut groups of AND gates into blocks that fit the working memory."""
    for group in circuit.groups:
        length = group.stop - group.start
        if group.kind is not Kind.AND or length <= gates:
            yield group
        else:
            for start in range(0, length, gates):
                yield group.part(start, min(start + gates, length))


class _Block:
    """Working memory cut for blocks of one number of gates times instances.

    labels:  labels of operand a, then of operand b; flat.
    low:     their low words.
    p:       their permute bits as masks, over both words.
    """

    def __init__(self, memory: Words, gates: int, n: int) -> None:
        size = 2 * gates * n
        self.labels = memory[: 2 * size]
        self.a, self.b = self.labels.reshape(2, gates, 2 * n)
        self.low = self.labels[0::2]
        self.label_a = self.labels[:size]
        self.p = memory[2 * size : 4 * size]
        self.p_low, self.p_high = self.p[0::2], self.p[1::2]
        self.p_a, self.p_b = self.p[:size], self.p[size:]
        self.x = memory[4 * size : 8 * size].reshape(2, 2 * size)
        self.bit = memory[8 * size : 9 * size]
        self.labels_row = self.labels.reshape(1, -1)


class _Half:
    """What both sides share: rows, pieces, working memory and the gates that cost nothing."""

    def __init__(self, circuit: Circuit, n: int, key: bytes, hash_rows: int) -> None:
        self.circuit = circuit
        self.n = n
        self.pieces = pieces(circuit, n)
        self.labels: Rows = np.empty((circuit.rows, 2 * n), dtype=np.uint64)
        self.labels[0] = 0
        self.public: Rows = np.empty((circuit.public_rows, 2 * n), dtype=np.uint64)
        ands = [g.stop - g.start for piece in self.pieces for g in piece.groups if g.kind is Kind.AND]
        xors = [g.stop - g.start for g in circuit.groups if g.kind is Kind.XOR]
        gates = max(ands, default=1)
        self._memory = np.empty(18 * gates * n, dtype=np.uint64)
        self._cut: dict[int, _Block] = {}
        self._gathered = np.empty((max(xors, default=0) if 2 * n < _LONG_ROW else 0, 2 * n), dtype=np.uint64)
        self._hash = BlockHash(key, 2 * hash_rows * gates * n)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(circuit={self.circuit.name!r}, n={self.n}, <secret>)"

    def rekey(self, key: bytes) -> None:
        """Go on with the next chunk of instances, under another key."""
        self._hash.rekey(key)

    def _block(self, gates: int) -> _Block:
        block = self._cut.get(gates)
        if block is None:
            block = self._cut[gates] = _Block(self._memory, gates, self.n)
        return block

    def _xor(self, group: Group) -> None:
        rows = self.labels
        if 2 * self.n >= _LONG_ROW:
            for row, a, b in zip(range(group.start, group.stop), group.a, group.b, strict=True):
                np.bitwise_xor(rows[a], rows[b], out=rows[row])
            return
        out = rows[group.start : group.stop]
        other = self._gathered[: len(out)]
        np.take(rows, group.a, axis=0, out=out, mode="clip")
        np.take(rows, group.b, axis=0, out=other, mode="clip")
        np.bitwise_xor(out, other, out=out)

    def _select(self, group: Group) -> None:
        """AND with public bits: the label if the bit is set, else that of constant zero."""
        chosen = self.public[group.b]
        chosen[group.invert_b] ^= _ONES
        out = self.labels[group.start : group.stop]
        np.bitwise_and(out, chosen, out=out)


class Garbling(_Half):
    """The garbler's side of ``n`` instances of a circuit.

    The caller fills the input rows of ``labels`` with zero labels and those of ``public`` with masks (all
    ones for 1), takes the tables of every piece in order, and finds all zero labels in ``labels``.
    """

    def __init__(self, circuit: Circuit, n: int, delta: Words, key: bytes) -> None:
        super().__init__(circuit, n, key, hash_rows=2)
        self._delta = delta
        self._delta_tiled = np.tile(delta, len(self._memory) // 9)
        self.delta_row = self._delta_tiled[: 2 * n]
        self._table = np.empty(max(piece.table_bytes for piece in self.pieces) // 8, dtype=np.uint64)

    def tables(self) -> Iterator[Words]:
        """Garble piece by piece; yields every piece's table, in memory that the next one overwrites."""
        evaluate_public(self.circuit, self.public)
        for piece in self.pieces:
            used = 0
            for group in piece.groups:
                if group.kind is Kind.AND:
                    size = 4 * self.n * (group.stop - group.start)
                    self._and(group, self._table[used : used + size])
                    used += size
                else:
                    self._free(group)
            yield self._table[:used]

    def _free(self, group: Group) -> None:
        if group.kind is Kind.XOR:
            self._xor(group)
            return
        out = self.labels[group.start : group.stop]
        if group.kind is Kind.LIFT:
            np.bitwise_and(self.public[group.b], self.delta_row, out=out)
            return
        self._gather(group.a, group.invert_a, out)
        self._select(group)

    def _and(self, group: Group, table: Words) -> None:
        block = self._block(group.stop - group.start)
        self._gather(group.a, group.invert_a, block.a)
        self._gather(group.b, group.invert_b, block.b)
        np.bitwise_and(block.low, _ONE, out=block.bit)
        np.negative(block.bit, out=block.bit)
        np.bitwise_and(block.bit, self._delta[0], out=block.p_low)
        np.bitwise_and(block.bit, self._delta[1], out=block.p_high)
        # The labels whose lowest bit is 0, and the others.
        np.bitwise_xor(block.labels, block.p, out=block.x[0])
        np.bitwise_xor(block.x[0], self._delta_tiled[: len(block.labels)], out=block.x[1])
        h = self._hash.hash(block.x)
        np.bitwise_xor(h[0], h[1], out=table)
        half = len(table) // 2
        np.bitwise_xor(table[:half], block.p_b, out=table[:half])
        np.bitwise_xor(table[half:], block.label_a, out=table[half:])
        out = self.labels[group.start : group.stop].reshape(-1)
        np.bitwise_and(block.p_a, block.p_b, out=out)
        np.bitwise_xor(out, h[0, :half], out=out)
        np.bitwise_xor(out, h[0, half:], out=out)

    def _gather(self, rows: np.ndarray, inverted: np.ndarray, out: Rows) -> None:
        """Collect zero labels; an inverted wire has the other label of the pair."""
        if len(rows) == 1:
            if len(inverted):
                np.bitwise_xor(self.labels[rows[0]], self.delta_row, out=out[0])
            else:
                out[0] = self.labels[rows[0]]
            return
        np.take(self.labels, rows, axis=0, out=out, mode="clip")
        if 2 * self.n < _LONG_ROW:
            if len(inverted):
                out[inverted] ^= self.delta_row
        else:
            for i in inverted:
                np.bitwise_xor(out[i], self.delta_row, out=out[i])


class Evaluation(_Half):
    """The evaluator's side: the caller fills input rows with active labels and masks, and feeds tables."""

    def __init__(self, circuit: Circuit, n: int, key: bytes) -> None:
        super().__init__(circuit, n, key, hash_rows=1)

    def begin(self) -> None:
        """Evaluate what depends on public inputs only."""
        evaluate_public(self.circuit, self.public)

    def feed(self, piece: Piece, table: Words) -> None:
        """Evaluate the groups of the next piece."""
        used = 0
        for group in piece.groups:
            if group.kind is Kind.AND:
                size = 4 * self.n * (group.stop - group.start)
                self._and(group, table[used : used + size])
                used += size
            elif group.kind is Kind.XOR:
                self._xor(group)
            elif group.kind is Kind.LIFT:
                self.labels[group.start : group.stop] = 0
            else:
                np.take(self.labels, group.a, axis=0, out=self.labels[group.start : group.stop], mode="clip")
                self._select(group)

    def _and(self, group: Group, table: Words) -> None:
        block = self._block(group.stop - group.start)
        if len(group.a) == 1:
            block.a[0], block.b[0] = self.labels[group.a[0]], self.labels[group.b[0]]
        else:
            np.take(self.labels, group.a, axis=0, out=block.a, mode="clip")
            np.take(self.labels, group.b, axis=0, out=block.b, mode="clip")
        np.bitwise_and(block.low, _ONE, out=block.bit)
        np.negative(block.bit, out=block.p_low)
        np.negative(block.bit, out=block.p_high)
        half = len(table) // 2
        h = self._hash.hash(block.labels_row)[0]
        # C = H(A) ⊕ p_a·T_G ⊕ H(B) ⊕ p_b·(T_E ⊕ A)
        picked = block.x[0]
        np.bitwise_and(block.p_a, table[:half], out=picked[:half])
        np.bitwise_xor(block.label_a, table[half:], out=picked[half:])
        np.bitwise_and(block.p_b, picked[half:], out=picked[half:])
        np.bitwise_xor(h, picked, out=h)
        out = self.labels[group.start : group.stop].reshape(-1)
        np.bitwise_xor(h[:half], h[half:], out=out)
