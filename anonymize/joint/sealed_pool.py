"""The candidates of a sealed run: nodes that everybody knows, with scores that stay inside the pair's circuits.

Only newly created nodes are scored; what was computed of the others is carried from iteration to iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anonymize.candidates import GroupSizes
from anonymize.cut import Candidate, interval_children
from anonymize.joint import circuits
from anonymize.joint.circuits import Widths
from anonymize.joint.engine import Engine, Fields, carried, low_bits, opened
from anonymize.joint.horizontal import Profiled, Request
from anonymize.score import impurity
from anonymize.table import Ints
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, Outputs, Value

Words = NDArray[np.uint64]


class Pool:
    """Nodes that were not taken yet, at the pair with carried words for each.

    Goal classification: ``key0`` …, ``valid``, ``index`` for every node. Goal general: ``valid`` and ``index``
    (of the best grid point) for intervals only; the order of candidates is public there.
    """

    def __init__(self, request: Request, widths: Widths, engine: Engine | None, *, leads: bool) -> None:
        self._schema = request.schema
        self._general = request.goal == "general"
        self._widths = widths
        self._engine = engine
        self._leads = leads
        self._nodes: list[Profiled] = []
        self._fields: list[Fields] = []

    def own_part(self, profiled: Profiled) -> Ints:
        """Our counts that decide about a node: those of every child or cell but the last, which follows."""
        if not self._general:
            return profiled.counts[:-1]
        by_row: Ints = profiled.counts.sum(axis=1, keepdims=True)
        return by_row[:-1] if self._is_interval(profiled) else by_row[:0]

    def add(self, nodes: Sequence[Profiled], shares: Sequence[Words]) -> Rounds[None]:
        """Enter nodes; ``shares``: the pair's shares of :meth:`own_part`, summed over the parties."""
        if self._engine is None:
            self._nodes += nodes
            return
        scored = [
            (n, s) for n, s in zip(nodes, shares, strict=True) if self._is_interval(n) or not self._general
        ]
        intervals = [(n, s) for n, s in scored if self._is_interval(n)]
        fixed = [(n, s) for n, s in scored if not self._is_interval(n)]
        fields = yield from self._score(self._engine, intervals, fixed)
        for place, (node, _) in enumerate([*intervals, *fixed]):
            self._nodes.append(node)
            self._fields.append({name: words.take([place]) for name, words in fields.items()})
        if self._general:
            unscored = [n for n in nodes if not self._is_interval(n)]
            self._nodes += unscored
            self._fields += [{}] * len(unscored)

    def pop(self, sizes: GroupSizes | None) -> Rounds[tuple[int, Candidate | None]]:
        """Take out the best candidate; the number is how many intervals were found to be none on the way."""
        if self._engine is None:
            return 0, None
        if self._general:
            assert sizes is not None
            return (yield from self._pop_largest(self._engine, sizes))
        return 0, (yield from self._pop_best(self._engine))

    def follow(self, skipped: int, candidate: Candidate | None, sizes: GroupSizes | None) -> bool:
        """Outside the pair: take out what the pair says it did; False if that cannot be.

        Goal classification: a node that is still there, or none is left that has gain. Goal general: the order
        is public, so only intervals are passed over, and the next in order is the one.
        """
        if not self._general:
            return skipped == 0 and (candidate is None or self._removed(candidate))
        assert sizes is not None
        for _ in range(skipped):
            if not self._nodes or not self._is_interval(self._nodes[self._first(sizes)]):
                return False
            self._nodes.pop(self._first(sizes))
        if candidate is None or not self._nodes:
            return candidate is None and not self._nodes
        return self._place(candidate) == self._first(sizes) and self._removed(candidate)

    def _removed(self, candidate: Candidate) -> bool:
        """Take out a candidate's node; False if it is not there."""
        place = self._place(candidate)
        if place is not None:
            self._nodes.pop(place)
        return place is not None

    def _place(self, candidate: Candidate) -> int | None:
        nodes = [(n.column, n.node) for n in self._nodes]
        node = candidate.column, candidate.node
        return nodes.index(node) if node in nodes else None

    def _first(self, sizes: GroupSizes) -> int:
        """Goal general: the place of the node that is next in order."""
        return min(range(len(self._nodes)), key=lambda i: self._rank(self._nodes[i], sizes))

    def _is_interval(self, profiled: Profiled) -> bool:
        return self._schema.qid[profiled.column].is_numeric

    def _candidate(self, place: int, index: int) -> Candidate:
        """Remove a node from the pool and return its candidate."""
        profiled = self._nodes.pop(place)
        self._fields.pop(place)
        children = self._schema.qid[profiled.column].children(profiled.node)
        if self._is_interval(profiled):
            children = interval_children(profiled.node, index)
        return Candidate(profiled.column, profiled.node, children)

    # ---- choosing

    def _pop_best(self, engine: Engine) -> Rounds[Candidate | None]:
        """The greatest key among the valid ones, by a tournament in candidate order."""
        if not self._nodes:
            return None
        order = sorted(
            range(len(self._nodes)), key=lambda i: (self._nodes[i].column, self._nodes[i].node.first)
        )
        bits = max(1, (len(order) - 1).bit_length())
        places = np.array(order, dtype=np.uint64).reshape(-1, 1)
        slots = yield from engine.run(circuits.slot_circuit(bits), len(order), {"slot": places})
        fields = {name: _joined([self._fields[i][name] for i in order]) for name in self._fields[0]}
        fields["slot"] = carried(slots, "slot")
        circuit = circuits.better_candidate_circuit(self._widths, bits)
        best = yield from engine.reduce(circuit, fields, [len(order)])
        chosen = {name: best[name] for name in ("valid", "index", "slot")}
        outputs = yield from engine.run(
            circuits.open_circuit((("index", self._widths.index), ("slot", bits))), 1, chosen
        )
        if not opened(outputs, "valid"):
            return None
        return self._candidate(opened(outputs, "slot"), opened(outputs, "index"))

    def _pop_largest(self, engine: Engine, sizes: GroupSizes) -> Rounds[tuple[int, Candidate | None]]:
        """The greatest public score; whether an interval can be split at all is opened when its turn comes."""
        skipped = 0
        while self._nodes:
            place = self._first(sizes)
            if not self._fields[place]:
                return skipped, self._candidate(place, 0)
            circuit = circuits.open_circuit((("index", self._widths.index),))
            outputs = yield from engine.run(circuit, 1, self._fields[place])
            candidate = self._candidate(place, max(1, opened(outputs, "index")))
            if opened(outputs, "valid"):
                return skipped, candidate
            skipped += 1
        return skipped, None

    @staticmethod
    def _rank(profiled: Profiled, sizes: GroupSizes) -> tuple[int, int, int]:
        return -sizes.score_of(profiled.column, profiled.node.first), profiled.column, profiled.node.first

    # ---- scoring

    def _score(self, engine: Engine, intervals: _Scored, fixed: _Scored) -> Rounds[Fields]:
        """One entry per node, intervals first: where to split, and how good that is."""
        if not intervals and not fixed:
            return {}
        lefts = [np.cumsum(share, axis=0, dtype=np.uint64) for _, share in intervals]
        points = [len(left) for left in lefts]
        rights = [self._rest(n, left) for (n, _), left in zip(intervals, lefts, strict=True)]
        sides = _interleaved(lefts, rights, self._n_columns)
        options = yield from self._options(engine, sides, points, fixed)
        circuit = circuits.better_split_circuit(
            self._widths.count + 1 if self._general else self._widths.loss, self._widths.index
        )
        best = yield from engine.reduce(circuit, options, points + [1] * len(fixed))
        if self._general:
            return {"valid": best["valid"], "index": best["index"]}
        return (yield from self._keys(engine, best, [n for n, _ in (*intervals, *fixed)]))

    @property
    def _n_columns(self) -> int:
        return 1 if self._general else self._schema.n_classes

    def _totals(self, profiled: Profiled) -> Words:
        """The public class counts of a node, as our share of them: the leader's."""
        totals = profiled.totals.sum(keepdims=True) if self._general else profiled.totals
        return totals.astype(np.uint64) if self._leads else np.zeros(len(totals), dtype=np.uint64)

    def _rest(self, profiled: Profiled, shares: Words) -> Words:
        return self._totals(profiled) - shares

    def _options(self, engine: Engine, sides: Words, points: Sequence[int], fixed: _Scored) -> Rounds[Fields]:
        """Loss, flag and index of every grid point, then of every node with fixed children."""
        count = self._widths.count
        sizes = low_bits(sides.sum(axis=1, dtype=np.uint64), count).reshape(-1, 2)
        index = np.concatenate(
            [np.zeros(0, np.uint64), *(np.arange(1, p + 1, dtype=np.uint64) for p in points)]
        )
        inputs = {"sides": sizes, "index": index.reshape(-1, 1)}
        if self._general:
            circuit = circuits.imbalance_circuit(count, self._widths.index)
            outputs = yield from engine.run(circuit, len(index), inputs)
            return {name: carried(outputs, name) for name in ("loss", "valid", "index")}
        children = [
            np.concatenate([s, self._rest(n, s.sum(axis=0, keepdims=True, dtype=np.uint64))])
            for n, s in fixed
        ]
        losses = yield from self._losses(
            engine, np.concatenate([sides, *children]), [2] * len(index) + [len(c) for c in children]
        )
        flags: list[Outputs] = []
        if len(index):
            flags.append(
                (yield from engine.run(circuits.sides_circuit(count, self._widths.index), len(index), inputs))
            )
        if fixed:
            lifted = {
                "present": np.ones((len(fixed), 1), np.uint64),
                "index": np.zeros((len(fixed), 1), np.uint64),
            }
            flags.append(
                (yield from engine.run(circuits.lift_circuit(self._widths.index), len(fixed), lifted))
            )
        return {
            "loss": losses,
            "valid": _joined([carried(f, "valid") for f in flags]),
            "index": _joined([carried(f, "index") for f in flags]),
        }

    def _losses(self, engine: Engine, sides: Words, sizes: Sequence[int]) -> Rounds[CarriedWords]:
        """Σ impurity over the sides of each option; sides (n_sides, n_classes), ``sizes`` of them per option."""
        counts = np.column_stack([sides.sum(axis=1, dtype=np.uint64), sides])
        flat = low_bits(counts.reshape(-1, 1), self._widths.count)
        f = carried(
            (yield from engine.run(circuits.f_circuit(self._widths.count), len(flat), {"count": flat})), "f"
        )
        circuit = circuits.impurity_circuit(self._schema.n_classes, f.width, self._widths.loss)
        outputs = yield from engine.run(circuit, len(sides), {"f": f})
        summed = yield from engine.reduce(
            circuits.add_circuit(self._widths.loss), {"loss": carried(outputs, "loss")}, sizes
        )
        return summed["loss"]

    def _keys(self, engine: Engine, best: Fields, nodes: Sequence[Profiled]) -> Rounds[Fields]:
        """InfoGain as a key, from each node's least loss and its public counts."""
        widths = self._widths
        parents = np.array([int(impurity(n.totals)) for n in nodes], dtype=np.int64).astype(np.uint64)
        reciprocals = [circuits.magic(int(n.totals.sum()), widths) for n in nodes]
        inputs: dict[str, Value] = {
            "loss": best["loss"],
            "valid": best["valid"],
            "parent": low_bits(parents, widths.loss).reshape(-1, 1),
            "magic": np.array(reciprocals, dtype=np.uint64),
        }
        outputs = yield from engine.run(circuits.key_circuit(widths), len(nodes), inputs)
        keys = {name: carried(outputs, name) for name in outputs}
        return {**keys, "index": best["index"]}


_Scored = Sequence[tuple[Profiled, Words]]


def _interleaved(lefts: Sequence[Words], rights: Sequence[Words], n_columns: int) -> Words:
    """Left and right side of every grid point in turn; shape (2 · points, n_columns)."""
    none = np.zeros((0, n_columns), dtype=np.uint64)
    left, right = np.concatenate([none, *lefts]), np.concatenate([none, *rights])
    return np.stack([left, right], axis=1).reshape(-1, n_columns)


def _joined(words: Sequence[CarriedWords]) -> CarriedWords:
    return CarriedWords.concatenate(words)
