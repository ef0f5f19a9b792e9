"""Scores of shared counts, looked up in public tables: an entry is any function of a count and public numbers.

Of a node with two children the count of one is looked up: the other has the rest of the public total, so one table
holds what both give.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from anonymize.joint.engine import Engine, low_bits
from anonymize.joint.lkc import circuits
from anonymize.score import f_score
from anonymize.table import Ints
from crypto.encoding import Words
from crypto.lookup import Question
from crypto.point_function import MIN_BITS
from crypto.rounds import Rounds
from crypto.two_party import Asked

MOST_BITS = 18
"""Of a count that is looked up. Measured: a table of this size costs as much CPU as the circuit, of less less."""

Tables: TypeAlias = Callable[[Ints, int], Ints]
"""From public numbers of each, shape (n_tables, n_numbers), and the bits of an index: int64, (n_tables, 2**bits)."""


@lru_cache(maxsize=16)
def _f_of_all(bits: int) -> Ints:
    values = f_score(np.arange(1 << bits))
    values.flags.writeable = False
    return values


def f_tables(numbers: Ints, bits: int) -> Ints:
    """Σ F over children of totals, at the count of one; entries above the total, which no count has, are 0.

    numbers:  the total, and whether there is one more child, which has the rest: shape (n_tables, 2).
    """
    values = _f_of_all(bits)
    tables = np.zeros((len(numbers), 1 << bits), dtype=np.int64)
    for table, (total, has_rest) in zip(tables, numbers.tolist(), strict=True):
        table[: total + 1] = values[: total + 1]
        if has_rest:
            table[: total + 1] += values[total::-1]
    return tables


def can_look_up(engine: Engine, most: int) -> bool:
    """Whether counts up to ``most``, which is public, are looked up."""
    return engine.look_ups is not None and most.bit_length() <= MOST_BITS


def prepare(engine: Engine | None, n_records: int) -> None:
    """Say how many records there are: tables of their number, or of the most there may be, are the largest."""
    if engine is not None and engine.look_ups is not None:
        engine.look_ups.start(min(MOST_BITS, _bits_of(n_records)))


def _bits_of(bound: int) -> int:
    return max(MIN_BITS, bound.bit_length())


def look_up(engine: Engine, counts: Words, bounds: Ints, numbers: Ints, tables: Tables) -> Rounds[Words]:
    """Our XOR shares of the entries of tables at shared counts: uint64, shape (n,).

    counts:   our shares: uint64, shape (n,).
    bounds:   of each, public: int64, shape (n,).
    numbers:  what its table is made of, public: int64, shape (n, n_numbers).
    """
    assert engine.look_ups is not None
    bits = np.array([_bits_of(bound) for bound in bounds.tolist()])
    places, questions = [], []
    for each in np.unique(bits).tolist():
        place = np.flatnonzero(bits == each)
        kinds, of = np.unique(numbers[place], axis=0, return_inverse=True)
        made = tables(kinds, each).astype(np.uint64)
        questions.append(Question(low_bits(counts[place], each), made, of.reshape(-1)))
        places.append(place)
    answers = yield from engine.look_ups.look_up(questions)
    return np.concatenate(answers)[np.argsort(np.concatenate(places))]


def entered(shares: Words, width: int) -> Asked:
    """What makes answers carried words of ``width`` bits, which every entry fits, under the name ``f``."""
    return circuits.enter_circuit(width), len(shares), {"f": shares.reshape(-1, 1)}
