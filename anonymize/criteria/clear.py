"""Criteria in the clear: tests over arrays with a number for each group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from anonymize.criteria.criterion import Bools, Criterion, Form, Measure, Violation
from anonymize.table import Ints


@dataclass(frozen=True)
class InTheClear:
    """Arithmetic on arrays. Words: int64, shape (n_groups,). Bits likewise. ``whole``: the group is the table."""

    whole: bool = False

    def at_least(self, word: Ints, least: int) -> Bools:
        return np.asarray(word >= least)

    def none_or_at_least(self, size: Ints, least: int) -> Bools:
        return self.is_empty(size) | self.at_least(size, least)

    def not_negative(self, word: Ints) -> Bools:
        return np.asarray(word >= 0)

    def is_zero(self, word: Ints) -> Bools:
        return np.asarray(word == 0)

    def is_empty(self, size: Ints) -> Bools:
        return np.zeros(size.shape, dtype=bool) if self.whole else self.is_zero(size)

    def negation(self, bit: Bools) -> Bools:
        return ~bit

    def any_of(self, bits: Sequence[Bools]) -> Bools:
        return reduce(np.logical_or, bits)

    def all_of(self, bits: Sequence[Bools]) -> Bools:
        return reduce(np.logical_and, bits)

    def count_of(self, bits: Sequence[Bools]) -> Ints:
        return np.asarray(np.sum(bits, axis=0, dtype=np.int64))

    def of_parts(self) -> InTheClear:
        return InTheClear()


class Judge:
    """Criteria for groups whose counts are the rows of an array. The row of each measure is looked up once."""

    def __init__(self, criteria: Sequence[Criterion], measures: Sequence[Measure]) -> None:
        """``measures``: of every row of the counts to come."""
        row = {measure: i for i, measure in enumerate(measures)}
        self._criteria = [
            (criterion, [_terms_of_cases(forms, row) for forms in zip(*criterion.cases, strict=True)])
            for criterion in criteria
        ]

    def met(self, counts: Ints, *, whole: bool = False) -> Iterator[tuple[Criterion, Bools]]:
        """Yield each criterion with the results of its rule: shape (n_cases, n_groups), (1, n_groups) for equal
        cases.

        counts:  int64, shape (n_measures, n_groups).
        """
        on = InTheClear(whole)
        for criterion, forms in self._criteria:
            yield criterion, criterion.rule.met(on, [_value(terms, counts) for terms in forms])

    def violation(self, counts: Ints, n_columns: int, *, whole: bool = False) -> Violation | None:
        """Return the first criterion that some group does not meet, or None; counts as in :meth:`met`."""
        for criterion, met in self.met(counts, whole=whole):
            if not met.all():
                return Violation(criterion.name, n_columns, criterion.column)
        return None

    def first_violation(self, counts: Ints, parts: Ints, n_columns: int) -> Violation | None:
        """Return the first criterion that some group of the first violating part does not meet, or None.

        counts:  as in :meth:`met`. parts: number of the part of each group, shape (n_groups,).
        """
        found: list[tuple[int, int, Violation]] = []
        for place, (criterion, met) in enumerate(self.met(counts)):
            broken = ~np.logical_and.reduce(met, axis=0)
            if broken.any():
                violation = Violation(criterion.name, n_columns, criterion.column)
                found.append((int(parts[broken].min()), place, violation))
        return min(found, key=lambda each: each[:2])[2] if found else None


@dataclass(frozen=True)
class _Term:
    """Term of every case of a criterion, or a single term for equal cases: the rows of its measures.

    factors:  factor of all cases, or by case with shape (n_cases, 1).
    """

    rows: slice | Ints = field(repr=False)
    n_rows: int
    factors: int | Ints = field(repr=False)

    def of(self, counts: Ints) -> Ints:
        """Return a new array, shape (n_rows, n_groups)."""
        words: Ints = counts[self.rows] * self.factors
        return words


def _value(terms: Sequence[_Term], counts: Ints) -> Ints:
    """Compute a form of all cases at once. The first term is the widest."""
    widest, *others = terms
    value = widest.of(counts)
    for term in others:
        value += term.of(counts)
    return value


def _terms_of_cases(forms: Sequence[Form], row: Mapping[Measure, int]) -> list[_Term]:
    """Return the terms of a form of every case. A form with fewer terms gets further terms with factor 0."""
    n_terms = max(len(form.terms) for form in forms)
    equally_many = [form.terms + ((form.terms[0][0], 0),) * (n_terms - len(form.terms)) for form in forms]
    terms = [_term(by_case, row) for by_case in zip(*equally_many, strict=True)]
    return sorted(terms, key=lambda term: -term.n_rows)


def _term(by_case: Sequence[tuple[Measure, int]], row: Mapping[Measure, int]) -> _Term:
    distinct = by_case[:1] if all(term == by_case[0] for term in by_case) else by_case
    rows = np.array([row[measure] for measure, _ in distinct], dtype=np.int64)
    factors = np.array([factor for _, factor in distinct], dtype=np.int64)
    return _Term(
        slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else rows,
        len(rows),
        int(factors[0]) if (factors == factors[0]).all() else factors[:, None],
    )


def met_by_group(criterion: Criterion, counts: Mapping[Measure, Ints], *, whole: bool = False) -> Bools:
    """Return True for the groups that meet a criterion, from counts of shape (n_groups,) each."""
    ((_, met),) = Judge([criterion], tuple(counts)).met(_rows(counts), whole=whole)
    by_group: Bools = np.logical_and.reduce(met, axis=0)
    return by_group


def first_violation(
    criteria: Sequence[Criterion], counts: Mapping[Measure, Ints], n_columns: int, *, whole: bool = False
) -> Violation | None:
    """Return the first criterion that some group does not meet, or None, from counts of equal shape."""
    return Judge(criteria, tuple(counts)).violation(_rows(counts), n_columns, whole=whole)


def _rows(counts: Mapping[Measure, Ints]) -> Ints:
    return np.stack([words.reshape(-1) for words in counts.values()])
