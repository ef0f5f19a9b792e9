"""Requirement on every sequence of a release: LKC-privacy ([T] Definition 4.1), with the criteria of all models.

A sequence is a set of 1 to L items of a record. It is *kept* if its records form a group that meets every criterion;
a sequence without records is not kept. The empty sequence, known to everybody, must also meet the criteria ([T]
leaves this out). Then a table of empty paths always meets the requirement, and every run ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import Bools, Criterion, Tally, tallies_of
from anonymize.criteria.views import sensitive_codes
from anonymize.errors import PrivacyError
from anonymize.lkc.requirement import Ask, Entry, check_root, check_sizes, relief_of
from anonymize.table import Ints, Schema, tally
from anonymize.trajectory.paths import Paths


@dataclass(frozen=True)
class Bounds:
    """Bounds on sequences, for tables with the columns of a schema.

    schema:     the sensitive columns; no quasi-identifiers, no class.
    max_known:  L, the items of the longest sequences.
    entry:      the criteria that every group must meet.
    """

    schema: Schema
    max_known: int
    entry: Entry

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Tallies of every sequence: its records, and its records with each protected value."""
        return tallies_of(self.entry.criteria)

    @cached_property
    def counted(self) -> Bools:
        """Sensitive cells counted by each tally: shape (n_tallies, n_cells)."""
        cells = np.arange(self.schema.n_cells)
        codes, all_cells = sensitive_codes(self.schema, cells), np.ones(len(cells), dtype=bool)
        return np.stack([t.among(codes) if t.columns else all_cells for t in self.tallies])

    def weights(self, paths: Paths) -> Ints:
        """Return the records of each path in every tally: int64, shape (n_tallies, n_paths)."""
        found: Ints = self.counted[:, paths.cells] * paths.weights
        return found

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.entry.criteria, self.tallies)

    def kept(self, counts: Ints) -> Bools:
        """Return the groups that have records and meet every criterion: shape (n_groups,).

        counts:  of the tallies: int64, shape (n_tallies, n_groups).
        """
        kept = np.ones(counts.shape[1], dtype=bool)
        for _, met in self._met(counts):
            kept &= met
        return kept

    def first_broken(self, counts: Ints) -> list[Criterion | None]:
        """Return the first criterion that each group breaks, or None; counts as in :meth:`kept`."""
        found: list[Criterion | None] = [None] * counts.shape[1]
        for criterion, met in self._met(counts):
            for group in np.flatnonzero(~met):
                found[group] = found[group] or criterion
        return found

    def _met(self, counts: Ints) -> Iterator[tuple[Criterion, Bools]]:
        for criterion, of_cases in self._judge.met(counts, whole=True):
            yield criterion, np.broadcast_to(of_cases.all(axis=0), counts.shape[1])


def bounds_of(ask: Ask, schema: Schema) -> Bounds:
    """Return the bounds for tables with the columns of the schema."""
    return Bounds(schema, ask.max_known, ask.entry(schema))


def met_by_all(paths: Paths, bounds: Bounds) -> None:
    """Check the empty sequence, which everybody knows.

    Raises PrivacyError if all records together violate the requirement, or are too many for exact integer arithmetic.
    """
    check_sizes((bounds.entry,), paths.n_records)
    cell_counts = tally(paths.cells, paths.weights, bounds.schema.n_cells)
    violation = check_root(bounds.schema, (bounds.entry,), cell_counts)
    if violation is None:
        return
    of_column = f" for column {violation.column}" if violation.column else ""
    broken = [each for each in bounds.entry.criteria if each.name == violation.criterion]
    raise PrivacyError(
        "requirement-unmet",
        f"all records together already violate {violation.criterion}{of_column}",
        column=violation.column,
        remedy=relief_of(broken),
        private=f"the table has {paths.n_records:,} records",
    )
