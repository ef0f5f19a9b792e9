"""Field types: names, addresses and exact numbers, and the path of what is wrong."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import ConfigError
from jobs.loading import parse_job
from tests.support.commands import invoke
from tests.support.network import yaml_of
from tests.support.refusals import column, model, refused
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job, single_job


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (single_job(colour="red"), "colour"),
        (single_job(model={"lkc": {"L": "1", "K": "1", "M": "1"}}), "model.lkc.M"),
        (single_job(model={"lkc": {"L": "1", "K": "1"}, "x": {}}), "model.x"),
        (column(role="plain", shape="round"), "columns.x.shape"),
        (
            column(role="qid", numeric={"min": "0", "max": "1", "step": "1", "unit": "kg"}),
            "columns.x.numeric.unit",
        ),
        (joint_job(parties={p: {"address": "h:1", "port": "1"} for p in PARTIES}), "parties.hospital-a.port"),
    ],
)
def test_an_unknown_key_is_named_with_its_path(fields: dict[str, Any], path: str) -> None:
    problem = refused(fields)
    assert problem.error_id == "unknown-key"
    assert f"unknown key `{path}`" in problem.message


def test_every_wrong_key_is_named_at_once() -> None:
    fields = single_job(colour="red", name="a b", model={"lkc": {"L": "0", "K": "2", "C": "7"}})
    message = refused(fields).message
    for path in ("`colour`", "`name`", "`model.lkc.L`", "`model.lkc.C`"):
        assert path in message


@pytest.mark.parametrize("key", ["version", "name", "partition", "model", "columns"])
def test_a_missing_key_is_named(key: str) -> None:
    problem = refused(single_job(**{key: None}))
    assert problem.error_id == "job-invalid"
    assert f"`{key}` is missing" in problem.message


@pytest.mark.parametrize("fields", [None, "text", [], ["a"], 3])
def test_a_job_is_a_mapping(fields: Any) -> None:
    assert "expected keys and values" in refused(fields).message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.2", Fraction(1, 5)),
        ("1/5", Fraction(1, 5)),
        ("1", 1),
        ("50/100", Fraction(1, 2)),
        ("2e-1", Fraction(1, 5)),
    ],
)
def test_c_is_the_rational_that_is_written(text: str, value: Fraction) -> None:
    assert parse_job(model(C=text), "job").model.lkc.C == value


@pytest.mark.parametrize(
    "text",
    [
        *("0", "0.0", "-0.1", "1.01", "2", "101/100", "1/0", "", "half", "nan", "inf", "1/-5", "0,2", "20%"),
        *("1e-999999999", "0." + "3" * 60, f"1/{2**62}", "0.1234567890123456789"),
    ],
)
def test_c_outside_its_range_or_malformed(text: str) -> None:
    for fields in (model(C=text), column(role="sensitive", domain=["a"], C=text)):
        problem = refused(fields)
        assert problem.error_id == "job-invalid"
        assert ".C`" in problem.message


@pytest.mark.parametrize("text", ["", "x", "1e400", "nan", "inf", "1" * 50, "1/2"])
def test_numeric_domains_are_decimal_numbers(text: str) -> None:
    fields = column(role="qid", numeric={"min": text, "max": "5", "step": "1"})
    assert "`columns.x.numeric.min`" in refused(fields).message


@pytest.mark.parametrize(
    "address", ["", "host", "host:", ":1", "host:port", "a b:1", "h:65536", "h:123456", "::1:80"]
)
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    parties = {p: {"address": "h:1"} for p in PARTIES} | {PARTIES[1]: {"address": address}}
    problem = refused(joint_job(parties=parties))
    shown = address or "empty"
    assert f"`parties.hospital-b.address` is {shown}: write host:port" in problem.message


@pytest.mark.parametrize(
    "address", ["localhost:0", "10.0.0.1:65535", "[::1]:7401", "hospital-b.example:7401"]
)
def test_addresses_of_every_kind(address: str) -> None:
    parties = {p: {"address": address} for p in PARTIES}
    job = parse_job(joint_job(parties=parties), "job")
    assert job.parties is not None
    assert job.parties[PARTIES[0]].address == address


@given(st.text(max_size=12))
def test_names_are_plain(name: str) -> None:
    plain = (
        bool(name) and name.isascii() and name[0].isalnum() and all(c.isalnum() or c in "._-" for c in name)
    )
    try:
        parse_job(single_job(name=name), "job")
        accepted = True
    except ConfigError:
        accepted = False
    assert accepted == plain


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"columns": columns(age={**COLUMNS["age"], "weight": "0"})},
            "`columns.age.weight` is 0. What to do: write a number above 0",
        ),
        (
            {"goal": "general", "model": {"lkc": {"L": "2", "K": "2", "C": "0.5", "score": "added"}}},
            "`score: added` is for `goal: classification` or `goal: clusters`; with `goal: general` say",
        ),
    ],
)
def test_a_refusal_names_the_key(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(yaml_of(single_job(**changes)))
    ran = invoke("coordinator", "validate", tmp_path / "job.yaml")
    assert ran.code == 2
    assert says in ran.err
