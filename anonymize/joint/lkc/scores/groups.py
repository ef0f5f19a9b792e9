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
from anonymize.joint.lkc.scores.score import (
    Bench,
    Contested,
    Nodes,
    Profiled,
    Scored,
    Turns,
    joined,
    lifted,
    opened_candidates,
)
from anonymize.joint.lkc.turns import RANKED_SPLITS, RankedTurns
from anonymize.scores.groups import Groups, GroupSizes, Records
from anonymize.table import Ints, Schema
from crypto.circuit import Circuit
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import expect_outcome


@dataclass(frozen=True)
class JointGroups(Groups):
    """Score `groups` with its circuits."""

    reveals: ClassVar[Mapping[str, Sequence[Allowed]]] = {"horizontal/sealed": (RANKED_SPLITS,)}

    def sealed(self, bench: Bench) -> Turns:
        return RankedTurns(GroupPool(bench), bench)

    def strict(self, bench: Bench) -> JudgedGroupPool:
        return JudgedGroupPool(bench)

    def fraction_bits(self, schema: Schema, n_records: int) -> tuple[int, int]:
        return (n_records**self.power).bit_length(), 1


class GroupNodes(Nodes):
    """Base of pools whose scores are public; ``valid`` and ``index`` for nodes with options."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        assert isinstance(bench.followed, GroupSizes)
        self._sizes = bench.followed

    def own_part(self, profiled: Profiled) -> Ints:
        by_row: Ints = profiled.counts.sum(axis=1, keepdims=True)
        return by_row[:-1] if profiled.has_options else by_row[:0]

    def _rank(self, profiled: Profiled) -> tuple[int, ...]:
        unsplit = Candidate(profiled.column, profiled.node, ())
        return -self._sizes.score(unsplit), *unsplit.order

    def _enter(self, engine: Engine, chosen: Scored, fixed: Scored) -> Rounds[None]:
        """Enter the option to take of the chosen; nodes with fixed children need no score."""
        if chosen:
            totals = [self._share_of(n.totals.sum(keepdims=True)) for n, _ in chosen]
            sides, points = self._sides(chosen, totals, 1)
            circuit = circuits.imbalance_circuit(self._widths.count, self._widths.index)
            outputs = yield from engine.run(circuit, sum(points), self._points(sides, points))
            options = {name: carried(outputs, name) for name in ("loss", "valid", "index")}
            better = circuits.better_split_circuit(self._widths.count + 1, self._widths.index)
            best = yield from engine.reduce(better, options, points)
            self._keep(chosen, {"valid": best["valid"], "index": best["index"]})


class GroupPool(GroupNodes):
    """Pool of public candidates: the pair opens if a new node has any option, and the option to take.

    The order of candidates follows from T_g.
    """

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._open: list[tuple[Profiled, Candidate]] = []

    def add(self, nodes: Sequence[Profiled], shares: Sequence[Words]) -> Rounds[Sequence[int]]:
        """Return the split of each node for :func:`opened_candidates`."""
        if self._engine is None:
            return ()
        yield from super().add(nodes, shares)
        entered, fields = self._nodes, self._fields
        self._nodes, self._fields = [], []
        splits = [1] * len(nodes)
        if entered:
            shown = circuits.open_circuit((("index", self._widths.index),))
            words = {name: joined([each[name] for each in fields]) for name in ("valid", "index")}
            outputs = yield from self._engine.run(shown, len(entered), words)
            flags, places = (np.asarray(outputs[name]).reshape(-1).tolist() for name in ("valid", "index"))
            for node, flag, place in zip(entered, flags, places, strict=True):
                option = 1 + expect_outcome(place, node.prospect.n_options, self._engine.peer)
                splits[_place_of(node, nodes)] = flag and option
        return splits

    def n_told(self, n_nodes: int) -> int:
        return n_nodes

    def enter(
        self, nodes: Sequence[Profiled], numbers: Sequence[int], sender: str, step: str
    ) -> list[Candidate]:
        found = opened_candidates(nodes, numbers, sender, step)
        taken = [node for node, split in zip(nodes, numbers, strict=True) if split]
        self._open += zip(taken, found, strict=True)
        return found

    def ranked(self) -> Sequence[Candidate]:
        return [candidate for _, candidate in sorted(self._open, key=lambda each: self._rank(each[0]))]

    def discard(self, candidate: Candidate) -> None:
        self._open = [each for each in self._open if each[1] != candidate]

    def drop(self, applied: Candidate) -> None:
        self._open = [each for each in self._open if not each[1].is_beside(applied)]


def _place_of(node: Profiled, nodes: Sequence[Profiled]) -> int:
    return next(i for i, each in enumerate(nodes) if each is node)


class JudgedGroupPool(Contested, GroupNodes):
    """Pool with ``valid`` and ``index`` for every node: the first valid node in the public order is found inside."""

    def _rank(self, profiled: Profiled) -> tuple[int, ...]:
        return GroupNodes._rank(self, profiled)

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
