"""Job files with their taxonomy files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.placed import placed
from tests.support.samples import columns

FILED = columns(job={"role": "qid", "taxonomy": "job.csv"})
JOB_CSV = "Janitor;Blue;Any\nMover;Blue;Any\nLawyer;White;Any\n"


def job_file(folder: Path, fields: dict[str, Any], files: dict[str, str] | None = None) -> Path:
    path = folder / "job.yaml"
    path.write_text(json.dumps(placed(fields)))
    for name, text in (files or {}).items():
        (folder / name).write_text(text)
    return path
