"""Paths for tests: made from sets of items, and what the definitions say of them, read without arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

import numpy as np

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.lkc.requirement import Ask
from anonymize.table import Schema, SensitiveColumn
from anonymize.trajectory.paths import Paths, paths_of
from anonymize.trajectory.requirement import Bounds, bounds_of

Path: TypeAlias = frozenset[int]
Record: TypeAlias = tuple[Path, int]
"""A path and a sensitive value, by code."""
Itemset: TypeAlias = tuple[int, ...]

TABLE_41 = "b2 d3 c4 f6 c7, f6 c7 e8, d3 c4 f6 e8, b2 c5 c7 e8, d3 c7 e8, c5 f6 e8, b2 f6 c7 e8, b2 c5 f6 c7"
"""The paths of [T] Table 4.1."""
DIAGNOSES_41 = (0, 1, 2, 1, 2, 3, 3, 0)
"""Of these records: AIDS, Flu, Fever, Diabetes."""
ITEMS_41 = ("b2", "d3", "c4", "c5", "f6", "c7", "e8")
"""By code, in the order of time."""


def table_41() -> list[Record]:
    paths = [frozenset(map(ITEMS_41.index, path.split())) for path in TABLE_41.split(",")]
    return list(zip(paths, DIAGNOSES_41, strict=True))


def named(sequences: Iterable[Iterable[int]], names: Sequence[str] = ITEMS_41) -> list[str]:
    """Sequences in words: "b2c4"."""
    return ["".join(names[item] for item in sequence) for sequence in sequences]


def schema_of(n_values: int, protected: Sequence[int]) -> Schema:
    """One sensitive column, some of its values protected."""
    column = SensitiveColumn("s", tuple(map(str, range(n_values))), tuple(protected))
    return Schema((), None, ("",), (column,))


def bounds(
    L: int, K: int, C: str | Fraction = "1", n_values: int = 2, protected: Sequence[int] = (1,)
) -> Bounds:
    """LKC with one sensitive column."""
    demands = (Size(K), Confidences(Fraction(C), (("s", Fraction(C)),)))
    return bounds_of(Ask(L, demands), schema_of(n_values, protected))


def paths_from(records: Sequence[Record], domain: int) -> tuple[Paths, list[int]]:
    """Records collapsed, and the path of each."""
    readings = [(r, item) for r, (path, _) in enumerate(records) for item in path]
    whose, items = np.array(readings, dtype=np.int64).reshape(-1, 2).T
    cells = np.array([value for _, value in records], dtype=np.int64)
    paths, number = paths_of(whose, items, cells, domain)
    return paths, number.tolist()


def records_of(paths: Paths, number: Sequence[int]) -> list[Record]:
    """Return the rest of every record."""
    return [(frozenset(paths.path(n)), int(paths.cells[n])) for n in number]


class Definition:
    """Kept sequences by the definition: L, K, C = p/q and the protected values of one sensitive column."""

    def __init__(self, L: int, K: int, C: str | Fraction, protected: Sequence[int] = (1,)) -> None:
        self.L, self.K, self.C, self.protected = L, K, Fraction(C), protected

    def counts(self, q: Iterable[int], records: Sequence[Record]) -> tuple[int, ...]:
        """Records that have a sequence, and those with each protected value."""
        values = [value for path, value in records if path.issuperset(q)]
        return (len(values), *(values.count(s) for s in self.protected))

    def keeps(self, q: Iterable[int], records: Sequence[Record]) -> bool:
        n, *held = self.counts(q, records)
        return n >= self.K and all(Fraction(count, n) <= self.C for count in held)

    def occurring(self, records: Sequence[Record]) -> set[Itemset]:
        """Sequences of 1 to L items that some record has."""
        return {q for path, _ in records for i in range(1, self.L + 1) for q in combinations(sorted(path), i)}

    def is_met(self, records: Sequence[Record]) -> bool:
        return all(self.keeps(q, records) for q in {(), *self.occurring(records)})

    def minimal_violating(self, records: Sequence[Record]) -> set[Itemset]:
        """[T] Definition 4.5."""
        bad = {q for q in self.occurring(records) if not self.keeps(q, records)}
        return {q for q in bad if not any(set(other) < set(q) for other in bad)}


def local_by_sets(
    records: Sequence[Record], domain: int, definition: Definition
) -> tuple[list[Record], list[tuple[list[int], list[int]]]]:
    """The loop of local suppression as it is written, with sets; what is left, and tested and kept by sweep.

    Every candidate is made from the whole domain, every support counted anew.
    """
    alive: set[Itemset] | None = None
    history: list[tuple[list[int], list[int]]] = []
    while True:
        kept: set[Itemset] = {()}
        tested: set[Itemset] = set()
        for i in range(1, definition.L + 1):
            level = [
                q
                for q in combinations(range(domain), i)
                if all(sub in kept for sub in combinations(q, i - 1)) and (alive is None or q in alive)
            ]
            tested.update(level)
            kept |= {q for q in level if definition.keeps(q, records)}
        kept.discard(())
        history.append((_by_size(tested, definition.L), _by_size(kept, definition.L)))
        if kept == alive:
            return list(records), history
        times = Counter(item for q in kept for item in q)
        minimal = tested - kept
        records = [(_without(path, minimal, times), value) for path, value in records]
        alive = kept


def _by_size(sequences: Iterable[Itemset], longest: int) -> list[int]:
    sizes = Counter(map(len, sequences))
    return [sizes[i] for i in range(1, longest + 1)]


def _without(path: Path, going: Iterable[Itemset], times: Mapping[int, int]) -> Path:
    left = [q for q in going if path.issuperset(q)]
    while left:
        held = Counter(item for q in left for item in q)
        item = min(held, key=lambda x: (-held[x], times[x], x))
        path -= {item}
        left = [q for q in left if item not in q]
    return path
