"""Scores of shared counts, looked up in public tables: an entry is any function of a count and public numbers.

If a node has two children, the count of one is looked up. The other child is the remainder of the public total, so a
table holds the sum of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import Bools
from anonymize.joint.engine import Engine, low_bits
from anonymize.joint.lkc import circuits
from anonymize.score import f_score
from anonymize.table import Ints
from crypto.blocks import WORD_BITS
from crypto.encoding import Words
from crypto.lookup import Question, Tables
from crypto.pieces import slices
from crypto.point_function import MIN_BITS
from crypto.rounds import Rounds
from crypto.two_party import Asked

MOST_BITS = 20
"""Most bits of a looked-up count. A look-up of 20 bits sends a hundredth of the bytes of its circuit, and
takes as much CPU by compiled code. Smaller tables take less.
"""

_AT_ONCE = 1 << 16

N = TypeVar("N", bound=np.integer[Any])


@lru_cache(maxsize=16)
def _f_of_all(bits: int) -> Ints:
    values = np.empty(1 << bits, dtype=np.int64)
    for some in slices(1 << bits, _AT_ONCE):  # the arithmetic takes ten times the memory of its numbers
        values[some] = f_score(np.arange(some.start, some.stop))
    values.flags.writeable = False
    return values


@dataclass(frozen=True)
class Marks:
    """Marks in looked-up losses: above the loss, the number of look-ups at a size that is not allowed.

    refused:  True for the sizes that are not allowed: shape (n_kinds, most + 1) with the greatest total.
    of:       kind of each row: int64, shape (n_rows,).
    bit:      lowest bit of the number.
    """

    refused: Bools = field(repr=False)
    of: Ints = field(repr=False)
    bit: int


UNMARKED = -1
"""Kind of a table without marks."""


def f_tables(
    numbers: Ints, bits: int, wide: int = WORD_BITS, refused: Bools | None = None, mark: int = 0
) -> Words:
    """Return tables of Σ F over the children at the count of one child, plus a penalty for each child with a record.

    numbers:  the total; 1 if a second child has the remainder; the penalty; the kind of marks, or UNMARKED: shape
              (n_tables, 4). Entries above the total, which no count has, are 0.
    wide:     bits of an entry: modulo 2**wide.
    refused:  as in :class:`Marks`. mark: number that is added if the size of a child is refused.
    """
    values = _f_of_all(bits)
    tables = np.empty((len(numbers), 1 << bits), dtype=np.int64)
    for table, (total, has_rest, penalty, kind) in zip(tables, numbers.tolist(), strict=True):
        of_counts, rest = table[: total + 1], values[total::-1] if has_rest else 0
        np.add(values[: total + 1], rest, out=of_counts)
        of_counts[1:] += penalty
        if has_rest:
            of_counts[:-1] += penalty
        if kind != UNMARKED and refused is not None:
            of_one = refused[kind, : total + 1]
            of_counts[of_one | of_one[::-1] if has_rest else of_one] += mark
        table[total + 1 :] = 0
    words = tables.view(np.uint64)
    if wide < WORD_BITS:
        words &= np.uint64((1 << wide) - 1)
    return words


def with_sum(counts: NDArray[N]) -> NDArray[N]:
    """Return class counts with their sum in front, row by row."""
    return np.column_stack([counts.sum(axis=1, dtype=counts.dtype), counts])


def can_look_up(engine: Engine, most: int) -> bool:
    """Return True if counts up to the public bound ``most`` are looked up."""
    return engine.look_ups is not None and most.bit_length() <= MOST_BITS


def prepare(engine: Engine | None, n_records: int, fewer: Sequence[int]) -> None:
    """Announce the table sizes: the bits of the number of records, or the most allowed, and ``fewer`` bits."""
    if engine is not None and engine.look_ups is not None:
        most = min(MOST_BITS, _bits_of(n_records))
        engine.look_ups.start(most, *(most - bits for bits in fewer if most - bits >= MIN_BITS))


def _bits_of(bound: int) -> int:
    return max(MIN_BITS, bound.bit_length())


def looked_up_losses(
    engine: Engine,
    counts: Words,
    totals: Ints,
    has_rest: Bools,
    penalties: Ints,
    wide: int,
    marks: Marks | None = None,
) -> Rounds[Words]:
    """Return own shares of the impurity of one or two children, with penalties, modulo 2**wide, row by row.

    counts:     own shares of the class counts of a child: uint64, shape (n_rows, n_classes).
    totals:     class counts of its node, public: int64, the same shape.
    has_rest:   True if the remainder of the node is a second child: shape (n_rows,).
    penalties:  of every child with a record, public: int64, shape (n_rows,).
    marks:      of the sizes of children; of the rows in order.

    Returns uint64, shape (n_rows,). Only the lowest ``wide`` bits count.
    """
    bounds = with_sum(totals)
    of_sizes = np.zeros_like(bounds)
    of_sizes[:, 0] = penalties
    rest = np.broadcast_to(has_rest[:, None], bounds.shape)
    kinds = np.full_like(bounds, UNMARKED)
    if marks is not None:
        kinds[:, 0] = marks.of
    numbers = np.stack([bounds, rest, of_sizes, kinds], axis=2).reshape(-1, 4)
    words = yield from _looked_up(
        engine, with_sum(counts).reshape(-1), bounds.reshape(-1), numbers, wide, marks
    )
    of_size, *of_classes = words.reshape(bounds.shape).T
    losses: Words = of_size - sum(of_classes)
    return losses


def _looked_up(
    engine: Engine, counts: Words, bounds: Ints, numbers: Ints, wide: int, marks: Marks | None
) -> Rounds[Words]:
    """Return own additive shares of the entries of :func:`f_tables`, modulo 2**wide, at shared counts: uint64, shape
    (n,).

    counts:   own shares: uint64, shape (n,).
    bounds:   of each count, public: int64, shape (n,).
    numbers:  inputs of its table, public: int64, shape (n, 4).
    """
    assert engine.look_ups is not None
    bits = np.array([_bits_of(bound) for bound in bounds.tolist()])
    places, questions = [], []
    for each in np.unique(bits).tolist():
        place = np.flatnonzero(bits == each)
        kinds, of = np.unique(numbers[place], axis=0, return_inverse=True)
        refused, mark = (None, 0) if marks is None else (marks.refused, 1 << marks.bit)
        tables = Tables(f_tables(kinds, each, wide, refused, mark))
        questions.append(Question(low_bits(counts[place], each), tables, of.reshape(-1)))
        places.append(place)
    answers = yield from engine.look_ups.look_up(questions, wide)
    return np.concatenate(answers)[np.argsort(np.concatenate(places))]


def entered(shares: Words, width: int, marks: int = 0) -> Asked:
    """Return the question that makes additive shares carried words ``loss``; as :func:`circuits.enter_circuit`."""
    wide = circuits.marked_width(width, marks)
    return circuits.enter_circuit(width, marks), len(shares), {"loss": low_bits(shares.reshape(-1, 1), wide)}
