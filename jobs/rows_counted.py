"""Tables of releases read back as their different rows, with how many there are of each.

This is the verifier's reading: batch after batch, so that of a table no more is in memory than its different rows. It
shares no code with what collapses tables before they are anonymized.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from anonymize.lkc.verification import Numbers, distinct_rows
from anonymize.release import LabelledColumn, Release
from anonymize.table import Codes, narrowest
from jobs.data.arrow import pa

_Counted: TypeAlias = tuple[list[Codes], Numbers]
"""Columns of different rows, as numbers of labels, and how many rows there are of each."""
_FEWEST_TO_JOIN = 1 << 20
"""Rows of batches that are kept before equal ones of different batches are joined."""


def counted_rows(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], wanted: Sequence[str] | None = None
) -> Release:
    """The rows of all batches: columns ``names`` in their order, dictionary-encoded text without nulls.

    wanted:  of these the columns whose rows are counted, in the same order; None: all. Of others nothing is kept.
    """
    if wanted is not None:
        return counted_rows((batch.select(list(wanted)) for batch in batches), wanted)
    places: list[dict[str, int]] = [{} for _ in names]
    kept: list[_Counted] = []
    n_kept, most = 0, _FEWEST_TO_JOIN
    for batch in batches:
        codes = [_numbers(column, place) for column, place in zip(batch.columns, places, strict=True)]
        kept.append(distinct_rows(codes, np.ones(batch.num_rows, dtype=np.int64)))
        n_kept += len(kept[-1][1])
        if n_kept > most:
            kept = [_joined(kept)]
            n_kept = len(kept[0][1])
            most = 2 * max(n_kept, _FEWEST_TO_JOIN)
    if not kept:
        kept = [([np.zeros(0, dtype=np.uint8) for _ in names], np.zeros(0, dtype=np.int64))]
    columns, weights = _joined(kept)
    labelled = zip(names, places, columns, strict=True)
    return Release({name: LabelledColumn(tuple(place), own) for name, place, own in labelled}, weights)


def _numbers(column: pa.DictionaryArray, place: dict[str, int]) -> Codes:
    """The cells of a column by number of their label; new labels get the next numbers."""
    labels = column.dictionary.to_pylist()
    by_code = np.array([place.setdefault(label, len(place)) for label in labels], dtype=np.int64)
    numbers: Codes = by_code.astype(narrowest(len(place)))[column.indices.to_numpy()]
    return numbers


def _joined(kept: Sequence[_Counted]) -> _Counted:
    columns = [np.concatenate(parts) for parts in zip(*(own for own, _ in kept), strict=True)]
    return distinct_rows(columns, np.concatenate([weights for _, weights in kept]))
