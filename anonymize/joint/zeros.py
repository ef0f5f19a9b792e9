"""Rules that only compare numbers with 0, for many groups at once: each number is examined once.

Counts are by (group, item): an item is a child of a specialization, or a candidate to cut a group. Tests of a group
share numbers, so the numbers are listed first, and every test refers to its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools, Criterion, Form, Measure, Rule, alike
from anonymize.table import Ints

N = TypeVar("N", bound=np.generic)


@dataclass(frozen=True)
class ZeroTests:
    """Tests by a rule.

    slots:  tested slot of each test, group · n_items + item: int64, shape (n_tests,).
    taken:  wanted numbers of each test: int64, shape (n_tests, n_values).
    """

    rule: Rule
    slots: Ints = field(repr=False)
    taken: Ints = field(repr=False)


class ZeroForms:
    """Different forms of the criteria with rules on zeros alone."""

    def __init__(self, criteria: Sequence[Criterion], measures: Sequence[Measure]) -> None:
        """``measures``: of every row of the counts to come."""
        self.criteria = tuple(criterion for criterion in criteria if criterion.rule.of_zeros)
        number: dict[Form, int] = {}
        self._of_cases = {
            criterion: np.array(
                [[number.setdefault(form, len(number)) for form in forms] for forms in criterion.cases],
                dtype=np.int64,
            )
            for criterion in self.criteria
        }
        self.forms = tuple(number)
        """Forms in the order of their numbers."""
        self._factor = max((form.factor for form in number), default=1)
        row = {measure: i for i, measure in enumerate(measures)}
        n_terms = max((len(form.terms) for form in number), default=0)
        terms = [
            [(row[measure], factor) for measure, factor in form.terms]
            + [(0, 0)] * (n_terms - len(form.terms))
            for form in number
        ]
        self._terms = np.array(terms, dtype=np.int64).reshape(len(number), n_terms, 2)

    def bits(self, n_records: int) -> int:
        """Return the bits modulo which a number of ``n_records`` records is 0 only if it is 0; it may be negative."""
        return (self._factor * n_records).bit_length()

    def wanted(self, stakes: Sequence[Bools], present: Bools) -> Bools:
        """Return True for the numbers of some test: shape (n_forms, n_groups, n_items).

        stakes:   by criterion, the tested cases, shape (n_groups, n_cases) each.
        present:  True for the items of a group, shape (n_groups, n_items).
        """
        needed = np.zeros((len(self.forms), len(present)), dtype=bool)
        for criterion, stake in zip(self.criteria, stakes, strict=True):
            for forms in self._of_cases[criterion].T:
                np.logical_or.at(needed, forms, stake.T)
        wanted: Bools = needed[:, :, None] & present
        return wanted

    def numbers(self, wanted: Bools, counts: NDArray[N]) -> NDArray[N]:
        """Return the wanted numbers, in order, or shares of them: shape (n_wanted,).

        counts:  of shape (n_measures, n_groups, n_items): int64 or uint64, sums modulo 2^64.
        """
        form, group, item = np.nonzero(wanted)
        total = np.zeros(len(form), dtype=counts.dtype)
        for rows, factors in np.moveaxis(self._terms, 0, 2):
            total += counts[rows[form], group, item] * factors.astype(counts.dtype)[form]
        return total

    def tests(self, stakes: Sequence[Bools], present: Bools, wanted: Bools) -> Iterator[ZeroTests]:
        """Yield the tests, criteria with equal rules together."""
        place = np.cumsum(wanted).reshape(len(self.forms), -1) - 1
        stake_of = dict(zip(self.criteria, stakes, strict=True))
        for (rule, _), criteria in alike(self.criteria).items():
            slots, taken = [], []
            for criterion in criteria:
                tested = stake_of[criterion].T[:, :, None] & present
                case, slot = np.nonzero(tested.reshape(len(tested), -1))
                slots.append(slot)
                taken.append(place[self._of_cases[criterion][case], slot[:, None]])
            if any(len(slot) for slot in slots):
                yield ZeroTests(rule, np.concatenate(slots), np.concatenate(taken))
