"""Keys of earlier versions, and keys in the wrong place: each gets one error that says what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.errors import ConfigError
from jobs.file.job import Privacy
from jobs.lkc.settings import LkcModel, LkcSettings, Requirement
from jobs.loading import parse_job
from jobs.moved_keys import OF_MODELS
from tests.support.dp_jobs import dp_single
from tests.support.samples import single_job
from tests.support.wards import wards_job

ENTRY = {"K": "2", "C": "0.5"}
SEVERAL = {"requirements": [ENTRY]}
KINDS: dict[str, dict[str, Any]] = {"lkc": single_job(), "dp": dp_single(), "sequences": wards_job()}
MOVED = sorted(LkcModel.model_fields.keys() - {"columns"})
WRITE = "write the key under `model.{0}`, as `model: {{{0}: {{{1}: ...}}}}`"
LEAVE = "leave the key out, since the key is for jobs with "


def told(fields: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields, "job.yaml")
    assert caught.value.problem.error_id == "unknown-key"
    assert "remove or correct" not in caught.value.problem.advice(to_owner=False)
    return caught.value.problem.message


def lkc_job(**keys: Any) -> dict[str, Any]:
    return {**single_job(), "model": {"lkc": keys}}


@pytest.mark.parametrize("key", MOVED)
def test_keys_of_lkc_jobs_stand_under_the_model(key: str) -> None:
    assert told({**single_job(), key: "said"}) == f"job.yaml: unknown key `{key}`: {WRITE.format('lkc', key)}"


@pytest.mark.parametrize("kind", ["dp", "sequences"])
@pytest.mark.parametrize("key", MOVED)
def test_jobs_of_other_models_are_not_sent_to_lkc(kind: str, key: str) -> None:
    said = told({**KINDS[kind], key: "said"})
    having = " or ".join(f"`model.{name}`" for name, keys in OF_MODELS.items() if key in keys)
    instead = WRITE.format(kind, key) if key in OF_MODELS[kind] else f"{LEAVE}{having}"
    assert said == f"job.yaml: unknown key `{key}`: {instead}"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({**lkc_job(L="1", K="2", C="1"), "unit": "person"}, "{lkc: {unit: ...}}"),
        ({**single_job(), "requirements": [ENTRY]}, "{lkc: {requirements: [...]}}"),
        ({**single_job(), "model": SEVERAL}, "`model.requirements`: write the key under `model.lkc`"),
        ({**single_job(), "model": {"lkc": {**ENTRY, "L": "1"}, "unit": "person"}}, "{lkc: {unit: ...}}"),
        (
            {**single_job(), "relinkable": "false"},
            "unknown key `relinkable`: leave the key out; for the table of a single holder",
        ),
        (
            lkc_job(**ENTRY, L="1", relinkable="false"),
            "`model.lkc.relinkable`: leave the key out; for the table of a single holder",
        ),
        ({**dp_single(), "relinkable": "false"}, "unknown key `relinkable`: leave the key out"),
        ({**single_job(), "accept_exact_quasi_identifiers": "true"}, "`quasi: exact` says"),
        (lkc_job(**ENTRY, L="1", accept_exact_quasi_identifiers="true"), "`quasi: exact` says"),
        ({**lkc_job(**SEVERAL), "K": "2"}, "unknown key `K`: write the key in each entry of `requirements`"),
        (
            lkc_job(requirements=[{**ENTRY, "unit": "person"}]),
            "requirements.0.unit`: write the key beside `req",
        ),
        (
            lkc_job(requirements=[{**ENTRY, "method": "kd"}]),
            "requirements.0.method`: write the key beside `req",
        ),
        (lkc_job(**ENTRY, L="1", goal="general"), "`model.lkc.goal`: write the key at the top of the file"),
        (lkc_job(**ENTRY, L="1", epsilon="1"), f"`model.lkc.epsilon`: {LEAVE}`model.dp`"),
    ],
)
def test_other_keys_of_earlier_versions(fields: dict[str, Any], says: str) -> None:
    assert says in told(fields)


def test_keys_of_one_requirement_beside_several_are_one_mistake() -> None:
    assert told(lkc_job(L="all", **ENTRY, **SEVERAL)) == (
        "job.yaml: unknown keys `model.lkc.L`, `model.lkc.K` and `model.lkc.C`: write the key in each entry of "
        "`requirements`, or leave `requirements` out"
    )


def test_a_key_that_nothing_is_known_of_is_to_be_corrected() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_job({**single_job(), "colour": "red", "score": "tdr"}, "job.yaml")
    assert "unknown key `colour`; unknown key `score`: write" in caught.value.problem.message
    assert caught.value.problem.advice(to_owner=False) == "remove or correct the key"


def test_every_model_and_every_key_has_advice() -> None:
    assert OF_MODELS.keys() == Privacy.model_fields.keys()
    assert OF_MODELS["lkc"] >= LkcSettings.model_fields.keys() | Requirement.model_fields.keys()
