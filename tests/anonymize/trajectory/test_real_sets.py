"""Real readings: tracks of cars and buses, and sets of diagnoses."""

from __future__ import annotations

import numpy as np
import pytest

from anonymize.trajectory.exclusion import exclusion
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import paths_of
from anonymize.trajectory.sweep import local_alone
from anonymize.verification.sequences import Claim, examine
from benchmarks.movements import Readings, diagnoses, tracks
from tests.support.paths import bounds
from tests.support.shared import shared

MOST = 1 << 22


def lost_and_fewest(read: Readings, L: int, K: int) -> tuple[float, int]:
    """The part of the readings that local suppression takes, and the records of the rarest sequence left."""
    raw, _ = paths_of(read.records, read.items, read.sensitive, read.domain)
    asked = bounds(L, K, n_values=len(read.values), protected=(0,))
    left = local_alone(raw, asked, MOST).paths
    examined = examine(left, Claim(L, K))
    assert examined.finding is None
    assert left.n_records == read.n_records
    timed = Vocabulary(len(read.places), read.n_cells, timed=True)
    if read.n_cells > 1:  # cars are in two squares within an hour
        assert exclusion(raw, left, left, timed, asked) is None
    return 1 - left.n_instances / raw.n_instances, examined.fewest


@pytest.mark.parametrize("timed", [True, False])
def test_tracks_of_cars_and_buses(timed: bool) -> None:
    shared("data/trajectories")
    lost, fewest = lost_and_fewest(tracks(timed=timed), 2, 3)
    assert fewest >= 3
    assert 0 < lost < 0.9


@pytest.mark.more
def test_sets_of_diagnoses() -> None:
    shared("data/diabetes130")
    read = diagnoses()
    assert (read.n_records, len(read.places), np.bincount(read.records).max()) == (101_766, 881, 3)
    lost, fewest = lost_and_fewest(read, 3, 20)
    assert fewest >= 20
    assert 0.2 < lost < 0.4
