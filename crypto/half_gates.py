"""The gates of both sides in NumPy: the reference that every :class:`crypto.engine.Engine` is held to.

With X^c the label of a pair whose lowest bit is c, and p the lowest bit of a zero label, neither half
needs a case distinction (figure 2 of the paper says the same with X_0 and X_1):

    T_G = H(A^0) ⊕ H(A^1) ⊕ p_b·Δ        T_E = H(B^0) ⊕ H(B^1) ⊕ A_0
    C_0 = H(A^0) ⊕ H(B^0) ⊕ p_a·p_b·Δ

The first half is a·p_b, the second a·(b ⊕ p_b). If the garbler knows b, then p_b = b, and the first half is the gate.
If the evaluator knows b, then p_b = 0, and the second half is the gate.

Source: Zahur, Rosulek, Evans, *Two halves make a whole* (EUROCRYPT 2015), figure 2.
"""

from __future__ import annotations

import numpy as np

from crypto.circuit import BLOCKS, Circuit, Group, Kind, Rows
from crypto.encoding import Words
from crypto.hashing import BlockHash
from crypto.pieces import Piece, pieces

_ONE = np.uint64(1)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_LONG_ROW = 1024  # words; longer rows are combined singly, shorter rows are gathered


class _Block:
    """Working memory cut for blocks of a fixed number of gates times instances.

    labels:  labels of operand a, then of operand b; flat.
    low:     low words of the labels.
    p:       permute bits of the labels as masks, over both words.
    """

    def __init__(self, memory: Words, gates: int, n: int) -> None:
        size = 2 * gates * n
        self.labels = memory[: 2 * size]
        self.a, self.b = self.labels.reshape(2, gates, 2 * n)
        self.low = self.labels[0::2]
        self.label_a, self.label_b = self.labels[:size], self.labels[size:]
        self.p = memory[2 * size : 4 * size]
        self.p_low, self.p_high = self.p[0::2], self.p[1::2]
        self.p_a, self.p_b = self.p[:size], self.p[size:]
        self._x = memory[4 * size : 8 * size]
        self.bit = memory[8 * size : 9 * size]
        self.labels_row = self.labels.reshape(1, -1)

    def pairs(self, length: int) -> Words:
        """Return memory for two rows of ``length`` words, at most as many as the labels of both operands."""
        return self._x[: 2 * length].reshape(2, length)


class _Gates:
    """The part common to both sides: the rows, working memory and the free gates."""

    def __init__(
        self, circuit: Circuit, n: int, key: bytes, labels: Rows, public: Rows, hash_rows: int
    ) -> None:
        self.n = n
        self.labels = labels
        self.public = public
        ands = [g.stop - g.start for piece in pieces(circuit, n) for g in piece.groups if g.kind in BLOCKS]
        xors = [g.stop - g.start for g in circuit.groups if g.kind is Kind.XOR]
        gates = max(ands, default=1)
        self._memory = np.empty(18 * gates * n, dtype=np.uint64)
        self._cut: dict[int, _Block] = {}
        self._gathered = np.empty((max(xors, default=0) if 2 * n < _LONG_ROW else 0, 2 * n), dtype=np.uint64)
        self._hash = BlockHash(key, 2 * hash_rows * gates * n)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, <secret>)"

    def rekey(self, key: bytes) -> None:
        """Go on under a new key, with tweaks from zero again."""
        self._hash.rekey(key)

    def run(self, piece: Piece, table: Words) -> None:
        """Work through the groups of the next piece."""
        used = 0
        garbled = {
            Kind.AND: self._and,
            Kind.AND_GARBLER: self._and_garbler,
            Kind.AND_EVALUATOR: self._and_evaluator,
        }
        for group in piece.groups:
            if compute := garbled.get(group.kind):
                size = 2 * self.n * group.blocks
                compute(group, table[used : used + size])
                used += size
            elif group.kind is Kind.XOR:
                self._xor(group)
            else:
                self._public(group)

    def _and(self, group: Group, table: Words) -> None:
        raise NotImplementedError

    def _and_garbler(self, group: Group, table: Words) -> None:
        raise NotImplementedError

    def _and_evaluator(self, group: Group, table: Words) -> None:
        raise NotImplementedError

    def _public(self, group: Group) -> None:
        """Compute a gate with a public operand."""
        raise NotImplementedError

    def _out(self, group: Group) -> Words:
        """Return the rows of a group, flat."""
        return self.labels[group.start : group.stop].reshape(-1)

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
        """Compute AND with public bits: keep the label if the bit is set, else take the label of constant zero."""
        chosen = self.public[group.b]
        chosen[group.invert_b] ^= _ONES
        out = self.labels[group.start : group.stop]
        np.bitwise_and(out, chosen, out=out)


class GarblerGates(_Gates):
    """The garbler's side: from rows of zero labels, compute tables and the remaining rows."""

    def __init__(
        self, circuit: Circuit, n: int, delta: Words, key: bytes, labels: Rows, public: Rows
    ) -> None:
        super().__init__(circuit, n, key, labels, public, hash_rows=2)
        self._delta = delta
        self._delta_tiled = np.tile(delta, len(self._memory) // 9)
        self._delta_row = self._delta_tiled[: 2 * n]

    def _public(self, group: Group) -> None:
        out = self.labels[group.start : group.stop]
        if group.kind is Kind.LIFT:
            np.bitwise_and(self.public[group.b], self._delta_row, out=out)
            return
        self._gather(group.a, group.invert_a, out)
        self._select(group)

    def _and(self, group: Group, table: Words) -> None:
        block, half = self._paired(group), len(table) // 2
        h = self._hashes(block, block.labels, block.p)
        np.bitwise_xor(h[0], h[1], out=table)
        np.bitwise_xor(table[:half], block.p_b, out=table[:half])
        np.bitwise_xor(table[half:], block.label_a, out=table[half:])
        out = self._out(group)
        np.bitwise_and(block.p_a, block.p_b, out=out)
        np.bitwise_xor(out, h[0, :half], out=out)
        np.bitwise_xor(out, h[0, half:], out=out)

    def _and_garbler(self, group: Group, table: Words) -> None:
        block = self._paired(group)
        h = self._hashes(block, block.label_a, block.p_a)
        np.bitwise_xor(h[0], h[1], out=table)
        np.bitwise_xor(table, block.p_b, out=table)
        out = self._out(group)
        np.bitwise_and(block.p_a, block.p_b, out=out)
        np.bitwise_xor(out, h[0], out=out)

    def _and_evaluator(self, group: Group, table: Words) -> None:
        block = self._paired(group)
        h = self._hashes(block, block.label_b, block.p_b)
        np.bitwise_xor(h[0], h[1], out=table)
        np.bitwise_xor(table, block.label_a, out=table)
        self._out(group)[:] = h[0]

    def _paired(self, group: Group) -> _Block:
        """Collect the zero labels of both operands, and p·Δ for the lowest bit p of each."""
        block = self._block(group.stop - group.start)
        self._gather(group.a, group.invert_a, block.a)
        self._gather(group.b, group.invert_b, block.b)
        np.bitwise_and(block.low, _ONE, out=block.bit)
        np.negative(block.bit, out=block.bit)
        np.bitwise_and(block.bit, self._delta[0], out=block.p_low)
        np.bitwise_and(block.bit, self._delta[1], out=block.p_high)
        return block

    def _hashes(self, block: _Block, labels: Words, p: Words) -> Words:
        """Return the hashes of the labels with lowest bit 0, then of those with 1: shape (2, len(labels))."""
        x = block.pairs(len(labels))
        np.bitwise_xor(labels, p, out=x[0])
        np.bitwise_xor(x[0], self._delta_tiled[: len(labels)], out=x[1])
        return self._hash.hash(x)

    def _gather(self, rows: np.ndarray, inverted: np.ndarray, out: Rows) -> None:
        """Collect zero labels; for an inverted wire, take the opposite label of the pair."""
        if len(rows) == 1:
            if len(inverted):
                np.bitwise_xor(self.labels[rows[0]], self._delta_row, out=out[0])
            else:
                out[0] = self.labels[rows[0]]
            return
        np.take(self.labels, rows, axis=0, out=out, mode="clip")
        if 2 * self.n < _LONG_ROW:
            if len(inverted):
                out[inverted] ^= self._delta_row
        else:
            for i in inverted:
                np.bitwise_xor(out[i], self._delta_row, out=out[i])


class EvaluatorGates(_Gates):
    """The evaluator's side: from rows of active labels and tables, compute the remaining rows."""

    def __init__(self, circuit: Circuit, n: int, key: bytes, labels: Rows, public: Rows) -> None:
        super().__init__(circuit, n, key, labels, public, hash_rows=1)

    def _public(self, group: Group) -> None:
        out = self.labels[group.start : group.stop]
        if group.kind is Kind.LIFT:
            out[:] = 0
            return
        np.take(self.labels, group.a, axis=0, out=out, mode="clip")
        self._select(group)

    def _and(self, group: Group, table: Words) -> None:
        block, half = self._active(group), len(table) // 2
        h = self._hash.hash(block.labels_row)[0]
        # C = H(A) ⊕ p_a·T_G ⊕ H(B) ⊕ p_b·(T_E ⊕ A)
        picked = block.pairs(len(table))[0]
        np.bitwise_and(block.p_a, table[:half], out=picked[:half])
        np.bitwise_xor(block.label_a, table[half:], out=picked[half:])
        np.bitwise_and(block.p_b, picked[half:], out=picked[half:])
        np.bitwise_xor(h, picked, out=h)
        np.bitwise_xor(h[:half], h[half:], out=self._out(group))

    def _and_garbler(self, group: Group, table: Words) -> None:
        block = self._active(group)
        picked = block.pairs(len(table))[0]
        np.bitwise_and(block.p_a, table, out=picked)
        np.bitwise_xor(self._hash.hash(block.label_a[None])[0], picked, out=self._out(group))

    def _and_evaluator(self, group: Group, table: Words) -> None:
        block = self._active(group)
        picked = block.pairs(len(table))[0]
        np.bitwise_xor(block.label_a, table, out=picked)
        np.bitwise_and(block.p_b, picked, out=picked)
        np.bitwise_xor(self._hash.hash(block.label_b[None])[0], picked, out=self._out(group))

    def _active(self, group: Group) -> _Block:
        """Collect the active labels of both operands, and their lowest bits as masks."""
        block = self._block(group.stop - group.start)
        if len(group.a) == 1:
            block.a[0], block.b[0] = self.labels[group.a[0]], self.labels[group.b[0]]
        else:
            np.take(self.labels, group.a, axis=0, out=block.a, mode="clip")
            np.take(self.labels, group.b, axis=0, out=block.b, mode="clip")
        np.bitwise_and(block.low, _ONE, out=block.bit)
        np.negative(block.bit, out=block.p_low)
        np.negative(block.bit, out=block.p_high)
        return block
