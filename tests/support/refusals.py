"""Sample jobs with something wrong, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.errors import ConfigError, Exit, PolicyError, Problem
from jobs.loading import parse_job
from jobs.owner.objections import allowance, check_policy
from jobs.owner.policy import Policy
from tests.support import jobs
from tests.support.samples import columns, single_job


def refused(fields: Any) -> Problem:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields, "job.yaml")
    problem = caught.value.problem
    assert problem.exit_code == Exit.USAGE
    assert problem.message.startswith("job.yaml: ")
    return problem


def objected(fields: dict[str, Any], me: str, **asked: Any) -> str:
    """Return the objections of a policy of ``me`` that allows a job, but for what is ``asked`` of it; empty:
    nothing.
    """
    task = jobs.task_of(fields)
    policy = Policy(**{**allowance(task, me, "coordinator"), **asked})
    try:
        check_policy(policy, task, me, "coordinator")
    except PolicyError as error:
        return str(error)
    return ""


def column(**changes: Any) -> dict[str, Any]:
    """The sample job with one more column."""
    return single_job(columns=columns(x=changes))


def model(**lkc: str) -> dict[str, Any]:
    return single_job(model={"lkc": {"L": "2", "K": "2", **lkc}})
