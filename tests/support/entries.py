"""Requirements of two overlapping entries, drawn for a random case, and as the slow reference reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction

from hypothesis import strategies as st

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.criteria.distinct import DistinctValues
from anonymize.criteria.size import Size
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.verification import Claim
from tests.support.reference import Known, Problem
from tests.support.tables import Case


def lkc(
    max_known: int, min_size: int, insider: bool = False, c: Mapping[str, Fraction] | None = None
) -> AskedList:
    """LKC-privacy; c: by sensitive column."""
    bounds = Confidences(bounds=tuple((c or {}).items()))
    return AskedList((Ask(max_known, (Size(min_size), bounds)),), insider)


def claim(
    names: Sequence[str],
    L: int,
    K: int,
    bounds: Mapping[str, tuple[AbstractSet[str], Fraction]] | None = None,
) -> Claim:
    """bounds: by sensitive column its protected values, and their C."""
    bounds = bounds or {}
    asked = {"K": K, "C": {name: c for name, (_, c) in bounds.items()}}
    return Claim(tuple(names), L, asked, {name: frozenset(values) for name, (values, _) in bounds.items()})


@st.composite
def asked_lists(draw: st.DrawFn, case: Case, *, insider: bool = False) -> tuple[AskedList, Problem]:
    """Two entries that have a column in common; a column may be in neither."""
    names = list(case.problem.qid)
    common = draw(st.sampled_from(names))
    asks, known = [], []
    for _ in range(2):
        others = draw(st.sets(st.sampled_from(names)))
        columns = tuple(name for name in names if name == common or name in others)
        l_, k = draw(st.integers(1, 3)), draw(st.integers(1, 4))
        bounds = (
            {
                name: draw(st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(1)]))
                for name in draw(st.sets(st.sampled_from(sorted(case.problem.sensitive)))) or ()
            }
            if case.problem.sensitive
            else {}
        )
        least = (
            dict.fromkeys(draw(st.sets(st.sampled_from(sorted(case.problem.sensitive)))), 2)
            if case.problem.sensitive
            else {}
        )
        demands: tuple[Demand, ...] = Size(k), Confidences(bounds=tuple(bounds.items()))
        if least:
            demands = (*demands, DistinctValues(tuple(least.items())))
        asks.append(Ask(l_, demands, columns))
        values = {name: (case.problem.sensitive[name][0], c) for name, c in bounds.items()}
        known.append(Known(columns, l_, k, values, least))
    problem = dataclasses.replace(case.problem, entries=tuple(known), insider=insider)
    return AskedList(tuple(asks), insider), problem
