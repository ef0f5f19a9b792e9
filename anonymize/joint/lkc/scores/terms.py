"""The terms of `added`, in circuits no wider than what is public of each count asks for (semantics §10.6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonymize.joint.engine import Engine, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.table import Ints
from crypto.circuits.score import MAX_BITS
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, Value

COUNT_WIDTHS = (4, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, MAX_BITS)
"""Circuits of F are made for these widths; a count takes the least that holds its bound."""

FEWEST = 64
"""Counts that a batch is worth: fewer go with those of the next width."""


def terms_of(engine: Engine, counts: Words, bounds: Ints, penalties: Ints, wide: int) -> Rounds[CarriedWords]:
    """Of children in contexts their impurity, and a penalty for those that have a record: words of ``wide`` bits.

    counts:     our shares of their class counts: uint64, shape (n_rows, n_classes); there is a row.
    bounds:     class counts of the context of each, public: int64, the same shape.
    penalties:  public: int64, shape (n_rows,).
    """
    scores = yield from _scores(engine, counts.reshape(-1), bounds.reshape(-1))
    places = np.arange(counts.size).reshape(counts.shape)
    sizes = counts.sum(axis=1, dtype=np.uint64).reshape(-1, 1)
    penalty_width = max(1, int(penalties.max()).bit_length())
    done: list[CarriedWords] = []
    chosen: list[Ints] = []
    for width, rows in _by_width(bounds.sum(axis=1)):
        circuit = circuits.term_circuit(counts.shape[1], width, penalty_width)
        inputs: dict[str, Value] = {
            "f": scores.take(places[rows].reshape(-1)).resized(circuits.f_bits(width)),
            "count": low_bits(sizes[rows], width),
            "penalty": penalties[rows].astype(np.uint64).reshape(-1, 1),
        }
        outputs = yield from engine.run(circuit, len(rows), inputs)
        done.append(carried(outputs, "loss").resized(wide))
        chosen.append(rows)
    return _in_order(done, chosen)


def _scores(engine: Engine, counts: Words, bounds: Ints) -> Rounds[CarriedWords]:
    """F of every count: words as wide as the widest of them."""
    done: list[CarriedWords] = []
    chosen: list[Ints] = []
    for width, rows in _by_width(bounds):
        inputs: dict[str, Value] = {"count": low_bits(counts[rows].reshape(-1, 1), width)}
        outputs = yield from engine.run(circuits.f_circuit(width), len(rows), inputs)
        done.append(carried(outputs, "f"))
        chosen.append(rows)
    widest = max(words.width for words in done)
    return _in_order([words.resized(widest) for words in done], chosen)


def _by_width(bounds: Ints) -> Iterator[tuple[int, Ints]]:
    """Which counts go through circuits of which width, narrow ones first; bounds: of each."""
    least = np.searchsorted([1 << width for width in COUNT_WIDTHS], bounds, side="right")
    waiting = np.zeros(0, dtype=np.int64)
    for number in np.unique(least).tolist():
        waiting = np.append(waiting, np.flatnonzero(least == number))
        if len(waiting) >= FEWEST or number == least.max():
            yield COUNT_WIDTHS[number], waiting
            waiting = waiting[:0]


def _in_order(done: list[CarriedWords], chosen: list[Ints]) -> CarriedWords:
    return CarriedWords.concatenate(done).take(np.argsort(np.concatenate(chosen)))
