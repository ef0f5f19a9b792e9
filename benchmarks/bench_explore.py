"""Measures `coordinator explore`: 24 requirements on Adult, from the command line to the figures.

`make bench AREA=lkc`.

The reference is the sum of the runs without a shared pass 1: a process `coordinator run` for one of the requirements,
times 24. Other work on the machine slows processes down, so CPU seconds stand beside the wall time.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from pathlib import Path

from benchmarks.shared_jobs import OUT, shared_job
from benchmarks.support import Process, Row, publish, run_process
from jointcut.launcher import command

_MANY, _SOME = "5,10,20,30,50,100,200,500", "5,10,20,50,100,200"
GRIDS = (
    ("goal classification, L=2, 3 and 4", ("--K", _MANY, "--L", "2,3,4")),
    ("goal general, L=2, 3 and 4", ("--K", _MANY, "--L", "2,3,4", "--goal", "general")),
    ("goal classification, L=1, 2, 4 and all", ("--K", _SOME, "--L", "1,2,4,all")),
    ("goal general, L=1, 2, 3 and 4", ("--K", _SOME, "--L", "1,2,3,4", "--goal", "general")),
)
"""Grids of 24 requirements. With L=1 the tables have up to 38,000 groups, and a run takes a second."""
_N, _TARGET_S = 24, 5
_RUNS = 3


def explored(job: Path, *arguments: str) -> Process:
    """Run the command."""
    return run_process([*command("coordinator"), "explore", str(job), "--files-anywhere", *arguments])


def grid_rows(job: Path) -> list[Row]:
    alone = _one_run(job)
    rows = []
    for name, arguments in GRIDS:
        runs = [explored(job, *arguments) for _ in range(_RUNS)]
        wall, cpu = (
            statistics.median(each) for each in zip(*((p.wall_s, p.cpu_s) for p in runs), strict=True)
        )
        anchor = f"{_N} runs of `coordinator run`, {alone.wall_s:.2f} s each: {_N * alone.wall_s:.0f} s"
        detail = {"cpu_s": cpu, "peak_mb": max(p.peak_mb for p in runs)}
        why = f"{cpu:.1f} CPU s in {os.cpu_count()} processes"
        rows.append(
            Row(
                f"Adult, {_N} requirements, {name}",
                wall,
                "s",
                _TARGET_S,
                anchor=anchor,
                detail=detail,
                why=why,
            )
        )
        rows.append(Row(f"Adult, {_N} requirements, {name}: CPU", cpu, "CPU s"))
    return rows


def _one_run(job: Path) -> Process:
    out = OUT / "explore"
    shutil.rmtree(out, ignore_errors=True)
    return run_process([*command("coordinator"), "run", str(job), "--files-anywhere", "--out", str(out)])


def suggest_rows(job: Path) -> list[Row]:
    """Measure all single changes of a job; three of them search for the rows to suppress."""
    run = explored(job, "--suggest")
    return [Row("Adult, L=4 K=50 C=0.2: --suggest", run.wall_s, "s", detail={"cpu_s": run.cpu_s})]


def main() -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  progress lines of the runs
    job = shared_job("adult", "L=4", "K=50", "C=0.2") / "job.yaml"
    publish(
        "Exploring requirements", [*grid_rows(job), *suggest_rows(job)], OUT.parent / "bench-explore.json"
    )


if __name__ == "__main__":
    main()
