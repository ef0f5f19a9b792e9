"""The job file: every rule of DESIGN §9 that can be checked without data, with the path of what is wrong."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from party.errors import ConfigError, Exit, Problem
from party.job import Job, parse_job
from tests.support.samples import PARTIES, columns, joint_job, single_job


def refused(fields: Any) -> Problem:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields, "job.yaml")
    problem = caught.value.problem
    assert problem.exit_code == Exit.USAGE
    assert problem.message.startswith("job.yaml: ")
    return problem


def column(**changes: Any) -> dict[str, Any]:
    """The sample job with one more column."""
    return single_job(columns=columns(x=changes))


def model(**lkc: str) -> dict[str, Any]:
    return single_job(model={"lkc": {"L": "2", "K": "2", **lkc}})


def test_samples_are_valid() -> None:
    single, joint = parse_job(single_job(), "job"), parse_job(joint_job(), "job")
    assert single.published == ("job", "age", "transfused", "surgery")
    assert single.names("qid") == ("job", "age")
    assert (single.roster, single.goal, single.deliver) == ((), "classification", "all")
    assert joint.roster == PARTIES
    assert joint.leader_name == PARTIES[0]
    assert parse_job(joint_job(leader=None), "job").leader_name == PARTIES[0]
    assert parse_job(joint_job(leader=PARTIES[2]), "job").leader_name == PARTIES[2]


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


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "", "1e3"])
@pytest.mark.parametrize("key", ["L", "K"])
def test_l_and_k_are_positive_integers(key: str, text: str) -> None:
    assert f"`model.lkc.{key}`" in refused(model(**{key: text})).message


@pytest.mark.parametrize("text", ["", "x", "1e400", "nan", "inf", "1" * 50, "1/2"])
def test_numeric_domains_are_decimal_numbers(text: str) -> None:
    fields = column(role="qid", numeric={"min": text, "max": "5", "step": "1"})
    assert "`columns.x.numeric.min`" in refused(fields).message


def test_numeric_domains_are_exact() -> None:
    fields = column(role="qid", numeric={"min": "-0.1", "max": "1e2", "cuts": [".5", "7"]})
    numeric = parse_job(fields, "job").columns["x"].numeric
    assert numeric is not None
    assert (numeric.min, numeric.max) == (Decimal("-0.1"), Decimal(100))
    assert numeric.cuts == (Decimal("0.5"), Decimal(7))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"role": "qid"}, "needs either `taxonomy` or `numeric`"),
        (
            {"role": "qid", "taxonomy": {"A": ["b"]}, "numeric": {"min": "0", "max": "1", "step": "1"}},
            "needs either `taxonomy` or `numeric`",
        ),
        ({"role": "qid", "numeric": {"min": "0", "max": "1"}}, "give either `step` or `cuts`"),
        (
            {"role": "qid", "numeric": {"min": "0", "max": "9", "step": "1", "cuts": ["1"]}},
            "either `step` or `cuts`",
        ),
        ({"role": "qid", "taxonomy": {"A": ["b"]}, "domain": ["b"]}, "role qid has no key 'domain'"),
        ({"role": "qid", "numeric": {"min": "0", "max": "1", "step": "1"}, "missing": "leaf"}, "are dropped"),
        ({"role": "class", "domain": ["a"], "missing": "leaf"}, "`missing: leaf` is for quasi-identifiers"),
        (
            {"role": "sensitive", "domain": ["a"], "missing": "leaf"},
            "`missing: leaf` is for quasi-identifiers",
        ),
        ({"role": "sensitive", "domain": []}, "`domain` lists each value once"),
        ({"role": "sensitive", "domain": ["a", "a"]}, "`domain` lists each value once"),
        ({"role": "sensitive", "domain": ["a", "b"], "values": ["a", "a"]}, "`values` lists each value once"),
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


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (single_job(columns={}), "`columns`"),
        (
            single_job(columns={"p": {"role": "plain"}}, goal="general"),
            "at least one column needs `role: qid`",
        ),
        (
            single_job(columns=columns(second={"role": "class", "domain": ["a"]})),
            "only one column can have `role: class`",
        ),
        (single_job(columns=columns(transfused=None)), "say `goal: general`"),
        (single_job(data=None), "partition single needs `data"),
        (single_job(disclosure="leader"), "partition single has no `disclosure`"),
        (single_job(secure_sum="ring"), "partition single has no `secure_sum`"),
        (single_job(parties={"a": {"address": "h:1"}}), "partition single has no `parties`"),
        (single_job(leader="a"), "partition single has no `leader`"),
        (single_job(deputy="a"), "partition single has no `deputy`"),
        (single_job(version="2"), "`version`"),
        (single_job(partition="diagonal"), "`partition`"),
        (single_job(goal="profit"), "`goal`"),
        (joint_job(data="table.csv"), "a joint job has no `data`"),
        (joint_job(parties=None, leader=None), "a joint job needs `parties`, two or more"),
        (joint_job(parties={PARTIES[0]: {"address": "h:1"}}), "a joint job needs `parties`, two or more"),
        (joint_job(leader="nobody"), "`leader` must be one of the parties"),
        (joint_job(deputy="nobody"), "`deputy` must be one of the parties"),
        (joint_job(deputy=PARTIES[0]), "leader and deputy must be different"),
        (joint_job(leader=None, deputy=PARTIES[0]), "leader and deputy must be different"),
        (joint_job(disclosure="open"), "`disclosure`"),
        (joint_job(deliver="nobody"), "`deliver`"),
        (joint_job(secure_sum="open"), "`secure_sum`"),
        (
            joint_job(columns=columns(transfused={"role": "class"})),
            "columns.transfused: a joint job needs its `domain`",
        ),
        (
            joint_job(columns=columns(surgery={"role": "sensitive"})),
            "columns.surgery: a joint job needs its `domain`",
        ),
        (joint_job(parties={"a b": {"address": "h:1"}}), "parties.a b"),
        (joint_job(parties=["a", "b", "c"]), "`parties`"),
    ],
)
def test_what_contradicts_itself_or_is_missing(fields: dict[str, Any], says: str) -> None:
    problem = refused(fields)
    assert problem.error_id == "job-invalid"
    assert says in problem.message


@pytest.mark.parametrize(
    "address", ["", "host", "host:", ":1", "host:port", "a b:1", "h:65536", "h:123456", "::1:80"]
)
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    parties = {p: {"address": "h:1"} for p in PARTIES} | {PARTIES[1]: {"address": address}}
    problem = refused(joint_job(parties=parties))
    assert "`parties.hospital-b.address`: write host:port" in problem.message


@pytest.mark.parametrize(
    "address", ["localhost:0", "10.0.0.1:65535", "[::1]:7401", "hospital-b.example:7401"]
)
def test_addresses_of_every_kind(address: str) -> None:
    parties = {p: {"address": address} for p in PARTIES}
    job = parse_job(joint_job(parties=parties), "job")
    assert job.parties is not None
    assert job.parties[PARTIES[0]].address == address


def test_two_parties_under_a_leader_are_refused_with_the_reason() -> None:
    parties = {p: {"address": "h:1"} for p in PARTIES[:2]}
    problem = refused(joint_job(parties=parties))
    assert problem.error_id == "job-too-few-parties"
    assert "with two, the sum minus one's own counts is the other's" in problem.message
    assert "say `disclosure: sealed`" in problem.message


def test_joint_jobs_are_sealed_unless_they_say_otherwise() -> None:
    fields = joint_job()
    del fields["disclosure"]
    job = parse_job(fields, "job")
    assert job.disclosure == "sealed"
    assert '"disclosure":"sealed"' in job.canonical()
    assert parse_job(single_job(), "job").disclosure is None


def test_the_deputy_is_the_party_after_the_leader() -> None:
    assert parse_job(joint_job(leader=PARTIES[0]), "job").deputy_name == PARTIES[1]
    assert parse_job(joint_job(leader=PARTIES[-1]), "job").deputy_name == PARTIES[0]
    assert parse_job(joint_job(leader=PARTIES[0], deputy=PARTIES[2]), "job").deputy_name == PARTIES[2]


def test_secure_sum_is_for_leader_jobs() -> None:
    assert parse_job(joint_job(secure_sum="ring"), "job").secure_sum == "ring"
    assert "`secure_sum` is for" in refused(joint_job(secure_sum="ring", disclosure="sealed")).message


def test_canonical_form_round_trips_and_keeps_the_order_of_columns() -> None:
    for fields in (single_job(), joint_job(deputy=PARTIES[1], secure_sum="ring", deliver="coordinator")):
        job = parse_job(fields, "job")
        again = parse_job(json.loads(job.canonical()), "job")
        assert again == job
        assert again.canonical() == job.canonical()
        assert list(json.loads(job.canonical())["columns"]) == list(fields["columns"])


def test_canonical_form_tells_the_order_of_columns_apart() -> None:
    turned = dict(reversed(columns().items()))
    one, other = parse_job(single_job(), "job"), parse_job(single_job(columns=turned), "job")
    assert one.canonical() != other.canonical()


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


def test_a_job_cannot_be_changed() -> None:
    job = parse_job(single_job(), "job")
    with pytest.raises(ValueError, match="frozen"):
        job.goal = "general"


def test_the_schema_is_closed_and_describes_every_key() -> None:
    schema = Job.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False
        for name, field in part["properties"].items():
            if "$ref" not in field:
                assert field.get("description"), f"{part['title']}.{name} has no description"
