"""LKC releases taken together: groups that sums and differences of tables give have enough of a party's records."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.grouping import BoxesOfRows, CellsOfColumns, Grouping
from anonymize.table import CodedTable, Ints, QidColumn, Schema
from anonymize.taxonomy import from_nested
from anonymize.tds import Observer
from jobs.data.rows_read import RowsRead
from jobs.data.tables import Loaded
from jobs.errors import BudgetError, PolicyError
from jobs.owner.composition import Composed, Published, Together, check_tested, shared_columns
from tests.support.examples import examples

N_LEAVES = 5
NAMES = ("a", "b", "c")
DOMAINS = dict.fromkeys(NAMES, "d")
TREE = from_nested({"*": [str(i) for i in range(N_LEAVES)]}, "t", missing_leaf=False)


def table(qid: Ints, person: Ints | None = None, weights: Ints | None = None) -> Loaded:
    """Return rows with three columns; qid: shape (3, n_rows)."""
    n_rows = qid.shape[1]
    schema = Schema(tuple(QidColumn(name, TREE) for name in NAMES), None, ("",))
    ones = np.ones(n_rows, dtype=np.int64) if weights is None else weights
    coded = CodedTable(schema, tuple(qid), np.zeros(n_rows, dtype=np.int64), ones)
    return Loaded(coded, RowsRead(n_rows, n_rows), person=person)


def published(columns: tuple[str, ...], groups: Grouping | None, most: int = 2) -> Published:
    return Published(DOMAINS, columns, ((columns, most),), groups)


@st.composite
def releases(draw: st.DrawFn) -> list[Published]:
    """One to three releases of some of the columns, with any cuts; the last has all columns."""
    made = []
    for number in range(draw(st.integers(1, 2)) + 1):
        last = number == 0
        columns = NAMES if last else tuple(n for n in NAMES if draw(st.booleans()))
        cut = st.lists(st.integers(0, 2), min_size=N_LEAVES, max_size=N_LEAVES)
        cells = tuple(np.array(draw(cut)) for _ in columns)
        made.append(published(columns, CellsOfColumns(cells), draw(st.integers(1, 3))))
    return made[::-1]


def by_hand(loaded: Loaded, all_of_them: list[Published], most: int) -> list[int]:
    """Return our records in every group on at most ``most`` columns, over the releases that have these columns."""
    found = []
    for size in range(1, most + 1):
        for names in combinations(NAMES, size):
            beside = [each for each in all_of_them if set(names) <= set(each.columns)]
            if len(beside) < 2:
                continue  # one table by itself is tested by its own run
            groups: Counter[Any] = Counter()
            for row in range(len(loaded.table.weights)):
                labels = []
                for each in beside:
                    assert isinstance(each.groups, CellsOfColumns)
                    for name in names:
                        cells = each.groups.cells[each.columns.index(name)]
                        labels.append(int(cells[loaded.table.qid[NAMES.index(name)][row]]))
                groups[tuple(labels)] += int(loaded.table.weights[row])
            found += groups.values()
    return found


@settings(max_examples=examples(300))
@given(releases(), st.integers(0, 1000))
def test_the_smallest_group_is_that_of_the_definition(made: list[Published], seed: int) -> None:
    rng = np.random.default_rng(seed)
    loaded = table(rng.integers(0, N_LEAVES, (3, 12)), weights=rng.integers(1, 4, 12))
    *earlier, now = made
    assert now.groups is not None
    own = Together(loaded, replace(now, groups=None), earlier).own(now.groups)
    most = max(known[1] for each in made for known in each.known)
    expected = by_hand(loaded, made, most)
    asked_alike = len({known[1] for each in made for known in each.known}) == 1
    if asked_alike and all(each.columns == NAMES for each in made):
        assert own.min(initial=99) == min(expected, default=99)
    assert own.min(initial=99) >= min(expected, default=99)


@settings(max_examples=examples(300))
@given(releases(), st.integers(0, 1000), st.integers(2, 4))
def test_differences_of_tables_that_pass_leave_enough(made: list[Published], seed: int, least: int) -> None:
    """A group of one table without one of the other inside it, on columns that both have and L of the later job."""
    loaded = table(np.random.default_rng(seed).integers(0, N_LEAVES, (3, 30)))
    *earlier, now = made
    assert isinstance(now.groups, CellsOfColumns)
    own = Together(loaded, replace(now, groups=None), earlier).own(now.groups)
    if own.min(initial=least) < least:
        return
    for before in earlier:
        assert isinstance(before.groups, CellsOfColumns)
        ((_, most),) = now.known
        for name in before.columns[:most]:
            ours = loaded.table.qid[NAMES.index(name)]
            one = before.groups.cells[before.columns.index(name)][ours]
            other = now.groups.cells[NAMES.index(name)][ours]
            for x in set(one.tolist()):
                for y in set(other.tolist()):
                    for left in ((one == x) & (other != y), (one != x) & (other == y)):
                        assert int(left.sum()) == 0 or int(left.sum()) >= least


def test_people_are_counted_where_the_job_counts_people() -> None:
    halves = CellsOfColumns((np.array([0, 0, 0, 1, 1]),) * 3)
    loaded = table(np.tile(np.array([0, 0, 0, 4]), (3, 1)), person=np.array([0, 0, 1, 2]))
    both = Together(loaded, published(NAMES, None), [published(NAMES, halves)])
    assert sorted(both.own(halves).tolist()) == [1, 1, 1, 2, 2, 2]
    assert both.records_below(2) == 1
    loaded = table(np.tile(np.array([0, 0, 0, 4]), (3, 1)))
    records = Together(loaded, published(NAMES, None), [published(NAMES, halves)])
    assert sorted(records.own(halves).tolist()) == [1, 1, 1, 3, 3, 3]
    assert (records.records_below(3), records.records_below(1), records.records_below(4)) == (1, 0, 4)


def test_boxes_refine_groups_on_whatever_columns() -> None:
    boxes = BoxesOfRows(np.array([[0, 3], [0, 0], [0, 0]]), np.array([[3, 5], [5, 5], [5, 5]]))
    whole = CellsOfColumns((np.zeros(5, dtype=np.int64),) * 3)
    loaded = table(np.stack([np.arange(5), np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64)]))
    for earlier, now in ((boxes, whole), (whole, boxes)):
        own = Together(loaded, published(NAMES, None), [published(NAMES, earlier)]).own(now)
        assert sorted(set(own.tolist())) == [2, 3]


def test_columns_are_those_that_releases_share() -> None:
    now = published(("a", "b", "c"), None, 2)
    assert shared_columns([], now) == ()
    assert shared_columns([published(("b", "d"), None, 1)], now) == (("b",),)
    assert shared_columns([published(("a", "b", "c"), None, 1)], now) == (
        ("a",), ("a", "b"), ("a", "c"), ("b",), ("b", "c"), ("c",),
    )  # fmt: skip
    two = [published(("a", "b"), None, 2), published(("b", "c"), None, 2)]
    assert shared_columns(two, now) == (("a", "b"), ("b",), ("b", "c"))
    assert shared_columns([published(("d",), None)], now) == ()
    of_all = [Published(DOMAINS, columns, ((NAMES, 2),)) for columns in (("a", "b"), ("b", "c"))]
    assert shared_columns(of_all, now) == (("a", "b"), ("b",), ("b", "c"))


@pytest.mark.parametrize(
    "groups",
    [
        None,
        CellsOfColumns((np.array([0, -1, 1]), np.array([0]))),
        BoxesOfRows(np.array([[0, 1], [0, 0]]), np.array([[1, 2], [3, 3]])),
    ],
)
def test_what_is_noted_is_read_again(groups: Grouping | None) -> None:
    made = Published({"a": "x", "b": "y"}, ("a", "b"), ((("a", "b"), 2), (("a",), 1)), groups)
    again = Published.read(made.encoded())
    assert again.encoded() == made.encoded()
    assert (again.domains, again.columns, again.known) == (made.domains, made.columns, made.known)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"domains": {}, "columns": [], "known": [], "groups": {}}']
)
def test_a_damaged_ledger_is_told(content: bytes) -> None:
    with pytest.raises(BudgetError) as caught:
        Published.read(content)
    assert caught.value.problem.error_id == "budget-ledger"


HALVES = CellsOfColumns((np.array([0, 0, 0, 1, 1]),) * 3)
BOX = BoxesOfRows(np.zeros((3, 1), dtype=np.int64), np.ones((3, 1), dtype=np.int64))


@pytest.mark.parametrize(
    ("earlier", "now", "says"),
    [
        (published(NAMES, HALVES), Published(DOMAINS, (), ()), "groups of sequences"),
        (published(NAMES, None), published(NAMES, None), "are not noted"),
        (
            Published(DOMAINS | {"b": "e"}, NAMES, (), HALVES),
            published(NAMES, None),
            "column b has a different domain",
        ),
        (
            published(NAMES, BOX),
            published(("a",), None),
            "method kd",
        ),
    ],
)
def test_what_cannot_be_tested_is_refused(earlier: Published, now: Published, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        check_tested([earlier], now)
    check_tested([], now)
    check_tested([published(NAMES, HALVES)], published(("a", "c"), None))


class _Notes:
    def __init__(self, *earlier: Published) -> None:
        self.noted: list[bytes] = []
        self._earlier = [each.encoded() for each in earlier]

    def note(self, content: bytes) -> None:
        self.noted.append(content)

    def earlier(self) -> list[bytes]:
        return self._earlier


@pytest.mark.parametrize(("least", "stops"), [(1, False), (2, False), (3, True)])
def test_groups_are_noted_before_they_are_tested(least: int, stops: bool) -> None:
    loaded = table(np.tile(np.array([0, 1, 2, 2, 3, 3, 4, 4]), (3, 1)))
    thirds = CellsOfColumns((np.array([0, 0, 1, 1, 1]),) * 3)
    notes, now = _Notes(published(NAMES, HALVES)), published(NAMES, None)
    observer = Composed(Observer(), least, loaded, now, notes)
    if not stops:
        observer.grouping(thirds)
        assert notes.noted == [replace(now, groups=thirds).encoded()]
        return
    with pytest.raises(PolicyError) as caught:
        observer.grouping(thirds)
    assert "the smallest has 2 records" in caught.value.problem.private
    assert not any(c.isdigit() for c in caught.value.problem.for_others())
    assert notes.noted == [replace(now, groups=thirds).encoded()]
    observer.withdraw()  # they were not opened
    assert notes.noted[-1] == now.encoded()
    observer.grouping(HALVES)
    observer.opening_groups(np.array([4, 4]))
    observer.withdraw()
    assert notes.noted[-1] == replace(now, groups=HALVES).encoded()
