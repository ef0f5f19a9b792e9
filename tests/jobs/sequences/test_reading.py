"""Pass 1 of sequences: what a table comes to, and every way in which it can be wrong."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import DataError
from jobs.errors import problem_of
from jobs.sequences.reading import Tracks, load_tracks
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.examples import examples
from tests.support.network import yaml_of
from tests.support.wards import WARDS, sets_job, table, wards_columns, wards_job

CLOCK = {"from": "2026-01-01T06:00", "to": "2026-01-03T06:00", "step": "6h"}


def read(folder: Path, job: dict[str, Any], *lines: str, header: str = "tag,ward,at,dx") -> Tracks:
    return load_tracks(table(folder, *lines, header=header), jobs.task_of(job))


def paths(tracks: Tracks) -> list[tuple[str, ...]]:
    """Return the items of every record, in the order of ids: place@cell."""
    found = []
    for r in tracks.path_of.tolist():
        items = tracks.paths.path(r)
        found.append(tuple(_item(tracks, item) for item in items))
    return found


def _item(tracks: Tracks, item: int) -> str:
    cell, place = divmod(item, tracks.vocabulary.n_locations)
    return f"{tracks.places[place]}@{tracks.times[cell]}" if tracks.times else tracks.places[place]


def sensitive(tracks: Tracks) -> list[str]:
    (column,) = tracks.schema.sensitive
    (_, axis) = tracks.schema.axes(tracks.paths.cells[tracks.path_of].astype("i8"))
    return [column.domain[code] for code in axis.tolist()]


def refused(folder: Path, job: dict[str, Any], *lines: str, header: str = "tag,ward,at,dx") -> DataError:
    with pytest.raises(DataError) as caught:
        read(folder, job, *lines, header=header)
    return caught.value


def test_rows_of_one_id_are_one_record_wherever_they_stand(tmp_path: Path) -> None:
    tracks = read(tmp_path, wards_job(), "7,XR,3,flu", "1,ER,2.5,HIV", " 7,ER,3,flu", "7,XR,3.9,flu")
    assert paths(tracks) == [("ER@2",), ("ER@3", "XR@3")]
    assert sensitive(tracks) == ["HIV", "flu"]
    assert (tracks.rows.read, tracks.rows.used, tracks.rows.records) == (4, 4, 2)


def test_rows_without_place_or_time_are_left_out_and_records_without_rows(tmp_path: Path) -> None:
    tracks = read(tmp_path, wards_job(), "1,,2,flu", "1,ER,2,flu", "2,ER,?,flu", "2,,1,flu")
    assert paths(tracks) == [("ER@2",)]
    assert tracks.rows.fields() == {
        "read": 4,
        "dropped": {"ward": {"missing": 2}, "at": {"missing": 1}},
        "used": 1,
        "records": 1,
        "records_dropped": 1,
    }
    assert tracks.rows.words()[-1] == "left out: 1 record has no row left"


@pytest.mark.parametrize("command", ["check", "run"])
def test_marks_of_missing_cells_are_told(command: str, tmp_path: Path) -> None:
    table(tmp_path, *[f"n{i},{'XR' if i % 4 == 0 else 'ER'},{i % 3},flu" for i in range(12)])
    job = wards_job(data={"path": "table.csv", "missing": ["XR", "2", "-"]})
    (tmp_path / "job.yaml").write_text(yaml_of(job))
    more = ["--out", tmp_path / "out"] if command == "run" else []
    ran = invoke("coordinator", command, tmp_path / "job.yaml", *more)
    assert ran.code == 0, ran.err
    told = ran.out + ran.err
    assert "missing cells of ward: 'XR' in 3 rows" in told
    assert "missing cells of at: '2' in 4 rows" in told
    assert "warning: the job lists 'XR' as a value of ward" in told
    assert "warning: the job lists '2' as a value of at" in told


def test_what_became_of_rows_does_not_print(tmp_path: Path) -> None:
    tracks = read(tmp_path, wards_job(), "1,ER,2,flu", "2,,1,flu")
    assert "1" not in repr(tracks.rows)
    assert "ER" not in repr(tracks)


@pytest.mark.parametrize(
    ("lines", "error_id", "words"),
    [
        (["1,OR,2,flu"], "data-unknown-value", "OR"),
        (["1,ER,24,flu"], "data-outside-domain", "line 2: '24'"),
        (["1,ER,noon,flu"], "data-outside-domain", "noon"),
        (["1,ER,nan,flu"], "data-outside-domain", "nan"),
        (["1,ER,1e300,flu"], "data-outside-domain", "1e300"),
        (["1,ER,2,flu", ",ER,2,flu"], "data-missing-id", "line 3"),
        (["1,ER,2,"], "data-missing-value", "line 2"),
        (["1,ER,2,cold"], "data-unknown-value", "cold"),
        (["2,ER,1,flu", "1,ER,2,flu", "1,ER,3,HIV"], "data-record-varies", "the id on line"),
        (
            ["2,ER,1,flu", "1,,2,flu", *(f"1,ER,{i % 24}.{i},flu" for i in range(99))],
            "path-too-long",
            "on line 4",
        ),
        ([f"1,ER,{i % 24}.{i},flu" for i in range(10_000)], "path-too-long", "the longest has 24"),
        (["1,,2,flu"], "data-empty", "1 record has no row left"),
    ],
)
def test_one_clear_error_each(tmp_path: Path, lines: list[str], error_id: str, words: str) -> None:
    error = refused(tmp_path, wards_job({"max_items": "20"}), *lines)
    assert error.error_id == error_id
    assert words in error.private
    assert words not in str(error)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (",ER,2026-01-01T06:00,flu", "give every row the id of its person"),
        ("1,ER,2026-01-03T06:00,flu", "or widen `from` and `to`; if"),
    ],
)
def test_what_to_do_is_said_to_all_who_hear_of_it(tmp_path: Path, line: str, advice: str) -> None:
    job = wards_job(columns=wards_columns(at={"role": "time", "clock": CLOCK}))
    problem = problem_of(refused(tmp_path, job, "1,ER,2026-01-01T07:00,flu", line))
    assert advice in problem.advice(to_owner=False)
    assert advice in problem.advice(to_owner=True)


def test_ids_of_several_columns_name_a_record_together(tmp_path: Path) -> None:
    job = wards_job(columns={"site": {"role": "id"}, **wards_columns()})
    header = "site,tag,ward,at,dx"
    lines = ["a,bc,ER,1,flu", "ab,c,ER,2,flu", "a,bc,XR,3,flu"]
    assert paths(read(tmp_path, job, *lines, header=header)) == [("ER@1", "XR@3"), ("ER@2",)]


def test_a_missing_column(tmp_path: Path) -> None:
    error = refused(tmp_path, wards_job(), "1,ER,flu", header="tag,ward,dx")
    assert (error.error_id, error.column) == ("data-missing-column", "at")


def test_several_places_in_one_cell_or_the_first(tmp_path: Path) -> None:
    lines = ["1,XR,3.2,flu", "1,ICU,3.1,flu", "1,ER,3.5,flu", "2,XR,4,flu", "2,ICU,4,flu"]
    assert paths(read(tmp_path, wards_job(), *lines)) == [("ER@3", "ICU@3", "XR@3"), ("ICU@4", "XR@4")]
    first = read(tmp_path, wards_job({"places": "first"}), *lines)
    assert paths(first) == [("ICU@3",), ("ICU@4",)]


def test_arrivals_alone(tmp_path: Path) -> None:
    """A dropped reading still is the cell before of the next one; a record that was elsewhere in between
    arrives anew.
    """
    lines = [
        "1,ER,1,flu",
        "1,ER,2,flu",
        "1,ER,5,flu",
        "1,XR,5,flu",
        "1,ER,6,flu",
        "1,ICU,7,flu",
        "1,ER,8,flu",
    ]
    lines.append("2,ER,9,flu")
    kept = read(tmp_path, wards_job({"stays": "arrivals"}), *lines)
    assert paths(kept) == [("ER@1", "XR@5", "ICU@7", "ER@8"), ("ER@9",)]


def test_relative_times_count_from_the_first_reading_that_counts(tmp_path: Path) -> None:
    at = {"role": "time", "numeric": {"min": "0", "max": "3", "step": "0.1"}, "relative": "true"}
    job = wards_job(columns=wards_columns(at=at))
    tracks = read(
        tmp_path, job, "1,ER,100.3,flu", "1,XR,100.4,flu", "1,,99,flu", "2,ER,-7,flu", "2,XR,-5,flu"
    )
    assert paths(tracks) == [("ER@0", "XR@0.1"), ("ER@0", "XR@2")]
    error = refused(tmp_path, job, "1,ER,100,flu", "1,XR,103,flu")
    assert error.error_id == "data-outside-domain"


@pytest.mark.parametrize(
    ("clock", "relative", "times", "cells"),
    [
        (
            CLOCK,
            None,
            ["2026-01-01T06:00", "2026-01-02 11:59:59.5"],
            ["2026-01-01T06:00", "2026-01-02T06:00"],
        ),
        ({**CLOCK, "fold": "1d"}, None, ["2026-01-01T06:00", "2026-01-03T05:00"], ["06:00", "00:00"]),
        ({**CLOCK, "fold": "12h"}, None, ["2026-01-01T07:00", "2026-01-02T17:00"], ["0d00:00", "0d06:00"]),
        (
            {"to": "36h", "step": "90m"},
            "true",
            ["1969-12-31T23:00", "1970-01-02T10:59"],
            ["0d00:00", "1d10:30"],
        ),
        (
            {"from": "2026-01-01", "to": "2026-01-01T00:01", "step": "20s"},
            None,
            ["2026-01-01T00:00:39", "2026-01-01T00:00:40"],
            ["2026-01-01T00:00:20", "2026-01-01T00:00:40"],
        ),
    ],
)
def test_clocks(
    tmp_path: Path, clock: dict[str, str], relative: str | None, times: list[str], cells: list[str]
) -> None:
    at = {"role": "time", "clock": clock} | ({} if relative is None else {"relative": relative})
    job = wards_job(columns=wards_columns(at=at))
    tracks = read(tmp_path, job, f"1,ER,{times[0]},flu", f"1,XR,{times[1]},flu")
    assert set(paths(tracks)[0]) == {f"ER@{cells[0]}", f"XR@{cells[1]}"}


@pytest.mark.parametrize(
    "time", ["2026-01-01T05:59:59", "2026-01-03T06:00", "2026-01-01T07:00Z", "01.01.2026", "7", "2026-02-30"]
)
def test_local_times_outside_and_of_other_forms(tmp_path: Path, time: str) -> None:
    job = wards_job(columns=wards_columns(at={"role": "time", "clock": CLOCK}))
    error = refused(tmp_path, job, "1,ER,2026-01-01T07:00,flu", f"1,ER,{time},flu")
    assert error.error_id == "data-outside-domain"
    assert "line 3" in error.private


def test_where_a_time_outside_a_relative_clock_stands(tmp_path: Path) -> None:
    at = {"role": "time", "relative": True, "clock": {"to": "1d", "step": "6h"}}
    times = ("2026-01-01T07:00", "2026-01-02T06:00", "2026-01-02T08:00", "2026-01-03T08:00")
    error = refused(
        tmp_path, wards_job(columns=wards_columns(at=at)), *(f"1,ER,{time},flu" for time in times)
    )
    assert error.private == "2 readings of 1 record; the first is on line 4"
    assert not any(character.isdigit() for character in str(error))


def test_a_single_holder_may_leave_places_and_values_to_the_data(tmp_path: Path) -> None:
    job = wards_job(
        columns=wards_columns(ward={"role": "location"}, dx={"role": "sensitive", "values": ["HIV"]})
    )
    tracks = read(tmp_path, job, "1,b,1,flu", "1,,1,flu", "2,a,1,HIV", "3,é,2,flu", "3,e\u0301,2,flu")
    assert tracks.places == ("a", "b", "é")
    assert paths(tracks) == [("b@1",), ("a@1",), ("é@2",)]


def test_visited_places_have_no_time(tmp_path: Path) -> None:
    job = wards_job(columns=wards_columns(at=None))
    tracks = read(tmp_path, job, "1,XR,flu", "1,ER,flu", "1,XR,flu", header="tag,ward,dx")
    assert paths(tracks) == [("ER", "XR")]


def test_sets(tmp_path: Path) -> None:
    tracks = read(tmp_path, sets_job(), "d; b;b,flu", ",flu", "a,HIV", header="codes,dx")
    assert paths(tracks) == [("b", "d"), ("a",)]
    assert tracks.rows.without == 1
    error = refused(tmp_path, sets_job(), "a;x,flu", header="codes,dx")
    assert error.error_id == "data-unknown-value"
    assert "'x'" in error.private
    found = {"codes": {"role": "items"}, "dx": wards_columns()["dx"]}
    tracks = read(tmp_path, sets_job(columns=found), "z;y,flu", "x;z,flu", header="codes,dx")
    assert (tracks.places, paths(tracks)) == (("x", "y", "z"), [("y", "z"), ("x", "z")])


def test_two_sets_of_one_id(tmp_path: Path) -> None:
    job = sets_job(columns={"tag": {"role": "id"}, **sets_job()["columns"]})
    error = refused(tmp_path, job, "1,a,flu", "1,b,flu", header="tag,codes,dx")
    assert error.error_id == "data-duplicate-id"


def test_plain_columns_as_they_stand_and_the_same_in_all_rows_of_a_record(tmp_path: Path) -> None:
    job = wards_job(columns=wards_columns(note={"role": "plain"}))
    header = "tag,ward,at,dx,note"
    tracks = read(tmp_path, job, "1,ER,1,flu,", "2,ER,1,flu,?", "1,XR,2,flu,", header=header)
    note = tracks.plain["note"]
    assert [note.labels[code] for code in note.codes.tolist()] == ["", "?"]
    error = refused(tmp_path, job, "1,ER,1,flu,x", "1,XR,2,flu,y", header=header)
    assert (error.error_id, error.column) == ("data-record-varies", "note")


READINGS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 30)), min_size=1, max_size=12
)


@given(READINGS, st.sampled_from(["several", "first"]), st.booleans())
@settings(max_examples=examples(60))
def test_paths_are_as_defined(
    tmp_path_factory: pytest.TempPathFactory,
    readings: list[tuple[int, int, int]],
    places: str,
    relative: bool,
) -> None:
    """Of any readings, by dictionaries: the cells of ten units, from the first reading of each or from 0."""
    folder = tmp_path_factory.mktemp("readings")
    at: dict[str, Any] = {"role": "time", "numeric": {"min": "0", "max": "40", "step": "10"}}
    at |= {"relative": "true"} if relative else {}
    job = wards_job({"places": places}, columns=wards_columns(at=at))
    tracks = read(folder, job, *(f"{who},{WARDS[where]},{when},flu" for who, where, when in readings))
    by_id: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for who, where, when in readings:
        by_id[who].append((when, where))
    expected = []
    for _, found in sorted(by_id.items()):
        first = min(found)[0] if relative else 0
        cells: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for when, where in sorted(found):
            cells[(when - first) // 10].append((when, where))
        kept = {(cell, w) for cell, of in cells.items() for _, w in (of if places == "several" else of[:1])}
        expected.append(tuple(f"{WARDS[where]}@{10 * cell}" for cell, where in sorted(kept)))
    assert paths(tracks) == expected
    again = read(folder, job, *(f"{who},{WARDS[where]},{when},flu" for who, where, when in readings[::-1]))
    assert again.canonical() == tracks.canonical()
