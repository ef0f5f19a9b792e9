"""`release: anatomy`: the groups and their sensitive values, in two files ([MSA] Definition 3).

groups.csv:     for every group and class: quasi-identifiers and number of records. With `exact`: a row for every
                record, in random order, with group and raw quasi-identifiers; numbers in canonical form.
sensitive.csv:  for every group and block: each occurring combination of values, and its number of records;
                columns of other blocks are empty.

Groups are numbered from 1 in random order. The order of numbers and values for everything else reveals nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from anonymize.grid import Grid
from anonymize.lkc.linked_columns import groups_of
from anonymize.lkc.metrics import Risk
from anonymize.release import LabelledColumn, Release, Rng, narrowed, random_order, ranks
from anonymize.table import Ints, QidColumn, pack
from anonymize.taxonomy import Taxonomy
from jobs.data.coders import canonical
from jobs.data.kept import coded_with_numbers, keeping
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.errors import PartyError
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.lkc.entries import Entry, entries_of, greatest_k, is_one_of_all
from jobs.lkc.forms.form import GROUPS, SENSITIVE, Form, Raw, Tables, by_quasi_identifiers
from jobs.lkc.linked_columns import blocks_of, counted_apart
from jobs.reading import check_columns, check_rows, classes_of, coding_of, row_by_row
from jobs.task import Task

GROUP, BLOCK, RECORDS = "group", "block", "records"
_WHOLE = re.compile("[1-9][0-9]{0,9}")


def _described(job: Job) -> tuple[str, ...]:
    """Return the columns beside a group's number: quasi-identifiers, class and clusters."""
    return (*job.names("qid", "class"), *job.published_clusters)


def _columns(job: Job) -> Mapping[str, tuple[str, ...]]:
    return {
        GROUPS: (GROUP, *_described(job), RECORDS),
        SENSITIVE: (GROUP, BLOCK, *job.names("sensitive"), RECORDS),
    }


def _columns_of_exact(job: Job) -> Mapping[str, tuple[str, ...]]:
    return {**_columns(job), GROUPS: (GROUP, *_described(job))}


def _by_number(job: Job) -> tuple[str, ...]:
    return (GROUP,)


def _check(job: Job) -> None:
    if job.partition == "vertical":
        raise ValueError(
            "`release: anatomy` is not for vertical jobs: the table is put together from columns of the holders, "
            "not from counts; say `release: rows`"
        )
    if not job.names("sensitive"):
        raise ValueError(
            "`release: anatomy` writes counts of sensitive values, and the job has no such column"
        )
    for name in job.names("plain"):
        raise ValueError(
            f"columns.{name}: `release: anatomy` publishes counts of groups, so plain columns have no place; leave "
            "the column out"
        )
    for name in job.published:
        if name in (GROUP, BLOCK, RECORDS):
            raise ValueError(
                f"columns.{name}: `release: anatomy` has a column {name}; rename the job's column"
            )
    beside = _described(job)[len(job.names("qid")) :]
    if job.partition == "horizontal" and beside and not counted_apart(job):
        raise ValueError(
            f"`release: anatomy` does not link {beside[0]} with sensitive values, but parties of a joint job count "
            f"both together, so every party would learn the links; say `release: rows`, or leave {beside[0]} out"
        )


def _grouped(job: Job, rows: Release, raw: Raw, rng: Rng) -> Release:
    """Return the rows with the number of each row's group."""
    rows = rows.in_rows()
    group = groups_of(rows, job.names("qid"))
    n_groups = int(group.max(initial=-1)) + 1
    number = narrowed(tuple(map(str, range(1, n_groups + 1))), random_order(n_groups, rng)[group])
    return Release({GROUP: number, **rows.columns, **raw})


def _tables(job: Job, rows: Release, rng: Rng) -> Tables:
    return {GROUPS: _counted(rows, (GROUP, *_described(job))), SENSITIVE: _sensitive(job, rows)}


def _tables_of_exact(job: Job, rows: Release, rng: Rng) -> Tables:
    return {
        GROUPS: rows.ordered((GROUP, *_described(job))).shuffled(rng),
        SENSITIVE: _sensitive(job, rows),
    }


def _sensitive(job: Job, rows: Release) -> Release:
    names, parts = job.names("sensitive"), []
    for number, block in enumerate(blocks_of(job), 1):
        counted = _counted(rows, (GROUP, *block))
        empty = np.zeros(counted.n_rows, dtype=np.int64)
        others = {name: LabelledColumn(("",), empty) for name in (BLOCK, *names)}
        others[BLOCK] = LabelledColumn((str(number),), empty)
        parts.append(Release({**others, **counted.columns}))
    whole = _stacked(parts, (GROUP, BLOCK, *names, RECORDS))
    return whole.some(np.argsort(whole.columns[GROUP].codes, kind="stable"))


def _stacked(parts: Sequence[Release], names: Sequence[str]) -> Release:
    """Stack tables with the same columns. A column of the result has the labels of all tables."""
    columns = {}
    for name in names:
        labels = tuple(dict.fromkeys(label for part in parts for label in part.columns[name].labels))
        place = {label: i for i, label in enumerate(labels)}
        codes = [
            np.array([place[label] for label in part.columns[name].labels], dtype=np.int64)[
                part.columns[name].codes
            ]
            for part in parts
        ]
        columns[name] = narrowed(labels, np.concatenate(codes))
    return Release(columns)


def _counted(rows: Release, names: Sequence[str]) -> Release:
    """Return the different rows on some columns, groups by number and then by values, with their counts."""
    first, counts = _different(rows, names)
    times, place = np.unique(counts, return_inverse=True)
    records = narrowed(tuple(map(str, times.tolist())), place.astype(np.int64))
    return Release({**rows.ordered(names).some(first).columns, RECORDS: records})


def _different(rows: Release, names: Sequence[str]) -> tuple[Ints, Ints]:
    """Return a row of each kind on some columns, in order, and the number of each kind."""
    values = [rows.columns[n].codes if n == GROUP else ranks(rows.columns[n]) for n in names]
    keys = pack(values, [int(codes.max(initial=0)) + 1 for codes in values])
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return first, counts


# ---- the readers' side


def _rows(job: Job, tables: Tables, most: int) -> Release:
    groups = tables[GROUPS]
    number, records = _whole(groups.columns[GROUP]), _whole(groups.columns[RECORDS])
    _require(
        len(_distinct(groups, [GROUP, *_described(job)])) == groups.n_rows, "a row of groups.csv stands twice"
    )
    n_groups, qid = _number_of_groups(number), list(job.names("qid"))
    for names in (qid, [GROUP, *qid]):
        kinds = len(_distinct(groups, names))
        _require(
            kinds == n_groups, "groups and combinations of quasi-identifiers do not correspond one to one"
        )
    return _put_together(job, tables, number, records, most).ordered(job.published)


def _rows_of_exact(job: Job, tables: Tables, most: int) -> Release:
    number = _whole(tables[GROUPS].columns[GROUP])
    return _put_together(job, tables, number, np.ones(len(number), dtype=np.int64), most)


def _put_together(job: Job, tables: Tables, number: Ints, records: Ints, most: int) -> Release:
    """Join rows of groups, group by group, with the rows of every block. number, records: by row of groups.csv."""
    groups, sensitive = tables[GROUPS], tables[SENSITIVE]
    n_groups = _number_of_groups(number)
    _require(bool(records.sum() <= most), f"groups.csv has more than {most} records")
    of, block = _whole(sensitive.columns[GROUP]), _whole(sensitive.columns[BLOCK])
    times, blocks = _whole(sensitive.columns[RECORDS]), blocks_of(job)
    _require(bool((of <= n_groups).all()), "sensitive.csv has a group that is missing in groups.csv")
    _require(bool((block <= len(blocks)).all()), "sensitive.csv has a block that the job does not have")
    parts = []
    for place, names in enumerate(blocks, 1):
        part = np.flatnonzero(block == place)
        own = _present(sensitive.some(part))
        _require(len(_distinct(own, [GROUP, *names])) == len(part), "a row of sensitive.csv stands twice")
        for name in set(job.names("sensitive")) - set(names):
            empty = set(own.columns[name].labels) <= {""}
            _require(empty, "a row of sensitive.csv has values of a second block")
        sizes = np.bincount(of[part], times[part], n_groups + 1)
        adds_up = np.array_equal(sizes, np.bincount(number, records, n_groups + 1))
        _require(adds_up, "the records of a group are not as many in sensitive.csv as in groups.csv")
        parts.append((own.ordered(names), of[part], times[part]))
    described = Release({name: column for name, column in groups.columns.items() if name != RECORDS})
    return _side_by_side([(described, number, records), *parts])


def _present(table: Release) -> Release:
    """Return the table with occurring labels only."""
    columns = {}
    for name, column in table.columns.items():
        present, codes = np.unique(column.codes, return_inverse=True)
        columns[name] = narrowed(tuple(column.labels[code] for code in present.tolist()), codes)
    return Release(columns)


def _side_by_side(parts: Sequence[tuple[Release, Ints, Ints]]) -> Release:
    """Put tables side by side, group by group. Each table gives its rows, the rows' groups, and the rows' records.

    All tables have the same number of records in each group. A row of the result is a run of records with the same
    row in every table, so the result has no more rows than the tables together.
    """
    orders = [np.argsort(number, kind="stable") for _, number, _ in parts]
    ends = [np.cumsum(records[order]) for order, (_, _, records) in zip(orders, parts, strict=True)]
    edges = np.unique(np.concatenate(ends))
    columns: dict[str, LabelledColumn] = {}
    for order, own_ends, (table, _, _) in zip(orders, ends, parts, strict=True):
        columns |= table.some(order[np.searchsorted(own_ends, edges)]).columns
    return Release(columns, np.diff(edges, prepend=0))


def _distinct(table: Release, names: Sequence[str]) -> Ints:
    return _different(Release({name: table.columns[name] for name in names}), names)[0]


def _number_of_groups(number: Ints) -> int:
    """Return the number of groups. Raises PartyError unless numbered from 1 without a gap."""
    present = np.unique(number)
    _require(np.array_equal(present, np.arange(1, len(present) + 1)), "groups.csv lacks a number of a group")
    return len(present)


def _whole(column: LabelledColumn) -> Ints:
    """Return the numbers of a column: int64, shape (n_rows,). Raises PartyError for anything else."""
    _require(
        all(map(_WHOLE.fullmatch, column.labels)),
        "a group, block or count is not a whole number from 1, written without leading zeros",
    )
    values = np.array([int(label) for label in column.labels] or [0], dtype=np.int64)
    return values[column.codes]


def _require(met: bool, what: str) -> None:
    if not met:
        raise PartyError("verification-failed", f"this is no anatomy: {what}")


class Exact:
    """Quasi-identifiers as in the source, numbers in canonical form. Readers tell groups by number."""

    stranger = "is not in its domain"
    agree = "with one number"

    def check(self, job: Job) -> None:
        if job.partition != "single":
            raise ValueError(
                "`quasi: exact` is for the table of a single holder: parties of a joint job would see each other's "
                "raw quasi-identifiers"
            )
        entries = entries_of(job)
        if not is_one_of_all(entries):
            raise ValueError(
                "`quasi: exact` needs a single requirement, with `L: all` and without `columns`: a reader who "
                "knows a person's quasi-identifiers knows the group"
            )
        if entries[0].colluders or job.lkc.unit == PERSON or job.lkc.withhold is not None:
            raise ValueError(
                "`quasi: exact` is for K of records, without `colluders`, `unit: person` and `withhold`"
            )
        for name, column in job.columns.items():
            if column.dates is not None and column.dates.levels is not None:
                raise ValueError(
                    f"columns.{name}.dates.levels: `quasi: exact` publishes dates as they are; write `step`"
                )
            if column.role == "qid" and column.level is not None:
                raise ValueError(
                    f"columns.{name}.level: `quasi: exact` publishes quasi-identifiers as they are; leave `level` out"
                )
        if job.clusters is not None:
            raise ValueError(
                "`quasi: exact` is not for goal clusters: clusters follow from the raw quasi-identifiers"
            )

    def generalized(self, job: Job) -> tuple[str, ...]:
        return ()

    def lost(self, loss: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return {}

    def label_test(
        self, task: Task, column: QidColumn, printed: Callable[[QidColumn], Callable[[str], bool]]
    ) -> Callable[[str], bool]:
        """Return a test of texts: a kept cell, in the spelling of releases."""
        reading = task.model.reading.coder(task, column.name).begin()
        grid = column.values if isinstance(column.values, Grid) else None

        def is_known(label: str) -> bool:
            kept = bool(reading.codes([label])[0] >= 0)
            return kept and (grid is None or canonical([label], grid) == [label])

        return is_known

    def known(self, entry: Entry, groups: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        return groups, len(groups)

    def who(self, entry: Entry) -> str:
        return self.agree

    def among(self, required: int, alike: int) -> int:
        """Return the records alike: a reader finds a record by the values, whatever its group."""
        return alike

    def promised(self, entry: Entry) -> list[str]:
        """Return promises about the group: the record itself is public."""
        return [f"finds a group of fewer than {entry.said.K} records"] if entry.said.K > 1 else []

    def notes(self, job: Job) -> list[str]:
        return [
            "`quasi: exact`: the raw quasi-identifiers of every record are published, with the group. Everybody "
            "learns who is in the table. K and the requirement on sensitive columns bound inferences about a "
            "person, not identification"
        ]

    def risk(self, task: Task, risk: Risk) -> str:
        return (
            f"The release has the raw quasi-identifiers of every record ({risk.unique_share:.1%} are unique on "
            f"them): everybody learns who is in the release. K={greatest_k(entries_of(task.job))} only bounds "
            "inferences about a person from the group."
        )


def load_raw(source: Source, task: Task) -> Loaded:
    """Read a table in a single pass, with raw quasi-identifiers of each record: not collapsed. Raises DataError."""
    kept = tuple(name for name in task.job.names("qid") if isinstance(task.taxonomies[name], Grid))
    coding = coding_of(task, None, matched=False)
    check_columns(source, task)
    coded = source.collapse(keeping(coding, kept))
    check_rows(coded, coding)
    coded, numbers = coded_with_numbers(coded, coding, kept)
    schema = task.schema_with({name: column.domain for name, column in coded.columns.items()})
    table = row_by_row(coded, schema, classes_of(coded, schema, task), occurring=bool(schema.sensitive))
    raw = dict(numbers)
    for column in schema.qid:
        if isinstance(column.values, Taxonomy):
            raw[column.name] = narrowed(column.values.leaves, coded.columns[column.name].codes)
    return Loaded(table, coded.rows, raw=raw)


ANATOMY = Form(_columns, by_quasi_identifiers, _check, _grouped, _tables, _rows)
OF_EXACT = Form(
    _columns_of_exact, _by_number, _check, _grouped, _tables_of_exact, _rows_of_exact, Exact(), load_raw
)
