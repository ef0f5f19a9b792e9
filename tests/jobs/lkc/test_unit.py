"""`unit: person`: K counts different people; which jobs may say it, and what runs come to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.clear import met_by_group
from anonymize.criteria.criterion import PERSONS, RECORDS
from anonymize.criteria.persons import EnoughPersons, PersonOfRow, Persons
from anonymize.criteria.size import Size
from anonymize.errors import DataError, PrivacyError
from anonymize.lkc.requirement import criteria_of_size
from anonymize.release import release_of_counts, release_of_rows
from anonymize.tds import Observer
from anonymize.verification.tables import verify_persons
from crypto.local import run_local
from jobs.errors import PartyError, PolicyError, problem_of
from jobs.lkc import single
from jobs.lkc.checked import verify_table
from jobs.lkc.entries import entries_of
from jobs.lkc.options.option import ByRow
from jobs.lkc.requirement import requirement
from jobs.lkc.sentences import verified_words
from jobs.lkc.single import anonymized, release_to_folder
from jobs.lkc.verify import claim_of, require_counted
from jobs.loading import parse_job
from jobs.options import NO_OPTIONS
from jobs.owner.objections import allowance
from jobs.owner.own_groups import OwnGroups
from jobs.reading import load_table
from jobs.release.csv import REPORT, TABLE
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.examples import examples
from tests.support.joint import sample_rows
from tests.support.lkc_alone import expect_as_defined, source_of
from tests.support.lkc_runs import run_lkc
from tests.support.refusals import objected, refused
from tests.support.rng import SeededRng
from tests.support.samples import (
    COLUMNS,
    PARTIES,
    columns,
    joint_job,
    release_of,
    single_job,
    vertical_job,
)
from tests.support.scores import PUBLISHED_NAMES
from tests.support.tables import Case, cases


def model(unit: str | None = "person", K: int = 4, **more: str) -> dict[str, Any]:
    return {
        "lkc": {"L": "2", "K": str(K), "C": "0.5", **more},
        **({} if unit is None else {"unit": unit}),
    }


def alone_job(unit: str | None = "person", K: int = 4, **changes: Any) -> dict[str, Any]:
    return single_job(**{"model": model(unit, K), "goal": "general", **changes})


def shared_job(level: str = "sealed", K: int = 4, **changes: Any) -> dict[str, Any]:
    return joint_job(**{"disclosure": level, "model": model(K=K), "goal": "general", **changes})


def visits(n: int = 90, people: int = 12) -> list[dict[str, str]]:
    """Sample rows of fewer people, each of whom may stand in several; an id may have blanks around it."""
    coins = np.random.default_rng(5)
    who = coins.integers(0, people, n).tolist()
    blanks = coins.integers(0, 2, n).tolist()
    return [
        {**row, "patient": " " * b + str(w)} for row, w, b in zip(sample_rows(n), who, blanks, strict=True)
    ]


def run(folder: Path, fields: dict[str, Any], rows: Sequence[Mapping[str, str]]) -> Path:
    task, watch = jobs.task_of(fields), Stopwatch(lambda name: None)
    release_to_folder(task, source_of(folder, rows), folder / "out", NO_OPTIONS, watch, Observer())
    return folder / "out"


# ---- the job file


def test_records_are_what_is_counted_unless_the_job_says() -> None:
    """And the canonical form is the same, whether the file says so or not."""
    unsaid, said = jobs.bundle_of(alone_job(None)), jobs.bundle_of(alone_job("record"))
    assert unsaid.digest == said.digest != jobs.bundle_of(alone_job()).digest
    assert "unit" not in unsaid.job.canonical()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (alone_job(columns=columns(patient=None)), "model.lkc.unit: person needs a column with `role: id`"),
        (vertical_job(model=model()), "model.lkc.unit: a vertical job has a single record of each id"),
        (shared_job("strict"), "model.lkc.unit: a strict run counts records only; `disclosure: sealed`"),
        (
            joint_job(disclosure="sealed", model=model(colluders="1")),
            "model.lkc.unit: `colluders` counts records, so say `unit: record`",
        ),
        (alone_job("people"), "`model.lkc.unit`"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused_with_the_reason(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


def test_an_owner_can_ask_for_it() -> None:
    assert objected(shared_job(), PARTIES[0], per_person=True) == ""
    assert "K must count people" in objected(joint_job(), PARTIES[0], per_person=True)
    assert objected(vertical_job(), "loan", per_person=True) == ""
    assert allowance(jobs.task_of(shared_job()), PARTIES[0], "coordinator")["per_person"] is True
    assert "per_person" not in allowance(jobs.task_of(joint_job()), PARTIES[0], "coordinator")


def test_it_is_told_wherever_the_requirement_is() -> None:
    for fields, who in (
        (alone_job(), "the people were counted from the ids of the holder's table"),
        (
            shared_job(),
            "the people were counted inside the circuits, where each party counted its own people",
        ),
        (shared_job("leader"), "the people were counted by the leader, hospital-a, where each party counted"),
    ):
        task = jobs.task_of(fields)
        assert task.model.described(task).requirement == "L=2 K=4 people C=1/2"
        words = verified_words(task)
        assert (
            "at least K=4 records, and no protected value above its C; whether these records belong to"
            in words
        )
        assert who in words
    assert "people" not in verified_words(jobs.task_of(alone_job(None)))


# ---- the criterion


@settings(max_examples=examples(200), deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30), least=st.integers(1, 5))
def test_people_are_counted_once_in_a_group(rows: list[tuple[int, int]], least: int) -> None:
    """By the definition; and closed under union: where all parts meet it, so does the whole."""
    group, person = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    of = PersonOfRow(person)
    everything = np.arange(len(rows))
    counts = of.count(everything, group, 4)
    expected = [{who for g, who in rows if g == i} for i in range(4)]
    assert counts.tolist() == [len(people) for people in expected]
    some = everything[::2]
    part = of.count(some, group[some], 4)
    assert part.tolist() == [len({rows[i][1] for i in some if rows[i][0] == g}) for g in range(4)]
    (criterion,) = Persons(least).criteria(None)[1:]  # type: ignore[arg-type]
    assert isinstance(criterion, EnoughPersons)
    met = met_by_group(criterion, {PERSONS: counts})
    assert met.tolist() == [not people or len(people) >= least for people in expected]
    whole = of.count(everything, np.zeros_like(group), 1)
    assert not met.all() or met_by_group(criterion, {PERSONS: whole})[0]
    assert "person" not in repr(of)


def test_children_are_held_to_as_many_records() -> None:
    """A score's demand on the sizes of children is public, and implied: a person has a record."""
    task = jobs.task_of(alone_job())
    entries = requirement(task).entries(task.schema)
    assert criteria_of_size(task.schema, entries) == ((Size(4),), (Size(4),))
    assert EnoughPersons(1).at_stake({RECORDS: np.array([3, 0])}).tolist() == [[False], [False]]


# ---- runs of one holder


@settings(max_examples=examples(150), deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_definition_taken_literally(case: Case, data: st.DataObject) -> None:
    """The reference counts ids in every group on every set of columns, from the rows."""
    people = [f"p{i}" for i in range(data.draw(st.integers(1, 12)))]
    rows = [{**row, "who": data.draw(st.sampled_from(people))} for row in case.rows]
    task = jobs.task_of(
        {
            **case.fields,
            "model": {**case.fields["model"], "unit": "person"},
            "columns": {**case.fields["columns"], "who": {"role": "id"}},
        }
    )
    expect_as_defined(task, rows, dataclasses.replace(case.problem, person="who"))


def test_a_group_has_k_people_and_not_only_k_records(tmp_path: Path) -> None:
    """Counted from the input, generalized by the published cut: the sample is one where it matters."""
    fewest = {}
    for unit in ("record", "person"):
        folder = tmp_path / unit
        folder.mkdir()
        rows = visits() if unit == "person" else [{**r, "patient": str(i)} for i, r in enumerate(visits())]
        task = jobs.task_of(alone_job(unit, K=8))
        loaded = load_table(source_of(folder, rows), task)
        outcome = anonymized(task, loaded, Observer())
        people = load_table(source_of(folder, visits()), jobs.task_of(alone_job(K=8)))
        assert people.person is not None
        fewest[unit] = min(len(group) for group in groups(outcome, people.table, people.person))
    assert fewest["person"] >= 8 > fewest["record"]


def groups(outcome: Any, table: Any, person: np.ndarray[Any, Any]) -> list[set[int]]:
    """The people of every group on every set of columns."""
    nodes = [outcome.cut.positions(c)[table.qid[c]] for c in range(len(table.qid))]
    found: dict[tuple[Any, ...], set[int]] = {}
    for known in (known for size in range(3) for known in combinations(range(len(nodes)), size)):
        for row, who in enumerate(person):
            found.setdefault((known, *(nodes[c][row] for c in known)), set()).add(int(who))
    return list(found.values())


def test_too_few_people_are_told_from_too_few_records(tmp_path: Path) -> None:
    """visits() has more records than K, of fewer people."""
    task = jobs.task_of(alone_job(K=40))
    loaded = load_table(source_of(tmp_path, visits()), task)
    with pytest.raises(PrivacyError) as caught:
        anonymized(task, loaded, Observer())
    assert loaded.table.n_records > 40
    assert str(caught.value) == (
        "the fully generalized table already violates K; asked is L=2 K=40 people C=1/2 (model.lkc)"
    )
    assert loaded.person is not None
    people = len(set(loaded.person.tolist()))
    assert caught.value.private == f"the table has {loaded.table.n_records} records of {people} people"


def test_the_release_has_no_ids_and_its_report_says_what_it_counts(tmp_path: Path) -> None:
    out = run(tmp_path, alone_job(), visits())
    assert (out / TABLE).read_text().splitlines()[0] == "job,age,transfused,surgery"
    text = (out / REPORT).read_text()
    assert "These figures count records, as the table has no ids; K counts people" in text
    assert "`unit: person`" in text
    checked = verify_table(jobs.task_of(alone_job()), out)
    assert checked.fields["not_verified"][0] == "unit"
    assert "not verified: whether these records belong to at least K=4 different people" in checked.text


def test_a_row_without_an_id_is_refused_and_where_it_is_only_the_owner_hears(tmp_path: Path) -> None:
    for value in ("", " ", "?"):
        rows = [*visits(4), {**visits(1)[0], "patient": value}]
        with pytest.raises(DataError, match="column patient has a missing cell") as caught:
            load_table(source_of(tmp_path, rows), jobs.task_of(alone_job()))
        assert "line 6" in caught.value.private
        assert "6" not in str(caught.value)
        assert (
            problem_of(caught.value).advice(to_owner=True).startswith("give every row the id of its person")
        )


def test_rows_of_one_person_may_be_many_and_ids_count_as_they_are_compared(tmp_path: Path) -> None:
    row = sample_rows(1)[0]
    same = ["anna", " anna", "ann\uff41"]
    rows = [{**row, "patient": who} for who in (*same, "Anna", "bob", "bob")]
    loaded = load_table(source_of(tmp_path, rows), jobs.task_of(alone_job()))
    assert loaded.person is not None
    assert sorted(zip(loaded.person.tolist(), loaded.table.weights.tolist(), strict=True)) == [
        (0, 1),
        (1, 3),
        (2, 2),
    ]
    assert "person" not in repr(loaded)


def test_several_id_columns_name_a_person_together(tmp_path: Path) -> None:
    row = sample_rows(1)[0]
    rows = [{**row, "patient": a, "ward": b} for a, b in (("1", "x"), ("1", "y"), ("1", "x"), ("11", "x"))]
    task = jobs.task_of(alone_job(columns={"ward": {"role": "id"}, **COLUMNS}))
    loaded = load_table(source_of(tmp_path, rows), task)
    assert loaded.person is not None
    assert sorted(loaded.table.weights.tolist()) == [1, 1, 2]


def test_whose_rows_they_are_is_part_of_what_a_party_commits_to(tmp_path: Path) -> None:
    task, rows = jobs.task_of(shared_job()), visits(12, 5)
    first = load_table(source_of(tmp_path, rows), task).canonical()
    assert load_table(source_of(tmp_path, rows[::-1]), task).canonical() == first
    other = [{**row, "patient": "7"} for row in rows]
    assert load_table(source_of(tmp_path, other), task).canonical() != first


def test_nothing_is_written_that_was_not_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that forgot to count people is stopped by those who count them again."""
    by_records = {**alone_job("record", K=8), "columns": columns(patient=None)}
    made = anonymized(
        jobs.task_of(by_records),
        load_table(source_of(tmp_path, visits()), jobs.task_of(by_records)),
        Observer(),
    )
    monkeypatch.setattr(single, "anonymized", lambda task, loaded, shown: made)
    with pytest.raises(PartyError, match=r"counting people, a group on .* violates K"):
        run(tmp_path, alone_job(K=8), visits())
    assert not (tmp_path / "out").exists()


def test_a_group_of_too_few_people_is_found() -> None:
    """By code that shares nothing with the runs."""
    task = jobs.task_of(alone_job(K=2))
    rows = [("Blue", "[0,100)", "Y", "Heart")] * 3 + [("White", "[0,100)", "Y", "Heart")] * 2
    release = release_of(list(COLUMNS)[1:], rows)
    for person, found in (([0, 0, 1, 2, 3], None), ([0, 0, 0, 1, 2], "K"), ([0, 1, 2, 3, 3], "K")):
        (entry,) = entries_of(task.job)
        finding = verify_persons(release, np.array(person), claim_of(release, task, entry))
        assert (finding.threshold if finding else None) == found
    with pytest.raises(PartyError, match="counting people, a group on no column violates K"):
        require_counted(ByRow(release, person=np.zeros(5, dtype=np.int64)), task)


# ---- joint runs


@pytest.mark.some(2)
@pytest.mark.parametrize("level", ["sealed", "leader"])
@pytest.mark.parametrize("goal", ["classification", "general"])
def test_the_parties_come_to_what_one_holder_of_all_rows_comes_to(
    level: str, goal: str, tmp_path: Path
) -> None:
    """Ids are told apart by party: a person at two holders counts twice."""
    rows = visits(120, 3)
    asked: dict[str, Any] = {"K": 6, "goal": goal, "score": PUBLISHED_NAMES[goal]}
    joint = run_lkc(jobs.task_of(shared_job(level, **asked)), tmp_path, rows=rows).result
    told = [{**row, "patient": f"{i % 3}-{row['patient'].strip()}"} for i, row in enumerate(rows)]
    task = jobs.task_of(alone_job(**asked))
    loaded = load_table(source_of(tmp_path, told), task)
    outcome = anonymized(task, loaded, Observer())
    assert jobs.turns(joint.outcome) == jobs.turns(outcome)
    theirs = release_of_counts(joint.outcome.schema, joint.outcome.cut, joint.generalized)
    assert jobs.multiset(theirs) == jobs.multiset(release_of_rows(loaded.table, outcome.cut))
    assert loaded.person is not None
    assert min(len(group) for group in groups(outcome, loaded.table, loaded.person)) >= 6
    records = anonymized(
        jobs.task_of(alone_job("record", **asked, columns=columns(patient=None))),
        loaded,
        Observer(),
    )
    assert jobs.turns(records) != jobs.turns(outcome)  # the sample is one where it matters


@pytest.mark.parametrize("level", ["sealed", "leader"])
def test_own_groups_are_told_in_people(level: str, tmp_path: Path) -> None:
    """A party of one person has groups of one, however many records they hold."""
    task, told = jobs.task_of(shared_job(level, K=1)), []

    class Told(Observer):
        def opening_groups(self, own: Any) -> None:
            told.append(own)

    rows = [{**row, "patient": "1"} for row in sample_rows(30)]
    tables = {p: task.load(source_of(tmp_path, rows), p) for p in PARTIES}
    run_local({p: task.mode.run(task, p, tables[p], SeededRng(p), Told()) for p in PARTIES})
    assert len(told) > 3
    assert max(int(own.max()) for own in told) == 1
    with pytest.raises(PolicyError, match="fewer of our people than our policy asks for") as caught:
        OwnGroups(Observer(), 2, "person", "people").opening_groups(told[0])
    assert "the smallest has 1 person" in caught.value.problem.private


def test_a_job_that_counts_people_parses() -> None:
    for fields in (alone_job(), shared_job(), shared_job("leader")):
        assert parse_job(fields, "job").lkc.unit == "person"
