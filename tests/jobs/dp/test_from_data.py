"""`from_data`: a DP job with domains from its table does not run until its owner has confirmed the domains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError
from jobs.file.bundle import Bundle
from jobs.loading import parse_job, read_task
from tests.support import jobs
from tests.support.commands import invoke, listing
from tests.support.job_files import job_file


def fields(**more: Any) -> dict[str, Any]:
    city = {"role": "qid", "taxonomy": {"*": ["Bonn", "Lyon"]}, **more}
    return {
        "version": "1",
        "name": "drafted",
        "partition": "single",
        "data": "table.csv",
        "goal": "general",
        "model": {"dp": {"method": "synthetic", "epsilon": "1"}},
        "columns": {"city": city, "age": {"role": "qid", "numeric": {"min": "0", "max": "9", "step": "3"}}},
    }


def test_a_run_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    job = job_file(tmp_path, fields(from_data="true"))
    jobs.write_csv(tmp_path / "table.csv", [{"city": "Bonn", "age": "4"}] * 50)
    assert invoke("coordinator", "validate", job).code == 0
    before = listing(tmp_path)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out", "--format", "json")
    assert ran.code == 2
    assert ran.problem["error"] == "job-invalid"
    assert "the domain of city was taken from the table" in ran.problem["message"]
    assert "from_data: confirmed" in ran.problem["remedy"]
    assert listing(tmp_path) == before


def test_a_confirmed_domain_is_like_any_other(tmp_path: Path) -> None:
    job = job_file(tmp_path, fields(from_data="confirmed"))
    jobs.write_csv(tmp_path / "table.csv", [{"city": "Bonn", "age": "4"}] * 50)
    assert invoke("coordinator", "run", job, "--out", tmp_path / "out").code == 0
    confirmed = parse_job(fields(from_data="confirmed"), "job.yaml")
    assert confirmed.canonical() == parse_job(fields(), "job.yaml").canonical()


def test_simulations_and_parties_refuse_such_a_job(tmp_path: Path) -> None:
    joint = {key: value for key, value in fields(from_data="true").items() if key != "data"}
    joint |= {"partition": "horizontal", "parties": {"a": {}, "b": {}}}
    job = job_file(tmp_path, joint)
    ran = invoke("coordinator", "simulate", job, "--in-process", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "was taken from the table" in ran.err
    with pytest.raises(ConfigError, match="was taken from the table"):
        read_task(Bundle(parse_job(joint, "job.yaml"), {}).encoded)


def test_other_texts_and_other_models_are_refused() -> None:
    with pytest.raises(ConfigError, match="write `true`, or `confirmed`"):
        parse_job(fields(from_data="no"), "job.yaml")
    lkc = {**fields(from_data="true"), "model": {"lkc": {"L": "1", "K": "2"}}}
    with pytest.raises(ConfigError, match=r"columns\.city\.from_data is for DP jobs"):
        parse_job(lkc, "job.yaml")
