"""What the benchmarks share: repeated timing, the machine's name, a table, a JSON file.

Times on a shared machine say little alone, so rows carry medians over several runs, and where a target is
stated, the target and the reference measured in the same run stand beside them.
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
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    better: str = "less"
    anchor: str = ""
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.better == "less" else self.value >= self.target


def median_s(work: Callable[[], object], runs: int = 3, warmup: int = 1) -> float:
    """Median wall seconds of ``work`` over ``runs``, after ``warmup`` runs that do not count."""
    for _ in range(warmup):
        work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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
    table = Table(title=f"{title}: {where['cpu']}, {where['cores']} cores, Python {where['python']}")
    for heading in ("figure", "measured", "target", "", "measured against"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        sign = "≤" if row.better == "less" else "≥"
        target = "" if row.target is None else f"{sign} {row.target:g}"
        verdict = {None: "", True: "met", False: "MISSED"}[row.met]
        table.add_row(row.name, f"{row.value:.4g} {row.unit}", target, verdict, row.anchor)
    Console(width=140).print(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    results = [asdict(row) | {"met": row.met} for row in rows]
    path.write_text(json.dumps({"title": title, "machine": where, "rows": results}, indent=1) + "\n")
    print(f"written: {path}")
