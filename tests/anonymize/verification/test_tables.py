"""The independent verifier against the definition taken literally, and against the algorithm's own tests."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.release import LabelledColumn, Release
from anonymize.verification.ruling_out import TooManySets
from anonymize.verification.tables import (
    Claim,
    Finding,
    Groups,
    RuledOut,
    definitions_of,
    examine,
    verify_cells,
    verify_lkc,
    verify_persons,
)
from tests.support.entries import claim
from tests.support.examples import examples
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


@settings(max_examples=examples(150), deadline=None)
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


@settings(max_examples=examples(100), deadline=None)
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


@settings(max_examples=examples(200), deadline=None)
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


@settings(max_examples=examples(80), deadline=None)
@given(st.data())
def test_what_is_left_once_values_are_ruled_out_is_counted_by_its_definition(data: st.DataObject) -> None:
    """Diversity and shares, with values without protection, and limits of columns."""
    protected = {name: data.draw(st.sets(st.sampled_from("xyz"))) for name in ("s", "t")}
    limits = {name: data.draw(st.none() | st.integers(0, 2)) for name in protected}
    bound, most = data.draw(st.fractions(Fraction(1, 5), 1, max_denominator=6)), data.draw(st.integers(0, 3))
    cells = st.tuples(st.sampled_from("ab"), *[st.sampled_from("xyz")] * 2)
    rows = data.draw(st.lists(cells, min_size=1, max_size=14))
    at_most = {name: limit for name, limit in limits.items() if limit is not None}
    together = {"at_most": at_most, "blocks": (tuple(protected),)}
    shares = {"values": most, "C": dict.fromkeys(protected, bound), **together}
    asked = {"ruled_out": shares, "diversity": {"least": most + 2, **together}}
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


def _of_many_values(n_rows: int) -> Rows:
    """Rows of four columns with up to 60 values each, a few of them frequent, by a fixed rule."""
    state, rows = 1, []
    for _ in range(n_rows):
        row = []
        for _ in range(4):
            state = state * 6364136223846793005 % 2**64
            row.append(str(int((((state >> 11) + 1) / 2**53) ** (-1 / 0.6)) % 60))
        rows.append(("", *row))
    return rows


@pytest.mark.parametrize(("n_rows", "least"), [(60, 4), (200, 5), (2000, 4), (2000, 6)])
def test_covers_are_found_without_all_sets(n_rows: int, least: int) -> None:
    """Of 240 values there are 6 billion sets of five."""
    release = release_of(["p", *"stuv"], _of_many_values(n_rows))
    protected = {name: frozenset(release.columns[name].labels) for name in "stuv"}
    search = RuledOut("diversity", least - 2, protected, None, {})
    numbers = search.numbers(release)
    groups = Groups(np.zeros(n_rows, dtype=np.int64), np.ones(n_rows, dtype=np.int64))
    assert not search.judged(groups, numbers).broken
    assert 1 <= search.nodes <= 20


@pytest.mark.parametrize(("share", "broken", "nodes"), [("9/10", False, 40), ("1/2", True, 40)])
def test_shares_are_found_without_all_sets(share: str, broken: bool, nodes: int) -> None:
    release = release_of(["p", *"stuv"], _of_many_values(2000))
    protected = {name: frozenset(release.columns[name].labels) for name in "stuv"}
    search = RuledOut("ruled_out", 3, protected, dict.fromkeys("stuv", Fraction(share)), {})
    numbers = search.numbers(release)
    groups = Groups(np.zeros(2000, dtype=np.int64), np.ones(2000, dtype=np.int64))
    assert search.judged(groups, numbers).broken is broken
    assert 1 <= search.nodes <= nodes


def test_values_of_two_columns_stay_apart_where_both_have_hundreds() -> None:
    """One row for each of 200 values of s and of t: nobody who rules out one value is told another."""
    values = [str(i) for i in range(200)]
    release = release_of(["s", "t"], list(zip(values, values[1:] + values[:1], strict=True)))
    search = RuledOut("diversity", 1, {"s": frozenset(values), "t": frozenset(values)}, None, {})
    numbers = search.numbers(release)
    assert len(set(search._values.ravel().tolist())) == 400
    assert not search.judged(
        Groups(np.zeros(200, dtype=np.int64), np.ones(200, dtype=np.int64)), numbers
    ).broken


@pytest.mark.parametrize("key", ["diversity", "ruled_out"])
def test_a_group_that_takes_too_many_sets_is_not_confirmed(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """A group of few sets that is not allowed is told before one of which it is not known."""
    together = {"at_most": {}, "blocks": (tuple("stuv"),)}
    asked = {
        "diversity": {"least": 4, **together},
        "ruled_out": {"values": 2, "C": dict.fromkeys("stuv", Fraction(9, 10)), **together},
    }
    many = [("many", *row[1:]) for row in _of_many_values(60)]
    release = release_of(["p", *"stuv"], many)
    protected = {name: frozenset(release.columns[name].labels) for name in "stuv"}
    claimed = Claim(("p",), 1, {key: asked[key]}, protected)
    assert verify_cells(release, ["p"], claimed) is None
    with monkeypatch.context() as limited:
        limited.setattr("anonymize.verification.ruling_out.MOST_SETS", 0)
        found = verify_cells(release, ["p"], claimed)
    assert found is not None
    assert found.undecided
    assert str(found).startswith(f"not checked: whether a group on p violates {key}; more than")
    whole = RuledOut._is_broken

    def slow(self: RuledOut, held: Any, own: Any, weights: Any) -> bool:
        if own.shape[1] > 1:
            raise TooManySets
        return whole(self, held, own, weights)

    monkeypatch.setattr(RuledOut, "_is_broken", slow)
    few = [("few", "1", "1", "1", "1")] * 3
    broken = verify_cells(release_of(["p", *"stuv"], [*many, *few]), ["p"], claimed)
    assert str(broken) == f"a group on p violates {key}"


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_searches_of_three_columns_are_the_definition(data: st.DataObject) -> None:
    """Values of three columns, so that sets of up to five are needed; rows that occur several times."""
    rows = data.draw(st.lists(st.tuples(*[st.sampled_from("vwxyz")] * 3), min_size=1, max_size=9))
    rows += data.draw(st.lists(st.sampled_from(rows), max_size=5))
    protected = {name: frozenset(data.draw(st.sets(st.sampled_from("vwxyz")))) for name in "stu"}
    limits = data.draw(st.dictionaries(st.sampled_from("stu"), st.integers(0, 3)))
    most, bound = (
        data.draw(st.integers(2, 3)),
        data.draw(st.fractions(Fraction(1, 5), Fraction(9, 10), max_denominator=10)),
    )
    columns = [Sensitive("vwxyz", sorted(own), bound, limits.get(name)) for name, own in protected.items()]
    of_rows = [("", *row) for row in rows]
    together = {"at_most": limits, "blocks": (tuple("stu"),)}
    asked: dict[str, object] = {
        "ruled_out": {"values": most, "C": dict.fromkeys("stu", bound), **together},
        "diversity": {"least": most + 2, **together},
    }
    expected = {
        "ruled_out": tells_at_most(rows, columns, most),
        "diversity": is_diverse(rows, columns, most + 2),
    }
    for key, said in asked.items():
        finding = verify_cells(
            release_of(["p", *"stu"], of_rows), ["p"], Claim(("p",), 1, {key: said}, protected)
        )
        assert (finding is None) == expected[key]
