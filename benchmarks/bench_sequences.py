"""Paths and sets ([T] chapter 4): speed of a holder of all records, and loss of each way of suppressing.

`make bench AREA=sequences`. The data sets of [T] are not public: benchmarks/movements.py has two similar sets, so
ratios compare and absolute figures do not. [T]'s figures are printed for comparison. Seconds in memory are seconds
of a single core; runs from CSV to CSV are runs of `coordinator run` in a separate process.

    python -m benchmarks.bench_sequences [memory] [csv] [loss] [by] [exclusion]
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.optimize import Bounds as Range
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_array

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.lkc.requirement import Ask
from anonymize.table import Ints, Schema, SensitiveColumn
from anonymize.trajectory.everywhere import (
    Frequent,
    Violations,
    minimal_violating,
    suppress_everywhere,
    taken,
)
from anonymize.trajectory.exclusion import exclusion
from anonymize.trajectory.frequent import Itemset, maximal_frequent
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.metrics import frequent_loss, loss_of
from anonymize.trajectory.paths import Paths, paths_of, without
from anonymize.trajectory.repair import repaired
from anonymize.trajectory.requirement import Bounds, bounds_of
from anonymize.trajectory.sweep import Search, Suppressed, answered, local_alone
from anonymize.verification.sequences import Claim, bound_of, examine
from benchmarks.movements import Readings, city, crowd, diagnoses, metro, tracks
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, median, median_cpu_s, publish, run_process
from jointcut.launcher import command

MILLION = 1_000_000
MOST = 1 << 25
"""Maximum number of counted sequences of a size: no table here has so many."""
FREQUENT = Fraction(1, 100)
SOLVER_S = 60
K, C, L = 30, Fraction(3, 5), 3


class Even:
    """A cost equal for all items."""

    def __init__(self, violations: Violations) -> None:
        self.counts: Ints = np.ones_like(violations.gains)

    def take(self, item: int) -> None:
        """Leave the cost unchanged."""


class LossAlone(Frequent):
    """A cost that ignores the gain: the score of an item is 1 / its loss."""

    def __init__(self, violations: Violations, frequent: Sequence[Itemset]) -> None:
        super().__init__(frequent, len(violations.gains))
        self._violations = violations

    @property
    def counts(self) -> Ints:
        return super().counts * np.maximum(self._violations.gains, 1)


@dataclass(frozen=True)
class Case:
    """A table and its requirement; the first sensitive value is protected."""

    name: str
    readings: Readings
    L: int = L
    K: int = K
    C: Fraction = C
    mined: bool = True
    """True to look for maximal frequent sequences; False if 1 % of the records are one or two records."""

    @cached_property
    def collapsed(self) -> tuple[Paths, Ints]:
        read = self.readings
        return paths_of(read.records, read.items, read.sensitive, read.domain)

    @property
    def paths(self) -> Paths:
        return self.collapsed[0]

    @property
    def schema(self) -> Schema:
        return Schema((), None, ("",), (SensitiveColumn("diagnosis", self.readings.values, (0,)),))

    @property
    def bounds(self) -> Bounds:
        demands = (Size(self.K), Confidences(self.C, (("diagnosis", self.C),)))
        return bounds_of(Ask(self.L, demands), self.schema)

    @property
    def vocabulary(self) -> Vocabulary:
        read = self.readings
        return Vocabulary(len(read.places), read.n_cells, timed=read.n_cells > 1)

    @property
    def claim(self) -> Claim:
        schema = self.schema
        of_cells = schema.axes(np.arange(schema.n_cells))[1]
        return Claim(self.L, self.K, (bound_of("diagnosis", [0], of_cells, self.C),))

    @property
    def least(self) -> int:
        """Records of a frequent sequence."""
        return math.ceil(FREQUENT * self.paths.n_records)

    def local(self) -> Suppressed:
        return local_alone(self.paths, self.bounds, MOST)

    def everywhere(self, *, frequent: bool) -> Suppressed:
        return suppress_everywhere(self.paths, self.bounds, MOST, self.least if frequent else None)

    def everywhere_by(self, cost: Callable[[Violations], Even | Frequent]) -> Suppressed:
        """Suppress globally at a given cost, which may depend on the remaining gain."""
        paths = self.paths
        found, sweep = minimal_violating(paths, self.bounds, MOST)
        violations = Violations(found, paths.domain)
        items = taken(violations, cost(violations))
        return Suppressed(without(paths, np.isin(paths.items, items)), (sweep,), items)

    def by_gain(self) -> Suppressed:
        """Suppress by [T] Score2: the gain alone."""
        return self.everywhere_by(Even)

    def by_loss(self) -> Suppressed:
        """Suppress by [T] Score3: 1 / loss alone."""
        frequent = maximal_frequent(self.paths, self.least, MOST)
        return self.everywhere_by(lambda violations: LossAlone(violations, frequent))

    def first_sweep(self) -> None:
        bounds = self.bounds
        answered(Search(self.paths, bounds, MOST).first(), lambda asked: bounds.kept(asked.counts))


def memory_rows() -> list[Row]:
    """Measure seconds of a single core, from paths in memory; [T]'s figures are of a 1.6 GHz Core2."""
    rows = []
    limits: Mapping[str, tuple[Case, float | None, str]] = {
        "City-like 80 k": (Case("", city()), 0.5, "[T]: every case within 15 s"),
        "Metro-like 100 k": (Case("", metro()), None, "[T]: every case within 15 s"),
        "Metro-like 1 M": (Case("", metro(MILLION)), 5, "[T]: 46 s, and 79 s to read and write"),
    }
    for name, (case, limit, anchor) in limits.items():
        found = case.local()
        left = found.paths
        distinct = f"{case.paths.n_paths:,} distinct records, {case.paths.n_instances:,} readings"
        tested = f"{len(found.sweeps)} sweeps, {sum(sum(s.tested) for s in found.sweeps):,} sequences tested"
        works: Mapping[str, tuple[Callable[[], object], float | None, str]] = {
            "collapse": (lambda case=case: Case("", case.readings).paths, None, distinct),
            "one sweep": (case.first_sweep, limit, anchor),
            "local": (case.local, None, tested),
            "verify": (lambda left=left, case=case: examine(left, case.claim), None, ""),
            "exclusion": (lambda left=left, case=case: _excluded(case, left), None, ""),
        }
        for what, (work, target, said) in works.items():
            rows.append(Row(f"{name}: {what}", median_cpu_s(work), "CPU s", target, anchor=said))
    return rows


def _excluded(case: Case, left: Paths) -> object:
    return exclusion(case.paths, left, left, case.vocabulary, case.bounds)


def job_of(case: Case, **rest: Any) -> dict[str, Any]:
    """Return the job that reads the output of :meth:`Readings.write`."""
    read = case.readings
    model = {"sequences": {"L": case.L, "K": case.K, "C": str(case.C), "max_candidates": MOST}}
    columns = {
        "who": {"role": "id"},
        "place": {"role": "location", "domain": list(read.places)},
        "time": {"role": "time", "numeric": {"min": 0, "max": read.n_cells, "step": 1}},
        "diagnosis": {"role": "sensitive", "domain": list(read.values), "values": [read.values[0]]},
    }
    return {
        "version": 1,
        "name": "sequences",
        "partition": "single",
        "model": model,
        "columns": columns,
    } | rest


def csv_rows(runs: int) -> list[Row]:
    """Measure from CSV to CSV, verified, in a separate process; the peak includes Python and its libraries.

    A process inherits the peak of its parent, so tables are also made in a separate process.
    """
    rows = []
    limits = {
        "City-like 80 k": ("city", city(10), 80_000, 4, None, ""),
        "Metro-like 1 M": ("metro", metro(10), MILLION, 30, 2048, "[T]: 125 s, global, one core of 1.6 GHz"),
    }
    with tempfile.TemporaryDirectory(dir=OUT.parent) as name:
        folder = Path(name)
        for title, (kind, few, n_records, most_s, most_mib, anchor) in limits.items():
            table = folder / "readings.csv"
            written = [sys.executable, "-m", "benchmarks.movements", kind, str(n_records), str(table)]
            subprocess.run(written, check=True)
            path = folder / "job.yaml"
            path.write_text(yaml.safe_dump(job_of(Case("", few), data=table.name), sort_keys=False))
            run = [*command("coordinator"), "run", str(path), "--out"]
            found = median([run_process([*run, str(folder / f"{title}-{i}")]) for i in range(runs)])
            said = f"{found.cpu_s:.1f} CPU s" + (f"; {anchor}" if anchor else "")
            rows.append(Row(f"{title}: CSV to CSV, verified", found.wall_s, "s", most_s, anchor=said))
            rows.append(Row(f"{title}: peak", found.peak_mb, "MiB", most_mib))
    return rows


def loss_rows() -> list[Row]:
    """Measure the loss at equal protection, by the way of suppressing."""
    small = {"L": 2, "K": 3, "C": Fraction(1), "mined": False}
    cases = [
        Case("City-like", city()),
        Case("City-like, 0.1 % at random", city(irregular=0.001)),
        Case("City-like, 1 % at random", city(irregular=0.01)),
        Case("City-like, 800 routes", city(routes=800, skew=0.9)),
        Case("Metro-like 100 k", metro()),
        Case("diabetes130, ICD-9 sets, K=20 C=1", diagnoses(), 3, 20, Fraction(1)),
        Case("gps_aracaju, 0.02° × hour, L=2 K=3", tracks(), **small),
        Case("gps_aracaju, places only, L=2 K=3", tracks(timed=False), **small),
    ]
    rows = []
    for case in cases:
        ways = {
            "local": case.local,
            "global, cost: instances": lambda case=case: case.everywhere(frequent=False),
        }
        if case.mined:
            ways |= {
                "global, cost: frequent": lambda case=case: case.everywhere(frequent=True),
                "global, [T] Score2": case.by_gain,
                "global, [T] Score3": case.by_loss,
            }
        of_case = [_loss(case, way, work()) for way, work in ways.items()]
        rows += [*of_case, _best(case, min(row.value for row in of_case[1:]))]
    return rows


def _loss(case: Case, way: str, found: Suppressed) -> Row:
    """Measure lost readings, and the fate of the maximal frequent sequences at K' = 1 %."""
    before = case.paths
    loss = loss_of(before, found.paths)
    said = [f"{loss.touched / before.n_records:.1%} of records touched"]
    frequent = frequent_loss(before, found.paths, case.least, MOST) if case.mined else None
    if frequent is not None:
        said.append(f"MFS lost {frequent.before - frequent.kept}/{frequent.before}, after {frequent.after}")
        said.append(
            f"support lost {frequent.mean_support_lost:.1%}, at most {frequent.greatest_support_lost:.0%}"
        )
    if way == "local":
        said.append(f"{len(found.sweeps)} sweeps")
    return Row(
        f"{case.name}: {way}", 100 * loss.lost / loss.instances, "% of readings", anchor="; ".join(said)
    )


def _best(case: Case, greedy: float) -> Row:
    """Find the least loss of readings under global suppression: each minimal violating sequence loses an item.

    greedy:  the loss if items are suppressed step by step.
    """
    before = case.paths
    violating, _ = minimal_violating(before, case.bounds, MOST)
    cost = np.bincount(before.items, np.repeat(before.weights, before.lengths), before.domain)
    lines = [each.reshape(-1).astype(np.int64) for each in violating]
    sizes = np.concatenate([np.full(len(each), each.shape[1]) for each in violating])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    items = np.concatenate(lines)
    used, place = np.unique(items, return_inverse=True)
    matrix = csr_array((np.ones(len(items)), place, starts), shape=(len(sizes), len(used)))
    result = milp(
        cost[used],
        constraints=LinearConstraint(matrix, lb=1),
        bounds=Range(0, 1),
        integrality=np.ones(len(used)),
        options={"time_limit": SOLVER_S},
    )
    share = 100 / before.n_instances
    value = min(greedy, math.inf if result.fun is None else result.fun * share)
    closed = "closed" if result.status == 0 else f"not closed in {SOLVER_S} s"
    least = "" if result.mip_dual_bound is None else f"at least {result.mip_dual_bound * share:.1f} %; "
    said = f"{least}{closed}; {len(sizes):,} minimal violating sequences"
    return Row(f"{case.name}: global, best known", value, "% of readings", anchor=said)


def by_rows() -> list[Row]:
    """Measure lost MFS by K and by C, as in [T] Figures 4.4, 4.5 and 4.7; [T] prints only two of the numbers."""
    rows = []
    cities, trips = city(), metro()
    cases = [Case(f"City-like, K={k}", cities, K=k) for k in (10, 20, 30, 40, 50)]
    cases += [Case(f"City-like, C={c} %", cities, C=Fraction(c, 100)) for c in (25, 30, 40)]
    cases += [Case(f"City-like, L={known}", cities, L=known) for known in (1, 2, 3, 4, 5)]
    cases += [Case(f"Metro-like 100 k, K={k}", trips, K=k) for k in (10, 20, 30, 40, 50)]
    printed = {"Metro-like 100 k, K=10": "[T]: 29 %", "Metro-like 100 k, K=50": "[T]: 66 %"}
    for case in cases:
        for way, found in (
            ("local", case.local()),
            ("global, cost: frequent", case.everywhere(frequent=True)),
        ):
            frequent = frequent_loss(case.paths, found.paths, case.least, MOST)
            assert frequent is not None
            lost = loss_of(case.paths, found.paths)
            said = [f"{100 * lost.lost / lost.instances:.2f} % of readings"]
            if way != "local" and case.name in printed:
                said.append(printed[case.name])
            share = 100 * (1 - frequent.kept / frequent.before)
            rows.append(Row(f"{case.name}: {way}", share, "% of MFS lost", anchor="; ".join(said)))
    return rows


def exclusion_rows() -> list[Row]:
    """Measure inference by exclusion, and the cost of repair."""
    cases = [
        Case("City-like", city()),
        Case("City-like, 800 routes", city(routes=800, skew=0.9)),
        Case("Metro-like 100 k", metro()),
        Case("everybody read every hour, L=2", crowd(), L=2),
    ]
    rows = []
    for case in cases:
        paths, number = case.collapsed
        for way, left in (("local", case.local().paths), ("global", case.everywhere(frequent=False).paths)):
            found = exclusion(paths, left, left, case.vocabulary, case.bounds)
            assert found is not None
            said = f"{found.n_exposed} sequences exposed; fewest candidates {found.least}"
            rows.append(Row(f"{case.name}: {way}, exposed", found.records, "records", anchor=said))
        if found.exposed:
            bounds = case.bounds
            mended = repaired(
                paths, number, lambda p, b=bounds: local_alone(p, b, MOST).paths, case.vocabulary, bounds
            )
            said = f"{mended.turns} turns, {mended.emptied} readings emptied"
            lost = 100 * (1 - mended.left.n_instances / paths.n_instances)
            rows.append(Row(f"{case.name}: local, repaired", lost, "% of readings", anchor=said))
    return rows


def main(parts: Sequence[str]) -> None:
    made: Mapping[str, Callable[[], list[Row]]] = {
        "memory": memory_rows,
        "csv": lambda: csv_rows(3),
        "loss": loss_rows,
        "by": by_rows,
        "exclusion": exclusion_rows,
    }
    OUT.mkdir(parents=True, exist_ok=True)
    rows = [row for part, make in made.items() if not parts or part in parts for row in make()]
    publish("sequences", rows, OUT.parent / "bench-sequences.json")


if __name__ == "__main__":
    main(sys.argv[1:])
