"""Vertical LKC on Adult: speed with running daemons, worth of integration ([T] figure 5.4), price of `insider`.

`make bench AREA=vertical`.

The clock runs from submit to delivered, set intersection included and also stated separately. Each party has 500
further people unknown to its peers.
"""

from __future__ import annotations

import csv
import hashlib
import os
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from anonymize.release import Release
from benchmarks.bench_lkc import account, run_repeatedly
from benchmarks.bench_utility import CLASS, raw_release, tree_error
from benchmarks.shared_jobs import OUT, shared_job
from benchmarks.support import Row, publish
from benchmarks.wide_area import relayed
from coordinator.run import run_in_process
from coordinator.simulate import sources_of
from jobs.loading import load_task
from jobs.release.csv import TABLE, read_csv
from tests.support.placed import placed

FIRST_NINE = (
    *("age", "education-num", "fnlwgt", "relationship", "race", "sex", "marital-status", "native-country"),
    "education",
)
"""[T] Table 5.5 in its order: the Immigration Department's columns; the Taxation Department has the rest."""
OTHER_FIVE = ("hours-per-week", "capital-gain", "capital-loss", "workclass", "occupation")
SENSITIVE = "marital-status"
EXTRA = 500
LKC = {"L": "4", "K": "50", "C": "0.2"}
WIDE_AREA = (20, 100)

Split = Mapping[str, Sequence[str]]
THESIS: Split = {"immigration": FIRST_NINE, "taxation": OTHER_FIVE}


def base() -> Path:
    """Return the shared job as written by make_jobs.py: two parties, columns in file order."""
    options = [f"{key}={value}" for key, value in LKC.items()]
    return shared_job("adult", "partition=vertical", "parties=2", f"extra={EXTRA}", *options)


def split_job(split: Split, lkc: Mapping[str, str], **keys: Any) -> Path:
    """Split the columns of the same people differently; return the folder."""
    source = base()
    fields = yaml.load((source / "job.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506  text only
    fields |= {"model": {"lkc": dict(lkc)}, "leader": next(iter(split)), **keys}
    fields["parties"] = {
        party: {"address": f"127.0.0.1:{7400 + i}", "columns": list(columns)}
        for i, (party, columns) in enumerate(split.items())
    }
    text = yaml.safe_dump(placed(fields), sort_keys=False)
    folder = OUT / "jobs" / hashlib.sha256((text + str(source)).encode()).hexdigest()[:16]
    if not folder.exists():
        work = folder.with_suffix(".new")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        (work / "job.yaml").write_text(text)
        for i, (party, columns) in enumerate(split.items()):
            _write_table(work / f"{party}.csv", source / "raw.csv", columns, i)
        work.rename(folder)
    return folder


def _write_table(path: Path, raw: Path, columns: Sequence[str], seed: int) -> None:
    """Write a party's columns of all shared and some extra people, in an order specific to the party."""
    coins = random.Random(seed)  # noqa: S311  which rows are doubled
    with raw.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows += [{**coins.choice(rows), "pid": f"X{seed}-{i:06d}"} for i in range(EXTRA)]
    coins.shuffle(rows)
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, ["pid", *columns, CLASS], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def speed_rows() -> list[Row]:
    """Measure two and three parties, with the sensitive column at either end."""
    p0, p1 = (entry["columns"] for entry in _parties(base()).values())
    moved = {"p0": [c for c in p0 if c != SENSITIVE], "p1": [*p1, SENSITIVE]}
    names = [*p0, *p1]
    thirds, tenths = ({f"p{i}": names[i * 14 // n : (i + 1) * 14 // n] for i in range(n)} for n in (3, 10))
    rows = []
    for name, folder, target in (
        ("2 parties, sensitive at p0", base(), 12),
        ("2 parties, sensitive at p1", split_job(moved, LKC), 12),
        ("2 parties, [T] Table 5.5", split_job(THESIS, LKC), 12),
        ("2 parties, scores in the clear", split_job(THESIS, LKC, disclosure="leader"), None),
        ("3 parties, in thirds", split_job(thirds, LKC), 2.5),
        ("10 parties, in tenths", split_job(tenths, LKC), 6),
        ("2 parties, L=3 K=20 C=0.5", split_job(THESIS, {"L": "3", "K": "20", "C": "0.5"}), None),
    ):
        rows += _timed(name, folder, target, *run_repeatedly(folder, runs=3))
    rtt, rate = WIDE_AREA
    measured = run_repeatedly(base(), 1, lambda ports: relayed(ports, rtt, rate))
    return [*rows, *_timed(f"2 parties, {rtt} ms round trip, {rate} Mbit/s", base(), None, *measured)]


def _parties(folder: Path) -> dict[str, Any]:
    fields: dict[str, Any] = yaml.safe_load((folder / "job.yaml").read_text())["parties"]
    return fields


def _timed(
    name: str, folder: Path, target: float | None, seconds: float, report: dict[str, Any]
) -> list[Row]:
    """Return the whole time, and the time of the alignment at the slowest party."""
    phases = [cost["phases"] for cost in report["cost"]["parties"].values()]
    align = max(p["align"]["seconds"] for p in phases)
    made = len(report["specializations"])
    return [
        Row(
            name,
            seconds,
            "s",
            target,
            anchor=f"{made} specializations; {account(report)}",
            detail=report["cost"],
        ),
        Row(f"{name}: of it set intersection", align, "s"),
    ]


def released(split: Split, lkc: Mapping[str, str], **keys: Any) -> tuple[Release, dict[str, Any]]:
    """Run a job, all parties in this process; return its table and report."""
    folder, out = split_job(split, lkc, **keys), OUT / "vertical"
    shutil.rmtree(out, ignore_errors=True)
    task = load_task(folder / "job.yaml")
    run_in_process(task, sources_of(task, {p: folder / f"{p}.csv" for p in split}), out)
    report = yaml.safe_load((out / "report.json").read_text())
    return read_csv(out / TABLE, task.job.published), report


def utility_rows() -> list[Row]:
    """Measure errors of a decision tree: on each party's own raw columns, on the joint tables, on the raw join."""
    raw, predictors = raw_release(base()), (*FIRST_NINE, *OTHER_FIVE)
    own = tree_error(raw, FIRST_NINE), tree_error(raw, OTHER_FIVE)
    rows = [
        Row("SE(A): first nine columns alone, raw", own[0], "%", anchor="[T] 17.7"),
        Row("SE(B): other five columns alone, raw", own[1], "%", anchor="[T] 17.9"),
        Row("BE: raw join", tree_error(raw, predictors), "%", anchor="[T] 14.7"),
    ]
    for K in (20, 40, 60, 80, 100):
        release, report = released(THESIS, {"L": "4", "K": str(K), "C": "0.2"})
        error = tree_error(release, predictors)
        said = f"SE - CE = {own[0] - error:+.1f} and {own[1] - error:+.1f} ([T], K=100: about +1.5); {_made(report)}"
        rows.append(Row(f"CE: joint table, L=4 K={K} C=0.2", error, "%", anchor=said))
    return rows


def insider_rows() -> list[Row]:
    """Measure the cost of holding the parties to C, too."""
    rows = []
    for L, K, C in (("2", "20", "0.5"), ("4", "20", "0.2"), ("4", "50", "0.3")):
        for insider in ("false", "true"):
            release, report = released(THESIS, {"L": L, "K": K, "C": C}, insider=insider)
            name = f"CE: L={L} K={K} C={C}, insider: {insider}"
            error = tree_error(release, (*FIRST_NINE, *OTHER_FIVE))
            rows.append(Row(name, error, "%", anchor=_made(report), detail=report["exposed_to_parties"]))
    return rows


def _made(report: dict[str, Any]) -> str:
    """Describe a table."""
    exposed, metrics = report["exposed_to_parties"], report["metrics"]
    return (
        f"{len(report['specializations'])} specializations, {metrics['leaf_partitions']} leaf partitions, "
        f"discernibility {metrics['discernibility_ratio']:.4f}; {exposed['homogeneous']} records in homogeneous "
        f"cells, {exposed['above_c'][SENSITIVE]} above C"
    )


def main() -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  progress lines of the runs
    rows = [*speed_rows(), *utility_rows(), *insider_rows()]
    publish("Vertical LKC, Adult", rows, OUT.parent / "bench-vertical.json")


if __name__ == "__main__":
    main()
