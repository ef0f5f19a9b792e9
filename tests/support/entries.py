"""Requirements of two overlapping entries, drawn for a random case, and as the slow reference reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction

from hypothesis import strategies as st

from anonymize.criteria.closeness import CloseValues
from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.criteria.distinct import DistinctValues
from anonymize.criteria.ruled_out import DiverseValues, RuledOutValues
from anonymize.criteria.size import Size
from anonymize.cut import Candidate
from anonymize.linked_columns import Blocks, counted_blocks
from anonymize.lkc.plan import GroupPlan, plan_groups
from anonymize.lkc.requirement import Ask, AskedList, Entry
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import Names
from anonymize.table import Schema
from anonymize.verification.tables import Claim
from tests.support.closeness import Close
from tests.support.reference import Known, Problem, Ruled
from tests.support.ruled_out import Sensitive
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
        diverse = bool(case.problem.sensitive) and draw(st.booleans())
        if diverse:
            demands = (*demands, DiverseValues(2, mixed=tuple(name for name, c in bounds.items() if c < 1)))
        asks.append(Ask(l_, demands, columns))
        mixed = {name: set(s) for name, (s, _) in case.problem.sensitive.items()} if diverse else {}
        values = {name: (case.problem.sensitive[name][0], c) for name, c in bounds.items()}
        known.append(Known(columns, l_, k, values, least, mixed=mixed))
    problem = dataclasses.replace(case.problem, entries=tuple(known), insider=insider)
    return AskedList(tuple(asks), insider), problem


@st.composite
def close_lists(draw: st.DrawFn, case: Case) -> tuple[AskedList, Problem]:
    """One entry of all columns, of a case with sensitive ones, that asks how far some of these are from the table."""
    problem, names = case.problem, sorted(case.problem.sensitive)
    bounds = {
        name: draw(st.fractions(Fraction(1, 6), Fraction(5, 6), max_denominator=9))
        for name in names
        if name == names[0] or draw(st.booleans())
    }
    ordered = {name for name in bounds if draw(st.booleans())}
    demands: tuple[Demand, ...] = (Size(problem.K), CloseValues(tuple(bounds.items()), frozenset(ordered)))
    columns = case.fields["columns"]
    close = {
        name: (most, columns[name]["domain"] if name in ordered else None) for name, most in bounds.items()
    }
    known = Known(tuple(problem.qid), problem.L, problem.K, {}, close=Close(case.rows, close))
    return AskedList((Ask(problem.L, demands),)), dataclasses.replace(problem, entries=(known,))


@st.composite
def ruled_lists(
    draw: st.DrawFn, case: Case, *, most: int = 2, insider: bool = False, blocks: Blocks = ()
) -> tuple[AskedList, Problem]:
    """One entry of all columns, of a case with sensitive ones, that asks what is left once values are ruled out.

    most:    values that are ruled out, and one below the greatest diversity.
    blocks:  of columns that are looked at together; the problem knows none.
    """
    problem, names = case.problem, sorted(case.problem.sensitive)
    c = draw(st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(4, 5)]))
    limits = {name: draw(st.none() | st.integers(0, 2)) for name in names}
    ruled_out, least = draw(st.integers(1, most)), draw(st.integers(2, most + 1))
    at_most = tuple((name, limit) for name, limit in limits.items() if limit is not None)
    bounds = tuple((name, c) for name in names)
    demands: tuple[Demand, ...] = (Size(problem.K), Confidences(bounds=bounds))
    asked = draw(st.sampled_from(["ruled_out", "diversity", "both"]))
    if asked != "diversity":
        demands = (*demands, RuledOutValues(ruled_out, bounds, at_most, blocks))
    if asked != "ruled_out":
        demands = (*demands, DiverseValues(least, at_most, blocks=blocks))
    columns = {
        name: Sensitive(
            case.fields["columns"][name]["domain"], sorted(problem.sensitive[name][0]), c, limits[name]
        )
        for name in names
    }
    ruled = Ruled(columns, 0 if asked == "diversity" else ruled_out, 1 if asked == "ruled_out" else least)
    values = {name: (problem.sensitive[name][0], c) for name in names}
    known = Known(tuple(problem.qid), problem.L, problem.K, values, ruled=ruled)
    asks = (Ask(problem.L, demands),)
    return AskedList(asks, insider), dataclasses.replace(problem, entries=(known,), insider=insider)


def plan_of(
    schema: Schema,
    entries: Sequence[Entry],
    table: GeneralizedTable,
    candidate: Candidate,
    names: Names | None = None,
) -> GroupPlan:
    """The plan of a run that tells a table in one block."""
    return plan_groups([(counted_blocks(schema, ())[0], table)], entries, candidate, names)
