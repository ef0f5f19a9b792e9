"""LKC-privacy: single holder from CSV to CSV, and joint runs over loopback. `make bench AREA=lkc`.

Whole processes are timed from outside, by the system's own accounting of each finished one; the parts come
from the report the run wrote. The reference is pyarrow reading and writing the same file in the same run.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import yaml

from benchmarks.score_costs import memory_rows, sealed_rows
from benchmarks.shared_jobs import OUT, shared_job
from benchmarks.support import Process, Row, median_s, publish, run_process
from benchmarks.wide_area import relayed
from coordinator.run import run_joint
from coordinator.simulate import CONFIG, Between, directly, own_accounts, parties_on_loopback, sources_of
from jobs.loading import load_task
from jointcut.launcher import command
from party.owner.config import CoordinatorConfig

SINGLE = (
    ("Adult 45 k, L=4 K=50 C=0.2", ("L=4", "K=50", "C=0.2"), 5),
    ("1 M rows, L=4 K=20 C=1", ("rows=1000000", "L=4", "K=20", "C=1"), 3),
    ("1 M rows, L=2 K=20 C=1", ("rows=1000000", "L=2", "K=20", "C=1"), 3),
)


def start_rows() -> list[Row]:
    """Measure a command that does next to nothing."""
    job = str(shared_job("adult", *SINGLE[0][1]) / "job.yaml")
    calls: dict[str, tuple[float | None, list[str]]] = {
        "--help": (0.12, ["--help"]),
        "--version": (None, ["--version"]),
        "validate": (None, ["validate", job]),
    }
    rows = []
    for name, (target, arguments) in calls.items():
        runs = [run_process([*command("coordinator"), *arguments]) for _ in range(5)]
        seconds = statistics.median(run.cpu_s for run in runs)
        rows.append(Row(f"coordinator {name}", seconds, "CPU s", target, anchor="Python alone 0.02 to 0.03"))
    return rows


def single_rows() -> list[Row]:
    """Measure CSV to CSV, a single holder."""
    rows = []
    for name, options, runs in SINGLE:
        folder = shared_job("adult", *options)
        processes, parts = [], []
        for _ in range(runs):
            out = OUT / "single"
            shutil.rmtree(out, ignore_errors=True)
            job = str(folder / "job.yaml")
            processes.append(run_process([*command("coordinator"), "run", job, "--out", str(out)]))
            parts.append(json.loads((out / "report.json").read_text())["cost"]["seconds"])
        rows += _single_figures(name, processes, parts, _read_and_write(folder / "raw.csv"))
    return rows


def _single_figures(
    name: str, processes: list[Process], parts: list[dict[str, float]], reference: float
) -> list[Row]:
    wall = statistics.median(p.wall_s for p in processes)
    peak = max(p.peak_mb for p in processes)
    large = name.startswith("1 M")
    split = {part: statistics.median(p[part] for p in parts) for part in parts[0]}
    anonymize = split["anonymize"]
    return [
        Row(
            f"{name}: CSV to CSV, whole process, verified",
            wall,
            "s",
            5 if large else None,
            anchor=f"pyarrow read + write alone {reference:.2f} s; authors' C++ program "
            + ("12.8 s (L=2: > 300 s)" if large else "0.62 s"),
            detail=split,
        ),
        Row(
            f"{name}: of it anonymizing in memory",
            anonymize,
            "s",
            2 if large else None,
            anchor=", ".join(f"{part} {seconds:.2f}" for part, seconds in split.items()),
        ),
        Row(
            f"{name}: peak memory",
            peak,
            "MB",
            1024 if large else None,
            anchor="authors' program 859 MB, ARX 946 MB",
        ),
    ]


def _read_and_write(path: Path) -> float:
    """Time the reference: read the file as text columns and write the columns again."""

    def work() -> None:
        pyarrow.csv.write_csv(pyarrow.csv.read_csv(path), pa.BufferOutputStream())

    return median_s(work, runs=3, warmup=1)


JOINT = (
    ("L=4 K=50 C=0.2", ("L=4", "K=50", "C=0.2"), {"leader": 2, "sealed": 6}),
    ("L=2 K=20 C=1", ("L=2", "K=20", "C=1"), {"sealed": 15}),
)
WIDE_AREA = (20, 100)  # round trip in ms, Mbit/s


def joint_rows() -> list[Row]:
    """Measure parties with running daemons, over loopback with mutual TLS, from submit to delivered."""
    rows = []
    for job, options, targets in JOINT:
        for disclosure, parties in (
            ("leader", 3),
            ("leader", 5),
            ("sealed", 2),
            ("sealed", 3),
            ("sealed", 5),
            ("strict", 2),
            ("strict", 3),
            ("strict", 5),
        ):
            folder = shared_job("adult", f"parties={parties}", f"disclosure={disclosure}", *options)
            seconds, report = run_repeatedly(folder, runs=5)
            target = targets.get(disclosure) if parties < 5 else None
            name = f"{disclosure}, {parties} parties, {job}"
            rows.append(Row(name, seconds, "s", target, anchor=account(report), detail=report["cost"]))
    return rows


COLLUDERS = ((2, 1), (3, 2), (5, 2))
"""Number of parties, and the maximum number of colluders."""


def colluders_rows() -> list[Row]:
    """Measure jobs that also test the remainder after colluding parties; next to each the job without the test."""
    rows = []
    for parties, most in COLLUDERS:
        folder = shared_job("adult", f"parties={parties}", "disclosure=sealed", "L=4", "K=50", "C=0.2")
        for colluders in range(most + 1):
            job = _with_colluders(folder, colluders)
            before = _children_s()
            seconds, report = run_repeatedly(folder, runs=3, job=job)
            cpu = (_children_s() - before) / 4
            made = f"{len(report['specializations'])} specializations, {len(report['discarded'])} discarded"
            name = f"sealed, {parties} parties, L=4 K=50 C=0.2, colluders {colluders}"
            tests = report["cost"]["parties"][report["leader"]]["phases"]["validity"]["gates"]
            anchor = (
                f"{made}; {cpu:.1f} CPU s of all parties, starting included; "
                f"tests of validity {tests / 1e3:.0f} k AND; {account(report)}"
            )
            rows.append(Row(name, seconds, "s", anchor=anchor, detail=report["cost"]))
    return rows


def _with_colluders(folder: Path, colluders: int) -> str:
    """Return the name of a job file in the folder with ``colluders`` colluders."""
    fields = yaml.safe_load((folder / "job.yaml").read_text())
    fields["model"]["lkc"]["colluders"] = colluders
    name = f"colluders-{colluders}.yaml"
    (folder / name).write_text(yaml.safe_dump(fields, sort_keys=False))
    return name


def _children_s() -> float:
    """Return the CPU seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wide_area_rows() -> list[Row]:
    """Measure the same over a relay that delays and limits every connection between two parties."""
    rtt, rate = WIDE_AREA
    rows = []
    for parties, target in ((3, 45), (2, None)):
        folder = shared_job("adult", f"parties={parties}", "disclosure=sealed", "L=4", "K=50", "C=0.2")
        seconds, report = run_repeatedly(folder, 1, lambda ports: relayed(ports, rtt, rate))
        name = f"sealed, {parties} parties, L=4 K=50 C=0.2, {rtt} ms round trip, {rate} Mbit/s"
        rows.append(Row(name, seconds, "s", target, anchor=account(report), detail=report["cost"]))
    return rows


def account(report: dict[str, Any]) -> str:
    """Return bytes per party, and the leader's gates, rounds and seconds by phase."""
    parties = report["cost"]["parties"]
    sent = " ".join(f"{bytes_sent(cost) / 1e6:.2f}" for cost in parties.values())
    phases = parties[report["leader"]]["phases"]
    gates = sum(phase["gates"] for phase in phases.values())
    rounds = sum(phase["rounds"] for phase in phases.values())
    split = ", ".join(f"{name} {phase['seconds']:.2f}" for name, phase in phases.items())
    return f"sent {sent} MB; {gates / 1e6:.2f} M AND; leader's rounds {rounds}; leader's seconds: {split}"


def run_repeatedly(
    folder: Path, runs: int, between: Between = directly, job: str = "job.yaml"
) -> tuple[float, dict[str, Any]]:
    """Run a joint job several times against the same daemons; return the median and the last report.

    Each run has a name of its own: a job that ran before gets its release again.
    """
    tasks = [load_task(folder / job, {"name": f"run-{i}"}) for i in range(runs + 1)]  # the first is a warm-up
    roster = tasks[0].job.roster
    sources = sources_of(tasks[0], {party: folder / f"{party}.csv" for party in roster})
    out, times = OUT / "joint", []
    with parties_on_loopback(tasks[0], sources, between) as config:
        _allow(roster, config, len(tasks))
        for task in tasks:
            shutil.rmtree(out, ignore_errors=True)
            start = time.perf_counter()
            run_joint(task, config, out)
            times.append(time.perf_counter() - start)
        report = json.loads((out / "report.json").read_text())
        own = own_accounts(task, config, len(tasks))
        report["cost"]["parties"] |= {party: account["cost"] for party, account in own.items()}
    return statistics.median(times[1:]), report


def _allow(parties: Iterable[str], config: CoordinatorConfig, releases: int) -> None:
    """Let the policies of a simulation allow more releases. A daemon reads its policy for each job."""
    for party in parties:
        path = config.peers[party].certificate.parent.parent / CONFIG
        fields = yaml.safe_load(path.read_text())
        fields["policy"]["max_lkc_releases"] = releases
        path.write_text(yaml.safe_dump(fields, sort_keys=False))


def bytes_sent(cost: dict[str, Any]) -> int:
    return sum(link["bytes_sent"] for link in cost["links"].values())


def wide_rows() -> list[Row]:
    """Measure 41 quasi-identifiers."""
    rows = []
    for L in (2, 4):
        folder = shared_job("blood", f"L={L}", "K=50", "C=0.4")
        out = OUT / "wide"

        def work(folder: Path = folder, out: Path = out) -> None:
            shutil.rmtree(out, ignore_errors=True)
            run_process([*command("coordinator"), "run", str(folder / "job.yaml"), "--out", str(out)])

        rows.append(Row(f"41 columns, 10,000 rows, L={L} K=50 C=0.4: whole process", median_s(work), "s"))
    return rows


def main() -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  progress lines of the runs
    rows = [*start_rows(), *single_rows(), *memory_rows(), *wide_rows()]
    rows += [*joint_rows(), *sealed_rows(), *colluders_rows(), *wide_area_rows()]
    publish("LKC-privacy", rows, OUT.parent / "bench-lkc.json")


if __name__ == "__main__":
    main()
