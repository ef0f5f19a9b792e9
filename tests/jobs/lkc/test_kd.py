"""`method: kd` in a job: which jobs may say it, and one holder's release from table to folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import DataError, SchemaError
from anonymize.release import Release
from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.errors import PartyError
from jobs.lkc.checked import verify_table
from jobs.lkc.kd import single
from jobs.loading import check_task
from jobs.options import NO_OPTIONS, Noted, Options
from jobs.release.csv import REPORT, TABLE, read_csv, write_csv
from jobs.stopwatch import Stopwatch
from tests.support import jobs, kd_reference
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.reference import Categorical, Numeric, Problem, nested_paths
from tests.support.refusals import objected, refused
from tests.support.samples import AS_IT_IS, COLUMNS, columns, joint_job, release_of, single_job, vertical_job

LKC: Any = {"L": "all", "K": "3", "C": "0.5"}


def job(lkc: Any = LKC, **changes: Any) -> dict[str, Any]:
    return single_job(**{"method": "kd", "goal": "general", "model": {"lkc": lkc}, **changes})


def joint(**changes: Any) -> dict[str, Any]:
    return joint_job(
        **{"method": "kd", "goal": "general", "disclosure": "sealed", "model": {"lkc": LKC}, **changes}
    )


# ---- which jobs


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (job(goal="classification"), "`method: kd` is for `goal: general`"),
        (job(goal="classification", columns=columns(transfused=None)), "`method: kd` is for `goal: general`"),
        (job(goal="clusters"), "`method: kd` is for `goal: general`"),
        (job(score="groups"), "`score` is not for `method: kd`: kd does not compare specializations"),
        (job(contexts="cells"), "`contexts` is not for `method: kd`"),
        (job(withhold="1/50"), "`withhold` is not for `method: kd`"),
        (job({**LKC, "L": "1"}), "model.lkc: `method: kd` needs `L: all`, and no `columns`"),
        (job(model={"requirements": [LKC, {**LKC, "columns": ["age"]}]}), "takes a single requirement"),
        (job(model={"requirements": [{**LKC, "columns": ["age"]}]}), "no requirement names the column"),
        (job(model={"lkc": LKC, "unit": "person"}), "model.lkc.unit: `method: kd` counts records only"),
        (
            job(columns=columns(x={"role": "qid", "taxonomy": {"*": ["a"]}, "refine": "child"})),
            "columns.x.refine: `method: kd` cuts between neighbouring values",
        ),
        (
            job(columns=columns(x={"role": "qid", "suppress": ["a", "b"]})),
            "columns.x.suppress: `method: kd` cuts between neighbouring values",
        ),
        (
            joint(model={"lkc": {**LKC, "colluders": "1"}}),
            "model.lkc.colluders: `method: kd` counts the records of all parties together",
        ),
        (joint(disclosure="leader"), "`method: kd` needs `disclosure: sealed`"),
        (joint(disclosure="strict"), "`method: kd` needs `disclosure: sealed`"),
        (joint(split="median"), "`split: median` is for the table of a single holder"),
        (vertical_job(method="kd", goal="general"), "`method: kd` is not for vertical jobs"),
        (single_job(split="public"), "`split` is for `method: kd`"),
        (single_job(method="mondrian"), "method"),
    ],
)
def test_what_kd_does_not_take_is_refused_with_the_reason(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


def test_labels_that_hold_what_stands_between_siblings_are_refused() -> None:
    bad = columns(x={"role": "qid", "taxonomy": {"*": ["a|b", "c"]}})
    with pytest.raises(SchemaError, match=r"column x holds `\|`"):
        check_task(jobs.task_of(job(columns=bad)))
    check_task(jobs.task_of(single_job(columns=bad)))


def test_the_canonical_form_says_method_and_split() -> None:
    said = json.loads(jobs.bundle_of(job()).encoded)["job"]
    asked = said["model"]["lkc"]
    assert (asked["method"], asked["split"]) == ("kd", "public")
    assert not {"score", "contexts"} & set(asked)
    assert all("refine" not in column for column in said["columns"].values())
    assert jobs.bundle_of(job()).digest == jobs.bundle_of(job(split="public")).digest
    assert jobs.bundle_of(job()).digest != jobs.bundle_of(job(split="median")).digest
    top_down = json.loads(jobs.bundle_of(single_job()).encoded)["job"]["model"]["lkc"]
    assert top_down["method"] == "top-down"
    assert "split" not in top_down
    assert jobs.bundle_of(single_job()).digest == jobs.bundle_of(single_job(method="top-down")).digest


def test_a_policy_lists_the_methods_it_accepts() -> None:
    assert objected(joint(), "hospital-b") == ""
    assert "method kd is not allowed, only top-down (`policy.methods`)" in objected(
        joint(), "hospital-b", methods=["top-down"]
    )
    assert objected(joint_job(), "hospital-b", methods=["top-down", "kd"]) == ""
    assert "method top-down is not allowed" in objected(joint_job(), "hospital-b", methods=["kd"])


# ---- one holder's release


@pytest.fixture
def source(tmp_path: Path) -> Csv:
    return Csv(jobs.write_csv(tmp_path / "table.csv", sample_rows(200), COLUMNS))


def release(source: Csv, out: Path, options: Options = NO_OPTIONS, **changes: Any) -> Noted:
    task = jobs.task_of(job(**changes))
    return task.model.run_single(task, source, out, options, Stopwatch(lambda name: None), Observer())


def report_of(out: Path) -> Any:
    return json.loads((out / REPORT).read_text())


def problem_of() -> Problem:
    tree = COLUMNS["job"]["taxonomy"]
    qid: dict[str, Any] = {
        "job": Categorical(nested_paths(tree, []), missing_leaf=True),
        "age": Numeric([Decimal(i) for i in range(0, 101, 10)]),
    }
    return Problem(qid, "transfused", {"surgery": ({"Rare"}, Fraction(1, 2))}, 2, 3, "general")


@pytest.mark.parametrize("split", ["public", "median"])
def test_the_released_table_is_that_of_the_slow_reference(source: Csv, tmp_path: Path, split: str) -> None:
    release(source, tmp_path / "out", split=split)
    table = read_csv(tmp_path / "out" / TABLE, ["job", "age", "transfused", "surgery"])
    groups = kd_reference.anonymize(sample_rows(200), problem_of(), split == "median")
    assert groups is not None
    expected = Counter((*labels, *kept) for labels, rows in groups for kept in rows)
    assert jobs.multiset(table) == expected
    report = report_of(tmp_path / "out")
    assert report["metrics"]["groups"] == len(groups) > 8
    assert report["metrics"]["smallest"] == min(len(rows) for _, rows in groups) >= 3
    # Every cut makes one group more, or shrinks one.
    assert sum(map(sum, report["cuts"].values())) >= len(groups) - 1
    asked = report["model"]["lkc"]
    assert (asked["method"], asked["split"]) == ("kd", split)
    assert report["requirements"][0]["smallest_group"] == report["metrics"]["smallest"]
    checked = verify_table(jobs.task_of(job(split=split)), tmp_path / "out")
    assert checked.fields["verified"]


def test_from_the_command_line(tmp_path: Path) -> None:
    path = write_job(tmp_path / "job", job())
    jobs.write_csv(tmp_path / "job" / "table.csv", sample_rows(200), COLUMNS)
    ran = invoke("coordinator", "run", path, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    groups = report_of(tmp_path / "out")["metrics"]["groups"]
    assert f"sample: 200 rows, {groups} groups" in ran.out
    assert "refused because of sensitive columns" in ran.err
    checked = invoke("coordinator", "verify", path, tmp_path / "out")
    assert (checked.code, checked.err) == (0, "")
    assert "200 rows meet the requirement of sample" in checked.out


def test_what_sensitive_columns_refused_is_told_to_the_holder_alone(source: Csv, tmp_path: Path) -> None:
    noted = release(source, tmp_path / "out", lkc={**LKC, "C": "0.4"})
    strict = release(source, tmp_path / "strict", lkc={**LKC, "C": "0.25"})
    loose = release(source, tmp_path / "loose", lkc={**LKC, "C": "1"})
    assert noted.refused_for_sensitive is not None
    assert strict.refused_for_sensitive is not None
    assert 0 == loose.refused_for_sensitive < noted.refused_for_sensitive < strict.refused_for_sensitive
    assert "refused" not in (tmp_path / "out" / REPORT).read_text()
    assert repr(noted) == repr(Noted())


WIDE: Any = {"min": "0", "max": "1000", "cuts": [str(cut) for cut in range(100, 1000, 100)]}


@pytest.mark.parametrize(
    ("numeric", "split", "says"),
    [
        ({**WIDE, "cuts": ["250", "500", "750"]}, "public", "column age: 0.0% of our records"),
        ({**WIDE, "cuts": ["20", "500"]}, "public", ""),  # three cells
        ({**WIDE, "cuts": ["20", "40", "60"]}, "public", ""),
        (WIDE, "public", "column age: 0.0% of our records"),
        (WIDE, "median", ""),
    ],
)
def test_the_owner_alone_is_told_of_wide_domains(
    source: Csv, tmp_path: Path, numeric: Any, split: str, says: str
) -> None:
    """The middle of these columns, where public cuts come first, holds few records."""
    wide = columns(age={"role": "qid", "numeric": numeric})
    noted = release(source, tmp_path / "out", columns=wide, split=split)
    assert len(noted.of_table) == bool(says)
    assert says in "".join(noted.of_table)
    assert "our records" not in (tmp_path / "out" / REPORT).read_text()
    assert repr(noted) == repr(Noted())


def test_the_console_of_a_single_holder_tells_of_wide_domains(tmp_path: Path) -> None:
    path = write_job(tmp_path / "job", job(columns=columns(age={"role": "qid", "numeric": WIDE})))
    jobs.write_csv(tmp_path / "job" / "table.csv", sample_rows(200), COLUMNS)
    ran = invoke("coordinator", "run", path, "--out", tmp_path / "out")
    assert "column age: 0.0% of our records are in the middle half" in ran.err
    assert "our records" not in ran.out


def test_plain_columns_stay_with_their_rows(source: Csv, tmp_path: Path) -> None:
    plain = columns(patient=AS_IT_IS)
    release(source, tmp_path / "out", columns=plain)
    names = ["patient", "job", "age", "transfused", "surgery"]
    task = jobs.task_of(job(columns=plain))
    verify_table(task, tmp_path / "out")
    released = read_csv(tmp_path / "out" / TABLE, task.job.published).ordered(names)
    rows = {row["patient"]: row for row in sample_rows(200)}
    assert released.n_rows == 200
    for patient, job_label, age, transfused, surgery in jobs.multiset(released):
        row = rows[patient]
        low, high = age[1:-1].split(",")
        assert int(low) <= int(row["age"]) < int(high)
        assert row["job"] in _leaves(job_label)
        assert (transfused, surgery) == (row["transfused"], row["surgery"])


def _leaves(label: str) -> set[str]:
    under = {
        "Any": {"Janitor", "Mover", "Lawyer"},
        "Blue": {"Janitor", "Mover"},
        "White": {"Lawyer"},
    }
    return set().union(*(under.get(part, {part}) for part in label.split("|")))


@pytest.mark.parametrize(("seed", "n_rows"), [(0, 199), (5, 200)], ids=["fewer", "others"])
def test_a_table_that_changes_between_the_passes(
    source: Csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, n_rows: int
) -> None:
    original: Callable[..., Any] = single.boxed_rows

    def changed(*arguments: Any) -> Any:
        jobs.write_csv(source.path, sample_rows(n_rows, seed), COLUMNS)
        return original(*arguments)

    monkeypatch.setattr(single, "boxed_rows", changed)
    with pytest.raises(DataError, match="changed while it was read"):
        release(source, tmp_path / "out", columns=columns(patient=AS_IT_IS))
    assert not (tmp_path / "out").exists()


def test_a_release_is_listed_where_a_ledger_is_named(source: Csv, tmp_path: Path) -> None:
    options = Options(ledger=tmp_path / "my.ledger")
    release(source, tmp_path / "out", options)
    assert [entry.state for entry in options.own_ledger(source).entries()] == ["released"]


# ---- verified by readers


def spoilt(out: Path, column: str, label: str, other: str) -> None:
    """Print one label of a table otherwise."""
    names = list(jobs.task_of(job()).job.published)
    table = read_csv(out / TABLE, names)
    labels = tuple(other if each == label else each for each in table.columns[column].labels)
    write_csv(
        type(table)(
            {**table.columns, column: type(table.columns[column])(labels, table.columns[column].codes)}
        ),
        out / TABLE,
    )


def test_a_label_that_is_no_box_is_found(source: Csv, tmp_path: Path) -> None:
    release(source, tmp_path / "out")
    ages = read_csv(tmp_path / "out" / TABLE, jobs.task_of(job()).job.published).columns["age"].labels
    spoilt(tmp_path / "out", "age", ages[0], "[0,35)")
    with pytest.raises(PartyError, match="column age has a value that is not"):
        verify_table(jobs.task_of(job()), tmp_path / "out")


@pytest.mark.parametrize("split", ["public", "median"])
def test_groups_that_overlap_are_found(source: Csv, tmp_path: Path, split: str) -> None:
    """One group says a wider interval than it has: all labels are boxes, and K and C hold."""
    release(source, tmp_path / "out", split=split)
    table = read_csv(tmp_path / "out" / TABLE, jobs.task_of(job()).job.published)
    group, wider = widened(table)
    write_csv(relabelled(table, group, "age", wider), tmp_path / "out" / TABLE)
    for path in (tmp_path / "out", tmp_path / "out" / TABLE):
        with pytest.raises(PartyError, match="not boxes made by cuts: the groups overlap"):
            verify_table(jobs.task_of(job(split=split)), path)


def widened(table: Release) -> tuple[tuple[str, str], str]:
    """A group whose interval another one's stands beside, by its labels of job and age; the union of the two."""
    groups = {(row[0], row[1]) for row in jobs.multiset(table.ordered(["job", "age"]))}
    ends = {group: tuple(map(int, group[1][1:-1].split(","))) for group in groups}
    return next(
        (one, f"[{ends[one][0]},{ends[other][1]})")
        for one in sorted(groups)
        for other in sorted(groups)
        if one[0] == other[0] and ends[one][1] == ends[other][0]
    )


def relabelled(table: Release, group: tuple[str, str], name: str, label: str) -> Release:
    """The rows of a group with another label of one column."""
    printed = {key: [column.labels[c] for c in column.codes] for key, column in table.columns.items()}
    inside = [own == group for own in zip(printed["job"], printed["age"], strict=True)]
    printed[name] = [label if is_in else own for own, is_in in zip(printed[name], inside, strict=True)]
    names = list(printed)
    return release_of(names, list(zip(*(printed[key] for key in names), strict=True)))


def test_groups_of_medians_leave_nothing_out(source: Csv, tmp_path: Path) -> None:
    """A group says less than it has: nothing overlaps, and with public cuts it may have shrunk."""
    release(source, tmp_path / "out", split="median")
    table = read_csv(tmp_path / "out" / TABLE, jobs.task_of(job()).job.published)
    groups = {(row[0], row[1]) for row in jobs.multiset(table.ordered(["job", "age"]))}
    ends = {group: tuple(map(int, group[1][1:-1].split(","))) for group in groups}
    group = next(own for own in sorted(groups) if ends[own][1] - ends[own][0] > 10)
    narrower = f"[{ends[group][0] + 10},{ends[group][1]})"
    write_csv(relabelled(table, group, "age", narrower), tmp_path / "out" / TABLE)
    with pytest.raises(PartyError, match="the groups overlap, or leave something out"):
        verify_table(jobs.task_of(job(split="median")), tmp_path / "out" / TABLE)
    assert verify_table(jobs.task_of(job()), tmp_path / "out" / TABLE).fields["verified"]


@pytest.mark.parametrize(
    "cuts",
    [
        {"job": [1], "age": [0]},
        {"job": [1.5], "age": [0]},
        {"job": 3, "age": [0]},
        {"job": [], "age": [True, 7.0]},
        {},
        None,
    ],
)
def test_medians_make_one_group_more_with_each_cut(source: Csv, tmp_path: Path, cuts: Any) -> None:
    release(source, tmp_path / "out", split="median")
    checked = verify_table(jobs.task_of(job(split="median")), tmp_path / "out")
    assert "report.cuts" in checked.fields["not_verified"]
    path = tmp_path / "out" / REPORT
    path.write_text(json.dumps({**report_of(tmp_path / "out"), "cuts": cuts}))
    with pytest.raises(PartyError, match="`cuts` is not as job and table say"):
        verify_table(jobs.task_of(job(split="median")), tmp_path / "out")


def test_what_labels_of_several_boxes_hide_is_said(tmp_path: Path) -> None:
    """Two nodes of one name print alike: which of them a group is, the table does not tell."""
    tree = {"Any": {"North": {"Clinic": ["a", "b"]}, "South": {"Clinic": ["c", "d"]}}}
    given = columns(job={"role": "qid", "taxonomy": tree, "missing": "drop"}, age=None)
    rows = [
        {
            "patient": str(i),
            "job": "acbd"[i % 2 + 2 * (i == 8)],
            "transfused": "YN"[i % 2],
            "surgery": "Heart",
        }
        for i in range(16)
    ]
    table = Csv(jobs.write_csv(tmp_path / "table.csv", rows))
    release(table, tmp_path / "out", columns=given, lkc={**LKC, "C": "1"})
    task = jobs.task_of(job(columns=given, lkc={**LKC, "C": "1"}))
    checked = verify_table(task, tmp_path / "out")
    assert checked.fields["not_verified"][0] == "boxes"
    assert "not verified: that groups are boxes with nothing in common" in checked.text
    assert "labels of job belong to several boxes" in checked.text


@pytest.mark.parametrize("key", ["groups", "average_group", "inference", "linked_exposure"])
def test_a_report_that_measures_otherwise_is_found(source: Csv, tmp_path: Path, key: str) -> None:
    release(source, tmp_path / "out")
    path = tmp_path / "out" / REPORT
    report = json.loads(path.read_text())
    report["metrics"][key] = 7
    path.write_text(json.dumps(report))
    with pytest.raises(PartyError, match=f"`metrics.{key}` is not as job and table say"):
        verify_table(jobs.task_of(job()), tmp_path / "out")


def test_groups_below_k_are_found(source: Csv, tmp_path: Path) -> None:
    release(source, tmp_path / "out")
    with pytest.raises(PartyError, match="violates K"):
        verify_table(jobs.task_of(job({**LKC, "K": "30"})), tmp_path / "out" / TABLE)
