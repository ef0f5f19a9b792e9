"""Pools of public candidates: for every new node, the pair opens if the node is a candidate, and its split point.

A candidate has gain, and each child is empty or of an allowed size by itself. A circuit tests both conditions, and
only the conjunction is opened.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from anonymize.candidates import Prospect
from anonymize.criteria.criterion import Criterion
from anonymize.cut import Candidate, Order
from anonymize.joint.engine import Engine, Fields
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.judging import RuleTests, judged_beside
from anonymize.joint.lkc.scores.contest import Entrant
from anonymize.joint.lkc.scores.infogain import GainPool
from anonymize.joint.lkc.scores.score import (
    Bench,
    Profiled,
    Scored,
    all_valid,
    joined,
    opened_candidates,
)
from anonymize.score import impurity
from anonymize.scores.score import Known, Terms, Wanted
from anonymize.table import Ints
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords

K = TypeVar("K", bound=Known)
_SPLIT = "sealed/split"


@dataclass(frozen=True)
class Entered:
    """Candidate at one of the pair.

    totals:    class counts of its node, public: int64, shape (n_classes,).
    children:  own shares of the class counts of its children: uint64, shape (n_children, n_classes).
    loss:      Σ impurities of the children, a carried word.
    """

    candidate: Candidate
    totals: Ints = field(repr=False)
    children: Words = field(repr=False)
    loss: CarriedWords = field(repr=False)


class OpenedPool(GainPool, Generic[K]):
    """Pool of public candidates with scores inside circuits. K: the pair's knowledge of a candidate."""

    def __init__(self, bench: Bench, terms: Terms) -> None:
        """``terms``: of the requirement."""
        super().__init__(bench)
        self._asked = terms
        self._open: dict[Order, Candidate] = {}
        self._known: dict[Order, K] = {}

    def add(self, nodes: Sequence[Profiled], shares: Sequence[Words]) -> Rounds[Sequence[int]]:
        """Open the candidates among nodes and their split points in a batch."""
        if self._engine is None or not nodes:
            return ()
        every = list(zip(nodes, shares, strict=True))
        chosen = [(n, s) for n, s in every if n.has_options]
        fixed = [(n, s) for n, s in every if not n.has_options]
        splits, losses = yield from self._splits(self._engine, chosen, fixed)
        found: dict[Prospect, int] = {}
        for place, ((node, share), split) in enumerate(zip([*chosen, *fixed], splits, strict=True)):
            found[node.prospect] = split
            for candidate in opened_candidates([node], [split], self._engine.peer, _SPLIT):
                children = self._children(node, share, split)
                entered = Entered(candidate, node.totals, children, losses.take([place]))
                yield from self._enter_candidate(self._engine, entered)
        return [found[node.prospect] for node in nodes]

    def _splits(
        self, engine: Engine, chosen: Scored, fixed: Scored
    ) -> Rounds[tuple[list[int], CarriedWords]]:
        """Return 0 or the option of every node (1 for fixed children), nodes with options first, and the losses."""
        every = [*chosen, *fixed]
        totals = [self._share_of(n.totals) for n, _ in chosen]
        sides, points = self._sides(chosen, totals, self._schema.n_classes)
        tests, options_of = self._of_size(sides, points, chosen, fixed)
        losses = yield from self._losses(engine, sides, chosen, fixed)
        met, answers = yield from judged_beside(engine, tests, losses.asked)
        options = yield from losses.contenders(engine, answers)
        large = yield from self._large_enough(engine, met, options_of)
        best = yield from self._least(engine, (yield from options.with_bit(engine, "large", large)), "large")
        parents = np.array([int(impurity(n.totals)) for n, _ in every], dtype=np.int64).astype(np.uint64)
        circuit = circuits.admitted_circuit(self._widths.loss, self._widths.index)
        opened = yield from engine.run(circuit, len(every), {**best, "parent": parents.reshape(-1, 1)})
        flags, places = (np.asarray(opened[name]).reshape(-1).tolist() for name in ("valid", "index"))
        return [flag and 1 + place for flag, place in zip(flags, places, strict=True)], best["loss"]

    def _of_size(
        self, sides: Words, points: Sequence[int], chosen: Scored, fixed: Scored
    ) -> tuple[list[RuleTests], list[Ints]]:
        """Return the tests of the size of all children of every option, then of fixed children, and the owner of each
        test.

        The owners begin with each option once, for a bit with value 1.
        """
        by_option = [*sides.reshape(-1, 2, self._schema.n_classes)]
        columns = [n.column for (n, _), n_points in zip(chosen, points, strict=True) for _ in range(n_points)]
        by_option += [self._all_children(n, s) for n, s in fixed]
        columns += [n.column for n, _ in fixed]
        tests, owner = [], [np.arange(len(columns))]
        for criterion, options in self._judged(columns).items():
            sizes = [by_option[i].sum(axis=1, dtype=np.uint64) for i in options]
            owner.append(np.repeat(options, [len(of_children) for of_children in sizes]))
            words = np.concatenate(sizes).reshape(-1, 1)
            tests.append(RuleTests.of_rows(criterion.rule, self._widths.count, words))
        return tests, owner

    def _large_enough(
        self, engine: Engine, met: Sequence[CarriedWords], owner: Sequence[Ints]
    ) -> Rounds[CarriedWords]:
        """Tell if all children of each option have an allowed size, from the outcome of :meth:`_of_size`."""
        ones = yield from all_valid(engine, len(owner[0]))
        place = np.concatenate(owner)
        in_order = joined([ones, *met]).take(np.argsort(place, kind="stable"))
        all_met = yield from engine.reduce(
            circuits.both_circuit(), {"met": in_order}, np.bincount(place).tolist()
        )
        return all_met["met"]

    def _judged(self, columns: Sequence[int]) -> dict[Criterion, list[int]]:
        """Return the options judged by each criterion of size; columns: of every option."""
        found: dict[Criterion, list[int]] = {}
        for option, column in enumerate(columns):
            for criterion in self._asked.of_size[column]:
                found.setdefault(criterion, []).append(option)
        return found

    def _all_children(self, node: Profiled, share: Words) -> Words:
        """Return own shares of all children; the last child follows from the total."""
        last = self._share_of(node.totals) - share.sum(axis=0, dtype=np.uint64)
        return np.concatenate([share, last[None]])

    def _children(self, node: Profiled, share: Words, split: int) -> Words:
        """Return own shares of the children of a candidate."""
        if not node.has_options:
            return self._all_children(node, share)
        lefts, rights = node.sides(share, self._share_of(node.totals))
        return np.stack([lefts[split - 1], rights[split - 1]])

    @abstractmethod
    def _enter_candidate(self, engine: Engine, entered: Entered) -> Rounds[None]:
        """Take a candidate into the pool, at the pair."""

    def told(self, wanted: Sequence[Wanted], shares: Sequence[Words]) -> Rounds[None]:
        for each in wanted:
            self._open[each.candidate.order] = each.candidate
        if self._engine is not None and wanted:
            yield from self._renew(self._engine, wanted, shares)

    @abstractmethod
    def _renew(self, engine: Engine, wanted: Sequence[Wanted], shares: Sequence[Words]) -> Rounds[None]:
        """Store wanted sums at the pair; ``shares``: own shares, summed over the parties."""

    def follow(self, candidate: Candidate | None) -> bool:
        """Return True for an opened candidate, or if no candidate may be left to take."""
        return candidate is None or self._open.pop(candidate.order, None) == candidate

    def drop(self, applied: Candidate) -> None:
        self._open = {order: other for order, other in self._open.items() if not other.is_beside(applied)}
        self._known = {k: known for k, known in self._known.items() if not known.candidate.is_beside(applied)}

    def _pop_best(self, engine: Engine, unless: CarriedWords | None) -> Rounds[tuple[bool, Candidate | None]]:
        """Open the best candidate by a tournament in candidate order."""
        order = sorted(self._known)
        ranks = (yield from self._ranks(engine, [self._known[place] for place in order])) if order else []
        entrants = [Entrant(place, place[0], rank) for place, rank in zip(order, ranks, strict=True)]
        met, best = yield from self._contest.best(engine, entrants, (), unless)
        return met, (None if best is None else self._known.pop(order[best[0]]).candidate)

    @abstractmethod
    def _ranks(self, engine: Engine, every: Sequence[K]) -> Rounds[list[Fields]]:
        """Return the candidates' fields for the tournament."""
