"""Comparison of synthetic tables of several holders and of a single holder by worth. `make bench
AREA=synthetic`.

Adult, ε and figures as in :mod:`benchmarks.bench_synthetic`, `edges: auto`: full protocol runs by three holders of
rows and by two of columns, next to as many runs of a single holder. Both draw from the same law up to δ, so a
difference of their means is chance, printed in standard errors of the difference. A third of the differences are
above 1, a twentieth above 2. Results are kept and resumed as there.

    python -m benchmarks.bench_synthetic_joint [epsilons=0.1,1] [seeds=20]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from math import hypot

from benchmarks.bench_synthetic import EPSILONS, measured
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish
from benchmarks.synthetic_joint import JOINT
from benchmarks.synthetic_utility import Worth, means

TABLE, ALONE = "Adult", "synthetic"
MOST_ERRORS = 3.0
"""Maximum standard errors of a figure, among two dozen figures."""


def rows_of(epsilon: str, seeds: Sequence[int]) -> list[Row]:
    """Return the distances of the means of both kinds of joint runs from a single holder's mean."""
    one, own_error = means(measured(TABLE, ALONE, epsilon, seeds))
    rows = []
    for name in JOINT:
        joint, error = means(measured(TABLE, name, epsilon, seeds))
        for of in [field.name for field in fields(Worth)]:
            ours, theirs = getattr(joint, of), getattr(one, of)
            errors = (getattr(error, of), getattr(own_error, of))
            said = f"{ours:.2f} ± {errors[0]:.2f}, one holder {theirs:.2f} ± {errors[1]:.2f}"
            away = abs(ours - theirs) / hypot(*errors)
            rows.append(Row(f"{name}, ε={epsilon}: {of}", away, "errors", MOST_ERRORS, anchor=said))
    return rows


def main(arguments: Sequence[str]) -> None:
    options = dict(each.split("=", 1) for each in arguments)
    seeds = range(int(options.get("seeds", 20)))
    asked = options["epsilons"].split(",") if "epsilons" in options else EPSILONS
    rows = [row for epsilon in asked for row in rows_of(epsilon, seeds)]
    away = [row.value for row in rows]
    rows += [Row(f"figures more than {n} off", sum(a > n for a in away), f"of {len(away)}") for n in (1, 2)]
    publish(f"Joint synthetic tables, {len(seeds)} seeds", rows, OUT.parent / "bench-synthetic-joint.json")


if __name__ == "__main__":
    main(sys.argv[1:])
