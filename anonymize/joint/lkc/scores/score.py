"""Scores in joint runs: comparison inside the pair's circuits, and as fractions for a maximum.

The candidates of a sealed run are public nodes with scores inside the pair's circuits. Only new nodes are scored;
results for other nodes are carried from iteration to iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from anonymize.candidates import Prospect
from anonymize.cut import Candidate, Cut
from anonymize.joint.disclosure import Allowed, RevealLedger
from anonymize.joint.engine import Engine, Fields, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.circuits import Widths
from anonymize.joint.lkc.scores.contest import Contest, Entrant
from anonymize.joint.messages import opened_candidate
from anonymize.joint.pair import Pair
from anonymize.scores.score import Followed, Score, Wanted
from anonymize.table import Ints, Schema
from anonymize.taxonomy import Node
from crypto.circuit import Circuit
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, Outputs, Value, expect_outcome


@dataclass(frozen=True)
class Profiled:
    """Possible candidate with a party's own profile.

    totals:  class counts of its node in the union, public by T_g: int64, shape (n_classes,).
    """

    prospect: Prospect
    counts: Ints = field(repr=False)
    totals: Ints = field(repr=False)

    @property
    def column(self) -> int:
        return self.prospect.column

    @property
    def node(self) -> Node:
        return self.prospect.node

    @property
    def has_options(self) -> bool:
        """True if the children are yet to be chosen."""
        return self.prospect.n_options > 0

    def sides(self, share: Words, total: Words) -> tuple[Words, Words]:
        """Return shares of both children of every option, from shares of all parts but the last and of the node.

        share, total:  shape (n_parts - 1, n_columns) and (n_columns,).
        """
        last = total - share.sum(axis=0, dtype=np.uint64)
        lefts = self.prospect.lefts(np.concatenate([share, last[None]]))
        return lefts, total - lefts


Prepare: TypeAlias = Callable[[Sequence[Candidate]], Rounds[None]]
"""Prepares for any of some public candidates to be judged."""


class Pool(Protocol):
    """Pool of prospects that were not taken yet. Each party has a pool, and all keep in step."""

    def own_part(self, profiled: Profiled) -> Ints:
        """Return own deciding counts of a prospect: all parts but the last, which follows."""
        ...

    def add(self, nodes: Sequence[Profiled], shares: Sequence[Words]) -> Rounds[Sequence[int]]:
        """Enter nodes; ``shares``: the pair's shares of :meth:`own_part`, summed over the parties.

        Returns, at the pair, the opened numbers: if the score opens split points, the split of each node for
        :func:`opened_candidates`.
        """
        ...

    def told(self, wanted: Sequence[Wanted], shares: Sequence[Words]) -> Rounds[None]:
        """Store wanted sums; ``shares``: the pair's shares, summed over the parties."""
        ...

    def drop(self, applied: Candidate) -> None:
        """Remove entries of a specialized node, which is no longer in the cut."""
        ...


class ContestPool(Pool, Protocol):
    """Pool that opens its best candidate alone."""

    def pop(self) -> Rounds[Candidate | None]:
        """Take out the best candidate, at the pair."""
        ...

    def pop_unless(self, met: CarriedWords) -> Rounds[tuple[bool, Candidate | None]]:
        """Open a bit at the pair. If it is 0, also remove and return the best candidate."""
        ...

    def follow(self, candidate: Candidate | None) -> bool:
        """Remove the pair's announced candidate, outside the pair. Return False for an impossible candidate."""
        ...


class RankedPool(Pool, Protocol):
    """Pool of candidates in an order that all parties know."""

    def n_told(self, n_nodes: int) -> int:
        """Return the length of what :meth:`add` returns for so many nodes."""
        ...

    def enter(
        self, nodes: Sequence[Profiled], numbers: Sequence[int], sender: str, step: str
    ) -> list[Candidate]:
        """Enter the candidates among new nodes, by the opened numbers, at every party; return them.

        Raises RemoteProtocolError for numbers that no run opens.
        """
        ...

    def ranked(self) -> Sequence[Candidate]:
        """Return all candidates, the best first."""
        ...

    def discard(self, candidate: Candidate) -> None:
        """Remove a candidate that is not valid."""
        ...


class Turns(Protocol):
    """Turns of the candidates at a party (:mod:`anonymize.joint.lkc.turns`)."""

    @property
    def pool(self) -> Pool: ...

    def enter(
        self, nodes: Sequence[Profiled], parts: Sequence[Words], prepare: Prepare
    ) -> Rounds[Sequence[Candidate]]:
        """Enter nodes, and prepare for the public candidates among them. Return the public candidates; without open
        splits, of every interval the candidate of all its cells.

        parts:  at the pair, shares of :meth:`Pool.own_part`.
        """
        ...

    def next(self, cut: Cut) -> Rounds[Sequence[Candidate]]:
        """Return the candidates whose turns come next, in order, as far as all know them; none: no candidate is
        left.
        """
        ...

    def decide(self, n_asked: int, met: Sequence[CarriedWords]) -> Rounds[int]:
        """Open the number of next candidates before the first valid one, and take them out.

        met:  at the pair, a bit for each judged candidate: 1 if it is valid.
        """
        ...


@dataclass(frozen=True)
class Bench:
    """Tools of a pool of a sealed run at a party.

    n_records:  of all parties together.
    followed:   figures of T_g for the score.
    """

    schema: Schema
    n_records: int
    widths: Widths
    pair: Pair
    followed: Followed
    ledger: RevealLedger


class JointScore(Score, Protocol):
    """Score that joint runs also have.

    reveals:  further reveals of a joint run with this score, by mode.
    """

    @property
    def reveals(self) -> Mapping[str, Sequence[Allowed]]: ...

    def sealed(self, bench: Bench) -> Turns:
        """Return the turns of a sealed horizontal run, with an empty pool."""
        ...

    def fraction_bits(self, schema: Schema, n_records: int) -> tuple[int, int]:
        """Return the bits of numerator and denominator of the best candidate's score, from public bounds."""
        ...


class JudgedPool(ContestPool, Protocol):
    """Nodes whose candidates are all judged before the best valid one is taken (`disclosure: strict`)."""

    def words(self, name: str, nodes: Sequence[Profiled]) -> CarriedWords:
        """Return ``valid`` or ``index`` of entered nodes at the pair, a word for each."""
        ...

    def judge(self, nodes: Sequence[Profiled], valid: CarriedWords) -> None:
        """Update the valid candidates among the nodes at the pair, by a bit for each."""
        ...


@runtime_checkable
class StrictScore(JointScore, Protocol):
    """Score that opens nothing about a candidate before its turn."""

    def strict(self, bench: Bench) -> JudgedPool:
        """Return an empty pool of a strict horizontal run."""
        ...


class Nodes(ABC):
    """Base of pools: nodes with carried words for each at the pair, and options to split them.

    An entry of a node has at least ``valid`` and ``index`` (of the best grid point).
    """

    def __init__(self, bench: Bench) -> None:
        self._schema = bench.schema
        self._widths = bench.widths
        self._engine = bench.pair.engine
        self._followed = bench.followed
        self._leads = bench.pair.roster.leads
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
        chosen = [(n, s) for n, s in every if n.has_options]
        fixed = [(n, s) for n, s in every if not n.has_options]
        yield from self._enter(self._engine, chosen, fixed)
        return ()

    @abstractmethod
    def _enter(self, engine: Engine, chosen: Scored, fixed: Scored) -> Rounds[None]:
        """Score nodes and enter them, nodes with open choice of children first."""

    def _keep(self, nodes: Scored, fields: Fields) -> None:
        """Enter scored nodes, an entry of each field for each."""
        for place, (node, _) in enumerate(nodes):
            self._nodes.append(node)
            self._fields.append({name: words.take([place]) for name, words in fields.items()})

    def words(self, name: str, nodes: Sequence[Profiled]) -> CarriedWords:
        return joined([self._fields[self._place_of(node)][name] for node in nodes])

    def judge(self, nodes: Sequence[Profiled], valid: CarriedWords) -> None:
        for number, node in enumerate(nodes):
            place = self._place_of(node)
            self._fields[place] = {**self._fields[place], "valid": valid.take([number])}

    def _place_of(self, profiled: Profiled) -> int:
        return next(i for i, node in enumerate(self._nodes) if node is profiled)

    def drop(self, applied: Candidate) -> None:
        gone = {i for i, n in enumerate(self._nodes) if (n.column, n.node) == (applied.column, applied.node)}
        self._nodes = [node for i, node in enumerate(self._nodes) if i not in gone]
        self._fields = [fields for i, fields in enumerate(self._fields) if i not in gone]

    def _removed(self, candidate: Candidate) -> bool:
        """Remove a candidate's node; return False if the pool lacks it."""
        place = self._place(candidate)
        if place is not None:
            self._nodes.pop(place)
        return place is not None

    def _place(self, candidate: Candidate) -> int | None:
        return next((i for i, node in enumerate(self._nodes) if node.prospect.admits(candidate)), None)

    def _candidate(self, peer: str, place: int, index: int) -> Candidate:
        """Remove a node from the pool and return its candidate, as opened with ``peer``.

        Raises RemoteProtocolError for a missing node or grid point.
        """
        profiled = self._nodes.pop(expect_outcome(place, len(self._nodes), peer))
        self._fields.pop(place)
        return opened_candidate(profiled.prospect, 1 + index, peer)

    @staticmethod
    def _sides(chosen: Scored, totals: Sequence[Words], n_columns: int) -> tuple[Words, list[int]]:
        """Return own shares of both sides of all nodes' options, and the number of options of each node."""
        sides = [node.sides(share, total) for (node, share), total in zip(chosen, totals, strict=True)]
        return _interleaved(sides, n_columns), [node.prospect.n_options for node, _ in chosen]

    def _share_of(self, public: Ints) -> Words:
        """Return the own share of public counts: the leader has the counts, the deputy 0."""
        return public.astype(np.uint64) if self._leads else np.zeros(len(public), dtype=np.uint64)

    def _points(self, sides: Words, points: Sequence[int]) -> dict[str, Value]:
        """Return every option as circuit input: the sizes of its sides, and its index."""
        sizes = low_bits(sides.sum(axis=1, dtype=np.uint64), self._widths.count).reshape(-1, 2)
        return {"sides": sizes, "index": _places(points).reshape(-1, 1)}


class Contested(Nodes):
    """Base of pools with a tournament for the best candidate: nobody learns any other candidate.

    Every entry has all fields of the tournament.
    """

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._contest = Contest(self._better)

    @abstractmethod
    def _rank(self, profiled: Profiled) -> tuple[int, ...]:
        """Return the public rank that breaks ties of the tournament: the least rank wins."""

    def _group(self, profiled: Profiled) -> int:
        """Return the node's group in the tournament, which ascends with the rank."""
        return profiled.column

    @abstractmethod
    def _better(self, slot_width: int) -> Circuit:
        """Return the circuit that picks the better of two candidates; the first has the lower rank."""

    def pop(self) -> Rounds[Candidate | None]:
        return None if self._engine is None else (yield from self._pop_best(self._engine, None))[1]

    def pop_unless(self, met: CarriedWords) -> Rounds[tuple[bool, Candidate | None]]:
        assert self._engine is not None
        return (yield from self._pop_best(self._engine, met))

    def follow(self, candidate: Candidate | None) -> bool:
        """Return True for a node that is still in the pool, or if no valid candidate may be left."""
        return candidate is None or self._removed(candidate)

    def _pop_best(self, engine: Engine, unless: CarriedWords | None) -> Rounds[tuple[bool, Candidate | None]]:
        """Open the best valid candidate; see :class:`Contest`."""
        order = sorted(range(len(self._nodes)), key=lambda i: self._rank(self._nodes[i]))
        each = ((self._nodes[i], self._fields[i]) for i in order)
        entrants = [Entrant(node.prospect, self._group(node), fields) for node, fields in each]
        met, best = yield from self._contest.best(engine, entrants, [("index", self._widths.index)], unless)
        if best is None:
            return met, None
        place, opened = best
        return met, self._candidate(engine.peer, order[place], opened["index"])


Scored = Sequence[tuple[Profiled, Words]]


def _interleaved(sides: Sequence[tuple[Words, Words]], n_columns: int) -> Words:
    """Return the left and right side of every option in turn; shape (2 · options, n_columns)."""
    none = np.zeros((0, n_columns), dtype=np.uint64)
    left = np.concatenate([none, *(left for left, _ in sides)])
    right = np.concatenate([none, *(right for _, right in sides)])
    return np.stack([left, right], axis=1).reshape(-1, n_columns)


def _places(points: Sequence[int]) -> Words:
    """Return the places of all options of each node: 0, 1, … for each; shape (n_options,)."""
    none = np.zeros(0, np.uint64)
    return np.concatenate([none, *(np.arange(n, dtype=np.uint64) for n in points)])


def lifted(engine: Engine, index_width: int, index: Words) -> Rounds[Outputs]:
    """Return carried words ``valid``, always 1, and ``index``, as given; 0 for candidates with fixed children."""
    inputs = {"present": np.ones((len(index), 1), np.uint64), "index": index.reshape(-1, 1)}
    return (yield from engine.run(circuits.lift_circuit(index_width), len(index), inputs))


def all_valid(engine: Engine, n: int) -> Rounds[CarriedWords]:
    """Return n carried bits that are always 1."""
    return carried((yield from lifted(engine, 1, np.zeros(n, np.uint64))), "valid")


def joined(words: Sequence[CarriedWords]) -> CarriedWords:
    return CarriedWords.concatenate(words)


def finest_of(nodes: Sequence[Profiled]) -> list[Candidate]:
    """Return the candidates of nodes with fixed children, and of every interval the candidate of all its cells."""
    return [finest for node in nodes if (finest := node.prospect.finest) is not None]


def opened_candidates(
    nodes: Sequence[Profiled], splits: Sequence[int], sender: str, step: str
) -> list[Candidate]:
    """Return the candidates among new prospects, as opened.

    splits:  of each prospect: 0 for no candidate; the chosen option, 1 for fixed children.

    Raises RemoteProtocolError for an option that the node lacks.
    """
    found = []
    for profiled, split in zip(nodes, splits, strict=True):
        if split > max(1, profiled.prospect.n_options):
            raise RemoteProtocolError(sender, step, "a split that the node does not have")
        if split:
            found.append(profiled.prospect.specialized(split))
    return found
