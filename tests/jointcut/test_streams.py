"""Programs that begin with closed standard streams, as some schedulers start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jointcut import isolated
from jointcut.launcher import command
from tests.support.bare import bare

ROOT = Path(isolated.__file__).resolve().parent.parent
OPENS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from jointcut.isolated import hold_streams
hold_streams()
with open(sys.argv[2], "wb") as ledger:
    os.write(1, b"of a library")
    os.write(2, b"of a library")
    assert os.read(0, 10) == b""
    print("ours")
    print("ours", file=sys.stderr)
    ledger.write(b"%d" % ledger.fileno())
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_takes_the_place_of_a_closed_stream(closed: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    words = [sys.executable, "-c", OPENS, str(ROOT), str(ledger)]
    shell = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *words]
    with open(os.devnull) as nothing:
        ran = subprocess.run(shell, env=bare(), stdin=nothing, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    assert int(ledger.read_bytes()) > 2


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_works_without_streams(closed: str, tmp_path: Path) -> None:
    """`coordinator run` showed its progress on a stream that was not there, and failed."""
    job = tmp_path / "job.yaml"
    (tmp_path / "people.csv").write_text("age,job\n" + "".join(f"{20 + i % 9},a\n" for i in range(40)))
    job.write_text(
        "version: 1\nname: people\npartition: single\nmodel: {lkc: {L: 1, K: 2}}\ngoal: general\ndata: people.csv\n"
        "columns:\n  age: {role: qid, numeric: {min: 0, max: 100, step: 10}}\n  job: {role: qid, suppress: [a]}\n"
    )
    shell = [
        "/bin/sh",
        "-c",
        f'exec "$@" {closed}',
        "sh",
        *command("coordinator"),
        "run",
        str(job),
        "--out",
        "made",
    ]
    ran = subprocess.run(shell, cwd=tmp_path, env=bare(), stdin=subprocess.DEVNULL, capture_output=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "made" / "anonymized.csv").exists()
