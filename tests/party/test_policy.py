"""The policy: nothing is allowed but what is listed, and every objection is named."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from party.config import Policy
from party.errors import Exit, PolicyError
from party.job import parse_job
from party.policy import check_policy
from tests.support.samples import PARTIES, columns, joint_job

ME = PARTIES[0]
ALLOWING: dict[str, Any] = {
    "coordinators": ("coordinator",),
    "parties": PARTIES[1:],
    "columns": {
        "patient": ("id",),
        "job": ("qid", "plain"),
        "age": ("qid",),
        "transfused": ("class",),
        "surgery": ("sensitive",),
    },
    "min_l": 2,
    "min_k": 2,
    "max_c": Fraction(1, 2),
    "disclosure": ("leader",),
}


def objections(me: str = ME, coordinator: str = "coordinator", job: Any = None, **changes: Any) -> list[str]:
    """What a policy that allows the sample job says, with some of its keys changed; a default for None."""
    fields = {key: value for key, value in {**ALLOWING, **changes}.items() if value is not None}
    parsed = parse_job(job or joint_job(), "job")
    try:
        check_policy(Policy(**fields), parsed, me, coordinator)
        return []
    except PolicyError as error:
        problem = error.problem
    assert (problem.error_id, problem.exit_code, problem.party) == ("policy-refused", Exit.REFUSED, me)
    return problem.message.split("; ")


def test_what_is_listed_is_allowed() -> None:
    assert objections() == []
    assert objections(min_k=1, min_l=1, max_c=Fraction(1)) == []


def test_an_empty_policy_refuses_everything() -> None:
    with pytest.raises(PolicyError) as caught:
        check_policy(Policy(), parse_job(joint_job(), "job"), ME, "coordinator")
    said = caught.value.problem.message
    for part in ("coordinator may not start", "hospital-b may", "hospital-c may", "no LKC job is allowed"):
        assert part in said
    for name in columns():
        assert f"column {name} may not" in said
    assert "no C is allowed" in said
    assert "disclosure leader is not allowed" in said


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"coordinators": ("somebody",)}, "coordinator may not start jobs here"),
        ({"parties": PARTIES[1:2]}, "hospital-c may not take part in a job with us"),
        ({"columns": {**ALLOWING["columns"], "age": ("plain",)}}, "column age may not be used as qid"),
        ({"columns": {**ALLOWING["columns"], "patient": ()}}, "column patient may not be used as id"),
        ({"min_k": 3}, "K must be at least 3"),
        ({"min_k": None}, "no LKC job is allowed"),
        ({"min_l": 3}, "L must be at least 3"),
        ({"max_c": Fraction(49, 100)}, "sensitive column surgery: C must be at most 49/100"),
        ({"max_c": None}, "sensitive column surgery: no C is allowed"),
        ({"disclosure": ("sealed",)}, "disclosure leader is not allowed"),
        ({"me": "hospital-z", "parties": PARTIES}, "hospital-z is not a party of this job"),
        ({"coordinator": "stranger"}, "stranger may not start jobs here"),
    ],
)
def test_each_objection_alone(changes: dict[str, Any], says: str) -> None:
    assert objections(**changes) == [says]


def test_a_columns_own_c_is_what_counts() -> None:
    surgery = {"role": "sensitive", "domain": ["a", "b"], "C": "0.6"}
    job = joint_job(columns=columns(surgery=surgery), model={"lkc": {"L": "2", "K": "2", "C": "0.1"}})
    assert objections(job=job) == ["sensitive column surgery: C must be at most 1/2"]
    assert objections(job=job, max_c=Fraction(3, 5)) == []


@pytest.mark.parametrize(
    ("protected", "met"),
    [(["Rare"], True), (["Rare", "Knee"], False), (["Knee"], False), ([], True), (["no such value"], False)],
)
def test_values_that_a_job_must_protect(protected: list[str], met: bool) -> None:
    """The sample job protects `Rare` and leaves the others free."""
    said = objections(protected={"surgery": tuple(protected)})
    assert said == ([] if met else ["sensitive column surgery: values that must be protected are not"])


def test_a_job_that_protects_all_values_protects_each() -> None:
    surgery = {"role": "sensitive", "domain": ["Heart", "Knee", "Rare"]}
    assert objections(job=joint_job(columns=columns(surgery=surgery)), protected={"surgery": ("Knee",)}) == []


def test_every_objection_is_named_at_once() -> None:
    assert len(objections(min_k=99, min_l=99, disclosure=(), coordinators=())) == 4
