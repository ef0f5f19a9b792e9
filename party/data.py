"""Data sources: pass 1 reads a table into codes, pass 2 streams it again with its labels (DESIGN §3).

Both passes go through the source in batches; memory holds codes, not strings. Cells are read as text and
interpreted by the job alone: categorical values as they stand, numbers as IEEE doubles. Errors name the
column to everybody; the value only to the owner.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from anonymize.cut import Cut
from anonymize.errors import DataError
from anonymize.grid import Grid
from anonymize.joint.columns import Holding
from anonymize.release import cut_labels
from anonymize.table import MAX_RECORDS, CodedTable, LeafSets, Schema, SetRule, coded_table
from anonymize.taxonomy import MISSING, Taxonomy
from party.bundle import Bundle

_BLOCK_BYTES = 8 << 20
_PARQUET_ROWS = 1 << 16
_TEXT = pa.dictionary(pa.int32(), pa.string())
_DROPPED, _BAD = -1, -2

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Source:
    """Where a party's table is. kind: csv (also gzipped) or parquet."""

    kind: str
    path: Path
    delimiter: str = ","

    def column_names(self) -> list[str]:
        """Read the header. Raises DataError."""
        with _readable(self.path):
            if self.kind == "parquet":
                return list(pyarrow.parquet.read_schema(self.path).names)
            return next(iter(self._first_lines(1)), [])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream the named columns as dictionary-encoded text. Raises DataError."""
        with _readable(self.path):
            if self.kind == "parquet":
                yield from self._parquet_batches(columns)
            elif len(self._first_lines(2)) == 2:  # a header alone is no CSV to the reader below
                yield from self._csv_batches(columns)

    def _first_lines(self, n: int) -> list[list[str]]:
        """The first lines of a CSV that are not blank, at most ``n``."""
        opener = gzip.open if self.path.suffix == ".gz" else open
        with opener(self.path, "rt", encoding="utf-8-sig", newline="") as file:
            lines = filter(None, csv.reader(file, delimiter=self.delimiter))
            return list(islice(lines, n))

    def _csv_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        convert = pyarrow.csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, _TEXT),
            null_values=[],
            strings_can_be_null=False,
        )
        read = pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES)
        parse = pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        with pyarrow.csv.open_csv(self.path, read, parse, convert) as reader:
            yield from reader

    def _parquet_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pyarrow.parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(_PARQUET_ROWS, columns=list(columns)):
                text = [pc.fill_null(pc.cast(column, pa.string()), "") for column in batch.columns]
                yield pa.RecordBatch.from_arrays([pc.dictionary_encode(t) for t in text], batch.schema.names)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn whatever readers raise over a file that they cannot make sense of into DataError."""
    try:
        yield
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
        raise DataError(
            "data-unreadable",
            "the table cannot be read",
            private=f"{path}: {error}",
        ) from error


class _Coder(Protocol):
    """Turns the distinct texts of a column into codes: a leaf number, _DROPPED or _BAD."""

    def codes(self, values: Sequence[str]) -> Codes: ...

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts are outside the domain, whatever their codes are: for the owner's own count."""
        ...


@dataclass
class _Categorical:
    """Values of a taxonomy or a listed domain; ``missing`` is the code of a missing cell.

    other:  the code of a value that is not listed. In DP jobs such a value is no error, which would tell.
    moved:  a missing cell stands for a value that it is not, so it counts as outside the domain.
    """

    index: Mapping[str, int]
    missing: int
    other: int = _BAD
    moved: bool = False

    def codes(self, values: Sequence[str]) -> Codes:
        return np.array([self._code(value) for value in values], dtype=np.int64)

    def _code(self, value: str) -> int:
        return self.missing if value in {"", MISSING} else self.index.get(value, self.other)

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.array([self._is_outside(value) for value in values], dtype=bool)

    def _is_outside(self, value: str) -> bool:
        return self.moved if value in {"", MISSING} else value not in self.index


@dataclass
class _Sets:
    """Cells with several values; codes are numbers of the sets of leaves found, in order of appearance."""

    items: _Categorical
    rule: SetRule
    found: dict[tuple[int, ...], int] = field(default_factory=dict)

    def codes(self, values: Sequence[str]) -> Codes:
        return np.array([self._code(value) for value in values], dtype=np.int64)

    def _code(self, cell: str) -> int:
        leaves = [leaf for leaf in self.items.codes(self._split(cell)).tolist() if leaf >= 0]
        kept = list(dict.fromkeys(leaves))[: self.rule.max_items]
        return self.found.setdefault(tuple(sorted(kept)), len(self.found)) if kept else _DROPPED

    def _split(self, cell: str) -> list[str]:
        """The values of a cell; none at all are one missing value."""
        return [item.strip() for item in cell.split(self.rule.separator) if item.strip()] or [MISSING]

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.array([bool(self.items.outside(self._split(v)).any()) for v in values], dtype=bool)

    def leaf_sets(self) -> LeafSets:
        starts = np.cumsum([0, *map(len, self.found)])
        return LeafSets(np.array([leaf for s in self.found for leaf in s], dtype=np.int64), starts)


@dataclass
class _Found:
    """Values of a domain that a single-holder job leaves to its data; numbered as they come."""

    missing: int
    index: dict[str, int] = field(default_factory=dict)

    def codes(self, values: Sequence[str]) -> Codes:
        return np.array([self._code(value) for value in values], dtype=np.int64)

    def _code(self, value: str) -> int:
        return self.missing if value in {"", MISSING} else self.index.setdefault(value, len(self.index))

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        return np.zeros(len(values), dtype=bool)


@dataclass
class _Numeric:
    """Cells of a grid. ``clamp``: a number outside counts as in the nearest cell, and what is none as missing.

    missing:  the code of a missing cell. Where it is a cell of the grid, missing cells count as outside.
    """

    grid: Grid
    clamp: bool = False
    missing: int = _DROPPED

    def codes(self, values: Sequence[str]) -> Codes:
        missing, numbers = self._parsed(values)
        codes = np.where(missing, self.missing, _BAD)
        cells = self.grid.cells(numbers)
        codes[~missing] = np.where(cells < 0, self._outside(numbers), cells)
        return codes

    def _parsed(self, values: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which texts are missing, and the numbers of the others; NaN for what is none."""
        text = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
        missing = np.isin(np.array(text.to_pylist(), dtype=object), ["", MISSING])
        return missing, _numbers(text.take(pa.array(np.flatnonzero(~missing))))

    def _outside(self, numbers: NDArray[np.float64]) -> Codes:
        """Codes for numbers outside the domain."""
        if not self.clamp:
            return np.full(len(numbers), _BAD, dtype=np.int64)
        ends = np.where(numbers < float(self.grid.edges[0]), 0, self.grid.n_cells - 1)
        return np.where(np.isnan(numbers), self.missing, ends)

    def outside(self, values: Sequence[str]) -> NDArray[np.bool_]:
        missing, numbers = self._parsed(values)
        found = missing & (self.missing >= 0)
        found[~missing] = self.grid.cells(numbers) < 0
        return found


def _numbers(text: pa.Array) -> NDArray[np.float64]:
    """Parse numbers; NaN where a text is none."""
    try:
        return np.asarray(pc.cast(text, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except pa.ArrowInvalid:
        return np.array([_number(value) for value in text.to_pylist()], dtype=np.float64)


def _number(text: str) -> float:
    try:
        return float(pc.cast(pa.scalar(text), pa.float64()).as_py())
    except pa.ArrowInvalid:
        return float("nan")


@dataclass(frozen=True)
class Loaded:
    """A party's table after pass 1, with numbers for the owner's own console.

    outside:  in DP jobs, per column how many rows had a value outside the domain.
    """

    table: CodedTable
    n_read: int
    n_dropped: int
    outside: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedColumns:
    """A party's columns of a vertical job after pass 1: one row for each record, with its id."""

    holding: Holding
    n_read: int
    n_dropped: int
    outside: Mapping[str, int] = field(default_factory=dict)


def load(source: Source, bundle: Bundle, me: str) -> Loaded | LoadedColumns:
    """Pass 1 of a party: what its job asks of it."""
    if bundle.job.partition == "vertical":
        return load_columns(source, bundle, me)
    return load_table(source, bundle)


def load_table(source: Source, bundle: Bundle) -> Loaded:
    """Pass 1: read the source once into a collapsed coded table.

    Raises DataError for a missing column, a value that is no leaf or outside its domain, a missing class or
    sensitive cell, two rows with one id, or no usable row.
    """
    return _read(source, bundle, None).finish()


def load_columns(source: Source, bundle: Bundle, me: str) -> LoadedColumns:
    """Pass 1 of a vertical job: read our columns and ids.

    Ids are compared as :func:`id_bytes` says. A row without an id is dropped. In LKC jobs so is one with a missing
    cell where the job says so for a column of ours; in DP jobs every row with an id takes part, whatever its
    cells hold. Raises DataError as :func:`load_table`.
    """
    return _read(source, bundle, me).finish_columns()


def _read(source: Source, bundle: Bundle, me: str | None) -> _Reader:
    reader = _Reader(bundle, me)
    check_columns(source, bundle, me)
    for batch in source.batches(reader.names):
        reader.add(batch)
    return reader


def check_columns(source: Source, bundle: Bundle, me: str | None = None) -> None:
    """Refuse a table that lacks a column the job wants of us, or has one twice. Raises DataError."""
    names = source.column_names()
    for name in bundle.job.held_by(me):
        if names.count(name) != 1:
            what = "has no column" if name not in names else "has more than one column"
            raise DataError(
                "data-missing-column",
                f"the table {what} {name}",
                column=name,
                private=f"it has {', '.join(names) or 'no header'}",
            )


class _Reader:
    """Collects batches into per-column codes."""

    def __init__(self, bundle: Bundle, me: str | None = None) -> None:
        """``me``: in a vertical job the party whose columns are read; None reads all."""
        job, held = bundle.job, bundle.job.held_by(me)
        self._bundle = bundle
        self._matched = me is not None
        self._coders: dict[str, _Coder] = {
            name: _coder(bundle, name) for name in job.names("qid", "class", "sensitive") if name in held
        }
        self._is_dp = job.model.dp is not None
        self._outside = dict.fromkeys(self._coders, 0)
        self._ids = job.names("id")
        self.names = [*self._ids, *self._coders]
        self._known: dict[str, dict[str, int]] = {name: {} for name in self._coders}
        self._codes: dict[str, list[Codes]] = {name: [] for name in self._coders}
        self._id_columns: list[list[pa.Array]] = []
        self._n_read = 0
        self._n_kept = 0

    def add(self, batch: pa.RecordBatch) -> None:
        coded = {
            name: _code_batch(batch.column(name), coder, name, self._n_read)
            for name, coder in self._coders.items()
        }
        if self._is_dp:
            for name, coder in self._coders.items():
                self._outside[name] += _n_outside(batch.column(name), coder)
        dropped = np.zeros(batch.num_rows, dtype=bool)
        for codes in coded.values():
            dropped |= codes == _DROPPED
        ids = [batch.column(name).cast(pa.string()) for name in self._ids]
        if self._matched:
            ids = [normalized_ids(column) for column in ids]
            for column in ids:
                dropped |= np.isin(np.asarray(column.to_numpy(zero_copy_only=False)), ["", MISSING])
        self.kept = keep = np.flatnonzero(~dropped)
        for name, codes in coded.items():
            self._codes[name].append(codes if len(keep) == len(codes) else codes[keep])
        if self._ids:
            self._id_columns.append([column.take(pa.array(keep)) for column in ids])
        self._n_read += batch.num_rows
        self._n_kept += len(keep)
        if self._n_kept > MAX_RECORDS:
            raise DataError("too-many-rows", f"the table has more than {MAX_RECORDS} rows")

    def finish(self) -> Loaded:
        self._check_rows()
        schema = self._bundle.schema({name: self._domain(name) for name in self._coders})
        table = coded_table(
            schema,
            [self._all_codes(column.name) for column in schema.qid],
            self._axis(schema.class_name, schema.classes),
            [self._axis(column.name, column.domain) for column in schema.sensitive],
            self._sets(schema),
        )
        n_dropped = self._n_read - self._n_kept
        return Loaded(table.collapsed(), self._n_read, n_dropped, self._counted_outside())

    def _sets(self, schema: Schema) -> dict[int, LeafSets]:
        coders = ((i, self._coders[column.name]) for i, column in enumerate(schema.qid))
        return {i: coder.leaf_sets() for i, coder in coders if isinstance(coder, _Sets)}

    def _counted_outside(self) -> dict[str, int]:
        return {name: n for name, n in self._outside.items() if n}

    def finish_columns(self) -> LoadedColumns:
        self._check_rows()
        schema = self._bundle.schema()
        qid = tuple(self._own(column.name, column.n_leaves) for column in schema.qid)
        sensitive = tuple(self._own(column.name, len(column.domain)) for column in schema.sensitive)
        classes = self._own(schema.class_name, schema.n_classes)
        holding = Holding(id_bytes(self._all_ids()), qid, classes, sensitive)
        n_dropped = self._n_read - self._n_kept
        return LoadedColumns(holding, self._n_read, n_dropped, self._counted_outside())

    def _all_codes(self, name: str) -> Codes:
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._codes.pop(name)])

    def _own(self, name: str | None, size: int) -> NDArray[np.integer] | None:
        """The codes of a column of ours in the narrowest type; None for another party's."""
        if name not in self._codes:
            return None
        return self._all_codes(name).astype(np.min_scalar_type(max(size - 1, 1)))

    def _domain(self, name: str) -> tuple[str, ...]:
        """The domain a single-holder job left to its data, in sorted order."""
        coder = self._coders[name]
        return tuple(sorted(coder.index)) if isinstance(coder, _Found) else ()

    def _axis(self, name: str | None, domain: tuple[str, ...]) -> Codes:
        if name is None:
            return np.zeros(self._n_kept, dtype=np.int64)
        codes, coder = self._all_codes(name), self._coders[name]
        if not isinstance(coder, _Found):
            return codes
        place = {value: i for i, value in enumerate(domain)}
        return np.array([place[value] for value in coder.index], dtype=np.int64)[codes]

    def _check_rows(self) -> None:
        """In DP jobs that there are rows, and different ids, is told only where ids are compared."""
        if self._is_dp and not self._matched:
            return
        if self._n_kept == 0:
            raise DataError(
                "data-empty", "the table has no usable row", private=f"{self._n_read} rows were read"
            )
        self._check_ids()

    def _all_ids(self) -> list[pa.ChunkedArray]:
        return [pa.chunked_array([batch[i] for batch in self._id_columns]) for i in range(len(self._ids))]

    def _check_ids(self) -> None:
        if not self._ids:
            return
        ids = pa.table(self._all_ids(), names=list(self._ids))
        distinct = ids.group_by(list(self._ids)).aggregate([]).num_rows
        if distinct != ids.num_rows:
            raise DataError(
                "data-duplicate-id",
                f"two rows have the same value of {', '.join(self._ids)}",
                column=self._ids[0],
                private=f"{ids.num_rows} rows, {distinct} different ids",
            )


def normalized_ids(column: pa.Array) -> pa.Array:
    """Ids as they are compared: Unicode NFKC, then without blanks around them; upper and lower case differ."""
    return pc.utf8_trim_whitespace(pc.utf8_normalize(column, form="NFKC"))


def id_bytes(columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
    """One byte string for each record: every normalized id in UTF-8 behind its length, so that ("a", "bc") is
    not ("ab", "c").
    """
    encoded = [pc.cast(column, pa.binary()).to_pylist() for column in columns]
    return [
        b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        for parts in zip(*encoded, strict=True)
    ]


def _code_batch(column: pa.DictionaryArray, coder: _Coder, name: str, row: int) -> Codes:
    """Code one column of one batch; each distinct text is interpreted once."""
    values = column.dictionary.to_pylist()
    by_value = coder.codes(values)
    places = column.indices.to_numpy()
    codes: Codes = by_value[places]
    bad = np.flatnonzero(codes == _BAD)
    if bad.size:
        raise _bad_value(coder, name, values[places[bad[0]]], row + int(bad[0]) + 1)
    return codes


def _n_outside(column: pa.DictionaryArray, coder: _Coder) -> int:
    """How many rows of a batch have a value outside the domain."""
    values = column.dictionary.to_pylist()
    return int(coder.outside(values)[column.indices.to_numpy()].sum()) if values else 0


def _bad_value(coder: _Coder, name: str, value: str, row: int) -> DataError:
    private = f"row {row}: {value!r}"
    if isinstance(coder, _Numeric):
        message = f"column {name} has a value outside its domain or no number"
        return DataError("data-outside-domain", message, column=name, private=private)
    if value in {"", MISSING}:
        message = f"column {name} has a missing cell"
        return DataError("data-missing-value", message, column=name, private=private)
    if isinstance(coder, _Categorical) and value.strip() in coder.index:
        private += "; it would fit without the blanks around it"
    message = f"column {name} has a value that its taxonomy or domain does not list"
    return DataError("data-unknown-value", message, column=name, private=private)


def _coder(bundle: Bundle, name: str, found: Sequence[str] | None = None) -> _Coder:
    """What reads a column; ``found`` is the domain that pass 1 took from the data, once it is known."""
    column = bundle.job.columns[name]
    if bundle.job.model.dp is not None:
        return _lenient_coder(bundle, name)
    if column.role == "qid":
        values = bundle.taxonomies[name]
        if isinstance(values, Grid):
            return _Numeric(values)
        return _taxonomy_coder(values, drop=column.missing == "drop")
    missing = _DROPPED if column.missing == "drop" else _BAD
    domain = found if column.domain is None else column.domain
    if domain is None:
        return _Found(missing)
    index = {value: i for i, value in enumerate(domain)}
    listed = [index[mark] for mark in (MISSING, "") if mark in index]
    return _Categorical(index, listed[0] if listed else missing)


def _lenient_coder(bundle: Bundle, name: str) -> _Coder:
    """What reads a column of a DP job: no value is an error, which would tell others about it.

    Nor does a value decide in vertical jobs whether a row takes part, which would tell the peer that matches its
    id: what is no number there is in the lowest cell, what is no class has the first of the domain.
    """
    column = bundle.job.columns[name]
    nowhere = 0 if bundle.job.partition == "vertical" else _DROPPED
    if column.role == "class":
        assert column.domain is not None
        return _lenient_class(column.domain, column.other, nowhere)
    values = bundle.taxonomies[name]
    if isinstance(values, Grid):
        return _Numeric(values, clamp=True, missing=nowhere)
    items = _taxonomy_coder(values, drop=column.missing == "drop")
    items.other = items.missing if column.other is None else items.index[column.other]
    rule = bundle.schema().qid[bundle.job.generalized.index(name)].sets
    return items if rule is None else _Sets(items, rule)


def _lenient_class(domain: Sequence[str], named: str | None, nowhere: int) -> _Categorical:
    """What reads the class of a DP job. ``named``: the job's `other`; ``nowhere``: the code of what fits nothing."""
    index = {value: i for i, value in enumerate(domain)}
    other = index.get(named or "", nowhere)
    moved = nowhere != _DROPPED and MISSING not in index
    return _Categorical(index, index.get(MISSING, other if moved else _DROPPED), other, moved)


def _taxonomy_coder(taxonomy: Taxonomy, *, drop: bool) -> _Categorical:
    index = taxonomy.leaf_index()
    return _Categorical(index, _DROPPED if drop else index[MISSING])


@dataclass(frozen=True)
class _Published:
    """How a column is published in pass 2: its codes, and the label of each code."""

    name: str
    coder: _Coder
    places: Codes
    labels: pa.Array

    def relabelled(
        self, column: pa.DictionaryArray, row: int
    ) -> tuple[pa.DictionaryArray, NDArray[np.bool_]]:
        """The labels of a batch, and which of its rows are dropped."""
        codes = _code_batch(column, self.coder, self.name, row)
        places = self.places[np.maximum(codes, 0)]
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), self.labels), codes == _DROPPED


def _published(bundle: Bundle, schema: Schema, cut: Cut) -> dict[str, _Published]:
    """Every published column but the plain ones."""
    columns = {}
    for i, qid in enumerate(schema.qid):
        labels = pa.array(cut_labels(qid, cut, i), pa.string())
        columns[qid.name] = _Published(qid.name, _coder(bundle, qid.name), cut.positions(i), labels)
    domains = {c.name: c.domain for c in schema.sensitive}
    if schema.class_name is not None:
        domains[schema.class_name] = schema.classes
    for name, domain in domains.items():
        places = np.arange(max(len(domain), 1), dtype=np.int64)
        columns[name] = _Published(name, _coder(bundle, name, domain), places, pa.array(domain, pa.string()))
    return columns


def generalized_rows(source: Source, bundle: Bundle, schema: Schema, cut: Cut) -> Iterator[pa.RecordBatch]:
    """Pass 2: stream the source again with quasi-identifiers replaced by the labels of the cut.

    Yields record batches of the published columns in job order, dictionary-encoded text throughout. ``schema``
    is that of pass 1. Raises DataError as pass 1, and for a value that pass 1 did not find.
    """
    published = _published(bundle, schema, cut)
    names, row = bundle.job.published, 0
    for batch in source.batches(names):
        columns, dropped = {}, np.zeros(batch.num_rows, dtype=bool)
        for name in names:
            columns[name] = batch.column(name)
            if name in published:
                columns[name], missing = published[name].relabelled(batch.column(name), row)
                dropped |= missing
        kept = pa.array(np.flatnonzero(~dropped))
        row += batch.num_rows
        yield pa.RecordBatch.from_arrays([columns[name].take(kept) for name in names], list(names))


def cell_columns(source: Source, bundle: Bundle, me: str, holding: Holding, rows: Codes) -> pa.RecordBatch:
    """What a party of a vertical job publishes besides quasi-identifiers, for its records ``rows`` in that order.

    Sensitive columns from pass 1; plain ones from a second pass, where there are any. Job order, dictionary-encoded
    text. Raises DataError if the source is no longer what pass 1 read.
    """
    job, schema = bundle.job, bundle.schema()
    names = [name for name in job.contributed_by(me) if job.columns[name].role != "qid"]
    columns = {}
    for described, codes in zip(schema.sensitive, holding.sensitive, strict=True):
        if codes is not None:
            labels = pa.array(described.domain, pa.string())
            places = pa.array(codes[rows].astype(np.int32))
            columns[described.name] = pa.DictionaryArray.from_arrays(places, labels)
    plain = [name for name in names if job.columns[name].role == "plain"]
    if plain:
        columns |= _plain_columns(source, bundle, me, plain, holding, rows)
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names)


def _plain_columns(
    source: Source, bundle: Bundle, me: str, names: Sequence[str], holding: Holding, rows: Codes
) -> dict[str, pa.DictionaryArray]:
    """Read plain columns beside all that pass 1 read, which must be the same again; take ``rows`` of them."""
    reader, batches = _Reader(bundle, me), []
    for batch in source.batches([*reader.names, *names]):
        reader.add(batch)
        batches.append(batch.select(list(names)).take(pa.array(reader.kept)))
    table = pa.Table.from_batches(batches)
    if not reader.finish_columns().holding.same_as(holding):
        raise DataError("data-unreadable", "the table changed during the job", private=f"{source.path}")
    table = table.unify_dictionaries().combine_chunks().take(pa.array(rows)).combine_chunks()
    return {name: table.column(name).chunk(0) for name in names}
