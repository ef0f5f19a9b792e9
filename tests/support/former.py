"""An earlier state of this program, out of git, beside the present one."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from jointcut import launcher

ROOT = Path(__file__).resolve().parents[2]

LAST_OF: dict[int, str] = {0: "2b8f1918"}
"""By protocol, a state of the program whose newest protocol it is."""


def former(protocol: int, folder: Path) -> Path:
    """Write the state whose newest protocol this is into a folder. Skips the test where git does not have it."""
    revision = LAST_OF[protocol]
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", revision],  # noqa: S607
        capture_output=True,
        check=False,
    )
    if packed.returncode:
        pytest.skip(f"this copy of the project has no history: {revision} is not there")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def command_of(state: Path, program: str) -> list[str]:
    """The command that starts a program of this state."""
    *python, _, name = launcher.command(program)
    return [*python, str(state / "jointcut" / "isolated.py"), name]
