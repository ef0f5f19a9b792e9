"""The systemd unit of a party: valid, and with little to attack."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[2] / "deploy" / "jointcut-party.service"
MOST_EXPOSED = 2.0
"""Of 10, as `systemd-analyze security` counts."""
ANALYZE = shutil.which("systemd-analyze")

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed here")


def analyzed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    assert ANALYZE is not None
    return subprocess.run([ANALYZE, *map(str, arguments)], capture_output=True, text=True)


@needs_systemd
def test_the_unit_is_valid(tmp_path: Path) -> None:
    here = tmp_path / UNIT.name
    here.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text(), flags=re.MULTILINE))
    ran = analyzed("verify", here)
    assert (ran.returncode, ran.stderr) == (0, "")


@needs_systemd
def test_the_unit_exposes_little() -> None:
    ran = analyzed("security", "--offline=true", UNIT)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", ran.stdout)
    assert found is not None, ran.stderr
    assert float(found[1]) <= MOST_EXPOSED


def test_no_core_is_written() -> None:
    assert "\nLimitCORE=0\n" in UNIT.read_text()
