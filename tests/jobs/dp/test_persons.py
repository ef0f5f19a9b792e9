"""`max_records_per_person` in a DP job: which jobs may say it, what is read and what is said."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.errors import DataError
from anonymize.tds import Observer
from crypto.local import run_local
from jobs.data.sources import Csv
from jobs.dp import run, single
from jobs.dp.budget import check_bound, counting
from jobs.dp.requirement import requirement
from jobs.dp.single import release_to_folder
from jobs.errors import json_object
from jobs.options import NO_OPTIONS
from jobs.owner.objections import allowance
from jobs.reading import load_table
from jobs.release.csv import REPORT
from jobs.release.folder import OWN, OWN_PAGE
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.dp_jobs import TWO, dp_joint, dp_single
from tests.support.joint import sample_rows
from tests.support.network import report_of, write_job
from tests.support.pages import Reader
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
        (dp_joint("vertical", {M: "2"}), f"model.dp.{M}: a vertical job has a single record of each id"),
        (dp_joint("horizontal", {M: "2", "engine": "thesis"}), f"model.dp.{M} is for engine circuit"),
        (dp_single({M: "0"}), f"`model.dp.{M}`"),
        (dp_single({M: "1001"}), f"`model.dp.{M}`"),
        (dp_single({M: "500", "epsilon": "0.1"}), "raise epsilon to at least 0.5, or lower"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused_with_the_reason(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


def test_the_noise_is_drawn_for_so_many_records() -> None:
    task = jobs.task_of(dp_single({M: "3"}))
    assert requirement(task).per_person == 3
    assert requirement(jobs.task_of(dp_single())).per_person == 1
    assert task.model.described(task).requirement.endswith("per person of at most 3 records")


def test_rows_of_one_id_are_one_persons_and_those_without_are_left_out(tmp_path: Path) -> None:
    """Nobody else is told: an error would be."""
    rows = [*visits(), {**visits(1)[0], "patient": " "}, {**visits(1)[0], "patient": "?"}]
    source = Csv(jobs.write_csv(tmp_path / "t.csv", rows))
    task = jobs.task_of(dp_single({M: "2"}))
    loaded = load_table(source, task)
    assert (loaded.rows.read, loaded.rows.used) == (62, 60)  # before m: what the method may count
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
    release = single.release_single

    def spy(table: Any, *given: Any) -> Any:
        seen.append(table.n_records)
        return release(table, *given)

    monkeypatch.setattr(single, "release_single", spy)
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
    assert any("the same guarantee for every person of the remaining parties" in words for words in said)


UNEVEN = [{**row, "patient": id_} for id_, row in zip("aaaaabbbcc?", visits(11), strict=True)]
"""Three people with five, three and two records, and a row without an id: with m = 2, four are beyond."""
LEFT = {"read": 11, "dropped": {"patient": {"missing": 1}}, "beyond": 4, "used": 6}
WORDS = [
    "11 rows read, 5 left out, 6 used",
    "left out: 1 row has no value (an empty cell, `?` or a text of `missing`) in patient",
    "left out: 4 rows have as many others of the same person as may count",
]
SYNTHETIC = {"dp": {"method": "synthetic", "epsilon": "1", "max_rows": "1000"}}


def with_m(method: str, m: str, job: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    made = job()
    dp = SYNTHETIC["dp"] if method == "synthetic" else made["model"]["dp"]
    return {**made, "model": {"dp": {**dp, M: m}}}


@pytest.mark.parametrize("method", ["diffgen", "synthetic"])
def test_a_single_holder_is_told_alone_how_many_rows_are_beyond(tmp_path: Path, method: str) -> None:
    job = write_job(tmp_path, with_m(method, "2", dp_single))
    jobs.write_csv(tmp_path / "table.csv", UNEVEN)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert WORDS == [line for line in (ran.out + ran.err).splitlines() if "left out" in line]
    published = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert "beyond" not in published
    assert "left out: " not in published
    assert "data" not in report_of(tmp_path / "out")


def test_the_page_of_the_owner_compares_with_the_records_that_count(tmp_path: Path) -> None:
    """With almost no noise the counts are those of 6 records, one of each person, not of all 60."""
    few = dp_single({M: "1", "epsilon": "100", "accept_large_epsilon": "true"})
    job = write_job(tmp_path, few)
    jobs.write_csv(tmp_path / "table.csv", visits())
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    page = " ".join(Reader((tmp_path / "out" / OWN_PAGE).read_text()).texts)
    assert "60 rows read, 54 left out, 6 used." in page
    assert "Mean error of a cell 0 Noisy count" in " ".join(page.split())


@pytest.mark.parametrize("method", ["diffgen", "synthetic"])
def test_every_owner_is_told_how_many_of_its_rows_are_beyond(tmp_path: Path, method: str) -> None:
    """One id everywhere, m = 1: one record of each holder counts."""
    job = write_job(tmp_path, with_m(method, "1", lambda: dp_joint("horizontal")))
    rows = {party: visits(7 + i, people=1) for i, party in enumerate(PARTIES)}
    given = [f"--data={party}={jobs.write_csv(tmp_path / f'{party}.csv', rows[party])}" for party in PARTIES]
    ran = invoke("coordinator", "simulate", job, *given, "--in-process", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    for party in PARTIES:
        account = json_object((tmp_path / "out" / OWN / f"{party}.json").read_bytes())
        n = len(rows[party])
        assert account is not None
        assert account["data"] == {"read": n, "dropped": {}, "beyond": n - 1, "used": 1}
        assert f"{party}: {n} rows read, {n - 1} left out, 1 used" in ran.err
    assert "beyond" not in (tmp_path / "out" / REPORT).read_text()


def test_what_a_party_checks_says_it_and_its_bound_is_on_all_rows(tmp_path: Path) -> None:
    """Else jobs with different m would find out how many records people have."""
    task = jobs.task_of(dp_joint("horizontal", {M: "2"}))
    table = task.load(Csv(jobs.write_csv(tmp_path / "t.csv", UNEVEN)), PARTIES[0])
    assert table.told(None) == (LEFT, WORDS)
    check_bound(table, 10)
    with pytest.raises(DataError, match="more rows than the owner's bound"):
        check_bound(table, 9)


def test_an_owner_can_ask_for_it() -> None:
    assert objected(dp_joint("horizontal", {M: "2"}), PARTIES[0], per_person=True) == ""
    assert "epsilon must be per person" in objected(dp_joint("horizontal"), PARTIES[0], per_person=True)
    assert objected(dp_joint("vertical"), TWO[0], per_person=True) == ""
    assert allowance(jobs.task_of(dp_joint("horizontal", {M: "2"})), PARTIES[0], "x")["per_person"] is True


def test_jobs_that_do_not_say_it_are_as_before() -> None:
    assert M not in jobs.bundle_of(dp_single()).job.canonical()
