"""The account: exact sums, no overdraft, refused settings."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.dp.accounting import Accountant, Dp
from anonymize.errors import PrivacyError, SchemaError
from tests.support.dp_tables import categorical, numeric, schema_of

amounts = st.lists(st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=100), max_size=12)


@given(amounts)
def test_what_is_charged_never_exceeds_the_budget(charges: list[Fraction]) -> None:
    accountant = Accountant(Fraction(2))
    for amount in charges:
        before = accountant.rest
        if amount <= before:
            assert accountant.charge("step", amount) == amount
            assert accountant.rest == before - amount
        else:
            with pytest.raises(PrivacyError) as caught:
                accountant.charge("step", amount)
            assert caught.value.error_id == "budget-overdrawn"
            assert accountant.rest == before
    assert accountant.spent + accountant.rest == accountant.epsilon == 2
    assert accountant.spent == sum((c.epsilon for c in accountant.charges), Fraction(0)) <= 2


def test_the_last_bit_of_the_budget_can_be_spent_and_no_more() -> None:
    accountant = Accountant(Fraction(1, 3))
    accountant.charge("all but a little", Fraction(1, 3) - Fraction(1, 10**30))
    assert accountant.charge("rest", accountant.rest, 7) == Fraction(1, 10**30)
    for amount in (Fraction(1, 10**40), Fraction(0), Fraction(-1)):
        with pytest.raises(PrivacyError):
            accountant.charge("more", amount)
    assert [(c.purpose, c.iteration) for c in accountant.charges] == [("all but a little", 0), ("rest", 7)]


def test_the_share_of_a_step() -> None:
    """ε′ = ε / (2·(|A_n| + 2h))."""
    schema = schema_of(numeric("x", 3), categorical("q", {"*": ["a", "b"]}), numeric("y", 2))
    assert Dp(Fraction(1), 10).step_epsilon(schema) == Fraction(1, 44)
    assert Dp(Fraction(1, 10), 4).step_epsilon(schema) == Fraction(1, 200)


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(-1)},
        {"specializations": 0},
        {"max_rows": 0},
        {"max_rows": 1 << 31},
        {"max_cells": 0},
        {"max_fanout": 1},
        {"max_fanout": 65},
    ],
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any]) -> None:
    good: dict[str, Any] = {"epsilon": Fraction(1), "specializations": 3}
    Dp(**good)
    with pytest.raises(SchemaError) as caught:
        Dp(**{**good, **fields})
    assert caught.value.error_id == "job-invalid"
