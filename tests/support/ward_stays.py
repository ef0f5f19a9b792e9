"""The ward example, also as one hospital would run it alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.support.commands import invoke

WARDS = Path(__file__).resolve().parents[2] / "examples" / "wards"
HOSPITALS = ("hospital-a", "hospital-b", "hospital-c")


def job_alone(name: str = "hospital-a", **sequences: str) -> dict[str, Any]:
    """Its job for one hospital, with some settings replaced."""
    fields = yaml.load((WARDS / "job.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506  text only
    for key in ("parties", "leader", "deputy"):
        del fields[key]
    fields["model"]["sequences"] |= sequences
    return fields | {"partition": "single", "data": str(WARDS / f"{name}.csv")}


def wards_alone(folder: Path, **sequences: str) -> Path:
    """Run that job; return the folder of the release."""
    folder.mkdir()
    job = folder / "job.yaml"
    job.write_text(yaml.safe_dump(job_alone(**sequences), sort_keys=False))
    done = invoke("coordinator", "run", job, "--out", folder / "out")
    assert done.code == 0, done.err
    return folder / "out"
