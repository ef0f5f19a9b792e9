"""Runs over the ICD-9 taxonomy: three levels, 915 codes, labels that a group and its only code share."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tests.support import jobs, reference
from tests.support.horizontal import run_led, run_sealed
from tests.support.reference import Categorical, Numeric, Problem
from tests.support.scores import PUBLISHED_NAMES
from tests.support.shared import shared

N_ROWS = 400


@pytest.mark.more
@pytest.mark.parametrize("goal", ["classification", "general"])
def test_one_holder_three_and_two_and_the_definition(goal: str) -> None:
    text = shared("data/diabetes130/icd9.csv").read_text()
    paths = [line.split(";")[::-1] for line in text.splitlines() if line]
    fields = {
        "version": "1",
        "name": "diagnoses",
        "partition": "single",
        "model": {"lkc": {"L": "2", "K": "5", "C": "1"}},
        "goal": goal,
        "score": PUBLISHED_NAMES[goal],
        "columns": {
            "diag": {"role": "qid", "taxonomy": "diag.csv", "refine": "children"},
            "days": {"role": "qid", "numeric": {"min": "0", "max": "14", "step": "1"}},
            "readmitted": {"role": "class", "domain": ["Y", "N"]},
        },
        "data": "table.csv",
    }
    bundle = jobs.bundle_of(fields, {"diag": text})
    rows = sample_of([path[-1] for path in paths])
    days = Numeric(list(range(15)))
    problem = Problem({"diag": Categorical(paths), "days": days}, "readmitted", {}, 2, 5, goal)
    expected = reference.anonymize(rows, problem)
    assert expected is not None
    table = jobs.coded(bundle, rows)
    outcome, release = jobs.run_single(bundle, table)
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release) == Counter(expected[1])
    assert any(row[0].endswith("*") for row in jobs.multiset(release))
    request, owner = jobs.request_of(bundle), np.random.default_rng(9).integers(0, 6, N_ROWS)
    for run, n in ((run_led, 3), (run_sealed, 2 if goal == "general" else 3)):
        results, _ = run(jobs.split_among(table, owner % n, n), request, record=False)
        assert all(jobs.turns(result.outcome) == expected[0] for result in results.values())


def sample_of(codes: list[str]) -> list[dict[str, str]]:
    """Codes 250 and 428 often, others seldom; longer stays are readmitted more often."""
    coins = random.Random(9)  # noqa: S311  rows of a test
    rows = []
    for _ in range(N_ROWS):
        often = coins.random() < 0.6
        code = coins.choice(["250", "250.01", "250.02", "428", "414"]) if often else coins.choice(codes)
        days = coins.randrange(14)
        readmitted = coins.random() < 0.2 + 0.03 * days + 0.2 * (code == "428")
        rows.append({"diag": code, "days": str(days), "readmitted": "Y" if readmitted else "N"})
    return rows
