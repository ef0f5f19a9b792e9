"""Inputs that people bring (../shared/cases), and what comes of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from jobs.release_csv import read_csv
from jobs.synthetic.settings import SYNTHETIC_TABLE
from tests.support.commands import invoke
from tests.support.shared import shared


def case(tmp_path: Path, name: str, changes: dict[str, str]) -> Path:
    """A copy of a folder, its job changed as its owner would change it."""
    folder = tmp_path / "case"
    shutil.copytree(shared(f"cases/{name}"), folder)
    job = folder / "job.yaml"
    text = job.read_text()
    for old, new in changes.items():
        assert text.count(old) >= 1
        text = text.replace(old, new)
    job.write_text(text)
    return folder


def test_flags_that_are_never_missing(tmp_path: Path) -> None:
    """Folder 12, as its owner would say it: no row has `?`."""
    said = {"[0, 1]}}": "[0, 1]}, missing: never}", "[0, 1]}\n": "[0, 1], missing: never}\n"}
    folder = case(tmp_path, "12-synthetic-invented-missing", said)
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    table = read_csv((folder / "out" / SYNTHETIC_TABLE).read_bytes(), ("a", "b", "c"), SYNTHETIC_TABLE)
    assert {label for column in table.columns.values() for label in column.labels} <= {"0", "1"}
