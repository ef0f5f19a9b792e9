"""Released tables as files: writing, reading back, verifying, and the folder they come in."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from anonymize.cut import Candidate
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.horizontal import JointOutcome
from anonymize.release import LabelledColumn, Release, release_of_counts
from anonymize.table import Codes, Ints, Schema, pack
from anonymize.verification import Bound, Finding, verify_cells, verify_lkc
from party.bundle import Bundle
from party.errors import ConfigError, PartyError, json_object
from party.job import Job
from party.result import reveal_fields

TABLE, REPORT = "anonymized.csv", "report.json"
OWN_ACCOUNT = "own-account.json"
"""At a party of a vertical job only: reveals and costs, with what concerns this party alone."""
_CHUNK_ROWS = 1 << 17
_SPECIAL = re.compile(r'[",\r\n]|^\s|\s$')


def csv_header(content: bytes) -> list[str]:
    """The column names of a CSV of ours."""
    text = io.StringIO(content.decode("utf-8"), newline="")
    return next(csv.reader(text), [])


def write_csv(release: Release, path: Path) -> None:
    """Write a release as CSV: UTF-8, header, values quoted where they need it."""
    columns = list(release.columns.values())
    with path.open("wb") as file:
        file.write(_header(list(release.columns)))
        for start in range(0, release.n_rows, _CHUNK_ROWS):
            parts = [c.codes[start : start + _CHUNK_ROWS].astype(np.int32) for c in columns]
            file.write(_lines([c.labels for c in columns], parts))


def csv_bytes(release: Release) -> bytes:
    """A release as CSV, in memory."""
    columns = list(release.columns.values())
    return _header(list(release.columns)) + _lines([c.labels for c in columns], [c.codes for c in columns])


def rows_to_csv(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> bytes:
    """Write batches of dictionary-encoded text as one CSV."""
    out = bytearray(_header(names))
    for batch in batches:
        labels = [column.dictionary.to_pylist() for column in batch.columns]
        out += _lines(labels, [np.asarray(column.indices) for column in batch.columns])
    return bytes(out)


def _header(names: Sequence[str]) -> bytes:
    return (",".join(_quoted(names)) + "\n").encode()


def _lines(labels: Sequence[Sequence[str]], codes: Sequence[Codes]) -> bytes:
    """Join columns to lines; each label is quoted once, not each cell."""
    if not codes or len(codes[0]) == 0:
        return b""
    ends = [",", *[","] * (len(codes) - 2), "\n"][-len(codes) :]
    cells = [
        pa.array([text + end for text in _quoted(values)], pa.large_string()).take(pa.array(places))
        for values, places, end in zip(labels, codes, ends, strict=True)
    ]
    joined = pc.binary_join_element_wise(*cells, pa.scalar("", pa.large_string()))
    return bytes(joined.buffers()[2])


def _quoted(values: Iterable[str]) -> list[str]:
    """Quote what RFC 4180 wants quoted, and the empty value (a line of one empty value would be blank)."""
    return ['"' + v.replace('"', '""') + '"' if not v or _SPECIAL.search(v) else v for v in values]


def read_csv(content: bytes | Path, names: Sequence[str]) -> Release:
    """Read a released table back; it must have exactly these columns. Raises PartyError."""
    types = dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string()))
    convert = pyarrow.csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False)
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    try:
        source = pa.BufferReader(content) if isinstance(content, bytes) else str(content)
        table = pyarrow.csv.read_csv(
            source, parse_options=parse, convert_options=convert
        ).unify_dictionaries()
    except (OSError, pa.ArrowException) as error:
        raise PartyError(
            "data-unreadable", "the released table cannot be read", private=str(error)
        ) from error
    if table.column_names != list(names):
        raise PartyError(
            "verification-failed",
            f"the table has columns {', '.join(table.column_names)} where the job publishes {', '.join(names)}",
        )
    return Release({name: _labelled(table.column(name)) for name in names})


def _labelled(column: pa.ChunkedArray) -> LabelledColumn:
    if column.num_chunks == 0:
        return LabelledColumn((), np.zeros(0, dtype=np.int64))
    codes = np.concatenate([np.asarray(chunk.indices) for chunk in column.chunks])
    return LabelledColumn(tuple(column.chunk(0).dictionary.to_pylist()), codes)


def verify_release(release: Release, bundle: Bundle) -> Finding | None:
    """Check a table against its job's requirement, from its labels alone."""
    job, bounds = bundle.job, bounds_of(release, bundle)
    finding = verify_lkc(release, job.names("qid"), bundle.lkc.L, bundle.lkc.K, bounds)
    if finding is None and job.insider:
        return verify_cells(release, job.names("qid", "class"), bounds)
    return finding


def bounds_of(release: Release, bundle: Bundle) -> list[Bound]:
    """The bound of every sensitive column of a job."""
    bounds = []
    for name in bundle.job.names("sensitive"):
        column = bundle.job.columns[name]
        values = column.values or column.domain or release.columns[name].labels
        bounds.append(Bound(name, frozenset(values), column.C or bundle.lkc.C))
    return bounds


def asked_fields(bundle: Bundle) -> dict[str, Any]:
    """What a report says of what the job asked for."""
    job = bundle.job
    return {
        "format": 1,
        "job": job.name,
        "job_sha256": bundle.digest.hex(),
        "partition": job.partition,
        "model": job.model.model_dump(mode="json", exclude_none=True),
        "goal": job.goal,
    }


def joint_fields(job: Job, mode: str) -> dict[str, Any]:
    """What a report says of who computed, and of what they could learn; ``mode`` names the list of reveals."""
    pair = {"deputy": job.deputy_name} if job.disclosure == "sealed" else {}
    return {
        "parties": list(job.roster),
        "leader": job.leader_name,
        **pair,
        "disclosure": job.disclosure,
        "revealed_by_design": [
            {"name": a.name, "to": a.to, "meaning": a.meaning, "finer_than_result": a.finer}
            for a in ALLOWED[mode]
        ],
    }


def printed_candidate(schema: Schema, candidate: Candidate) -> dict[str, Any]:
    """A specialization as reports print it."""
    column = schema.qid[candidate.column]
    return {
        "attribute": column.name,
        "value": column.label(candidate.node),
        "children": [column.label(child) for child in candidate.children],
    }


def require_verified(release: Release, bundle: Bundle) -> None:
    """Raise PartyError unless the table meets its requirement: the last gate before anything is written."""
    finding = verify_release(release, bundle)
    if finding is not None:
        raise PartyError("verification-failed", str(finding))


def same_rows(one: Release, other: Release, names: Sequence[str]) -> bool:
    """Return whether two tables hold the same multiset of rows on these columns."""
    if one.n_rows != other.n_rows:
        return False
    pairs = [_common_codes(one.columns[name], other.columns[name]) for name in names]
    radices = [int(max(a.max(initial=0), b.max(initial=0))) + 1 for a, b in pairs]
    both = pack([np.concatenate(pair) for pair in pairs], radices)
    return bool((np.sort(both[: one.n_rows]) == np.sort(both[one.n_rows :])).all())


def _common_codes(one: LabelledColumn, other: LabelledColumn) -> tuple[Ints, Ints]:
    numbers = {label: i for i, label in enumerate(dict.fromkeys((*one.labels, *other.labels)))}

    def renumbered(column: LabelledColumn) -> Ints:
        return np.array([numbers[label] for label in column.labels] or [0], dtype=np.int64)[column.codes]

    return renumbered(one), renumbered(other)


def check_delivery(
    bundle: Bundle, result: JointOutcome, files: Mapping[str, bytes], columns: bytes | None = None
) -> None:
    """Check files the coordinator delivers against what we computed ourselves. Raises PartyError.

    columns:  in a vertical job the columns that we contributed, as we sent them.
    """
    report = json_object(files[REPORT])
    if report is None or report.get("job_sha256") != bundle.digest.hex():
        raise PartyError("result-mismatch", "the delivered report is about another job")
    if report.get("reveals") != reveal_fields(result.ledger):
        raise PartyError("result-mismatch", "the delivered report tells of other reveals than there were")
    release = read_csv(files[TABLE], bundle.job.published)
    ours = release_of_counts(result.outcome.schema, result.outcome.cut, result.generalized)
    if columns is not None:
        ours = Release({**ours.columns, **read_csv(columns, csv_header(columns)).columns})
    if not same_rows(release, ours, list(ours.columns)):
        raise PartyError("result-mismatch", "the delivered table is not the one that was computed")
    require_verified(release, bundle)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block succeeds, and vanishes when it does not.

    Raises ConfigError if ``path`` exists: nothing is overwritten.
    """
    refuse_existing(path)
    with _parents(path), _temporary(path) as folder:
        yield folder
        refuse_existing(path)
        folder.chmod(0o755)
        os.rename(folder, path)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A hidden folder beside ``path``, gone afterwards unless it was renamed."""
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Make the folders above ``path``; those that were not there go again if the block fails."""
    made = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):  # somebody else may use it by now
                parent.rmdir()
        raise


def refuse_existing(path: Path) -> None:
    """Raise ConfigError if anything is at ``path``, a dangling link included."""
    if os.path.lexists(path):
        raise ConfigError(
            "output-exists", f"{path} exists", remedy="name a new folder; nothing is overwritten"
        )


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, by name, into a folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
