"""Cost of every score: seconds for a single holder, gates and seconds in a sealed run.

Part of `make bench AREA=lkc` (bench_lkc).

Seconds are CPU seconds of a single core. A sealed run computes all three parties in turn in a single process; its
gates are exact. `python -m benchmarks.score_costs` prints these rows alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.joint.lkc.sealed import anonymize_sealed
from anonymize.joint.roster import Roster
from anonymize.lkc.single import anonymize_single
from anonymize.table import CodedTable
from anonymize.tds import Observer
from benchmarks.bench_scores import WAYS, Setting, refined
from benchmarks.shared_jobs import OUT, shared_job
from benchmarks.support import Row, median_cpu_s, publish
from crypto.local import run_local
from crypto.rng import SystemRng
from jobs.data.sources import Csv
from jobs.loading import load_task
from jobs.reading import load_table

NAMES = ("a", "b", "c")
MANY = Setting(4, 20, Fraction(1))
STRICT, LOOSE = Setting(4, 50, Fraction(1, 5)), Setting(2, 20, Fraction(1))
TIMED = ("infogain", "tdr", "added", "added, refine child")


def table_of(*options: str) -> CodedTable:
    folder = shared_job("adult", *options)
    return load_table(Csv(folder / "raw.csv"), load_task(folder / "job.yaml")).table


def memory_rows() -> list[Row]:
    """Measure a single holder, in memory."""
    adult, million = table_of(), table_of("rows=1000000", "L=4", "K=20", "C=1")
    rows = []
    for title, table, setting, target, runs in (
        ("Adult, L=4 K=50 C=0.2", adult, STRICT, 0.3, 3),
        ("1 M rows, L=4 K=20 C=1", million, MANY, 2, 1),
        ("1 M rows, L=2 K=20 C=1", million, LOOSE, 6, 1),
    ):
        for name in TIMED:
            way = WAYS[name]
            given = refined(table, way)

            def run(
                given: CodedTable = given, setting: Setting = setting, score: JointScore = way.score
            ) -> None:
                anonymize_single(given, setting.asked(given), score)

            seconds = median_cpu_s(run, runs, warmup=0)
            rows.append(Row(f"{title}, in memory: {name}", seconds, "CPU s", target))
    return rows


@dataclass
class _Gates(Observer):
    """AND gates at a member of the pair."""

    count: int = 0

    def gates(self, count: int) -> None:
        self.count += count


@dataclass(frozen=True)
class Sealed:
    """A sealed run of three parties."""

    results: Mapping[str, JointOutcome]
    gates: int


def sealed_run(table: CodedTable, setting: Setting, score: JointScore, seed: int = 0) -> Sealed:
    """Deal out the rows at random and run. Raises SystemExit if the result differs from the single holder's."""
    owner = np.random.default_rng(seed).integers(0, len(NAMES), len(table.cells))
    request = Request(table.schema, setting.asked(table), score, bytes(32))
    watching = _Gates()
    results, _ = run_local(
        {
            me: anonymize_sealed(
                Roster(me, NAMES, *NAMES[:2]),
                table.some(np.flatnonzero(owner == number)),
                request,
                SystemRng(),
                mode="horizontal/sealed",
                observer=watching if number == 0 else None,
            )
            for number, me in enumerate(NAMES)
        }
    )
    alone = anonymize_single(table, request.requirement, score)
    if any(result.outcome.applied != alone.applied for result in results.values()):
        raise SystemExit("the sealed run is not that of a single holder")
    return Sealed(results, watching.count)


def sealed_rows() -> list[Row]:
    """Measure Adult, three parties."""
    table, rows = table_of(), []
    for title, setting in (("L=4 K=50 C=0.2", STRICT), ("L=2 K=20 C=1", LOOSE)):
        for name in TIMED:
            way = WAYS[name]
            found: list[Sealed] = []
            given = refined(table, way)

            def run(
                given: CodedTable = given,
                setting: Setting = setting,
                score: JointScore = way.score,
                found: list[Sealed] = found,
            ) -> None:
                found.append(sealed_run(given, setting, score))

            seconds = median_cpu_s(run, 1, warmup=0)
            steps = found[0].results[NAMES[0]].outcome.steps
            applied = sum(step.applied for step in steps)
            said = f"{found[0].gates / 1e6:.2f} M AND; {applied} applied, {len(steps) - applied} discarded"
            figure = f"Adult, sealed, three parties, {title}: {name}"
            rows.append(Row(figure, seconds, "CPU s", anchor=said, detail={"gates": found[0].gates}))
    return rows


def main() -> None:
    publish("What scores cost", [*sealed_rows(), *memory_rows()], OUT.parent / "bench-score-costs.json")


if __name__ == "__main__":
    main()
