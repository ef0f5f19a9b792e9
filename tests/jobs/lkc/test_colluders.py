"""`colluders` in a job: which jobs may say it, what policies say of it, what a pooled table comes to."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import DataError
from anonymize.release import release_of_counts
from anonymize.tds import Observer
from anonymize.verification.tables import verify_remainders
from jobs.errors import PartyError
from jobs.lkc import single
from jobs.lkc.checked import verify_table
from jobs.lkc.entries import entries_of
from jobs.lkc.options.option import ByRow
from jobs.lkc.sentences import verified_words
from jobs.lkc.single import anonymized, release_to_folder
from jobs.lkc.verify import claim_of, require_counted
from jobs.loading import parse_job
from jobs.options import NO_OPTIONS
from jobs.owner.objections import allowance
from jobs.reading import load_table
from jobs.release.csv import TABLE, read_csv
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.dp_jobs import dp_single
from tests.support.examples import examples
from tests.support.joint import sample_rows
from tests.support.lkc_alone import expect_as_defined, source_of
from tests.support.lkc_runs import run_lkc
from tests.support.reference import Known
from tests.support.refusals import objected, refused
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job, release_of, single_job, vertical_job
from tests.support.tables import Case, cases

HOSPITAL = {"role": "party", "domain": list(PARTIES)}


def lkc(colluders: int | str, K: int = 2) -> dict[str, Any]:
    return {"lkc": {"L": "2", "K": str(K), "C": "0.5", "colluders": str(colluders)}}


def sealed(colluders: int | str = 1, **changes: Any) -> dict[str, Any]:
    return joint_job(**{"disclosure": "sealed", "model": lkc(colluders), **changes})


def pooled(
    colluders: int | str = 1, hospital: Mapping[str, Any] = HOSPITAL, **changes: Any
) -> dict[str, Any]:
    """One holder's table of the sample parties' records."""
    return single_job(**{"model": lkc(colluders), "columns": columns(hospital=hospital), **changes})


# ---- the job file


@pytest.mark.parametrize("fields", [sealed(1), sealed(2), pooled(1), pooled(2)])
def test_below_the_number_of_parties(fields: dict[str, Any]) -> None:
    assert parse_job(fields, "job").record_holders == PARTIES


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (sealed("-1"), "`model.lkc.colluders`"),
        (sealed("1.5"), "`model.lkc.colluders`"),
        (sealed(3), "colluders: 3 of 3 parties cannot be held to anything: at least one must be left"),
        (pooled(3), "colluders: 3 of 3 parties cannot be held to anything"),
        (
            sealed(8, parties={f"p{i}": {"address": "h:1"} for i in range(16)}, leader=None),
            "any 8 of 16 parties are more than 256 coalitions",
        ),
        (
            joint_job(model=lkc(1)),
            "needs `disclosure: sealed`: a leader would learn each party's own counts",
        ),
        (vertical_job(model=lkc(1)), "colluders is for rows: parties of a vertical job hold columns"),
        (single_job(model=lkc(1)), "colluders needs a column with `role: party`"),
        (pooled(0), "columns.hospital: `role: party` is for `colluders`"),
        (pooled(1, {"role": "party"}), "a party column needs its `domain`"),
        (pooled(1, {**HOSPITAL, "missing": "drop"}), "a column of role party has no key 'missing'"),
        (
            pooled(columns=columns(hospital=HOSPITAL, ward=HOSPITAL)),
            "only one column can have `role: party`",
        ),
        (
            sealed(columns=columns(hospital=HOSPITAL)),
            "columns.hospital: `role: party` is for a single table",
        ),
        (dp_single(columns=columns(hospital=HOSPITAL)), "columns.hospital: `role: party` is for LKC jobs"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused_with_the_reason(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


def test_no_colluders_are_the_job_without_them() -> None:
    """Its hash, too: nothing that was approved before changes."""
    plain = sealed(model={"lkc": {"L": "2", "K": "2", "C": "0.5"}})
    assert jobs.bundle_of(sealed(0)).digest == jobs.bundle_of(plain).digest
    assert jobs.bundle_of(sealed(1)).digest != jobs.bundle_of(plain).digest
    assert "colluders" not in jobs.bundle_of(sealed(0)).job.canonical()


def test_an_owner_can_ask_for_it() -> None:
    """Of horizontal LKC jobs; in vertical ones nobody has rows to subtract."""

    assert objected(sealed(1), PARTIES[0], min_colluders=1) == ""
    assert objected(sealed(2), PARTIES[0], min_colluders=1) == ""
    assert "colluders must be at least 2" in objected(sealed(1), PARTIES[0], min_colluders=2)
    assert "colluders must be at least 1" in objected(joint_job(), PARTIES[0], min_colluders=1)
    assert objected(vertical_job(), "loan", min_colluders=1) == ""
    assert allowance(jobs.task_of(sealed(2)), PARTIES[0], "coordinator")["min_colluders"] == 2
    assert "min_colluders" not in allowance(jobs.task_of(joint_job()), PARTIES[0], "coordinator")


def test_it_is_told_wherever_the_requirement_is() -> None:
    task = jobs.task_of(sealed(1))
    assert task.model.described(task).requirement == "L=2 K=2 C=1/2 colluders=1"
    said = " ".join(task.mode.words(task, None)["protection"])
    assert "`colluders: 1`: the rest of any group after any one party subtracts its own rows is empty" in said
    two = jobs.task_of(sealed(2))
    assert "after any 2 parties subtract their own rows" in " ".join(two.mode.words(two, None)["protection"])
    plain = jobs.task_of(joint_job())
    assert "colluders" not in " ".join(plain.mode.words(plain, None)["protection"])


def test_what_was_not_counted_again_in_the_table_is_said() -> None:
    words = verified_words(jobs.task_of(sealed(1)))
    assert "at least K=2 records, and no protected value above its C; whether the rest" in words
    assert "cannot be counted in a table without origin; this was tested inside the circuits" in words
    assert verified_words(jobs.task_of(pooled(1))).endswith("from the party column of the holder's table")
    assert "origin" not in verified_words(jobs.task_of(joint_job()))


# ---- runs


def pooled_rows(n: int = 60) -> list[dict[str, str]]:
    """The sample rows as :func:`tests.support.lkc_runs.run_lkc` deals them out among the sample parties."""
    return [{**row, "hospital": PARTIES[i % len(PARTIES)]} for i, row in enumerate(sample_rows(n))]


def run_pooled(folder: Path, fields: dict[str, Any], rows: Sequence[Mapping[str, str]]) -> Path:
    release_to_folder(
        jobs.task_of(fields),
        source_of(folder, rows),
        folder / "out",
        NO_OPTIONS,
        Stopwatch(lambda name: None),
        Observer(),
    )
    return folder / "out"


def rows_of(release: Any) -> Counter[tuple[str, ...]]:
    return jobs.multiset(release.ordered(["job", "age", "transfused", "surgery"]))


@pytest.mark.some(2)
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("goal", ["classification", "general"])
def test_a_pooled_table_comes_to_what_its_parties_come_to(most: int, goal: str, tmp_path: Path) -> None:
    out = run_pooled(tmp_path, pooled(most, goal=goal), pooled_rows())
    joint = run_lkc(jobs.task_of(sealed(most, goal=goal)), tmp_path).result
    ours = read_csv(out / TABLE, ["job", "age", "transfused", "surgery"])
    theirs = release_of_counts(joint.outcome.schema, joint.outcome.cut, joint.generalized)
    assert rows_of(ours) == rows_of(theirs)
    assert "hospital" not in (out / TABLE).read_text().splitlines()[0]


@pytest.mark.parametrize("most", [0, 1, 2])
def test_the_table_meets_the_definition_counted_from_its_rows(most: int, tmp_path: Path) -> None:
    """Rows are found again by generalizing the input by the published cut."""
    plain = single_job(model=lkc(0, K=4), goal="general")
    fields = pooled(model=lkc(most, K=4), goal="general") if most else plain
    out = run_pooled(tmp_path, fields, pooled_rows())
    assert list(broken(out / TABLE, pooled_rows(), most, K=4)) == []
    if most < 2:  # the sample is one where it matters
        assert list(broken(out / TABLE, pooled_rows(), most + 1, K=4))


def broken(path: Path, rows: Sequence[Mapping[str, str]], most: int, K: int) -> Iterator[tuple[Any, ...]]:
    release = read_csv(path, ["job", "age", "transfused", "surgery"])
    labels = {name: set(release.columns[name].labels) for name in ("job", "age")}
    above = {"Janitor": ["Janitor", "Blue"], "Mover": ["Mover", "Blue"], "Lawyer": ["Lawyer", "White"]}

    def generalized(row: Mapping[str, str]) -> tuple[str, str]:
        (work,) = [label for label in [*above[row["job"]], "Any"] if label in labels["job"]][:1]
        bounds = ((label, *map(int, label[1:-1].split(","))) for label in labels["age"])
        (age,) = [label for label, low, high in bounds if low <= int(row["age"]) < high]
        return work, age

    for size in range(most + 1):
        for gone in combinations(PARTIES, size):
            kept = [(generalized(row), row) for row in rows if row["hospital"] not in gone]
            for known in chain.from_iterable(combinations(range(2), k) for k in range(3)):
                groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
                for key, row in kept:
                    groups.setdefault(tuple(key[i] for i in known), []).append(row)
                for key, group in groups.items():
                    rare = sum(row["surgery"] == "Rare" for row in group)
                    if len(group) < K or Fraction(rare, len(group)) > Fraction(1, 2):
                        yield gone, known, key


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_definition_taken_literally(case: Case, data: st.DataObject) -> None:
    """The reference tests every coalition of every size, on every set of columns."""
    parties = [f"h{i}" for i in range(data.draw(st.integers(2, 4)))]
    most = data.draw(st.integers(1, len(parties) - 1))
    rows = [{**row, "who": data.draw(st.sampled_from(parties))} for row in case.rows]
    (model,), problem = case.fields["model"].values(), case.problem
    wide = [name for name in problem.sensitive if len(case.fields["columns"][name]["domain"]) > 1]
    least = dict.fromkeys(data.draw(st.sets(st.sampled_from(wide))) if wide else (), 2)
    known = Known(tuple(problem.qid), problem.L, problem.K, problem.sensitive, least)
    distinct = {"distinct": {name: str(n) for name, n in least.items()}} if least else {}
    task = jobs.task_of(
        {
            **case.fields,
            "model": {"lkc": {**model, "colluders": str(most), **distinct}},
            "columns": {**case.fields["columns"], "who": {"role": "party", "domain": parties}},
        }
    )
    expect_as_defined(task, rows, dataclasses.replace(problem, entries=(known,), party="who", colluders=most))


def test_whose_a_row_is_must_be_known(tmp_path: Path) -> None:
    for value, error in (
        ("", "has a missing cell"),
        ("hospital-z", "has a value that the column's taxonomy or domain"),
    ):
        rows = [*pooled_rows(), {**pooled_rows()[0], "hospital": value}]
        with pytest.raises(DataError, match=f"column hospital {error}") as caught:
            load_table(source_of(tmp_path, rows), jobs.task_of(pooled()))
        assert "hospital-z" not in str(caught.value)


def test_rows_of_different_parties_stay_apart(tmp_path: Path) -> None:
    """Equal but for their party, and joined where it is the same."""
    row = sample_rows(1)[0]
    rows = [{**row, "patient": str(i), "hospital": PARTIES[i // 2]} for i in range(4)]
    loaded = load_table(source_of(tmp_path, rows), jobs.task_of(pooled()))
    assert loaded.party is not None
    assert sorted(zip(loaded.party.tolist(), loaded.table.weights.tolist(), strict=True)) == [(0, 2), (1, 2)]
    assert "party" not in repr(loaded)


def test_verify_says_what_a_table_does_not_show(tmp_path: Path) -> None:
    checked = verify_table(jobs.task_of(pooled()), run_pooled(tmp_path, pooled(), pooled_rows()))
    assert (
        "not verified: whether the rest of any group after any one party subtracts its own rows"
        in checked.text
    )
    assert checked.fields["not_verified"][0] == "colluders"


def test_nothing_is_written_that_was_not_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that forgot the remainders is stopped by those who count them again."""
    made = anonymized(
        jobs.task_of(single_job(model=lkc(0, K=4), goal="general")),
        load_table(source_of(tmp_path, pooled_rows()), jobs.task_of(pooled())),
        Observer(),
    )
    monkeypatch.setattr(single, "anonymized", lambda task, loaded, shown: made)
    with pytest.raises(PartyError, match="without the rows of colluding parties"):
        run_pooled(tmp_path, pooled(model=lkc(1, K=4), goal="general"), pooled_rows())
    assert not (tmp_path / "out").exists()


def test_a_remainder_that_is_too_small_is_found(tmp_path: Path) -> None:
    """By code that shares nothing with the runs, for a coalition of any size up to m."""
    group = [("Any", "[0,100)", "Y", "Heart")]
    release = release_of(list(COLUMNS)[1:], group * 5)
    one, two = (jobs.task_of(pooled(m)) for m in (1, 2))
    for party, task, found in (
        ([0, 0, 0, 1, 1], one, None),
        ([0, 0, 0, 0, 1], one, "K"),
        ([0, 0, 1, 1, 1], two, None),
        ([0, 0, 1, 1, 2], one, None),
        ([0, 0, 1, 1, 2], two, "K"),
        ([0, 0, 0, 0, 0], two, None),
    ):
        (entry,) = entries_of(task.job)
        finding = verify_remainders(release, np.array(party), claim_of(release, task, entry))
        assert (finding.threshold if finding else None) == found
    with pytest.raises(
        PartyError, match="without the rows of colluding parties, a group on no column violates K"
    ):
        require_counted(ByRow(release, np.array([0, 0, 0, 0, 1])), one)
