"""What readers find of loss in a cut's labels: that of the run, and nothing where labels are no cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from anonymize.errors import PrivacyError
from anonymize.lkc.metrics import measure_loss
from anonymize.lkc.single import anonymize_alone
from anonymize.release import LabelledColumn, Release, cut_labels, release_of_rows
from anonymize.table import QidColumn
from anonymize.taxonomy import from_nested
from anonymize.verification.loss import are_told_apart, left_by, loss_of, widths_of
from tests.support import jobs
from tests.support.examples import examples
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_labels_tell_the_loss_of_a_run(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    table, request = jobs.coded(bundle, case.rows), jobs.request_of(bundle)
    try:
        outcome = anonymize_alone(table, request.requirement, PUBLISHED[bundle.job.goal])
    except PrivacyError:
        return
    release = release_of_rows(table, outcome.cut)
    expected = measure_loss(release, table.schema, outcome.cut)
    for number, column in enumerate(table.schema.qid):
        if are_told_apart(column):
            widths = widths_of(column, cut_labels(column, outcome.cut, number))
            assert loss_of(column, widths, release) == expected[column.name]


def column(*, by_child: bool = True) -> QidColumn:
    tree = {"*": {"A": ["a", "b", "c"], "B": {"D": ["d", "e", "f"], "E": ["g"], "F": ["i"]}, "h": ["h1"]}}
    return QidColumn("q", from_nested(tree, "q", missing_leaf=False), by_child=by_child)


def test_what_rests_of_nodes_has_the_leaves_that_nobody_else_has() -> None:
    """One rest inside another: what D left of B, and what e left of D."""
    labels = ["A", "other B", "other D", "e", "h1"]
    assert widths_of(column(), labels) == {"A": 3, "other B": 2, "other D": 2, "e": 1, "h1": 1}
    published = LabelledColumn(("A", "e"), np.array([0, 0, 1, 1]))
    lost = loss_of(column(), widths_of(column(), labels), Release({column().name: published}))
    assert lost == (2 + 2 + 0 + 0) / 4 / 8


@pytest.mark.parametrize(
    "labels",
    [
        ["A", "B"],
        ["A", "B", "h1", "h1"],
        ["A", "B", "D", "h1"],
        ["A", "a", "B", "h1"],
        ["a", "b", "c", "other A", "B", "h1"],
        ["A", "B", "h1", "strange"],
        [],
    ],
)
def test_what_is_no_cut_is_refused(labels: list[str]) -> None:
    with pytest.raises(ValueError, match="no cut"):
        widths_of(column(), labels)


STEPS = [
    ("*", ["A", "B", "h1"]),
    ("B", ["D", "other B"]),
    ("D", ["e", "other D"]),
    ("other B", ["E", "F"]),
]


def test_steps_leave_the_labels_that_they_lead_to() -> None:
    assert left_by(column(), STEPS) == {"A", "h1", "e", "other D", "E", "F"}
    assert left_by(column(), STEPS[:1]) == {"A", "B", "h1"}


@pytest.mark.parametrize(
    "steps",
    [
        STEPS[1:],
        [STEPS[0], STEPS[2]],
        [("*", ["A", "B"])],
        [("*", ["A", "B", "h1", "h1"])],
        [("*", ["A", "B", "h1", "strange"])],
        [*STEPS[:2], ("D", ["e", "f", "A"])],
        [*STEPS[:2], ("other B", ["E", "D"])],
        [("*", ["A", "B", "h1", "a"])],
        [*STEPS[:1], STEPS[1], STEPS[1]],
    ],
)
def test_steps_that_no_run_makes_are_refused(steps: list[tuple[str, list[str]]]) -> None:
    with pytest.raises(ValueError, match=r"led|part|whole|leaves"):
        left_by(column(), steps)


def test_nodes_of_one_name_are_not_told_apart() -> None:
    tree = from_nested({"*": {"N": {"C": ["a", "b"]}, "S": {"C": ["c", "d"]}}}, "q", missing_leaf=False)
    assert not are_told_apart(QidColumn("q", tree))
    assert are_told_apart(column())
    assert are_told_apart(column(by_child=False))
