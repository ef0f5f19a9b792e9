"""Local suppression: the thesis' example, and the loop as it is written, on small random tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.errors import PrivacyError
from anonymize.lkc.requirement import Ask
from anonymize.table import Schema, SensitiveColumn
from anonymize.trajectory import levels, sweep
from anonymize.trajectory.paths import paths_of
from anonymize.trajectory.requirement import bounds_of
from anonymize.trajectory.sweep import local, local_alone
from tests.support.examples import examples
from tests.support.paths import (
    ITEMS_41,
    Definition,
    bounds,
    local_by_sets,
    paths_from,
    records_of,
    table_41,
)

MANY = 10_000
DOMAIN = 6
VALUES = st.integers(0, 1)
TABLES = st.lists(st.tuples(st.frozensets(st.integers(0, DOMAIN - 1)), VALUES), min_size=1, max_size=8)


def test_the_thesis_example_for_two_known() -> None:
    """[T] Table 4.2, which the thesis makes by suppressing c4 and b2 everywhere."""
    paths, number = paths_from(table_41(), len(ITEMS_41))
    left = local_alone(paths, bounds(2, 2, "1/2", 4, [0]), MANY)
    gone = {ITEMS_41.index("b2"), ITEMS_41.index("c4")}
    assert records_of(left.paths, number) == [(path - gone, value) for path, value in table_41()]
    assert (paths.n_instances, left.paths.n_instances) == (30, 24)
    assert [(each.tested, each.kept) for each in left.sweeps] == [
        ((7, 21), (7, 14)),
        ((7, 9), (5, 9)),
        ((5, 9), (5, 9)),
    ]


def test_the_thesis_example_for_three_known() -> None:
    paths, number = paths_from(table_41(), len(ITEMS_41))
    left = local_alone(paths, bounds(3, 2, "1/2", 4, [0]), MANY)
    assert left.paths.n_instances == 19
    assert [(each.tested, each.kept) for each in left.sweeps] == [
        ((7, 21, 11), (7, 14, 4)),
        ((7, 10, 2), (6, 7, 2)),
        ((6, 6, 2), (5, 6, 2)),
        ((5, 6, 2), (5, 6, 2)),
    ]
    assert Definition(3, 2, "1/2", [0]).is_met(records_of(left.paths, number))


@settings(max_examples=examples(120))
@given(TABLES, st.integers(1, 4), st.integers(1, 3), st.sampled_from(["1", "2/3", "1/2"]))
def test_the_loop_as_it_is_written(records, L, K, C) -> None:
    definition = Definition(L, K, C)
    paths, number = paths_from(records, DOMAIN)
    if not definition.keeps((), records):
        with pytest.raises(PrivacyError) as caught:
            local_alone(paths, bounds(L, K, C), MANY)
        assert caught.value.error_id == "requirement-unmet"
        return
    left = local_alone(paths, bounds(L, K, C), MANY)
    expected, history = local_by_sets(records, DOMAIN, definition)
    assert records_of(left.paths, number) == expected
    assert [(list(each.tested), list(each.kept)) for each in left.sweeps] == history
    assert definition.is_met(expected)
    again = local_alone(left.paths, bounds(L, K, C), MANY)
    assert again.paths.n_instances == left.paths.n_instances


def test_too_many_candidates() -> None:
    """Known before they are counted; the least bound that does not refuse is the greatest level."""
    paths, _ = paths_from(table_41(), len(ITEMS_41))
    for most, refused in ((21, False), (20, True), (6, True)):
        if not refused:
            assert local_alone(paths, bounds(2, 2, "1/2", 4, [0]), most).sweeps[0].tested == (7, 21)
            continue
        with pytest.raises(PrivacyError) as caught:
            local_alone(paths, bounds(2, 2, "1/2", 4, [0]), most)
        assert caught.value.error_id == "too-many-sequences"


def test_what_is_asked_is_in_order_and_counted() -> None:
    paths, _ = paths_from(table_41(), len(ITEMS_41))
    definition = Definition(3, 2, "1/2", [0])
    loop = local(paths, bounds(3, 2, "1/2", 4, [0]), MANY)
    asked = next(loop)
    for _ in range(3):
        sequences = [tuple(q) for q in asked.sequences.tolist()]
        assert sequences == sorted(sequences)
        assert asked.sequences.dtype == np.int32
        expected = [definition.counts(q, table_41()) for q in sequences]
        assert asked.counts.T.tolist() == [list(counts) for counts in expected]
        asked = loop.send(np.array([definition.keeps(q, table_41()) for q in sequences]))


def test_ties_go_by_what_is_public() -> None:
    """Of items 1 and 3, of which one must go, both are in two kept sequences: the smaller code goes, though more
    records have it. Then item 1 is in one kept sequence and item 0 in two."""
    records = [(frozenset(path), 0) for path in ({0, 1}, {0, 1, 3}, {1}, {0, 3})]
    paths, number = paths_from(records, DOMAIN)
    left = records_of(local_alone(paths, bounds(2, 2), MANY).paths, number)
    assert [sorted(path) for path, _ in left] == [[0], [0, 3], [], [0, 3]]


def jointly(holders, asked, max_candidates: int = MANY):
    """Several holders' loops in step, each sent what the sums of all their counts say."""
    loops = [local(paths, asked, max_candidates) for paths in holders]
    questions = [next(loop) for loop in loops]
    while True:
        assert len({question.sequences.tobytes() for question in questions}) == 1
        kept = asked.kept(sum(question.counts for question in questions))
        ended, further = [], []
        for loop in loops:
            try:
                further.append(loop.send(kept))
            except StopIteration as stop:
                ended.append(stop.value)
        if ended:
            assert not further
            return ended
        questions = further


@settings(max_examples=examples(80))
@given(
    TABLES,
    st.lists(st.integers(0, 2), min_size=8, max_size=8),
    st.integers(1, 3),
    st.sampled_from(["1", "1/2"]),
)
def test_any_split_among_holders_gives_the_same(records, whose, K, C) -> None:
    if not Definition(3, K, C).keeps((), records):
        return
    whole, number = paths_from(records, DOMAIN)
    alone = local_alone(whole, bounds(3, K, C), MANY)
    parts = [[r for r, holder in enumerate(whose[: len(records)]) if holder == i] for i in range(3)]
    split = [paths_from([records[r] for r in part], DOMAIN) for part in parts]
    ended = jointly([paths for paths, _ in split], bounds(3, K, C))
    expected = records_of(alone.paths, number)
    for part, (_, own), end in zip(parts, split, ended, strict=True):
        assert records_of(end.paths, own) == [expected[r] for r in part]
        assert end.sweeps == alone.sweeps


def test_several_sensitive_columns() -> None:
    """Two records have item 0; both have value 1 of the first column, one value 1 of the second, which is allowed."""
    schema = Schema((), None, ("",), tuple(SensitiveColumn(name, ("0", "1"), (1,)) for name in ("s", "t")))
    demands = (Size(1), Confidences(None, (("s", Fraction(1, 2)), ("t", Fraction(1, 2)))))
    asked = bounds_of(Ask(1, demands), schema)
    values = [(1, 1), (1, 0), (0, 0), (0, 1)]
    cells = np.array([2 * s + t for s, t in values])
    items = np.array([0, 0, 1, 1, 2, 2])
    paths, number = paths_of(np.array([0, 1, 2, 3, 1, 2]), items, cells, 3)
    left = local_alone(paths, asked, MANY).paths
    assert [left.path(n) for n in number] == [(), (2,), (1, 2), (1,)]


def test_many_long_paths_in_parts(monkeypatch) -> None:
    """Work in small parts, and numbers that are looked up by sorting, change nothing."""
    rng = np.random.default_rng(3)
    records = [
        (frozenset(np.flatnonzero(rng.random(14) < 0.4).tolist()), int(rng.integers(2))) for _ in range(80)
    ]
    paths, number = paths_from(records, 14)
    whole = local_alone(paths, bounds(3, 3, "3/4"), MANY)
    assert 0 < whole.paths.n_instances < paths.n_instances
    expected, _ = local_by_sets(records, 14, Definition(3, 3, "3/4"))
    assert records_of(whole.paths, number) == expected
    monkeypatch.setattr(sweep, "_WORK", 30)
    monkeypatch.setattr(levels, "_AT_ONCE", 7)
    monkeypatch.setattr(levels, "_DENSE", 0)
    parts = local_alone(paths, bounds(3, 3, "3/4"), MANY)
    assert records_of(parts.paths, number) == expected
    assert parts.sweeps == whole.sweeps
