"""`max_records_per_person` in a DP job: which jobs may say it, what is read and what is said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.tds import Observer
from crypto.local import run_local
from jobs.data.sources import Csv
from jobs.dp import alone, run
from jobs.dp.alone import release_to_folder
from jobs.dp.asked import requirement
from jobs.dp.budget import counting
from jobs.errors import json_object
from jobs.objections import allowance
from jobs.options import NO_OPTIONS
from jobs.reading import load_table
from jobs.release_csv import REPORT
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.dp_jobs import TWO, dp_joint, dp_single
from tests.support.joint import sample_rows
from tests.support.refusals import objected, refused
from tests.support.rng import SeededRng
from tests.support.samples import PARTIES, columns

M = "max_records_per_person"


def visits(n: int = 60, people: int = 6) -> list[dict[str, str]]:
    return [{**row, "patient": f" {i % people}"} for i, row in enumerate(sample_rows(n))]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (dp_single({M: "2"}, columns=columns(patient=None)), f"model.dp.{M} needs a column with `role: id`"),
        (dp_joint("vertical", {M: "2"}), f"model.dp.{M}: a vertical job has one record of each id"),
        (dp_joint("horizontal", {M: "2", "engine": "thesis"}), f"model.dp.{M} is for engine circuit"),
        (dp_single({M: "0"}), f"`model.dp.{M}`"),
        (dp_single({M: "1001"}), f"`model.dp.{M}`"),
        (dp_single({M: "500", "epsilon": "0.1"}), "raise it to at least 0.5, or lower"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused_with_the_reason(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


def test_the_noise_is_drawn_for_so_many_records() -> None:
    task = jobs.task_of(dp_single({M: "3"}))
    assert requirement(task).per_person == 3
    assert requirement(jobs.task_of(dp_single())).per_person == 1
    assert task.model.requirement_words(task).endswith("per person of at most 3 records")


def test_rows_of_one_id_are_one_persons_and_those_without_are_left_out(tmp_path: Path) -> None:
    """Nobody else is told: an error would be."""
    rows = [*visits(), {**visits(1)[0], "patient": " "}, {**visits(1)[0], "patient": "?"}]
    source = Csv(jobs.write_csv(tmp_path / "t.csv", rows))
    task = jobs.task_of(dp_single({M: "2"}))
    loaded = load_table(source, task)
    assert (loaded.rows.read, loaded.rows.used) == (62, 60)
    assert loaded.rows.dropped == {"patient": {"missing": 2}}
    assert loaded.person is not None
    by_person = np.bincount(np.repeat(loaded.person, loaded.table.weights))
    assert by_person.tolist() == [10] * 6
    assert counting(task, loaded, SeededRng(0)).n_records == 12
    plain = jobs.task_of(dp_single(columns=columns(patient=None)))
    everything = load_table(source, plain)
    assert everything.person is None
    assert counting(plain, everything, SeededRng(0)) is everything.table


def test_one_holder_releases_so_many_records_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    release = alone.release_alone

    def spy(table: Any, *given: Any) -> Any:
        seen.append(table.n_records)
        return release(table, *given)

    monkeypatch.setattr(alone, "release_alone", spy)
    source = Csv(jobs.write_csv(tmp_path / "t.csv", visits()))
    task, watch = jobs.task_of(dp_single({M: "2"})), Stopwatch(lambda name: None)
    release_to_folder(task, source, tmp_path / "out", NO_OPTIONS, watch, Observer())
    assert seen == [12]
    report = json_object((tmp_path / "out" / REPORT).read_bytes())
    assert report is not None
    privacy = report["privacy"]
    assert privacy["unit"] == "one person at one holder"
    assert privacy["relation"] == "adding or removing one person at one holder"
    assert "for adding or removing one person at one holder" in privacy["guarantees"][0]
    assert "Each holder keeps at most 2 records of a person" in privacy["not_covered"][0]
    assert "a person with m records gets mε" not in " ".join(privacy["not_covered"])
    assert sum(Fraction(charge["epsilon"]) for charge in privacy["account"]) == 1


def test_every_party_shares_so_many_records_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    task = jobs.task_of(dp_joint("horizontal", {M: "2"}))
    rows, release = visits(), run.release_horizontally

    def spy(roster: Any, table: Any, *given: Any, **how: Any) -> Any:
        seen.append((roster.me, table.n_records))
        return release(roster, table, *given, **how)

    tables = {
        me: task.load(Csv(jobs.write_csv(tmp_path / f"{me}.csv", rows[i::3])), me)
        for i, me in enumerate(PARTIES)
    }
    monkeypatch.setattr(run, "release_horizontally", spy)
    results, _ = run_local(
        {me: run.run_horizontally(task, me, tables[me], SeededRng(me), Observer()) for me in PARTIES}
    )
    assert len({result.encoded for result in results.values()}) == 1
    assert dict(seen) == dict.fromkeys(PARTIES, 4)  # two people each, of ten records
    said = task.mode.words(task, results[PARTIES[0]])["guarantees"]
    assert any("the same for every person of the others" in words for words in said)


def test_an_owner_can_ask_for_it() -> None:
    assert objected(dp_joint("horizontal", {M: "2"}), PARTIES[0], per_person=True) == ""
    assert "epsilon must be per person" in objected(dp_joint("horizontal"), PARTIES[0], per_person=True)
    assert objected(dp_joint("vertical"), TWO[0], per_person=True) == ""
    assert allowance(jobs.task_of(dp_joint("horizontal", {M: "2"})), PARTIES[0], "x")["per_person"] is True


def test_jobs_that_do_not_say_it_are_as_before() -> None:
    assert M not in jobs.bundle_of(dp_single()).job.canonical()
