"""Keys of earlier versions: each gets one error that says what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.errors import ConfigError
from jobs.file.key_errors import INSTEAD
from jobs.lkc.settings import LkcSettings
from jobs.loading import parse_job
from tests.support.dp_jobs import dp_single
from tests.support.samples import single_job
from tests.support.wards import wards_job

UNDER_LKC = sorted(LkcSettings.model_fields.keys() - {"unit"})
KINDS: dict[str, dict[str, Any]] = {"lkc": single_job(), "dp": dp_single(), "sequences": wards_job()}


def told(fields: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields, "job.yaml")
    assert caught.value.problem.error_id == "unknown-key"
    return caught.value.problem.message


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("key", UNDER_LKC)
def test_keys_of_lkc_jobs_stand_under_the_model(kind: str, key: str) -> None:
    said = told({**KINDS[kind], key: "said"})
    assert (
        said
        == f"job.yaml: unknown key `{key}`: write it under `model.lkc`, as `model: {{lkc: {{{key}: ...}}}}`"
    )


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            single_job() | {"model": {"lkc": {"L": "1", "K": "2", "C": "1"}, "unit": "person"}},
            "{lkc: {unit: ...}}",
        ),
        (single_job() | {"model": {"requirements": [{"K": "2"}]}}, "{lkc: {requirements: [...]}}"),
        ({**single_job(), "relinkable": "false"}, "unknown key `relinkable`: leave it out"),
        (
            {**single_job(), "accept_exact_quasi_identifiers": "true"},
            "leave it out, since `quasi: exact` says",
        ),
        (
            {**single_job(), "model": {"lkc": {"requirements": [{"K": "2"}], "K": "2"}}},
            "each of these has its own",
        ),
    ],
)
def test_other_keys_of_earlier_versions(fields: dict[str, Any], says: str) -> None:
    assert says in told(fields)


def test_no_key_of_a_job_is_said_to_have_moved() -> None:
    assert not {*single_job(), *dp_single(), *wards_job()} & INSTEAD.keys()
