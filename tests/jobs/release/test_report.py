"""Commons of all reports, and comparison of a delivered one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from anonymize.cut import Candidate, interval_children, top
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.lkc.scores.rows import SCORES
from jobs.errors import PartyError
from jobs.release.report import (
    as_text,
    asked_fields,
    check_sums,
    finished_now,
    joint_fields,
    printed_candidate,
    require_same_fields,
    versions,
)
from jobs.release.sums import SUMS, sums_of
from jobs.version import __version__
from tests.support import jobs
from tests.support.dp_jobs import dp_joint
from tests.support.samples import PARTIES, joint_job, single_job, vertical_job

ADDED = SCORES["added"]


def test_what_was_asked_is_said_of_every_kind_of_job() -> None:
    fields = asked_fields(jobs.task_of(single_job()))
    digest = fields.pop("job_sha256")
    assert bytes.fromhex(digest) == jobs.bundle_of(single_job()).digest
    asked = {"L": 2, "K": 2, "C": "1/2", "method": "top-down", "score": "added", "contexts": "cells"}
    assert fields.pop("model") == {"lkc": asked}
    assert fields == {"format": 1, "job": "sample", "partition": "single", "goal": "classification"}
    dp = asked_fields(jobs.task_of(dp_joint("horizontal")))
    assert list(dp["model"]) == ["dp"]  # nothing of the other model
    json.dumps(dp)


@pytest.mark.parametrize(
    ("fields", "mode", "paired"),
    [
        (joint_job(), "horizontal/leader", False),
        (joint_job(disclosure="sealed"), "horizontal/sealed", True),
        (joint_job(disclosure="strict"), "horizontal/strict", True),
        (vertical_job(), "vertical/sealed", True),
        (dp_joint("horizontal"), "dp/horizontal/circuit", True),
    ],
)
def test_who_computed_and_what_they_could_learn(fields: Mapping[str, Any], mode: str, paired: bool) -> None:
    task = jobs.task_of(fields)
    said = joint_fields(task)
    assert said["parties"] == list(task.job.roster)
    assert said["leader"] in said["parties"]
    assert ("deputy" in said) == paired
    assert said.get("deputy") != said["leader"]
    revealed = [(r["name"], r["to"], r["finer_than_result"]) for r in said["revealed_by_design"]]
    assert revealed == [(a.name, a.to, a.finer) for a in (*ALLOWED[mode], *ADDED.reveals.get(mode, ()))]


def test_a_leader_and_a_deputy_by_name() -> None:
    said = joint_fields(jobs.task_of(joint_job(disclosure="sealed", leader=PARTIES[2], deputy=PARTIES[1])))
    assert (said["leader"], said["deputy"]) == (PARTIES[2], PARTIES[1])


def test_specializations_are_printed_by_label() -> None:
    schema = jobs.task_of(joint_job()).schema
    (job, age), cut = schema.qid, top(schema)
    (root,) = cut.nodes[0]
    assert printed_candidate(schema, Candidate(0, root, job.children(root))) == {
        "attribute": "job",
        "value": "Any",
        "children": ["Blue", "Lawyer", "?"],
    }
    ages = Candidate(1, age.root, interval_children(age.root, 3))
    assert printed_candidate(schema, ages)["children"] == ["[0,30)", "[30,100)"]


def test_when_and_by_what() -> None:
    assert versions()["jointcut"] == __version__
    finished = datetime.fromisoformat(finished_now()["finished"])
    assert finished.tzinfo == UTC
    assert finished.microsecond == 0
    assert abs((datetime.now(UTC) - finished).total_seconds()) < 60


FILES = {"a.csv": b"1\n", "report.json": b"{}"}


def test_sums_of_other_files_are_refused() -> None:
    delivered = {**FILES, SUMS: sums_of(FILES)}
    check_sums(delivered, FILES)
    for listed, words in (
        ({**FILES, "a.csv": b"2\n"}, f"the a.csv of the delivered {SUMS} is not the one that was computed"),
        ({**FILES, "more": b""}, f"the more of the delivered {SUMS} is not the one that was computed"),
        ({"a.csv": b"1\n"}, f"the delivered {SUMS} is not that of the computed files"),
    ):
        with pytest.raises(PartyError, match=words) as caught:
            check_sums(delivered, listed)
        assert caught.value.problem.error_id == "result-mismatch"


def test_a_report_must_say_what_follows_and_may_say_more() -> None:
    ours = {"rows": 3, "cut": {"b": 1, "a": [1, 2]}, "note": None}
    require_same_fields(ours, {**ours, "cut": {"a": [1, 2], "b": 1}, "finished": "today"})
    require_same_fields({}, {})


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"rows": 3}, "done"),
        ({"rows": 4, "done": True}, "rows"),
        ({"rows": 3.0, "done": True}, "rows"),
        ({"rows": "3", "done": True}, "rows"),
        ({"rows": 3, "done": 1}, "done"),
        ({"rows": 3, "done": None}, "done"),
    ],
)
def test_the_first_field_that_is_said_otherwise_is_named_without_its_value(
    told: dict[str, Any], name: str
) -> None:
    with pytest.raises(PartyError, match=f"says of {name} what does not follow") as caught:
        require_same_fields({"rows": 3, "done": True}, told)
    assert caught.value.problem.error_id == "result-mismatch"
    assert "3" not in caught.value.problem.message


def test_values_are_the_same_as_json_only() -> None:
    assert as_text({"b": 1, "a": 2}) == as_text({"a": 2, "b": 1})
    assert len({as_text(value) for value in (1, 1.0, True, "1", [1], None)}) == 6
