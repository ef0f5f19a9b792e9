"""Vertical jobs: every column has one party, records are matched by ids, and what is none of it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from anonymize.joint.columns import Columns
from jobs.errors import ConfigError, Problem
from jobs.file.job import Job
from jobs.loading import decode_task, parse_job
from jobs.task import Task
from tests.support import jobs
from tests.support.samples import columns, joint_job, single_job, vertical_job


def refused(fields: dict[str, Any]) -> Problem:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields, "job")
    return caught.value.problem


def job(**changes: Any) -> Job:
    return parse_job(vertical_job(**changes), "job")


def task(**changes: Any) -> Task:
    return jobs.task_of(vertical_job(**changes))


def parties(**listed: Any) -> dict[str, Any]:
    return {
        name: {"address": f"127.0.0.1:74{i:02}"} | ({} if held is None else {"columns": held})
        for i, (name, held) in enumerate(listed.items())
    }


def test_who_holds_what() -> None:
    sample = task(
        parties=parties(loan=["job", "ward"], bank=["surgery", "age"]),
        columns=columns(ward={"role": "plain"}),
    )
    assert sample.job.contributed_by("bank") == ("age", "surgery")  # in job order
    assert sample.held_by("bank") == ("patient", "age", "transfused", "surgery")
    assert sample.held_by("loan") == ("patient", "job", "transfused", "ward")
    assert sample.held_by(None) == tuple(sample.job.columns)
    assert sample.parts_of("loan") == {"result", "columns"}
    assert sample.parts_of("bank") == {"columns"}


def test_the_class_of_one_party() -> None:
    shared = columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"})
    sample = task(columns=shared)
    assert "transfused" in sample.held_by("bank")
    assert "transfused" not in sample.held_by("loan")


def test_a_party_that_contributes_no_column_but_the_class() -> None:
    shared = columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "registry"})
    everything = ["job", "age", "surgery"]
    sample = task(columns=shared, parties=parties(loan=everything, registry=[]), leader="loan")
    assert sample.held_by("registry") == ("patient", "transfused")
    assert sample.parts_of("registry") == frozenset()


def test_columns_for_the_protocol() -> None:
    shared = columns(
        transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"}, ward={"role": "plain"}
    )
    opened = jobs.task_of(
        vertical_job(columns=shared, parties=parties(loan=["job", "ward"], bank=["age", "surgery"]))
    )
    assert opened.holders == Columns(("loan", "bank"), ("bank",), ("loan",), "bank")
    assert opened.result_schema.sensitive == ()
    assert not jobs.requirement_of(opened.bundle).insider
    assert jobs.requirement_of(jobs.bundle_of(vertical_job(insider=True))).insider


def test_a_bundle_of_a_vertical_job_is_canonical() -> None:
    bundle = jobs.bundle_of(vertical_job())
    assert b'"insider":false' in bundle.encoded
    assert decode_task(bundle.encoded).job == bundle.job


def test_two_parties_may_run_as_published() -> None:
    assert job(disclosure="leader").disclosure == "leader"


def test_id_and_class_may_be_listed_by_everybody() -> None:
    sample = job(
        parties=parties(
            loan=["patient", "job", "transfused"], bank=["patient", "age", "surgery", "transfused"]
        )
    )
    assert sample.contributed_by("loan") == ("job",)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"columns": columns(patient=None)}, "needs a column with `role: id`"),
        (
            {"parties": parties(loan=["job", "age"], bank=["age", "surgery"])},
            "columns.age: contributed by loan and by bank; name the column once",
        ),
        ({"parties": parties(loan=["job"], bank=["surgery"])}, "columns.age: contributed by nobody"),
        (
            {"parties": parties(loan=["job", "job"], bank=["age", "surgery"])},
            "columns.job: contributed by loan and by loan; name the column once, at one party",
        ),
        (
            {"parties": parties(loan=["job", "transfused"], bank=["age", "surgery"])},
            "columns.transfused: listed by loan, but loan and bank must have the column",
        ),
        (
            {"parties": parties(loan=["job"], bank=["age", "surgery", "patient"])},
            "columns.patient: listed by bank, but loan and bank must have the column",
        ),
        (
            {"parties": parties(loan=["job", "age"], bank=None)},
            "parties.bank: in a vertical job, write the party's `columns`",
        ),
        (
            {"parties": parties(loan=["job", "age", "colour"], bank=["surgery"])},
            "the job has no column 'colour'",
        ),
        (
            {"columns": columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "nobody"})},
            "columns.transfused.shared_by: 'nobody' is not a party of the job",
        ),
        ({"secure_sum": "masked", "disclosure": "leader"}, "`secure_sum` is for horizontal jobs"),
        ({"columns": columns(transfused={"role": "class"})}, "a joint or DP job needs its `domain`"),
        ({"insider": "perhaps"}, "insider"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], what: str) -> None:
    problem = refused(vertical_job(**changes))
    assert problem.error_id == "job-invalid"
    assert what in problem.message


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (joint_job(insider=True), "`insider` is for vertical jobs"),
        (joint_job(insider=False), "`insider` is for vertical jobs"),
        (single_job(insider=True), "`insider` is for vertical jobs"),
        (
            joint_job(parties=parties(a=["job"], b=["age"]), leader="a"),
            "parties.a.columns is for vertical jobs",
        ),
        (
            joint_job(
                columns=columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "hospital-a"})
            ),
            "columns.transfused.shared_by is for vertical jobs",
        ),
        (
            single_job(columns=columns(surgery={"role": "sensitive", "shared_by": "x"})),
            "a column of role sensitive has no key 'shared_by'",
        ),
    ],
)
def test_what_is_for_vertical_jobs_only(fields: dict[str, Any], what: str) -> None:
    problem = refused(fields)
    assert problem.error_id == "job-invalid"
    assert what in problem.message
