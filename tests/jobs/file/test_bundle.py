"""The bundle: one canonical form, one hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.loading import load_task
from tests.support.job_files import FILED, JOB_CSV, job_file
from tests.support.samples import columns, joint_job

ROOT = Path(__file__).resolve().parents[3]


def test_the_job_hash_of_the_example_is_what_it_was() -> None:
    """It binds policies and approvals: a change of the canonical form must be noticed."""
    example = load_task(ROOT / "tests" / "fixtures" / "patients" / "job.yaml").bundle
    assert json.loads(example.encoded)["job"]["model"] == {
        "lkc": {"L": 2, "K": 2, "C": "1/2", "method": "top-down", "score": "infogain"}
    }
    assert example.digest.hex() == "08ce491b1daba6040236129a9f3337854a5559d1b5c107a13eed4cc50b61b098"


def test_the_hash_does_not_depend_on_how_the_job_is_written(tmp_path: Path) -> None:
    one = job_file(tmp_path, joint_job(columns=FILED), {"job.csv": JOB_CSV})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = elsewhere / "job.yaml"
    moved = columns(job={"role": "qid", "taxonomy": "trees/job.csv"})
    text = json.dumps(joint_job(columns=moved), indent=2).replace('"0.5"', "50/100  # the same")
    other.write_text(text)
    (elsewhere / "trees").mkdir()
    (elsewhere / "trees" / "job.csv").write_bytes(JOB_CSV.replace("\n", "\r\n").encode())
    assert load_task(one).digest == load_task(other).digest


@pytest.mark.parametrize(
    ("fields", "files"),
    [
        (joint_job(columns=FILED, name="other"), {"job.csv": JOB_CSV}),
        (joint_job(columns=FILED, model={"lkc": {"L": "2", "K": "3", "C": "0.5"}}), {"job.csv": JOB_CSV}),
        (joint_job(columns=FILED, leader="hospital-b"), {"job.csv": JOB_CSV}),
        (joint_job(columns=FILED), {"job.csv": JOB_CSV + "Doctor;White;Any\n"}),
    ],
)
def test_the_hash_binds_the_job_and_the_taxonomy_files(
    tmp_path: Path, fields: dict[str, Any], files: dict[str, str]
) -> None:
    (tmp_path / "a").mkdir()
    base = load_task(job_file(tmp_path / "a", joint_job(columns=FILED), {"job.csv": JOB_CSV})).bundle
    other = tmp_path / "b"
    other.mkdir()
    (other / "job.yaml").write_text(json.dumps(fields))
    for name, text in files.items():
        (other / name).write_bytes(text.encode())
    assert load_task(other / "job.yaml").digest != base.digest


@pytest.mark.parametrize(
    ("job", "digest"),
    [
        ("loan/dp", "0fb7d934c0b3dc71a95cc32dab0218fc5fb942acb9794b7c6a1dcfd44edea099"),
        ("loan/job", "2a707ad7d5bf3f963cdf25e56c1b7e6112ee67664d079d38caab8e648bbbce88"),
        ("transfusion/dp", "a5b2d2e997f1e5c6d41fb71ff2799b4445bcfba934b54e1c0dc013c144ae2118"),
        ("transfusion/job", "7b1eda050754aa0599427798cc7c6ec7937ecbdc033d9941449762cce603aea4"),
        ("wards/job", "2638de638b2b8d2bc41c756afc043e738ea801cf1bd6e524bf63581f375f76da"),
    ],
)
def test_hashes_of_existing_jobs_stay(job: str, digest: str) -> None:
    """A key that becomes optional, or a new one, changes nothing for jobs that were written before."""
    path = Path(__file__).resolve().parents[3] / "examples" / f"{job}.yaml"
    assert load_task(path).digest.hex() == digest
