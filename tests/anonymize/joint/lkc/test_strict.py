"""Strict horizontal LKC: the single holder's table, and nothing opened that does not follow from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.candidates import profile_length
from anonymize.criteria.size import Size
from anonymize.cut import top
from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_counts, release_of_rows
from anonymize.table import MAX_RECORDS, CodedTable, Schema, coded_table, joined
from anonymize.taxonomy import Node
from anonymize.tds import Outcome
from crypto.circuit import Held, To
from crypto.local import Transcript
from tests.support import jobs
from tests.support.computations import Computed, watched
from tests.support.entries import asked_lists, lkc
from tests.support.examples import examples
from tests.support.horizontal import (
    Revealed,
    expect_bytes_of_the_pair,
    flat_case,
    greatest_tables,
    numeric_column,
    recorded,
    regeneralized,
    run_sealed,
    run_strict,
    small_case,
    small_lkc,
    whole_of,
)
from tests.support.look_ups import look_up_rounds
from tests.support.replay import Places, Released, Told, told_by
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases, dealt
from tests.support.vectors import Golden


def expect_same(results: Mapping[str, JointOutcome], outcome: Outcome, whole: CodedTable) -> None:
    """Every party has the single holder's specializations, in order, and rows; of discarded ones nobody has any."""
    rows = jobs.multiset(release_of_rows(whole, outcome.cut))
    for result in results.values():
        assert [step.candidate for step in result.outcome.steps] == list(outcome.applied)
        joint = release_of_counts(result.outcome.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == rows
        assert result.ledger.reveals == results["p0"].ledger.reveals


def most_rounds(result: JointOutcome, transcript: Transcript, n: int) -> int:
    """Return the rounds that the docstring promises of jobs whose batches are all under way at once."""
    base, per_applied = (12, 8) if n == 2 else (15, 10)
    asked = sum(reveal.name == "only_child" for reveal in result.ledger.reveals)
    usual = base + per_applied * len(result.outcome.steps) + (2 if n == 2 else 4) * asked
    return usual + look_up_rounds(transcript, n)


@settings(max_examples=examples(30), deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_single_holder_and_a_sealed_run(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = data.draw(st.sampled_from([2, 2, 3, 4]))
    tables = dealt(data, whole, n)
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    request = jobs.request_of(bundle)
    if data.draw(st.booleans()):
        request = dataclasses.replace(request, requirement=data.draw(asked_lists(case))[0])
    try:
        outcome = anonymize_single(whole, request.requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates K"):
            run_strict(tables, request, leader=leader, deputy=deputy)
        return
    results, transcript = run_strict(tables, request, leader=leader, deputy=deputy)
    expect_same(results, outcome, whole)
    assert transcript.rounds <= most_rounds(results["p0"], transcript, n)
    sealed, _ = run_sealed(tables, request, leader=leader, deputy=deputy)
    for name in ("nodes", "partition", "cell", "count"):
        ours, theirs = (getattr(r["p0"].generalized, name) for r in (results, sealed))
        assert np.array_equal(ours, theirs)


def small_table(columns: Mapping[str, Any], counts: Mapping[str, int]) -> tuple[CodedTable, Request]:
    """A table with a class, and its request.

    columns:  quasi-identifiers, as a job says them.
    counts:   records by a letter for each column, the class last.
    """
    fields = {
        "version": "1",
        "name": "two",
        "partition": "single",
        "data": "t.csv",
        "model": {"lkc": {"L": "1", "K": "2", "C": "1"}},
        "score": "infogain",
        "columns": {
            **{name: {"role": "qid", **values} for name, values in columns.items()},
            "cls": {"role": "class", "domain": ["Y", "N"]},
        },
    }
    rows = [dict(zip((*columns, "cls"), row, strict=True)) for row, n in counts.items() for _ in range(n)]
    bundle = jobs.bundle_of(fields)
    return jobs.coded(bundle, rows), jobs.request_of(bundle)


SEX = {"taxonomy": {"*": ["m", "f"]}}
CITY = {"taxonomy": {"*": ["p", "q"]}}
AGE = {"numeric": {"min": "0", "max": "2", "cuts": ["1"]}}


def test_a_group_that_another_entry_asks_for_is_tested_anew() -> None:
    """Two entries: once `city` is specialized, what is left of the whole table is asked for by one of them alone."""
    counts = {"0pY": 8, "0pN": 3, "0qY": 1, "1pY": 1, "1pN": 1}
    whole, request = small_table({"age": AGE, "city": CITY}, counts)
    asks = Ask(2, (Size(1),), ("age", "city")), Ask(1, (Size(2),), ("age",))
    request = dataclasses.replace(request, requirement=AskedList(asks))
    results, _ = run_strict(jobs.split_among(whole, np.arange(whole.n_records) % 2, 2), request)
    expected = anonymize_single(whole, request.requirement, request.goal)
    assert [candidate.column for candidate in expected.applied] == [1, 0]
    expect_same(results, expected, whole)


@pytest.mark.parametrize("turned", [False, True])
def test_a_group_that_one_more_entry_asks_for_is_tested_for_it(turned: bool) -> None:
    """Both entries come to ask for the same records: only one of them has a K that these do not meet."""
    counts = {"mp0Y": 1, "mp1Y": 8, "mp1N": 1, "fq0N": 6, "fq1N": 3, "fq1Y": 1}
    whole, request = small_table({"sex": SEX, "city": CITY, "age": AGE}, counts)
    asks = Ask(2, (Size(2),), ("city", "age")), Ask(2, (Size(1),), ("sex", "age"))
    request = dataclasses.replace(request, requirement=AskedList(asks[::-1] if turned else asks))
    expected = anonymize_single(whole, request.requirement, request.goal)
    assert {step.candidate.column for step in expected.steps if not step.applied} == {2}
    results, _ = run_strict(jobs.split_among(whole, np.arange(whole.n_records) % 2, 2), request)
    expect_same(results, expected, whole)


@settings(max_examples=examples(30), deadline=None)
@given(case=cases(), data=st.data())
def test_everything_told_follows_from_the_released_table(case: Case, data: st.DataObject) -> None:
    """Ledger, circuits and messages at both ends, against a replay that has the release and the job alone."""
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = data.draw(st.sampled_from([2, 3]))
    tables = dealt(data, whole, n)
    request = jobs.request_of(bundle)
    with pytest.MonkeyPatch.context() as patch:
        revealed, computed = recorded(patch), watched(patch)
        try:
            results, _ = run_strict(tables, request)
        except PrivacyError:
            assert all(seen == [("root_check", False, "all")] for seen in revealed)
            return
    released = Released.of(request, results["p0"])
    told = told_by(released)
    assert revealed == [_noted(told)] * n
    expect_openings(computed, told, released)


def _noted(told: Sequence[Told]) -> list[tuple[str, Any, str]]:
    """As ledgers note it."""
    return [
        (name, [each.place for each in value] if name == "only_child" else value, "all")
        for name, value in told
    ]


def expect_openings(
    computed: Sequence[Computed], told: Sequence[tuple[str, Any]], released: Released
) -> None:
    """Circuits give these values to either end, in this order, and shares."""
    places, expected = Places(released), []
    for name, value in told:
        if name in ("root_check", "same_counts"):
            expected.append({"met": [1]})
        elif name == "candidate":
            expected.append({name: [word] for name, word in places.opened(value).items()})
        elif name == "only_child":
            expected.append({"met": places.named(value)})
    for role in (Held.GARBLER, Held.EVALUATOR):
        outs = [_opened(entry) for entry in computed if entry.role is role]
        assert [out for out in outs if out] == [out for out in expected if out]


def _opened(entry: Computed) -> dict[str, list[int]]:
    shares = (To.XOR_SHARED, To.ADDITIVE_SHARED)
    return {name: [word for (word,) in value] for (name, to), value in entry.out.items() if to not in shares}


def views(transcript: Transcript, party: str) -> list[tuple[str, str, int]]:
    """The shape of what a party received: sender, step, size of every message."""
    return [(m.sender, m.step, len(m.payload)) for m in transcript.view(party)]


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["classification", "general"])
def test_views_depend_on_the_released_table_alone(goal: Any, revealed: Revealed) -> None:
    """Change the data below the published values, so that other candidates are discarded, or at other splits: all
    that anybody receives has the same shape, and all opened values are the same.
    """
    tables, request = small_case()
    request = dataclasses.replace(request, requirement=small_lkc(2, 12), goal=PUBLISHED[goal])
    results, before = run_strict(tables, request)
    first = anonymize_single(whole_of(tables), request.requirement, request.goal)
    told, runs = revealed[0], 1
    for seed in range(60):
        variant = regeneralized(tables[seed % 3], results["p0"].outcome, np.random.default_rng(seed))
        others = [variant if i == seed % 3 else table for i, table in enumerate(tables)]
        outcome = anonymize_single(whole_of(others), request.requirement, request.goal)
        if outcome.applied != first.applied or jobs.turns(outcome) == jobs.turns(first):
            continue
        runs += 1
        _, after = run_strict(others, request)
        assert all(views(after, party) == views(before, party) for party in ("p0", "p1", "p2"))
        if runs == 4:
            break
    assert runs == 4
    assert revealed == [told] * (3 * runs)


def test_what_the_pair_tells_the_others_is_what_the_ledger_says(revealed: Revealed) -> None:
    tables, request = small_case()
    results, transcript = run_strict(tables, request)
    shapes = [r.shape for r in results["p0"].ledger.reveals if r.name in ("root_counts", "partition_counts")]
    for sender, recipient in (("p0", "p1"), ("p1", "p0"), ("p0", "p2"), ("p1", "p2")):
        sent = [m for m in transcript.messages if (m.sender, m.recipient) == (sender, recipient)]
        opened = [len(m.payload) for m in sent if m.step == "shares/open"]
        assert opened == [4 * int(np.prod(shape)) for shape in shapes]
    told = [m.step for m in transcript.view("p2") if m.sender == "p0" and m.step != "shares/open"]
    steps = {"root_check": "sealed/root", "candidate": "sealed/candidate", "same_counts": "strict/same"}
    assert told == [steps[name] for name, _, _ in revealed[2] if name in steps]
    assert {a.name for a in ALLOWED["horizontal/strict"] if a.finer} == {"earlier_run"}


@pytest.mark.some(2)
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("c", [Fraction(1), Fraction(4, 5)])
@pytest.mark.parametrize("k", [1, 2, 90])
def test_limits_at_their_edges(goal: Any, c: Fraction, k: int) -> None:
    """K = 1: no identity bound; C = 1: no attribute bound; with both nothing is tested; K at the number of rows."""
    tables, request = small_case()
    request = dataclasses.replace(request, requirement=small_lkc(2, k, c), goal=PUBLISHED[goal])
    whole = whole_of(tables)
    results, _ = run_strict(tables, request)
    expect_same(results, anonymize_single(whole, request.requirement, PUBLISHED[goal]), whole)
    tested = "same_counts" in [reveal.name for reveal in results["p0"].ledger.reveals]
    assert tested == ((k, c) not in ((1, Fraction(1)), (90, c)))


def test_intervals_that_cannot_be_split_stay_unknown(revealed: Revealed) -> None:
    """Sealed, everybody learns that all records of `a` lie in one cell; strict, nobody does."""
    tables, request = flat_case()
    whole = whole_of(tables)
    results, _ = run_strict(tables, request)
    expect_same(results, anonymize_single(whole, request.requirement, request.goal), whole)
    assert results["p0"].outcome.steps
    assert revealed[0] == _noted(told_by(Released.of(request, results["p0"])))


def test_a_party_with_one_row_and_one_with_none() -> None:
    tables, request = small_case()
    whole = whole_of(tables)
    owners = np.zeros(whole.n_records, dtype=np.int64)
    owners[5] = 1
    results, _ = run_strict(jobs.split_among(whole, owners, 3), request)
    expect_same(results, anonymize_single(whole, request.requirement, request.goal), whole)


def test_the_greatest_table() -> None:
    """2^31 - 1 records, all of them in one cell."""
    tables, request = greatest_tables()
    results, _ = run_strict(tables, request)
    outcome = anonymize_single(joined(tables), request.requirement, request.goal)
    assert outcome.applied
    for result in results.values():
        assert [step.candidate for step in result.outcome.steps] == list(outcome.applied)
        assert result.generalized.n_records == MAX_RECORDS


@pytest.mark.some(1)
@pytest.mark.parametrize("cells", [15, 17, 18, 300])
def test_splits_among_more_places_than_one_instance_chooses_from(cells: int) -> None:
    schema = Schema((numeric_column("a", cells), numeric_column("b", 2)), "c", ("y", "n"), ())
    rng = np.random.default_rng(cells)
    a = rng.integers(0, cells, 200)
    whole = coded_table(schema, [a, rng.integers(0, 2, 200)], (a * 7 // cells) % 2, [])
    request = Request(schema, lkc(2, 9), PUBLISHED["classification"], bytes(32))
    results, _ = run_strict(jobs.split_among(whole, np.arange(200) % 2, 2), request)
    outcome = anonymize_single(whole, request.requirement, request.goal)
    assert len(outcome.applied) > 2
    expect_same(results, outcome, whole)


def test_bytes(computed: list[Computed]) -> None:
    tables, request = small_case()
    results, transcript = run_strict(tables, request)
    expect_bytes_of_the_pair(transcript, computed, results["p0"])
    reveals = results["p0"].ledger.reveals
    names = [r.name for r in reveals]
    counts = sum(int(np.prod(r.shape)) for r in reveals if r.name in ("root_counts", "partition_counts"))
    to_p2 = {
        who: sum(len(m.payload) for m in transcript.view("p2") if m.sender == who) for who in ("p0", "p1")
    }
    candidates, bits = names.count("candidate"), names.count("root_check") + names.count("same_counts")
    assert to_p2 == {
        "p0": 4 * counts + 16 * candidates + bits,
        "p1": 4 * counts + 20 * candidates + 16 * bits,
    }


def test_a_group_is_tested_once(computed: list[Computed]) -> None:
    """Tests follow the groups whose records a turn changes: fewer than all groups of all turns."""
    tables, request = small_case()
    results, _ = run_strict(tables, request)
    tested = [e.batch for e in computed if e.role is Held.GARBLER and e.circuit.name.startswith("size/")]
    once, again = _tests_of_groups(results["p0"])
    assert sum(tested) == once < again


def _tests_of_groups(result: JointOutcome) -> tuple[int, int]:
    """Children of groups on two columns of the small case: of different sets of records; and of all, turn by turn.

    Records are told apart by the leaf partition of the end that they come to.
    """
    columns, firsts = result.outcome.schema.qid, result.generalized.nodes
    live = [(number, column.root) for number, column in enumerate(columns)]
    cut = top(result.outcome.schema)
    every: list[tuple[int, Node, frozenset[int]]] = []
    for turn in [*(step.candidate for step in result.outcome.steps), None]:
        for number, node in live:
            for other in cut.nodes[1 - number]:
                inside = [
                    (first >= each.first) & (first < each.last)
                    for first, each in ((firsts[number], node), (firsts[1 - number], other))
                ]
                if (group := np.flatnonzero(inside[0] & inside[1])).size:
                    every.append((number, node, frozenset(group.tolist())))
        if turn is not None:
            cut = cut.specialized(turn)
            live.remove((turn.column, turn.node))
            live += [
                (turn.column, child)
                for child in turn.children
                if profile_length(columns[turn.column], child) > 1
            ]
    children = {(number, node): len(columns[number].children(node)) or 2 for number, node, _ in every}
    once, again = (
        sum(children[number, node] for number, node, _ in groups) for groups in (set(every), every)
    )
    return once, again


def test_golden_transcripts(golden: Golden) -> None:
    tables, request = small_case()
    golden.check("strict", "three", run_strict(tables, request)[1].digest())
    general = dataclasses.replace(request, goal=PUBLISHED["general"])
    golden.check("strict", "general", run_strict([tables[0], joined(tables[1:])], general)[1].digest())
