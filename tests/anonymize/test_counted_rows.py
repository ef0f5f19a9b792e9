"""Tables whose rows stand for several records: whatever is found of them is found of the records written out."""

from __future__ import annotations

from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import Cut
from anonymize.kd.metrics import Groups
from anonymize.lkc.linked_columns import count_linked, groups_of
from anonymize.lkc.metrics import measure_loss, measure_partitions, measure_risk
from anonymize.release import LabelledColumn, Release
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import from_nested
from anonymize.verification.tables import Bound, Claim, examine, verify_cells
from jobs.file.columns import Column
from jobs.plain_columns import about_formulas, measure
from jobs.release.csv import same_rows
from tests.support.examples import examples

QID = ("q", "r")
LABELS = {"q": ("a", "b"), "r": ("c", "d", "e"), "s": ("x", "y", "z"), "t": ("u", "v"), "k": ("=1+1", "N")}
COLUMNS = {"k": Column.model_validate({"role": "class", "domain": list(LABELS["k"])})}
PROTECTED = {"s": frozenset("xy"), "t": frozenset("u")}


def written_out(release: Release) -> Release:
    """The same with a row for every record."""
    assert release.counts is not None
    return release.in_rows()


@st.composite
def tables(draw: st.DrawFn) -> Release:
    n = draw(st.integers(1, 12))
    codes = {
        name: draw(st.lists(st.integers(0, len(labels) - 1), min_size=n, max_size=n))
        for name, labels in LABELS.items()
    }
    counts = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    columns = {name: LabelledColumn(LABELS[name], np.array(own)) for name, own in codes.items()}
    return Release(columns, np.array(counts))


CLAIMS = [
    {"K": 3},
    {"K": 1, "C": {"s": Fraction(1, 2)}},
    {"K": 1, "distinct": {"s": 2}},
    {"K": 1, "t": {"s": (Fraction(1, 3), None)}},
    {"K": 1, "t": {"s": (Fraction(1, 3), ("x", "y", "z"))}},
    {"K": 1, "diversity": {"least": 2, "at_most": {}, "blocks": [["s"], ["t"]]}},
    {"K": 1, "diversity": {"least": 3, "at_most": {}, "blocks": [["s", "t"]]}},
    {
        "K": 1,
        "ruled_out": {
            "values": 1,
            "C": {"s": Fraction(3, 4), "t": Fraction(3, 4)},
            "at_most": {},
            "blocks": [["s", "t"]],
        },
    },
]


@pytest.mark.parametrize("asked", CLAIMS, ids=lambda asked: list(asked)[-1])
@settings(max_examples=examples(40), deadline=None)
@given(release=tables(), most=st.integers(0, 2))
def test_claims_hold_of_both_or_of_neither(asked: dict[str, object], release: Release, most: int) -> None:
    claim, rows = Claim(QID, most, asked, PROTECTED), written_out(release)
    assert examine(release, claim) == examine(rows, claim)
    assert verify_cells(release, [*QID, "k"], claim) == verify_cells(rows, [*QID, "k"], claim)


@settings(max_examples=examples(60), deadline=None)
@given(release=tables())
def test_figures_are_of_records(release: Release) -> None:
    rows = written_out(release)
    assert release.n_records == rows.n_rows == rows.n_records
    assert measure_partitions(release, QID) == measure_partitions(rows, QID)
    assert measure_risk(release, QID, 4) == measure_risk(rows, QID, 4)
    assert measure(COLUMNS, release) == measure(COLUMNS, rows)
    assert about_formulas(release) == about_formulas(rows)
    for blocks in ([["s"], ["t"]], [["s", "t"]]):
        linked = [count_linked(each, groups_of(each, QID), blocks) for each in (release, rows)]
        assert linked[0] == linked[1]
    bounds = [Bound("s", PROTECTED["s"], Fraction(1, 2)), Bound("t", PROTECTED["t"], Fraction(1, 2))]
    of_both = [Groups(each, QID, bounds) for each in (release, rows)]
    assert asdict(of_both[0].metrics) == asdict(of_both[1].metrics)
    assert of_both[0].inferences == of_both[1].inferences
    column = QidColumn(
        "r", from_nested({"*": {"c": ["1", "2"], "d": ["3"], "e": ["4"]}}, "r", missing_leaf=False)
    )
    schema, cut = Schema((column,), None, ("",)), Cut((column.children(column.root),))
    losses = [measure_loss(each, schema, cut)["r"] for each in (release, rows)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


@settings(max_examples=examples(60), deadline=None)
@given(release=tables(), other=tables())
def test_same_rows_are_the_same_records(release: Release, other: Release) -> None:
    names, rows, others = list(LABELS), written_out(release), written_out(other)
    assert same_rows(release, rows, names)
    assert same_rows(rows.some(np.arange(rows.n_rows)[::-1]), release, names)
    assert same_rows(release, other, names) == same_rows(rows, others, names)
    some = release.ordered(QID).some(np.arange(release.n_rows)[::-1])
    assert same_rows(some, rows, QID)
    assert not same_rows(release, replace(release, counts=release.counts + 1), names)  # type: ignore[operator]
