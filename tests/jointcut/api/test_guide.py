"""Blocks of the guide for Python work, one after the other, in the folder that the guide names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import invoke

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "guide" / "python.md").read_text("utf-8")


def test_the_guide_for_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shutil.copytree(ROOT / "examples" / "discharges", tmp_path / "discharges"))
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for number, block in enumerate(blocks):
        exec(compile(block, f"guide, block {number}", "exec"), names)  # noqa: S102  our own page
    assert len(blocks) > 5
    assert names["same"] == names["job"]
    assert len(names["result"].table) == len(names["shared"].table) == len(names["table"])
    assert capsys.readouterr().out.splitlines()[-1].startswith("data-missing-column age ")
    assert (names["spent"].charged, names["spent"].runs) == (1, 1)
    assert invoke("coordinator", "budget", "synthetic.yaml").out == f"{names['spent']}\n"
