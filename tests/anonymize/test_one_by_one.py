"""Children that leave a node one by one: against the definition on rows, in every mode; the documents' vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anonymize.candidates import Prospects, marked, prospects
from anonymize.cut import Candidate, Cut, child_counts, child_of_leaf, top
from anonymize.joint.columns import Columns
from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.joint.lkc.scores.groups import JointRecords
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.joint.lkc.scores.tdr import JointTdr
from anonymize.joint.lkc.validity import Validity
from anonymize.joint.messages import decode_candidate, encode_candidate
from anonymize.lkc.requirement import criteria_of_size
from anonymize.lkc.single import anonymize_single
from anonymize.lkc.stopped import why_stopped
from anonymize.release import release_of_rows
from anonymize.table import CodedTable, QidColumn, Schema
from anonymize.taxonomy import Node, from_nested
from anonymize.verification.tables import verify_lkc
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from jobs.release.steps import replayed, step_fields
from tests.support import jobs, reference
from tests.support.entries import claim
from tests.support.horizontal import expect_same, run_led, run_sealed, run_strict
from tests.support.rebuilt import rebuilt
from tests.support.scores import PUBLISHED, PUBLISHED_NAMES
from tests.support.vertical import MAXIMA, cut_by_columns, run_vertical
from tests.support.vertical import expect_same as expect_same_join

CITIES = ("Bonn", "Lyon", "Nice", "Oslo", "Rome", "York")
TREE = {"Any": {"South": ["Lyon", "Nice", "Rome"], "North": ["Oslo", "York", "Bonn"], "Sea": ["Ship"]}}
COLUMNS: dict[str, dict[str, Any]] = {
    "city": {"role": "qid", "taxonomy": TREE, "refine": "child"},
    "job": {"role": "qid", "suppress": ["Clerk", "Cook", "Mason", "Nurse"], "missing": "drop"},
    "age": {"role": "qid", "numeric": {"min": "0", "max": "80", "cuts": ["20", "40", "60"]}},
    "illness": {"role": "sensitive", "domain": ["Flu", "HIV"], "values": ["HIV"]},
    "dead": {"role": "class", "domain": ["Y", "N"]},
}


def job_of(goal: str, k: int, columns: Mapping[str, Any] = COLUMNS, level: int = 2) -> dict[str, Any]:
    return {
        "version": "1",
        "name": "one",
        "partition": "single",
        "data": "table.csv",
        "goal": goal,
        "score": PUBLISHED_NAMES[goal],
        "model": {"lkc": {"L": str(level), "K": str(k), "C": "0.6"}},
        "columns": dict(columns),
    }


def rows_of(n: int, seed: int) -> list[dict[str, str]]:
    """Skewed, so that some values are rare."""
    rng = np.random.default_rng(seed)
    places, work = [0.3, 0.25, 0.2, 0.15, 0.08, 0.02], [0.5, 0.3, 0.15, 0.05]
    city, job = rng.choice(6, n, p=places), rng.choice(4, n, p=work)
    age = rng.integers(0, 80, n)
    odds = 0.1 + 0.15 * (city % 3) + 0.2 * (job % 2) + age / 400
    dead, ill = rng.random(n) < odds, rng.random(n) < 0.2
    jobs_of = COLUMNS["job"]["suppress"]
    return [
        {
            "city": CITIES[city[i]],
            "job": jobs_of[job[i]],
            "age": str(age[i]),
            "illness": "HIV" if ill[i] else "Flu",
            "dead": "Y" if dead[i] else "N",
        }
        for i in range(n)
    ]


def problem_of(k: int, score: Mapping[str, Any]) -> reference.Problem:
    city = reference.Categorical(reference.nested_paths(TREE, []), by_child=True)
    work = [["*", each] for each in COLUMNS["job"]["suppress"]]
    qid = {
        "city": city,
        "job": reference.Categorical(work, missing_leaf=False, by_child=True, rest="{}"),
        "age": reference.Numeric([reference.Decimal(edge) for edge in (0, 20, 40, 60, 80)]),
    }
    sensitive = {"illness": ({"HIV"}, reference.Fraction(3, 5))}
    return reference.Problem(qid, "dead", sensitive, 2, k, **score)


SCORES: dict[str, tuple[JointScore, dict[str, Any]]] = {
    "infogain": (PUBLISHED["classification"], {"goal": "classification"}),
    "tdr": (JointTdr(), {"goal": "classification", "tdr": True}),
    "added": (
        JointAdded("cells", 5),
        {"goal": "classification", "added": reference.Added(5, 2, ("illness",))},
    ),
    "groups": (PUBLISHED["general"], {"goal": "general"}),
    "records": (JointRecords(), {"goal": "general", "power": 1}),
}
"""By name: as it runs, and what the definition on rows is told of it."""


@pytest.mark.some(1)
@pytest.mark.parametrize("k", [2, 6, 20])
@pytest.mark.parametrize("score", SCORES)
def test_every_mode_equals_the_definition_taken_literally(score: str, k: int) -> None:
    goal, told = SCORES[score]
    name = told["goal"]
    rows = rows_of(130, k)
    bundle = jobs.bundle_of(job_of(name, k))
    whole = jobs.coded(bundle, rows)
    request = replace(jobs.request_of(bundle), goal=goal)
    expected = reference.anonymize(rows, problem_of(k, told))
    assert expected is not None
    alone = anonymize_single(whole, request.requirement, goal)
    released = release_of_rows(whole, alone.cut)
    assert jobs.turns(alone) == expected[0]
    assert jobs.multiset(released) == Counter(expected[1])
    sensitive = {"illness": ({"HIV"}, reference.Fraction(3, 5))}
    assert verify_lkc(released, claim(["city", "job", "age"], 2, k, sensitive)) is None
    taken_out = [step for step in alone.steps if step.applied and step.candidate.taken_out is not None]
    assert len(taken_out) >= (1 if score in {"added", "tdr"} else 2)
    _expect_all_modes(whole, request, score)


def _expect_all_modes(whole: CodedTable, request: Any, score: str) -> None:
    alone = anonymize_single(whole, request.requirement, request.goal)
    for n in (2, 3):
        parts = jobs.split_among(whole, np.arange(whole.n_records) % n, n)
        ran: list[Callable[..., Any]] = [run_sealed] + [run_led] * (n > 2)
        for run in ran:
            expect_same(run(parts, request)[0], alone, whole)
        if score not in {"added", "tdr"}:
            results, _ = run_strict(parts, request)
            applied = replace(alone, steps=tuple(step for step in alone.steps if step.applied))
            expect_same(results, applied, whole)
    goal = JointAdded("partitions", 5) if score == "added" else request.goal
    columns = Columns(("a", "b", "b"), ("a",))
    for maximum in MAXIMA:
        cut = cut_by_columns(whole, columns, ["b", "a"])
        results, _ = run_vertical(cut, replace(request, goal=goal), maximum=maximum)
        expect_same_join(cut, results, replace(request, goal=goal))


def flat(n: int, **how: Any) -> QidColumn:
    values = [f"v{i:03}" for i in range(n)]
    return QidColumn("flat", from_nested({"Any": values}, "flat", missing_leaf=False), by_child=True, **how)


def children_of(column: QidColumn) -> tuple[Node, ...]:
    return column.children(column.root)


def test_what_is_left_when_children_were_taken_out() -> None:
    column = flat(4)
    a, b, c, d = children_of(column)
    rest = column.rest_of(column.root, a)
    assert (rest.first, rest.last, rest.n_leaves, column.label(rest)) == (1, 4, 3, "other Any")
    smaller = column.rest_of(rest, c)
    assert column.children(smaller) == (b, d)
    assert (smaller.leaves.tolist(), smaller.n_leaves) == ([1, 3], 2)
    assert column.rest_of(column.rest_of(column.root, c), a) == smaller
    counts = np.array([[1], [2], [4], [8]])
    assert child_counts((c, smaller), counts).tolist() == [[4], [10]]
    assert child_counts((b, d), counts).tolist() == [[2], [8]]
    assert child_counts((c, smaller), counts.T, axis=1).tolist() == [[4, 10]]
    assert child_of_leaf(Candidate(0, rest, (c, smaller))).tolist() == [1, 0, 1]
    assert child_of_leaf(Candidate(0, smaller, (b, d))).tolist() == [0, -1, 1]
    cut = top(Schema((column,), None, ("",))).specialized(Candidate(0, column.root, (a, rest)))
    cut = cut.specialized(Candidate(0, rest, (c, smaller)))
    assert [column.label(node) for node in cut.nodes[0]] == ["v000", "other Any", "v002"]
    assert cut.positions(0).tolist() == [0, 1, 2, 1]
    assert column.rest_labels == {"other Any"}
    assert flat(2).rest_labels == frozenset()


def test_which_specializations_a_node_has() -> None:
    for n, each_child, expected in [(2, True, 1), (3, True, 3), (3, False, 1), (64, True, 64), (65, True, 1)]:
        column = flat(n)
        found = prospects(0, column, column.root, each_child=each_child)
        assert len(found) == expected
        made = found[0].specialized(1)
        assert len(made.children) == (n if n > 64 else 2)
    whole = replace(flat(5), by_child=False)
    assert [len(p.specialized(0).children) for p in prospects(0, whole, whole.root, each_child=True)] == [5]


def test_a_child_that_could_not_leave_stays() -> None:
    column = flat(4)
    a, b, c, d = children_of(column)
    known = Prospects(Schema((column,), None, ("",)), each_child=True)
    without_a, without_b = (column.rest_of(column.root, child) for child in (a, b))
    known.discard(Candidate(0, column.root, (b, without_b)))

    def leaving(node: Node) -> list[Node | None]:
        return [prospect.specialized(0).taken_out for prospect in known.of(0, node)]

    assert leaving(column.root) == [a, c, d]
    assert leaving(without_a) == [c, d]
    assert leaving(column.rest_of(without_a, c)) == []
    assert leaving(column.rest_of(column.rest_of(column.root, c), b)) == [None]


def encoded_cases() -> tuple[Schema, Cut, list[Candidate]]:
    column = flat(4)
    a, b, c, d = children_of(column)
    rest = column.rest_of(column.root, b)
    schema = Schema((column,), None, ("",))
    cut = top(schema).specialized(Candidate(0, column.root, (b, rest)))
    every = [Candidate(0, rest, (child, column.rest_of(rest, child))) for child in (a, c, d)]
    return schema, cut, every


def test_what_is_told_of_a_candidate_is_read_again() -> None:
    schema, cut, every = encoded_cases()
    assert len({candidate.mark for candidate in every}) == len({candidate.order for candidate in every}) == 3
    for candidate in every:
        assert decode_candidate(encode_candidate(candidate), schema, cut, "p", "s") == candidate
        assert marked(0, schema.qid[0], candidate.node, candidate.mark) == candidate
    out, later = every[1], every[1].children[1]
    last = Candidate(0, later, schema.qid[0].children(later))
    assert decode_candidate(encode_candidate(last), schema, cut.specialized(out), "p", "s") == last


@pytest.mark.parametrize("mark", [1, 4, -1])
def test_a_child_that_is_not_there_is_refused(mark: int) -> None:
    """The one taken out before, and none at all."""
    schema, cut, every = encoded_cases()
    told = encode_candidate(every[0])[:-8] + mark.to_bytes(8, "little", signed=True)
    with pytest.raises(RemoteProtocolError, match="children that differ") as caught:
        decode_candidate(told, schema, cut, "p", "s")
    assert (caught.value.culprit, caught.value.step) == ("p", "s")
    with pytest.raises(ValueError, match="no such candidate"):
        replayed(schema, [[0, 0, 1, True, 0], [0, 0, mark, True, 0]])
    steps, _ = replayed(schema, [[0, 0, 1, True, 0], [0, 0, 2, True, 0], [0, 0, 3, True, 0]])
    assert [step_fields(step)[2] for step in steps] == [1, 2, 3]


def test_the_documents_vector() -> None:
    """[TDR] 3.3: what `10th` alone adds."""
    bundle, table = rebuilt("child")
    outcome = anonymize_single(table, jobs.requirement_of(bundle), JointAdded())
    turn = jobs.turns(outcome)[0]
    assert (turn, outcome.steps[0].score) == (("edu", "Any", ["10th", "other Any"], True), 24_071_905)


def test_more_than_64_children_leave_at_once() -> None:
    names = [f"v{i:03}" for i in range(100)]
    rows = [{"q": names[i % 100], "dead": "YN"[i % 2]} for i in range(600)]
    turns = {}
    for refine in ("child", "children"):
        columns = {
            "q": {"role": "qid", "taxonomy": {"Any": names}, "missing": "drop", "refine": refine},
            "dead": COLUMNS["dead"],
        }
        bundle = jobs.bundle_of(job_of("classification", 5, columns, level=1))
        whole = jobs.coded(bundle, rows)
        request = jobs.request_of(bundle)
        alone = anonymize_single(whole, request.requirement, request.goal)
        parts = jobs.split_among(whole, np.arange(whole.n_records) % 2, 2)
        expect_same(run_sealed(parts, request)[0], alone, whole)
        turns[refine] = jobs.turns(alone)
    assert turns["child"] == turns["children"]
    assert [len(children) for _, _, children, _ in turns["child"]] == [100]


def test_why_what_is_left_stays_together() -> None:
    rows = rows_of(130, 1)
    bundle = jobs.bundle_of(job_of("classification", 6))
    table = jobs.coded(bundle, rows)
    outcome, _ = jobs.run_single(bundle, table)
    of_size = criteria_of_size(table.schema, jobs.requirement_of(bundle).entries(table.schema))
    stopped = why_stopped(table, outcome, PUBLISHED["classification"], of_size)
    for number, column in enumerate(table.schema.qid[:2]):
        told = {value: each for each in stopped[column.name] for value in each.values}
        for node in outcome.cut.nodes[number]:
            discarded = {
                step.candidate.taken_out for step in outcome.steps if not step.applied and step.violation
            }
            if node.without and discarded & set(column.children(node)):
                assert told[column.label(node)].reason in ("K", "C")


def vertical_case() -> tuple[Any, Any]:
    bundle = jobs.bundle_of(job_of("classification", 6))
    whole = jobs.coded(bundle, rows_of(130, 6))
    return cut_by_columns(whole, Columns(("a", "b", "b"), ("b",)), ["b", "a"]), jobs.request_of(bundle)


def test_an_owner_that_asks_more_often_than_a_node_has_candidates_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut, request = vertical_case()
    honest = Validity._ask

    def often(self: Validity, candidate: Candidate) -> Rounds[bool]:
        column = self._schema.qid[candidate.column]
        for _ in prospects(candidate.column, column, candidate.node, each_child=True):
            yield from honest(self, candidate)
        return (yield from honest(self, candidate))

    monkeypatch.setattr(Validity, "_ask", often)
    with pytest.raises(RemoteProtocolError, match="the same test again") as caught:
        run_vertical(cut, request)
    assert (caught.value.culprit, caught.value.step) == ("a", "vertical/check")
