"""Sequences of three holders as sealed jobs between daemons, from CSV to CSV. `make bench AREA=sequences`.

The runs use `coordinator simulate`: a daemon for each party, on loopback or behind relays that delay and limit the
traffic. Wall seconds run from the coordinator's first call to the last delivery. CPU seconds cover all three
daemons from start to end. L=3 K=30 C=3/5, with a single protected value of five.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.movements import Readings, city, metro
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish
from benchmarks.wide_area import relayed
from coordinator.run import run_joint
from coordinator.simulate import Between, directly, parties_on_loopback
from jobs.data.sources import Csv
from jobs.loading import load_task
from jobs.release.csv import REPORT

NAMES = ("one", "two", "three")
ROUND_TRIP_MS, MBIT_S = 20, 100
SLOW = f"{ROUND_TRIP_MS} ms, {MBIT_S} Mbit/s"
LINKS: Mapping[str, Between] = {
    "loopback": directly,
    SLOW: partial(relayed, round_trip_ms=ROUND_TRIP_MS, mbit_s=MBIT_S),
}
TARGETS: Mapping[tuple[str, str], float] = {
    ("city", "loopback"): 10,
    ("city", SLOW): 80,
    ("metro", "loopback"): 45,
}
"""Seconds, by data set and link."""


def job(readings: Readings) -> dict[str, Any]:
    """Return the job of some readings."""
    return {
        "version": 1,
        "name": "movements",
        "partition": "horizontal",
        "parties": {name: {} for name in NAMES},
        "model": {"sequences": {"L": 3, "K": 30, "C": "3/5"}},
        "columns": {
            "who": {"role": "id"},
            "place": {"role": "location", "domain": list(readings.places)},
            "time": {"role": "time", "numeric": {"min": 0, "max": readings.n_cells, "step": 1}},
            "diagnosis": {
                "role": "sensitive",
                "domain": list(readings.values),
                "values": list(readings.values[:1]),
            },
        },
    }


def dealt(readings: Readings, seed: int = 0) -> list[Readings]:
    """Deal out the records at random; return the readings of every party."""
    owner = np.random.default_rng(seed).integers(0, len(NAMES), readings.n_records)
    own = (np.flatnonzero(owner[readings.records] == i) for i in range(len(NAMES)))
    return [
        Readings(
            readings.name,
            readings.records[lines],
            readings.items[lines],
            readings.sensitive,
            readings.places,
            readings.n_cells,
            readings.values,
        )
        for lines in own
    ]


def joint_rows(folder: Path, kind: str, readings: Readings, links: Sequence[str]) -> list[Row]:
    """Run over every link, and report tests and traffic."""
    sources = {}
    for name, own in zip(NAMES, dealt(readings), strict=True):
        own.write(folder / f"{kind}-{name}.csv")
        sources[name] = Csv(folder / f"{kind}-{name}.csv")
    path = folder / f"{kind}.yaml"
    path.write_text(yaml.safe_dump(job(readings), sort_keys=False))
    task, rows = load_task(path), []
    for i, link in enumerate(links):
        out = folder / f"{kind}-{i}"
        before = _children()
        with parties_on_loopback(task, sources, LINKS[link]) as config:
            start = time.perf_counter()
            run_joint(task, config, out)
            wall = time.perf_counter() - start
        title = f"{readings.name}, 3 daemons: {link}"
        rows.append(Row(title, wall, "s", TARGETS.get((kind, link))))
        rows.append(Row(f"{title}: all three daemons", _children() - before, "CPU s"))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    rows.append(Row(f"{readings.name}: peak of the largest daemon", peak, "MiB"))
    return rows + _costs(readings.name, json.loads((out / REPORT).read_text()))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _costs(name: str, report: Mapping[str, Any]) -> list[Row]:
    """Report tests and shared costs of the last run; the costs exclude the shuffle."""
    phases = {party: cost["phases"].values() for party, cost in report["cost"]["parties"].items()}
    sent = {party: sum(phase["bytes_sent"] for phase in of) / 1e6 for party, of in phases.items()}
    leader, deputy, other = NAMES
    gates = sum(phase["gates"] for phase in phases[leader])
    return [
        Row(f"{name}: sequences tested", sum(sum(s["tested"]) for s in report["sweeps"]), ""),
        Row(f"{name}: sweeps", len(report["sweeps"]), ""),
        Row(f"{name}: AND gates", gates / 1e6, "million"),
        Row(f"{name}: leader sends", sent[leader], "MB"),
        Row(f"{name}: deputy sends", sent[deputy], "MB"),
        Row(f"{name}: third party sends", sent[other], "MB"),
    ]


def main(parts: Sequence[str]) -> None:
    rows = []
    with tempfile.TemporaryDirectory(dir=OUT.parent) as name:
        if not parts or "city" in parts:
            rows += joint_rows(Path(name), "city", city(), list(LINKS))
        if not parts or "metro" in parts:
            rows += joint_rows(Path(name), "metro", metro(), ["loopback"])
    publish("sequences as joint jobs", rows, OUT.parent / "bench-sequences-jobs.json")


if __name__ == "__main__":
    main(sys.argv[1:])
