"""`suppress` and `refine` in jobs: what they mean, what is refused, and a release with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import SchemaError
from jobs.errors import ConfigError
from jobs.file.columns import Column
from jobs.loading import check_task, parse_job
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_single
from tests.support.job_files import job_file
from tests.support.samples import columns, joint_job, single_job

CITIES = ["Bonn", "Lyon", "Nice", "Oslo"]
COLUMNS: dict[str, Any] = {
    "city": {"role": "qid", "suppress": CITIES},
    "job": {"role": "qid", "taxonomy": {"Any": ["Clerk", "Cook", "Mason", "Nurse"]}, "refine": "child"},
    "dead": {"role": "class", "domain": ["Y", "N"]},
}


def single(**changed: Any) -> dict[str, Any]:
    return {
        "version": "1",
        "name": "suppressed",
        "partition": "single",
        "data": "table.csv",
        "model": {"lkc": {"L": "2", "K": "8", "C": "1"}},
        "columns": {**COLUMNS, **changed},
    }


def test_a_release_with_suppressed_values(tmp_path: Path) -> None:
    work = COLUMNS["job"]["taxonomy"]["Any"]
    rows = [
        {"city": CITIES[min(i % 7, 2)], "job": work[i // 40 % 4], "dead": "YN"[(i % 7 > 1) ^ (i % 11 == 0)]}
        for i in range(160)
    ]
    rows += [{"city": "Oslo", "job": "Clerk", "dead": "Y"}] * 3
    job = job_file(tmp_path, single())
    jobs.write_csv(tmp_path / "table.csv", rows)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "*" in report["cut"]["city"]
    assert {"Oslo", "?"}.isdisjoint(report["cut"]["city"])
    taken = [step for step in report["specializations"] if step["attribute"] == "city"]
    assert taken
    assert all(step["children"][-1] == "*" and step["value"] == "*" for step in taken)
    text = (tmp_path / "out" / "anonymized.csv").read_text()
    assert "Oslo" not in text
    assert text.count("*") >= 3
    ran = invoke("coordinator", "verify", job, tmp_path / "out")
    assert ran.code == 0, ran.err
    (tmp_path / "out" / "anonymized.csv").write_text(text.replace("*", "other *", 1))
    assert invoke("coordinator", "verify", job, tmp_path / "out").code != 0


def test_suppression_is_short_for_a_taxonomy_refined_by_child() -> None:
    short = jobs.task_of(single())
    long = jobs.task_of(single(city={"role": "qid", "taxonomy": {"*": CITIES}, "refine": "child"}))
    ours, theirs = short.schema.qid[0], long.schema.qid[0]
    assert (ours.values, ours.by_child) == (theirs.values, True)
    assert (ours.rest_labels, theirs.rest_labels) == ({"*"}, {"other *"})


@pytest.mark.parametrize(
    ("score", "default"), [({}, "child"), ({"score": "added"}, "child"), ({"score": "infogain"}, "children")]
)
def test_how_a_column_is_refined_follows_from_the_score_and_stands_in_the_hash(
    score: dict[str, str], default: str
) -> None:
    plain = {"role": "qid", "taxonomy": {"Any": CITIES}}
    digests = {
        refine: jobs.bundle_of(
            {**single(city={**plain, **({"refine": refine} if refine else {})}), **score}
        ).digest
        for refine in (None, "children", "child")
    }
    assert digests["children"] != digests["child"]
    assert digests[None] == digests[default]
    encoded = json.loads(jobs.bundle_of(single()).encoded)["job"]["columns"]["city"]
    assert encoded == {"role": "qid", "refine": "child", "suppress": CITIES}


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"suppress": ["a", "*"]}, "rename the value, also in the table, or count it as missing"),
        ({"suppress": []}, "at least one"),
        ({"suppress": ["a", "a"]}, "each value once"),
        ({"suppress": ["a", "b"], "refine": "children"}, "say `taxonomy`"),
        (
            {"suppress": ["a", "b"], "taxonomy": {"Any": ["a", "b"]}},
            "`taxonomy` and `suppress` are given, and a qid column has one domain",
        ),
        ({"numeric": {"min": "0", "max": "9", "step": "1"}, "refine": "child"}, "always split in two"),
        ({"set": {"taxonomy": {"Any": ["a"]}}, "refine": "child"}, "no set-valued columns"),
        ({"taxonomy": {"Any": ["a"]}, "refine": "leaf"}, "'children' or 'child'"),
    ],
)
def test_keys_that_contradict_each_other(column: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Column.model_validate({"role": "qid", **column})


@pytest.mark.parametrize("role", ["sensitive", "class", "plain", "id"])
def test_only_quasi_identifiers_have_them(role: str) -> None:
    for key, value in (("refine", "child"), ("suppress", ["a"])):
        with pytest.raises(ValueError, match=f"a column of role {role} has no key '{key}'"):
            Column.model_validate({"role": role, key: value})


@pytest.mark.parametrize("key", ["refine", "suppress"])
def test_dp_jobs_have_neither(key: str) -> None:
    column = COLUMNS["city" if key == "suppress" else "job"]
    with pytest.raises(
        ConfigError, match=rf"columns.job.{key} is for LKC jobs|columns.job.refine is for LKC"
    ):
        parse_job(dp_single(columns=columns(job=column)), "job")


def test_a_value_that_prints_as_what_is_left_is_refused() -> None:
    tree = {"Any": {"South": ["Lyon", "Nice", "Rome"], "other South": ["Bonn"]}}
    column = {"role": "qid", "taxonomy": tree}
    check_task(jobs.task_of(single(city={**column, "refine": "children"})))
    with pytest.raises(SchemaError, match="column city: the taxonomy has 'other South'") as caught:
        check_task(jobs.task_of(single(city={**column, "refine": "child"})))
    assert "refine: children" in str(caught.value.remedy)


@pytest.mark.parametrize("disclosure", ["sealed", "leader", "strict"])
def test_joint_jobs_have_them(disclosure: str) -> None:
    changed = columns(job={"role": "qid", "suppress": ["Janitor", "Mover", "Lawyer"]})
    task = jobs.task_of(joint_job(columns=changed, disclosure=disclosure))
    check_task(task)
    assert task.schema.qid[0].by_child
    assert single_job()["columns"].keys() == changed.keys()


def test_who_lists_too_many_values_is_told() -> None:
    many = [f"v{i}" for i in range(65)]
    for refine, told in (("child", 1), ("children", 0)):
        column = {"role": "qid", "taxonomy": {"Any": many}, "refine": refine, "missing": "drop"}
        task = jobs.task_of(single(city=column))
        assert sum("all together or not at all" in note for note in task.model.described(task).notes) == told


def test_many_long_lists_are_one_note() -> None:
    """The note names a value and says what to write."""
    tree = {"Any": {f"country {c}": [f"town {c}.{i}" for i in range(65)] for c in range(7)}}
    column = {"role": "qid", "taxonomy": tree, "refine": "child", "missing": "drop"}
    task = jobs.task_of(single(city=column))
    (note,) = [note for note in task.model.described(task).notes if "all together" in note]
    assert note.startswith(
        "columns.city: 7 values, such as 'country 0', have more than 64 values right below"
    )
    assert "write a level of groups" in note
