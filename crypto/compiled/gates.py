"""The gates of :mod:`crypto.half_gates` as two functions, garbler and evaluator, for a whole piece.

Both functions take (labels, public, table, operands, steps, round keys, Δ; number of steps, n, first tweak): seven
arrays of words and three numbers. Labels, public rows and table belong to the piece. The further arrays are:

operands:  the operands of every row: the rows a and b, each times 2, plus 1 if inverted.
steps:     by group of gates: kind, first row, last row + 1, number of earlier AND gates of the piece.
Δ:         zero for the evaluator: an inverted wire has the same label there, and a public bit label
           zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from crypto.circuit import Kind
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
class _Halves:
    """The two table rows of an AND gate, and the tweaks of the first label of each operand."""

    first: Value
    second: Value
    tweak_a: Value
    tweak_b: Value


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

    def conjunction(self, gate: _Gate, halves: _Halves, k: Value, lanes: int) -> None:
        """Emit an AND gate, for the instances whose blocks are the words from ``k`` on."""
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
            with c.where(kind, Kind.AND):
                self._conjunctions(start, stop, before)
        c.end()

    def _each(self, start: Value, stop: Value, body: Callable[[_Gate, Value, int], None]) -> None:
        with self.c.count(start, stop - 1) as row:
            gate = self._gate(row)
            self._along(lambda k, lanes: body(gate, k, lanes))

    def _conjunctions(self, start: Value, stop: Value, before: Value) -> None:
        with self.c.count(start, stop - 1) as row:
            gate, gates, position = self._gate(row), stop - start, row - start
            first = before * self.width * 2 + position * self.width
            tweak = self.tweak + before * self.width + position * self.n
            halves = _Halves(first, first + gates * self.width, tweak, tweak + gates * self.n)
            self._along(lambda k, lanes: self.conjunction(gate, halves, k, lanes))

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

    def conjunction(self, gate: _Gate, halves: _Halves, k: Value, lanes: int) -> None:
        delta = self.delta(lanes)
        a, b = self.operand(gate.a, gate.flip_a, k, lanes), self.operand(gate.b, gate.flip_b, k, lanes)
        p_a, p_b = lowest_bits(a), lowest_bits(b)
        tweak_a, tweak_b = self.tweaks(halves.tweak_a, k, lanes), self.tweaks(halves.tweak_b, k, lanes)
        # The labels with lowest bit 0, then the labels with lowest bit 1.
        a_0, b_0 = a ^ (p_a & delta), b ^ (p_b & delta)
        h_a_0, h_a_1 = self.hash(a_0, tweak_a), self.hash(a_0 ^ delta, tweak_a)
        h_b_0, h_b_1 = self.hash(b_0, tweak_b), self.hash(b_0 ^ delta, tweak_b)
        self.c.store(h_a_0 ^ h_a_1 ^ (p_b & delta), self.table, halves.first + k)
        self.c.store(h_b_0 ^ h_b_1 ^ a, self.table, halves.second + k)
        self.c.store(h_a_0 ^ h_b_0 ^ (p_a & p_b & delta), self.labels, gate.out + k)


class Evaluate(_Gates):
    """The evaluator's side: reads tables."""

    def conjunction(self, gate: _Gate, halves: _Halves, k: Value, lanes: int) -> None:
        a, b = (self.c.load(self.labels, row + k, lanes) for row in (gate.a, gate.b))
        t_g, t_e = (self.c.load(self.table, half + k, lanes) for half in (halves.first, halves.second))
        h_a = self.hash(a, self.tweaks(halves.tweak_a, k, lanes))
        h_b = self.hash(b, self.tweaks(halves.tweak_b, k, lanes))
        picked = (lowest_bits(a) & t_g) ^ (lowest_bits(b) & (t_e ^ a))
        self.c.store(h_a ^ h_b ^ picked, self.labels, gate.out + k)
