"""The independent verifier against the definition taken literally, and against the algorithm's own tests."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.lkc.verification import (
    Claim,
    Finding,
    definitions_of,
    examine,
    verify_cells,
    verify_lkc,
    verify_persons,
)
from anonymize.release import LabelledColumn, Release
from tests.support.entries import claim
from tests.support.releases import Rows, release_of
from tests.support.ruled_out import Sensitive, is_diverse, tells_at_most


def violates(rows: Rows, n_qid: int, L: int, K: int, bounds: list[tuple[set[str], Fraction]]) -> bool:
    """Definition 3.1, literally."""
    for size in range(L + 1):
        for subset in combinations(range(n_qid), size):
            groups: dict[tuple[str, ...], Rows] = {}
            for row in rows:
                groups.setdefault(tuple(row[i] for i in subset), []).append(row)
            for group in groups.values():
                if len(group) < K:
                    return True
                for i, (values, c) in enumerate(bounds):
                    counts = Counter(row[n_qid + i] for row in group)
                    if any(Fraction(counts[v], len(group)) > c for v in values):
                        return True
    return False


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_is_the_definition(data: st.DataObject) -> None:
    n_qid = data.draw(st.integers(1, 4))
    L, K = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    row = st.tuples(*[st.sampled_from("ab")] * n_qid, *[st.sampled_from("xyz")] * 2)
    rows = data.draw(st.lists(row, min_size=1, max_size=30))
    bounds = [
        (
            data.draw(st.sets(st.sampled_from("xyz"))),
            data.draw(st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(2, 3)])),
        )
        for _ in range(2)
    ]
    names = [f"q{i}" for i in range(n_qid)]
    finding = verify_lkc(
        release_of([*names, "s0", "s1"], rows),
        claim(names, L, K, {f"s{i}": bound for i, bound in enumerate(bounds)}),
    )
    assert (finding is not None) == violates(rows, n_qid, L, K, bounds)


def test_finding_names_columns_and_threshold() -> None:
    rows = [("a", "x", "s")] * 3 + [("a", "y", "t"), ("b", "x", "t"), ("b", "y", "t"), ("b", "y", "t")]
    release = release_of(["p", "q", "sens"], rows)
    small = verify_lkc(release, claim(["p", "q"], 2, 2))
    assert small is not None
    assert (small.columns, small.threshold, small.sensitive) == (("p", "q"), "K", None)
    assert str(small) == "a group on p, q violates K"
    frequent = verify_lkc(release, claim(["p", "q"], 1, 1, {"sens": ({"s"}, Fraction(1, 2))}))
    assert frequent is not None
    assert (frequent.columns, frequent.threshold, frequent.sensitive) == (("p",), "C", "sens")
    assert str(frequent) == "a group on p violates C for sens"
    assert str(Finding((), "l", "sens")) == "a group on no column violates l for sens"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from("ab")] * 2, st.sampled_from("xyz")), min_size=1, max_size=20))
def test_cells_are_held_to_c(rows: Rows) -> None:
    asked = claim(["p", "q"], 1, 1000, {"s": ({"x", "y"}, Fraction(1, 2))})
    finding = verify_cells(release_of(["p", "q", "s"], rows), ["p", "q"], asked)
    cells: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        cells.setdefault(row[:2], []).append(row)
    expected = any(
        2 * sum(row[2] == value for row in cell) > len(cell) for cell in cells.values() for value in "xy"
    )
    assert (finding is not None) == expected
    assert finding is None or str(finding) == "a group on p, q violates C for s"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from("ab")] * 3, st.sampled_from("xyz")), min_size=1, max_size=30),
    st.integers(1, 4),
    st.integers(2, 3),
)
def test_the_worst_group_decides(rows: Rows, L: int, least: int) -> None:
    """Sizes, shares and different values of all groups, counted one by one; what is told is that of the worst."""
    groups = [
        [row[3] for row in rows if all(row[i] == like[i] for i in subset)]
        for size in range(L + 1)
        for subset in combinations(range(3), size)
        for like in rows
    ]
    smallest = min(map(len, groups))
    largest = max(Fraction(group.count(value), len(group)) for group in groups for value in "xy")
    fewest = min(len(set(group)) for group in groups)
    asked = {"K": smallest, "C": {"s": Fraction(3, 4)}, "distinct": {"s": least}}
    said = Claim(("p", "q", "r"), L, asked, {"s": frozenset("xy")})
    found = examine(release_of(["p", "q", "r", "s"], rows), said)
    assert (found.finding is None) == (largest <= Fraction(3, 4) and fewest >= least)
    if found.finding is None:
        assert found.worst == {("K", None): smallest, ("C", "s"): largest, ("distinct", "s"): fewest}
    else:
        assert found.finding.threshold in {"C", "distinct"}


@given(
    st.lists(st.tuples(*[st.sampled_from("ab")] * 2, st.sampled_from("xyz")), min_size=1, max_size=20),
    st.integers(2, 3),
)
def test_cells_have_different_values(rows: Rows, least: int) -> None:
    asked = Claim(("p",), 1, {"K": 1, "distinct": {"s": least}})
    finding = verify_cells(release_of(["p", "q", "s"], rows), ["p", "q"], asked)
    cells = {row[:2]: {other[2] for other in rows if other[:2] == row[:2]} for row in rows}
    assert (finding is not None) == any(len(values) < least for values in cells.values())


def test_an_empty_table_has_no_values() -> None:
    release = Release({name: LabelledColumn(("x",), np.zeros(0, dtype=np.int64)) for name in "qs"})
    finding = verify_lkc(release, Claim(("q",), 1, {"distinct": {"s": 2}}))
    assert finding is not None
    assert str(finding) == "a group on no column violates distinct for s"


def test_equal_labels_are_one_group_even_if_coded_apart() -> None:
    """Two nodes that print alike cannot be told apart in the published table."""
    release = Release({"q": LabelledColumn(("x", "x"), np.array([0, 1]))})
    assert verify_lkc(release, claim(["q"], 1, 2)) is None


def test_labels_that_do_not_occur_count_for_nothing() -> None:
    release = Release({"q": LabelledColumn(("x", "y", "z"), np.array([0, 0, 2, 2]))})
    assert verify_lkc(release, claim(["q"], 1, 2)) is None


def test_an_empty_table_is_refused() -> None:
    finding = verify_lkc(
        Release({"q": LabelledColumn(("x",), np.zeros(0, dtype=np.int64))}), claim(["q"], 1, 1)
    )
    assert finding is not None


def test_what_has_no_definition_is_not_confirmed() -> None:
    with pytest.raises(KeyError, match="entropy"):
        definitions_of(Claim(("q",), 1, {"K": 1, "entropy": 2}))


def test_many_columns_take_one_grouping_where_all_are_known() -> None:
    """Of 40 columns there are 2^40 subsets."""
    names = [f"q{i}" for i in range(40)]
    rows = [tuple("ab"[i >> (j % 3) & 1] for j in range(40)) for i in range(8)]
    assert verify_lkc(release_of(names, rows * 3), claim(names, 40, 3)) is None
    found = verify_lkc(release_of(names, rows * 3), claim(names, 40, 4))
    assert found is not None
    assert set(found.columns) == {"q37", "q38", "q39"}
    person = np.arange(24)
    asked = claim(names, 40, 3)
    assert verify_persons(release_of(names, rows * 3), person, asked) is None
    assert verify_persons(release_of(names, rows * 3), person % 16, asked) is not None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_is_left_once_values_are_ruled_out_is_counted_by_its_definition(data: st.DataObject) -> None:
    """Diversity and shares, with values without protection, and limits of columns."""
    protected = {name: data.draw(st.sets(st.sampled_from("xyz"))) for name in ("s", "t")}
    limits = {name: data.draw(st.none() | st.integers(0, 2)) for name in protected}
    bound, most = data.draw(st.fractions(Fraction(1, 5), 1, max_denominator=6)), data.draw(st.integers(0, 3))
    cells = st.tuples(st.sampled_from("ab"), *[st.sampled_from("xyz")] * 2)
    rows = data.draw(st.lists(cells, min_size=1, max_size=14))
    at_most = {name: limit for name, limit in limits.items() if limit is not None}
    shares = {"values": most, "C": dict.fromkeys(protected, bound), "at_most": at_most}
    asked = {"ruled_out": shares, "diversity": {"least": most + 2, "at_most": at_most}}
    columns = [Sensitive("xyz", sorted(own), bound, limits[name]) for name, own in protected.items()]
    groups = [[row[1:] for row in rows if row[0] == own] for own in {row[0] for row in rows}]
    expected = {
        "ruled_out": bound == 1 or all(tells_at_most(group, columns, most) for group in groups),
        "diversity": all(is_diverse(group, columns, most + 2) for group in groups),
    }
    for key, said in asked.items():
        of_key = Claim(("p",), 1, {key: said}, {name: frozenset(own) for name, own in protected.items()})
        finding = verify_cells(release_of(["p", "s", "t"], rows), ["p"], of_key)
        assert (finding is None) == expected[key]
        if finding is not None:
            assert finding.threshold == key
