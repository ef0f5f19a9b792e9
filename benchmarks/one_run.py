"""A job, run by the sources named by PYTHONPATH; prints a line of JSON. For :mod:`benchmarks.before_after`.

    python -P one_run.py JOB_FOLDER RUNS ROUND_TRIP_MS MBIT_S        0 0: no relay

The module uses only features common to both states of the project. Single holder: seconds of a whole process.
Several: wall seconds from submit to delivered with running daemons (the median of RUNS after a first run; RUNS 0:
of the first run), CPU seconds of all processes of a run on average, their start and the first run included.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.wide_area import relayed
from coordinator.run import run_joint
from coordinator.simulate import CONFIG, directly, parties_on_loopback, sources_of
from jobs.loading import load_task
from jointcut.launcher import command


def cpu_s() -> float:
    """Return the CPU seconds of this process and its ended child processes."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def alone(folder: Path, runs: int, out: Path) -> dict[str, float]:
    """Run whole processes in turn."""
    walls, cpus = [], []
    for _ in range(runs):
        shutil.rmtree(out, ignore_errors=True)
        start, before = time.perf_counter(), cpu_s()
        run = [*command("coordinator"), "run", str(folder / "job.yaml"), "--out", str(out)]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        walls.append(time.perf_counter() - start)
        cpus.append(cpu_s() - before)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"wall s": statistics.median(walls), "CPU s": statistics.median(cpus), "peak MiB": peak}


def jointly(folder: Path, runs: int, out: Path, round_trip_ms: float, mbit_s: float) -> dict[str, float]:
    """Run all jobs on the same daemons. Each has a name of its own: a job that ran before gets its release again."""
    tasks = [load_task(folder / "job.yaml", {"name": f"run-{i}"}) for i in range(runs + 1)]
    roster = tasks[0].job.roster
    sources = sources_of(tasks[0], {party: folder / f"{party}.csv" for party in roster})
    line = partial(relayed, round_trip_ms=round_trip_ms, mbit_s=mbit_s) if mbit_s else directly
    walls, before = [], cpu_s()
    with parties_on_loopback(tasks[0], sources, line) as config:
        for party in roster:
            _allow(config.peers[party].certificate.parent.parent / CONFIG, len(tasks))
        for task in tasks:
            shutil.rmtree(out, ignore_errors=True)
            start = time.perf_counter()
            run_joint(task, config, out)
            walls.append(time.perf_counter() - start)
    cpu = (cpu_s() - before) / (runs + 1)
    report = json.loads((out / "report.json").read_text())
    return {"wall s": statistics.median(walls[1:] or walls), "CPU s": cpu, **costs(report)}


def _allow(path: Path, releases: int) -> None:
    """Let the policy of a party allow more releases. A daemon reads its policy for each job."""
    fields = yaml.safe_load(path.read_text())
    fields["policy"]["max_lkc_releases"] = releases
    path.write_text(yaml.safe_dump(fields, sort_keys=False))


def costs(report: dict[str, Any]) -> dict[str, float]:
    """Return the traffic and gates of the first party in a report."""
    first = next(iter(report["cost"]["parties"].values()))
    links, phases = first["links"].values(), first["phases"].values()
    return {
        "MB sent": sum(link["bytes_sent"] for link in links) / 1e6,
        "M AND": sum(phase["gates"] for phase in phases) / 1e6,
        "rounds": sum(phase["rounds"] for phase in phases),
    }


def main() -> None:
    folder, runs = Path(sys.argv[1]), int(sys.argv[2])
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  progress lines of the runs
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        if load_task(folder / "job.yaml").job.partition == "single":
            found = alone(folder, runs, out)
        else:
            found = jointly(folder, runs, out, float(sys.argv[3]), float(sys.argv[4]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
