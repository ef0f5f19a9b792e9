"""Reading tables of DP jobs: no value is an error, since an error would tell others about it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from anonymize.cut import top
from jobs.data.sources import Csv
from jobs.data.tables import Loaded, LoadedColumns
from jobs.file.bundle import Bundle
from jobs.loading import open_task
from tests.support import jobs
from tests.support.dp_jobs import dp_joint, dp_single
from tests.support.samples import COLUMNS, columns

HEADER = list(COLUMNS)
CODES = {
    "role": "qid",
    "set": {"taxonomy": {"Any": {"1": ["11", "12"], "2": ["21", "22"]}}, "max_items": "2"},
}


def row(**changes: str) -> dict[str, str]:
    return {"patient": "7", "job": "Janitor", "age": "5", "transfused": "Y", "surgery": "Heart", **changes}


def loaded(tmp_path: Path, bundle: Bundle, *rows: dict[str, str], names: Any = HEADER) -> Loaded:
    path = jobs.write_csv(tmp_path / "table.csv", rows, names)
    found = open_task(bundle).load(Csv(path), "hospital-a")
    assert isinstance(found, Loaded)
    return found


def values(found: Loaded, name: str) -> Counter[int]:
    """Count the records of each leaf of a column."""
    (place,) = [i for i, c in enumerate(found.table.schema.qid) if c.name == name]
    counts: Counter[int] = Counter()
    for code, weight in zip(found.table.qid[place].tolist(), found.table.weights.tolist(), strict=True):
        counts[code] += weight
    return counts


@pytest.fixture
def bundle() -> Bundle:
    return jobs.bundle_of(dp_single())


@pytest.mark.parametrize(
    ("age", "cell"), [("-5", 0), ("-1e300", 0), ("100", 9), ("1e9", 9), ("99.99", 9), ("0", 0), (" 55 ", 5)]
)
def test_numbers_outside_go_to_the_nearest_cell(tmp_path: Path, bundle: Bundle, age: str, cell: int) -> None:
    found = loaded(tmp_path, bundle, row(age=age))
    assert values(found, "age") == {cell: 1}
    assert (found.rows.n_dropped, found.rows.outside) == (0, {} if 0 <= float(age) < 100 else {"age": 1})


@pytest.mark.parametrize("age", ["", "?", "old", "nan"])
def test_what_is_no_number_is_missing(tmp_path: Path, bundle: Bundle, age: str) -> None:
    found = loaded(tmp_path, bundle, row(age=age), row())
    assert (found.table.n_records, found.rows.n_dropped) == (1, 1)


def test_values_outside_a_taxonomy_are_like_missing_ones(tmp_path: Path, bundle: Bundle) -> None:
    found = loaded(tmp_path, bundle, row(job="Astronaut"), row(job="?"), row(job=""), row(surgery="Eye"))
    jobs_ = found.table.schema.qid[0]
    missing = jobs_.values.leaf_index()["?"]  # type: ignore[union-attr]
    assert values(found, "job") == {missing: 3, 0: 1}
    assert found.rows.outside == {"job": 1, "surgery": 1}
    assert found.rows.n_dropped == 0


def test_values_outside_go_to_other_where_the_job_has_one(tmp_path: Path) -> None:
    job = {**COLUMNS["job"], "other": "Lawyer"}
    transfused = {**COLUMNS["transfused"], "domain": ["Y", "N", "else"], "other": "else"}
    bundle = jobs.bundle_of(dp_single(columns=columns(job=job, transfused=transfused)))
    found = loaded(tmp_path, bundle, row(job="Astronaut"), row(transfused="maybe"))
    lawyer = found.table.schema.qid[0].values.leaf_index()["Lawyer"]  # type: ignore[union-attr]
    assert values(found, "job") == {lawyer: 1, 0: 1}
    assert found.table.class_histogram(0).sum(axis=0).tolist() == [1, 0, 1]
    assert (found.rows.outside, found.rows.n_dropped) == ({"job": 1, "transfused": 1}, 0)


def test_rows_without_a_class_are_dropped(tmp_path: Path, bundle: Bundle) -> None:
    found = loaded(tmp_path, bundle, row(transfused="?"), row(transfused="maybe"), row())
    assert (found.table.n_records, found.rows.n_dropped, found.rows.outside) == (1, 2, {"transfused": 1})


def test_a_row_outside_in_two_columns_counts_in_both(tmp_path: Path, bundle: Bundle) -> None:
    found = loaded(tmp_path, bundle, *[row(job="x", age="-1")] * 3)
    assert found.rows.outside == {"job": 3, "age": 3}


@pytest.mark.parametrize("partition", ["single", "horizontal"])
def test_an_empty_table_and_duplicate_ids_are_no_errors(tmp_path: Path, partition: str) -> None:
    fields = dp_single() if partition == "single" else dp_joint("horizontal")
    bundle = jobs.bundle_of(fields)
    assert loaded(tmp_path, bundle).table.n_records == 0
    assert loaded(tmp_path, bundle, row(), row()).table.n_records == 2


def test_sets(tmp_path: Path) -> None:
    bundle = jobs.bundle_of(dp_single(columns=columns(codes=CODES)))
    cells = ["11;21", "21 ; 11", "11;11", "12;99", "99", "", "11;12;21"]
    rows = [row(codes=cell) for cell in cells]
    found = loaded(tmp_path, bundle, *rows, names=[*HEADER, "codes"])
    (place,) = [i for i, c in enumerate(found.table.schema.qid) if c.sets is not None]
    leaves = found.table.schema.qid[place].values.leaf_index()  # type: ignore[union-attr]
    sets = found.table.sets[place]
    texts = {leaf: name for name, leaf in leaves.items()}
    by_code = [
        tuple(texts[leaf] for leaf in sets.leaves[a:b].tolist())
        for a, b in zip(sets.starts[:-1], sets.starts[1:], strict=True)
    ]
    counted = Counter({by_code[code]: n for code, n in values(found, "codes").items()})
    assert counted == {("11", "21"): 2, ("11",): 1, ("12", "?"): 1, ("?",): 2, ("11", "12"): 1}
    assert found.rows.outside == {"codes": 2}


NO_NUMBER, NO_CLASS = ["", "?", "old", "nan"], ["", "?", "maybe"]


def held(tmp_path: Path, *rows: dict[str, str], me: str = "hospital-b", **changes: Any) -> LoadedColumns:
    """Read the columns of a party of a vertical job."""
    bundle = jobs.bundle_of(dp_joint("vertical", **changes))
    path = jobs.write_csv(tmp_path / "table.csv", rows, HEADER)
    found = open_task(bundle).load(Csv(path), me)
    assert isinstance(found, LoadedColumns)
    return found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("age", value) for value in [*NO_NUMBER, "-1", "1e9"]),
        *(("transfused", value) for value in NO_CLASS),
        *(("surgery", value) for value in ["", "?", "Eye"]),
    ],
)
def test_no_value_decides_who_is_matched(tmp_path: Path, name: str, value: str) -> None:
    """The ids that a vertical party brings to the alignment are those of all its rows, whatever the rows hold."""
    usual, changed = (held(tmp_path, row(), row(patient="8", **cell)) for cell in ({}, {name: value}))
    assert changed.holding.ids == usual.holding.ids
    assert len(changed.holding.ids) == 2
    assert (changed.rows.read, changed.rows.n_dropped) == (2, 0)


@pytest.mark.parametrize("age", NO_NUMBER)
def test_what_is_no_number_is_in_the_lowest_cell_of_a_vertical_job(tmp_path: Path, age: str) -> None:
    found = held(tmp_path, row(age="55"), row(patient="8", age=age))
    _, ages, _ = found.holding.qid
    assert ages is not None
    assert ages.tolist() == [5, 0]
    assert found.rows.outside == {"age": 1}  # for the owner only


@pytest.mark.parametrize("value", NO_CLASS)
@pytest.mark.parametrize(
    ("domain", "other", "code"),
    [
        (["Y", "N"], None, 0),
        (["Y", "N", "else"], "else", 2),
    ],
)
def test_what_is_no_class_has_a_public_one_in_a_vertical_job(
    tmp_path: Path, value: str, domain: list[str], other: str | None, code: int
) -> None:
    described = {"role": "class", "domain": domain, **({} if other is None else {"other": other})}
    found = held(
        tmp_path,
        row(transfused="N"),
        row(patient="8", transfused=value),
        columns=columns(transfused=described),
    )
    assert found.holding.classes is not None
    assert found.holding.classes.tolist() == [1, code]
    assert found.rows.outside == {"transfused": 1}


def test_a_missing_class_that_the_domain_lists_is_that(tmp_path: Path) -> None:
    described = {"role": "class", "domain": ["Y", "N", "?"]}
    found = held(
        tmp_path,
        *(row(patient=str(i), transfused=c) for i, c in enumerate("YN?x")),
        columns=columns(transfused=described),
    )
    assert found.holding.classes is not None
    assert found.holding.classes.tolist() == [0, 1, 2, 0]
    assert found.rows.outside == {"transfused": 1}


def test_a_row_without_an_id_takes_no_part(tmp_path: Path) -> None:
    found = held(tmp_path, row(), row(patient=""), row(patient="?"))
    assert (len(found.holding.ids), found.rows.n_dropped) == (1, 2)


def test_columns_of_a_vertical_job(tmp_path: Path) -> None:
    bundle = jobs.bundle_of(dp_joint("vertical"))
    rows = [row(job="Astronaut"), row(patient="8")]
    path = jobs.write_csv(tmp_path / "table.csv", rows, HEADER)
    found = open_task(bundle).load(Csv(path), "hospital-a")
    assert isinstance(found, LoadedColumns)
    assert found.rows.outside == {"job": 1}
    assert len(found.holding.ids) == 2
    assert top(open_task(bundle).schema).nodes
