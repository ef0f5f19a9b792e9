"""Columns: every key fits its role, and numbers are exact."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Any

import pytest

from jobs.loading import parse_job
from tests.support.refusals import column, refused
from tests.support.samples import columns, single_job


def test_numeric_domains_are_exact() -> None:
    fields = column(role="qid", numeric={"min": "-0.1", "max": "1e2", "cuts": [".5", "7"]})
    numeric = parse_job(fields, "job").columns["x"].numeric
    assert numeric is not None
    assert (numeric.min, numeric.max) == (Decimal("-0.1"), Decimal(100))
    assert numeric.cuts == (Decimal("0.5"), Decimal(7))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"role": "qid"}, "needs one of `taxonomy`, `numeric` and `dates`"),
        (
            {"role": "qid", "taxonomy": {"A": ["b"]}, "numeric": {"min": "0", "max": "1", "step": "1"}},
            "`taxonomy` and `numeric` are given, and a qid column has one domain: leave one of them out",
        ),
        ({"role": "qid", "numeric": {"min": "0", "max": "1"}}, "give either `step` or `cuts`"),
        (
            {"role": "qid", "numeric": {"min": "0", "max": "9", "step": "1", "cuts": ["1"]}},
            "either `step` or `cuts`",
        ),
        ({"role": "qid", "taxonomy": {"A": ["b"]}, "domain": ["b"]}, "role qid has no key 'domain'"),
        ({"role": "class", "domain": ["a"], "missing": "leaf"}, "`missing: leaf` is for quasi-identifiers"),
        ({"role": "sensitive", "domain": []}, "`domain` lists each value once"),
        ({"role": "sensitive", "domain": ["a", "b", "a"]}, "`domain` lists each value once, and 'a' twice"),
        ({"role": "sensitive", "domain": ["a", "b"], "values": ["b", "b"]}, "once, and 'b' twice: leave one"),
        ({"role": "qid", "suppress": ["b", "b"]}, "`suppress` lists each value once, and 'b' twice"),
        (
            {"role": "sensitive", "domain": ["a"], "numeric": {"min": "0", "max": "9", "step": "1"}},
            "`domain` and `numeric` are given, and a sensitive column has one of",
        ),
        (
            {"role": "qid", "taxonomy": {"A": ["b"]}, "outside": "drop"},
            "write 'missing', and `missing: drop` to leave such rows out",
        ),
        ({"role": "sensitive", "domain": ["a", "b"], "values": ["c"]}, "`values` must be in `domain`"),
        ({"role": "class", "domain": ["a"], "values": ["a"]}, "role class has no key 'values'"),
        ({"role": "class", "domain": ["a"], "C": "0.5"}, "role class has no key 'C'"),
        ({"role": "id", "missing": "drop"}, "role id has no key 'missing'"),
        ({"role": "plain", "taxonomy": {"A": ["b"]}}, "role plain has no key 'taxonomy'"),
        ({"role": "secret"}, "`columns.x.role`"),
        ({}, "`columns.x.role` is missing"),
    ],
)
def test_keys_must_fit_the_role(spec: dict[str, Any], says: str) -> None:
    problem = refused(single_job(columns=columns(transfused=None, x=spec), goal="general"))
    assert problem.error_id == "job-invalid"
    assert "columns.x" in problem.message
    assert says in problem.message


def test_a_column_may_be_called_like_a_type() -> None:
    problem = refused(single_job(columns=columns(str={"role": "nothing"})))
    assert "`columns.str.role`" in problem.message


COMPOSED = "Gefäß"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


@pytest.mark.parametrize("in_domain", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("in_values", [COMPOSED, DECOMPOSED])
def test_protected_values_are_found_in_the_domain_in_any_form(in_domain: str, in_values: str) -> None:
    """They are spelled as the domain spells them; the job keeps the bytes it was written with."""
    fields = column(role="sensitive", domain=["Knie", in_domain], values=[in_values])
    read = parse_job(fields, "job").columns["x"]
    assert (read.protected, read.values) == ((in_domain,), (in_values,))


def test_protected_values_of_a_domain_from_the_data_are_in_its_form() -> None:
    read = parse_job(column(role="sensitive", values=[DECOMPOSED]), "job").columns["x"]
    assert read.protected == (COMPOSED,)


def test_protected_values_in_two_forms_are_one_value() -> None:
    problem = refused(column(role="sensitive", values=[COMPOSED, DECOMPOSED]))
    assert "`values` lists each value once; two Unicode forms" in problem.message
