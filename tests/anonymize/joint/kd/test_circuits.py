"""Circuits of sealed kd against integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from anonymize.criteria.clear import InTheClear
from anonymize.criteria.criterion import Rule
from anonymize.criteria.distinct import EnoughAbove
from anonymize.criteria.mixed import NotAll
from anonymize.criteria.ruled_out import SomeoneLeft
from anonymize.joint.kd.circuits import TESTS_AT_ONCE, ends_circuit, zeros_circuit
from crypto.circuit import Held, evaluate


def test_who_has_nothing_left_or_right_of_a_cut() -> None:
    width = 3
    cases = [(left, whole, s) for whole in range(8) for left in range(whole + 1) for s in range(8)]
    left, whole, share = np.array(cases, dtype=np.uint64).T
    low = np.uint64(7)
    inputs = {
        Held.GARBLER.value: np.stack([share, share - whole], axis=1) & low,
        Held.EVALUATOR.value: ((share - left) & low).reshape(-1, 1),  # less our share, which is left - share
    }
    circuit = ends_circuit(width)
    found = evaluate(circuit, len(cases), inputs)
    assert found["none"][:, 0].tolist() == (left == 0).tolist()
    assert found["all"][:, 0].tolist() == (left == whole).tolist()
    assert circuit.and_gates == 2 * (width - 1)


@pytest.mark.parametrize(("rule", "n_values"), [(SomeoneLeft(), 2), (NotAll(), 2), (EnoughAbove(2, 3), 3)])
def test_both_sides_pass_all_tests_by_their_zeros(rule: Rule, n_values: int) -> None:
    """As in the clear, of all tests of zeros and ones next to some that pass or fail."""
    tests = list(itertools.product(*[(0, 1)] * n_values))
    rng = np.random.default_rng(4)
    rows = rng.integers(0, len(tests), (200, 2, TESTS_AT_ONCE))
    values = np.array(tests)[rows]  # of every row, side and test
    met = rule.met(InTheClear(), list(np.moveaxis(values, 3, 0))).all(axis=(1, 2))
    none, all_ = (np.moveaxis(values == 0, 1, 0).reshape(2, len(rows), -1)).astype(np.uint64)
    found = evaluate(zeros_circuit(rule, n_values), len(rows), {"none": none, "all": all_})["met"]
    assert found[:, 0].astype(bool).tolist() == met.tolist()
    assert 0 < met.sum() < len(rows)
