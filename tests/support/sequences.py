"""Sealed runs over sequences, in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonymize.joint.roster import Roster
from anonymize.joint.trajectory.rows import RowCoding
from anonymize.joint.trajectory.sealed import JointSequences, SequencesRequest, suppress_sealed
from anonymize.tds import Observer
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths
from anonymize.trajectory.requirement import Bounds
from crypto.local import Transcript, run_local
from tests.support.paths import Record, paths_from, records_of
from tests.support.rng import SeededRng

MODE = "sequences/horizontal/sealed"
MOST = 10_000


def run_sealed_sequences(
    paths: Sequence[Paths],
    bounds: Bounds,
    *,
    leader: int = 0,
    deputy: int = 1,
    max_items: int = 8,
    max_candidates: int = MOST,
    observers: Mapping[str, Observer] | None = None,
    **how: Any,
) -> tuple[dict[str, JointSequences], Transcript]:
    """Run sealed parties on paths. how: of :func:`crypto.local.run_local`."""
    names = tuple(f"p{i}" for i in range(len(paths)))
    coding = RowCoding(Vocabulary(paths[0].domain), max_items, bounds.schema.n_cells)
    request = SequencesRequest(bounds, coding, max_candidates, bytes(32))
    return run_local(
        {
            me: suppress_sealed(
                Roster(me, names, names[leader], names[deputy]),
                own,
                request,
                SeededRng(me),
                mode=MODE,
                observer=(observers or {}).get(me),
            )
            for me, own in zip(names, paths, strict=True)
        },
        **how,
    )


def split(records: Sequence[Record], owners: Sequence[int], n: int, domain: int) -> list[Paths]:
    """The records of every owner."""
    return [
        paths_from([r for r, owner in zip(records, owners, strict=True) if owner == i], domain)[0]
        for i in range(n)
    ]


def all_records(paths: Paths) -> list[tuple[list[int], int]]:
    """Every record of a table, sorted."""
    number = np.repeat(np.arange(paths.n_paths), paths.weights)
    return sorted((sorted(path), value) for path, value in records_of(paths, number.tolist()))
