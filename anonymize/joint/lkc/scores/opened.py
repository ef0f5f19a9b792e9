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
from anonymize.cut import Candidate, Order
from anonymize.joint.engine import Engine, Fields
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.judging import judged_beside
from anonymize.joint.lkc.scores.contest import Entrant
from anonymize.joint.lkc.scores.infogain import GainPool
from anonymize.joint.lkc.scores.score import (
    Bench,
    Profiled,
    Scored,
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
        sides, _ = self._sides(chosen, totals, self._schema.n_classes)
        losses = yield from self._losses(engine, sides, chosen, fixed, self._asked.of_size)
        met, answers = yield from judged_beside(engine, losses.tests, losses.asked)
        best = yield from self._least(engine, (yield from losses.contenders(engine, answers, met)), "large")
        parents = np.array([int(impurity(n.totals)) for n, _ in every], dtype=np.int64).astype(np.uint64)
        circuit = circuits.admitted_circuit(self._widths.loss, self._widths.index)
        opened = yield from engine.run(circuit, len(every), {**best, "parent": parents.reshape(-1, 1)})
        flags, places = (np.asarray(opened[name]).reshape(-1).tolist() for name in ("valid", "index"))
        return [flag and 1 + place for flag, place in zip(flags, places, strict=True)], best["loss"]

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
