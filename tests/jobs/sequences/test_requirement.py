"""Requirements of a job of sequences: refusals with the reason; words for policies and approvers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from anonymize.errors import SchemaError
from jobs.description import description_fields
from jobs.errors import ConfigError
from jobs.loading import check_task, decode_task, load_task, parse_job
from jobs.owner.policy import Policy
from jobs.owner.rules import allowance, objections
from jobs.sequences.requirement import notes, rules
from jobs.sequences.settings import SequencesModel
from tests.support import jobs
from tests.support.wards import WARDS, joint_wards_job, sets_job, wards_columns, wards_job

CLOCK = {"from": "2026-01-01", "to": "2026-01-05", "step": "6h"}
TWO = {"role": "sensitive", "domain": ["a", "b"]}
NUMERIC = {"min": "0", "max": "24", "step": "1"}


def with_column(name: str, **column: Any) -> dict[str, Any]:
    return wards_job(columns=wards_columns(**{name: column}))


def at(**keys: Any) -> dict[str, Any]:
    return with_column("at", role="time", **keys)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (wards_job(goal="general"), "`goal` is for jobs that generalize"),
        (wards_job(model={"sequences": {"L": "2", "K": "2"}, "lkc": {"L": "2", "K": "2"}}), "give one of"),
        (joint_wards_job(disclosure="leader", parties={p: {} for p in "abc"}), "this would open how many"),
        (joint_wards_job(disclosure="strict"), "is not for sequences"),
        (joint_wards_job(deliver="coordinator"), "each party checks the table"),
        (joint_wards_job({"suppress": "global"}), "global is for a single holder"),
        (joint_wards_job({"exclusion": "refuse"}), "say `report`: each owner"),
        (joint_wards_job({"exclusion": "repair"}), "say `report`: each owner"),
        (
            joint_wards_job(columns=wards_columns(note={"role": "plain"})),
            "is for sequences of a single holder",
        ),
        (
            joint_wards_job(columns=wards_columns(ward={"role": "location"})),
            "needs `domain` or `domain_file`",
        ),
        (joint_wards_job(columns=wards_columns(dx={"role": "sensitive"})), "needs its `domain`"),
        (with_column("job", role="qid", suppress=["a", "b"]), "`role: qid` is not for sequences"),
        (with_column("job", role="class"), "`role: class` is not for sequences"),
        (with_column("whose", role="party", domain=["a"]), "`role: party` is not for sequences"),
        (with_column("other", role="location"), "only one column can have `role: location`"),
        (with_column("codes", role="items"), "need one column with `role: location`"),
        (wards_job(columns=wards_columns(ward=None)), "need one column with `role: location`"),
        (wards_job(columns=wards_columns(tag=None)), "needs a column with `role: id`"),
        (sets_job(columns={**sets_job()["columns"], "at": wards_columns()["at"]}), "a set has no times"),
        (with_column("record", role="plain"), "columns.record: the release has a column record"),
        (wards_job({"places": "first"}, columns=wards_columns(at=None)), "places: first needs a column"),
        (wards_job({"stays": "arrivals"}, columns=wards_columns(at=None)), "stays: arrivals needs a column"),
        (wards_job({"cost": "frequent"}), "`cost` is for `suppress: global`"),
        (wards_job({"K": "1", "C": "1"}), "asks for nothing"),
        (wards_job({"C": {"ward": "0.5"}}), "names 'ward', which is not a sensitive column"),
        (wards_job({"L": "all"}), "no L protects"),
        (wards_job({"L": "0"}), "L"),
        (wards_job({"L": "17"}), "L"),
        (wards_job({"frequent": "0"}), "above 0"),
        (wards_job({"score": "added"}), "unknown key `model.sequences.score`"),
        (
            wards_job(model={"sequences": {"L": "2", "K": "2", "exclusion": "report"}}),
            "sensitive column dx needs a C",
        ),
        (with_column("ward", role="location", domain=WARDS, domain_file="w.txt"), "either `domain` or"),
        (with_column("ward", role="location", numeric=NUMERIC), "has no key 'numeric'"),
        (at(), "either `numeric` or `clock`"),
        (at(numeric=NUMERIC, clock=CLOCK), "either `numeric` or `clock`"),
        (at(clock={**CLOCK, "step": "1w"}), "a whole number with s, m, h or d"),
        (at(clock={**CLOCK, "step": "7h"}), "`step` must divide"),
        (at(clock={**CLOCK, "fold": "9h"}), "`step` must divide"),
        (at(clock={**CLOCK, "to": "2026-01-01"}), "`to` must be after"),
        (at(clock={**CLOCK, "to": "2026-01-05T00:00Z"}), "without a zone"),
        (at(clock={**CLOCK, "to": "14d"}), "a clock needs `from` and `to`"),
        (at(clock=CLOCK, relative="true"), "a length of time at `to`, e.g. 14d"),
        (at(clock={"to": "14d", "step": "1h", "fold": "1d"}, relative="true"), "leave `from` and `fold` out"),
        (at(numeric={**NUMERIC, "min": "1"}, relative="true"), "say `min: 0`"),
        (at(clock={"to": "9999d", "step": "1s"}, relative="true"), "at most 1048576 cells"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse_job(fields, "job")
    assert caught.value.problem.error_id in ("job-invalid", "unknown-key")


def test_a_vertical_job_is_refused_by_its_own_name() -> None:
    """The refusal names the partition, whatever else a vertical job would lack."""
    parties = {"a": {"address": "a:1", "columns": ["ward", "at"]}, "b": {"address": "b:1", "columns": ["dx"]}}
    for fields in (joint_wards_job(parties=parties), joint_wards_job(), wards_job()):
        with pytest.raises(ConfigError) as caught:
            parse_job({**fields, "partition": "vertical"}, "job")
        assert caught.value.problem.error_id == "sequences-vertical"


@pytest.mark.parametrize("role", ["location", "time", "items"])
def test_other_models_have_no_such_columns(role: str) -> None:
    column = {"role": role, **({"numeric": NUMERIC} if role == "time" else {})}
    fields = wards_job(model={"lkc": {"L": "2", "K": "2"}}, columns={"x": column})
    with pytest.raises(ConfigError, match=f"`role: {role}` is for jobs with"):
        parse_job(fields, "job")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (with_column("ward", role="location", domain=["é", "e\u0301"]), "two Unicode forms"),
        (with_column("ward", role="location", domain=["ER", "?"]), "cannot be a value"),
        (
            sets_job(columns={**sets_job()["columns"], "codes": {"role": "items", "domain": ["a;b"]}}),
            "several values",
        ),
        (at(numeric={"min": "0", "max": "1", "step": "0.0000003"}), "more than|millionths"),
        (
            wards_job({"C": "0.4"}, columns=wards_columns(dx={"role": "sensitive", "domain": ["a", "b"]})),
            "cannot be met",
        ),
    ],
)
def test_what_is_refused_once_domains_are_open(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        check_task(jobs.task_of(fields))


def test_places_in_a_file_are_part_of_the_bundle(tmp_path: Path) -> None:
    fields = with_column("ward", role="location", domain_file="lists/wards.txt")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(fields))
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "wards.txt").write_text("ER\r\n\nICU \nXR\n")
    task = load_task(tmp_path / "job.yaml")
    assert decode_task(task.bundle.encoded).digest == task.digest
    told = description_fields(task)["columns"]["ward"]
    assert told["values"] == 3
    (tmp_path / "lists" / "wards.txt").write_text("ER\nICU\nXX\n")
    other = load_task(tmp_path / "job.yaml")
    assert description_fields(other)["columns"]["ward"]["sha256"] != told["sha256"]
    assert other.digest != task.digest
    (tmp_path / "lists" / "wards.txt").write_text("ER\nICU\nER\n")
    with pytest.raises(SchemaError, match="lists 'ER' twice"):
        load_task(tmp_path / "job.yaml")
    (tmp_path / "lists" / "wards.txt").write_text("\n")
    with pytest.raises(SchemaError, match="lists no value"):
        load_task(tmp_path / "job.yaml")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (wards_job({"frequent": "0.01", "places": "several"}), wards_job()),
        (at(clock={**CLOCK, "step": "360m"}), at(clock={**CLOCK, "from": "2026-01-01T00:00:00"})),
        (at(numeric=NUMERIC, relative="false"), at(numeric=NUMERIC)),
        (wards_job({"suppress": "global"}), wards_job({"suppress": "global", "cost": "instances"})),
        (wards_job({"exclusion": None}), wards_job({"exclusion": "refuse"})),
    ],
)
def test_jobs_that_ask_the_same_have_one_hash(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert jobs.bundle_of(one).digest == jobs.bundle_of(other).digest


def test_a_single_holder_refuses_what_exclusion_finds_unless_it_says_otherwise() -> None:
    model = {"sequences": {"L": "2", "K": "2", "C": "1/2"}}
    single = parse_job(wards_job(model=model), "job").model.sequences
    assert single is not None
    assert (single.exclusion, single.suppress, single.max_items) == ("refuse", "local", 64)


POLICY = {"min_l": 2, "min_k": 2, "max_c": "0.5"}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"min_k": None}, ["no sequences job is allowed (`policy.min_k` is unset)"]),
        ({"min_k": 3}, ["K must be at least 3, not 2 (`policy.min_k`)"]),
        ({"min_l": 3}, ["L must be at least 3, not 2 (`policy.min_l`)"]),
        ({"max_c": "0.4"}, ["sensitive column dx: C must be at most 2/5, not 1/2 (`policy.max_c`)"]),
        ({"max_c": None}, ["sensitive column dx: no C is allowed (`policy.max_c` is unset)"]),
        (
            {"columns": {"dx": ["sensitive"]}, "protected": {"dx": ["flu"]}},
            ["sensitive column dx: values that must be protected are not (`policy.protected`)"],
        ),
        ({"min_diversity": 2}, []),
        ({"min_diversity": 3}, ["diversity must be at least 3, not 2 (`policy.min_diversity`)"]),
        (
            {"min_colluders": 1},
            [
                "colluders must be at least 1, not 0 (`policy.min_colluders`): jobs of sequences have no `colluders`"
            ],
        ),
        ({"per_person": True}, []),
        ({"max_items": 63}, ["max_items must be at most 63, not 64 (`policy.max_items`)"]),
        (
            {"max_candidates": 3_999_999},
            ["max_candidates must be at most 3999999, not 4000000 (`policy.max_candidates`)"],
        ),
    ],
)
def test_what_a_policy_has_against_it(changes: dict[str, Any], found: list[str]) -> None:
    task = jobs.task_of(wards_job())
    assert (
        list(objections(rules(task, tuple(task.job.columns)), Policy.model_validate({**POLICY, **changes})))
        == found
    )


def test_a_policy_allows_the_work_that_a_job_does_unless_it_says_otherwise() -> None:
    for name in ("max_items", "max_candidates"):
        assert Policy.model_fields[name].default == SequencesModel.model_fields[name].default


def test_a_policy_that_allows_just_this() -> None:
    task = jobs.task_of(wards_job())
    assert allowance(rules(task, tuple(task.job.columns))) == {"min_l": 2, "min_k": 2, "max_c": "1/2"}
    more = jobs.task_of(wards_job({"max_items": "65", "max_candidates": "4000001"}))
    allowed = allowance(rules(more, tuple(more.job.columns)))
    assert (allowed["max_items"], allowed["max_candidates"]) == (65, 4_000_001)
    assert list(objections(rules(more, tuple(more.job.columns)), Policy.model_validate(allowed))) == []
    sets = jobs.task_of(sets_job())
    policy = Policy.model_validate({**POLICY, "per_person": True})
    assert list(objections(rules(sets, ("codes",)), policy)) == [
        "K must count people: the job must have a column with `role: id` (`policy.per_person`)"
    ]


def test_settings_with_less_effect_than_one_may_think() -> None:
    assert notes(jobs.task_of(wards_job())) == []
    (note,) = notes(jobs.task_of(wards_job({"L": "3", "max_items": "2"})))
    assert note == "L=3 is more than the 2 items of any record"
    (note,) = notes(jobs.task_of(wards_job(columns=wards_columns(dx=None))))
    assert note == "C=1/2 bounds nothing: no column has `role: sensitive`"
