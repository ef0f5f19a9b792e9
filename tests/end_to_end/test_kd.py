"""`method: kd` between real daemons: the table of one holder of all rows, signed and verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.loading import load_task
from jobs.release_csv import REPORT, TABLE, read_csv
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job, single_job

KD = {"method": "kd", "goal": "general", "model": {"lkc": {"L": "all", "K": "3", "C": "0.5"}}}


@pytest.mark.parametrize("n", [2, 3])
def test_daemons_make_the_table_of_one_holder(tmp_path: Path, n: int) -> None:
    rows = sample_rows(90)
    parties = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate(PARTIES[:n])}
    joint = write_job(tmp_path / "joint", joint_job(**KD, disclosure="sealed", parties=parties))
    given = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', rows[i::n], COLUMNS)}"
        for i, name in enumerate(PARTIES[:n])
    ]
    ran = invoke("coordinator", "simulate", joint, *given, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    single = write_job(tmp_path / "single", single_job(**KD))
    jobs.write_csv(tmp_path / "single" / "table.csv", rows, COLUMNS)
    assert invoke("coordinator", "run", single, "--out", tmp_path / "alone").code == 0
    published = load_task(joint).job.published
    tables = [jobs.multiset(read_csv(tmp_path / out / TABLE, published)) for out in ("out", "alone")]
    assert tables[0] == tables[1]
    reports = [json.loads((tmp_path / out / REPORT).read_text()) for out in ("out", "alone")]
    assert reports[0]["cuts"] == reports[1]["cuts"]
    assert reports[0]["metrics"] == reports[1]["metrics"]
    listed = {each["name"] for each in reports[0]["revealed_by_design"]}
    assert {each["name"] for each in reports[0]["reveals"]} <= listed
    checked = invoke("coordinator", "verify", joint, tmp_path / "out")
    assert (checked.code, checked.err) == (0, "")
    assert "signed by all parties" in checked.out
