"""The shared jobs of the figures (../shared/jobs), made into a cache folder; benchmarks report missing jobs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
OUT = ROOT / "out" / "bench"


class SharedDataAbsent(SystemExit):
    """../shared is not beside the project: nothing to measure."""


def shared_job(kind: str, *options: str) -> Path:
    """Make a job with its tables; return the folder. Jobs are kept between runs, as large jobs take a minute."""
    script = SHARED / "jobs" / "make_jobs.py"
    if not script.exists():
        raise SharedDataAbsent("these benchmarks need ../shared (data and jobs), which is not here")
    name = hashlib.sha256(" ".join([kind, *options]).encode() + script.read_bytes()).hexdigest()[:16]
    folder = OUT / "jobs" / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=folder.parent))
        subprocess.run(
            [sys.executable, str(script), kind, str(work), *options], check=True, stdout=subprocess.DEVNULL
        )
        shutil.move(work, folder)
    return folder
