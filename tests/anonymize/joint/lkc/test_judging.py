"""Tests of shared counts: smaller groups have narrower numbers, and the outcome is that of the counts."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.criteria.clear import Judge
from anonymize.criteria.confidence import Confidence
from anonymize.criteria.criterion import Criterion, Form, tallies_of
from anonymize.criteria.size import Size
from anonymize.joint.engine import Engine
from anonymize.joint.lkc import judging
from anonymize.joint.lkc.circuits import open_circuit
from anonymize.joint.lkc.judging import WIDTH_STEP, judged
from anonymize.table import Ints
from crypto.rounds import Rounds
from tests.support.pairs import at_the_pair

CRITERIA: tuple[Criterion, ...] = (
    Size(5),
    Confidence("s", 0, (1,), Fraction(2, 3)),
    Confidence("s", 0, (2,), Fraction(1, 7)),
)
N = 45_222


def table(seed: int) -> tuple[Ints, dict[Any, Ints]]:
    """Sizes of groups, from 1 record to all, and counts of two children of each, by measure."""
    rng = np.random.default_rng(seed)
    sizes = np.array([1, 2, 4, 5, 9, 15, 16, 17, 255, 256, 4095, 4096, N // 2, N])
    records, *values = tallies_of(CRITERIA)
    first = rng.integers(0, sizes + 1)
    counts = {records: np.stack([first, sizes - first], axis=1)}
    counts |= {value: rng.integers(0, counts[records] // 2 + 1) for value in values}
    return sizes, counts


def stakes_of(sizes: Ints) -> dict[Criterion, Any]:
    return {c: np.ones((len(sizes), len(c.cases)), dtype=bool) for c in CRITERIA}


@pytest.mark.parametrize("seed", range(8))
def test_the_outcome_is_that_of_the_counts(seed: int) -> None:
    sizes, counts = table(seed)
    masks = {
        m: np.random.default_rng(seed).integers(0, 1 << 62, c.shape, dtype=np.uint64)
        for m, c in counts.items()
    }

    def protocol(engine: Engine) -> Rounds[list[list[int]]]:
        leads = engine.role.value == "garbler"
        own = {m: c.astype(np.uint64) - masks[m] if leads else masks[m] for m, c in counts.items()}
        tests = list(judging.tests_of(CRITERIA, stakes_of(sizes), own, sizes, N))
        found = []
        for bits in (yield from judged(engine, tests)):
            outputs = yield from engine.run(open_circuit(()), len(bits), {"valid": bits})
            found.append(np.asarray(outputs["valid"]).reshape(-1).tolist())
        return found

    one, other = at_the_pair(protocol)
    assert one == other
    judge = Judge(CRITERIA, tuple(counts))
    flat = np.stack([each.reshape(-1) for each in counts.values()])
    expected = [bit for _, met in judge.met(flat) for bit in met.reshape(-1).tolist()]
    assert sum(map(sum, one)) == sum(expected)
    assert sum(map(len, one)) == len(expected)
    assert 0 < sum(expected) < len(expected)


def test_every_number_fits_its_width_and_few_widths_are_taken() -> None:
    sizes, counts = table(0)
    tests = list(
        judging.tests_of(
            CRITERIA, stakes_of(sizes), {m: c.astype(np.uint64) for m, c in counts.items()}, sizes, N
        )
    )
    for each in tests:
        signed = each.rule.title[0] == "sign"
        values = each.words.astype(np.int64)
        low, high = (-(1 << each.width - 1), 1 << each.width - 1) if signed else (0, 1 << each.width)
        assert low <= values.min() <= values.max() < high
    found = Counter((each.rule.title[0], each.width) for each in tests for _ in each.taken)
    expected = Counter[tuple[object, int]]()
    for kind, factor, sign in ("size", 1, 0), ("sign", 2, 1), ("sign", 6, 1):
        bits = [(factor * size).bit_length() + sign for size in sizes.tolist()]
        most = (N * (6 if sign else 1)).bit_length() + sign
        for each in bits:
            expected[kind, most - (most - each) // 4 * 4] += 2  # children
    assert found == expected
    assert WIDTH_STEP == 4


@pytest.mark.parametrize("factor", [1, 7, 3**30])
def test_bits_of_groups_are_those_of_their_sizes(factor: int) -> None:
    form = Form((((records := tallies_of(CRITERIA)[0]), factor),))
    sizes = [1, 2, 3, 4, 1000, 1023, 1024, 2**31 - 1]
    exact = [form.bits(size) for size in sizes]
    found = form.bits_of(np.array(sizes)).tolist()
    assert records in tallies_of(CRITERIA)
    assert all(bits <= more <= bits + 1 for bits, more in zip(exact, found, strict=True))
    assert factor > 2**20 or exact == found
