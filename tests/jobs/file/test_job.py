"""The job file: every rule of semantics §9.2 that can be checked without data, with the path of what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.file.job import Job
from jobs.loading import parse_job
from tests.support.refusals import model, refused
from tests.support.samples import PARTIES, columns, joint_job, single_job


def test_samples_are_valid() -> None:
    single, joint = parse_job(single_job(), "job"), parse_job(joint_job(), "job")
    assert single.published == ("job", "age", "transfused", "surgery")
    assert single.names("qid") == ("job", "age")
    assert (single.roster, single.goal, single.deliver) == ((), "classification", "all")
    assert joint.roster == PARTIES
    assert joint.leader_name == PARTIES[0]
    assert parse_job(joint_job(leader=None), "job").leader_name == PARTIES[0]
    assert parse_job(joint_job(leader=PARTIES[2]), "job").leader_name == PARTIES[2]


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "", "1e3"])
@pytest.mark.parametrize("key", ["L", "K"])
def test_l_and_k_are_positive_integers(key: str, text: str) -> None:
    assert f"`model.lkc.{key}`" in refused(model(**{key: text})).message


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (single_job(columns={}), "`columns`"),
        (
            single_job(columns={"p": {"role": "plain"}}, goal="general"),
            "at least one column needs `role: qid`",
        ),
        (
            single_job(columns=columns(second={"role": "class", "domain": ["a"]})),
            "only one column can have `role: class`",
        ),
        (single_job(columns=columns(transfused=None)), "say `goal: general`"),
        (single_job(data=None), "partition single needs `data"),
        (single_job(disclosure="leader"), "partition single has no `disclosure`"),
        (single_job(secure_sum="ring"), "`secure_sum` is for horizontal jobs"),
        (single_job(parties={"a": {"address": "h:1"}}), "partition single has no `parties`"),
        (single_job(leader="a"), "partition single has no `leader`"),
        (single_job(deputy="a"), "partition single has no `deputy`"),
        (single_job(version="2"), "`version`"),
        (single_job(partition="diagonal"), "`partition`"),
        (single_job(goal="profit"), "`goal`"),
        (joint_job(data="table.csv"), "a joint job has no `data`"),
        (joint_job(parties=None, leader=None), "a joint job needs `parties`, two or more"),
        (joint_job(parties={PARTIES[0]: {"address": "h:1"}}), "a joint job needs `parties`, two or more"),
        (joint_job(leader="nobody"), "`leader` must be a party of the job"),
        (joint_job(deputy="nobody"), "`deputy` must be a party of the job"),
        (joint_job(deputy=PARTIES[0]), "leader and deputy must be different"),
        (joint_job(leader=None, deputy=PARTIES[0]), "leader and deputy must be different"),
        (joint_job(disclosure="open"), "`disclosure`"),
        (joint_job(deliver="nobody"), "`deliver`"),
        (joint_job(secure_sum="open"), "`model.lkc.secure_sum`"),
        (
            joint_job(columns=columns(transfused={"role": "class"})),
            "columns.transfused: a joint or DP job needs its `domain`",
        ),
        (
            joint_job(columns=columns(surgery={"role": "sensitive"})),
            "columns.surgery: a joint or DP job needs its `domain`",
        ),
        (joint_job(parties={"a b": {"address": "h:1"}}), "parties.a b"),
        (joint_job(parties=["a", "b", "c"]), "`parties`"),
    ],
)
def test_what_contradicts_itself_or_is_missing(fields: dict[str, Any], says: str) -> None:
    problem = refused(fields)
    assert problem.error_id == "job-invalid"
    assert says in problem.message


def test_an_address_may_be_left_out() -> None:
    job = parse_job(joint_job(parties={p: {} for p in PARTIES}), "job")
    assert job.parties is not None
    assert [entry.address for entry in job.parties.values()] == [None] * len(PARTIES)
    assert "address" not in job.canonical()


def test_two_parties_under_a_leader_are_refused_with_the_reason() -> None:
    parties = {p: {"address": "h:1"} for p in PARTIES[:2]}
    problem = refused(joint_job(parties=parties))
    assert problem.error_id == "job-too-few-parties"
    assert "because with two the sum minus one's own counts is the other's" in problem.message
    assert "say `disclosure: sealed`" in problem.message


def test_joint_jobs_are_sealed_unless_they_say_otherwise() -> None:
    fields = joint_job()
    del fields["disclosure"]
    job = parse_job(fields, "job")
    assert job.disclosure == "sealed"
    assert '"disclosure":"sealed"' in job.canonical()
    assert parse_job(single_job(), "job").disclosure is None


def test_the_deputy_is_the_party_after_the_leader() -> None:
    assert parse_job(joint_job(leader=PARTIES[0]), "job").deputy_name == PARTIES[1]
    assert parse_job(joint_job(leader=PARTIES[-1]), "job").deputy_name == PARTIES[0]
    assert parse_job(joint_job(leader=PARTIES[0], deputy=PARTIES[2]), "job").deputy_name == PARTIES[2]


def test_secure_sum_is_for_leader_jobs() -> None:
    assert parse_job(joint_job(secure_sum="ring"), "job").lkc.secure_sum == "ring"
    assert "`secure_sum` is for" in refused(joint_job(secure_sum="ring", disclosure="sealed")).message


def test_canonical_form_round_trips_and_keeps_the_order_of_columns() -> None:
    for fields in (single_job(), joint_job(deputy=PARTIES[1], secure_sum="ring", deliver="coordinator")):
        job = parse_job(fields, "job")
        again = parse_job(json.loads(job.canonical()), "job")
        assert again == job
        assert again.canonical() == job.canonical()
        assert list(json.loads(job.canonical())["columns"]) == list(fields["columns"])


def test_canonical_form_tells_the_order_of_columns_apart() -> None:
    turned = dict(reversed(columns().items()))
    one, other = parse_job(single_job(), "job"), parse_job(single_job(columns=turned), "job")
    assert one.canonical() != other.canonical()


def test_a_job_cannot_be_changed() -> None:
    job = parse_job(single_job(), "job")
    with pytest.raises(ValueError, match="frozen"):
        job.goal = "general"


def test_the_schema_is_closed_and_describes_every_key() -> None:
    schema = Job.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False
        for name, field in part["properties"].items():
            if "$ref" not in field:
                assert field.get("description"), f"{part['title']}.{name} has no description"
