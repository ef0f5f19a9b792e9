"""`verify` of a kd table whose protected values stand in the job, and whose domain does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Exit
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.network import write_job
from tests.support.samples import single_job

AGES = [{"age": str(20 + i), "diagnosis": "HIV" if i % 4 == 0 else ("flu", "cold")[i % 2]} for i in range(40)]


def job_of(**changes: Any) -> dict[str, Any]:
    columns = {
        "age": {"role": "qid", "numeric": {"min": "20", "max": "60", "step": "1"}},
        "diagnosis": {"role": "sensitive", "values": ["HIV"]},
    }
    lkc = {"lkc": {"L": "all", "K": "5", "C": "0.6"}}
    return single_job(**{"method": "kd", "goal": "general", "model": lkc, "columns": columns} | changes)


@pytest.mark.parametrize("split", [None, "median"])
def test_a_genuine_table_is_verified_and_another_is_not(tmp_path: Path, split: str | None) -> None:
    job = write_job(tmp_path, job_of(split=split))
    jobs.write_csv(tmp_path / "table.csv", AGES)
    assert invoke("coordinator", "run", job, "--out", tmp_path / "out").code == 0
    ran = invoke("coordinator", "verify", job, tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "40 rows" in ran.out
    table = tmp_path / "out" / "anonymized.csv"
    header, *rows = table.read_text().splitlines()
    group = rows[0].rpartition(",")[0]
    bent = [f"{group},HIV" if row.startswith(group) else row for row in rows]
    table.write_text("\n".join([header, *bent]) + "\n")
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == Exit.FAILED
    assert invoke("coordinator", "verify", job, table).code == Exit.FAILED


@pytest.mark.parametrize("method", ["kd", "top-down"])
def test_a_value_of_rows_that_were_left_out_is_published_nowhere(tmp_path: Path, method: str) -> None:
    """The row without an age has the only case of its diagnosis."""
    columns = job_of()["columns"] | {"diagnosis": {"role": "sensitive"}}
    job = write_job(tmp_path, job_of(method=method, columns=columns))
    jobs.write_csv(tmp_path / "table.csv", [*AGES, {"age": "", "diagnosis": "plague"}])
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert all("plague" not in path.read_text() for path in (tmp_path / "out").iterdir())
    ran = invoke("coordinator", "verify", job, tmp_path / "out")
    assert ran.code == 0, ran.err
