"""Commands `coordinator clusters fit` and `coordinator clusters evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from anonymize.agreement import Agreement, agreement, contingency
from anonymize.clusters import UNIT
from anonymize.table import CodedTable, Ints, QidColumn, pack, tally
from anonymize.tds import Observer
from coordinator.arguments import data_option, delimiter_option, table_source
from evaluation.clustering import (
    METHODS,
    Points,
    clustered,
    places_of_labels,
    raw_points,
    released_points,
)
from evaluation.commands import OWN
from evaluation.learners import library
from jobs.clusters import clusters_of, digest_of
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.errors import ConfigError, PartyError
from jobs.file.clusters import MAX_CLUSTERS, ClusterModel
from jobs.file.job import check_compared
from jobs.file.yaml_text import parse_yaml, read_text
from jobs.lkc.single import anonymized, rows_kept
from jobs.loading import invalid_job
from jobs.reading import load_table
from jobs.release.checking import read_report
from jobs.release.csv import REPORT
from jobs.release.folder import refuse_existing
from jobs.task import Task
from party.cli.arguments import PATH
from party.cli.console import format_option, say, set_up_logs
from party.cli.job_file import JobFile, job_argument


def _general(score: str | None) -> dict[str, Any]:
    """Return the keys that turn a job with goal clusters into a job of goal general with a score, or the default."""
    return {"goal": "general", "model": {"lkc": {"clusters": None, "score": score, "contexts": None}}}


WITHOUT_CLUSTERS: Mapping[str, Any] = _general(None)
"""Changes that turn a job with goal clusters into a job without clusters."""
UNGUIDED = {"general": WITHOUT_CLUSTERS, "records": _general("records")}
"""Changes that turn a job into the baseline of a guided release: goal general by default, and as in [CLU]."""
PUBLIC = (
    "The model tells averages of the rows of this table. The model goes with every job that uses it: everybody who "
    "sees the job sees the model."
)
_method = click.Choice(list(METHODS))


@click.group()
def clusters() -> None:
    """Fit models of clusters; compare the clusters of a release."""


@clusters.command()
@job_argument
@data_option
@delimiter_option
@click.option("--count", type=click.IntRange(2, MAX_CLUSTERS), required=True, help="How many clusters.")
@click.option("--method", type=_method, default="kmeans", show_default=True, help="How clusters are found.")
@click.option("--columns", multiple=True, metavar="NAME", help="A quasi-identifier to look at; default: all.")
@click.option(
    "--min-cluster",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="The fewest records that a cluster may have; with `unit: person` the fewest people.",
)
@click.option("--out", type=PATH, required=True, help="New file for the model.")
@format_option
def fit(
    job: JobFile,
    data: Path | None,
    delimiter: str,
    count: int,
    method: str,
    columns: tuple[str, ...],
    min_cluster: int,
    out: Path,
) -> None:
    """Find clusters in one table, and write their centroids.

    The file becomes public with every job that uses it, and tells averages of the rows. `clusters` of the job is
    ignored. Needs `jointcut[evaluate]`.
    """
    set_up_logs("WARNING")
    library("sklearn")
    written = parse_yaml(read_text(job.path), str(job))
    task = _without_clusters(job, written)
    if task.model.name != "lkc" or task.job.partition == "vertical":
        raise ConfigError("usage", "clusters are for LKC jobs, single or horizontal")
    try:
        check_compared(task.job)
    except ValueError as error:
        raise invalid_job(error, str(job), written) from None
    for name in columns:
        if name not in task.job.names("qid"):
            raise ConfigError("usage", f"--columns {name}: the job has no quasi-identifier {name}")
    refuse_existing(out, "file")
    if not out.parent.is_dir():
        raise ConfigError("file-missing", f"{out.parent} is not a folder")
    loaded = load_table(table_source(task, job, data, delimiter), task)
    model, labels = fitted(loaded.table, dict.fromkeys(columns) or task.job.names("qid"), count, method)
    sizes, counted = _sizes(labels, loaded, count), "records" if loaded.person is None else "people"
    if int(sizes.min()) < min_cluster:
        raise PartyError(
            "cluster-too-small",
            f"a cluster has fewer than {min_cluster} {counted}, and the model would tell the averages of few",
            private=", ".join(map(str, sizes.tolist())),
        )
    out.write_bytes(model.encoded)
    lines = [f"{out}: {count} clusters, {method}, of {', '.join(model.names)}"]
    lines += [f"  cluster {i}: {size:,} {counted}" for i, size in enumerate(sizes.tolist())]
    fields = {"out": str(out), "count": count, "method": method, "columns": list(model.names)}
    say([*lines, PUBLIC], fields | {"sha256": model.digest, counted: sizes.tolist()})


def _without_clusters(job: JobFile, fields: Any) -> Task:
    """Return the task of a job file without its clusters, because the model may not exist yet."""
    looks = isinstance(fields, Mapping) and fields.get("goal") == "clusters"
    return job.load(WITHOUT_CLUSTERS if looks else None)


def fitted(
    table: CodedTable, names: Sequence[str] | Mapping[str, None], count: int, method: str, seed: int = 0
) -> tuple[ClusterModel, Ints]:
    """Fit a model; return the model with the nearest centroid of every row of the table, shape (n,).

    Raises ConfigError for fewer different records.
    """
    numbers = [i for name in names for i, column in enumerate(table.schema.qid) if column.name == name]
    columns = [table.schema.qid[i] for i in numbers]
    codes = [table.qid[i] for i in numbers]
    found = clustered([raw_points(column) for column in columns], codes, table.weights, count, method, seed)
    if found.count < count or len(set(found.labels.tolist())) < count:
        raise ConfigError("usage", f"--count {count}: the table has fewer different records")
    centroids = np.clip(np.rint(found.centroids * UNIT), 0, UNIT).astype(np.int64)
    model = ClusterModel.model_validate(
        {
            "version": "1",
            "method": method,
            "columns": [{"name": column.name, "values": digest_of(column)} for column in columns],
            "centroids": centroids.tolist(),
        }
    )
    return model, clusters_of(model, table.schema.qid).labels(table.schema.qid, table.qid)


def _sizes(labels: Ints, loaded: Loaded, count: int) -> Ints:
    """Count the records of each cluster, or different people if the job tells people apart: shape (n_clusters,)."""
    if loaded.person is None:
        return tally(labels, loaded.table.weights, count)
    n_people = int(loaded.person.max(initial=0)) + 1
    _, first = np.unique(pack([labels, loaded.person], [count, n_people]), return_index=True)
    return tally(labels[first], None, count)


@clusters.command()
@job_argument
@click.argument("result", type=PATH)
@data_option
@delimiter_option
@click.option(
    "--method",
    type=_method,
    help="How clusters of released rows are found; default: the method of the model.",
)
@click.option(
    "--against",
    type=click.Choice(list(UNGUIDED)),
    multiple=True,
    help="Also compare with a release of the same rows without clusters as a guide: goal general, with the default "
    "score or this score.",
)
@format_option
def evaluate(
    job: JobFile,
    result: Path,
    data: Path | None,
    delimiter: str,
    method: str | None,
    against: tuple[str, ...],
) -> None:
    """Compare clusters of raw and of released rows.

    RESULT is the folder of the release. The rows belong to the holder, or to a single party of a joint job. Rows
    withheld by the job are left out; the rest is generalized as the report says. Nothing is written. Needs
    `jointcut[evaluate]`.
    """
    set_up_logs("WARNING")
    library("sklearn")
    task = job.load()
    if task.job.clusters is None:
        raise ConfigError("usage", "clusters evaluate is for jobs with `goal: clusters`")
    model = task.job.clusters.opened
    method = method or model.method
    source = table_source(task, job, data, delimiter)
    report = _report_of(task, result)
    places: Mapping[str, Ints] = {
        column.name: _places(column, report.get("cut"), result / REPORT) for column in task.qid
    }
    read = load_table(source, task)
    unseen = _require_its_rows(report, read.table.n_records)
    table = rows_kept(task, read).table
    columns = [table.schema.qid[i] for i in clusters_of(model, table.schema.qid).columns]
    compared = partial(_compared, model, method)
    tables = {
        "raw": compared(table, [raw_points(column) for column in columns]),
        "released": compared(table, _points(columns, places)),
    }
    for name in against:
        general, places = _unguided(job.load(UNGUIDED[name]), source)
        tables[name] = compared(general, _points(columns, places))
    found = {name: agreement(counts) for name, counts in tables.items()}
    withheld = read.table.n_records - table.n_records
    without = f" ({withheld:,} more are withheld)" if withheld else ""
    head = (
        f"{task.job.name}: {table.n_records:,} rows{without} in {model.count} clusters ({model.method}), against "
        f"clusters ({method}) of"
    )
    fields = {
        "rows": table.n_records,
        "withheld": withheld,
        "method": method,
        "ways": {
            name: _fields(each) | {"contingency": tables[name].tolist()} for name, each in found.items()
        },
    }
    say([head, *_lines(found), *_contingency_lines(tables["released"]), *unseen, OWN], fields)


def _report_of(task: Task, result: Path) -> Mapping[str, Any]:
    """Return the report of a release of the job. Raises PartyError."""
    path = result / REPORT
    if not path.is_file():
        raise ConfigError("file-missing", f"{path} is not a file", remedy="name the folder of a release")
    report = read_report(path.read_bytes())
    if report.get("job_sha256") != task.digest.hex():
        raise PartyError(
            "verification-failed",
            f"{path} is about a different job (or a different version of the job)",
            remedy="name the folder of the job's release",
        )
    return report


def _require_its_rows(report: Mapping[str, Any], n_records: int) -> list[str]:
    """Raise PartyError for a table with another number of rows than the release; return a note if unknown."""
    data = report.get("data")
    if not isinstance(data, Mapping):
        return [
            "The report does not state its number of rows: whether the table belongs to the release is not checked."
        ]
    if data.get("used") != n_records:
        raise PartyError(
            "verification-failed",
            "the table has a different number of rows than the release",
            remedy="name the table of the release with `--data`",
        )
    return []


def _places(column: QidColumn, cut: Any, path: Path) -> Ints:
    labels = cut.get(column.name) if isinstance(cut, dict) else None
    known = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    places = places_of_labels(column, list(dict.fromkeys(labels or ()))) if known else None
    if places is None:
        raise PartyError("verification-failed", f"{path}: `cut` does not cover column {column.name}")
    return places


def _unguided(task: Task, source: Source) -> tuple[CodedTable, Mapping[str, Ints]]:
    """Release the table alone, without clusters; return its rows, and the places of leaves. Raises PrivacyError."""
    loaded = rows_kept(task, load_table(source, task))
    cut = anonymized(task, loaded, Observer()).cut
    places = {column.name: cut.positions(i) for i, column in enumerate(loaded.table.schema.qid)}
    return loaded.table, places


def _points(columns: Sequence[QidColumn], places: Mapping[str, Ints]) -> list[Points]:
    return [released_points(column, places[column.name]) for column in columns]


def _compared(model: ClusterModel, method: str, table: CodedTable, points: Sequence[Points]) -> Ints:
    """Return the contingency of the model's labels and the clusters of the given points, by column of the model."""
    raw = clusters_of(model, table.schema.qid)
    labels = raw.labels(table.schema.qid, table.qid)
    found = clustered(points, [table.qid[i] for i in raw.columns], table.weights, model.count, method)
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    return contingency(labels[rows], found.labels[rows], (model.count, found.count))


def _fields(found: Agreement) -> dict[str, Any]:
    exact = {"f_measure": found.f_measure, "match_point": found.match_point, "adjusted_rand": found.adjusted}
    return {name: {"exact": str(value), "value": float(value)} for name, value in exact.items()}


def _lines(found: Mapping[str, Agreement]) -> list[str]:
    lines = [f"  {'':12}{'F-measure':>12}{'match point':>14}{'adjusted Rand':>16}"]
    for name, each in found.items():
        shown = (_short(each.f_measure), _short(each.match_point), _short(each.adjusted))
        lines.append(f"  {_WAYS[name]:12}{shown[0]:>12}{shown[1]:>14}{shown[2]:>16}")
    return lines


_WAYS = {"raw": "raw rows", "released": "released", "general": "unguided", "records": "by records"}


def _short(value: Fraction) -> str:
    return f"{float(value):.4f}"


def _contingency_lines(counts: Ints) -> list[str]:
    width = max(len(f"{n:,}") for n in counts.ravel().tolist())
    rows = (" ".join(f"{n:>{width},}" for n in row) for row in counts.tolist())
    return ["  clusters of raw rows (down) and of released rows:", *(f"    {row}" for row in rows)]
