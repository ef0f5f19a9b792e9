"""Choices of `method: synthetic` (anonymize/synthetic/requirement.py, Design), made on training rows.

A share of every table is for training. It is split again, into rows for making synthetic rows and rows for testing
the learners trained on synthetic rows. Adult's test rows are never read here. Every run is seeded.

    python -m benchmarks.bench_synthetic_tuning QUESTION [TABLE ...] [seeds=5] [epsilons=1/10,1/4,1/2,1]

QUESTION is a key of :data:`QUESTIONS`. For the answers see benchmarks/RESULTS.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from anonymize.synthetic.requirement import Design
from benchmarks.synthetic_tables import TRAINING, Coded, halves
from benchmarks.synthetic_utility import Worth, asked, means, synthetic_rows, worth_of

Variant = tuple[Design, int | None]
"""A design, and T; None: `auto`."""
MOST_ROWS = 30_000
"""Maximum rows of a table for training: more take long, and ε varies ε times the rows."""


def shares(leaves: int, choice: int, pair: int) -> Design:
    """Return a design; the first two arguments are percent of ε."""
    return replace(Design(), leaves=Fraction(leaves, 100), choice=Fraction(choice, 100), pair=pair)


QUESTIONS: Mapping[str, Mapping[str, Variant]] = {
    "edges": {f"T={n}": (Design(), n) for n in (0, 1, 2, 3, 5, 7, 9, 12)},
    "auto": {
        f"(T + 1)² = εN/{unit}d": (replace(Design(), within_classes=unit), None) for unit in (7, 12, 20, 35)
    },
    "shares": {
        f"{leaves}/{choice}/{pair}": (shares(leaves, choice, pair), None)
        for leaves, choice, pair in (
            (25, 10, 2),
            (25, 10, 1),
            (25, 10, 4),
            (25, 5, 2),
            (15, 10, 2),
            (35, 10, 2),
            (35, 5, 2),
            (45, 5, 2),
        )
    },
    "theta": {
        f"θ={theta}": (replace(Design(), theta=Fraction(theta)), None)
        for theta in ("1", "2", "2.8", "4", "6")
    },
    "bins": {f"{n} bins": (replace(Design(), grid_bins=n), None) for n in (8, 12, 16, 24)},
    "values": {f"{n} bins": (replace(Design(), taxonomy_bins=n), None) for n in (8, 16, 32, 64)},
}


@cache
def parts(name: str) -> tuple[Coded, Coded]:
    """Return the rows for making tables, and the rows for testing learners."""
    rows = TRAINING[name]()
    training = rows if name == "Adult" else halves(rows, 2 / 3, seed=1)[0]
    if len(training.classes) > MOST_ROWS:
        training = halves(training, MOST_ROWS / len(training.classes), seed=3)[0]
    return halves(training, 2 / 3, seed=2)


def measured(name: str, epsilon: str, variant: Variant, seeds: int) -> tuple[Worth, Worth, float]:
    """Return the means of some runs, their standard errors, and the mean number of measured pairs."""
    (train, test), (design, edges) = parts(name), variant
    if edges is not None:
        edges = min(edges, len(train.schema.qid) - 1)
    found, n_edges = list[Worth](), 0
    for seed in range(seeds):
        outcome, made = synthetic_rows(train, asked(epsilon, edges, design), seed)
        found.append(worth_of(made, train, test))
        n_edges += len(outcome.opened.pairs)
    return *means(found), n_edges / seeds


def main(arguments: Sequence[str]) -> None:
    options = dict(each.split("=", 1) for each in arguments if "=" in each)
    question, *names = [each for each in arguments if "=" not in each]
    print("table, ε, variant: tree, gradient boosting, TV₁, TV₂ in % (standard error); pairs", flush=True)
    for name in names or TRAINING:
        for epsilon in options.get("epsilons", "1/10,1/4,1/2,1").split(","):
            for said, variant in QUESTIONS[question].items():
                worth, error, n_edges = measured(name, epsilon, variant, int(options.get("seeds", 5)))
                figures = ", ".join(
                    f"{getattr(worth, of):.1f} ({getattr(error, of):.1f})"
                    for of in ("tree", "boosting", "one_way", "two_way")
                )
                print(f"{name}, {epsilon}, {said}: {figures}; {n_edges:.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
