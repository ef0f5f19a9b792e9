"""Tables as entries with weights: whatever is found of one is what is found of its rows one by one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.kd.metrics import Groups
from anonymize.lkc.blocks import count_linked, groups_of
from anonymize.lkc.exposure import measure_exposure
from anonymize.lkc.metrics import measure_partitions, measure_risk
from anonymize.lkc.verification import (
    Bound,
    Claim,
    examine,
    verify_cells,
    verify_persons,
    verify_remainders,
)
from anonymize.release import Release
from jobs.release_csv import csv_bytes, same_rows
from tests.support.releases import release_of

NAMES = ["p", "q", "c", "s", "t"]
PROTECTED = {"s": frozenset("x"), "t": frozenset("uv")}
BOUNDS = [Bound(name, values, Fraction(1, 2)) for name, values in PROTECTED.items()]
OUT_OF = {
    "values": 1,
    "C": {"s": Fraction(1, 2), "t": Fraction(1, 2)},
    "at_most": {},
    "blocks": (("s", "t"),),
}
ASKED: dict[str, dict[str, Any]] = {
    "K": {"K": 3},
    "C": {"C": {"s": Fraction(1, 2), "t": Fraction(2, 3)}},
    "distinct": {"distinct": {"s": 2}},
    "t": {"t": {"s": (Fraction(1, 3), None), "t": (Fraction(1, 4), ("u", "v", "w"))}},
    "diversity of two": {"diversity": {"least": 2, "at_most": {}, "blocks": (("s", "t"),)}},
    "diversity of three": {"diversity": {"least": 3, "at_most": {}, "blocks": (("s", "t"),)}},
    "ruled out": {"ruled_out": OUT_OF},
}


def weighted(entries: list[tuple[tuple[str, ...], int]]) -> Release:
    rows = release_of(NAMES, [row for row, _ in entries])
    return Release(rows.columns, np.array([weight for _, weight in entries], dtype=np.int64))


ENTRIES = st.lists(
    st.tuples(
        st.tuples(*(st.sampled_from(values) for values in ("ab", "de", "YN", "xyz", "uvw"))),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=12,
).map(weighted)


def _claim(asked: dict[str, Any]) -> Claim:
    return Claim(("p", "q"), 2, asked, PROTECTED)


def of_cells(release: Release) -> Any:
    return [verify_cells(release, ["p", "c"], _claim(asked)) for asked in ASKED.values()]


FOUND: dict[str, Callable[[Release], Any]] = {
    "partitions": lambda release: measure_partitions(release, ["p", "q"]),
    "risk": lambda release: measure_risk(release, ["p", "q"], 3),
    "exposure": lambda release: measure_exposure(release, ["p", "c"], BOUNDS),
    "groups": lambda release: Groups(release, ["p", "q"], BOUNDS).metrics,
    "inferences": lambda release: Groups(release, ["p"], BOUNDS).inferences,
    "linked exposure": lambda release: Groups(release, ["p"], BOUNDS).linked_exposure,
    "linked": lambda release: count_linked(release, groups_of(release, ["p"]), [["s"], ["t"]]),
    "cells": of_cells,
    "file": csv_bytes,
}


def _examined(release: Release, asked: dict[str, Any]) -> Any:
    found = examine(release, _claim(asked))
    return found.finding, dict(found.worst)


BY_HAND = weighted(
    [
        (("a", "d", "Y", "x", "u"), 2),
        (("a", "d", "Y", "y", "v"), 1),
        (("a", "d", "N", "z", "v"), 3),
        (("a", "e", "Y", "y", "w"), 4),
        (("a", "e", "Y", "z", "u"), 4),
        (("b", "d", "N", "x", "v"), 1),
        (("a", "d", "Y", "x", "u"), 1),  # an entry may stand twice
    ]
)


@pytest.mark.parametrize("what", FOUND)
def test_what_is_measured_by_hand(what: str) -> None:
    assert FOUND[what](BY_HAND) == FOUND[what](BY_HAND.expanded())


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_verified_by_hand(asked: str) -> None:
    """Also of the one part of the table that is not too small for some of it."""
    part = BY_HAND.some(np.array([0, 1, 2, 3, 4, 6]))
    for release in (BY_HAND, part):
        assert _examined(release, ASKED[asked]) == _examined(release.expanded(), ASKED[asked])


def test_sizes_are_of_rows() -> None:
    assert measure_risk(BY_HAND, ["p", "q"], 3).below_k == 1
    assert measure_partitions(BY_HAND, ["p", "q"])["smallest_partition"] == 1
    assert _examined(BY_HAND.some(np.array([0, 1, 2, 3, 4])), ASKED["K"]) == (
        None,
        {("K", None): Fraction(6)},
    )


@settings(max_examples=40, deadline=None)
@given(ENTRIES)
def test_what_is_found_does_not_depend_on_entries(release: Release) -> None:
    for found in FOUND.values():
        assert found(release) == found(release.expanded())
    for asked in ASKED.values():
        expected = _examined(release.expanded(), asked)
        assert _examined(release, asked) == expected == _examined(release.in_label_order(), asked)


@settings(max_examples=40, deadline=None)
@given(ENTRIES, st.data())
def test_whose_entries_are(release: Release, data: st.DataObject) -> None:
    """An entry is one's, so all its rows are."""
    n = release.n_entries
    whose = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=np.int64)
    of_rows = np.repeat(whose, release.weights)
    claim = _claim({"K": 2, "colluders": 1})
    assert verify_remainders(release, whose, claim) == verify_remainders(release.expanded(), of_rows, claim)
    assert verify_persons(release, whose, claim) == verify_persons(release.expanded(), of_rows, claim)


@settings(max_examples=60, deadline=None)
@given(ENTRIES, st.data())
def test_the_same_rows_in_other_entries(release: Release, data: st.DataObject) -> None:
    rows = release.expanded()
    order = np.array(data.draw(st.permutations(range(rows.n_rows))))
    assert same_rows(release, rows.some(order), NAMES)
    assert same_rows(rows.in_label_order(), release, NAMES)
    more = release.weights.copy()
    more[data.draw(st.integers(0, release.n_entries - 1))] += 1
    assert not same_rows(Release(release.columns, more), release, NAMES)


def test_as_many_rows_of_other_kinds_are_not_the_same_rows() -> None:
    swapped = np.array([1, 2, 3, 4, 4, 1, 1])
    assert not same_rows(Release(BY_HAND.columns, swapped), BY_HAND, NAMES)
    assert same_rows(Release(BY_HAND.columns, np.array([1, 1, 3, 4, 4, 1, 2])), BY_HAND, NAMES)
