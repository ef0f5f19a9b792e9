"""Σ |T[qid_v]|² and |T[v]| in joint runs are public: circuits see only if an interval can be split, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anonymize.cut import Candidate
from anonymize.joint.disclosure import Allowed
from anonymize.joint.engine import Engine, carried
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.scores.contest import open_unless
from anonymize.joint.lkc.scores.score import (
    Bench,
    Contested,
    Found,
    Nodes,
    Profiled,
    Scored,
    lifted,
)
from anonymize.scores.groups import Groups, GroupSizes, Records
from anonymize.table import Ints, Schema
from crypto.circuit import Circuit
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords


@dataclass(frozen=True)
class JointGroups(Groups):
    """Score `groups` with its circuits."""

    reveals: ClassVar[Mapping[str, Sequence[Allowed]]] = {}

    def sealed(self, bench: Bench) -> GroupPool:
        return GroupPool(bench)

    def strict(self, bench: Bench) -> JudgedGroupPool:
        return JudgedGroupPool(bench)

    def fraction_bits(self, schema: Schema, n_records: int) -> tuple[int, int]:
        return (n_records**self.power).bit_length(), 1


class GroupPool(Nodes):
    """``valid`` and ``index`` for nodes with options only; the order of candidates is public."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        assert isinstance(bench.followed, GroupSizes)
        self._sizes = bench.followed

    def own_part(self, profiled: Profiled) -> Ints:
        by_row: Ints = profiled.counts.sum(axis=1, keepdims=True)
        return by_row[:-1] if profiled.has_options else by_row[:0]

    def pop(self) -> Rounds[Found]:
        return (0, None) if self._engine is None else (yield from self._pop_largest(self._engine))

    def pop_unless(self, met: CarriedWords) -> Rounds[Found | None]:
        """Open with the bit if the next node has any option, unless this is public."""
        assert self._engine is not None
        if not self._nodes or not self._fields[self._first()]:
            is_met = yield from self._engine.all_met([met])
            return None if is_met else (yield from self._pop_largest(self._engine))
        is_met, candidate = yield from self._pop_first(self._engine, met)
        if is_met or candidate is not None:
            return None if is_met else (0, candidate)
        skipped, candidate = yield from self._pop_largest(self._engine)
        return 1 + skipped, candidate

    def follow(self, skipped: int, candidate: Candidate | None) -> bool:
        """Accept only the next candidate of the public order, after skipped nodes with options."""
        for _ in range(skipped):
            if not self._nodes or not self._nodes[self._first()].has_options:
                return False
            self._nodes.pop(self._first())
        if candidate is None or not self._nodes:
            return candidate is None and not self._nodes
        return self._place(candidate) == self._first() and self._removed(candidate)

    def _pop_largest(self, engine: Engine) -> Rounds[Found]:
        """Take the greatest public score. A node's turn opens if the node has any option."""
        skipped = 0
        while self._nodes:
            place = self._first()
            if not self._fields[place]:
                return skipped, self._candidate(engine.peer, place, 0)
            _, candidate = yield from self._pop_first(engine, None)
            if candidate is not None:
                return skipped, candidate
            skipped += 1
        return skipped, None

    def _pop_first(
        self, engine: Engine, unless: CarriedWords | None
    ) -> Rounds[tuple[bool, Candidate | None]]:
        """Open the option of the next node, if any; as :func:`open_unless`."""
        place, shown = self._first(), ("index", self._widths.index)
        met, best = yield from open_unless(engine, self._fields[place], [shown], unless)
        candidate = None if met else self._candidate(engine.peer, place, 0 if best is None else best["index"])
        return met, (None if best is None else candidate)

    def _first(self) -> int:
        """Return the place of the next node in order."""
        return min(range(len(self._nodes)), key=lambda i: self._rank(self._nodes[i]))

    def _rank(self, profiled: Profiled) -> tuple[int, ...]:
        unsplit = Candidate(profiled.column, profiled.node, ())
        return -self._sizes.score(unsplit), *unsplit.order

    def _enter(self, engine: Engine, chosen: Scored, fixed: Scored) -> Rounds[None]:
        """Enter the option to take; nodes with fixed children need no score."""
        if chosen:
            totals = [self._share_of(n.totals.sum(keepdims=True)) for n, _ in chosen]
            sides, points = self._sides(chosen, totals, 1)
            circuit = circuits.imbalance_circuit(self._widths.count, self._widths.index)
            outputs = yield from engine.run(circuit, sum(points), self._points(sides, points))
            options = {name: carried(outputs, name) for name in ("loss", "valid", "index")}
            better = circuits.better_split_circuit(self._widths.count + 1, self._widths.index)
            best = yield from engine.reduce(better, options, points)
            self._keep(chosen, {"valid": best["valid"], "index": best["index"]})
        self._nodes += [n for n, _ in fixed]
        self._fields += [{}] * len(fixed)


class JudgedGroupPool(Contested, GroupPool):
    """Pool with ``valid`` and ``index`` for every node: the first valid node in the public order is found inside."""

    def _rank(self, profiled: Profiled) -> tuple[int, ...]:
        return GroupPool._rank(self, profiled)

    def _group(self, profiled: Profiled) -> int:
        return 0  # ranks begin with sizes, not with columns

    def _better(self, slot_width: int) -> Circuit:
        return circuits.first_candidate_circuit(self._widths.index, slot_width)

    def _enter(self, engine: Engine, chosen: Scored, fixed: Scored) -> Rounds[None]:
        yield from super()._enter(engine, chosen, [])
        if fixed:
            outputs = yield from lifted(engine, self._widths.index, np.zeros(len(fixed), np.uint64))
            self._keep(fixed, {name: carried(outputs, name) for name in ("valid", "index")})


@dataclass(frozen=True)
class JointRecords(JointGroups, Records):
    """Score |T[v]| with the circuits of :class:`JointGroups`."""
