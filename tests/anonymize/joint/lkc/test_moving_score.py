"""The shape of scores: one that is not offered, whose every turn wants sums over the holders, as files to add.

It recounts InfoGain before every choice instead of keeping it, so that its runs must be those of InfoGain: in one
hand, under a leader, and inside the circuits of the compute pair, none of which knows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from anonymize.candidates import Fixed, Proposal, prospects
from anonymize.cut import Candidate, Order
from anonymize.joint.columns import Columns
from anonymize.joint.disclosure import Allowed
from anonymize.joint.engine import Engine, opened
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.led import anonymize_led
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.joint.lkc.scores.infogain import GainPool, JointInfoGain
from anonymize.joint.lkc.scores.score import Bench, Profiled, Turns, opened_candidates
from anonymize.joint.lkc.sealed import anonymize_sealed
from anonymize.joint.lkc.turns import OpenedTurns
from anonymize.joint.lkc.winner import Maximum, OpenMaximum, SealedMaximum
from anonymize.joint.roster import Roster
from anonymize.lkc.single import anonymize_single
from anonymize.partition import GeneralizedTable, Refinement
from anonymize.score import impurity
from anonymize.scores.score import CandidatePool, Followed, Ranked, Terms, Wanted
from anonymize.table import CodedTable, Ints, Schema
from crypto.encoding import Words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import run_local
from crypto.rounds import Rounds
from tests.support.entries import lkc
from tests.support.horizontal import small_case
from tests.support.rng import SeededRng
from tests.support.scores import PUBLISHED
from tests.support.vertical import cut_by_columns, run_vertical

COUNTS = "context_counts"


class Classes:
    """The class counts of every child but the last, wanted of every candidate whenever there are new ones."""

    def __init__(self, schema: Schema, table: GeneralizedTable) -> None:
        self._schema = schema
        self.table = table
        self._asked: set[Candidate] = set()

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> int:
        self.table = refinement.table
        self._asked = set()
        return 0

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        if self._asked >= set(candidates):
            return []
        self._asked = set(candidates)
        return [self._wanted(candidate) for candidate in candidates]

    def _wanted(self, candidate: Candidate) -> Wanted:
        entries = self.table.entries_of(candidate)
        classes = np.unravel_index(self.table.cell[entries], self._schema.cell_shape)[0]

        def sums(counts: Ints) -> Ints:
            by_child = np.zeros((counts.shape[1] - 1, self._schema.n_classes), dtype=np.int64)
            np.add.at(by_child.T, classes, counts[:, :-1])
            return by_child

        totals = self.totals(candidate)
        return Wanted(candidate, COUNTS, entries, lambda counts: sums(counts)[None], totals[None])

    def totals(self, candidate: Candidate) -> Ints:
        return self.table.class_counts(candidate.column, candidate.node.first, self._schema)


class Recounting:
    """Candidates are the nodes with gain; what a gain is, every turn says anew."""

    def __init__(self, followed: Classes) -> None:
        self._classes = followed
        self._told: dict[Order, Ranked] = {}

    def add(self, proposal: Proposal) -> bool:
        return proposal.gain > 0

    def told(self, wanted: Wanted, sums: Ints) -> None:
        totals = self._classes.totals(wanted.candidate)
        children = np.concatenate([sums[0], totals - sums[0].sum(axis=0, keepdims=True)])
        gain = int(impurity(totals) - impurity(children).sum())
        self._told[wanted.candidate.order] = Ranked(wanted.candidate, gain, int(totals.sum()))

    def best(self) -> Ranked | None:
        ranked = [(-Fraction(r.numerator, r.denominator), order) for order, r in self._told.items()]
        return self._told[min(ranked)[1]] if ranked else None

    def pop(self) -> Candidate | None:
        best = self.best()
        return None if best is None else self._told.pop(best.candidate.order).candidate

    def ahead(self, most: int) -> list[Candidate]:
        best = self.best()
        return [] if best is None else [best.candidate]

    def drop(self, applied: Candidate) -> None:
        """No node of these tables has two candidates."""


class SealedRecounting(GainPool):
    """Opens who is a candidate, and where it is split; keys are made of the sums of every turn."""

    _followed: Classes

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._open: dict[Order, Candidate] = {}

    def add(self, nodes: Sequence[Profiled], shares: Sequence[Words]) -> Rounds[Sequence[int]]:
        if self._engine is None:
            return ()
        yield from super().add(nodes, shares)
        splits = []
        for node in nodes:
            split = yield from self._opened_split(self._engine, node)
            for candidate in opened_candidates([node], [split], "", ""):
                self._open[candidate.order] = candidate
            splits.append(split)
        self._nodes, self._fields = [], []
        return splits

    def _opened_split(self, engine: Engine, node: Profiled) -> Rounds[int]:
        fields = self._fields[[n is node for n in self._nodes].index(True)]
        circuit = circuits.open_circuit((("index", self._widths.index),))
        taken = {"valid": fields["valid"], "index": fields["index"]}
        outputs = yield from engine.run(circuit, 1, taken)
        if not opened(outputs, "valid"):
            return 0
        return 1 + opened(outputs, "index")

    def told(self, wanted: Sequence[Wanted], shares: Sequence[Words]) -> Rounds[None]:
        if self._engine is None:
            return
        candidates = [each.candidate for each in wanted]
        totals = [self._followed.totals(candidate) for candidate in candidates]
        ways = [Fixed(c.column, c.node, c.children) for c in candidates]
        nodes = [Profiled(way, t, t) for way, t in zip(ways, totals, strict=True)]
        self._nodes, self._fields = [], []
        yield from self._enter(self._engine, [], [(n, s[0]) for n, s in zip(nodes, shares, strict=True)])

    def follow(self, candidate: Candidate | None) -> bool:
        return True

    def _candidate(self, peer: str, place: int, index: int) -> Candidate:
        taken = self._nodes.pop(place)
        self._fields.pop(place)
        (chosen,) = [
            other for other in self._open.values() if (other.column, other.node) == (taken.column, taken.node)
        ]
        return self._open.pop(chosen.order)


@dataclass(frozen=True)
class Recounted(JointInfoGain):
    """InfoGain, counted anew in every turn."""

    reveals: ClassVar[Mapping[str, Sequence[Allowed]]] = JointAdded.reveals
    wants_sums: ClassVar[bool] = True
    follows_partitions: ClassVar[bool] = True

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> Followed:
        return Classes(schema, table)

    def pool(self, followed: Followed) -> CandidatePool:
        assert isinstance(followed, Classes)
        return Recounting(followed)

    def sealed(self, bench: Bench) -> Turns:
        return OpenedTurns(SealedRecounting(bench), bench)


L_AND_K = [(2, 2), (2, 6), (1, 3)]


def run_jointly(level: str, tables: Sequence[CodedTable], request: Request) -> dict[str, JointOutcome]:
    names = tuple(f"p{i}" for i in range(len(tables)))
    run, ends = {"leader": (anonymize_led, ("p0",)), "sealed": (anonymize_sealed, ("p0", "p1"))}[level]
    parties = {
        me: run(Roster(me, names, *ends), table, request, SeededRng(me), mode=f"horizontal/{level}")
        for me, table in zip(names, tables, strict=True)
    }
    return run_local(parties)[0]


def cases() -> Iterator[tuple[list[CodedTable], Request, Request]]:
    for l_, k in L_AND_K:
        tables, request = small_case()
        usual = replace(request, requirement=lkc(l_, k), goal=PUBLISHED["classification"])
        yield tables, usual, replace(usual, goal=Recounted())


def whole_of(tables: Sequence[CodedTable]) -> CodedTable:
    first = tables[0]
    qid = tuple(np.concatenate([t.qid[i] for t in tables]) for i in range(len(first.qid)))
    cells, weights = (np.concatenate([getattr(t, name) for t in tables]) for name in ("cells", "weights"))
    return CodedTable(first.schema, qid, cells, weights)


def test_one_holder_recounts() -> None:
    for tables, usual, moving in cases():
        whole = whole_of(tables)
        expected = anonymize_single(whole, usual.requirement, usual.goal)
        found = anonymize_single(whole, moving.requirement, moving.goal)
        assert found == expected
        assert found.applied


@pytest.mark.some(1)
@pytest.mark.parametrize("level", ["leader", "sealed"])
def test_parties_recount(level: str) -> None:
    for tables, usual, moving in cases():
        expected = anonymize_single(whole_of(tables), usual.requirement, usual.goal)
        results = run_jointly(level, tables, moving)
        for result in results.values():
            assert [(s.candidate, s.applied) for s in result.outcome.steps] == [
                (s.candidate, s.applied) for s in expected.steps
            ]
            assert result.ledger.reveals == results["p0"].ledger.reveals
        told = [(reveal.name, reveal.to) for reveal in results["p0"].ledger.reveals]
        assert told.count(("split", "all")) == 1 + len(expected.applied)
        n_changes = len(expected.applied) if level == "leader" else -1  # a sealed run opens no sum
        assert told.count((COUNTS, "leader")) in (n_changes, n_changes + 1)


@pytest.mark.some(1)
@pytest.mark.parametrize("maximum", [SealedMaximum, OpenMaximum])
def test_owners_recount(maximum: type[Maximum]) -> None:
    """Nothing is opened for it: the owner of a column knows what is wanted."""
    for tables, usual, moving in cases():
        cut = cut_by_columns(whole_of(tables), Columns(("a", "b"), ("b",)), ["a", "b"], strangers=2)
        expected, _ = run_vertical(cut, usual, maximum=maximum)
        found, _ = run_vertical(cut, moving, maximum=maximum)
        for me, result in found.items():
            assert result.outcome == expected[me].outcome
            assert result.ledger.reveals == expected[me].ledger.reveals


@pytest.mark.parametrize("level", ["leader", "sealed"])
def test_what_no_list_allows_stops_the_run(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recounted, "reveals", {})
    tables, request = small_case()
    with pytest.raises(LocalProtocolError, match="split to all is not on the mode's list"):
        run_jointly(level, tables, replace(request, goal=Recounted()))


def test_a_split_that_a_node_does_not_have_is_refused() -> None:
    schema = small_case()[1].schema
    none = np.zeros(0, dtype=np.int64)
    nodes = [
        Profiled(prospect, none, none)
        for number, column in enumerate(schema.qid)
        for prospect in prospects(number, column, column.root, each_child=True)
    ]
    assert [c.column for c in opened_candidates(nodes, [1, 7], "p", "s")] == [0, 1]
    assert [c.column for c in opened_candidates(nodes, [0, 1], "p", "s")] == [1]
    for splits in ([2, 1], [1, 8]):
        with pytest.raises(RemoteProtocolError) as caught:
            opened_candidates(nodes, splits, "p", "s")
        assert (caught.value.culprit, caught.value.step) == ("p", "s")
