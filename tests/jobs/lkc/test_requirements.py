"""`model.requirements`, a list of entries instead of the one of `lkc`: refused, covered, run, told and verified."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.persons import Persons
from anonymize.errors import PrivacyError, SchemaError
from anonymize.release import Release
from jobs.errors import ConfigError, PartyError, PolicyError
from jobs.lkc.entries import Entry, covering, entries_of, uncovered
from jobs.lkc.requirement import requirement, requirement_words
from jobs.lkc.sentences import notes_on, verified_words
from jobs.lkc.settings import MAX_REQUIREMENTS
from jobs.lkc.verify import require_verified, verified_fields, verify_release
from jobs.loading import check_task, parse_job
from jobs.owner.objections import allowance, check_policy
from jobs.owner.policy import Policy
from jobs.release.csv import REPORT, TABLE
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.examples import examples
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.refusals import refused
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job, release_of, single_job, vertical_job

Said = dict[str, Any]


def listed(*entries: Said, **changes: Any) -> dict[str, Any]:
    """A job of one holder with a list of requirements."""
    return single_job(**{"model": {"requirements": list(entries)}, **changes})


WHOLE: Said = {"L": "2", "K": "2", "C": "0.5"}


# ---- the job file


def test_what_is_not_said_has_a_default_that_the_canonical_form_says() -> None:
    job = parse_job(listed({"K": "3", "distinct": {"surgery": "2"}}), "job")
    assert json.loads(job.canonical())["model"]["lkc"] == {
        "requirements": [{"L": "all", "K": 3, "C": "1", "distinct": {"surgery": 2}}],
        "method": "top-down",
        "score": "added",
        "contexts": "cells",
    }
    (entry,) = entries_of(job)
    assert (entry.columns, entry.known, entry.of_all, entry.bounds) == (
        ("job", "age"),
        2,
        True,
        {"surgery": 1},
    )


def test_one_requirement_is_a_list_of_one() -> None:
    lkc, of_list = parse_job(single_job(), "job"), parse_job(listed(WHOLE), "job")
    assert '"model":{"lkc":{"L":2,"K":2,"C":"1/2","method":"top-down",' in lkc.canonical()
    assert [e.ask for e in entries_of(lkc)] == [e.ask for e in entries_of(of_list)]
    assert lkc.model.name == of_list.model.name == "lkc"


def test_a_c_is_that_of_the_entry_for_the_column_then_its_own_then_that_of_the_entry() -> None:
    drug = {"role": "sensitive", "domain": ["x", "y"], "values": ["x"], "C": "0.75"}
    fields = listed(
        {"C": {"surgery": "0.25"}},
        {"C": "0.5"},
        {"C": {"drug": "0.125"}, "K": "2"},
        columns=columns(drug=drug),
    )
    bounds = [entry.bounds for entry in entries_of(parse_job(fields, "job"))]
    assert bounds == [
        {"surgery": Fraction(1, 4), "drug": Fraction(3, 4)},
        {"surgery": Fraction(1, 2), "drug": Fraction(3, 4)},
        {"surgery": Fraction(1), "drug": Fraction(1, 8)},
    ]


ALL_PROTECTED = columns(surgery={"role": "sensitive", "domain": ["Heart", "Knee", "Rare"]})
BELOW_A_THIRD = "model.lkc.requirements.1: C=3/10 of surgery cannot be met: all 3 values are protected"
OWN = columns(surgery={**COLUMNS["surgery"], "C": "0.5"})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            listed({"columns": ["age"], "K": "2"}),
            "columns.job: no requirement names the column; say `role: plain`",
        ),
        (
            listed({"columns": ["age", "sex"], "K": "2"}),
            "0.columns names 'sex', but the job has no such column",
        ),
        (
            listed(WHOLE, {"columns": ["surgery"], "K": "2"}),
            "1.columns names 'surgery' with `role: sensitive`",
        ),
        (listed(WHOLE, {"columns": ["age", "age"], "K": "2"}), "1.columns names 'age' twice"),
        (
            listed(WHOLE, {"columns": [], "K": "2"}),
            "`model.lkc.requirements.1.columns` is empty: list 1 or more",
        ),
        (
            listed({"C": {"job": "0.5"}}),
            "model.lkc.requirements.0.C names 'job', which is not a sensitive column",
        ),
        (
            listed({"distinct": {"job": "2"}}),
            "model.lkc.requirements.0.distinct names 'job', which is not a sensitive",
        ),
        (
            listed({"K": "2147483648"}),
            "`model.lkc.requirements.0.K`: no table has more than 2147483647 records",
        ),
        (listed({"distinct": {"surgery": "1"}}), "`model.lkc.requirements.0.distinct.surgery`"),
        (
            listed(WHOLE, {"K": "1", "C": "1"}),
            "model.lkc.requirements.1 asks for nothing: give a K above 1, a C or t below 1",
        ),
        (listed(WHOLE, {"K": "0"}), "`model.lkc.requirements.1.K`"),
        (
            listed({"L": "0", "K": "2"}),
            "`model.lkc.requirements.0.L` is 0: write a whole number above 0, e.g. 5, or `all`",
        ),
        (
            listed({"L": "most", "K": "2"}),
            "`model.lkc.requirements.0.L` is most: write a whole number above 0, e.g. 5, or `all`",
        ),
        (listed({"C": {}, "K": "2"}), "`model.lkc.requirements.0.C` is empty: list 1 or more"),
        (
            listed({"C": {"surgery": "2"}}),
            "`model.lkc.requirements.0.C.surgery` is 2: write a number above 0 and at most 1",
        ),
        (listed({"C": "2"}), "`model.lkc.requirements.0.C` is 2: write a number above 0 and at most 1"),
        (
            listed({"C": {"surgery": "1/4"}}, columns=OWN),
            "columns.surgery.C is of no effect: every requirement has",
        ),
        (
            listed(*[WHOLE] * 200),
            f"`model.lkc.requirements`: list 1 to {MAX_REQUIREMENTS} requirements, not 200",
        ),
        (listed(), f"`model.lkc.requirements`: list 1 to {MAX_REQUIREMENTS} requirements, not 0"),
        (listed({"K": "2", "k": "2"}), "unknown key `model.lkc.requirements.0.k`"),
        (
            single_job(model={"requirements": [WHOLE], "lkc": {"K": "2"}}),
            "unknown key `model.lkc.K`: write the key in each entry of `requirements`",
        ),
        (
            single_job(model={"lkc": {"L": "2", "K": "2", "columns": ["age"], "C": "1"}}),
            "columns.job: no requirement names the column",
        ),
        (
            single_job(model={"lkc": {"L": "2", "K": "2", "C": {"job": "1"}}}),
            "model.lkc.C names 'job', which is not a sensitive column",
        ),
        (
            vertical_job(insider="true", model={"requirements": [WHOLE, {"columns": ["age"], "C": "0.25"}]}),
            "insider",
        ),
        (vertical_job(insider="true", model={"requirements": [{"columns": ["age", "job"], "K": "2"}]}), None),
        (
            vertical_job(
                insider="true",
                model={"requirements": [WHOLE, {"columns": ["age"], "distinct": {"surgery": "2"}}]},
            ),
            "`insider: true` needs a requirement of all quasi-identifiers with the smallest C and the largest",
        ),
        (
            joint_job(model={"requirements": [WHOLE, {**WHOLE, "colluders": "1"}]}),
            "model.lkc.requirements.1.colluders",
        ),
    ],
)
def test_a_bad_list_has_one_clear_error(fields: dict[str, Any], says: str | None) -> None:
    if says is None:
        parse_job(fields, "job")
        return
    message = refused(fields).message
    assert says in message
    assert message.count(";") <= 1


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            listed({"distinct": {"surgery": "4"}}),
            "0.distinct: surgery has 3 values in its domain, so no group has 4",
        ),
        (listed(WHOLE, {"C": {"surgery": "0.3"}}, columns=ALL_PROTECTED), BELOW_A_THIRD),
        (listed(WHOLE, {"C": "0.3"}, columns=ALL_PROTECTED), BELOW_A_THIRD),
        (listed(WHOLE, {"C": "1/3"}, columns=ALL_PROTECTED), None),
        (listed(WHOLE, {"C": "0.3"}), None),
    ],
)
def test_what_no_group_can_meet_is_refused(fields: dict[str, Any], says: str | None) -> None:
    if says is None:
        check_task(jobs.task_of(fields))
        return
    with pytest.raises(SchemaError) as caught:
        check_task(jobs.task_of(fields))
    assert says in str(caught.value)


def test_a_c_of_its_own_has_effect_where_some_entry_says_nothing_else() -> None:
    job = parse_job(listed({"C": {"surgery": "1/4"}}, {"K": "2"}, columns=OWN), "job")
    assert [entry.bounds["surgery"] for entry in entries_of(job)] == [Fraction(1, 4), Fraction(1, 2)]


# ---- cover


@pytest.mark.parametrize(
    ("entries", "covered"),
    [
        ([WHOLE, WHOLE], {1: 0}),
        ([{"columns": ["age"], "K": "2"}, {"K": "3"}], {0: 1}),
        ([{"columns": ["age"], "K": "4"}, {"K": "3"}], {}),
        ([{"L": "1", "K": "2"}, {"L": "2", "K": "2"}], {0: 1}),
        ([{"L": "5", "K": "2"}, {"L": "2", "K": "2"}], {1: 0}),
        ([{"K": "2", "C": "0.5"}, {"K": "2", "C": {"surgery": "0.4"}}], {0: 1}),
        ([{"K": "2", "C": "0.3"}, {"K": "3", "C": "0.4"}], {}),
        ([{"distinct": {"surgery": "2"}}, {"distinct": {"surgery": "3"}}], {0: 1}),
        ([{"K": "2", "distinct": {"surgery": "2"}}, {"K": "2"}], {1: 0}),
        ([{"columns": ["age"], "K": "2"}, {"columns": ["job"], "K": "3"}], {}),
        ([{"columns": ["age"], "K": "2"}, {"columns": ["age"], "K": "3"}, {"K": "4"}], {0: 2, 1: 2}),
    ],
)
def test_an_entry_is_covered_by_one_that_asks_no_less(entries: list[Said], covered: dict[int, int]) -> None:
    found = entries_of(parse_job(listed(*entries), "job"))
    assert covering(found) == covered
    assert [entry.place for entry in uncovered(found)] == [i for i in range(len(entries)) if i not in covered]


def test_more_colluders_are_not_covered() -> None:
    hospital = {"role": "party", "domain": ["a", "b", "c"]}
    found = entries_of(
        parse_job(listed(WHOLE, {**WHOLE, "colluders": "1"}, columns=columns(hospital=hospital)), "job")
    )
    assert covering(found) == {0: 1}


# ---- runs


@st.composite
def lists(draw: st.DrawFn) -> list[Said]:
    """Entries of the sample columns that ask for something and name both quasi-identifiers."""
    entries = []
    for names in (["job"], draw(st.sampled_from([["age"], ["job", "age"]])), ["age"]):
        entry: Said = {"columns": names, "K": str(draw(st.integers(2, 9)))}
        if draw(st.booleans()):
            entry["L"] = draw(st.sampled_from(["1", "2"]))
        if draw(st.booleans()):
            entry["C"] = {"surgery": draw(st.sampled_from(["0.3", "0.5", "3/4"]))}
        if draw(st.booleans()):
            entry["distinct"] = {"surgery": str(draw(st.integers(2, 3)))}
        entries.append(entry)
    return entries


def groups_of(rows: Counter[tuple[str, ...]], entry: Entry, names: Sequence[str]) -> Iterator[Counter[str]]:
    """By group of an entry, literally, how often it has each value of the last column."""
    for size in range(entry.known + 1):
        for chosen in combinations(entry.columns, size):
            groups: dict[tuple[str, ...], Counter[str]] = {}
            for row, n in rows.items():
                key = tuple(row[names.index(name)] for name in chosen)
                groups.setdefault(key, Counter())[row[-1]] += n
            yield from groups.values()


def is_met(group: Counter[str], entry: Entry) -> bool:
    n, least = group.total(), (entry.said.distinct or {}).get("surgery", 1)
    return n >= entry.said.K and len(group) >= least and group["Rare"] <= entry.bounds["surgery"] * n


@settings(max_examples=examples(60), deadline=None)
@given(entries=lists(), seed=st.integers(0, 5), goal=st.sampled_from(["classification", "general"]))
def test_the_table_meets_every_entry_and_is_that_of_the_entries_which_none_covers(
    entries: list[Said], seed: int, goal: str
) -> None:
    bundle = jobs.bundle_of(listed(*entries, goal=goal))
    table, found = jobs.coded(bundle, sample_rows(60, seed)), entries_of(bundle.job)
    root = Counter(("", "", row["surgery"]) for row in sample_rows(60, seed))
    if not all(is_met(group, e) for e in found for group in groups_of(root, e, ("job", "age"))):
        with pytest.raises(PrivacyError) as caught:
            jobs.run_single(bundle, table)
        assert caught.value.error_id == "requirement-unmet"
        return
    outcome, release = jobs.run_single(bundle, table)
    rows = jobs.multiset(release)
    assert all(is_met(group, e) for e in found for group in groups_of(rows, e, ("job", "age")))
    again, _ = jobs.run_single(jobs.bundle_of(listed(*entries, *entries, goal=goal)), table)
    assert jobs.turns(again) == jobs.turns(outcome)


def released(rows: Sequence[tuple[str, ...]]) -> Release:
    return release_of(["job", "age", "transfused", "surgery"], list(rows))


MET = [("Any", "[0,100)", "Y", "Heart"), ("Any", "[0,100)", "N", "Rare")]


def test_every_entry_is_verified_covered_ones_too() -> None:
    whole: Said = {"K": "2"}
    rows = released([*MET, ("Blue", "[0,100)", "Y", "Heart"), ("Blue", "[0,100)", "Y", "Heart")])
    for entry, threshold in (
        ({"columns": ["age"], "K": "4"}, None),
        ({"columns": ["job"], "K": "3"}, "K"),
        ({"columns": ["age"], "C": {"surgery": "0.25"}}, None),
        ({"columns": ["age"], "C": {"surgery": "0.2"}}, "C"),
        ({"columns": ["age"], "distinct": {"surgery": "2"}}, None),
        ({"columns": ["job"], "distinct": {"surgery": "2"}}, "distinct"),
        ({"columns": ["age"], "distinct": {"surgery": "3"}}, "distinct"),
    ):
        task = jobs.task_of(listed(whole, entry))
        finding = verify_release(rows, task)
        assert (finding.threshold if finding else None) == threshold
        if threshold is not None:
            with pytest.raises(PartyError, match=f"violates {threshold}"):
                require_verified(rows, task)


@pytest.mark.parametrize(
    "job",
    [
        single_job,
        vertical_job,
        *(partial(joint_job, disclosure=level) for level in ("leader", "sealed", "strict")),
    ],
)
def test_a_k_above_any_table_is_refused_in_every_mode(job: Callable[..., dict[str, Any]]) -> None:
    """The greatest one is allowed: the root check is for it."""
    for k, fits in (("2147483647", True), ("2147483648", False), ("99999999999999999999", False)):
        fields = job(model={"lkc": {"L": "2", "K": k, "C": "1"}})
        if fits:
            parse_job(fields, "job")
            continue
        with pytest.raises(
            ConfigError, match=r"`model\.lkc\.K`: no table has more than 2147483647 records"
        ) as caught:
            parse_job(fields, "job")
        assert caught.value.problem.error_id == "job-invalid"


# ---- what is told


LIST: tuple[Said, ...] = (
    {"columns": ["age"], "K": "4", "C": {"surgery": "0.9"}, "distinct": {"surgery": "2"}},
    {"columns": ["job"], "L": "1", "K": "5"},
    {"columns": ["job"], "K": "3"},
)


def test_the_requirement_in_a_line() -> None:
    job = parse_job(listed(*LIST), "job")
    assert requirement_words(job) == (
        "L=all of age K=4 C(surgery)=9/10 distinct(surgery)=2; L=1 of job K=5; L=all of job K=3"
    )


def test_what_a_reader_may_overlook_is_noted() -> None:
    notes = notes_on(jobs.task_of(listed(*LIST)))
    assert any(note.startswith("no requirement covers all quasi-identifiers") for note in notes)
    assert any(note.startswith("L=all of job K=3 follows from L=1 of job K=5") for note in notes)
    assert len(notes) == 2
    (note,) = notes_on(jobs.task_of(listed({"L": "3", "K": "2", "distinct": {"surgery": "2"}})))
    assert note.startswith("L=3 is more than the 2 quasi-identifiers: the job is the same with L=2")
    (note,) = notes_on(jobs.task_of(listed({"K": "2"})))
    assert note.startswith("no requirement bounds inferences about surgery")


def test_what_was_counted_again_is_said_of_every_entry() -> None:
    said = verified_words(jobs.task_of(listed(*LIST)))
    assert said.startswith(
        "every group of records was counted again in the released table: on every subset of"
    )
    assert (
        "any of age, at least K=4 records, no protected value above its C, and at least 2 different" in said
    )
    assert "of at most L=1 of job, at least K=5 records" in said
    insider = vertical_job(insider="true", model={"requirements": [{"K": "2", "distinct": {"surgery": "2"}}]})
    assert "; every group on all these columns and the class has at least 2 different values of surgery" in (
        verified_words(jobs.task_of(insider))
    )


def run(folder: Path, *entries: Said) -> Mapping[str, Any]:
    job = write_job(folder, listed(*entries, goal="general"))
    jobs.write_csv(folder / "table.csv", sample_rows(60), COLUMNS)
    done = invoke("coordinator", "run", job, "--out", folder / "out")
    assert done.code == 0, done.err
    report: dict[str, Any] = json.loads((folder / "out" / REPORT).read_text())
    return report


def test_the_report_says_of_every_entry_what_was_asked_and_what_the_table_has(tmp_path: Path) -> None:
    report = run(tmp_path, *LIST)
    first, second, third = report["requirements"]
    asked = {"columns": ["age"], "L": 1, "K": 4, "C": {"surgery": "9/10"}, "distinct": {"surgery": 2}}
    assert asked.items() <= first.items()
    assert {
        "columns": ["job"],
        "L": 1,
        "K": 3,
        "C": {"surgery": "1"},
        "covered_by": 1,
    }.items() <= third.items()
    assert "covered_by" not in first | second
    released_rows = list(csv.DictReader((tmp_path / "out" / TABLE).read_text().splitlines()))
    by_age: dict[str, Counter[str]] = {}
    for row in released_rows:
        by_age.setdefault(row["age"], Counter())[row["surgery"]] += 1
    by_job = Counter(row["job"] for row in released_rows)
    assert first["smallest_group"] == min(group.total() for group in by_age.values()) >= 4
    assert first["largest_share"] == {
        "surgery": round(max(group["Rare"] / group.total() for group in by_age.values()), 6)
    }
    assert first["fewest_distinct"] == {"surgery": min(map(len, by_age.values()))}
    assert second["smallest_group"] == third["smallest_group"] == min(by_job.values()) >= 5
    assert "largest_share" not in second
    assert "Nothing bounds a reader who knows all 2 quasi-identifiers" in report["risk"]["meaning"]
    assert "K=4 for any of age; K=5 for at most L=1 of job" in report["risk"]["meaning"]
    checked = invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out")
    assert checked.code == 0
    assert f"L=1 of job K=5: smallest group {second['smallest_group']}" in checked.out


def test_of_an_lkc_job_too(tmp_path: Path) -> None:
    task = jobs.task_of(single_job())
    (fields,) = verified_fields(require_verified(released(MET), task))
    assert fields == {
        "columns": ["job", "age"],
        "L": 2,
        "K": 2,
        "C": {"surgery": "1/2"},
        "smallest_group": 2,
        "largest_share": {"surgery": 0.5},
    }


@pytest.mark.parametrize(
    ("entry", "which"),
    [
        ({"K": "61"}, "K; asked is L=all K=61 (model.lkc.requirements.1)"),
        ({"columns": ["age"], "K": "61"}, "K; asked is L=all of age K=61 (model.lkc.requirements.1)"),
        (
            {"columns": ["age"], "C": "0.01", "K": "5"},
            "C for column surgery; asked is L=all of age K=5 C=1/100 (model.lkc.requirements.1)",
        ),
        (
            {"columns": ["age"], "distinct": {"surgery": "3"}, "C": {"surgery": "0.01"}},
            "C for column surgery; asked is L=all of age K=1 C(surgery)=1/100 distinct(surgery)=3 "
            "(model.lkc.requirements.1)",
        ),
    ],
)
def test_an_entry_that_the_whole_table_violates_is_named(tmp_path: Path, entry: Said, which: str) -> None:
    """The first of them, and no other; how large the table is stands behind, for its owner."""
    job = write_job(tmp_path, listed(WHOLE, entry))
    jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS)
    done = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert done.code == 1
    assert f"the fully generalized table already violates {which} [the table has 60 records]" in done.err
    advice = "lower K, or bring" if which.startswith("K") else "raise C, protect fewer values, or bring"
    assert advice in done.err
    assert not (tmp_path / "out").exists()


def test_fewer_values_than_asked_cannot_be_met(tmp_path: Path) -> None:
    """Only the data tell, where they give the domain."""
    surgery = {"role": "sensitive"}
    job = write_job(tmp_path, listed({"distinct": {"surgery": "4"}}, columns=columns(surgery=surgery)))
    jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS)
    done = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert done.code == 1
    assert "already violates distinct for column surgery" in done.err
    assert "lower distinct" in done.err


# ---- people


def test_k_of_every_entry_counts_people_where_the_job_says_so() -> None:
    fields = listed(*LIST)
    task = jobs.task_of({**fields, "model": {**fields["model"], "unit": "person"}})
    assert requirement_words(task.job).startswith("L=all of age K=4 people C(surgery)=9/10")
    assert (
        "at least K=4 for any of age; K=5 for at most L=1 of job; K=3 for any of job different people"
        in verified_words(task)
    )
    (first, second) = requirement(task).asks
    assert [ask.demands[0] for ask in (first, second)] == [Persons(4), Persons(5)]


# ---- policies


def joint_list(*entries: Said, **changes: Any) -> dict[str, Any]:
    """A sealed job of the sample parties with a list of requirements."""
    return joint_job(**{"disclosure": "sealed", "model": {"requirements": list(entries)}, **changes})


def against(fields: dict[str, Any], **changes: Any) -> list[str]:
    """Return the objections of a policy to a job that it otherwise allows as it is."""
    task, me = jobs.task_of(fields), PARTIES[1]
    allowed = {**allowance(task, me, "coordinator"), **changes}
    try:
        check_policy(Policy.model_validate(allowed), task, me, "coordinator")
        return []
    except PolicyError as error:
        return error.problem.message.split("; ")


HALVES: tuple[Said, ...] = ({"columns": ["age"], "K": "4", "C": "0.5"}, {"columns": ["job"], "K": "5"})
MIXED: tuple[Said, ...] = (
    {"columns": ["age"], "K": "1", "C": "0.25"},
    {"K": "5", "C": "0.75"},
    {"L": "1", "K": "9"},
)


@pytest.mark.parametrize("entries", [(WHOLE,), HALVES, MIXED, ({"K": "2", "colluders": "1"},)])
def test_an_allowance_allows_just_the_job(entries: Sequence[Said]) -> None:
    fields = joint_list(*entries)
    given = allowance(jobs.task_of(fields), PARTIES[1], "coordinator")
    assert against(fields) == []
    assert against(fields, min_k=given["min_k"] + 1)
    assert against(fields, min_l=given["min_l"] + 1) or any("L" not in e for e in entries)
    assert against(fields, max_c=given["max_c"] and "1/100")
    assert given.get("partial_requirements", False) == (entries is HALVES)


def test_one_entry_of_all_quasi_identifiers_must_be_enough() -> None:
    """Not one for K and another for C; what else is asked does no harm."""
    fields = joint_list(*MIXED)
    assert against(fields, min_k=5, min_l=2, max_c="3/4") == []
    assert against(fields, min_k=9, min_l=1, max_c="1") == []
    assert against(fields, min_k=9, max_c="3/4") == ["K must be at least 9, not 5 (`policy.min_k`)"]
    assert against(fields, min_k=9, min_l=2, max_c="1") in (
        ["K must be at least 9, not 5 (`policy.min_k`)"],
        ["L must be at least 2, not 1 (`policy.min_l`)"],
    )
    assert against(fields, max_c="1/4") == [
        "sensitive column surgery: C must be at most 1/4, not 3/4 (`policy.max_c`)"
    ]
    assert against(fields, min_colluders=1) == [
        "colluders must be at least 1, not 0 (`policy.min_colluders`)"
    ]


def test_all_is_as_much_as_any_l() -> None:
    every = {"L": "all", "K": "2", "C": "0.5"}
    assert against(joint_list(every), min_l=9) == []
    assert against(joint_list(every | {"L": "2"}), min_l=9) == [
        "L must be at least 9, not 2 (`policy.min_l`)"
    ]


def test_partial_requirements_are_refused_unless_allowed() -> None:
    fields = joint_list(*HALVES)
    says = (
        "no requirement covers all quasi-identifiers, and partial requirements are not allowed "
        "(`policy.partial_requirements`)"
    )
    assert against(fields, partial_requirements=False) == [says]
    assert against(fields, partial_requirements=True, min_k=4, min_l=1, max_c="1/2") == []
    assert against(fields, min_k=5) == ["K must be at least 5, not 4 (`policy.min_k`)"]
    assert against(fields, min_k=4, max_c="1/3") == [
        "sensitive column surgery: C must be at most 1/3, not 1/2 (`policy.max_c`)"
    ]
    assert against(fields, min_l=2) == []
    assert against(joint_list(*MIXED), partial_requirements=True, min_k=5, min_l=2, max_c="3/4") == [
        "K must be at least 5, not 1 (`policy.min_k`)",
        "L must be at least 2, not 1 (`policy.min_l`)",
    ]
    free = joint_list({"columns": ["age"], "K": "4"}, {"columns": ["job"], "K": "5"})
    assert against(free, max_c="1/2") == [
        "sensitive column surgery: C must be at most 1/2, not 1 (`policy.max_c`)"
    ]
    assert against(free, max_c=None) == [
        "sensitive column surgery: no C is allowed (`policy.max_c` is unset)"
    ]
