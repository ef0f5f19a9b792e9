"""The jobs that figures mean, made by ../shared/jobs/make_jobs.py: job file and tables in a folder."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.shared import shared


@functools.cache
def shared_job(kind: str, *options: str) -> Path:
    """Make a job; return its folder, which lives as long as this process."""
    script = shared("jobs/make_jobs.py")
    folder = _Folder(prefix=f"{kind}-")
    command = [sys.executable, str(script), kind, folder.name, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    _kept.append(folder)
    return Path(folder.name)


_Folder = tempfile.TemporaryDirectory[str]
_kept: list[_Folder] = []
