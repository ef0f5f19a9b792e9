"""A task: a bundle opened once, with its model and partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_origin

import pytest

from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.roster import Roster
from jobs.file.fields import LEVELS
from jobs.file.job import Job, Privacy
from jobs.loading import MODELS
from jobs.owner.policy import Policy
from jobs.partitions import PARTITIONS
from tests.support import jobs
from tests.support.dp_jobs import dp_joint, dp_single
from tests.support.modes import MODES
from tests.support.samples import PARTIES, joint_job, single_job, vertical_job
from tests.support.synthetic_jobs import synthetic_single


@pytest.mark.parametrize(
    ("fields", "model", "partition"),
    [
        (single_job(), "lkc", "single"),
        (joint_job(), "lkc", "horizontal"),
        (vertical_job(), "lkc", "vertical"),
        (dp_single(), "dp", "single"),
        (synthetic_single(), "synthetic", "single"),
        (dp_joint("horizontal"), "dp", "horizontal"),
        (dp_joint("vertical"), "dp", "vertical"),
    ],
)
def test_a_task_knows_its_model_and_partition(fields: Mapping[str, Any], model: str, partition: str) -> None:
    task = jobs.task_of(fields)
    assert (task.model.name, task.partition.name) == (model, partition)
    assert (task.job, task.digest) == (task.bundle.job, task.bundle.digest)


def test_every_model_and_partition_of_the_job_format_is_there() -> None:
    assert list(MODELS) == [*dict.fromkeys(Privacy.kinds.values()), *Privacy.of_methods]
    assert set(Privacy.kinds) <= set(Privacy.model_fields)
    assert tuple(PARTITIONS) == get_args(Job.model_fields["partition"].annotation)


def test_the_default_level_is_one_of_its_partition() -> None:
    """It is said in so many words: the order of rows and lists decides nothing."""
    for partition in ("horizontal", "vertical"):
        assert {mode.level for mode in MODES if (mode.model, mode.partition) == ("lkc", partition)} >= {
            "sealed"
        }
    for fields in (joint_job(), vertical_job()):
        job = jobs.task_of({key: value for key, value in fields.items() if key != "disclosure"}).job
        assert job.disclosure == "sealed"


def test_levels_are_those_of_the_modes_in_job_and_policy_alike() -> None:
    assert LEVELS == ("sealed", "leader", "strict")
    assert {mode.split("/")[1] for mode in ALLOWED if mode.split("/")[0] in PARTITIONS} == set(LEVELS)
    level, absent = get_args(Job.model_fields["disclosure"].annotation)
    assert (get_args(level), absent) == (LEVELS, type(None))
    levels = Policy.model_fields["disclosure"].annotation
    assert get_origin(levels) is tuple
    assert get_args(get_args(levels)[0]) == LEVELS


def test_the_schema_is_made_once() -> None:
    task = jobs.task_of(joint_job())
    assert task.schema is task.schema
    assert task.taxonomies is task.taxonomies
    assert task.result_schema is task.schema


def test_who_takes_part() -> None:
    assert jobs.task_of(joint_job()).roster(PARTIES[1]) == Roster(PARTIES[1], PARTIES, *PARTIES[:2])


def test_what_a_party_must_hold() -> None:
    task = jobs.task_of(vertical_job())
    assert task.held_by(None) == tuple(task.job.columns)
    assert {*task.held_by("loan"), *task.held_by("bank")} == set(task.job.columns)
    assert jobs.task_of(joint_job()).held_by(PARTIES[0]) == tuple(joint_job()["columns"])
