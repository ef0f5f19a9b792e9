"""Selection of the counts of a node's children by a carried index.

Every node with options has a line for each option, a carried bit. The line of the chosen option, unknown to all, is
1. Lines are made once and multiplied with the shares of all later counts of the node (:mod:`crypto.label_products`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.candidates import Prospect
from anonymize.joint.engine import Engine, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.circuits import Widths
from anonymize.joint.lkc.scores.score import JudgedPool, Profiled
from crypto.encoding import Words
from crypto.label_products import DTYPES, products
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords


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
        lines = [self._lines[each.node.prospect].take(np.arange(len(each.shares))) for each in options]
        factors = [(line, each.shares) for line, each in zip(lines, options, strict=True)]
        assert engine.look_ups is not None
        transfers = yield from engine.look_ups.transfers()
        width = min(width for width in DTYPES if width >= wide)
        found = yield from products(transfers, factors, width)
        return [low_bits(part.sum(axis=0, dtype=np.uint64), wide) for part in found]

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
