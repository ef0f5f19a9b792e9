"""Measures of a released table: as its readers see it."""

from __future__ import annotations

import numpy as np
import pytest

from anonymize import table
from anonymize.cut import Cut
from anonymize.lkc.metrics import largest_share, measure_loss, measure_partitions
from anonymize.release import LabelledColumn, Release, cut_labels
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import from_nested


def test_nodes_that_print_alike_are_one_value() -> None:
    """Two inner nodes labelled `same`, of 2 and 3 leaves, and one of 2 that is not: of ten leaves."""
    tree = {
        "Any": {
            "P": {"same": ["a", "b"], "X": ["h"]},
            "Q": {"same": ["c", "d", "e"], "Y": ["i"]},
            "R": {"other": ["f", "g"], "Z": ["j"]},
        }
    }
    column = QidColumn("code", from_nested(tree, "code", missing_leaf=False))
    nodes = [node for top in column.children(column.root) for node in column.children(top)]
    schema = Schema((column,), None, ("",), ())
    cut = Cut((tuple(nodes),))
    labels = cut_labels(column, cut, 0)
    assert labels.count("same*") == 2
    codes = np.array([0, 2, 4, 4])
    by_node = Release({"code": LabelledColumn(labels, codes)})
    alone = tuple(dict.fromkeys(labels[c] for c in codes))
    by_label = Release({"code": LabelledColumn(alone, np.array([alone.index(labels[c]) for c in codes]))})
    for release in (by_node, by_label):
        measured = measure_partitions(release, ["code"])
        assert measured == {
            "leaf_partitions": 2,
            "discernibility_ratio": pytest.approx(8 / 16),
            "smallest_partition": 2,
        }
        loss = measure_loss(release, schema, cut)
        assert loss == {"code": pytest.approx((2 * 4 + 2 * 1) / 4 / 9)}


@pytest.mark.parametrize("most", [0, 1 << 22])
@pytest.mark.parametrize("seed", range(5))
def test_the_largest_share_is_that_of_the_definition(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MOST_TALLIED", most)
    rng = np.random.default_rng(seed)
    rows = [tuple(rng.integers(0, 3, 3).tolist()) for _ in range(40)]
    columns = {
        name: LabelledColumn(("x", "y", "z"), np.array([row[i] for row in rows]))
        for i, name in enumerate("abs")
    }
    groups: dict[tuple[int, ...], list[str]] = {}
    for a, b, s in rows:
        groups.setdefault((a, b), []).append("xyz"[s])
    expected = max(found.count(value) / len(found) for found in groups.values() for value in "xz")
    assert largest_share(Release(columns), [["a", "b"]], "s", ["x", "z"]) == pytest.approx(expected)
    assert largest_share(Release(columns), [["a", "b"]], "s", ["none"]) == 0
    alone = [[], ["a"], ["b"]]
    readers = [*alone, ["a", "b"]]
    shares = [largest_share(Release(columns), [each], "s", ["x", "z"]) for each in alone]
    assert largest_share(Release(columns), alone, "s", ["x", "z"]) == max(shares)
    assert largest_share(Release(columns), readers, "s", ["x", "z"]) == pytest.approx(expected)
    merged = Release(columns).merged()
    assert merged.n_rows < len(rows)
    assert largest_share(merged, readers, "s", ["x", "z"]) == pytest.approx(expected)
