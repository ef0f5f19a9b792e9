"""Choosing, inside, the counts of an interval's halves: of many shared vectors the one that a carried index names.

Every interval has a line for each place where it could be split; the line of its split is 1, and nobody knows which
that is. Lines are made once and multiplied with the shares of everything that is ever counted of the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.candidates import profile_length
from anonymize.joint.engine import Engine, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.circuits import LINES, Widths
from anonymize.joint.lkc.scores.score import JudgedPool, Profiled
from anonymize.table import Ints, Schema
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, Value


@dataclass(frozen=True)
class Options:
    """What could be counted of an interval: a vector for each place where it could be split.

    shares:  ours, of row j − 1 if j cells are left: uint64, shape (profile_length − 1, length of a vector).
    """

    interval: Profiled
    shares: Words = field(repr=False)


class Selector:
    """Keeps the lines of the intervals of a run, at one of the pair."""

    def __init__(self, schema: Schema, widths: Widths, pool: JudgedPool) -> None:
        self._schema = schema
        self._widths = widths
        self._pool = pool
        self._lines: dict[tuple[int, int, int], CarriedWords] = {}

    def selected(self, engine: Engine, options: Sequence[Options], wide: int) -> Rounds[list[Words]]:
        """Our shares of the vectors at the splits: modulo 2**wide, uint64, one vector for each interval."""
        if not options:
            return []
        yield from self._draw(engine, [each.interval for each in options])
        lines = [self._lines[_key(each.interval)] for each in options]
        starts = np.cumsum([0, *map(len, lines)])[:-1]
        taken = [self._taken(each, start) for each, start in zip(options, starts.tolist(), strict=True)]
        inputs: dict[str, Value] = {
            "line": CarriedWords.concatenate(lines).take(np.concatenate([places for places, _ in taken])),
            "count": low_bits(np.concatenate([counts for _, counts in taken]), self._widths.count),
        }
        batch = sum(len(counts) for _, counts in taken)
        outputs = yield from engine.run(circuits.selection_circuit(self._widths.count), batch, inputs)
        chosen = _values(outputs["count"])
        ends = np.cumsum([len(counts) for _, counts in taken])[:-1]
        xors = [
            np.bitwise_xor.reduce(part.reshape(-1, each.shares.shape[1]), axis=0)
            for part, each in zip(np.split(chosen, ends), options, strict=True)
        ]
        return (yield from self._additive(engine, xors, wide))

    def _draw(self, engine: Engine, intervals: Sequence[Profiled]) -> Rounds[None]:
        """Make the lines of intervals that have none yet, those with equally many in one batch."""
        by_count: dict[int, list[Profiled]] = {}
        for interval in intervals:
            if _key(interval) not in self._lines:
                by_count.setdefault(self._n_lines(interval), []).append(interval)
        for n_lines, fresh in by_count.items():
            circuit = circuits.lines_circuit(self._widths.index, n_lines)
            words = self._pool.words("index", fresh)
            drawn = carried((yield from engine.run(circuit, len(fresh), {"index": words})), "line")
            for number, interval in enumerate(fresh):
                self._lines[_key(interval)] = drawn.take(number * n_lines + np.arange(n_lines))

    def _n_lines(self, interval: Profiled) -> int:
        """A power of two above the greatest index."""
        most = profile_length(self._schema.qid[interval.column], interval.node) - 1
        return 1 << most.bit_length()

    def _taken(self, options: Options, start: int) -> tuple[Ints, Words]:
        """Instances of the circuit: the places of their lines, flat, and our shares, shape (n, LINES).

        What fills up the last instance of an entry is 0, whatever its line.
        """
        n_options, size = options.shares.shape
        blocks = -(-n_options // LINES)
        padded = np.zeros((blocks * LINES, size), dtype=np.uint64)
        padded[:n_options] = options.shares
        counts = padded.reshape(blocks, LINES, size).transpose(0, 2, 1).reshape(-1, LINES)
        line = np.minimum(1 + np.arange(blocks * LINES), n_options).reshape(blocks, LINES)
        return start + np.repeat(line, size, axis=0).reshape(-1), counts

    def _additive(self, engine: Engine, xors: Sequence[Words], wide: int) -> Rounds[list[Words]]:
        flat = np.concatenate(xors).reshape(-1, 1)
        circuit = circuits.additive_circuit(self._widths.count, wide)
        outputs = yield from engine.run(circuit, len(flat), {"count": flat})
        return np.split(_values(outputs["count"]), np.cumsum([len(each) for each in xors])[:-1])


def _key(interval: Profiled) -> tuple[int, int, int]:
    return interval.column, interval.node.first, interval.node.last


def _values(output: Value) -> Words:
    """Shares, one word for each instance."""
    assert isinstance(output, np.ndarray)
    return output.reshape(-1)
