"""Costs of suppression: figures for the holder of the paths as they were and as they are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anonymize.errors import PrivacyError
from anonymize.trajectory.frequent import Itemset, maximal_frequent, supports
from anonymize.trajectory.paths import Paths


@dataclass(frozen=True)
class Loss:
    """Losses of one holder's records.

    instances:  items of all records before. lost: those that are gone. touched: records that lost one.
    """

    instances: int = field(repr=False)
    lost: int = field(repr=False)
    touched: int = field(repr=False)


def loss_of(before: Paths, after: Paths) -> Loss:
    """``after``: the same paths in the same order, with what is left of them."""
    changed = before.lengths != after.lengths
    return Loss(
        before.n_instances, before.n_instances - after.n_instances, int(before.weights[changed].sum())
    )


@dataclass(frozen=True)
class FrequentLoss:
    """Losses of maximal frequent sequences ([T] 4.4 says "utility loss", which can mean two of these).

    before, after:       how many there were, and are. kept: those of before that still are.
    mean_support_lost:   what part of its records a sequence of before lost, in the mean; 0 where there was none.
    greatest_support_lost:  the greatest such part.
    """

    before: int = field(repr=False)
    after: int = field(repr=False)
    kept: int = field(repr=False)
    mean_support_lost: float = field(repr=False)
    greatest_support_lost: float = field(repr=False)


def frequent_loss(before: Paths, after: Paths, least: int, max_candidates: int) -> FrequentLoss | None:
    """Compare the sequences that at least ``least`` records have; None if there are too many to be counted."""
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
    """The maximal frequent sequences; None if there are too many sequences to be counted, which is no error here."""
    try:
        return maximal_frequent(paths, least, max_candidates)
    except PrivacyError as error:
        if error.error_id != "too-many-sequences":
            raise
        return None
