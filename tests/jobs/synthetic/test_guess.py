"""Guessing from the released files whether one record, of a combination that no other has, is in the table.

Under ε-DP the number of correct guesses is stochastically below Bin(n, e^ε / (1 + e^ε)), whatever the rule (semantics
§8.6, point 4). What a party of a joint run sees besides: tests/anonymize/joint/synthetic/test_guess.py.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from anonymize.dp.noise import exact_noise
from anonymize.synthetic.single import synthesize_single
from anonymize.table import CodedTable
from jobs.synthetic.marginals import marginals_csv, measured_tables, read_marginals
from jobs.synthetic.requirement import requirement
from jobs.synthetic.table import synthetic_csv
from jobs.task import Task
from tests.support import jobs
from tests.support.dp_tables import table_of
from tests.support.guessing import LIMITS, bits_of, correct
from tests.support.rng import SeededRng
from tests.support.synthetic_jobs import synthetic_single

COLUMNS: dict[str, Any] = {
    "job": {"role": "qid", "taxonomy": {"Any": ["Janitor", "Lawyer"]}},
    "age": {"role": "qid", "numeric": {"min": "0", "max": "2", "step": "1"}},
    "ill": {"role": "class", "domain": ["N", "Y"]},
}
BASE = [(0, 0, 0), (0, 1, 0), (0, 0, 1)]
TRIALS = [LIMITS[0], pytest.param(*LIMITS[2], marks=pytest.mark.more)]
SECRET = (1, 1, 1)
"""A lawyer in the second cell, of class Y: no other record has any two of these."""


@cache
def task_of(epsilon: Fraction) -> Task:
    model = {"epsilon": str(epsilon), "edges": "1", "max_rows": "10"}
    return jobs.task_of(synthetic_single(model, columns=COLUMNS))


@cache
def released(epsilon: Fraction, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Secrets; by trial the log-likelihood ratio of all counts; by trial how many rows have the combination."""
    task = task_of(epsilon)
    tables = [table_of(task.schema, BASE), table_of(task.schema, [*BASE, SECRET])]
    noise, secrets = exact_noise(SeededRng((n, "synthetic"))), bits_of(n, ("synthetic", epsilon))
    told, rows = np.zeros(n), np.zeros(n)
    for trial, secret in enumerate(secrets):
        outcome = synthesize_single(tables[secret], requirement(task), noise)
        marginals = marginals_csv(outcome)
        told[trial] = _ratio(read_marginals(marginals, task), tables)
        rows[trial] = synthetic_csv(task, outcome).decode().count("Lawyer,1,Y")
    return secrets, told, rows


def _ratio(outcome: Any, tables: list[CodedTable]) -> float:
    """Return how much likelier these counts are with the record than without, as far as counts go."""
    found = 0.0
    for each in measured_tables(outcome):
        without, present = (abs(each.counts - each.marginal.counts(table)) for table in tables)
        found += float(each.rate) * float((without - present).sum())
    return found


@pytest.mark.more
@pytest.mark.parametrize(("epsilon", "n", "limit"), TRIALS)
def test_from_the_marginals(epsilon: Fraction, n: int, limit: int) -> None:
    secrets, told, _ = released(epsilon, n)
    assert correct(told > 0, secrets) < limit


@pytest.mark.more
@pytest.mark.parametrize(("epsilon", "n", "limit"), TRIALS)
def test_from_the_rows(epsilon: Fraction, n: int, limit: int) -> None:
    secrets, _, rows = released(epsilon, n)
    assert max(correct(rows >= least, secrets) for least in (1, 2)) < limit


@pytest.mark.more
def test_a_false_claim_is_caught() -> None:
    """The rule finds out a release that spends eight times what it says."""
    _, n, limit = LIMITS[0]
    secrets, told, _ = released(Fraction(8), n)
    assert correct(told > 0, secrets) >= limit
