"""The gates of :mod:`crypto.half_gates` as two functions, garbler and evaluator, for a whole piece.

Both functions take (labels, public, table, operands, steps, round keys, Δ; number of steps, n, first tweak): seven
arrays of words and three numbers. Labels, public rows and table belong to the piece. The further arrays are:

operands:  the operands of every row: the rows a and b, each times 2, plus 1 if inverted.
steps:     by group of gates: kind, first row, last row + 1, number of earlier blocks of table of the piece.
Δ:         zero for the evaluator: an inverted wire has the same label there, and a public bit label
           zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from crypto.circuit import BLOCKS, Kind
from crypto.compiled.aes import Hash, lowest_bits, tweaks_from
from crypto.compiled.code import WORD, WORDS, Code, Value

STEP_WORDS = 4


@dataclass(frozen=True, slots=True)
class _Gate:
    """A gate of all instances: the starts of the operands' rows and of the output row, and flags of inverted
    operands.
    """

    a: Value
    b: Value
    out: Value
    flip_a: Value
    flip_b: Value


@dataclass(frozen=True, slots=True)
class _Half:
    """A table row of a gate, and the tweak of the first label that its hashes take."""

    row: Value
    tweak: Value


class _Gates:
    """A side's function under construction. lanes: numbers of words the CPU works on at once, most first."""

    def __init__(self, module: ir.Module, name: str, lanes: Sequence[int]) -> None:
        self.c = Code(module, name, [WORDS] * 7 + [WORD] * 3)
        self.lanes = lanes
        self.labels, self.public, self.table, self.operands, self.steps, *_ = self.c.arguments
        *_, round_keys, delta, self.n_steps, self.n, self.tweak = self.c.arguments
        self.width = self.n * 2
        self._delta = self.c.load(delta, 0, 2)
        self.hash = Hash(self.c, round_keys)
        self._write()

    def conjunction(self, gate: _Gate, first: _Half, second: _Half, k: Value, lanes: int) -> None:
        """Emit an AND gate, for the instances whose blocks are the words from ``k`` on."""
        raise NotImplementedError

    def of_garbler(self, gate: _Gate, half: _Half, k: Value, lanes: int) -> None:
        """Emit an AND gate with a bit that the garbler knows."""
        raise NotImplementedError

    def of_evaluator(self, gate: _Gate, half: _Half, k: Value, lanes: int) -> None:
        """Emit an AND gate with a bit that the evaluator knows."""
        raise NotImplementedError

    def delta(self, lanes: int) -> Value:
        """Return Δ for every instance."""
        return self._delta.pick(*[0, 1] * (lanes // 2))

    def operand(self, row: Value, flip: Value, k: Value, lanes: int) -> Value:
        """Return labels of an operand; for an inverted wire, the opposite label of every pair."""
        return self.c.load(self.labels, row + k, lanes) ^ (self.delta(lanes) & flip.spread(lanes))

    @staticmethod
    def tweaks(first: Value, k: Value, lanes: int) -> Value:
        """Return the tweaks of adjacent instances."""
        return tweaks_from(first + (k >> 1), lanes)

    def _write(self) -> None:
        c = self.c
        with c.count(0, self.n_steps - 1) as number:
            at = number * STEP_WORDS
            kind, start, stop, before = (c.load(self.steps, at + i) for i in range(STEP_WORDS))
            for known, gate in ((Kind.XOR, self._xor), (Kind.SELECT, self._select), (Kind.LIFT, self._lift)):
                with c.where(kind, known):
                    self._each(start, stop, gate)
            for known, body in (
                (Kind.AND, self.conjunction),
                (Kind.AND_GARBLER, self.of_garbler),
                (Kind.AND_EVALUATOR, self.of_evaluator),
            ):
                with c.where(kind, known):
                    self._garbled(start, stop, before, BLOCKS[known], body)
        c.end()

    def _each(self, start: Value, stop: Value, body: Callable[[_Gate, Value, int], None]) -> None:
        with self.c.count(start, stop - 1) as row:
            gate = self._gate(row)
            self._along(lambda k, lanes: body(gate, k, lanes))

    def _garbled(
        self, start: Value, stop: Value, before: Value, n_halves: int, body: Callable[..., None]
    ) -> None:
        with self.c.count(start, stop - 1) as row:
            gate, gates = self._gate(row), stop - start
            places = [before + row - start + gates * half for half in range(n_halves)]
            halves = [_Half(place * self.width, self.tweak + place * self.n) for place in places]
            self._along(lambda k, lanes: body(gate, *halves, k, lanes))

    def _gate(self, row: Value) -> _Gate:
        a, b = (self.c.load(self.operands, row * 2 + i) for i in range(2))
        rows = (a >> 1) * self.width, (b >> 1) * self.width, row * self.width
        return _Gate(*rows, (a & 1).mask(), (b & 1).mask())

    def _along(self, body: Callable[[Value, int], None]) -> None:
        """Emit a walk along a row, with as many words at once as the CPU takes, then with fewer."""
        k: Value | int = 0
        for lanes in self.lanes:
            with self.c.count(k, self.width - lanes, lanes) as k:
                body(k, lanes)

    def _xor(self, gate: _Gate, k: Value, lanes: int) -> None:
        a, b = (self.c.load(self.labels, row + k, lanes) for row in (gate.a, gate.b))
        self.c.store(a ^ b, self.labels, gate.out + k)

    def _select(self, gate: _Gate, k: Value, lanes: int) -> None:
        chosen = self.c.load(self.public, gate.b + k, lanes) ^ gate.flip_b.spread(lanes)
        self.c.store(self.operand(gate.a, gate.flip_a, k, lanes) & chosen, self.labels, gate.out + k)

    def _lift(self, gate: _Gate, k: Value, lanes: int) -> None:
        public = self.c.load(self.public, gate.b + k, lanes)
        self.c.store(public & self.delta(lanes), self.labels, gate.out + k)


class Garble(_Gates):
    """The garbler's side: writes tables."""

    def conjunction(self, gate: _Gate, first: _Half, second: _Half, k: Value, lanes: int) -> None:
        a, b = self._zero_labels(gate, k, lanes)
        out = self._first(first, a, b, k, lanes) ^ self._second(second, a, b, k, lanes)
        self.c.store(out, self.labels, gate.out + k)

    def of_garbler(self, gate: _Gate, half: _Half, k: Value, lanes: int) -> None:
        out = self._first(half, *self._zero_labels(gate, k, lanes), k, lanes)
        self.c.store(out, self.labels, gate.out + k)

    def of_evaluator(self, gate: _Gate, half: _Half, k: Value, lanes: int) -> None:
        out = self._second(half, *self._zero_labels(gate, k, lanes), k, lanes)
        self.c.store(out, self.labels, gate.out + k)

    def _zero_labels(self, gate: _Gate, k: Value, lanes: int) -> tuple[Value, Value]:
        return self.operand(gate.a, gate.flip_a, k, lanes), self.operand(gate.b, gate.flip_b, k, lanes)

    def _first(self, half: _Half, a: Value, b: Value, k: Value, lanes: int) -> Value:
        """Write the table of the first half; return its zero labels."""
        delta, p_a, p_b = self.delta(lanes), lowest_bits(a), lowest_bits(b)
        h_0, h_1 = self._hashes(half, a, k, lanes)
        self.c.store(h_0 ^ h_1 ^ (p_b & delta), self.table, half.row + k)
        return h_0 ^ (p_a & p_b & delta)

    def _second(self, half: _Half, a: Value, b: Value, k: Value, lanes: int) -> Value:
        """Write the table of the second half; return its zero labels."""
        h_0, h_1 = self._hashes(half, b, k, lanes)
        self.c.store(h_0 ^ h_1 ^ a, self.table, half.row + k)
        return h_0

    def _hashes(self, half: _Half, labels: Value, k: Value, lanes: int) -> tuple[Value, Value]:
        """Return the hashes of the labels of each pair, first of the label with lowest bit 0."""
        delta, tweaks = self.delta(lanes), self.tweaks(half.tweak, k, lanes)
        first = labels ^ (lowest_bits(labels) & delta)
        return self.hash(first, tweaks), self.hash(first ^ delta, tweaks)


class Evaluate(_Gates):
    """The evaluator's side: reads tables."""

    def conjunction(self, gate: _Gate, first: _Half, second: _Half, k: Value, lanes: int) -> None:
        a, b = self._active_labels(gate, k, lanes)
        out = self._first(first, a, k, lanes) ^ self._second(second, a, b, k, lanes)
        self.c.store(out, self.labels, gate.out + k)

    def of_garbler(self, gate: _Gate, half: _Half, k: Value, lanes: int) -> None:
        a, _ = self._active_labels(gate, k, lanes)
        self.c.store(self._first(half, a, k, lanes), self.labels, gate.out + k)

    def of_evaluator(self, gate: _Gate, half: _Half, k: Value, lanes: int) -> None:
        out = self._second(half, *self._active_labels(gate, k, lanes), k, lanes)
        self.c.store(out, self.labels, gate.out + k)

    def _active_labels(self, gate: _Gate, k: Value, lanes: int) -> tuple[Value, Value]:
        return self.c.load(self.labels, gate.a + k, lanes), self.c.load(self.labels, gate.b + k, lanes)

    def _first(self, half: _Half, a: Value, k: Value, lanes: int) -> Value:
        table = self.c.load(self.table, half.row + k, lanes)
        return self.hash(a, self.tweaks(half.tweak, k, lanes)) ^ (lowest_bits(a) & table)

    def _second(self, half: _Half, a: Value, b: Value, k: Value, lanes: int) -> Value:
        table = self.c.load(self.table, half.row + k, lanes)
        return self.hash(b, self.tweaks(half.tweak, k, lanes)) ^ (lowest_bits(b) & (table ^ a))
