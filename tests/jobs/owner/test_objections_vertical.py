"""The policy in vertical jobs: it speaks of the columns that its owner holds, and of giving the class away."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from crypto.intersection import MAX_SET
from jobs.errors import PolicyError
from jobs.owner.objections import allowance, check_policy
from jobs.owner.policy import Policy
from tests.support import jobs
from tests.support.samples import columns, joint_job, vertical_job

ALLOWING: dict[str, dict[str, Any]] = {
    "loan": {"columns": {"patient": ("id",), "job": ("qid",), "transfused": ("class",)}},
    "bank": {
        "columns": {"patient": ("id",), "age": ("qid",), "surgery": ("sensitive",), "transfused": ("class",)},
        "max_c": Fraction(1, 2),
    },
}
ADDRESS = {"address": "127.0.0.1:7400"}
SHARED = columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"})


def objections(me: str, job: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    peers = tuple(name for name in ALLOWING if name != me)
    fields = {
        "coordinators": ("c",),
        "parties": peers,
        "min_k": 1,
        "disclosure": ("sealed",),
        "match_ids": True,
        **ALLOWING[me],
        **changes,
    }
    try:
        check_policy(Policy(**fields), jobs.task_of(job or vertical_job()), me, "c")
        return []
    except PolicyError as error:
        return error.problem.message.split("; ")


@pytest.mark.parametrize("me", ["loan", "bank"])
def test_what_a_party_holds_is_all_it_must_allow(me: str) -> None:
    assert objections(me) == []


def test_ids_must_be_allowed_to_be_matched() -> None:
    allowed = {name: roles for name, roles in ALLOWING["loan"]["columns"].items() if name != "patient"}
    assert objections("loan", columns=allowed) == ["column patient may not be used as id (`policy.columns`)"]
    assert objections("loan", match_ids=False) == [
        "the policy does not allow to match ids with other parties (`policy.match_ids`)"
    ]


def test_a_bound_on_ids_is_a_positive_number() -> None:
    assert Policy.model_validate({"max_peer_ids": "1"}).max_peer_ids == 1
    with pytest.raises(ValidationError):
        Policy.model_validate({"max_peer_ids": "0"})


def test_what_allows_just_a_job_allows_it_with_any_sizes() -> None:
    policy = Policy.model_validate(allowance(jobs.task_of(vertical_job()), "loan", "c"))
    assert policy.peer_ids(1) == MAX_SET


def test_a_policy_for_horizontal_jobs_allows_no_vertical_one() -> None:
    """The same columns in the same roles, the same peers and the same word `sealed` disclose far less there."""
    both = {**ALLOWING["loan"]["columns"], **ALLOWING["bank"]["columns"]}
    fields = {"columns": both, "max_c": Fraction(1, 2), "match_ids": False, "min_k": 2}
    horizontal = joint_job(disclosure="sealed", parties={"loan": ADDRESS, "bank": ADDRESS}, leader="loan")
    assert objections("loan", horizontal, **fields) == []
    assert objections("loan", vertical_job(), **fields) == [
        "the policy does not allow to match ids with other parties (`policy.match_ids`)"
    ]


def test_insider_can_be_required() -> None:
    assert objections("loan", require_insider=True) == [
        "vertical jobs need `insider: true` (`policy.require_insider`)"
    ]
    assert objections("loan", vertical_job(insider=True), require_insider=True) == []


def test_c_is_asked_for_own_sensitive_columns_only() -> None:
    assert objections("bank", max_c=None) == [
        "sensitive column surgery: no C is allowed (`policy.max_c` is unset)"
    ]
    assert objections("bank", max_c=Fraction(1, 3)) == [
        "sensitive column surgery: C must be at most 1/3, not 1/2 (`policy.max_c`)"
    ]
    assert objections("loan", max_c=None) == []


def test_giving_the_class_away_needs_consent() -> None:
    job = vertical_job(columns=SHARED)
    assert objections("bank", job) == [
        "the values of class transfused may not be given to peers (`policy.share_class`)"
    ]
    assert objections("bank", job, share_class=True) == []
    assert objections("loan", job) == []  # it receives


def test_consent_to_one_disclosure_is_none_to_another() -> None:
    assert objections("loan", vertical_job(disclosure="leader")) == [
        "disclosure leader is not allowed, only sealed (`policy.disclosure`)"
    ]
