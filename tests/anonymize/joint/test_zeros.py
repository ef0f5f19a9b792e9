"""Rules of zeros: every number is there once, and every test takes those of its case."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from anonymize.criteria.confidence import Confidence
from anonymize.criteria.criterion import Criterion, tallies_of
from anonymize.criteria.mixed import Mixed
from anonymize.criteria.ruled_out import Diversity
from anonymize.criteria.search import RuledColumn
from anonymize.criteria.size import Size
from anonymize.joint.zeros import ZeroForms

COLUMNS = (RuledColumn(0, 3, (0, 1)), RuledColumn(1, 2, (1,)))
MIXED = (Mixed("s", 0, (0, 1)), Mixed("t", 1, (1,)))


def test_tests_take_the_numbers_of_their_cases_each_of_which_is_there_once() -> None:
    criteria: list[Criterion] = [Size(3), *MIXED, Diversity(COLUMNS, 3)]
    measures = tallies_of(criteria)
    rng = np.random.default_rng(5)
    n_groups, n_items = 4, 3
    counts = rng.integers(0, 9, (len(measures), n_groups, n_items))
    present = rng.random((n_groups, n_items)) < 0.7
    forms = ZeroForms(criteria, measures)
    assert forms.criteria == (*MIXED, criteria[-1])
    stakes = [rng.random((n_groups, len(c.cases))) < 0.5 for c in forms.criteria]
    wanted = forms.wanted(stakes, present)
    numbers = forms.numbers(wanted, counts)
    shares = forms.numbers(wanted, counts.astype(np.uint64))
    assert (shares.astype(np.int64) == numbers).all()
    by_measure = dict(zip(measures, counts, strict=True))
    expected: Counter[tuple[object, int, tuple[int, ...]]] = Counter()
    distinct = set()
    for criterion, stake in zip(forms.criteria, stakes, strict=True):
        for case, of_case in enumerate(criterion.cases):
            values = [form.of(by_measure) for form in of_case]
            for group, item in np.argwhere(present & stake[:, case][:, None]).tolist():
                taken = tuple(int(value[group, item]) for value in values)
                expected[criterion.rule, group * n_items + item, taken] += 1
                distinct |= {(form, group, item) for form in of_case}
    found = Counter(
        (tests.rule, slot, tuple(taken))
        for tests in forms.tests(stakes, present, wanted)
        for slot, taken in zip(tests.slots.tolist(), numbers[tests.taken].tolist(), strict=True)
    )
    assert found == expected
    assert (
        len(numbers)
        == len(distinct)
        < sum(len(c.cases[0]) * s.sum() for c, s in zip(forms.criteria, stakes, strict=True))
    )
    assert len(expected) > 10


def test_numbers_that_are_not_0_are_not_0_in_their_bits() -> None:
    forms = ZeroForms(MIXED, tallies_of(MIXED))
    assert [forms.bits(n) for n in (1, 7, 8)] == [1, 3, 4]


def test_where_no_rule_looks_at_zeros_there_is_nothing() -> None:
    criteria: list[Criterion] = [Size(2), Confidence("s", 0, (0,), Fraction(1, 2))]
    forms = ZeroForms(criteria, tallies_of(criteria))
    present = np.ones((2, 2), dtype=bool)
    assert forms.criteria == ()
    assert not forms.wanted([], present).any()
