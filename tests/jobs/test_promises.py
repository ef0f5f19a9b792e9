"""What a requirement promises, in sentences, before a job runs: every model says it in its reports' words."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.loading import load_task
from tests.support.dp_jobs import dp_joint
from tests.support.installing import ROOT
from tests.support.jobs import task_of
from tests.support.samples import joint_job
from tests.support.synthetic_jobs import synthetic_joint


def promised(fields: dict[str, Any]) -> list[str]:
    task = task_of(fields)
    return task.model.promise(task)


def test_of_groups() -> None:
    assert promised(joint_job()) == [
        "every group of records that are alike in at most L=2 of the quasi-identifiers: at least K=2 records, and no "
        "protected value above its C"
    ]


@pytest.mark.parametrize(("epsilon", "factor"), [("1", "2.72"), ("0.5", "1.65")])
def test_of_epsilon(epsilon: str, factor: str) -> None:
    (said,) = promised(dp_joint("horizontal", {"epsilon": epsilon}))
    assert said.startswith(f"ε = {epsilon}: whatever else is known, adding or removing one record")
    assert f"no release more than {factor} times as likely" in said
    assert said.endswith("up to the δ that the report states")


def test_of_synthetic_tables() -> None:
    (said,) = promised(synthetic_joint("horizontal"))
    assert "whatever else is known" in said


def test_of_sequences() -> None:
    task = load_task(ROOT / "examples" / "wards" / "job.yaml")
    (said,) = task.model.promise(task)
    assert said.startswith("every set of at most L=")
    assert " in the released table is in at least K=" in said
