"""A second opinion on released paths: fastmob's linkage risk with so many known readings."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths, paths_of, rows_of
from anonymize.trajectory.sweep import local_alone
from benchmarks.movements import city
from tests.support.paths import bounds

L, K = 3, 10


def readings(paths: Paths, vocabulary: Vocabulary) -> pa.Table:
    """Every reading of every record as fastmob takes them: who, when, and where, every place with coordinates."""
    number = np.repeat(np.arange(paths.n_paths), paths.weights)
    items, starts = rows_of(paths.items, paths.starts, number)
    day, places = datetime(2026, 1, 1), 0.1 * vocabulary.locations_of(items)
    times = [day + timedelta(hours=hour) for hour in vocabulary.cells_of(items).tolist()]
    who = np.repeat(np.arange(len(number)), np.diff(starts))
    return pa.table({"uid": who, "datetime": times, "lat": places, "lng": places})


def risks(paths: Paths, vocabulary: Vocabulary, known: int) -> np.ndarray:
    """Of every record with a reading the greatest probability with which so many of its readings find it."""
    privacy = pytest.importorskip("fastmob.privacy", reason="fastmob is not installed with this Python")
    found = privacy.location_time_risk(readings(paths, vocabulary), known)
    return np.asarray(found["risk"])


def test_known_readings_find_nobody_in_a_release_with_more_than_one_in_k() -> None:
    walks = city(600, routes=40)
    vocabulary = Vocabulary(len(walks.places), walks.n_cells, timed=True)
    raw, _ = paths_of(walks.records, walks.items, walks.sensitive, walks.domain)
    left = local_alone(raw, bounds(L, K, n_values=len(walks.values)), 1 << 20).paths
    assert left.n_instances > 0.5 * raw.n_instances
    for known in range(1, L + 1):
        assert risks(raw, vocabulary, known).max() == 1
        found = risks(left, vocabulary, known)
        assert len(found) == left.n_records - left.n_empty
        # Counts are whole, so a risk is one of 1/1, 1/2, …
        assert (np.rint(1 / found) >= K).all()
