"""Selection of the counts of a node's children inside circuits, by a carried index.

Every node with options has a line for each option. The line of the chosen option, unknown to all, is 1. Lines are
made once and multiplied with the shares of all later counts of the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.candidates import Prospect
from anonymize.joint.engine import Engine, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.circuits import LINES, Widths
from anonymize.joint.lkc.scores.score import JudgedPool, Profiled
from anonymize.table import Ints
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, Value

SIDES = 2
"""Shares of a count."""


@dataclass(frozen=True)
class Options:
    """Possible counts of a node with options: a vector for each option.

    shares:  own shares, in row j − 1 of option j: uint64, shape (n_options, length of a vector).
    """

    node: Profiled
    shares: Words = field(repr=False)


class Selector:
    """Lines of the nodes of a run, at one of the pair."""

    def __init__(self, widths: Widths, pool: JudgedPool) -> None:
        self._widths = widths
        self._pool = pool
        self._lines: dict[Prospect, CarriedWords] = {}

    def selected(self, engine: Engine, options: Sequence[Options], wide: int) -> Rounds[list[Words]]:
        """Return own shares of the vectors of the chosen options: modulo 2**wide, uint64, a vector for each node."""
        if not options:
            return []
        yield from self._draw(engine, [each.node for each in options])
        lines = [self._lines[each.node.prospect] for each in options]
        starts = np.cumsum([0, *map(len, lines)])[:-1]
        taken = [self._taken(each, start) for each, start in zip(options, starts.tolist(), strict=True)]
        inputs: dict[str, Value] = {
            "line": CarriedWords.concatenate(lines).take(np.concatenate([places for places, _ in taken])),
            "count": low_bits(np.concatenate([counts for _, counts in taken]), self._widths.count),
        }
        batch = sum(len(counts) for _, counts in taken)
        outputs = yield from engine.run(circuits.selection_circuit(self._widths.count), batch, inputs)
        chosen = outputs["shares"]
        assert isinstance(chosen, np.ndarray)
        ends = np.cumsum([len(counts) for _, counts in taken])[:-1]
        xors = [
            np.bitwise_xor.reduce(part.reshape(-1, each.shares.shape[1], SIDES), axis=0)
            for part, each in zip(np.split(chosen, ends), options, strict=True)
        ]
        return (yield from self._additive(engine, xors, wide))

    def _draw(self, engine: Engine, nodes: Sequence[Profiled]) -> Rounds[None]:
        """Make the lines of new nodes, nodes with equally many lines in a batch."""
        by_count: dict[int, list[Profiled]] = {}
        for node in nodes:
            if node.prospect not in self._lines:
                by_count.setdefault(1 << (node.prospect.n_options - 1).bit_length(), []).append(node)
        for n_lines, fresh in by_count.items():
            circuit = circuits.lines_circuit(self._widths.index, n_lines)
            words = self._pool.words("index", fresh)
            drawn = carried((yield from engine.run(circuit, len(fresh), {"index": words})), "line")
            for number, node in enumerate(fresh):
                self._lines[node.prospect] = drawn.take(number * n_lines + np.arange(n_lines))

    def _taken(self, options: Options, start: int) -> tuple[Ints, Words]:
        """Return instances of the circuit: the places of their lines, flat, and own shares, shape (n, LINES).

        Padding of the last instance of an entry is 0, for any line.
        """
        n_options, size = options.shares.shape
        blocks = -(-n_options // LINES)
        padded = np.zeros((blocks * LINES, size), dtype=np.uint64)
        padded[:n_options] = options.shares
        counts = padded.reshape(blocks, LINES, size).transpose(0, 2, 1).reshape(-1, LINES)
        line = np.minimum(np.arange(blocks * LINES), n_options - 1).reshape(blocks, LINES)
        return start + np.repeat(line, size, axis=0).reshape(-1), counts

    def _additive(self, engine: Engine, xors: Sequence[Words], wide: int) -> Rounds[list[Words]]:
        """Return additive shares of counts; xors: XOR shares of both shares of every count, shape (n, SIDES) each."""
        flat = np.concatenate(xors)
        circuit = circuits.additive_circuit(self._widths.count, wide)
        outputs = yield from engine.run(circuit, len(flat), {"shares": flat})
        counts = outputs["count"]
        assert isinstance(counts, np.ndarray)
        return np.split(counts.reshape(-1), np.cumsum([len(each) for each in xors])[:-1])
