"""Held out means held out: what is predicted has no part in the cut, and figures are those of their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.cut import top
from anonymize.grid import from_step
from anonymize.kd.boxes import Boxes
from anonymize.table import CodedTable, QidColumn, Schema
from anonymize.tds import Observer
from evaluation.features import (
    MOST_VALUES,
    Seen,
    boxed_features,
    generalized_features,
    nearest_boxes,
    raw_features,
    seen_by_cut,
    sensitive_features,
)
from evaluation.holdout import (
    ANONYMOUS,
    MAJORITY,
    PUBLISHED,
    RAW,
    WITHOUT,
    evaluated,
    mean_of,
    splits_of,
)
from evaluation.learners import LEARNERS, Figures, figures, learned, majority
from evaluation.rows import Rows, read_rows
from jobs.data.sources import Csv
from jobs.data.tables import Loaded
from jobs.errors import ConfigError
from jobs.lkc.kd import single as kd_single
from jobs.lkc.single import anonymized, rows_kept
from jobs.loading import open_task
from jobs.reading import load_table
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS, columns, single_job

THIRD = Fraction(1, 3)


def rows_of(folder: Path, rows: Sequence[Mapping[str, str]], **changes: Any) -> Rows:
    path = jobs.write_csv(folder / "table.csv", rows, COLUMNS)
    return read_rows(Csv(path), open_task(jobs.bundle_of(single_job(**changes))))


@given(n=st.integers(2, 60), parts=st.tuples(st.integers(1, 5), st.integers(1, 5)), seed=st.integers(0, 9))
def test_every_record_is_on_one_side_of_a_split(n: int, parts: tuple[int, int], seed: int) -> None:
    share = Fraction(parts[0], sum(parts))
    if not 0 < int(n * share) < n:
        with pytest.raises(ConfigError):
            splits_of(np.arange(n), share, 2, seed)
        return
    for split in splits_of(np.arange(n), share, 3, seed):
        assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(n))
        assert len(split.test) == int(n * share)
    again, other = splits_of(np.arange(n), share, 3, seed), splits_of(np.arange(n), share, 3, seed + 1)
    same = [
        np.array_equal(a.test, b.test)
        for a, b in zip(splits_of(np.arange(n), share, 3, seed), again, strict=True)
    ]
    assert all(same)
    if n > 30:
        assert not np.array_equal(again[0].test, other[0].test)
        assert not np.array_equal(again[0].test, again[1].test)


@given(st.lists(st.integers(0, 5), min_size=6, max_size=30), st.integers(0, 9))
def test_a_person_is_on_one_side(people: list[int], seed: int) -> None:
    whose = np.unique(np.array([*people, *range(6)]), return_inverse=True)[1]
    for split in splits_of(whose, Fraction(1, 2), 3, seed):
        assert len(set(whose[split.test].tolist())) == 3
        assert set(whose[split.test].tolist()).isdisjoint(whose[split.train].tolist())
        assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(len(whose)))


def test_people_of_a_table_are_kept_apart(tmp_path: Path) -> None:
    sample = [{**row, "patient": f"p{i // 4}"} for i, row in enumerate(sample_rows(80))]
    lkc = {"lkc": {"L": "2", "K": "3", "C": "1"}, "unit": "person"}
    rows = rows_of(tmp_path, sample, model=lkc)
    names = [row["patient"] for row in sample]
    for i, j in itertools.combinations(range(80), 2):
        assert (names[i] == names[j]) == (rows.whose[i] == rows.whose[j])
    some = np.arange(0, 40)
    alone = jobs.write_csv(tmp_path / "some.csv", sample[:40], COLUMNS)
    cut = anonymized(rows.task, rows.table(some), Observer()).cut
    assert cut == anonymized(rows.task, load_table(Csv(alone), rows.task), Observer()).cut


def test_rows_are_those_of_a_run_with_their_numbers(tmp_path: Path) -> None:
    sample = [{**row, "age": f" {int(row['age'])}.5"} for row in sample_rows(60)]
    sample[7] = {**sample[7], "age": "?"}
    rows = rows_of(tmp_path, sample)
    kept = [row for i, row in enumerate(sample) if i != 7]
    assert rows.n_records == 59
    assert rows.numbers["age"].tolist() == [float(row["age"]) for row in kept]
    assert rows.codes("age").tolist() == [int(float(row["age"]) // 10) for row in kept]
    loaded = load_table(Csv(tmp_path / "table.csv"), rows.task)
    assert rows.table().canonical() == loaded.canonical()
    assert rows.coded.rows == loaded.rows


def test_some_of_the_rows_make_the_table_of_these_rows(tmp_path: Path) -> None:
    sample = sample_rows(60)
    rows = rows_of(tmp_path, sample)
    some = np.array([3, 5, 8, 59])
    alone = jobs.write_csv(tmp_path / "some.csv", [sample[i] for i in some], COLUMNS)
    assert rows.table(some).canonical() == load_table(Csv(alone), rows.task).canonical()


class Watched:
    """Anonymizes, and keeps what it was given."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.given: list[Loaded] = []

    def __call__(self, loaded: Loaded) -> tuple[Seen, CodedTable]:
        self.given.append(loaded)
        kept = rows_kept(self._rows.task, loaded)
        return seen_by_cut(anonymized(self._rows.task, kept, Observer()).cut), kept.table


def test_only_training_rows_are_anonymized(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, sample_rows(90))
    splits = splits_of(np.arange(90), THIRD, 3, 1)
    watched = Watched(rows)
    found = evaluated(rows, splits, {"": watched})
    assert [each.canonical() for each in watched.given] == [rows.table(s.train).canonical() for s in splits]
    assert list(found) == [MAJORITY, WITHOUT, RAW, ANONYMOUS]


def test_the_published_protocol_anonymizes_all_rows_once(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, sample_rows(90))
    splits, watched, done = splits_of(np.arange(90), THIRD, 2, 1), Watched(rows), list[int]()
    found = evaluated(rows, splits, {"": watched}, published=True, done=done.append)
    assert [each.table.n_records for each in watched.given] == [90, 60, 60]
    assert list(found) == [MAJORITY, WITHOUT, RAW, ANONYMOUS, PUBLISHED]
    assert done == [1, 2]


def test_figures_are_those_of_the_cut_of_the_training_rows(tmp_path: Path) -> None:
    """Every figure again, one at a time."""
    rows = rows_of(tmp_path, sample_rows(300))
    (split,) = splits_of(np.arange(300), THIRD, 1, 4)
    found = evaluated(rows, [split], {"": Watched(rows)}, published=True)
    schema = rows.table().table.schema
    cut = anonymized(rows.task, rows.table(split.train), Observer()).cut
    cut_of_all = anonymized(rows.task, rows.table(), Observer()).cut
    features = {
        WITHOUT: sensitive_features(rows, schema),
        RAW: raw_features(rows, schema),
        ANONYMOUS: generalized_features(rows, schema, cut),
        PUBLISHED: generalized_features(rows, schema, cut_of_all),
    }
    for way, learner in itertools.product(features, LEARNERS):
        expected = learned(learner, features[way], rows.class_codes, 2, split.train, split.test)
        assert list(found[way].figures[learner]) == [expected]


def test_of_withheld_rows_nothing_is_learned(tmp_path: Path) -> None:
    """Withheld rows are told by what the table has of them; rows that are predicted are never withheld."""
    sample = [{**row, "job": row["job"].replace("Lawyer", "Mover")} for row in sample_rows(300)]
    for i in (3, 50, 100, 200):
        sample[i]["job"] = "Lawyer"
    rows = rows_of(
        tmp_path, sample, model={"lkc": {"L": "2", "K": "5", "C": "1"}}, goal="general", withhold="1/20"
    )
    (split,) = splits_of(np.arange(300), THIRD, 1, 4)
    found = evaluated(rows, [split], {"": Watched(rows)}, published=True)
    schema = rows.table().table.schema
    names = ("job", "age", "transfused", "surgery")

    def learn(
        learner: str, part: np.ndarray[Any, Any], test: np.ndarray[Any, Any], *, all_tested: bool
    ) -> Figures:
        kept = rows_kept(rows.task, rows.table(part))
        assert kept.table.n_records < len(part)
        codes = [*kept.table.qid, kept.table.axis(0), kept.table.axis(1)]
        there = set(zip(*(column.tolist() for column in codes), strict=True))
        inside = np.array([tuple(int(rows.codes(n)[i]) for n in names) in there for i in range(300)])
        features = generalized_features(rows, schema, anonymized(rows.task, kept, Observer()).cut)
        train = split.train[inside[split.train]]
        tested = test if all_tested else test[inside[test]]
        return learned(learner, features, rows.class_codes, 2, train, tested)

    for learner in LEARNERS:
        expected = learn(learner, split.train, split.test, all_tested=True)
        assert list(found[ANONYMOUS].figures[learner]) == [expected]
        expected = learn(learner, np.arange(300), split.test, all_tested=False)
        assert list(found[PUBLISHED].figures[learner]) == [expected]


def test_withheld_rows_are_told_from_others_where_domains_are_left_to_the_data(tmp_path: Path) -> None:
    """The table that is released has fewer values than the rows that it is compared with."""
    sample = [{**row, "job": row["job"].replace("Lawyer", "Mover")} for row in sample_rows(100)]
    for i in (3, 50):
        sample[i] |= {
            "job": "Lawyer",
            "transfused": "Absent",
            "surgery": "Apart",
        }  # the first in both domains
    rows = rows_of(
        tmp_path,
        sample,
        model={"lkc": {"L": "1", "K": "5", "C": "0.6"}},
        goal="general",
        withhold="1/50",
        columns=columns(transfused={"role": "class"}, surgery={"role": "sensitive"}),
    )
    kept = rows_kept(rows.task, rows.table()).table
    assert kept.schema.classes == ("N", "Y")
    assert rows.among(np.arange(100), kept).tolist() == [i for i in range(100) if i not in {3, 50}]


def test_features_are_what_the_release_says(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, sample_rows(80))
    schema = rows.table().table.schema
    cut = anonymized(rows.task, rows.table(), Observer()).cut
    features = generalized_features(rows, schema, cut)
    nodes = [
        (
            cut.nodes[0][cut.positions(0)[rows.codes("job")[i]]],
            cut.nodes[1][cut.positions(1)[rows.codes("age")[i]]],
        )
        for i in range(80)
    ]
    assert cut.is_refined(0) or cut.is_refined(1)
    # Two records have the same features just if they are released alike.
    released = [(*n, s) for n, s in zip(nodes, rows.codes("surgery").tolist(), strict=True)]
    seen = [tuple(f) for f in features.tolist()]
    for i, j in itertools.combinations(range(80), 2):
        assert (released[i] == released[j]) == (seen[i] == seen[j])


def test_an_interval_stands_for_its_middle(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path, sample_rows(400), score="infogain", model={"lkc": {"L": "1", "K": "2", "C": "1"}}
    )
    schema = rows.table().table.schema
    cut = anonymized(rows.task, rows.table(), Observer()).cut
    assert cut.is_refined(1)
    number = len(set(cut.positions(0)[rows.codes("job")].tolist())) if cut.is_refined(0) else 0
    middles = generalized_features(rows, schema, cut)[:, number].tolist()
    for middle, code in zip(middles, rows.codes("age").tolist(), strict=True):
        node = next(node for node in cut.nodes[1] if node.first <= code < node.last)
        assert middle == 10 * (node.first + node.last) / 2


def test_nothing_to_learn_from_is_one_constant_feature(tmp_path: Path) -> None:
    job = single_job(columns=columns(surgery=None))
    path = jobs.write_csv(tmp_path / "t.csv", sample_rows(30), COLUMNS)
    rows = read_rows(Csv(path), open_task(jobs.bundle_of(job)))
    schema = rows.table().table.schema
    for features in (sensitive_features(rows, schema), generalized_features(rows, schema, top(schema))):
        assert features.tolist() == [[0.0]] * 30


def test_of_many_values_the_most_frequent_are_told_apart(tmp_path: Path) -> None:
    values = [f"v{i}" for i in range(MOST_VALUES + 40)]
    sample = [{**row, "job": values[i % len(values)]} for i, row in enumerate(sample_rows(2 * len(values)))]
    sample += [{**sample[0], "patient": f"x{i}", "job": values[-1]} for i in range(3)]  # the last is frequent
    rows = rows_of(tmp_path, sample, columns=columns(job={"role": "qid", "taxonomy": {"*": values}}))
    schema = rows.table().table.schema
    features = raw_features(rows, schema)[:, :MOST_VALUES]
    known = features.sum(axis=1) == 1
    assert {int(f) for f in features.sum(axis=1)} == {0, 1}
    assert known[rows.codes("job") == schema.qid[0].values.leaf_index()[values[-1]]].all()  # type: ignore[union-attr]
    assert np.unique(features[known], axis=0).shape[0] == MOST_VALUES


@given(st.integers(2, 4), st.data())
def test_figures_by_their_definitions(n_classes: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    cells = st.integers(0, 3)
    shares = np.array(
        data.draw(st.lists(st.lists(cells, min_size=n_classes, max_size=n_classes), min_size=n, max_size=n)),
        dtype=np.float64,
    )
    truth = np.array(data.draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)))
    found = figures(shares, truth)
    wrong = [
        max(range(n_classes), key=lambda c: (row[c], -c)) != t for row, t in zip(shares, truth, strict=True)
    ]
    assert found.error == pytest.approx(sum(wrong) / n)
    weighted, weight = Fraction(0), 0
    for c in range(n_classes):
        inside = [row[c] for row, t in zip(shares, truth, strict=True) if t == c]
        outside = [row[c] for row, t in zip(shares, truth, strict=True) if t != c]
        if inside and outside:
            above = sum(Fraction(int(a > b) * 2 + int(a == b), 2) for a in inside for b in outside)
            weighted += len(inside) * above / (len(inside) * len(outside))
            weight += len(inside)
    if weight:
        assert found.auc == pytest.approx(float(weighted / weight))
    else:
        assert found.auc is None


def test_the_majority_is_that_of_the_training_rows() -> None:
    classes = np.array([0, 0, 1, 1, 1, 0, 0])
    found = majority(classes, 2, np.array([2, 3, 0]), np.array([1, 4, 5, 6]))
    assert (found.error, found.auc) == (0.75, 0.5)


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_single_class_to_learn_from(learner: str) -> None:
    features = np.zeros((6, 1), dtype=np.float32)
    found = learned(learner, features, np.array([2, 2, 2, 2, 0, 1]), 3, np.arange(3), np.arange(3, 6))
    assert (found.error, found.auc) == (pytest.approx(2 / 3), 0.5)


def test_the_standard_error_is_that_of_a_mean() -> None:
    found = mean_of([1.0, 2.0, 4.0])
    assert found.mean == pytest.approx(7 / 3)
    assert found.error == pytest.approx(((16 / 9 + 1 / 9 + 25 / 9) / 2 / 3) ** 0.5)
    assert mean_of([1.0]).error is None


# ---- boxes

KD: dict[str, Any] = {"method": "kd", "goal": "general", "model": {"lkc": {"L": "all", "K": "3", "C": "1"}}}


def test_records_are_seen_in_their_boxes(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, sample_rows(200), **KD)
    loaded = rows.table()
    schema, table = loaded.table.schema, loaded.table
    outcome = kd_single.anonymized(rows.task, table, Observer())
    boxes = outcome.table.boxes
    assert nearest_boxes(schema, boxes, list(table.qid)).tolist() == outcome.group.tolist()
    features = boxed_features(rows, schema, boxes)
    group = nearest_boxes(schema, boxes, [rows.codes("job"), rows.codes("age")])
    middles = 5 * (boxes.first[1] + boxes.last[1])[group]
    shares = features[:, :4]
    assert features[:, 4].tolist() == middles.tolist()  # four leaves of job: three, and a missing one
    assert shares.sum(axis=1) == pytest.approx(1)
    own = shares[np.arange(200), rows.codes("job")]
    assert own == pytest.approx(1 / (boxes.last - boxes.first)[0][group])


def test_a_record_in_no_box_goes_to_the_nearest() -> None:
    """Columns of 10 and 4 leaves; by hand."""
    schema = Schema((column("a", 10), column("b", 4)), None, ("",))
    boxes = Boxes(np.array([[0, 6, 0], [0, 0, 3]]), np.array([[3, 10, 10], [3, 3, 4]]))
    records = [np.array([2, 5, 4, 4, 3]), np.array([2, 0, 0, 2, 3])]
    assert nearest_boxes(schema, boxes, records).tolist() == [0, 1, 0, 0, 2]


def column(name: str, n_leaves: int) -> QidColumn:
    return QidColumn(name, from_step(Decimal(0), Decimal(n_leaves), Decimal(1), name))
