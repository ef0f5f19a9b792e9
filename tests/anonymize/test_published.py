"""Claims of [MSA] about its model and its algorithm, and an attack that no rule about groups stops.

The published algorithm of groups lives here alone; those that check a group are beside the criteria.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations
from statistics import median_low, pstdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.kd.median import MedianHolder
from anonymize.kd.single import SingleHolder, anonymize_kd
from tests.support import jobs
from tests.support.examples import examples
from tests.support.ruled_out import Sensitive, fewest_deletions, is_diverse, tells_at_most

Row = tuple[Any, ...]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=6), st.integers(2, 4))
def test_theorem_1_is_an_equivalence(rows: list[Row], least: int) -> None:
    """Definition 6 holds exactly if whoever strikes any l − 2 values finds two values or more in every column."""
    values = sorted({(i, row[i]) for row in rows for i in range(3)})
    struck = (out for size in range(least - 1) for out in combinations(values, size))
    left = ([row for row in rows if not any(row[i] == v for i, v in out)] for out in struck)
    survives = all(len({row[i] for row in part}) >= 2 for part in left for i in range(3))
    fewest = fewest_deletions(rows, 3)
    assert fewest is not None
    assert survives == (fewest >= least)


def test_theorem_1_bounds_no_share() -> None:
    """Of 1,000 records 990 with HIV pass; C alone says no."""
    rows = [("HIV",)] * 990 + [(f"other {i}",) for i in range(10)]
    values = sorted({value for (value,) in rows})
    assert is_diverse(rows, [Sensitive(values, values)], 2)
    assert not tells_at_most(rows, [Sensitive(values, values, Fraction(1, 2))], 0)


def published_groups(rows: Sequence[Row], n_qid: int, k: int, least: int) -> list[Sequence[Row]]:
    """[MSA] Fig. 5, line by line, with G for T in line 10; the quasi-identifiers are numbers and come first."""
    parts: list[Sequence[Row]] = []
    means = [sum(row[i] for row in rows) / len(rows) for i in range(n_qid)]
    spreads = [pstdev(row[i] for row in rows) or 1 for i in range(n_qid)]

    def satisfies(group: Sequence[Row]) -> bool:
        if len(group) < k:
            return False
        fewest = fewest_deletions([row[n_qid:] for row in group], len(rows[0]) - n_qid)
        return fewest is not None and fewest >= least

    def split(group: Sequence[Row]) -> None:
        def spread(i: int) -> float:
            scores = [(row[i] - means[i]) / spreads[i] for row in group]
            return max(scores) - min(scores)

        widest = max(range(n_qid), key=spread)
        at = median_low(row[widest] for row in group)
        sides = [row for row in group if row[widest] <= at], [row for row in group if row[widest] > at]
        good = [side for side in sides if satisfies(side)]
        for side in good:
            split(side)
        if not good:
            parts.append(group)

    split(rows)
    return parts


def job(least: int) -> dict[str, Any]:
    """One number, and a disease; K = 2."""
    return {
        "version": "1",
        "name": "small",
        "partition": "single",
        "data": "table.csv",
        "method": "kd",
        "goal": "general",
        "model": {
            "lkc": {"L": "all", "K": "2", "C": "1", **({"diversity": str(least)} if least > 1 else {})}
        },
        "columns": {
            "age": {"role": "qid", "numeric": {"min": "1", "max": "9", "step": "1"}},
            "disease": {"role": "sensitive", "domain": ["HIV", "flu", "cold", "asthma"]},
        },
    }


def groups_of(rows: Sequence[Row], least: int, holder: type[SingleHolder]) -> list[list[Row]]:
    """Our groups of rows with different numbers."""
    bundle = jobs.bundle_of(job(least))
    table = jobs.coded(bundle, [{"age": str(age), "disease": disease} for age, disease in rows])
    outcome = anonymize_kd(table, jobs.requirement_of(bundle), holder=holder)
    own = outcome.group.tolist()
    return [[row for row, group in zip(rows, own, strict=True) if group == g] for g in sorted(set(own))]


@pytest.mark.parametrize("holder", [SingleHolder, MedianHolder])
def test_the_published_algorithm_loses_records_and_ours_none(holder: type[SingleHolder]) -> None:
    """It goes on with the one side that is diverse, and drops the other one."""
    rows = [(1, "flu"), (2, "cold"), (3, "HIV"), (4, "HIV")]
    kept = [row for group in published_groups(rows, 1, 2, 2) for row in group]
    assert kept == rows[:2]
    groups = groups_of(rows, 2, holder)
    assert sorted(row for group in groups for row in group) == rows
    assert all(
        is_diverse([row[1:] for row in g], [Sensitive(["HIV", "flu", "cold"], ["HIV"])], 2) for g in groups
    )


PEOPLE = ("HIV", "HIV", "flu", "cold", "asthma")


def test_minimality_tells_what_the_group_does_not() -> None:
    """Wong, Fu, Wang, Pei, VLDB 2007: five people in one group of four diseases, two fifths of them with HIV. Who
    knows their ages and the algorithm knows who has HIV: in no other world would it be one group.
    """
    rows = list(enumerate(PEOPLE, start=1))
    (group,) = groups_of(rows, 2, MedianHolder)
    assert fewest_deletions([row[1:] for row in group], 1) == 4
    worlds = sorted(set(permutations(PEOPLE)))
    possible = [
        world for world in worlds if len(groups_of(list(enumerate(world, start=1)), 2, MedianHolder)) == 1
    ]
    assert len(worlds) == 60
    assert {world[:2] for world in possible} == {("HIV", "HIV")}


def test_what_k_alone_decides_tells_nothing_of_that_kind() -> None:
    """All worlds have the same groups, and no cut that K allows was refused (`refused_for_sensitive`)."""
    worlds = sorted(set(permutations(PEOPLE)))[::7]
    found = {
        tuple(len(group) for group in groups_of(list(enumerate(world, start=1)), 1, MedianHolder))
        for world in worlds
    }
    assert len(found) == 1
    assert found != {(5,)}


def test_a_table_that_two_values_cover_is_refused() -> None:
    with pytest.raises(PrivacyError, match="already violates diversity"):
        groups_of([(i, "flu" if i % 2 else "cold") for i in range(1, 9)], 3, SingleHolder)
