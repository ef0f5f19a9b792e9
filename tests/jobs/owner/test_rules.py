"""Rules of a policy: the policy that allows just what is asked allows it, and no stricter one does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from jobs.owner.policy import Policy
from jobs.owner.rules import (
    AMONG,
    AT_LEAST,
    AT_MOST,
    AT_MOST_EXACTLY,
    PERMITTED,
    REQUIRED,
    Setting,
    allowance,
    objections,
)


@pytest.mark.parametrize(
    ("key", "compared", "asked", "allowed", "stricter"),
    [
        ("min_k", AT_LEAST, (5, 4), 4, 5),
        ("min_colluders", AT_LEAST, (0,), None, 1),
        ("max_items", AT_MOST, (70, 80), 80, 79),
        ("max_items", AT_MOST, (5,), None, 4),
        ("max_c", AT_MOST_EXACTLY, (Fraction(1, 3), Fraction(1, 2)), "1/2", "1/3"),
        ("noise", AMONG, ("joint",), None, ["each"]),
        ("noise", AMONG, ("each", "joint"), ["each", "joint"], ["joint"]),
        ("per_person", REQUIRED, (True,), True, None),
        ("per_person", REQUIRED, (False,), None, True),
        ("cluster_labels", PERMITTED, (True,), True, False),
    ],
)
def test_an_allowance_is_as_strict_as_a_policy_can_be(
    key: str, compared: Any, asked: tuple[Any, ...], allowed: Any, stricter: Any
) -> None:
    rules = [Setting(key, compared, each, "it") for each in asked]
    found = allowance(rules)
    assert found == ({} if allowed is None else {key: allowed})
    assert list(objections(rules, Policy.model_validate(found))) == []
    if stricter is not None:
        refused = list(objections(rules, Policy.model_validate({key: stricter})))
        assert len(refused) == 1
        assert refused[0].endswith(f"(`policy.{key}`)")


def test_a_key_without_a_value_refuses_only_with_a_sentence() -> None:
    assert list(objections([Setting("min_k", AT_LEAST, 4, "K")], Policy())) == []
    assert list(objections([Setting("min_k", AT_LEAST, 4, "K", unset="none")], Policy())) == ["none"]


def test_a_key_may_have_a_value_for_each_column() -> None:
    rules = [Setting("columns", AMONG, role, "no", column=role) for role in ("id", "qid")]
    assert allowance(rules) == {"columns": {"id": ["id"], "qid": ["qid"]}}
    policy = Policy.model_validate({"columns": {"id": ["plain"]}})
    assert list(objections(rules, policy)) == ["no, only plain (`policy.columns`)", "no (`policy.columns`)"]
