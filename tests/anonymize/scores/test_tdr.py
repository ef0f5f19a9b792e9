"""InfoGain for each step of lost anonymity: against the definition on rows, the paper's example, in every mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import Candidate
from anonymize.errors import PrivacyError
from anonymize.joint.lkc.led import anonymize_led
from anonymize.joint.lkc.scores import infogain
from anonymize.joint.lkc.scores.tdr import JointTdr
from anonymize.joint.roster import Roster
from anonymize.lkc.single import anonymize_single
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import Scope
from anonymize.release import release_of_rows
from anonymize.scores.score import Terms, Wanted
from anonymize.scores.tdr import UNIT_BITS, FollowedGroups, Tdr, check_products
from anonymize.table import Ints, Schema
from crypto.errors import RemoteProtocolError
from crypto.local import run_local
from tests.support import jobs, reference
from tests.support.entries import asked_lists
from tests.support.examples import examples
from tests.support.horizontal import expect_same_turns, run_led, run_sealed, small_case
from tests.support.rebuilt import class_job, rebuilt
from tests.support.rng import SeededRng
from tests.support.tables import Case, cases, dealt
from tests.support.vertical import expect_as_alone

CLASSES = cases(max_rows=30).filter(lambda case: case.problem.goal == "classification")


@settings(max_examples=examples(70), deadline=None)
@given(case=CLASSES, data=st.data())
def test_equals_the_definition_taken_literally(case: Case, data: st.DataObject) -> None:
    """Anonymity and its loss are counted anew in every turn, of one entry and of the mean of two."""
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    requirement, problem = jobs.requirement_of(bundle), case.problem
    if data.draw(st.booleans()):
        requirement, problem = data.draw(asked_lists(case))
    expected = reference.anonymize(list(case.rows), replace(problem, tdr=True))
    if expected is None:
        with pytest.raises(PrivacyError):
            anonymize_single(table, requirement, Tdr())
        return
    outcome = anonymize_single(table, requirement, Tdr())
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release_of_rows(table, outcome.cut)) == Counter(expected[1])


def test_the_papers_example() -> None:
    """Sex costs less anonymity than education tells more; then education would leave two men of 9th grade."""
    bundle, table = rebuilt()
    outcome = anonymize_single(table, jobs.requirement_of(bundle), Tdr())
    assert [(s.candidate.column, s.applied) for s in outcome.steps] == [(1, True), (0, False), (2, True)]
    histogram = table.class_histogram(1)
    score, gain = Tdr().published(outcome.steps[0], histogram)
    assert round(score, 5) == 0.01827  # .4934 / (40 − 14 + 1)
    assert gain == 20_695_652
    assert outcome.steps[0].score == (gain << (UNIT_BITS - 20)) // (40 * 27)


@settings(max_examples=examples(25), deadline=None)
@given(case=CLASSES, data=st.data(), n=st.integers(2, 3))
def test_joint_runs_equal_the_single_holder(case: Case, data: st.DataObject, n: int) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    requirement, _ = data.draw(asked_lists(case))
    request = replace(jobs.request_of(bundle), requirement=requirement, goal=JointTdr())
    try:
        expected = anonymize_single(table, requirement, request.goal)
    except PrivacyError:
        return
    parts = dealt(data, table, n)
    expect_same_turns(parts, request, expected)


@pytest.mark.parametrize("looks_up", [True, False])
def test_a_split_into_a_small_child_is_no_candidate(looks_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three records of `a` are below K; `sex` tells as much and leaves enough on each side."""
    if not looks_up:
        monkeypatch.setattr(infogain, "can_look_up", lambda engine, most: False)
    column = {"role": "qid", "refine": "children"}
    bundle = class_job(
        {
            "kind": {**column, "taxonomy": {"Any": ["a", "b"]}},
            "sex": {**column, "taxonomy": {"Any": ["M", "F"]}},
        }
    )
    told = [("a", "M", "Y", 3), ("b", "M", "Y", 5), ("b", "F", "N", 8)]
    rows = [dict(zip(("kind", "sex", "cls"), row[:3], strict=True)) for row in told for _ in range(row[3])]
    table = jobs.coded(bundle, rows)
    request = replace(jobs.request_of(bundle), goal=JointTdr())
    expected = anonymize_single(table, request.requirement, request.goal)
    assert [(t[0], t[3]) for t in jobs.turns(expected)] == [("sex", True)]
    for n in (2, 3):
        expect_same_turns(jobs.split_among(table, np.arange(table.n_records) % n, n), request, expected)


@settings(max_examples=examples(25), deadline=None)
@given(case=CLASSES, data=st.data())
def test_vertical_runs_equal_the_single_holder(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    expect_as_alone(data, whole, replace(jobs.request_of(bundle), goal=JointTdr()))


@pytest.mark.parametrize(("level", "run"), [("leader", run_led), ("sealed", run_sealed)])
def test_nothing_but_split_points_is_opened_besides(level: str, run: object) -> None:
    tables, request = small_case()
    results, _ = run(tables, replace(request, goal=JointTdr()))  # type: ignore[operator]
    for result in results.values():
        told = Counter((reveal.name, reveal.to) for reveal in result.ledger.reveals)
        steps = result.outcome.steps
        applied = sum(step.applied for step in steps)
        assert applied
        assert told["split", "all"] == 1 + applied
        # The leader is told the groups of a candidate when it is judged, and of all when scores moved.
        assert (told["group_counts", "leader"] > len(steps)) == (level == "leader")
        assert level == "leader" or {to for _, to in told} == {"all"}


class Recounted(FollowedGroups):
    """Checks that every candidate was told all groups that there are, and of old ones none that did not change."""

    turns = 0

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        before, changed = dict(self._told), self._changed.copy()
        wanted = super().wants(candidates)
        for candidate in candidates:
            every = self._groups(candidate, self.table.entries_of(candidate)).groups.names_by_scope
            assert np.isin(every, self._told[candidate]).all()
        for each in wanted:
            names = self.asked(each.candidate).groups.names_by_scope
            assert not np.isin(names, before.get(each.candidate, names[:0])).any()
            if each.candidate in before:
                assert changed[self.table.partition[each.entries]].all()
                Recounted.turns += 1
        return wanted


class Checked(Tdr):
    """The score with this check in every turn."""

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> FollowedGroups:
        return Recounted(schema, table, terms)


@pytest.mark.some(2)
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_only_new_groups_are_counted_and_all_of_them(most: int) -> None:
    """Four numeric columns that all tell the classes apart; nodes stay while others are refined."""
    rng = np.random.default_rng(most)
    names = [f"n{i}" for i in range(4)]
    qid = {name: {"role": "qid", "numeric": {"min": "0", "max": "8", "step": "1"}} for name in names}
    bundle = jobs.bundle_of(
        {
            "version": "1",
            "name": "groups",
            "partition": "single",
            "model": {"lkc": {"L": str(most), "K": "9", "C": "1"}},
            "score": "tdr",
            "data": "t.csv",
            "columns": qid | {"cls": {"role": "class", "domain": ["Y", "N"]}},
        }
    )
    values = rng.integers(0, 8, (1500, 4))
    classes = (values.sum(axis=1) + rng.integers(0, 5, 1500)) % 16 > 7
    rows = [
        {name: str(v) for name, v in zip(names, row, strict=True)} | {"cls": "NY"[int(cls)]}
        for row, cls in zip(values.tolist(), classes.tolist(), strict=True)
    ]
    Recounted.turns = 0
    table = jobs.coded(bundle, rows)
    outcome = anonymize_single(table, jobs.requirement_of(bundle), Checked())
    assert sum(step.applied for step in outcome.steps) > 3
    assert (Recounted.turns > 3) == (most > 1)  # a group on one column has the records of its node
    assert outcome == anonymize_single(table, jobs.requirement_of(bundle), Tdr())


class Short(FollowedGroups):
    """Tells a thousand records more of every group than a party has."""

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        return [replace(each, of=_with_more(each.of)) for each in super().wants(candidates)]


def _with_more(of: Callable[[Ints], Ints]) -> Callable[[Ints], Ints]:
    return lambda counts: of(counts) + 1000


class Lying(JointTdr):
    """The score of a party that does."""

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> FollowedGroups:
        return Short(schema, table, terms)


def test_sums_that_no_table_has_are_refused_by_the_leader() -> None:
    tables, request = small_case()
    names = ("p0", "p1", "p2")
    parties = {
        me: anonymize_led(
            Roster(me, names, "p0"),
            table,
            replace(request, goal=Lying() if me == "p2" else JointTdr()),
            SeededRng(me),
            mode="horizontal/leader",
        )
        for me, table in zip(names, tables, strict=True)
    }
    with pytest.raises(RemoteProtocolError) as caught:
        run_local(parties)
    assert (caught.value.culprit, caught.value.step) == ("p1 or p2", "horizontal/wanted")


@pytest.mark.parametrize(
    ("n_scopes", "n_records", "refused"),
    [(1, 2**31 - 1, False), (2, 2**31 - 1, True), (4, 2**30 - 1, False), (4, 2**30, True)],
)
def test_tables_whose_scores_are_no_words_are_refused(n_scopes: int, n_records: int, refused: bool) -> None:
    terms = Terms((Scope((0,), 1),) * n_scopes, ((),))
    if refused:
        with pytest.raises(
            PrivacyError, match=f"too many rows for `score: tdr` with {n_scopes} requirements"
        ):
            check_products(terms, n_records)
    else:
        check_products(terms, n_records)
