"""The OMOP example, from its generator to checked releases, in a real PostgreSQL."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

import examples.omop.generate as generator
from jobs.loading import load_task
from jobs.release_csv import REPORT, TABLE
from tests.support.commands import invoke
from tests.support.databases import DSN_ENV, Database

FOLDER = Path(generator.__file__).parent
CHAPTERS = dict(line.split(";")[:2] for line in (FOLDER / "hierarchies/icd10.csv").read_text().split())


@pytest.fixture
def omop(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """The example's database with its views, as the README makes it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = io.StringIO()
    generator.write(made)
    database.run(made.getvalue())
    database.run((FOLDER / "tables.sql").read_text())
    return database


def released(job: str, folder: Path) -> list[dict[str, str]]:
    """The rows of a release that its job verifies."""
    done = invoke("coordinator", "run", FOLDER / f"{job}.yaml", "--out", folder / job)
    assert done.code == 0, done.err
    assert invoke("coordinator", "verify", FOLDER / f"{job}.yaml", folder / job).code == 0
    with (folder / job / TABLE).open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_data_are_the_same_each_time() -> None:
    one, two = io.StringIO(), io.StringIO()
    generator.write(one)
    generator.write(two)
    assert one.getvalue() == two.getvalue()


def test_every_code_has_its_chapter() -> None:
    """By the ranges of ICD-10, which are in the names of the chapters."""
    assert CHAPTERS.keys() == generator.CODES.keys()
    for code, chapter in CHAPTERS.items():
        first, last = chapter.split("-")
        assert first <= code <= last


def test_persons(omop: Database, tmp_path: Path) -> None:
    rows = released("patients", tmp_path)
    assert len(rows) == generator.PERSONS
    raw = Counter(omop.run("SELECT condition FROM omop.patients").split())
    assert Counter(row["condition"] for row in rows) == raw
    protected = load_task(FOLDER / "patients.yaml").job.columns["condition"].protected
    assert set(protected) <= set(CHAPTERS.values())
    for pair in combinations(("age", "gender", "race", "zip"), 2):
        groups: dict[tuple[str, ...], list[str]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in pair), []).append(CHAPTERS[row["condition"]])
        for chapters in groups.values():
            assert len(chapters) >= 20
            assert all(10 * chapters.count(chapter) <= 4 * len(chapters) for chapter in protected)


def test_sets_of_diagnoses(omop: Database, tmp_path: Path) -> None:
    rows = released("conditions", tmp_path)
    known: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        codes = sorted(filter(None, row["conditions"].split(";")))
        for n in (1, 2):
            for some in combinations(codes, n):
                known.setdefault(some, []).append(row["hiv"])
    assert known
    assert all(len(found) >= 10 and 10 * found.count("HIV") <= 3 * len(found) for found in known.values())
    assert len(rows) == int(omop.run("SELECT count(conditions) FROM omop.patients"))


def test_visits(omop: Database, tmp_path: Path) -> None:
    rows = released("visits", tmp_path)
    assert {row["visit"] for row in rows} <= {"outpatient", "emergency", "inpatient", ""}
    report = json.loads((tmp_path / "visits" / REPORT).read_text())
    assert report["data"]["read"] == int(omop.run("SELECT count(*) FROM omop.visits"))
    assert report["data"]["records"] == generator.PERSONS


def test_whoever_reads_the_views_needs_no_right_to_the_tables(
    omop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    omop.run(
        "DROP ROLE IF EXISTS publisher; CREATE ROLE publisher LOGIN PASSWORD 'x'; "
        "GRANT USAGE ON SCHEMA omop TO publisher; GRANT SELECT ON omop.patients TO publisher"
    )
    monkeypatch.setenv(DSN_ENV, omop.dsn("publisher", "x"))
    assert len(released("patients", tmp_path)) == generator.PERSONS
    refused = invoke("coordinator", "run", FOLDER / "visits.yaml", "--out", tmp_path / "visits")
    assert refused.code == 7
    assert not (tmp_path / "visits").exists()


def test_the_readme_names_these_files() -> None:
    text = (FOLDER / "README.md").read_text()
    for path in FOLDER.rglob("*"):
        if path.is_file() and path.suffix != ".pyc" and path.name != "README.md":
            assert str(path.relative_to(FOLDER)) in text, path
