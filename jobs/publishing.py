"""Pass 2: the published part of a party's table besides the counts (semantics §3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from anonymize.cut import Cut
from anonymize.errors import DataError
from anonymize.joint.columns import Holding
from anonymize.release import LabelledColumn, cut_labels
from anonymize.table import Ints, Schema
from jobs.data.arrow import pa
from jobs.data.coders import Coder
from jobs.data.coding import Published
from jobs.data.sources import Source
from jobs.reading import check_rows, coding_of
from jobs.task import Task
from jobs.vertical import holding_of

if TYPE_CHECKING:
    from anonymize.clusters import Clusters


def generalized_rows(source: Source, task: Task, schema: Schema, cut: Cut) -> Iterator[pa.RecordBatch]:
    """Stream the source again with quasi-identifiers replaced by the labels of the cut.

    Yields record batches of the published columns in job order, dictionary-encoded text throughout. ``schema``
    comes from pass 1. Raises DataError as pass 1, and for a value that pass 1 did not find.
    """
    if task.clusters is None or schema.class_name is None:
        return source.relabel(_published(task, schema, cut), task.job.published)
    return _with_clusters(source, task, task.clusters, schema, cut)


def _with_clusters(
    source: Source, task: Task, clusters: Clusters, schema: Schema, cut: Cut
) -> Iterator[pa.RecordBatch]:
    """Stream the source with the cluster of every row: read the model's columns leaf by leaf, and generalize here."""
    published = _published(task, schema, cut)
    leaves = {schema.qid[i].name: published[schema.qid[i].name] for i in clusters.columns}
    names = [name for name in task.job.published if name != schema.class_name]
    for batch in source.relabel(published | {name: _by_leaf(how) for name, how in leaves.items()}, names):
        columns = {name: batch.column(name) for name in names}
        codes = {name: _leaves(columns[name]) for name in leaves}
        for name, how in leaves.items():
            columns[name] = _encoded(how.places[codes[name]], how.labels)
        labels = clusters.labels(schema.qid, [codes.get(column.name, _NO_CODES) for column in schema.qid])
        columns[str(schema.class_name)] = _encoded(labels, pa.array(schema.classes, pa.string()))
        yield pa.RecordBatch.from_arrays([columns[n] for n in task.job.published], list(task.job.published))


def boxed_rows(
    source: Source,
    task: Task,
    schema: Schema,
    printed: Sequence[LabelledColumn],
    group_of: Callable[[Sequence[Ints]], Ints],
) -> Iterator[pa.RecordBatch]:
    """Stream the source again where every group of records has its own values of the quasi-identifiers.

    printed:  labels of all groups, by quasi-identifier.
    group_of: maps the leaves of rows, by quasi-identifier, to groups. Raises DataError for unknown leaves.
    """
    names, qid = task.job.published, [column.name for column in schema.qid]
    by_leaf = {
        column.name: _numbered(task.model.reading.coder(task, column.name), column.n_leaves)
        for column in schema.qid
    }
    labels = [pa.array(column.labels, pa.string()) for column in printed]
    for batch in source.relabel(_of_domains(task, schema) | by_leaf, names):
        group = group_of([_leaves(batch.column(name)) for name in qid])
        columns = {name: batch.column(name) for name in names}
        for name, column, texts in zip(qid, printed, labels, strict=True):
            columns[name] = _encoded(column.codes[group].astype(np.int64), texts)
        yield pa.RecordBatch.from_arrays([columns[name] for name in names], list(names))


_NO_CODES: Ints = np.zeros(0, dtype=np.int64)
"""Codes of a column that the model does not have."""


def _by_leaf(how: Published) -> Published:
    """Publish each leaf by number."""
    return _numbered(how.coder, len(how.places))


def _numbered(coder: Coder, n_leaves: int) -> Published:
    numbers = np.arange(n_leaves, dtype=np.int64)
    return Published(coder, numbers, pa.array(map(str, numbers), pa.string()))


def _leaves(column: pa.DictionaryArray) -> Ints:
    numbers = np.array([int(text) for text in column.dictionary.to_pylist()], dtype=np.int64)
    codes: Ints = numbers[column.indices.to_numpy()]
    return codes


def _encoded(places: Ints, labels: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), labels)


def _published(task: Task, schema: Schema, cut: Cut) -> dict[str, Published]:
    """Return every published column except plain columns."""
    columns = {}
    for i, qid in enumerate(schema.qid):
        labels = pa.array(cut_labels(qid, cut, i), pa.string())
        columns[qid.name] = Published(task.model.reading.coder(task, qid.name), cut.positions(i), labels)
    return columns | _of_domains(task, schema)


def _of_domains(task: Task, schema: Schema) -> dict[str, Published]:
    """Return the class and the sensitive columns, published unchanged."""
    columns = {}
    domains = {c.name: c.domain for c in schema.sensitive}
    if schema.class_name in task.job.columns:
        domains[schema.class_name] = schema.classes
    for name, domain in domains.items():
        places = np.arange(max(len(domain), 1), dtype=np.int64)
        coder = task.model.reading.coder(task, name, domain)
        columns[name] = Published(coder, places, pa.array(domain, pa.string()))
    return columns


def cell_columns(source: Source, task: Task, me: str, holding: Holding, rows: Ints) -> pa.RecordBatch:
    """Return the published columns of a party of a vertical job besides quasi-identifiers, for its ``rows`` in
    order.

    Sensitive columns come from pass 1, plain columns from a second pass. Columns stand in job order, as
    dictionary-encoded text. Raises DataError if the source changed since pass 1.
    """
    job = task.job
    names = [name for name in job.contributed_by(me) if job.columns[name].role != "qid"]
    columns = {}
    for described, codes in zip(task.schema.sensitive, holding.sensitive, strict=True):
        if codes is not None:
            labels = pa.array(described.domain, pa.string())
            places = pa.array(codes[rows].astype(np.int32))
            columns[described.name] = pa.DictionaryArray.from_arrays(places, labels)
    plain = [name for name in names if job.columns[name].role == "plain"]
    if plain:
        columns |= _plain_columns(source, task, me, plain, holding, rows)
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names)


def _plain_columns(
    source: Source, task: Task, me: str, names: Sequence[str], holding: Holding, rows: Ints
) -> dict[str, pa.DictionaryArray]:
    """Read plain columns with all that pass 1 read, and compare with pass 1; take ``rows`` of the plain columns."""
    coding = replace(coding_of(task, me, matched=True), plain=tuple(names))
    coded = source.collapse(coding)
    check_rows(coded, coding)
    if not holding_of(coded, task.schema).same_as(holding):
        raise DataError("data-unreadable", "the table changed during the job", private=source.identity)
    assert coded.plain is not None  # there are rows
    table = coded.plain.unify_dictionaries().combine_chunks().take(pa.array(rows)).combine_chunks()
    return {name: table.column(name).chunk(0) for name in names}
