"""t-closeness in jobs: refused, covered, run, told, verified."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from jobs.lkc.entries import covering, entries_of
from jobs.lkc.sentences import notes_on
from jobs.lkc.verify import verify_release
from jobs.loading import parse_job
from jobs.release.csv import REPORT, TABLE
from tests.support import jobs
from tests.support.closeness import Close
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.refusals import refused
from tests.support.samples import COLUMNS, columns, joint_job, release_of, single_job, vertical_job

Said = dict[str, Any]
LKC: Said = {"L": "2", "K": "2", "C": "1"}
CHARGES: Said = {"role": "sensitive", "numeric": {"min": "0", "max": "90", "cuts": ["10", "20", "50"]}}
ROW = ["[0,10)", "[10,20)", "[20,50)", "[50,90)"]


def lkc(**asked: Any) -> Said:
    return {"model": {"lkc": {**LKC, **asked}}}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (joint_job(disclosure="sealed", **lkc(t="0.3")), "model.lkc.t is for the table of a single holder"),
        (joint_job(**lkc(t={"surgery": "0.3"})), "model.lkc.t is for the table of a single holder"),
        (vertical_job(**lkc(t="0.3")), "model.lkc.t is for the table of a single holder"),
        (
            joint_job(method="kd", goal="general", disclosure="sealed", **lkc(t="0.3", L="all")),
            "model.lkc.t is for the table of a single holder",
        ),
        (
            single_job(
                columns=columns(ward={"role": "party", "domain": ["a", "b"]}), **lkc(t="0.3", colluders="1")
            ),
            "leave out `colluders` or `t`",
        ),
        (single_job(**lkc(t={"job": "0.3"})), "model.lkc.t names 'job', which is not a sensitive column"),
        (single_job(**lkc(t="0")), "`model.lkc.t"),
        (single_job(**lkc(t="1.5")), "`model.lkc.t"),
        (
            single_job(columns=columns(surgery={**CHARGES, "distance": "ordered"}), **lkc(t="1")),
            "columns.surgery.distance is for `t`",
        ),
        (
            single_job(
                columns=columns(surgery={**COLUMNS["surgery"], "distance": "ordered"}), **lkc(t="0.3")
            ),
            "`distance: ordered` is for sensitive columns with `numeric`",
        ),
        (
            single_job(
                columns=columns(surgery={**CHARGES, "missing": "leaf", "distance": "ordered"}), **lkc(t="0.3")
            ),
            "without `missing: leaf`",
        ),
        (
            single_job(model={"requirements": [{"t": "2"}]}),
            "`model.lkc.requirements.0.t` is 2: write a number above 0 and at most 1",
        ),
        (
            single_job(model={"requirements": [{"t": "0"}]}),
            "`model.lkc.requirements.0.t` is 0: write a number above 0 and at most 1",
        ),
        (
            single_job(model={"lkc": {"L": "all", "K": "1", "C": "1", "t": "1"}}),
            "model.lkc asks for nothing: give a K above 1, a C or t below 1, `distinct` or `diversity`",
        ),
        (single_job(model={"requirements": [{"t": "1"}]}), "asks for nothing: give a K above 1, a C or t"),
    ],
)
def test_what_is_not_offered_is_refused(fields: Said, said: str) -> None:
    assert said in refused(fields).message


def test_jobs_without_it_have_the_form_they_had() -> None:
    plain = parse_job(single_job(), "job").canonical()
    assert "distance" not in str(plain)
    surgery = {**COLUMNS["surgery"], "distance": "equal"}
    said, unsaid = (
        single_job(columns=columns(surgery=c), **lkc(t="1/3")) for c in (surgery, COLUMNS["surgery"])
    )
    assert parse_job(said, "job").canonical() == parse_job(unsaid, "job").canonical()


def test_a_smaller_t_covers_a_greater_one() -> None:
    entries = [{"t": "0.3"}, {"t": {"surgery": "0.2"}}, {"K": "2"}, {"K": "2", "t": "1"}]
    task = jobs.task_of(single_job(model={"requirements": entries}))
    assert covering(entries_of(task.job)) == {0: 1, 3: 2}
    assert [entry.words for entry in entries_of(task.job)][:2] == [
        "L=all K=1 t(surgery)=3/10",
        "L=all K=1 t(surgery)=1/5",
    ]
    assert not any("bounds what groups tell" in note for note in notes_on(task))


@pytest.mark.parametrize("method", ["top-down", "kd"])
@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_a_table_from_end_to_end(tmp_path: Path, method: str, distance: str) -> None:
    """Printed figures of the worst group are those that a reader of the table finds; of kd its own figure
    agrees.
    """
    how = {"top-down": {"L": "1"}, "kd": {"L": "all"}}[method]
    charges = {**CHARGES, "distance": distance}
    rows = [
        {**row, "surgery": str(7 * i % 31 + int(row["age"]) // 2)} for i, row in enumerate(sample_rows(120))
    ]
    fields = single_job(
        goal="general", method=method, columns=columns(surgery=charges), **lkc(t="1/5", K="3", **how)
    )
    job = write_job(tmp_path, fields)
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    done = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    table = list(csv.DictReader((tmp_path / "out" / TABLE).read_text().splitlines()))
    close = Close(table, {"surgery": (Fraction(1, 5), ROW if distance == "ordered" else None)})
    sets = [("age", "job")] if method == "kd" else [("age",), ("job",)]
    groups = {
        (names, tuple(row[name] for name in names)): [
            other for other in table if all(other[name] == row[name] for name in names)
        ]
        for names in sets
        for row in table
    }
    assert len(groups) > 2
    distances = [close.distance("surgery", group) for group in groups.values()]
    assert max(distances) <= Fraction(1, 5)
    report = json.loads((tmp_path / "out" / REPORT).read_text())
    (asked,) = report["requirements"]
    assert asked["t"] == {"surgery": "1/5"}
    assert asked["largest_t"] == {"surgery": round(float(max(distances)), 6)}
    if method == "kd" and distance == "equal":
        assert report["metrics"]["inference"]["surgery"]["greatest_t"] == asked["largest_t"]["surgery"]
    again = invoke("coordinator", "verify", job, tmp_path / "out")
    assert again.code == 0, again.err
    assert f"at most {float(max(distances)):.3f} from the table's" in again.out


def test_a_table_too_far_from_the_whole_is_found() -> None:
    """Half of one group, and of the other, has what a quarter of all has, and none."""
    rows = [("0-9", "a", "Rare", "N")] * 2 + [("0-9", "a", "Knee", "N")] * 2 + [("0-9", "b", "Knee", "N")] * 4
    release = release_of(["age", "job", "surgery", "income"], rows)
    finding = verify_release(release, jobs.task_of(single_job(**lkc(t="0.24"))))
    assert finding is not None
    assert (finding.threshold, finding.sensitive, finding.columns) == ("t", "surgery", ("job",))
    assert verify_release(release, jobs.task_of(single_job(**lkc(t="0.25")))) is None


def test_withheld_rows_are_in_no_comparison(tmp_path: Path) -> None:
    """A job that withholds rows is as close to the table that is released."""
    fields = single_job(goal="general", withhold="1/3", **lkc(t="1/6", L="1"))
    job = write_job(tmp_path, fields)
    jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS)
    done = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    table = list(csv.DictReader((tmp_path / "out" / TABLE).read_text().splitlines()))
    close = Close(table, {"surgery": (Fraction(1, 6), None)})
    assert 0 < len(table) < 60
    assert all(
        close.holds([row for row in table if row[name] == own])
        for name in ("age", "job")
        for own in {row[name] for row in table}
    )
