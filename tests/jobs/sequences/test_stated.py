"""Figures that do not follow from the table: true ones are never disputed, each that cannot be is named."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.single import run_single
from jobs.errors import PartyError
from jobs.release.csv import REPORT, TABLE
from jobs.sequences.checked import verify_table
from jobs.task import Task
from tests.support import jobs
from tests.support.bytes import OTHER_BYTES
from tests.support.wards import movements, sets_job, table, wards_columns, wards_job

LINES = [line for record in movements(60) for line in record]
"""Readings of 60 patients, of whom some lose some."""
FIRST = {"places": "first"}


def made(folder: Path, job: dict[str, Any], lines: list[str], header: str = "tag,ward,at,dx") -> Task:
    folder.mkdir()
    task = jobs.task_of(job)
    run_single(task, table(folder, *lines, header=header), folder / "out")
    return task


def set_rows(n: int) -> list[str]:
    coins = random.Random(3)  # noqa: S311  the same each time, and no secret
    return [
        f"{';'.join(coins.sample('abcd', coins.randint(0, 3)))},{coins.choice(['HIV', 'flu'])}"
        for _ in range(n)
    ]


@pytest.mark.some(3)
@pytest.mark.parametrize("suppress", ["local", "global"])
@pytest.mark.parametrize("exclusion", ["report", "repair"])
@pytest.mark.parametrize("known", ["1", "3"])
def test_true_reports_are_not_disputed(tmp_path: Path, suppress: str, exclusion: str, known: str) -> None:
    asked = {"suppress": suppress, "exclusion": exclusion, "L": known, **FIRST}
    for i, sequences in enumerate([asked, asked | {"K": "4", "C": "1/3"}, asked | {"stays": "arrivals"}]):
        for n in (7, 60):
            lines = [line for record in movements(n, seed=i) for line in record]
            folder = tmp_path / f"{i}-{n}"
            healthy = [f"f{j},ICU,{j % 3},flu" for j in range(20)]  # so that all together meet C
            task = made(folder, wards_job(sequences), [*lines, *healthy, "x,,1,flu"])
            assert verify_table(task, folder / "out").fields["verified"]


def test_true_reports_of_sets_and_of_places_that_the_data_has(tmp_path: Path) -> None:
    for suppress in ("local", "global"):
        folder = tmp_path / f"sets-{suppress}"
        task = made(folder, sets_job({"suppress": suppress, "C": "3/4"}), set_rows(40), "codes,dx")
        assert verify_table(task, folder / "out").fields["verified"]
        columns = wards_columns(ward={"role": "location"}, at=None)
        folder = tmp_path / f"places-{suppress}"
        lines = [",".join(line.split(",")[i] for i in (0, 1, 3)) for line in LINES]
        task = made(
            folder, wards_job({"suppress": suppress, "C": "1"}, columns=columns), lines, "tag,ward,dx"
        )
        assert verify_table(task, folder / "out").fields["verified"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Task, Path]]:
    """Releases by what they were asked for."""
    folder = tmp_path_factory.mktemp("figures")
    asked = {
        "local": {"exclusion": "refuse", **FIRST},
        "global": {"suppress": "global", "exclusion": "report", **FIRST},
        "several": {"exclusion": "report"},
        "kept": {"K": "1", "C": "99/100", **FIRST},
    }
    lines = {name: [*LINES, "x,,1,flu", "y,ER,,flu", "y,ER,2,flu"] for name in asked}
    lines["kept"] = [line.replace("HIV", "flu") for line in lines["kept"]]
    lines["several"] += ["z,ER,1,flu", "z,XR,1,flu", "w,ER,1,flu", "w,XR,1,flu"]
    return {
        name: (made(folder / name, wards_job(each), lines[name]), folder / name / "out")
        for name, each in asked.items()
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [("reveals", [{}]), ("guarantee", "20-anonymous, certified"), ("signatures", None), ("records", 1)],
)
def test_a_key_that_job_and_table_contradict_is_named(
    folders: Mapping[str, tuple[Task, Path]], tmp_path: Path, key: str, value: Any
) -> None:
    task, out = folders["local"]
    report = json.loads((out / REPORT).read_text()) | {key: value}
    (tmp_path / "anonymized.csv").write_bytes((out / "anonymized.csv").read_bytes())
    (tmp_path / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError, match=f"`{key}` is not as job and table say"):
        verify_table(task, tmp_path)


@pytest.mark.parametrize(
    "key", ["sweeps", "items_suppressed", "lost", "frequent", "exclusion", "data", "reveals"]
)
def test_a_figure_that_is_missing_is_named(
    folders: Mapping[str, tuple[Task, Path]], tmp_path: Path, key: str
) -> None:
    task, out = folders["global"]
    report = json.loads((out / REPORT).read_text())
    del report[key]
    (tmp_path / "anonymized.csv").write_bytes((out / "anonymized.csv").read_bytes())
    (tmp_path / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError, match=r"`\w+` is not as job and table say"):
        verify_table(task, tmp_path)


def test_readers_are_told_what_nobody_can_check(folders: Mapping[str, tuple[Task, Path]]) -> None:
    task, out = folders["local"]
    checked = verify_table(task, out)
    stated = [
        "sweeps",
        "items_suppressed",
        "lost",
        "frequent",
        "exclusion",
        "data",
        "finished",
        "versions",
        "cost",
    ]
    assert checked.fields["not_verified"] == ["exclusion", *(f"report.{key}" for key in stated)]
    assert "not verified: exclusion" in checked.text
    assert "not checked: `sweeps`, `items_suppressed`, `lost`," in checked.text
    assert "`cost`, as the report states" in checked.text
    task, out = folders["global"]
    checked = verify_table(task, out)
    assert checked.fields["not_verified"] == [f"report.{key}" for key in stated]
    assert "exclusion, which" not in checked.text
    assert "not_verified" not in verify_table(task, out / TABLE).fields


@pytest.mark.parametrize("how", list(OTHER_BYTES))
def test_a_table_in_other_bytes_is_refused(tmp_path: Path, how: str) -> None:
    task = made(tmp_path / "sets", sets_job(), set_rows(40), header="codes,dx")
    path = tmp_path / "sets" / "out" / TABLE
    path.write_bytes(OTHER_BYTES[how](path.read_bytes()))
    with pytest.raises(PartyError, match="but not the bytes that are written of them"):
        verify_table(task, path.parent)


@pytest.mark.parametrize(
    ("column", "lines", "two"),
    [
        ("dx", ["a,HIV", "a,hiv", "b,flu", "b,flu"], "'HIV', 'hiv'"),
        ("codes", ["A,HIV", "A,flu", "a,HIV", "a,flu"], "'A', 'a'"),
    ],
)
def test_two_spellings_of_one_value_are_refused(
    tmp_path: Path, column: str, lines: list[str], two: str
) -> None:
    """A reader finds HIV in both records of `a`, where C allows 60 in 100."""
    columns = {"codes": {"role": "items"}, "dx": {"role": "sensitive", "values": ["HIV"]}}
    task = jobs.task_of(sets_job({"L": "1", "C": "0.6"}, columns=columns))
    source = table(tmp_path, *lines, header="codes,dx")
    with pytest.raises(PartyError, match=f"column {column} has two spellings of the same value") as caught:
        verify_table(task, source.path)
    assert all(text in str(caught.value) for text in two.split(", "))
    columns[column]["spellings"] = "distinct"
    verify_table(jobs.task_of(sets_job({"L": "1", "C": "0.6"}, columns=columns)), source.path)
