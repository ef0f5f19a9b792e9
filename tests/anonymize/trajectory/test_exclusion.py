"""Inference by discarding records that were elsewhere: by hand, and against the definition."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.trajectory.exclusion import Exclusion, Untested, excludes, exclusion, exclusion_or_untested
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths, without
from anonymize.trajectory.repair import Repaired, repaired
from anonymize.trajectory.sweep import local_alone
from tests.support.examples import examples
from tests.support.movements import TIMED, as_left, item, path, sequences, some_lost, walked, walkers
from tests.support.paths import Definition, Itemset, Path, Record, bounds

E1 = [(path("a1", "c2"), 0), (path("b1", "c2"), 0), (path("b1", "c2"), 0)]
ENOUGH = 10_000
Found = tuple[set[Itemset], int, int | None]


def by_definition(raw: Paths, left: Paths, table: Paths, asked: Definition) -> Found:
    """Exposed sequences, records that they expose, and the fewest candidates of any."""
    seen = [
        (frozenset(table.path(r)), int(table.cells[r]))
        for r in range(table.n_paths)
        for _ in range(table.weights[r])
    ]
    exposed, records, sizes = set(), 0, []
    for r in range(raw.n_paths):
        has, found_out = frozenset(left.path(r)), False
        for q in sequences(frozenset(raw.path(r)), asked.L):
            if not has.issuperset(q):
                candidates = [each for each in seen if can_be(each[0], q)]
                sizes.append(len(candidates))
                if not asked.keeps((), candidates):
                    exposed.add(q)
                    found_out = True
        records += int(raw.weights[r]) * found_out
    return exposed, records, min(sizes, default=None)


def can_be(shown: Path, q: Sequence[int]) -> bool:
    times = {x // TIMED.n_locations for x in shown}
    return all(x in shown or x // TIMED.n_locations not in times for x in q)


def found_out(raw: Paths, left: Paths, table: Paths, L: int, K: int, C: str | Fraction = "1") -> Found:
    found = exclusion(raw, left, table, TIMED, bounds(L, K, C))
    assert isinstance(found, Exclusion)
    exposed = list(found.sequences())
    assert len(set(exposed)) == len(exposed) == found.n_exposed
    assert sorted(exposed, key=lambda q: (len(q), q)) == exposed
    return set(exposed), found.records, found.least


def left_of(paths: Paths, L: int, K: int, C: str | Fraction = "1") -> Paths:
    return local_alone(paths, bounds(L, K, C), ENOUGH).paths


def mended(raw: Paths, number: np.ndarray, L: int, K: int, C: str | Fraction = "1") -> Repaired:
    return repaired(raw, number, lambda paths: left_of(paths, L, K, C), TIMED, bounds(L, K, C))


def test_e1_a_suppressed_place_that_all_others_exclude() -> None:
    """a1 is suppressed, and two records show b1: who knows a1 is left with one record, not K = 2."""
    raw, _ = walked(E1)
    left = left_of(raw, 1, 2)
    assert left.n_instances == raw.n_instances - 1
    assert found_out(raw, left, left, 1, 2) == ({(item("a1"),)}, 1, 1)


def test_nothing_is_exposed_where_nothing_was_lost() -> None:
    raw, _ = walked([(path("a1", "c2"), 0)])
    assert found_out(raw, raw, raw, 3, 2) == (set(), 0, None)


@settings(max_examples=examples(100))
@given(st.data())
def test_exclusion_is_its_definition(data: st.DataObject) -> None:
    """Test any loss of records, with anybody else in the table."""
    raw, _ = walked(data.draw(walkers()))
    L, K = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    C = Fraction(data.draw(st.integers(1, 4)), 4)
    left = data.draw(some_lost(raw))
    table = joined(left, walked(data.draw(walkers(20)))[0])
    assert found_out(raw, left, table, L, K, C) == by_definition(raw, left, table, Definition(L, K, C))


@settings(max_examples=examples(40))
@given(st.data())
def test_the_fewest_candidates_are_a_bound_where_not_all_are_counted(data: st.DataObject) -> None:
    raw, _ = walked(data.draw(walkers()))
    left = data.draw(some_lost(raw))
    table = joined(left, walked(data.draw(walkers(20)))[0])
    counted = data.draw(st.integers(0, 3))
    exposed, records, least = by_definition(raw, left, table, Definition(3, 2, "1/2"))
    found = exclusion(raw, left, table, TIMED, bounds(3, 2, "1/2"), counted)
    assert found is not None
    assert (set(found.sequences()), found.records) == (exposed, records)
    assert (found.least is None) == (least is None)
    assert least is None or (found.least is not None and found.least <= least)


def joined(one: Paths, two: Paths) -> Paths:
    starts = np.concatenate([one.starts, two.starts[1:] + one.starts[-1]])
    items, cells = np.concatenate([one.items, two.items]), np.concatenate([one.cells, two.cells])
    return Paths(items, starts, cells, np.concatenate([one.weights, two.weights]), one.domain)


def test_many_records_are_counted_whole() -> None:
    """More distinct paths than a machine word has bits, each of a thousand records and one."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, 4, (400, 3)).tolist()
    records = [
        (frozenset(cell * 3 + place for cell, place in enumerate(row) if place < 3), int(rng.integers(2)))
        for row in places
    ]
    raw, _ = walked(records)
    left = as_left([frozenset(raw.path(r)[1:]) for r in range(raw.n_paths)], raw)
    exposed, n_records, least = by_definition(raw, left, left, Definition(3, 9, "1/2"))
    assert exposed
    assert least is not None
    # 9 times 1,001 records are at least 9,000 and below 9,010; 8 times are not.
    expected = exposed, n_records * 1001, least * 1001
    assert found_out(grown(raw), grown(left), grown(left), 3, 9_000, "1/2") == expected


def grown(paths: Paths) -> Paths:
    return Paths(paths.items, paths.starts, paths.cells, paths.weights * 1001, paths.domain)


def test_nobody_is_excluded_without_times_or_by_a_table_of_two_places_at_once() -> None:
    raw, _ = walked(E1)
    twice, _ = walked([*E1, (path("a3", "b3"), 0)])
    assert excludes(raw, TIMED)
    assert not excludes(twice, TIMED)
    assert not excludes(raw, Vocabulary(TIMED.n_items))
    assert exclusion(raw, raw, twice, TIMED, bounds(1, 2)) is None


def test_what_is_found_is_not_printed() -> None:
    raw, number = walked(E1)
    left = left_of(raw, 1, 2)
    assert repr(exclusion(raw, left, left, TIMED, bounds(1, 2))) == "Exclusion()"
    assert repr(mended(raw, number, 1, 2)) == "Repaired()"


def test_e1_is_repaired_by_a_record_that_falls_silent() -> None:
    """One of the two with b1; then b1 is that of one record, and suppressed, too."""
    raw, number = walked(E1)
    found = mended(raw, number, 1, 2)
    assert [found.left.path(r) for r in found.number] == [(item("c2"),)] * 3
    assert (found.turns, found.emptied) == (1, 1)


def test_only_as_many_records_fall_silent_as_are_missing() -> None:
    """A reader of a1 needs three more candidates: the first three of the table that have what closes them
    out.
    """
    raw, number = walked([(path("a1", "c2"), 0), *[(path("b1", "c2"), 0)] * 6])

    def without_a1(paths: Paths) -> Paths:
        return as_left([frozenset(paths.path(r)) - path("a1") for r in range(paths.n_paths)], paths)

    found = repaired(raw, number, without_a1, TIMED, bounds(1, 4))
    assert [item("b1") in found.left.path(r) for r in found.number] == [False] * 4 + [True] * 3
    assert (found.turns, found.emptied) == (1, 3)


def test_repair_takes_another_turn_where_the_first_takes_new_items() -> None:
    """K alone never needs one: whoever lost what had K records counts among those who can be meant. C does."""
    walks = [(path("c2"), 1), (path("b2"), 1), (path("c3"), 1), (path("c2", "c3"), 0)]
    records = [*walks, (path("a1", "b2", "c3"), 0), (path("b1", "a2"), 1)]
    raw, number = walked(records)
    found = mended(raw, number, 1, 2, "2/3")
    assert (found.turns, found.emptied) == (2, 2)
    assert by_definition(found.raw, found.left, found.left, Definition(1, 2, "2/3"))[0] == set()


@settings(max_examples=examples(60))
@given(walkers(10), st.integers(1, 3), st.integers(1, 4), st.sampled_from(["1/3", "2/3", "1"]))
def test_repair_ends_with_nothing_exposed(records: list[Record], L: int, K: int, C: str) -> None:
    asked = Definition(L, K, C)
    if not asked.keeps((), records):
        records = [*records, *[(frozenset(), 0)] * (4 + 2 * len(records))]
    raw, number = walked(records)
    found = mended(raw, number, L, K, C)
    assert [(frozenset(found.raw.path(r)), int(found.raw.cells[r])) for r in found.number] == records
    assert np.array_equal(np.bincount(found.number), found.raw.weights)
    left = [(frozenset(found.left.path(r)), int(found.left.cells[r])) for r in found.number]
    assert all(after <= before for (after, _), (before, _) in zip(left, records, strict=True))
    assert asked.is_met(left)
    assert by_definition(found.raw, found.left, found.left, asked)[0] == set()


def test_too_many_sequences_are_refused_before_they_are_looked_at() -> None:
    """64 readings have 83,278,000 sequences of at most six, of which no list is made."""
    raw, words = long_paths(64), Vocabulary(2, 64, timed=True)
    left = without(raw, raw.items == 0)
    asked = bounds(6, 2)
    started = time.process_time()
    with pytest.raises(PrivacyError) as caught:
        exclusion(raw, left, left, words, asked)
    assert time.process_time() - started < 1
    assert caught.value.error_id == "exclusion-untested"
    assert not any(character.isdigit() for character in str(caught.value))
    assert f"{sum(math.comb(64, i) for i in range(1, 7)):,}" in caught.value.private
    assert isinstance(exclusion_or_untested(raw, left, left, words, asked), Untested)


def test_as_many_sequences_as_the_bound_are_tested() -> None:
    raw, words, asked = long_paths(6), Vocabulary(2, 6, timed=True), bounds(2, 2)
    left = without(raw, raw.items == 0)
    assert isinstance(exclusion_or_untested(raw, left, left, words, asked, most=6 + 15), Exclusion)
    assert isinstance(exclusion_or_untested(raw, left, left, words, asked, most=6 + 14), Untested)


def test_sequences_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings do not depend on how many are looked at together."""
    raw, words, asked = long_paths(6), Vocabulary(2, 6, timed=True), bounds(3, 3)
    left = without(raw, raw.items == 0)
    whole = exclusion(raw, left, left, words, asked)
    assert whole is not None
    assert whole.n_exposed > 4
    monkeypatch.setattr("anonymize.trajectory.exclusion._CHOSEN_AT_ONCE", 4)
    parts = exclusion(raw, left, left, words, asked)
    assert parts is not None
    assert (list(parts.sequences()), parts.records, parts.least) == (
        list(whole.sequences()),
        whole.records,
        whole.least,
    )


def test_words_to_be_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    raw, words, asked = long_paths(6), Vocabulary(2, 6, timed=True), bounds(3, 3)
    left = without(raw, raw.items == 0)
    monkeypatch.setattr("anonymize.trajectory.exclusion.MOST_WORDS", 5)
    assert isinstance(exclusion_or_untested(raw, left, left, words, asked), Untested)


def long_paths(length: int) -> Paths:
    """Two records: one at the first of two places all the time, one at the other."""
    items = np.concatenate([np.arange(0, 2 * length, 2), np.arange(1, 2 * length, 2)]).astype(np.int32)
    starts, ones = np.array([0, length, 2 * length]), np.ones(2, dtype=np.int64)
    return Paths(items, starts, np.zeros(2, dtype=np.int32), ones, 2 * length)
