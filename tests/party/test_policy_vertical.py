"""The policy in vertical jobs: it speaks of the columns that its owner holds, and of giving the class away."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from party.config import Policy
from party.errors import PolicyError
from party.job import parse_job
from party.policy import check_policy
from tests.support.samples import columns, vertical_job

ALLOWING: dict[str, dict[str, Any]] = {
    "loan": {"columns": {"patient": ("id",), "job": ("qid",), "transfused": ("class",)}},
    "bank": {
        "columns": {"patient": ("id",), "age": ("qid",), "surgery": ("sensitive",), "transfused": ("class",)},
        "max_c": Fraction(1, 2),
    },
}
SHARED = columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"})


def objections(me: str, job: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    peers = tuple(name for name in ALLOWING if name != me)
    fields = {
        "coordinators": ("c",),
        "parties": peers,
        "min_k": 1,
        "disclosure": ("sealed",),
        **ALLOWING[me],
        **changes,
    }
    try:
        check_policy(Policy(**fields), parse_job(job or vertical_job(), "job"), me, "c")
        return []
    except PolicyError as error:
        return error.problem.message.split("; ")


@pytest.mark.parametrize("me", ["loan", "bank"])
def test_what_a_party_holds_is_all_it_must_allow(me: str) -> None:
    assert objections(me) == []


def test_ids_must_be_allowed_to_be_matched() -> None:
    allowed = {name: roles for name, roles in ALLOWING["loan"]["columns"].items() if name != "patient"}
    assert objections("loan", columns=allowed) == ["column patient may not be used as id"]


def test_c_is_asked_for_own_sensitive_columns_only() -> None:
    assert objections("bank", max_c=None) == ["sensitive column surgery: no C is allowed"]
    assert objections("bank", max_c=Fraction(1, 3)) == ["sensitive column surgery: C must be at most 1/3"]
    assert objections("loan", max_c=None) == []


def test_giving_the_class_away_needs_consent() -> None:
    job = vertical_job(columns=SHARED)
    assert objections("bank", job) == ["the values of class transfused may not be given to the other parties"]
    assert objections("bank", job, share_class=True) == []
    assert objections("loan", job) == []  # it receives


def test_consent_to_one_disclosure_is_none_to_another() -> None:
    assert objections("loan", vertical_job(disclosure="leader")) == ["disclosure leader is not allowed"]
