"""The ward example: what its generator writes, its job, and the three configurations beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import examples.wards.generate as generator
from jobs.loading import load_task
from jobs.owner.objections import check_policy
from party.owner.config import PartyConfig, load_config
from tests.support.ward_stays import HOSPITALS, WARDS


def test_the_tables_are_what_the_generator_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "HERE", tmp_path)
    generator.main()
    for name in HOSPITALS:
        assert (tmp_path / f"{name}.csv").read_bytes() == (WARDS / f"{name}.csv").read_bytes()


@pytest.mark.parametrize("name", HOSPITALS)
def test_policies_allow_the_job_and_not_more(name: str) -> None:
    config = load_config(PartyConfig, WARDS / f"{name}.yaml")
    task = load_task(WARDS / "job.yaml")
    check_policy(config.policy, task, name, "coordinator")
    asked = task.job.model.sequences
    assert config.name == name
    assert set(config.policy.columns) == set(task.job.columns)
    assert (config.policy.min_l, config.policy.min_k, config.policy.max_c) == (asked.L, asked.K, asked.C)
    for other in set(HOSPITALS) - {name}:
        assert config.peers[other].address == task.job.parties[other].address
