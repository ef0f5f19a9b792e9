"""kd as jobs, from CSV to CSV: a holder's million rows, and Adult sealed between daemons. `make bench AREA=kd`.

The sealed runs use `coordinator simulate`: a daemon for each of three parties, on loopback or behind relays that
delay and limit the traffic. Wall seconds run from the coordinator's first call to the last delivery. CPU seconds of
all daemons are independent of other work on the machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from anonymize.grid import Grid
from anonymize.release import LabelledColumn, Release
from anonymize.table import CodedTable, Ints, QidColumn
from benchmarks.bench_kd import MILLION, NAMES
from benchmarks.kd_tables import GRIDS, adult, blown_up
from benchmarks.shared_jobs import OUT, SHARED
from benchmarks.support import Row, publish
from benchmarks.wide_area import relayed
from coordinator.run import run_joint
from coordinator.simulate import Between, directly, parties_on_loopback
from jobs.data.sources import Csv
from jobs.loading import load_task
from jobs.release.csv import write_csv
from jointcut.launcher import command

ROUND_TRIP_MS, MBIT_S = 20, 100


def written(table: CodedTable, path: Path) -> None:
    """Write a coded table as the CSV of its raw values; numbers at the lower edges of their cells."""
    schema, columns = table.schema, {}
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    for column, codes in zip(schema.qid, table.qid, strict=True):
        columns[column.name] = LabelledColumn(_values(column), codes[rows])
    columns[str(schema.class_name)] = LabelledColumn(schema.classes, table.axis(0)[rows])
    for i, sensitive in enumerate(schema.sensitive):
        columns[sensitive.name] = LabelledColumn(sensitive.domain, table.axis(i + 1)[rows])
    write_csv(Release(columns), path)


def _values(column: QidColumn) -> tuple[str, ...]:
    values = column.values
    if isinstance(values, Grid):
        return tuple(values.edge_label(i) for i in range(values.n_cells))
    return tuple(values.leaves)


def job(table: CodedTable, *, diverse: bool, **rest: Any) -> dict[str, Any]:
    """Return a job with K = 50; diverse: also no group with a single value in any sensitive column."""
    schema = table.schema
    hierarchies = SHARED / "data" / "adult" / "hierarchies"
    columns: dict[str, Any] = {}
    for column in schema.qid:
        if column.name in GRIDS:
            low, high = GRIDS[column.name]
            columns[column.name] = {"role": "qid", "numeric": {"min": low, "max": high, "step": 1}}
        else:
            tree = str(hierarchies / f"{column.name}.csv")
            columns[column.name] = {"role": "qid", "taxonomy": tree, "missing": "drop"}
    columns[str(schema.class_name)] = {"role": "class", "domain": list(schema.classes)}
    columns |= {c.name: {"role": "sensitive", "domain": list(c.domain)} for c in schema.sensitive}
    lkc = {"L": "all", "K": 50, "C": "1", "method": "kd"} | ({"diversity": 2} if diverse else {})
    model = {"lkc": lkc}
    asked = {"version": 1, "name": "kd", "goal": "general", "model": model}
    return {**asked, "columns": columns, **rest}


def single_rows(folder: Path, table: CodedTable, runs: int) -> list[Row]:
    """Measure a million rows in a separate process; the peak includes Python and its libraries."""
    rows = []
    written(table, folder / "table.csv")
    for diverse, target in ((False, None), (True, 8)):
        path = folder / f"job-{diverse}.yaml"
        path.write_text(yaml.safe_dump(job(table, diverse=diverse, partition="single", data="table.csv")))
        found = []
        for i in range(runs):
            out = folder / f"out-{diverse}-{i}"
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(
                [*command("coordinator"), "run", str(path), "--out", str(out)],
                check=True,
                capture_output=True,
            )
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found.append((cpu, wall, after.ru_maxrss / 1024))
        cpu, wall, peak = (float(np.median(each)) for each in zip(*found, strict=True))
        title = f"1 M × 8, 4 sensitive, CSV to CSV, verified, K=50{', diversity 2' if diverse else ''}"
        rows.append(Row(title, cpu, "CPU s", target, anchor=f"wall {wall:.1f} s"))
        rows.append(Row(f"{title}: peak", peak, "MiB", 1024))
    return rows


def _cpu_of_children() -> float:
    """Return the CPU seconds of ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def sealed_rows(folder: Path, table: CodedTable, runs: int) -> list[Row]:
    """Measure Adult dealt out among three parties at random."""
    owner: Ints = np.random.default_rng(0).integers(0, len(NAMES), len(table.cells))
    sources = {}
    for i, name in enumerate(NAMES):
        written(table.some(np.flatnonzero(owner == i)), folder / f"{name}.csv")
        sources[name] = Csv(folder / f"{name}.csv")
    slow: Between = partial(relayed, round_trip_ms=ROUND_TRIP_MS, mbit_s=MBIT_S)
    links: Mapping[str, tuple[Between, float]] = {
        "loopback": (directly, 6),
        f"{ROUND_TRIP_MS} ms, {MBIT_S} Mbit/s": (slow, 25),
    }
    rows = []
    for diverse in (False, True):
        joint = {"partition": "horizontal", "parties": {name: {} for name in NAMES}}
        path = folder / f"joint-{diverse}.yaml"
        path.write_text(yaml.safe_dump(job(table, diverse=diverse, **joint), sort_keys=False))
        task = load_task(path)
        for link, (between, target) in links.items():
            seconds, daemons = [], []
            for i in range(runs):
                before = _cpu_of_children()
                with parties_on_loopback(task, sources, between) as config:
                    start = time.perf_counter()
                    run_joint(task, config, folder / f"out-{diverse}-{link[0]}-{i}")
                    seconds.append(time.perf_counter() - start)
                daemons.append(_cpu_of_children() - before)
            title = f"sealed, 3 daemons, Adult, K=50{', diversity 2' if diverse else ''}: {link}"
            said = f"{np.median(daemons):.1f} CPU s of daemons, with their start"
            rows.append(Row(title, float(np.median(seconds)), "s", target, anchor=said))
    return rows


def main(parts: Sequence[str]) -> None:
    table, rows = adult(), []
    with tempfile.TemporaryDirectory(dir=OUT.parent) as name:
        if not parts or "sealed" in parts:
            rows += sealed_rows(Path(name), table, 3)
        if not parts or "single" in parts:
            rows += single_rows(Path(name), blown_up(table, MILLION), 3)
    publish("kd as jobs", rows, OUT.parent / "bench-kd-jobs.json")


if __name__ == "__main__":
    main(sys.argv[1:])
