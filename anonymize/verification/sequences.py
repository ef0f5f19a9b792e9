"""Independent check that released paths are LKC-private.

The check is the definition alone ([T] Definition 4.1, and the empty sequence). Every set of at most L items
of a record is in the paths of at least K records, and among these no protected value is more frequent than C.
Sequences are grown: all later items in the records of a sequence are counted, and each occurring item extends
the sequence. There are no candidates, and no conclusion from a sequence to another. The check shares no code
with the makers of releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np

from anonymize.table import Ints
from anonymize.trajectory.paths import Paths

_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Bound:
    """Bound: among the records with a sequence, at most ``confidence`` have the same protected value of a column.

    held:  protected value of each sensitive cell, from 1; 0 for other values: int64, shape (n_cells,).
    """

    column: str
    held: Ints = field(repr=False)
    confidence: Fraction


@dataclass(frozen=True)
class Claim:
    """Claim about paths: knowledge of at most ``max_known`` items leaves ``least`` records, within bounds."""

    max_known: int
    least: int
    bounds: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Finding:
    """Sequence of ``size`` items that violates a threshold, K or C."""

    size: int
    threshold: str
    column: str | None = None

    def __str__(self) -> str:
        of_column = f" for {self.column}" if self.column else ""
        what = f"a sequence of {self.size} items" if self.size != 1 else "an item"
        return f"{what if self.size else 'the whole table'} violates {self.threshold}{of_column}"


@dataclass
class Examined:
    """Findings of a check.

    finding:    first violation, in the order of growth; None: the claim is true.
    sequences:  number of different examined sequences by size, the empty sequence first.
    fewest:     records of the rarest sequence.
    shares:     by column, greatest share of a protected value among the records of a sequence.
    """

    finding: Finding | None = None
    sequences: list[int] = field(default_factory=list, repr=False)
    fewest: int = field(default=0, repr=False)
    shares: dict[str, Fraction] = field(default_factory=dict, repr=False)


def examine(paths: Paths, claim: Claim) -> Examined:
    """Check a claim about paths."""
    growth = _Growth(paths, claim)
    growth.grow(growth.nothing_known(), 0)
    return growth.examined


@dataclass(frozen=True)
class _Occurrences:
    """Occurrences of sequences of the same size, equal sequences together: sequence number, path, and last item."""

    number: Ints = field(repr=False)
    row: Ints = field(repr=False)
    last: Ints = field(repr=False)


@dataclass(frozen=True)
class _Held:
    """Protected value of a column, by bound, with its number of records in every different path."""

    bound: Bound
    records: Ints = field(repr=False)


class _Growth:
    def __init__(self, paths: Paths, claim: Claim) -> None:
        self._claim = claim
        self._items, self._domain = paths.items.astype(np.int64), paths.domain
        row, first = _different(paths)
        self._starts, self._ends = paths.starts[:-1][first], paths.starts[1:][first]
        self._records = np.bincount(row, paths.weights, len(first)).astype(np.int64)
        self._held = [
            _Held(bound, np.bincount(row[has], paths.weights[has], len(first)).astype(np.int64))
            for bound in claim.bounds
            for value in range(1, int(bound.held.max(initial=0)) + 1)
            for has in [bound.held[paths.cells] == value]
        ]
        self.examined = Examined(sequences=[0] * (claim.max_known + 1))

    def nothing_known(self) -> _Occurrences:
        """Return the empty sequence, which every path has."""
        rows = np.arange(len(self._starts))
        return _Occurrences(np.zeros_like(rows), rows, self._starts - 1)

    def grow(self, found: _Occurrences, size: int) -> None:
        """Check the sequences and all their extensions; end at the first violation."""
        self._check(found, size)
        if size == self._claim.max_known:
            return
        for part in self._parts(found):
            if self.examined.finding is None:
                self.grow(self._longer(part), size + 1)

    def _parts(self, found: _Occurrences) -> Iterator[_Occurrences]:
        """Yield sequences in batches, to limit the number of extensions."""
        starts = np.flatnonzero(np.diff(found.number, prepend=-1))
        further = np.cumsum(self._ends[found.row] - found.last)
        start = 0
        while start < len(found.number):
            before = further[start - 1] if start else 0
            fits = int(np.searchsorted(further, before + _AT_ONCE, side="right"))
            stops = np.append(starts, len(found.number))
            i = int(np.searchsorted(stops, fits, side="right")) - 1
            stop = int(stops[i]) if stops[i] > start else int(stops[i + 1])
            yield _Occurrences(found.number[start:stop], found.row[start:stop], found.last[start:stop])
            start = stop

    def _longer(self, found: _Occurrences) -> _Occurrences:
        """Return the sequences extended by a later item."""
        n = self._ends[found.row] - found.last - 1
        which = np.repeat(np.arange(len(n)), n)
        last = found.last[which] + 1 + np.arange(len(which)) - np.repeat(np.cumsum(n) - n, n)
        key = found.number[which] * self._domain + self._items[last]
        order = np.argsort(key, kind="stable")
        key = key[order]
        number = np.cumsum(np.diff(key, prepend=-1) > 0) - 1
        return _Occurrences(number, found.row[which[order]], last[order])

    def _check(self, found: _Occurrences, size: int) -> None:
        """Judge every sequence by its records."""
        examined, claim = self.examined, self._claim
        records = np.bincount(found.number, self._records[found.row]).astype(np.int64)
        if size == 0 and len(records) == 0:
            records = np.zeros(1, dtype=np.int64)  # the whole table is there even without records
        examined.sequences[size] += len(records)
        if len(records) == 0:
            return
        fewest = int(records.min())
        examined.fewest = fewest if size == 0 else min(examined.fewest, fewest)
        if fewest < claim.least:
            self._found(Finding(size, "K"))
        for held in self._held:
            column, confidence = held.bound.column, held.bound.confidence
            with_it = np.bincount(found.number, held.records[found.row], len(records)).astype(np.int64)
            if (with_it * confidence.denominator > records * confidence.numerator).any():
                self._found(Finding(size, "C", column))
            worst = int(np.argmax(with_it / np.maximum(records, 1)))
            share = Fraction(int(with_it[worst]), max(int(records[worst]), 1))
            examined.shares[column] = max(share, examined.shares.get(column, share))

    def _found(self, finding: Finding) -> None:
        self.examined.finding = self.examined.finding or finding


def _different(paths: Paths) -> tuple[Ints, Ints]:
    """Return the number of each path among the different paths, for any sensitive cell, and the first of each."""
    number: dict[bytes, int] = {}
    ends = paths.starts.tolist()
    keys = [paths.items[start:stop].tobytes() for start, stop in pairwise(ends)]
    row = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
    return row, np.unique(row, return_index=True)[1]


def bound_of(column: str, values: Sequence[int], of_cells: Ints, confidence: Fraction) -> Bound:
    """Return a bound, from the protected ``values`` of a column and the value of every sensitive cell."""
    held = np.zeros(len(of_cells), dtype=np.int64)
    for number, value in enumerate(values, start=1):
        held[of_cells == value] = number
    return Bound(column, held, confidence)
