"""Benchmark of the raw clusters that a released table keeps ([CLU] 5), guided by clusters or not. `make bench
AREA=lkc`.

Adult and crx without a class, a single quasi-identifier of all columns; means over K and several models. F-measure
and match point of the raw clusters and the clusters of the released rows, by the same method. The local optimum of
k-means is luck: for Adult with k=10, single models give .46 to .61. So a single model says little.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from anonymize.agreement import Agreement, agreement, contingency
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from benchmarks.shared_jobs import OUT, SHARED, shared_job
from benchmarks.support import Row, publish
from evaluation.cluster_commands import fitted
from evaluation.clustering import clustered, released_points
from jobs.clusters import clusters_of
from jobs.data.sources import Csv, Source
from jobs.data.tables import Loaded
from jobs.lkc.single import anonymized
from jobs.loading import load_task
from jobs.reading import load_table
from jobs.task import Task
from tests.support.placed import placed

SEEDS = range(5)
CRX_NUMBERS = {"A2": (13, 81, 1), "A3": (0, 29, 1), "A8": (0, 29, 1), "A11": (0, 68, 1), "A14": (0, 2001, 20)}
CRX_AMOUNT = [1, 10, 100, 300, 500, 1000, 2000, 5000, 10000]


def adult() -> tuple[dict[str, Any], Path]:
    folder = shared_job("adult")
    return yaml.safe_load((folder / "job.yaml").read_text()), folder / "raw.csv"


def crx(folder: Path) -> tuple[dict[str, Any], Path]:
    """Return credit applications: flat taxonomies, rows without a missing cell."""
    lines = (SHARED / "data" / "crx" / "crx.csv").read_text().splitlines()
    names = [f"A{i}" for i in range(1, 17)]
    rows = [line.split(",") for line in lines if "?" not in line and "A1" not in line.split(",")]
    path = folder / "crx.csv"
    path.write_text("\n".join([",".join(names), *(",".join(row) for row in rows)]) + "\n")
    columns: dict[str, Any] = {}
    for i, name in enumerate(names[:-1]):
        if name in CRX_NUMBERS:
            low, high, step = CRX_NUMBERS[name]
            columns[name] = {"role": "qid", "numeric": {"min": low, "max": high, "step": step}}
        elif name == "A15":
            columns[name] = {"role": "qid", "numeric": {"min": 0, "max": 100001, "cuts": CRX_AMOUNT}}
        else:
            columns[name] = {"role": "qid", "taxonomy": {"*": sorted({row[i] for row in rows})}}
    return {"version": 1, "name": "crx", "partition": "single", "data": "crx.csv", "columns": columns}, path


def job_of(fields: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the job with all quasi-identifiers, and nothing else."""
    columns = {name: column for name, column in fields["columns"].items() if column["role"] == "qid"}
    return placed({**fields, "columns": columns, **changes})


def task_of(folder: Path, fields: Mapping[str, Any]) -> Task:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(fields, sort_keys=False))
    return load_task(path)


def kept(task: Task, loaded: Loaded, labels: Ints, count: int, method: str) -> Agreement:
    """Compare raw clusters with clusters of the released rows."""
    table: CodedTable = loaded.table
    cut = anonymized(task, loaded, Observer()).cut
    points = [released_points(column, cut.positions(i)) for i, column in enumerate(table.schema.qid)]
    found = clustered(points, table.qid, table.weights, count, method)
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    return agreement(contingency(labels[rows], found.labels[rows], (count, found.count)))


def measured(
    folder: Path, fields: Mapping[str, Any], source: Source, count: int, method: str, sizes: Sequence[int]
) -> Mapping[str, tuple[float, float, float]]:
    """Return, by way, F-measure, match point and adjusted Rand index, means over models and K."""
    n = len(job_of(fields)["columns"])
    plain = task_of(folder, job_of(fields, goal="general", model={"lkc": {"L": n, "K": 2, "C": 1}}))
    table = load_table(source, plain).table
    found: dict[str, list[Agreement]] = {}
    for seed in SEEDS:
        model, _ = fitted(table, plain.job.names("qid"), count, method, seed)
        clusters = {"model": model.model_dump(mode="json")}
        for K in sizes:
            asked = {"model": {"lkc": {"L": n, "K": K, "C": 1}}}
            for way, goal in _ways(clusters):
                task = task_of(folder, job_of(fields, **asked, **goal))
                loaded = load_table(source, task)
                labels = clusters_of(model, loaded.table.schema.qid).labels(
                    loaded.table.schema.qid, loaded.table.qid
                )
                found.setdefault(way, []).append(kept(task, loaded, labels, count, method))
    return {way: _means(each) for way, each in found.items()}


def _ways(clusters: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "guided", {"goal": "clusters", "clusters": clusters}
    yield "general", {"goal": "general"}
    yield "records", {"goal": "general", "score": "records"}


def _means(found: Sequence[Agreement]) -> tuple[float, float, float]:
    return (
        statistics.mean(float(each.f_measure) for each in found),
        statistics.mean(float(each.match_point) for each in found),
        statistics.mean(float(each.adjusted) for each in found),
    )


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = {"Adult": (*adult(), (20, 50, 100)), "crx": (*crx(folder), (5, 20, 50))}
        for data, (fields, path, sizes) in sets.items():
            for count in (6, 10):
                for method in ("kmeans", "bisecting"):
                    found = measured(folder, fields, Csv(path), count, method, sizes)
                    rows += list(_rows(data, count, method, found))
    publish("Clusters kept", rows, OUT.parent / "bench-clusters.json")


def _rows(
    data: str, count: int, method: str, found: Mapping[str, tuple[float, float, float]]
) -> Iterator[Row]:
    for way, (f, match, adjusted) in found.items():
        target = None
        if (data, count, method) == ("Adult", 10, "kmeans"):
            target = {"guided": 0.55}.get(way, 0.35)
        yield Row(
            f"{data} k={count} {method}: F-measure, {way}",
            f,
            "",
            target,
            better="more" if way == "guided" else "less",
            anchor=f"match point {match:.2f}, adjusted Rand {adjusted:.2f}",
            detail={"match_point": match, "adjusted_rand": adjusted},
        )


if __name__ == "__main__":
    main()
