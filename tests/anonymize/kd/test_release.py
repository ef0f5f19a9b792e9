"""A kd release as its readers see it: verified from its labels, and measured."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from anonymize.errors import PrivacyError
from anonymize.kd.boxes import Boxes
from anonymize.kd.median import MedianHolder
from anonymize.kd.metrics import Groups, measure_loss
from anonymize.kd.single import anonymize_kd
from anonymize.kd.table import BoxedTable, release_of_boxed_rows, release_of_boxes
from anonymize.release import LabelledColumn, Release
from anonymize.verification.boxes import are_cut_from, box_test
from anonymize.verification.tables import Bound, Claim, verify_lkc
from tests.support import jobs
from tests.support.entries import claim
from tests.support.examples import examples
from tests.support.kd import kd_cases, loaded, printed, wide_case
from tests.support.samples import release_of
from tests.support.tables import Case


def claim_of(case: Case) -> Claim:
    return claim(list(case.problem.qid), case.problem.L, case.problem.K, case.problem.sensitive)


@settings(max_examples=examples(150), deadline=None)
@given(kd_cases())
def test_every_release_is_verified(case: Case) -> None:
    table, requirement = loaded(case)
    try:
        outcome = anonymize_kd(table, requirement)
    except PrivacyError:
        return
    release = release_of_boxes(table.schema, outcome.table)
    for column in table.schema.qid:
        assert all(map(box_test(column.values), release.columns[column.name].labels))
    assert verify_lkc(release, claim_of(case)) is None
    by_row = release_of_boxed_rows(table, outcome.table.boxes, outcome.group)
    assert jobs.multiset(by_row) == jobs.multiset(release)


def test_faults_are_found() -> None:
    case = wide_case(600)
    table, requirement = loaded(case)
    outcome = anonymize_kd(table, requirement)
    release = release_of_boxes(table.schema, outcome.table)
    smallest, asked = int(outcome.table.sizes().min()), claim_of(case)
    more = Claim(asked.columns, 4, {**asked.asked, "K": smallest + 1}, asked.protected)
    found = verify_lkc(release, more)
    assert found is not None
    assert found.threshold == "K"
    same = np.zeros(release.n_rows, dtype=np.int64)
    of_one_value = Release({**release.columns, "s": LabelledColumn(("x",), same)})
    found = verify_lkc(of_one_value, asked)
    assert found is not None
    assert (found.threshold, found.sensitive) == ("C", "s")


@pytest.mark.parametrize(
    ("name", "label", "is_box"),
    [
        ("q0", "a|c", False),
        ("q0", "b|a", False),
        ("q0", "b|c", True),
        ("n0", "[0,98)", False),
        ("n0", "[0,5)", True),
        ("q1", "X0|Y0", False),
        ("q1", "X0|X1", True),
    ],
)
def test_labels_that_are_no_boxes(name: str, label: str, is_box: bool) -> None:
    table, _ = loaded(wide_case(10))
    (column,) = [column for column in table.schema.qid if column.name == name]
    assert box_test(column.values)(label) == is_box


@settings(max_examples=examples(60), deadline=None)
@given(kd_cases())
def test_boxes_of_every_run_are_cut_from_the_whole(case: Case) -> None:
    """With medians nothing is left out; boxes that shrink leave out what no record has."""
    table, requirement = loaded(case)
    n_leaves = np.array([column.n_leaves for column in table.schema.qid])
    for holder in (None, MedianHolder):
        try:
            boxes = anonymize_kd(table, requirement, holder=holder).table.boxes
        except PrivacyError:
            return
        assert are_cut_from(boxes.first, boxes.last, n_leaves, whole=holder is not None)
        assert are_cut_from(boxes.first[:, ::-1], boxes.last[:, ::-1], n_leaves, whole=holder is not None)


def boxes_of(*boxes: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Boxes by column and end."""
    ends = np.array(boxes, dtype=np.int64)
    return ends[:, :, 0].T, ends[:, :, 1].T


PINWHEEL = [((0, 2), (0, 1)), ((2, 3), (0, 2)), ((1, 3), (2, 3)), ((0, 1), (1, 3)), ((1, 2), (1, 2))]
"""Five boxes that fill a square of 3 by 3 leaves, and that no cut parts."""


@pytest.mark.parametrize(
    ("boxes", "parted", "whole"),
    [
        ([((0, 3), (0, 3))], True, True),
        ([((0, 1), (0, 3)), ((1, 3), (0, 2)), ((1, 3), (2, 3))], True, True),
        ([((0, 1), (0, 3)), ((1, 3), (0, 2))], True, False),  # a corner is left out
        ([((0, 1), (0, 3)), ((2, 3), (0, 3))], True, False),  # what lies between is left out
        ([((0, 3), (0, 2))], True, False),
        ([((0, 2), (0, 3)), ((1, 3), (0, 3))], False, False),  # one leaf in two
        ([((0, 3), (0, 3)), ((1, 2), (1, 2))], False, False),  # one inside another
        ([((0, 1), (0, 3)), ((0, 1), (0, 3))], False, False),
        (PINWHEEL, False, False),
        (PINWHEEL[:4], False, False),
        (PINWHEEL[:3], True, False),
    ],
)
def test_what_cuts_leave(boxes: list[tuple[tuple[int, int], ...]], parted: bool, whole: bool) -> None:
    n_leaves = np.array([3, 3])
    assert are_cut_from(*boxes_of(*boxes), n_leaves, whole=False) is parted
    assert are_cut_from(*boxes_of(*boxes), n_leaves, whole=True) is whole


def test_metrics_are_those_of_the_printed_groups() -> None:
    table, requirement = loaded(wide_case(400))
    outcome = anonymize_kd(table, requirement)
    release = release_of_boxes(table.schema, outcome.table)
    names = [column.name for column in table.schema.qid]
    found, loss = Groups(release, names, []).metrics, measure_loss(table.schema, outcome.table)
    groups = printed(table.schema, outcome.table)
    sizes = [len(rows) for _, rows in groups]
    assert found.groups == len({labels for labels, _ in groups}) == len(groups)
    assert found.smallest == min(sizes)
    assert found.average_group == pytest.approx(sum(n * n for n in sizes) / 400)
    assert found.discernibility_ratio == pytest.approx(sum(n * n for n in sizes) / 400**2)
    widths = [int(b) - int(a) for a, b in (labels[2][1:-1].split(",") for labels, _ in groups)]
    of_n0 = sum(n * (w - 1) for n, w in zip(sizes, widths, strict=True)) / 400 / 96
    assert loss.generalization_loss["n0"] == pytest.approx(of_n0)
    assert loss.ncp == pytest.approx(sum(loss.generalization_loss.values()) / 4)


def test_boxes_that_print_alike_are_one_group_to_readers() -> None:
    table, _ = loaded(wide_case(10))
    release = release_of_boxes(table.schema, two_boxes(table.schema.qid[2].n_leaves)).in_rows()
    one = Release({**release.columns, "n0": LabelledColumn(("[0,97)",), np.zeros(10, dtype=np.int64))})
    found = Groups(one, [column.name for column in table.schema.qid], []).metrics
    assert (found.groups, found.smallest, found.average_group) == (1, 10, 10.0)


ROWS = [
    ("A", "x", "hi"),
    ("A", "x", "lo"),
    ("A", "y", "lo"),
    ("A", "z", "lo"),
    ("B", "x", "lo"),
    ("B", "y", "hi"),
]


def test_what_groups_tell_of_sensitive_columns() -> None:
    """By hand. A: x ½, y ¼, z ¼; B: x ½, y ½; all: x ½, y ⅓, z ⅙."""
    release = release_of(["q", "s", "o"], ROWS)
    half = Fraction(1, 2)
    bounds = [Bound("s", frozenset({"y"}), half), Bound("o", frozenset({"hi", "lo"}), half)]
    groups = Groups(release, ["q"], bounds)
    of_s, of_o = groups.inferences["s"], groups.inferences["o"]
    assert (of_s.fewest_values, of_o.fewest_values) == (2, 2)
    assert (of_s.greatest_share, of_o.greatest_share) == (0.5, 0.75)
    assert of_s.smallest_entropy_l == pytest.approx(2)
    assert of_o.smallest_entropy_l == pytest.approx(2 ** -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))
    assert of_s.greatest_t == pytest.approx(1 / 6)
    assert of_o.greatest_t == pytest.approx(abs(1 / 2 - 1 / 3))
    # Beside x nobody of A is known; y and z of A have lo, x of B has lo and y of B hi; hi of B is a y.
    assert groups.linked_exposure == 4
    loose = [Bound(bound.column, bound.values, Fraction(1)) for bound in bounds]
    assert Groups(release, ["q"], loose).linked_exposure == 0
    assert Groups(release, ["q"], bounds[:1]).linked_exposure == 0


def test_what_groups_tell_does_not_hang_on_the_order_of_rows_and_labels() -> None:
    bounds = [Bound("s", frozenset({"y"}), Fraction(1, 2)), Bound("o", frozenset({"hi"}), Fraction(1, 3))]
    one = Groups(release_of(["q", "s", "o"], ROWS), ["q"], bounds)
    other = Groups(release_of(["q", "s", "o"], ROWS[::-1]), ["q"], bounds)
    assert one.inferences == other.inferences
    assert (one.metrics, one.linked_exposure) == (other.metrics, other.linked_exposure)


def two_boxes(cells: int) -> BoxedTable:
    first = np.array([[0, 0], [0, 0], [0, 50], [0, 0]])
    last = np.array([[11, 11], [36, 36], [50, cells], [334, 334]])
    return BoxedTable(Boxes(first, last), np.array([0, 1]), np.array([0, 0]), np.array([4, 6]))
