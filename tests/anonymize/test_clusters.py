"""Labels of clusters against the definition in rationals."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize import clusters
from anonymize.clusters import LEAF, UNIT, Clusters, middles, n_features
from anonymize.grid import Grid, from_cuts, from_step
from anonymize.table import QidColumn
from anonymize.taxonomy import from_nested

AGE = QidColumn("age", from_step(Decimal(0), Decimal(100), Decimal(10), "age"))
GAIN = QidColumn("gain", from_cuts(Decimal("-1.5"), Decimal(7), (Decimal(0), Decimal("0.25")), "gain"))
JOB = QidColumn("job", from_nested({"*": {"a": ["x", "y"], "b": ["z"]}}, "job", missing_leaf=False))
SCHEMA = (AGE, JOB, GAIN)


def test_middles_are_shares_of_the_domain() -> None:
    assert middles(AGE.values)[[0, 9]].tolist() == [3277, 62259]  # type: ignore[arg-type]
    assert isinstance(GAIN.values, Grid)
    shares = [
        Fraction(3, 4) / Fraction(17, 2),
        Fraction(13, 8) / Fraction(17, 2),
        Fraction(41, 8) / Fraction(17, 2),
    ]
    assert middles(GAIN.values).tolist() == [round(UNIT * share) for share in shares]


def test_a_half_is_rounded_up() -> None:
    ones = from_cuts(Decimal(0), Decimal(UNIT), (Decimal(1), Decimal(2), Decimal(3)), "n")
    assert middles(ones)[:3].tolist() == [1, 2, 3]


def test_two_leaves_are_at_distance_one() -> None:
    """1/√2 of the unit, to the nearest integer."""
    assert (2 * LEAF - 1) ** 2 < 2 * UNIT**2 < (2 * LEAF + 1) ** 2


def point(schema: tuple[QidColumn, ...], columns: tuple[int, ...], record: tuple[int, ...]) -> list[int]:
    """A record as integers, one after the other."""
    found: list[int] = []
    for number in columns:
        values = schema[number].values
        if isinstance(values, Grid):
            low, high = Fraction(values.edges[0]), Fraction(values.edges[-1])
            a, b = (Fraction(values.edges[record[number] + i]) for i in (0, 1))
            found.append(int(UNIT * ((a + b) / 2 - low) / (high - low) + Fraction(1, 2)))
        else:
            found += [LEAF if leaf == record[number] else 0 for leaf in range(schema[number].n_leaves)]
    return found


@given(st.data())
def test_the_nearest_centroid_of_equals_the_first(data: st.DataObject) -> None:
    columns = tuple(data.draw(st.permutations(range(3))))[: data.draw(st.integers(1, 3))]
    size = sum(n_features(SCHEMA[i]) for i in columns)
    coordinate = st.one_of(st.sampled_from([0, LEAF, UNIT]), st.integers(0, UNIT))
    centroid = st.lists(coordinate, min_size=size, max_size=size)
    centroids = data.draw(st.lists(centroid, min_size=2, max_size=5))
    centroids += data.draw(st.lists(st.sampled_from(centroids), max_size=2))
    record = st.tuples(*(st.integers(0, column.n_leaves - 1) for column in SCHEMA))
    records = data.draw(st.lists(record, min_size=1, max_size=8))
    model = Clusters(columns, np.array(centroids, dtype=np.int64))
    found = model.labels(SCHEMA, [np.array(codes) for codes in zip(*records, strict=True)])
    for label, one in zip(found.tolist(), records, strict=True):
        x = point(SCHEMA, columns, one)
        distances = [sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in centroids]
        assert label == distances.index(min(distances))


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    codes = [rng.integers(0, column.n_leaves, 100) for column in SCHEMA]
    model = Clusters((2, 1), rng.integers(0, UNIT, (7, 4)))
    whole = model.labels(SCHEMA, codes).tolist()
    assert len(set(whole)) > 2
    for block in (1, 7, 7 * 33, 7 * 50, 7 * 100 - 1):  # rows: 1, 1, 33, 50, 99
        monkeypatch.setattr(clusters, "_BLOCK", block)
        assert model.labels(SCHEMA, codes).tolist() == whole
    assert model.labels(SCHEMA, [code[:0] for code in codes]).tolist() == []


def test_memory_does_not_grow_with_rows_by_clusters() -> None:
    """2^17 rows by 256 clusters in int64 would be 256 MiB; of a grid with many cells there is no table either."""
    fine = QidColumn("fine", from_step(Decimal(0), Decimal(1 << 13), Decimal(1), "fine"))
    rng = np.random.default_rng(4)
    model = Clusters((0, 1), rng.integers(0, UNIT, (256, 4)))
    codes = [rng.integers(0, column.n_leaves, 1 << 17) for column in (fine, JOB)]
    tracemalloc.start()
    try:
        model.labels((fine, JOB), codes)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_distances_of_the_largest_model_stay_exact() -> None:
    """Coordinates at the ends of their range, with as many leaves as a model may have coordinates."""
    wide = QidColumn("wide", from_nested({"*": [str(i) for i in range(1 << 17)]}, "wide", missing_leaf=False))
    centroids = np.full((2, 1 << 17), UNIT, dtype=np.int64)
    centroids[1, 5] -= 1
    labels = Clusters((0,), centroids).labels([wide], [np.array([4, 5])])
    near = [sum((LEAF * (leaf == i) - int(c[i])) ** 2 for i in (4, 5)) for leaf in (4, 5) for c in centroids]
    assert labels.tolist() == [int(near[1] < near[0]), int(near[3] < near[2])]
