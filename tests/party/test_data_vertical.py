"""Pass 1 and 2 of a party in a vertical job: ids as they are compared, its own columns, plain ones by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.errors import DataError
from party import data
from party.bundle import Bundle
from party.data import (
    Loaded,
    LoadedColumns,
    Source,
    cell_columns,
    id_bytes,
    load,
    load_columns,
    normalized_ids,
)
from tests.support import jobs
from tests.support.samples import columns, joint_job, vertical_job

ROWS = [
    ["7", "Janitor", "Y"],
    [" 8", "Lawyer", "N"],
    ["9\u00a0", "", "Y"],
]


def written(folder: Path, header: str, rows: list[list[str]]) -> Source:
    path = folder / "t.csv"
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return Source("csv", path)


def bundle(**changes: Any) -> Bundle:
    return jobs.bundle_of(vertical_job(**changes))


def loaded(folder: Path, rows: list[list[str]] = ROWS, me: str = "loan", **changes: Any) -> LoadedColumns:
    return load_columns(written(folder, "patient,job,transfused", rows), bundle(**changes), me)


def test_own_columns_and_the_class(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert (found.n_read, found.n_dropped) == (3, 0)
    holding = found.holding
    job, age = holding.qid
    assert age is None
    assert job is not None
    assert job.tolist() == [0, 2, 3]  # an empty cell is the leaf ?
    assert holding.classes is not None
    assert holding.classes.tolist() == [0, 1, 0]
    assert holding.sensitive == (None,)


def test_ids_are_normalized() -> None:
    """NFKC, then trimmed; case kept; each behind its length."""

    def normalized(*ids: str) -> list[bytes]:
        return id_bytes([pa.chunked_array([normalized_ids(pa.array([text]))]) for text in ids])

    assert normalized("\uff21\uff11 ") == normalized("A1") == [b"\0\0\0\x02A1"]
    assert normalized("\u00a0e\u0301\t") == normalized("\u00e9")
    assert normalized("ab") != normalized("AB")
    assert normalized("a b") != normalized("ab")


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), min_size=2, max_size=2, unique=True))
def test_several_ids_are_joined_unambiguously(pairs: list[tuple[str, str]]) -> None:
    columns_of_ids = [
        pa.chunked_array([pa.array(list(column), pa.string())]) for column in zip(*pairs, strict=True)
    ]
    one, other = id_bytes(columns_of_ids)
    assert one != other


def test_two_id_columns(tmp_path: Path) -> None:
    two = columns(country={"role": "id"})
    rows = [["1", "DE", "Janitor", "Y"], ["1", "FR", "Janitor", "Y"]]
    source = written(tmp_path, "patient,country,job,transfused", rows)
    holding = load_columns(source, bundle(columns=two), "loan").holding
    assert holding.ids == [b"\0\0\0\x011\0\0\0\x02DE", b"\0\0\0\x011\0\0\0\x02FR"]


def test_ids_that_become_equal_are_duplicates(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        loaded(tmp_path, [["A1", "Janitor", "Y"], ["\uff21\uff11", "Lawyer", "Y"]])
    assert caught.value.error_id == "data-duplicate-id"
    assert "A1" not in str(caught.value)


@pytest.mark.parametrize("missing", ["", "  ", "?", "\u00a0"])
def test_a_row_without_an_id_is_dropped(tmp_path: Path, missing: str) -> None:
    found = loaded(tmp_path, [["1", "Janitor", "Y"], [missing, "Lawyer", "N"], [missing, "Lawyer", "N"]])
    assert (found.n_read, found.n_dropped, len(found.holding.ids)) == (3, 2, 1)


def test_rows_are_dropped_for_own_columns_only(tmp_path: Path) -> None:
    source = written(
        tmp_path, "patient,age,surgery,transfused", [["1", "", "Rare", "Y"], ["2", "17", "Knee", "N"]]
    )
    found = load_columns(source, bundle(), "bank")
    assert (found.n_dropped, found.holding.ids) == (1, [b"\0\0\0\x012"])
    codes = found.holding.sensitive[0]
    assert codes is not None
    assert codes.tolist() == [1]


def test_columns_of_other_parties_are_not_wanted(tmp_path: Path) -> None:
    assert loaded(tmp_path).holding.ids
    with pytest.raises(DataError) as caught:
        load_columns(written(tmp_path, "patient,job", [["1", "Janitor"]]), bundle(), "loan")
    assert (caught.value.error_id, caught.value.column) == ("data-missing-column", "transfused")
    shared = columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"})
    source = written(tmp_path, "patient,job", [["1", "Janitor"]])
    assert load_columns(source, bundle(columns=shared), "loan").holding.classes is None


def test_every_job_has_its_pass_1(tmp_path: Path) -> None:
    source = written(tmp_path, "patient,job,age,transfused,surgery", [["1", "Janitor", "5", "Y", "Rare"]])
    assert isinstance(load(source, bundle(), "loan"), LoadedColumns)
    assert isinstance(load(source, jobs.bundle_of(joint_job()), "hospital-a"), Loaded)


PLAIN = {
    "columns": columns(ward={"role": "plain"}, note={"role": "plain"}),
    "parties": {
        "loan": {"address": "127.0.0.1:7401", "columns": ["job", "note"]},
        "bank": {"address": "127.0.0.1:7402", "columns": ["age", "ward", "surgery"]},
    },
}


def test_what_is_published_by_cell(tmp_path: Path) -> None:
    """Sensitive and plain columns of the rows asked for, in their order; dropped rows do not shift it."""
    rows = [
        ["1", "12", "Rare", "Y", "north"],
        ["?", "13", "Heart", "Y", "lost"],
        ["2", "", "Heart", "Y", "lost too"],
        ["3", "14", "Knee", "N", ""],
        ["4", "15", "Heart", "N", "south"],
    ]
    source = written(tmp_path, "patient,age,surgery,transfused,ward", rows)
    job = bundle(**PLAIN)
    holding = load_columns(source, job, "bank").holding
    assert len(holding.ids) == 3
    batch = cell_columns(source, job, "bank", holding, np.array([2, 0, 1, 2]))
    assert batch.schema.names == ["surgery", "ward"]
    assert batch.column("surgery").to_pylist() == ["Heart", "Rare", "Knee", "Heart"]
    assert batch.column("ward").to_pylist() == ["south", "north", "", "south"]


def test_only_plain_columns(tmp_path: Path) -> None:
    source = written(
        tmp_path, "patient,job,transfused,note", [["1", "Lawyer", "Y", "a"], ["2", "Lawyer", "N", "b"]]
    )
    job = bundle(**PLAIN)
    holding = load_columns(source, job, "loan").holding
    assert cell_columns(source, job, "loan", holding, np.array([1, 0])).to_pydict() == {"note": ["b", "a"]}


def test_plain_columns_of_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_BLOCK_BYTES", 64)
    rows = [[str(i), "Lawyer", "YN"[i % 2], f"note {i % 7}"] for i in range(40)]
    source = written(tmp_path, "patient,job,transfused,note", rows)
    assert len(list(source.batches(["note"]))) > 5
    job = bundle(**PLAIN)
    holding = load_columns(source, job, "loan").holding
    wanted = np.arange(39, -1, -3)
    batch = cell_columns(source, job, "loan", holding, wanted)
    assert batch.column("note").to_pylist() == [f"note {i % 7}" for i in wanted]


def test_a_table_that_changed_is_refused(tmp_path: Path) -> None:
    rows = [["1", "Lawyer", "Y", "a"], ["2", "Mover", "N", "b"], ["3", "Lawyer", "N", "c"]]
    header = "patient,job,transfused,note"
    job = bundle(**PLAIN)
    holding = load_columns(written(tmp_path, header, rows), job, "loan").holding
    others = {
        "shorter": rows[:1],
        "in another order": [rows[0], rows[2], rows[1]],
        "other people": [*rows[:2], ["4", *rows[2][1:]]],
        "another value": [*rows[:2], ["3", "Mover", "N", "c"]],
        "another class": [*rows[:2], ["3", "Lawyer", "Y", "c"]],
    }
    for other in others.values():
        with pytest.raises(DataError, match="the table changed during the job"):
            cell_columns(written(tmp_path, header, other), job, "loan", holding, np.array([0, 1]))
    again = cell_columns(written(tmp_path, header, rows), job, "loan", holding, np.array([2, 0]))
    assert again.column("note").to_pylist() == ["c", "a"]
