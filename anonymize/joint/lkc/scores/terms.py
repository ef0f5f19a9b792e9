"""Terms of `added`, in the narrowest circuits for the public bound of each count (semantics §10.6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonymize.joint.engine import Engine, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.table import Ints
from crypto.circuits.score import MAX_BITS
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import Asked, CarriedWords, Outputs, Value

COUNT_WIDTHS = (4, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, MAX_BITS)
"""Widths of the circuits of F; a count takes the least width for its bound."""

FEWEST = 64
"""Fewest counts of a batch: fewer counts go with the next width."""


def terms_beside(
    engine: Engine, counts: Words, bounds: Ints, penalties: Ints, wide: int, other: Asked
) -> Rounds[tuple[CarriedWords, Outputs]]:
    """Return the impurity of children in contexts, plus a penalty for each child with a record: words of ``wide``
    bits. Run another batch side by side; return its outputs, too.

    counts:     own shares of class counts: uint64, shape (n_rows, n_classes); at least a row.
    bounds:     class counts of each context, public: int64, the same shape. penalties:  public: int64, shape
                (n_rows,).
    """
    places = np.arange(counts.size).reshape(counts.shape)
    of_counts = list(_by_width(bounds.reshape(-1)))
    of_sizes = list(_by_width(bounds.sum(axis=1)))
    asked = [_f_asked(counts.reshape(-1)[chosen], width) for width, chosen in of_counts]
    asked += [_most_asked(counts[rows], penalties[rows], penalties.max(), width) for width, rows in of_sizes]
    outputs = yield from engine.run_all([*asked, other])
    scores = [carried(each, "f") for each in outputs[: len(of_counts)]]
    most = [carried(each, "most") for each in outputs[len(of_counts) : -1]]
    widest = max(words.width for words in scores)
    f = _in_order([words.resized(widest) for words in scores], [chosen for _, chosen in of_counts])
    done: list[CarriedWords] = []
    for (width, rows), words in zip(of_sizes, most, strict=True):
        circuit = circuits.term_circuit(counts.shape[1], circuits.f_bits(width), words.width)
        of_rows = f.take(places[rows].reshape(-1)).resized(circuits.f_bits(width))
        losses = yield from engine.run(circuit, len(rows), {"f": of_rows, "most": words})
        done.append(carried(losses, "loss").resized(wide))
    return _in_order(done, [rows for _, rows in of_sizes]), outputs[-1]


def _f_asked(counts: Words, width: int) -> Asked:
    """Return the question for F of counts."""
    return circuits.f_circuit(width), len(counts), {"count": low_bits(counts.reshape(-1, 1), width)}


def _most_asked(counts: Words, penalties: Ints, greatest: int, width: int) -> Asked:
    """Return the question for F of the sums of rows, with the penalties of non-zero sums."""
    inputs: dict[str, Value] = {
        "count": low_bits(counts.sum(axis=1, dtype=np.uint64).reshape(-1, 1), width),
        "penalty": penalties.astype(np.uint64).reshape(-1, 1),
    }
    return circuits.most_circuit(width, max(1, int(greatest).bit_length())), len(counts), inputs


def _by_width(bounds: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each width with the counts for its circuits, narrow widths first; bounds: of each count."""
    least = np.searchsorted([1 << width for width in COUNT_WIDTHS], bounds, side="right")
    waiting = np.zeros(0, dtype=np.int64)
    for number in np.unique(least).tolist():
        waiting = np.append(waiting, np.flatnonzero(least == number))
        if len(waiting) >= FEWEST or number == least.max():
            yield COUNT_WIDTHS[number], waiting
            waiting = waiting[:0]


def _in_order(done: list[CarriedWords], chosen: list[Ints]) -> CarriedWords:
    return CarriedWords.concatenate(done).take(np.argsort(np.concatenate(chosen)))
