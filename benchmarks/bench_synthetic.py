"""Comparison of a synthetic table with other methods by worth. `make bench AREA=synthetic`.

Learners are trained on synthetic rows and tested on unused real rows: Adult's own test rows, or a third of a table
held back from all choices (benchmarks/bench_synthetic_tuning.py). Distances are from the rows that the table was
made of. The figures are means over seeds with standard errors.

The benchmark can be run in parts: results are kept in out/, each method, ε and seed once.

    python -m benchmarks.bench_synthetic [TABLE ...] [methods=synthetic,DiffGen] [epsilons=0.1,1] [seeds=10]
    [from=0]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction

from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish
from benchmarks.synthetic_joint import JOINT
from benchmarks.synthetic_methods import METHODS
from benchmarks.synthetic_tables import TRAINING, Coded, adult, halves
from benchmarks.synthetic_utility import Worth, accuracies, means, worth_of

EPSILONS = ("0.1", "0.25", "0.5", "1")
LEAST_ACCURACY = {"0.1": 80.5, "0.25": 82.5, "0.5": 83.3, "1": 83.3}
MOST_DISTANCE = {"0.1": 13.0, "0.25": 8.0, "0.5": 6.0, "1": 4.6}
TABLES = ("Adult", "diabetes130", "support2")
KEPT = OUT / "synthetic"


def parts(name: str) -> tuple[Coded, Coded]:
    """Return the rows for making tables, and the rows for testing learners."""
    return adult() if name == "Adult" else halves(TRAINING[name](), 2 / 3, seed=1)


def measured(name: str, method: str, epsilon: str, seeds: Sequence[int]) -> list[Worth]:
    """Return the measures of each seed; make missing measures now."""
    path = KEPT / f"{name}-{method}-{epsilon}.json"
    kept = {int(seed): each for seed, each in json.loads(path.read_text()).items()} if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    train, test = parts(name)
    for seed in seeds:
        if seed not in kept:
            made = {**METHODS, **JOINT}[method](train, Fraction(epsilon), 1000 + seed)
            kept[seed] = asdict(worth_of(made, train, test))
            path.write_text(json.dumps(kept))
    return [Worth(**kept[seed]) for seed in seeds]


def rows_of(name: str, method: str, epsilon: str, seeds: Sequence[int]) -> list[Row]:
    worth, error = means(measured(name, method, epsilon, seeds))
    aims: Mapping[str, tuple[float | None, str]] = dict.fromkeys(("tree", "boosting"), (None, "more"))
    aims = {**aims, "one_way": (None, "less"), "two_way": (None, "less")}
    if (name, method) == ("Adult", "synthetic"):
        least, most = (LEAST_ACCURACY[epsilon], "more"), (MOST_DISTANCE[epsilon], "less")
        aims = {**aims, "tree": least, "boosting": least, "two_way": most}
    said = {"tree": "tree", "boosting": "boosting", "one_way": "TV, one column", "two_way": "TV, two columns"}
    return [
        Row(
            f"{name}, {method}, ε={epsilon}: {said[of]}",
            getattr(worth, of),
            "%",
            aim,
            better,
            f"standard error {getattr(error, of):.2f}, {len(seeds)} seeds",
        )
        for of, (aim, better) in aims.items()
    ]


def real(name: str) -> list[Row]:
    """Measure without privacy."""
    train, test = parts(name)
    tree, boosting = accuracies(train, test)
    return [Row(f"{name}, real rows: tree", tree, "%"), Row(f"{name}, real rows: boosting", boosting, "%")]


def main(arguments: Sequence[str]) -> None:
    options = dict(each.split("=", 1) for each in arguments if "=" in each)
    names = [each for each in arguments if "=" not in each] or TABLES
    methods = options["methods"].split(",") if "methods" in options else list(METHODS)
    first = int(options.get("from", 0))
    seeds = range(first, first + int(options.get("seeds", 10)))
    rows: list[Row] = []
    for name in names:
        rows += real(name)
        for epsilon in options.get("epsilons", ",".join(EPSILONS)).split(","):
            for method in methods:
                rows += rows_of(name, method, epsilon, seeds)
    publish("synthetic tables", rows, OUT.parent / "bench-synthetic.json")


if __name__ == "__main__":
    main(sys.argv[1:])
