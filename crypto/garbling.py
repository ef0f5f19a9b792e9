"""Garbled circuits: half-gates with free XOR, many instances side by side, tables in pieces.

Zahur, Rosulek, Evans, *Two halves make a whole* (EUROCRYPT 2015), figure 2; free XOR of Kolesnikov and Schneider
(ICALP 2008); point and permute; the hash is TMMO (:mod:`crypto.hashing`). An AND gate costs two blocks of table, or
one if a side knows an operand; all other gates are free.

Wires are rows: uint64, shape (rows, 2 * n), the blocks of n instances side by side. For the garbler a row holds
*zero labels*, the labels of value 0. The label of 1 is the zero label ⊕ Δ. The lowest bit of Δ is set, so the
lowest bits of a pair differ. For the evaluator a row holds the *active* label of each pair. Row 0, constant zero,
is zero on both sides. A public bit p that becomes a secret wire has active label 0, so zero label p·Δ. This is
safe: while Δ is secret, the hash is circular correlation robust for chosen labels. The garbler knows a bit r whose
active label has lowest bit 0: the lowest bit of its zero label is r. The evaluator knows a bit whose zero label has
lowest bit 0: the lowest bit of its active label is the bit. Sums of such bits, and for the garbler inverted bits,
keep the property. For them one of the two halves of a gate is zero and falls away.

Computation of each gate: :mod:`crypto.half_gates`. Program: :mod:`crypto.engine`.

A :class:`Garbling` and an :class:`Evaluation` of the same circuit, number of instances and key go through the same
pieces in the same order, and so through the same tweaks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crypto import engine
from crypto.circuit import Circuit, Rows, evaluate_public
from crypto.encoding import WORD, Words
from crypto.pieces import Piece, pieces


class _Half:
    """Rows and pieces, common to both sides."""

    def __init__(self, circuit: Circuit, n: int) -> None:
        self.circuit = circuit
        self.n = n
        self.pieces = pieces(circuit, n)
        self.labels: Rows = np.empty((circuit.rows, 2 * n), dtype=np.uint64)
        self.labels[0] = 0
        self.public: Rows = np.empty((circuit.public_rows, 2 * n), dtype=np.uint64)
        self._gates: engine.Gates

    def __repr__(self) -> str:
        return f"{type(self).__name__}(circuit={self.circuit.name!r}, n={self.n}, <secret>)"

    def _begin(self) -> None:
        """Evaluate the gates that depend on public inputs only."""
        engine.begin(self.n * sum(piece.blocks for piece in self.pieces) // 2)
        evaluate_public(self.circuit, self.public)

    def rekey(self, key: bytes) -> None:
        """Go on with the next chunk of instances, under a new key."""
        self._gates.rekey(key)


class Garbling(_Half):
    """The garbler's side of ``n`` instances of a circuit.

    The caller fills the input rows of ``labels`` with zero labels and of ``public`` with masks (all ones for 1),
    takes the tables of every piece in order, and finds all zero labels in ``labels``.
    """

    def __init__(self, circuit: Circuit, n: int, delta: Words, key: bytes) -> None:
        super().__init__(circuit, n)
        self._gates = engine.in_force().garbler(circuit, n, delta, key, self.labels, self.public)
        self._table = np.empty(max(piece.table_bytes for piece in self.pieces) // WORD, dtype=np.uint64)

    def tables(self) -> Iterator[Words]:
        """Garble piece by piece; yield the table of every piece, in memory overwritten by the next piece."""
        self._begin()
        for piece in self.pieces:
            table = self._table[: piece.table_bytes // WORD]
            self._gates.run(piece, table)
            yield table


class Evaluation(_Half):
    """The evaluator's side: the caller fills input rows with active labels and masks, and feeds tables."""

    def __init__(self, circuit: Circuit, n: int, key: bytes) -> None:
        super().__init__(circuit, n)
        self._gates = engine.in_force().evaluator(circuit, n, key, self.labels, self.public)

    def begin(self) -> None:
        """Evaluate the gates that depend on public inputs only."""
        self._begin()

    def feed(self, piece: Piece, table: Words) -> None:
        """Evaluate the groups of the next piece."""
        self._gates.run(piece, table)
