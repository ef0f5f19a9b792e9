"""Scores in joint runs: their comparison inside the pair's circuits, and as fractions of which a maximum is found.

The candidates of a sealed run are nodes that everybody knows, with scores that stay inside the pair's circuits. Only
newly created nodes are scored; what was computed of the others is carried from iteration to iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from anonymize.candidates import Proposal, profile_length
from anonymize.cut import Candidate, interval_children
from anonymize.joint.engine import Engine, Fields, low_bits
from anonymize.joint.lkc.circuits import Widths
from anonymize.scores.score import Followed, Score, Wanted
from anonymize.table import Ints, Schema
from anonymize.taxonomy import Node
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, Value


@dataclass(frozen=True)
class Profiled:
    """A node that may become a candidate, with one party's own profile of it.

    totals:  its class counts in the union, which T_g makes public: int64, shape (n_classes,).
    """

    column: int
    node: Node
    counts: Ints
    totals: Ints


class Pool(Protocol):
    """Nodes that were not taken yet; one object per party, all in step."""

    def own_part(self, profiled: Profiled) -> Ints:
        """Our counts that decide about a node: those of every child or cell but the last, which follows."""
        ...

    def add(self, nodes: Sequence[Profiled], shares: Sequence[Words]) -> Rounds[Sequence[int]]:
        """Enter nodes; ``shares``: the pair's shares of :meth:`own_part`, summed over the parties.

        At the pair, where the score opens them, the place of each node's split as :func:`opened_candidates` reads it.
        """
        ...

    def told(self, wanted: Sequence[Wanted], shares: Sequence[Words]) -> Rounds[None]:
        """Take note of what was wanted; ``shares``: the pair's, summed over the parties."""
        ...

    def pop(self) -> Rounds[tuple[int, Candidate | None]]:
        """Take out the best candidate, with the number of intervals before it that turned out to be no candidates."""
        ...

    def follow(self, skipped: int, candidate: Candidate | None) -> bool:
        """Outside the pair: take out what the pair says it did; False if that cannot be."""
        ...


@dataclass(frozen=True)
class Bench:
    """What a pool of a sealed run works with at one party.

    engine:    of the pair; None at the others.
    followed:  what the score follows of T_g.
    """

    schema: Schema
    widths: Widths
    engine: Engine | None
    followed: Followed
    leads: bool


class JointScore(Score, Protocol):
    """A score that joint runs have, too."""

    def sealed(self, bench: Bench) -> Pool:
        """An empty pool of a sealed horizontal run."""
        ...

    def fraction_bits(self, schema: Schema, n_records: int) -> tuple[int, int]:
        """Bits of numerator and denominator of any candidate's score, from public bounds."""
        ...

    def fraction(self, best: Proposal, followed: Followed) -> tuple[int, int]:
        """A candidate's score as numerator and denominator: an owner's in a vertical run."""
        ...


class Nodes(ABC):
    """What pools have in common: nodes with carried words for each at the pair, and options to split them.

    An entry of a node has ``valid`` and ``index`` (of the best grid point) at least.
    """

    def __init__(self, bench: Bench) -> None:
        self._schema = bench.schema
        self._widths = bench.widths
        self._engine = bench.engine
        self._followed = bench.followed
        self._leads = bench.leads
        self._nodes: list[Profiled] = []
        self._fields: list[Fields] = []

    def told(self, wanted: Sequence[Wanted], shares: Sequence[Words]) -> Rounds[None]:
        raise ValueError("this score wants no sums")
        yield

    def add(self, nodes: Sequence[Profiled], shares: Sequence[Words]) -> Rounds[Sequence[int]]:
        if self._engine is None:
            self._nodes += nodes
            return ()
        every = list(zip(nodes, shares, strict=True))
        intervals = [(n, s) for n, s in every if self._is_interval(n)]
        fixed = [(n, s) for n, s in every if not self._is_interval(n)]
        yield from self._enter(self._engine, intervals, fixed)
        return ()

    @abstractmethod
    def _enter(self, engine: Engine, intervals: Scored, fixed: Scored) -> Rounds[None]:
        """Score nodes and enter them, intervals first."""

    def _keep(self, nodes: Scored, fields: Fields) -> None:
        """Enter scored nodes, an entry of each field for each."""
        for place, (node, _) in enumerate(nodes):
            self._nodes.append(node)
            self._fields.append({name: words.take([place]) for name, words in fields.items()})

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

    @staticmethod
    def _sides(intervals: Scored, totals: Sequence[Words], n_columns: int) -> tuple[Words, list[int]]:
        """Our shares of both sides of all grid points of all intervals, and how many points each has."""
        lefts = [np.cumsum(share, axis=0, dtype=np.uint64) for _, share in intervals]
        rights = [total - left for total, left in zip(totals, lefts, strict=True)]
        return _interleaved(lefts, rights, n_columns), [len(left) for left in lefts]

    def _share_of(self, public: Ints) -> Words:
        """Public counts as our share of them: the leader's."""
        return public.astype(np.uint64) if self._leads else np.zeros(len(public), dtype=np.uint64)

    def _points(self, sides: Words, points: Sequence[int]) -> dict[str, Value]:
        """Every grid point as circuits take it: the sizes of its sides, and its index."""
        sizes = low_bits(sides.sum(axis=1, dtype=np.uint64), self._widths.count).reshape(-1, 2)
        none = np.zeros(0, np.uint64)
        index = np.concatenate([none, *(np.arange(1, p + 1, dtype=np.uint64) for p in points)])
        return {"sides": sizes, "index": index.reshape(-1, 1)}


Scored = Sequence[tuple[Profiled, Words]]


def _interleaved(lefts: Sequence[Words], rights: Sequence[Words], n_columns: int) -> Words:
    """Left and right side of every grid point in turn; shape (2 · points, n_columns)."""
    none = np.zeros((0, n_columns), dtype=np.uint64)
    left, right = np.concatenate([none, *lefts]), np.concatenate([none, *rights])
    return np.stack([left, right], axis=1).reshape(-1, n_columns)


def joined(words: Sequence[CarriedWords]) -> CarriedWords:
    return CarriedWords.concatenate(words)


def opened_candidates(
    schema: Schema, nodes: Sequence[Profiled], splits: Sequence[int], sender: str, step: str
) -> list[Candidate]:
    """The candidates among new nodes, as they were opened.

    splits:  of each node, 0 for no candidate; of an interval how many of its cells are left, else 1.

    Raises RemoteProtocolError for a place that a node does not have.
    """
    found = []
    for profiled, split in zip(nodes, splits, strict=True):
        column, node = schema.qid[profiled.column], profiled.node
        if split >= (profile_length(column, node) if column.is_numeric else 2):
            raise RemoteProtocolError(sender, step, "a split that the node does not have")
        if split:
            children = interval_children(node, split) if column.is_numeric else column.children(node)
            found.append(Candidate(profiled.column, node, children))
    return found
