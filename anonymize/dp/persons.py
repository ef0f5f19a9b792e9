"""People with several records: how many of each may count, and which.

A release that is ε/m-differentially private for one record is ε-differentially private for m of them. So a holder
keeps at most m records of every person, and every rate is divided by m
(:meth:`anonymize.dp.accounting.Budget.of_a_record`): then ε is per person. Which records are kept is drawn by coins
of their own for each person: whatever is kept of the others has the same law with a person's records and without.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from anonymize.release import random_order
from anonymize.table import CodedTable, Ints


class Rng(Protocol):
    """A source of uniform, independent bytes."""

    def bytes(self, n: int) -> bytes: ...


def at_most(table: CodedTable, person: Ints, most: int, rng: Rng) -> CodedTable:
    """Keep at most ``most`` records of every person, chosen at random; equal rows are joined.

    person:  by row whose records it stands for, numbers from 0: int64, shape (n,).
    """
    row = np.repeat(np.arange(len(table.weights)), table.weights)
    order = random_order(len(row), rng)
    order = order[np.argsort(person[row[order]], kind="stable")]
    _, start, size = np.unique(person[row[order]], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(start, size)
    weights = np.bincount(row[order[place < most]], minlength=len(table.weights)).astype(np.int64)
    kept = np.flatnonzero(weights)
    return replace(table.some(kept), weights=weights[kept]).collapsed()
