"""Links of a class treated as a column, and the effect on learners.

Adult, goal general, `edges: auto`, the seeds of `make bench AREA=synthetic`: accuracy of tree and gradient
boosting, split by the presence in the forest of a pair of class and education (or the equivalent `education-num`).

    python -m benchmarks.bench_synthetic_general [epsilons=0.25,0.5] [seeds=20]
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from statistics import mean

from anonymize.synthetic.loop import SyntheticOutcome
from anonymize.synthetic.requirement import Synthetic
from benchmarks.synthetic_methods import MAX_ROWS, with_class, without_class
from benchmarks.synthetic_tables import adult
from benchmarks.synthetic_utility import accuracies, synthetic_rows

EDUCATION = frozenset({"education", "education-num"})
EPSILONS = "0.1,0.25,0.5,1"


def linked(outcome: SyntheticOutcome, of_class: str) -> frozenset[str]:
    """Return the columns measured together with the class."""
    names = [column.name for column in outcome.schema.qid]
    pairs = [{names[i] for i in measured.marginal.columns} for measured in outcome.opened.pairs]
    return frozenset().union(*(pair - {of_class} for pair in pairs if of_class in pair))


def main(arguments: Sequence[str]) -> None:
    options = dict(each.split("=", 1) for each in arguments)
    train, test = adult()
    rows, of_class = without_class(train), train.schema.class_name
    assert of_class is not None
    for epsilon in options.get("epsilons", EPSILONS).split(","):
        found = defaultdict(list)
        for seed in range(int(options.get("seeds", 20))):
            outcome, made = synthetic_rows(
                rows, Synthetic(Fraction(epsilon), None, max_rows=MAX_ROWS), 1000 + seed
            )
            knows = bool(linked(outcome, of_class) & EDUCATION)
            found[knows].append(accuracies(with_class(made, train.schema), test))
        for knows, of_runs in sorted(found.items()):
            tree, boosting = (mean(each) for each in zip(*of_runs, strict=True))
            print(
                f"ε={epsilon} education={knows}: {len(of_runs)} runs, {tree:.1f} / {boosting:.1f}", flush=True
            )


if __name__ == "__main__":
    main(sys.argv[1:])
