"""Counts shared before a candidate is taken: of each entry once, and whole whenever a candidate is judged."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from anonymize.candidates import Prospects
from anonymize.cut import Candidate, Order, top
from anonymize.joint.lkc import sealed
from anonymize.joint.lkc.ahead import Ahead
from anonymize.joint.lkc.opened_table import OpenedTable
from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.linked_columns import Blocks, counted_blocks
from anonymize.table import CodedTable
from tests.support import jobs
from tests.support.blocks import job_of, rows_of
from tests.support.horizontal import run_sealed, small_case, small_lkc
from tests.support.scores import PUBLISHED

PAIR = (("disease", "treatment"), ("end",))


def opened(linked: Blocks) -> tuple[CodedTable, OpenedTable]:
    """Return a table, and its view at its only holder."""
    table = jobs.coded(jobs.bundle_of(job_of({"C": "0.7"}, method=None, goal=None)), rows_of(160, 5))
    told = OpenedTable(table.schema, counted_blocks(table.schema, linked), table)
    told.start(told.own_root)
    return table, told


@pytest.mark.parametrize("linked", [(), PAIR])
def test_counts_are_whole_at_any_time_and_each_is_shared_once(linked: Blocks) -> None:
    coins = np.random.default_rng(3)
    table, told = opened(linked)
    ahead, cut = Ahead(), top(table.schema)
    prospects = Prospects(table.schema, each_child=False)
    given: set[tuple[Order, int]] = set()

    def possible() -> list[Candidate]:
        return [
            way.specialized(max(1, way.n_options // 2))
            for column, nodes in enumerate(cut.nodes)
            for node in nodes
            for way in prospects.of(column, node)
        ]

    n_shared, n_whole = 0, 0
    while candidates := [each for each in possible() if len(told.stamps(each))]:
        for candidate in coins.permutation(np.array(candidates, dtype=object))[: 1 + len(candidates) // 2]:
            stamps = told.stamps(candidate)
            missing = ahead.missing(candidate, stamps)
            (own,) = told.own_counts_of_each([(candidate, missing)])
            fresh = {(candidate.order, stamp) for stamp in stamps[missing].tolist()}
            assert not fresh & given
            given |= fresh
            share = own[:, :-1].astype(np.uint64)
            counts = ahead.whole(candidate, stamps, missing, share)
            assert counts.tolist() == told.own_counts(candidate)[:, :-1].tolist()
            ahead.put(candidate, stamps, missing, share)
            assert not ahead.missing(candidate, stamps).any()
            n_shared, n_whole = n_shared + missing.sum(), n_whole + len(missing)
        applied = candidates[int(coins.integers(len(candidates)))]
        told.refine(applied, told.own_counts(applied))
        cut = cut.specialized(applied)
        ahead.drop(applied)
    assert 0 < n_shared < 0.9 * n_whole


@pytest.mark.parametrize("linked", [(), PAIR])
def test_counts_of_all_parts_serve_any_option(linked: Blocks) -> None:
    """Before and after a specialization, when some entries are shared anew."""
    table, told = opened(linked)
    ahead, cut = Ahead(), top(table.schema)
    prospects = Prospects(table.schema, each_child=True)
    n_options, n_kept = 0, 0
    for _ in range(4):
        ways = [
            way
            for column, nodes in enumerate(cut.nodes)
            for node in nodes
            for way in prospects.of(column, node)
        ]
        for way in ways:
            finest = way.finest
            assert finest is not None
            stamps = told.stamps(finest)
            missing = ahead.missing(finest, stamps)
            (own,) = told.own_counts_of_each([(finest, missing)])
            ahead.put(finest, stamps, missing, own[:, :-1].astype(np.uint64))
            n_kept += np.count_nonzero(~missing)
            for option in range(1, 1 + max(1, way.n_options)):
                candidate = way.specialized(option)
                assert candidate.order == finest.order
                none = ahead.missing(candidate, stamps)
                assert not none.any()
                nothing = np.zeros((0, len(candidate.children) - 1), dtype=np.uint64)
                counts = ahead.whole(candidate, stamps, none, nothing)
                assert counts.tolist() == told.own_counts(candidate)[:, :-1].tolist()
                n_options += option > 1
        applied = max((way.specialized(1) for way in ways), key=lambda each: len(told.stamps(each)))
        told.refine(applied, told.own_counts(applied))
        cut = cut.specialized(applied)
        ahead.drop(applied)
    assert n_options > 0
    assert n_kept > 0


def test_a_judged_candidate_is_forgotten() -> None:
    _, told = opened(())
    (way, *_) = Prospects(told.schema, each_child=False).of(0, top(told.schema).nodes[0][0])
    candidate, ahead = way.specialized(1), Ahead()
    stamps = told.stamps(candidate)
    ahead.put(candidate, stamps, np.ones(len(stamps), dtype=bool), None)
    assert not ahead.missing(candidate, stamps).any()
    ahead.discard(candidate)
    assert ahead.missing(candidate, stamps).all()


@pytest.mark.parametrize("goal", [JointAdded(per_class=1), PUBLISHED["classification"], PUBLISHED["general"]])
def test_nobody_waits_for_counts_of_a_candidate(goal: JointScore, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a discarded candidate the next verdict takes two messages of the pair, and none of the third party, also
    if the split of an interval was not public.
    """
    monkeypatch.setattr(sealed, "MOST_TESTS", 0)  # one candidate at a time
    tables, request = small_case()
    harder = replace(request, goal=goal, requirement=small_lkc(2, 2, Fraction(1, 2)))
    results, transcript = run_sealed(tables, harder)
    steps = results["p0"].outcome.steps
    verdicts = [i for i, m in enumerate(transcript.messages) if (m.step, m.sender) == ("sealed/valid", "p1")]
    assert len(verdicts) == len(steps)
    n_judged = 0
    for (one, other), step in zip(pairwise(verdicts), steps, strict=False):
        if not step.applied:
            between = transcript.messages[one : other + 1]
            assert "p2" not in {message.sender for message in between}
            assert between[-1].depth - between[0].depth == 2
            n_judged += 1
    assert n_judged > 1


def test_counts_of_many_cells_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is the same, in more rounds; with two parties nothing is shared ahead."""
    tables, request = small_case()
    harder = replace(request, requirement=small_lkc(2, 2, Fraction(1, 2)))
    results, transcript = run_sealed(tables, harder)
    monkeypatch.setattr(sealed, "MOST_AHEAD", 0)
    waiting, longer = run_sealed(tables, harder)
    assert waiting["p0"].outcome.steps == results["p0"].outcome.steps
    n_discarded = sum(not step.applied for step in results["p0"].outcome.steps)
    assert 1 < n_discarded <= longer.rounds - transcript.rounds + 1
    assert longer.bytes_sent("p2") < transcript.bytes_sent("p2")
    monkeypatch.undo()
    monkeypatch.setattr(Ahead, "put", None)
    run_sealed(tables[:2], harder)
