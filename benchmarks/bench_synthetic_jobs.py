"""Joint synthetic tables between daemons, from CSV to CSV: gates, bytes, seconds. `make bench AREA=synthetic`.

The runs use `coordinator simulate`: a daemon for each party, on loopback or behind relays that delay and limit the
traffic (`line`: 20 ms a round trip, 100 Mbit/s each way). Wall seconds run from the coordinator's first call to the
last delivery, after an uncounted first run of the same daemons. For vertical jobs the parties' alignment (PSI) is
subtracted and stated separately. CPU seconds cover all daemons from start to end. The figures are printed next to
the estimates made before the program existed (benchmarks/RESULTS.md), and next to the forecast of `coordinator
validate`.

Horizontal: Adult's 30,162 training records, and 1 M records that repeat these, dealt out among three parties at
random; 30,000 records of 50 columns. Vertical: Adult's 45,222 records, half of the columns at each of two parties.

    python -m benchmarks.bench_synthetic_jobs [horizontal] [million] [fifty] [vertical] [links=loopback] [runs=3]
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from anonymize.grid import Grid, plain
from anonymize.release import LabelledColumn, Release
from anonymize.table import QidColumn
from benchmarks.shared_jobs import OUT, SHARED
from benchmarks.support import Row, publish
from benchmarks.synthetic_tables import Coded, adult, generated
from benchmarks.wide_area import relayed
from coordinator.run import run_joint
from coordinator.simulate import Between, directly, own_accounts, parties_on_loopback
from jobs.data.sources import Csv
from jobs.loading import load_task
from jobs.release.csv import write_csv
from jobs.synthetic.sentences import MBIT_S, ROUND_TRIP_MS, Expected, expected
from jobs.task import Task

LOOPBACK, LINE = "loopback", "line"
LINKS: Mapping[str, Between] = {
    LOOPBACK: directly,
    LINE: partial(relayed, round_trip_ms=ROUND_TRIP_MS, mbit_s=MBIT_S),
}
MAX_ROWS = 400_000
"""Maximum number of rows of a holder: equal in all horizontal jobs, so a million records need no different job."""
MILLION = 1_000_000
MOST_FACTOR = 2
PERSON = "person"
ALIGN, COMPUTING = "align", ("setup", "measure", "choose")
HIERARCHIES = SHARED / "data" / "adult" / "hierarchies"


@dataclass(frozen=True)
class Case:
    """A job and its targets.

    rows:      makes the records of all parties.
    edges:     number of measured pairs.
    targets:   seconds by link; a link without a target is not run.
    gates, megabytes:  millions, and sent by all, as estimated before the program existed.
    """

    title: str
    rows: Callable[[], Coded]
    edges: int
    targets: Mapping[str, float | None]
    gates: float
    megabytes: float
    n_parties: int = 3
    vertical: bool = False

    @property
    def names(self) -> list[str]:
        return [f"p{i}" for i in range(self.n_parties)]


def whole_adult() -> Coded:
    """Return the training and the test records."""
    parts = adult()
    leaves, classes = (np.concatenate([getattr(p, name) for p in parts]) for name in ("leaves", "classes"))
    return Coded(parts[0].schema, leaves, classes)


def million() -> Coded:
    """Return Adult's training records, repeated."""
    rows = adult()[0]
    return rows.some(np.arange(MILLION) % len(rows.classes))


def fifty(n_rows: int = 30_000) -> Coded:
    """Return fifty columns of 32 and of 6 values that depend on the class."""
    rng = np.random.default_rng(50)
    classes = rng.integers(0, 2, n_rows)
    sizes = {f"x{i}": (32, 6)[i % 2] for i in range(50)}
    columns = {
        name: np.minimum(rng.binomial(size, 0.3 + 0.2 * classes), size - 1) for name, size in sizes.items()
    }
    return generated(columns, sizes, classes)


CASES: Mapping[str, Case] = {
    "horizontal": Case("Adult, rows of 3", lambda: adult()[0], 9, {LOOPBACK: 3, LINE: 20}, 3.4, 150),
    "million": Case("1 M rows of Adult, of 3", million, 9, {LOOPBACK: None}, 3.4, 150),
    "fifty": Case("50 columns, rows of 3", fifty, 20, {LOOPBACK: 10, LINE: None}, 28, 1100),
    "vertical": Case(
        "Adult, columns of 2", whole_adult, 9, {LOOPBACK: 10, LINE: 40}, 3.4, 260, n_parties=2, vertical=True
    ),
}


# ---- jobs and tables


def job(case: Case, rows: Coded, epsilon: str) -> dict[str, Any]:
    """Return the job of a case."""
    schema = rows.schema
    columns: dict[str, Any] = {column.name: _field(column) for column in schema.qid}
    columns[str(schema.class_name)] = {"role": "class", "domain": list(schema.classes)}
    parties: dict[str, Any] = {name: {} for name in case.names}
    if case.vertical:
        columns[PERSON] = {"role": "id"}
        parties = {name: {"columns": own} for name, own in zip(case.names, _halves(rows), strict=True)}
    return {
        "version": 1,
        "name": f"synthetic-{epsilon}",
        "partition": "vertical" if case.vertical else "horizontal",
        "goal": "classification",
        "model": {
            "dp": {"method": "synthetic", "epsilon": epsilon, "edges": str(case.edges), "max_rows": MAX_ROWS}
        },
        "columns": columns,
        "parties": parties,
    }


def _field(column: QidColumn) -> dict[str, Any]:
    values = column.values
    if isinstance(values, Grid):
        low, high, step = map(plain, (values.edges[0], values.edges[-1], values.edges[1] - values.edges[0]))
        return {"role": "qid", "numeric": {"min": low, "max": high, "step": step}}
    tree = HIERARCHIES / f"{column.name}.csv"
    return {"role": "qid", "taxonomy": str(tree) if tree.exists() else {"*": list(values.leaves)}}


def _halves(rows: Coded) -> list[list[str]]:
    names = [column.name for column in rows.schema.qid]
    return [names[: len(names) // 2], names[len(names) // 2 :]]


@dataclass(frozen=True)
class Tasks:
    """The same job with three ε: the sum allowed by a policy, and two shares of the sum.

    first:    nearly zero: so the measured run is not the daemons' first, and does not repeat a release.
    counted:  the measured job.
    """

    allowed: Task
    first: Task
    counted: Task


def written(folder: Path, case: Case, rows: Coded) -> tuple[Tasks, dict[str, Csv]]:
    """Write the jobs, and a table for every party."""
    tasks = []
    for epsilon in ("1.01", "0.01", "1"):
        path = folder / f"job-{epsilon}.yaml"
        path.write_text(yaml.safe_dump(job(case, rows, epsilon), sort_keys=False))
        tasks.append(load_task(path))
    tables = _by_columns(rows) if case.vertical else _by_rows(rows, case.n_parties)
    sources = {}
    for name, table in zip(case.names, tables, strict=True):
        write_csv(table, folder / f"{name}.csv")
        sources[name] = Csv(folder / f"{name}.csv")
    return Tasks(*tasks), sources


def _by_rows(rows: Coded, n_parties: int) -> list[Release]:
    """Deal out the rows at random."""
    owner = np.random.default_rng(0).integers(0, n_parties, len(rows.classes))
    whole = _as_read(rows)
    return [whole.some(np.flatnonzero(owner == i)) for i in range(n_parties)]


def _by_columns(rows: Coded) -> list[Release]:
    """Split the columns; every party has the class and the person of a record."""
    n_rows, whole = len(rows.classes), _as_read(rows)
    people = LabelledColumn(tuple(f"id-{i:06d}" for i in range(n_rows)), np.arange(n_rows))
    shared = {PERSON: people, str(rows.schema.class_name): whole.columns[str(rows.schema.class_name)]}
    return [Release({**shared, **{name: whole.columns[name] for name in own}}) for own in _halves(rows)]


def _as_read(rows: Coded) -> Release:
    """Return raw values; numbers at the lower edges of their cells."""
    columns = {
        column.name: LabelledColumn(values_of(column), codes)
        for column, codes in zip(rows.schema.qid, rows.leaves.T, strict=True)
    }
    return Release(
        {**columns, str(rows.schema.class_name): LabelledColumn(rows.schema.classes, rows.classes)}
    )


def values_of(column: QidColumn) -> tuple[str, ...]:
    values = column.values
    if isinstance(values, Grid):
        return tuple(values.edge_label(i) for i in range(values.n_cells))
    return tuple(values.leaves)


# ---- runs


@dataclass(frozen=True)
class Run:
    """A run, or the median of several.

    wall_s:     whole run.
    align_s:    the alignment, at the slowest party; part of wall_s.
    compute_s:  the joint computation after alignment, at the slowest party; part of wall_s.
    cpu_s:      all daemons, their start and the first run included.
    gates:      AND gates.
    sent:       bytes between all parties, without the alignment.
    """

    wall_s: float
    align_s: float
    compute_s: float
    cpu_s: float
    gates: int
    sent: int


def run(tasks: Tasks, sources: Mapping[str, Csv], between: Between) -> Run:
    """Run with fresh daemons and ledgers."""
    before = _children()
    with (
        tempfile.TemporaryDirectory(dir=OUT.parent) as folder,
        parties_on_loopback(tasks.allowed, sources, between) as config,
    ):
        run_joint(tasks.first, config, Path(folder) / "first")
        start = time.perf_counter()
        run_joint(tasks.counted, config, Path(folder) / "out")
        wall = time.perf_counter() - start
        told = own_accounts(tasks.counted, config, 2)
    phases = [account["cost"]["phases"] for account in told.values()]
    assert len(phases) == len(tasks.counted.job.roster)
    return Run(
        wall,
        max(each.get(ALIGN, {}).get("seconds", 0.0) for each in phases),
        max(sum(phase["seconds"] for name, phase in each.items() if name in COMPUTING) for each in phases),
        _children() - before,
        max(sum(phase["gates"] for phase in each.values()) for each in phases),
        sum(phase["bytes_sent"] for each in phases for name, phase in each.items() if name != ALIGN),
    )


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows_of(case: Case, links: Sequence[str], runs: int) -> list[Row]:
    """Measure the cost of a case over each link; gates and bytes are of the first link."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory(dir=OUT.parent) as folder:
        rows = case.rows()
        tasks, sources = written(Path(folder), case, rows)
        said = expected(tasks.counted, len(rows.classes))
        for link in [link for link in links if link in case.targets]:
            made = median([run(tasks, sources, LINKS[link]) for _ in range(runs)])
            found += [] if found else _sizes(case, made, said)
            found += _seconds(case, link, made, said)
    return found


def median(runs: Sequence[Run]) -> Run:
    """Return the median of each figure."""
    return Run(*map(statistics.median, zip(*map(astuple, runs), strict=True)))


def _sizes(case: Case, made: Run, said: Expected) -> list[Row]:
    before = f"said before: at most {said.cost.gates / 1e6:.1f} M, {said.cost.bytes / 1e6:.0f} MB"
    return [
        Row(f"{case.title}: AND gates", made.gates / 1e6, "M", anchor=f"estimate {case.gates:g}; {before}"),
        Row(f"{case.title}: sent by all", made.sent / 1e6, "MB", anchor=f"estimate {case.megabytes:g}"),
    ]


def _seconds(case: Case, link: str, made: Run, said: Expected) -> list[Row]:
    title, about = f"{case.title}, {link}", said.here_s if link == LOOPBACK else said.line_s
    aligned = [Row(f"{title}: alignment, not in it", made.align_s, "s")] if case.vertical else []
    return [
        Row(title, made.wall_s - made.align_s, "s", case.targets[link]),
        *aligned,
        Row(f"{title}: all daemons, two runs and their start", made.cpu_s, "CPU s"),
        Row(f"{title}: between the parties", made.compute_s, "s", anchor=f"said before: about {about:.3g}"),
        Row(f"{title}: more or less than said", _factor(made.compute_s, about), "times", MOST_FACTOR),
    ]


def _factor(one: float, other: float) -> float:
    """Return the factor, at least 1."""
    return max(one / other, other / one)


def main(arguments: Sequence[str]) -> None:
    options = dict(each.split("=", 1) for each in arguments if "=" in each)
    names = [each for each in arguments if "=" not in each] or list(CASES)
    links = options["links"].split(",") if "links" in options else list(LINKS)
    OUT.mkdir(parents=True, exist_ok=True)
    rows = [row for name in names for row in rows_of(CASES[name], links, int(options.get("runs", 3)))]
    publish("Synthetic tables as joint jobs, ε = 1", rows, OUT.parent / "bench-synthetic-jobs.json")


if __name__ == "__main__":
    main(sys.argv[1:])
