"""Common parts of the benchmarks: repeated timing, the machine's name, a table, a JSON file.

A time on a shared machine says little alone, so rows carry medians over several runs and the load at the time. A
stated target is printed with the reference of the same run. Work of a single core is measured in CPU seconds, named
in the unit: they depend on other work only through shared caches and sibling threads. A missed target gives a note:
the distance, the load, and the reason if the row knows.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """A measured figure.

    better:  "less" or "more", the direction of the target.
    anchor:  the reference of the figure, in words.
    why:     the explanation if the figure misses the target.
    load:    processes ready to run when the row was made, averaged over a minute.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    better: str = "less"
    anchor: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.better == "less" else self.value >= self.target

    @property
    def note(self) -> str:
        """The distance from a missed target, and the reason; empty without a target or if the target is met."""
        if self.met is not False or self.target is None:
            return ""
        missed = abs(self.value / self.target - 1)
        direction = "above" if self.better == "less" else "below"
        said = f"{missed:.0%} {direction} the target; load {self.load:.1f} on {os.cpu_count()} cores"
        return f"{said}; {self.why}" if self.why else said


def median_s(work: Callable[[], object], runs: int = 3, warmup: int = 1) -> float:
    """Return the median wall seconds of ``work`` over ``runs``, after ``warmup`` uncounted runs."""
    return statistics.median(_times(work, runs, warmup, time.perf_counter))


def median_cpu_s(work: Callable[[], object], runs: int = 3, warmup: int = 1) -> float:
    """Return the same in CPU seconds of all threads of this process."""
    return statistics.median(_times(work, runs, warmup, time.process_time))


def _times(work: Callable[[], object], runs: int, warmup: int, clock: Callable[[], float]) -> list[float]:
    for _ in range(warmup):
        work()
    times = []
    for _ in range(runs):
        start = clock()
        work()
        times.append(clock() - start)
    return times


@dataclass(frozen=True)
class Process:
    """Measures of a whole process."""

    wall_s: float
    peak_mb: float
    cpu_s: float


_MEASURED = """
import json, os, sys, time
null = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
start = time.perf_counter()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=null)
_, status, used = os.wait4(pid, 0)
wall_s = time.perf_counter() - start
print(json.dumps([os.waitstatus_to_exitcode(status), wall_s, used.ru_maxrss, used.ru_utime + used.ru_stime]))
"""
"""Program that runs a command. The peak of a child begins at the memory of its parent, so the parent is small."""


def run_process(command: Sequence[str]) -> Process:
    """Run a command to its end, quietly."""
    words = [sys.executable, "-I", "-S", "-c", _MEASURED, *command]
    code, wall_s, peak_kb, cpu_s = json.loads(
        subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    if code != 0:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return Process(wall_s, peak_kb / 1024, cpu_s)


def median(costs: Sequence[Process]) -> Process:
    """Return the median of each figure."""
    return Process(
        *(
            statistics.median(each)
            for each in zip(*((c.wall_s, c.peak_mb, c.cpu_s) for c in costs), strict=True)
        )
    )


def machine() -> dict[str, Any]:
    """Describe the measuring machine."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else ""
    return {
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "load_1m": os.getloadavg()[0],
    }


def publish(title: str, rows: list[Row], path: Path, notes: Sequence[str] = ()) -> None:
    """Print the table and write the same as JSON. notes: sentences below the table."""
    where = machine()
    loads = [row.load for row in rows] or [where["load_1m"]]
    table = Table(
        title=f"{title}: {where['cpu']}, {where['cores']} cores, Python {where['python']}, "
        f"load {min(loads):.1f} to {max(loads):.1f}"
    )
    for heading in ("figure", "measured", "target", "", "measured against"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        sign = "≤" if row.better == "less" else "≥"
        target = "" if row.target is None else f"{sign} {row.target:g}"
        verdict = {None: "", True: "met", False: "MISSED"}[row.met]
        table.add_row(row.name, f"{row.value:.4g} {row.unit}", target, verdict, row.anchor)
    console = Console(width=140)
    console.print(table)
    for row in rows:
        if row.note:
            console.print(f"MISSED {row.name}: {row.note}", markup=False, highlight=False)
    for note in notes:
        console.print(note, markup=False, highlight=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    results = [asdict(row) | {"met": row.met, "note": row.note} for row in rows]
    path.write_text(
        json.dumps({"title": title, "machine": where, "rows": results, "notes": list(notes)}, indent=1) + "\n"
    )
    print(f"written: {path}")
