"""`requirement.largest_share` names every column with a C below 1."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.commands import invoke
from tests.support.network import write_job


def test_a_column_without_a_protected_record_is_named(tmp_path: Path) -> None:
    fields = {
        "version": "1",
        "name": "share",
        "partition": "single",
        "data": "t.csv",
        "model": {"sequences": {"L": "1", "K": "2", "C": "1/2"}},
        "columns": {
            "codes": {"role": "items", "domain": ["u", "v"]},
            "dx": {"role": "sensitive", "domain": ["flu", "HIV"], "values": ["HIV"]},
            "ward": {"role": "sensitive", "domain": ["a"], "C": "1"},
        },
    }
    job = write_job(tmp_path, fields)
    (tmp_path / "t.csv").write_text("codes,dx,ward\nu,flu,a\nu;v,flu,a\nv,flu,a\n")
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["requirement"]["largest_share"] == {"dx": 0.0}
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0
