"""Result of a joint run of sequences in canonical bytes: tested and kept sequences, by number, and records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.trajectory.rows import RowCoding
from anonymize.joint.trajectory.sealed import JointSequences
from anonymize.release import Release
from anonymize.table import MAX_RECORDS
from anonymize.trajectory.exclusion import exclusion_or_untested
from anonymize.trajectory.metrics import loss_of
from anonymize.trajectory.paths import Paths
from anonymize.trajectory.requirement import Bounds, bounds_of
from anonymize.trajectory.sweep import Sweep
from crypto.mixing import Rows, in_order
from jobs.errors import PartyError
from jobs.json_text import read_json
from jobs.owner.charge import reveal_earlier
from jobs.release.csv import csv_bytes
from jobs.release.encoded import MALFORMED
from jobs.release.reveals import Revealing, reveal_fields, revealed
from jobs.release.shuffled_rows import ShuffledRows, unframed
from jobs.sequences.domains import places_of, time_column, times_of, vocabulary_of
from jobs.sequences.reading import settings
from jobs.sequences.release import release_of_paths
from jobs.sequences.report import exclusion_fields, loss_fields, records_words, sweeps_fields
from jobs.sequences.requirement import requirement
from jobs.sequences.sentences import item_words
from jobs.task import Task


@dataclass(frozen=True)
class OwnRecords:
    """Figures of a party's own records, for its owner alone.

    raw, left:  their paths before and after the run, path by path.
    """

    raw: Paths = field(repr=False)
    left: Paths = field(repr=False)
    coding: RowCoding
    bounds: Bounds

    def fields(self, table: Paths) -> dict[str, Any]:
        """Return the losses of the records, and the disclosures to readers of the table."""
        found = exclusion_or_untested(self.raw, self.left, table, self.coding.vocabulary, self.bounds)
        return {
            "lost": loss_fields(loss_of(self.raw, self.left)),
            "empty_paths": self.left.n_empty,
            "exclusion": exclusion_fields(found, self.coding.vocabulary.timed, 0, 0),
        }


@dataclass(frozen=True)
class SequencesResult(Revealing):
    """Result of a joint run.

    rows:    the records of all parties, as shuffled.
    table:   the same as paths.
    sweeps:  the tested sequences, by number.
    """

    task: Task = field(repr=False)
    rows: Rows = field(repr=False)
    table: Paths = field(repr=False)
    sweeps: tuple[Sweep, ...]
    own_records: OwnRecords | None = field(default=None, repr=False)

    @cached_property
    def release(self) -> Release:
        """Published table."""
        places, times = places_of(self.task), times_of(self.task)
        assert places is not None, "a joint job lists them"
        labels = () if times is None else times.labels
        path_of = np.repeat(np.arange(self.table.n_paths), self.table.weights)
        words = vocabulary_of(len(places), times)
        return release_of_paths(
            self.task.job, self.table, path_of, self.task.schema, words, places, labels, {}
        )

    @cached_property
    def csv(self) -> bytes:
        """Published table as the delivered file."""
        return csv_bytes(self.release)

    @cached_property
    def encoded(self) -> bytes:
        said = json.dumps(sweeps_fields(self.sweeps), separators=(",", ":")).encode()
        return ShuffledRows(self.rows.shape[1], rows=self.rows).framed(said)

    @property
    def own(self) -> dict[str, Any]:
        told = super().own
        if self.own_records is None:
            return told
        records = self.own_records.fields(self.table)
        words = records_words(records, item_words(self.task.job)[1])
        return told | {"records": {**records, "in_words": words}}


def coding_of(task: Task) -> RowCoding:
    """Return the coding of the records of a joint job."""
    asked, places, times = settings(task.job), places_of(task), times_of(task)
    assert places is not None, "a joint job lists them"
    one_place = asked.places == "first" and time_column(task.job) is not None
    return RowCoding(vocabulary_of(len(places), times), asked.max_items, task.schema.n_cells, one_place)


def bounds_in(task: Task) -> Bounds:
    """Return the bounds on every sequence of a joint job."""
    return bounds_of(requirement(task.job), task.schema)


def result_of(task: Task, joint: JointSequences, raw: Paths) -> SequencesResult:
    """Return the result of a run at a party. raw: its paths before."""
    coding = coding_of(task)
    own = OwnRecords(raw, joint.own, coding, bounds_in(task))
    return SequencesResult(task, joint.rows, joint.table, joint.sweeps, own, **revealed(joint.ledger))


def decode_result(task: Task, encoded: bytes, sender: str) -> SequencesResult:
    """Read a result. Raises PartyError (peer-protocol) for a result that is malformed or impossible for the job."""
    coding = coding_of(task)
    try:
        said, mixed = unframed(encoded)
        if mixed.rows is None or mixed.width != coding.width or not in_order(mixed.rows):
            raise ValueError("malformed rows")
        sweeps = sweeps_of(read_json(said)["sweeps"], settings(task.job).L)
        result = SequencesResult(task, mixed.rows, coding.decoded(mixed.rows), sweeps)
        if result.encoded != encoded or result.table.n_records > MAX_RECORDS:
            raise ValueError("not in canonical form")
    except MALFORMED as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error
    return result


def digest_of(task: Task, table: Paths, sweeps: Any) -> str:
    """Return SHA-256, hexadecimal, of the result with the given records and a report's sweeps.

    Raises ValueError, TypeError or LookupError for malformed sweeps, LocalProtocolError for a path that fits no
    row.
    """
    rows = coding_of(task).encoded(table)
    rows = rows[np.lexsort(rows.T[::-1])]
    found = SequencesResult(task, rows, table, sweeps_of(sweeps, settings(task.job).L))
    return hashlib.sha256(found.encoded).hexdigest()


def reveals_of(task: Task, table: Paths, sweeps: Sequence[Sweep], *, is_later: bool) -> list[dict[str, Any]]:
    """Return the reveals of a joint run with the given sweeps and records, in the form of reports.

    is_later:  True if parties first found an earlier run of the job. Only charged runs disclose the fact.
    """
    n_parties, ledger = len(task.job.roster), RevealLedger(task.mode.name)
    if is_later:
        reveal_earlier(ledger, n_parties)
    ledger.reveal("root_check", None, "all", ())
    ledger.reveal("root_counts", None, "all", (task.schema.n_cells,))
    for sweep in sweeps:
        ledger.iteration += sweep.tested[0] > 0
        for n in filter(None, sweep.tested):
            ledger.reveal("kept", None, "all", (n,))
    ledger.reveal("row_counts", None, "leader", (n_parties,))
    ledger.reveal("rows", None, "all", (table.n_records, coding_of(task).width))
    return reveal_fields(ledger)


def sweeps_of(said: Any, longest: int) -> tuple[Sweep, ...]:
    """Read the questions, sweep by sweep. Raises ValueError, TypeError or LookupError."""
    return tuple(Sweep(_counts(each["tested"], longest), _counts(each["kept"], longest)) for each in said)


def _counts(said: Sequence[Any], longest: int) -> tuple[int, ...]:
    counts = tuple(said)
    if len(counts) != longest or not all(type(n) is int and n >= 0 for n in counts):
        raise ValueError("malformed numbers")
    return counts
