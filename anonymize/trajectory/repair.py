"""Repair of exposure by exclusion: further records lose items at the exposing times.

A candidate of a known sequence is a record with each item of the sequence, or with nothing at its time. If there are
too few candidates, records with another place at one of the times lose their item there. Nothing is ever added, so a
candidate stays a candidate; in the end every record is empty, and the requirement holds for all records together. For
a single holder: the choice of records depends on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.table import Ints, pack
from anonymize.trajectory.exclusion import Exclusion, exclusion
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths, collapsed, rows_of
from anonymize.trajectory.requirement import Bounds


@dataclass(frozen=True)
class Repaired:
    """Table without exposed sequences.

    raw, left:  paths of the records before suppression, and their remainders, path by path.
    number:     path of every record: int64, shape (n_records,).
    turns:      number of rounds that emptied records. emptied: items removed by these rounds, of all records.
    exclusion:  final findings: no exposed sequence; None if no record can be excluded.
    """

    raw: Paths = field(repr=False)
    left: Paths = field(repr=False)
    number: Ints = field(repr=False)
    turns: int = field(repr=False)
    emptied: int = field(repr=False)
    exclusion: Exclusion | None = field(repr=False)


def repaired(
    raw: Paths, number: Ints, suppress: Callable[[Paths], Paths], vocabulary: Vocabulary, bounds: Bounds
) -> Repaired:
    """Suppress; then empty records and suppress again until no sequence is exposed.

    number:    path of every record, in the order of the table.
    suppress:  returns the remainder of each path once every sequence meets the requirement.

    Raises PrivacyError (exclusion-untested) for too many sequences to test.
    """
    now, of_record = raw, number
    turns = emptied = 0
    while True:
        left = suppress(now)
        before, after, pairs = _paired(raw, number, left, of_record)
        found = exclusion(before, after, after, vocabulary, bounds)
        if found is None or not found.exposed:
            return Repaired(before, after, pairs, turns, emptied, found)
        losses = _losses(after, found, vocabulary, bounds)
        now, of_record = _without(after, pairs, losses, vocabulary)
        turns += 1
        emptied += after.n_instances - now.n_instances


def _paired(raw: Paths, number: Ints, left: Paths, of_record: Ints) -> tuple[Paths, Paths, Ints]:
    """Join the records by path before and after. Return both, path by path, and the pair of every record."""
    keys = pack([number, of_record], [max(raw.n_paths, 1), max(left.n_paths, 1)])
    _, first, pairs, weights = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return (
        _some(raw, number[first], weights.astype(np.int64)),
        _some(left, of_record[first], weights.astype(np.int64)),
        pairs,
    )


def _some(paths: Paths, chosen: Ints, weights: Ints) -> Paths:
    items, starts = rows_of(paths.items, paths.starts, chosen)
    return Paths(items, starts, paths.cells[chosen], weights, paths.domain)


def _losses(table: Paths, found: Exclusion, vocabulary: Vocabulary, bounds: Bounds) -> dict[int, int]:
    """Return the number of records of each path to empty at a time; by path · n_cells + time cell."""
    shown = _Shown(table, vocabulary)
    weights, counted = bounds.weights(table), bounds.counted[:, table.cells].astype(np.int64)
    losses: dict[int, int] = {}
    for sequence in found.sequences():
        elsewhere = shown.elsewhere(sequence)
        closed = elsewhere.sum(axis=0)
        # Paths with another place at a single time come first, then fewest protected values, then by path.
        order = np.lexsort((counted[1:].sum(axis=0), closed))
        order = order[closed[order] > 0]
        have = weights[:, closed == 0].sum(axis=1)
        reached = have[:, None] + np.cumsum(weights[:, order], axis=1)
        last = int(np.argmax(bounds.kept(reached)))
        row = order[last]
        part = np.arange(1, table.weights[row] + 1)
        before = reached[:, last] - weights[:, row]
        kept = bounds.kept(before[:, None] + counted[:, row, None] * part)
        taken = table.weights[order[: last + 1]].copy()
        taken[last] = part[np.argmax(kept)]
        cells = vocabulary.cells_of(np.array(sequence))
        for chosen, records in zip(order[: last + 1].tolist(), taken.tolist(), strict=True):
            for cell in cells[elsewhere[:, chosen]].tolist():
                key = chosen * vocabulary.n_cells + cell
                losses[key] = max(losses.get(key, 0), records)
    return losses


class _Shown:
    """Records with each item at each time."""

    def __init__(self, table: Paths, vocabulary: Vocabulary) -> None:
        self._table = table
        self._vocabulary = vocabulary
        self._whose = np.repeat(np.arange(table.n_paths), table.lengths)
        self._cells = vocabulary.cells_of(table.items)

    def elsewhere(self, sequence: Sequence[int]) -> Bools:
        """Return, for each item, the paths with another place at its time: shape (n_items, n_paths)."""
        found = np.zeros((len(sequence), self._table.n_paths), dtype=bool)
        for row, item in zip(found, sequence, strict=True):
            cell = item // self._vocabulary.n_locations
            row[self._whose[(self._cells == cell) & (self._table.items != item)]] = True
        return found


def _without(
    table: Paths, of_record: Ints, losses: Mapping[int, int], vocabulary: Vocabulary
) -> tuple[Paths, Ints]:
    """Empty a time in the first records of each path. Return the table, and the path of every record."""
    # The place of each record among the records of its path.
    order = np.argsort(of_record, kind="stable")
    firsts = np.concatenate([[0], np.cumsum(table.weights)[:-1]])
    place = np.empty(len(of_record), dtype=np.int64)
    place[order] = np.arange(len(of_record)) - np.repeat(firsts, table.weights)
    items, starts = rows_of(table.items, table.starts, of_record)
    lengths = np.diff(starts)
    keys = np.repeat(of_record, lengths) * vocabulary.n_cells + vocabulary.cells_of(items)
    silent, records = (np.array(each, dtype=np.int64) for each in zip(*sorted(losses.items()), strict=True))
    at = np.minimum(np.searchsorted(silent, keys), len(silent) - 1)
    stays = (silent[at] != keys) | (np.repeat(place, lengths) >= records[at])
    own = np.repeat(np.arange(len(of_record)), lengths)[stays]
    starts = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=len(of_record)))])
    return collapsed(items[stays], starts, table.cells[of_record], table.domain)
