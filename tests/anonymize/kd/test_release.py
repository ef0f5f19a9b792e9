"""A kd release as its readers see it: verified from its labels, and measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from anonymize.errors import PrivacyError
from anonymize.kd.boxes import Boxes
from anonymize.kd.metrics import measure
from anonymize.kd.single import anonymize_kd
from anonymize.kd.table import BoxedTable, release_of_boxes, released
from anonymize.kd.verification import verify_kd
from anonymize.lkc.verification import Claim, verify_lkc
from anonymize.release import LabelledColumn, Release
from tests.support import jobs
from tests.support.entries import claim
from tests.support.kd import kd_cases, loaded, printed, wide_case
from tests.support.tables import Case


def claim_of(case: Case) -> Claim:
    return claim(list(case.problem.qid), case.problem.L, case.problem.K, case.problem.sensitive)


@settings(max_examples=150, deadline=None)
@given(kd_cases())
def test_every_release_is_verified_also_by_all_subsets(case: Case) -> None:
    table, requirement = loaded(case)
    try:
        outcome = anonymize_kd(table, requirement)
    except PrivacyError:
        return
    release = release_of_boxes(table.schema, outcome.table)
    values = {column.name: column.values for column in table.schema.qid}
    assert verify_kd(release, values, claim_of(case)) is None
    assert verify_lkc(release, claim_of(case)) is None
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    by_row = released(table.schema, outcome.table.boxes, outcome.group[rows], table.cells[rows])
    assert jobs.multiset(by_row) == jobs.multiset(release)


def test_faults_are_found() -> None:
    case = wide_case(600)
    table, requirement = loaded(case)
    outcome = anonymize_kd(table, requirement)
    values = {column.name: column.values for column in table.schema.qid}
    release = release_of_boxes(table.schema, outcome.table)
    smallest, asked = int(outcome.table.sizes().min()), claim_of(case)
    more = Claim(asked.columns, 4, {**asked.asked, "K": smallest + 1}, asked.protected)
    found = verify_kd(release, values, more)
    assert found is not None
    assert found.threshold == "K"
    same = np.zeros(release.n_rows, dtype=np.int64)
    of_one_value = Release({**release.columns, "s": LabelledColumn(("x",), same)})
    found = verify_kd(of_one_value, values, asked)
    assert found is not None
    assert (found.threshold, found.sensitive) == ("C", "s")
    for name, label in (("q0", "a|c"), ("q0", "b|a"), ("n0", "[0,98)"), ("q1", "X0|Y0")):
        wrong = Release({**release.columns, name: LabelledColumn((label,), same)})
        found = verify_kd(wrong, values, asked)
        assert found is not None
        assert (found.columns, found.threshold) == ((name,), "label")


def test_metrics_are_those_of_the_printed_groups() -> None:
    table, requirement = loaded(wide_case(400))
    outcome = anonymize_kd(table, requirement)
    release = release_of_boxes(table.schema, outcome.table)
    found = measure(table.schema, outcome.table, release)
    groups = printed(table.schema, outcome.table)
    sizes = [len(rows) for _, rows in groups]
    assert found.groups == len({labels for labels, _ in groups}) == len(groups)
    assert found.smallest == min(sizes)
    assert found.average_group == pytest.approx(sum(n * n for n in sizes) / 400)
    assert found.discernibility_ratio == pytest.approx(sum(n * n for n in sizes) / 400**2)
    widths = [int(b) - int(a) for a, b in (labels[2][1:-1].split(",") for labels, _ in groups)]
    loss = sum(n * (w - 1) for n, w in zip(sizes, widths, strict=True)) / 400 / 96
    assert found.generalization_loss["n0"] == pytest.approx(loss)
    assert found.ncp == pytest.approx(sum(found.generalization_loss.values()) / 4)


def test_boxes_that_print_alike_are_one_group_to_readers() -> None:
    table, _ = loaded(wide_case(10))
    release = release_of_boxes(table.schema, two_boxes(table.schema.qid[2].n_leaves))
    one = Release({**release.columns, "n0": LabelledColumn(("[0,97)",), np.zeros(10, dtype=np.int64))})
    found = measure(table.schema, two_boxes(97), one)
    assert (found.groups, found.smallest, found.average_group) == (1, 10, 10.0)


def two_boxes(cells: int) -> BoxedTable:
    first = np.array([[0, 0], [0, 0], [0, 50], [0, 0]])
    last = np.array([[11, 11], [36, 36], [50, cells], [334, 334]])
    return BoxedTable(Boxes(first, last), np.array([0, 1]), np.array([0, 0]), np.array([4, 6]))
