"""The rows of modes: one for each list of reveals, and one for each job that can be written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from anonymize.joint.disclosure import ALLOWED
from crypto.errors import LocalProtocolError
from jobs.errors import ConfigError
from jobs.loading import MODELS, decode_task, parse_job
from jobs.partitions import PARTITIONS
from jobs.release.report import joint_fields
from tests.support import jobs
from tests.support.dp_jobs import dp_joint, dp_single
from tests.support.modes import MODES
from tests.support.samples import joint_job, single_job, vertical_job
from tests.support.synthetic_jobs import synthetic_joint, synthetic_single
from tests.support.wards import joint_wards_job, wards_job

JOINT = [mode for mode in MODES if mode.partition != "single"]
KD: Any = {"method": "kd", "goal": "general"}
JOBS: dict[str, dict[str, Any]] = {
    "lkc/single": single_job(),
    "lkc/single/kd": single_job(**KD),
    "dp/single": dp_single(),
    "sequences/single": wards_job(),
    "horizontal/sealed": joint_job(disclosure="sealed"),
    "horizontal/leader": joint_job(),
    "horizontal/strict": joint_job(disclosure="strict"),
    "horizontal/sealed/kd": joint_job(disclosure="sealed", **KD),
    "sequences/horizontal/sealed": joint_wards_job(),
    "vertical/sealed": vertical_job(),
    "vertical/leader": vertical_job(disclosure="leader"),
    "dp/horizontal/circuit": dp_joint("horizontal"),
    "dp/horizontal/thesis": dp_joint("horizontal", {"engine": "thesis"}),
    "dp/vertical/circuit": dp_joint("vertical"),
    "dp/vertical/thesis": dp_joint("vertical", {"engine": "thesis"}),
    "dp/single/synthetic": synthetic_single(),
    "dp/horizontal/synthetic": synthetic_joint("horizontal"),
    "dp/vertical/synthetic": synthetic_joint("vertical"),
}


def test_every_joint_row_has_a_list_of_reveals_and_every_list_a_row() -> None:
    assert Counter(mode.name for mode in JOINT) == Counter(ALLOWED.keys())
    assert all(mode.reveals == ALLOWED[mode.name] for mode in JOINT)


def test_rows_are_of_models_and_partitions_that_there_are() -> None:
    assert {mode.model for mode in MODES} == set(MODELS)
    assert {mode.partition for mode in MODES} == set(PARTITIONS)
    assert len({(mode.model, mode.partition, mode.level) for mode in MODES}) == len(MODES)


@pytest.mark.parametrize("name", list(JOBS))
def test_a_job_finds_its_row(name: str) -> None:
    task = jobs.task_of(JOBS[name])
    assert task.mode.name == name
    assert (task.mode.model, task.mode.partition) == (task.model.name, task.partition.name)


def test_jobs_of_all_rows_are_tested() -> None:
    assert set(JOBS) == {mode.name for mode in MODES}


@pytest.mark.parametrize("name", ["vertical/leader", "dp/vertical/thesis"])
def test_a_level_that_another_partition_alone_has_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A level of one partition is a word that every job file may say."""
    encoded = jobs.bundle_of(JOBS[name]).encoded
    (found,) = (mode for mode in MODES if mode.name == name)
    of_model = import_module(f"jobs.{found.model}.modes")
    monkeypatch.setattr(of_model, "MODES", tuple(mode for mode in of_model.MODES if mode.name != name))
    partition, level = name.split("/")[-2:]
    left = {"leader": "sealed", "thesis": "circuit"}[level]
    for read in (lambda: parse_job(JOBS[name], "job"), lambda: decode_task(encoded)):
        with pytest.raises(
            ConfigError, match=f"a {partition} .* has no level `{level}`: say {left}$"
        ) as caught:
            read()
        assert caught.value.problem.error_id == "job-invalid"


@pytest.mark.parametrize("name", [mode.name for mode in JOINT])
def test_reports_name_the_deputy_where_it_computes_whatever_the_level_is_called(name: str) -> None:
    task = jobs.task_of(JOBS[name])
    renamed = replace(task.bundle, job=task.job.model_copy(update={"disclosure": "other"}))
    other = replace(task, bundle=renamed, mode=replace(task.mode, level="other"))
    assert {"deputy" in joint_fields(t) for t in (task, other)} == {not name.endswith("/leader")}


@pytest.mark.parametrize("name", [name for name in JOBS if "single" in name.split("/")])
def test_a_single_holder_runs_no_protocol(name: str) -> None:
    task = jobs.task_of(JOBS[name])
    assert task.mode.reveals == ()
    with pytest.raises(LocalProtocolError, match="single holder"):
        task.mode.run(task, "me", None, None, None)  # type: ignore[arg-type]
