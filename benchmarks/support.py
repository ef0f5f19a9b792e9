"""Commons of the benchmarks: repeated timing, the machine's name, a table, a JSON file.

Times on a shared machine say little alone, so rows carry medians over several runs and the load at the time, and
where a target is stated, the target and the reference measured in the same run stand beside them. What one core
does is measured in CPU seconds, which say so in the unit: they depend on other work only through the caches and
sibling threads it shares. A missed target is a note: by how much, under which load, and why if the row knows.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One measured figure.

    better:  "less" or "more", which direction meets the target.
    anchor:  what the figure is measured against, in words.
    why:     what explains the figure should it miss the target.
    load:    processes that wanted to run when the row was made, averaged over a minute.
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
        """By how much a target is missed, and why; empty if it is met or there is none."""
        if self.met is not False or self.target is None:
            return ""
        missed = abs(self.value / self.target - 1)
        direction = "above" if self.better == "less" else "below"
        said = f"{missed:.0%} {direction} the target; load {self.load:.1f} on {os.cpu_count()} cores"
        return f"{said}; {self.why}" if self.why else said


def median_s(work: Callable[[], object], runs: int = 3, warmup: int = 1) -> float:
    """Median wall seconds of ``work`` over ``runs``, after ``warmup`` runs that do not count."""
    return statistics.median(_times(work, runs, warmup, time.perf_counter))


def median_cpu_s(work: Callable[[], object], runs: int = 3, warmup: int = 1) -> float:
    """The same in CPU seconds of this process, all its threads together."""
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


def machine() -> dict[str, Any]:
    """Name what the figures were measured on."""
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


def publish(title: str, rows: list[Row], path: Path) -> None:
    """Print the table and write the same as JSON."""
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
    path.parent.mkdir(parents=True, exist_ok=True)
    results = [asdict(row) | {"met": row.met, "note": row.note} for row in rows]
    path.write_text(json.dumps({"title": title, "machine": where, "rows": results}, indent=1) + "\n")
    print(f"written: {path}")
