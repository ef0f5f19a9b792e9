"""People with several records: number and choice of the records that count.

A release that is ε/m-differentially private for a record is ε-differentially private for m records. So a holder keeps
at most m records of every person, and every rate is divided by m
(:meth:`anonymize.dp.accounting.Budget.of_a_record`): then ε is per person. Separate coins for each person choose the
kept records, so a person's records do not change the law of the others' kept records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from anonymize.release import random_order
from anonymize.table import CodedTable, Ints


class Rng(Protocol):
    """Source of uniform, independent bytes."""

    def bytes(self, n: int) -> bytes: ...


def at_most(table: CodedTable, person: Ints, most: int, rng: Rng) -> CodedTable:
    """Keep at most ``most`` records of every person, chosen at random; equal rows are joined.

    person:  person of each row, numbers from 0: int64, shape (n,).
    """
    row = np.repeat(np.arange(len(table.weights)), table.weights)
    order = random_order(len(row), rng)
    order = order[np.argsort(person[row[order]], kind="stable")]
    _, start, size = np.unique(person[row[order]], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(start, size)
    weights = np.bincount(row[order[place < most]], minlength=len(table.weights)).astype(np.int64)
    kept = np.flatnonzero(weights)
    return replace(table.some(kept), weights=weights[kept]).collapsed()
