"""Costs of suppression: figures for the holder, from the paths before and after."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anonymize.errors import PrivacyError
from anonymize.trajectory.frequent import Itemset, maximal_frequent, supports
from anonymize.trajectory.paths import Paths


@dataclass(frozen=True)
class Loss:
    """Losses of a holder's records.

    instances:  items of all records before. lost: lost items. touched: records that lost an item.
    """

    instances: int = field(repr=False)
    lost: int = field(repr=False)
    touched: int = field(repr=False)


def loss_of(before: Paths, after: Paths) -> Loss:
    """Compute the losses. ``after``: remainders of the same paths in the same order."""
    changed = before.lengths != after.lengths
    return Loss(
        before.n_instances, before.n_instances - after.n_instances, int(before.weights[changed].sum())
    )


@dataclass(frozen=True)
class FrequentLoss:
    """Losses of maximal frequent sequences ([T] 4.4 says "utility loss", which can mean two of these figures).

    before, after:       number of sequences before and after. kept: sequences of before that remain.
    mean_support_lost:   mean share of records lost by a sequence of before; 0 without such sequences.
    greatest_support_lost:  greatest share.
    """

    before: int = field(repr=False)
    after: int = field(repr=False)
    kept: int = field(repr=False)
    mean_support_lost: float = field(repr=False)
    greatest_support_lost: float = field(repr=False)


def frequent_loss(before: Paths, after: Paths, least: int, max_candidates: int) -> FrequentLoss | None:
    """Compare the sequences with at least ``least`` records; return None for too many sequences."""
    found = frequent_or_none(before, least, max_candidates), frequent_or_none(after, least, max_candidates)
    was, still = found
    if was is None or still is None:
        return None
    lost = np.zeros(1)
    if was:
        lost = 1 - supports(after, was) / supports(before, was)
    kept = len(set(was) & set(still))
    return FrequentLoss(len(was), len(still), kept, float(lost.mean()), float(lost.max()))


def frequent_or_none(paths: Paths, least: int, max_candidates: int) -> tuple[Itemset, ...] | None:
    """Return the maximal frequent sequences; None for too many sequences, which is no error here."""
    try:
        return maximal_frequent(paths, least, max_candidates)
    except PrivacyError as error:
        if error.error_id != "too-many-sequences":
            raise
        return None
