"""Small tables of paths over three places at three times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from anonymize.table import Ints
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths
from tests.support.paths import Itemset, Path, Record, paths_from

PLACES = "abc"
TIMED = Vocabulary(len(PLACES), 3, timed=True)


def item(doublet: str) -> int:
    """The code of a place at a time: "b2" is the second place at the second of the times."""
    return (int(doublet[1]) - 1) * len(PLACES) + PLACES.index(doublet[0])


def path(*doublets: str) -> Path:
    return frozenset(map(item, doublets))


def walked(records: Sequence[Record]) -> tuple[Paths, Ints]:
    """The paths of records, and the path of every record."""
    paths, number = paths_from(records, TIMED.n_items)
    return paths, np.array(number, dtype=np.int64)


def as_left(left: Sequence[Path], of: Paths) -> Paths:
    """Return the rest of every path of a table."""
    starts = np.cumsum([0, *map(len, left)]).astype(np.int64)
    items = np.array([each for one in left for each in sorted(one)], dtype=np.int32)
    return Paths(items, starts, of.cells, of.weights, of.domain)


def sequences(items: Path, longest: int) -> list[Itemset]:
    """Return the sequences of 1 to so many items."""
    return [q for i in range(1, longest + 1) for q in combinations(sorted(items), i)]


def walkers(most: int = 8) -> st.SearchStrategy[list[Record]]:
    """Records that are at no more than one place at a time."""
    at = st.sampled_from([None, *range(len(PLACES))])
    steps = st.tuples(*[at] * TIMED.n_cells)
    walks = steps.map(
        lambda places: frozenset(
            cell * len(PLACES) + place for cell, place in enumerate(places) if place is not None
        )
    )
    return st.lists(st.tuples(walks, st.integers(0, 1)), min_size=1, max_size=most)


def some_lost(raw: Paths) -> st.SearchStrategy[Paths]:
    """Draw rests of paths, whatever took the other items."""
    kept = [st.sets(st.sampled_from([-1, *raw.path(r)])) for r in range(raw.n_paths)]
    return st.tuples(*kept).map(
        lambda sets: as_left([frozenset(raw.path(r)) & each for r, each in enumerate(sets)], raw)
    )
