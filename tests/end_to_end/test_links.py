"""`link` in top-down jobs between real daemons: the blocks of one holder of all rows, signed and verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.loading import load_task
from jobs.release.csv import REPORT, TABLE
from tests.support import jobs
from tests.support.blocks import (
    COLUMNS,
    SENSITIVE,
    block_by_block,
    counts_of,
    job_of,
    read,
    released,
    rows_of,
)
from tests.support.commands import invoke
from tests.support.network import write_job
from tests.support.samples import PARTIES, joint_job

QID = ["age", "job"]
LIMITED = {**COLUMNS, "end": {**COLUMNS["end"], "at_most": "1"}}
SAID = {"link": [["disease", "treatment"]], "method": None, "goal": "general", "columns": LIMITED}


@pytest.mark.more
def test_parties_make_the_blocks_of_one_holder(tmp_path: Path) -> None:
    """C of all columns, and `ruled_out` block by block."""
    rows, asked = rows_of(160, 5), {"C": "0.9", "ruled_out": "1"}
    alone = job_of(asked, **SAID)
    fields = {key: value for key, value in alone.items() if key not in ("partition", "data")}
    joint = write_job(tmp_path / "joint", joint_job(**fields, disclosure="sealed"))
    given = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', rows[i::3])}"
        for i, name in enumerate(PARTIES)
    ]
    ran = invoke("coordinator", "simulate", joint, *given, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    (tmp_path / "single").mkdir()
    with block_by_block():
        task, single = released(tmp_path / "single", alone, rows)
    tables = [read(task, folder, TABLE) for folder in (tmp_path / "out", single)]
    for block in (["paid"], ["disease", "treatment"], ["end"]):
        assert counts_of(tables[0], QID, block) == counts_of(tables[1], QID, block)
    assert counts_of(tables[0], QID, list(SENSITIVE)) != counts_of(tables[1], QID, list(SENSITIVE))
    reports = [json.loads((folder / REPORT).read_text()) for folder in (tmp_path / "out", single)]
    assert reports[0]["cut"] == reports[1]["cut"]
    assert len(reports[0]["specializations"]) > 1
    checked = invoke("coordinator", "verify", joint, tmp_path / "out")
    assert (checked.code, checked.err) == (0, "")
    assert "not verified" not in checked.out
    assert f": {TABLE}, byte for byte" in checked.out
    assert load_task(joint).job.lkc.link is not None
