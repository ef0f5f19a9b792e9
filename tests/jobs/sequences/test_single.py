"""One holder's releases of sequences: the engine's result on the table that was read, verified, or nothing."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from anonymize.errors import AnonymizeError
from anonymize.trajectory.everywhere import suppress_everywhere
from anonymize.trajectory.paths import Paths
from anonymize.trajectory.requirement import bounds_of
from anonymize.trajectory.sweep import local_alone
from coordinator.single import run_single
from coordinator.verify import verify_folder
from jobs.data.sources import Source
from jobs.errors import PartyError, problem_of
from jobs.options import Options
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_PAGE
from jobs.release.sums import SUMS, sums_of
from jobs.sequences.reading import load_tracks
from jobs.sequences.report import shown_fields
from jobs.sequences.requirement import requirement
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.pages import Reader
from tests.support.wards import sets_job, table, wards_columns, wards_job

THESIS = (  # Table 4.1: place and time of every doublet, and the diagnosis
    ("b2 d3 c4 f6 c7", "AIDS"),
    ("f6 c7 e8", "flu"),
    ("d3 c4 f6 e8", "fever"),
    ("b2 c5 c7 e8", "flu"),
    ("d3 c7 e8", "fever"),
    ("c5 f6 e8", "flu"),
    ("b2 f6 c7 e8", "fever"),
    ("b2 c5 f6 c7", "AIDS"),
)
LINES = [f"{i},{d[0]},{d[1]},{dx}" for i, (path, dx) in enumerate(THESIS) for d in path.split()]


def thesis_job(sequences: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    columns = wards_columns(
        ward={"role": "location", "domain": list("bcdef")},
        at={"role": "time", "numeric": {"min": "1", "max": "9", "step": "1"}},
        dx={"role": "sensitive", "domain": ["AIDS", "fever", "flu"], "values": ["AIDS"]},
    )
    return wards_job(
        {"L": "2", "K": "2", "C": "1/2", **(sequences or {})}, **({"columns": columns} | changes)
    )


def released(job: dict[str, Any], source: Source, out: Path) -> tuple[list[dict[str, str]], dict[str, Any]]:
    run_single(jobs.task_of(job), source, out)
    with (out / TABLE).open(newline="") as file:
        return list(csv.DictReader(file)), json.loads((out / REPORT).read_text())


def records_of(rows: Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    found: dict[int, list[str]] = defaultdict(list)
    dx = {}
    for row in rows:
        found[int(row["record"])] += [row["ward"] + row["at"]] if row["ward"] else []
        dx[int(row["record"])] = row["dx"]
    assert list(found) == list(range(1, len(found) + 1))
    return [(" ".join(path), dx[record]) for record, path in found.items()]


def by_engine(paths: Paths, left: Paths) -> list[tuple[str, int]]:
    """As (items, cell) of every record, in no order."""
    return sorted(
        (str(left.path(r)), int(left.cells[r]))
        for r in range(paths.n_paths)
        for _ in range(int(paths.weights[r]))
    )


def test_the_example_of_the_thesis(tmp_path: Path) -> None:
    """L=2 K=2 C=1/2: b2 and c4 go, locally as globally; 24 of 30 readings are left, after three sweeps."""
    rows, report = released(thesis_job(), table(tmp_path, *LINES), tmp_path / "out")
    expected = [(" ".join(d for d in path.split() if d not in ("b2", "c4")), dx) for path, dx in THESIS]
    assert sorted(records_of(rows)) == sorted(expected)
    assert (report["instances"], report["lost"]["instances"], len(report["sweeps"])) == (24, 6, 3)
    everywhere, told = released(
        thesis_job({"suppress": "global"}), table(tmp_path, *LINES), tmp_path / "global"
    )
    assert everywhere == rows
    assert (told["items_suppressed"], len(told["sweeps"])) == (2, 1)


@pytest.mark.parametrize("suppress", ["local", "global"])
@pytest.mark.parametrize("known", ["1", "3"])
def test_a_run_is_the_engine_on_what_was_read(tmp_path: Path, suppress: str, known: str) -> None:
    task = jobs.task_of(thesis_job({"L": known, "suppress": suppress}))
    source = table(tmp_path, *LINES)
    tracks = load_tracks(source, task)
    bounds = bounds_of(requirement(task.job), tracks.schema)
    engine = suppress_everywhere if suppress == "global" else local_alone
    left = engine(tracks.paths, bounds, 1000).paths
    run_single(task, source, tmp_path / "out")
    again = load_tracks(_as_input(tmp_path / "out" / TABLE), task)
    assert by_engine(again.paths, again.paths) == by_engine(tracks.paths, left)


def _as_input(path: Path) -> Source:
    """A release read as a table; all of its records have readings left."""
    text = path.read_text().replace("record,", "tag,", 1)
    return table(path.parent.parent, *text.splitlines()[1:], header=text.splitlines()[0])


def test_records_are_numbered_in_canonical_order_whatever_the_order_of_the_table(tmp_path: Path) -> None:
    released(thesis_job(), table(tmp_path, *LINES), tmp_path / "one")
    renamed = [f"x{9 - int(line[0])}{line[1:]}" for line in LINES[::-1]]
    released(thesis_job(), table(tmp_path, *renamed), tmp_path / "other")
    assert (tmp_path / "one" / TABLE).read_bytes() == (tmp_path / "other" / TABLE).read_bytes()


def test_a_record_with_an_empty_path_keeps_one_line(tmp_path: Path) -> None:
    rows, report = released(
        wards_job(), table(tmp_path, "1,ER,1,flu", "2,XR,2,flu", "3,XR,2,flu"), tmp_path / "out"
    )
    assert rows[0] == {"record": "1", "ward": "", "at": "", "dx": "flu"}
    assert (report["records"], report["empty_paths"], report["rows"], report["instances"]) == (3, 1, 3, 2)


@pytest.mark.parametrize("values", [None, ["plague", "flu"]])
def test_a_value_of_rows_that_were_left_out_is_no_value_of_the_table(
    tmp_path: Path, values: list[str] | None
) -> None:
    """The row without a ward has the only case of its diagnosis. A job may name the value; a table may not."""
    sensitive = {"role": "sensitive"} | ({} if values is None else {"values": values})
    job = wards_job({"C": "1"}, columns=wards_columns(dx=sensitive))
    source = table(tmp_path, "1,ER,1,flu", "2,ER,1,flu", "3,,1,plague")
    _, report = released(job, source, tmp_path / "out")
    assert report["sensitive"] == {"dx": sorted(values or ["flu"])}
    assert verify_folder(jobs.task_of(job), tmp_path / "out").fields["records"] == 2


def test_wide_tables_give_wide_tables(tmp_path: Path) -> None:
    source = table(tmp_path, "b;a,flu", "b;c,flu", "c,flu", header="codes,dx")
    run_single(jobs.task_of(sets_job({"L": "1"})), source, tmp_path / "out")
    assert (tmp_path / "out" / TABLE).read_text() == "codes,dx\nb,flu\nb;c,flu\nc,flu\n"
    assert "1 sets" not in verify_folder(jobs.task_of(sets_job({"L": "1"})), tmp_path / "out").text


def test_plain_columns_go_with_their_records(tmp_path: Path) -> None:
    columns = wards_columns(note={"role": "plain"})
    lines = ["1,ER,1,flu,x", "2,ER,1,flu,w", "2,XR,9,flu,w"]
    source = table(tmp_path, *lines, header="tag,ward,at,dx,note")
    rows, _ = released(wards_job(columns=columns), source, tmp_path / "out")
    assert [(row["ward"], row["note"]) for row in rows] == [("ER", "w"), ("ER", "x")]


def test_the_console_tells_what_was_left_out_and_what_was_suppressed(tmp_path: Path) -> None:
    lines = ["1,ER,1,flu", "2,ER,1,flu", "2,XR,9,flu", "3,,1,flu"]
    _, report = released(wards_job(), table(tmp_path, *lines), tmp_path / "out")
    shown = shown_fields(report)
    assert shown.size == "2 records with 2 readings"
    assert shown.lines[0] == ("left out: 1 row of 4 without a needed value, and 1 record without a row left")
    assert shown.lines[1] == "suppressed: 1 of 3 readings, in 1 record; 0 records have no items left"
    assert shown_fields(report | {"empty_paths": 1}).lines[1].endswith("; 1 record has no items left")


# E1 of the specification: with L=1 a1 goes, and who knows it discards those who are at b then.
EXCLUDED = ["1,a,1,flu", "1,c,2,flu", "2,b,1,flu", "2,c,2,flu", "3,b,1,flu", "3,c,2,flu"]


def exclusion_job(exclusion: str) -> dict[str, Any]:
    ward = {"role": "location", "domain": list("abc")}
    return wards_job({"L": "1", "exclusion": exclusion}, columns=wards_columns(ward=ward))


def test_exclusion_is_refused_reported_or_repaired(tmp_path: Path) -> None:
    source = table(tmp_path, *EXCLUDED)
    with pytest.raises(AnonymizeError) as caught:
        run_single(jobs.task_of(exclusion_job("refuse")), source, tmp_path / "refused")
    assert caught.value.error_id == "exclusion-unmet"
    assert "1 record is exposed" in caught.value.private
    assert "1 record is left" in caught.value.private
    assert "places" not in problem_of(caught.value).advice(to_owner=True)
    assert not any(character.isdigit() for character in str(caught.value))
    assert not (tmp_path / "refused").exists()
    rows, report = released(exclusion_job("report"), source, tmp_path / "reported")
    assert sorted(path for path, _ in records_of(rows)) == ["b1 c2", "b1 c2", "c2"]
    assert (report["exclusion"]["exposed"], report["exclusion"]["fewest_candidates"]) == (1, 1)
    rows, report = released(exclusion_job("repair"), source, tmp_path / "repaired")
    assert sorted(path for path, _ in records_of(rows)) == ["c2", "c2", "c2"]
    assert (report["exclusion"]["exposed"], report["exclusion"]["turns"]) == (0, 1)
    assert report["lost"]["instances"] == 3


def test_exclusion_that_cannot_be_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that asks for repair gets no table; a job that asks for a report is told."""
    monkeypatch.setattr("anonymize.trajectory.exclusion.MOST_WORDS", 0)
    source = table(tmp_path, *EXCLUDED)
    for asked in ("refuse", "repair"):
        with pytest.raises(AnonymizeError) as caught:
            run_single(jobs.task_of(exclusion_job(asked)), source, tmp_path / asked)
        assert caught.value.error_id == "exclusion-untested"
        assert not (tmp_path / asked).exists()
    _, report = released(exclusion_job("report"), source, tmp_path / "reported")
    found = report["exclusion"]
    assert found == {"possible": True, "exposed": None, "records": None, "fewest_candidates": None}
    assert any("not tested" in line for line in shown_fields(report).lines)


def test_nothing_is_written_if_all_records_together_fail(tmp_path: Path) -> None:
    source = table(tmp_path, "1,ER,1,HIV", "2,ER,1,HIV", "3,ER,1,flu")
    with pytest.raises(AnonymizeError) as caught:
        run_single(jobs.task_of(wards_job()), source, tmp_path / "out")
    assert (caught.value.error_id, caught.value.column) == ("requirement-unmet", "dx")
    assert not (tmp_path / "out").exists()


def test_too_many_sequences_are_refused_before_they_are_counted(tmp_path: Path) -> None:
    source = table(tmp_path, *LINES)
    with pytest.raises(AnonymizeError) as caught:
        run_single(jobs.task_of(thesis_job({"max_candidates": "5"})), source, tmp_path / "out")
    assert caught.value.error_id == "too-many-sequences"
    assert not (tmp_path / "out").exists()


def test_a_release_is_listed_in_a_ledger_that_is_there(tmp_path: Path) -> None:
    options = Options(ledger=tmp_path / "ledger.sqlite")
    source = table(tmp_path, *LINES)
    run_single(jobs.task_of(thesis_job()), source, tmp_path / "out", options)
    (entry,) = options.own_ledger(source).entries()
    assert (entry.kind, entry.job) == ("sequences", "wards")


# What whoever has the job and the table finds out.


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    released(thesis_job(), table(folder, *LINES), folder / "out")
    return folder / "out"


def test_a_release_is_verified_by_what_it_says(made: Path) -> None:
    checked = verify_folder(jobs.task_of(thesis_job()), made)
    assert "8 records meet the requirement of wards, counted again from the rows" in checked.text
    assert checked.fields["requirement"]["fewest_records"] == 2
    alone = verify_folder(jobs.task_of(thesis_job()), made / TABLE)
    assert alone.fields["records"] == 8


def tampered(made: Path, folder: Path, old: str, new: str, name: str = TABLE) -> Path:
    """The release with one thing changed, and digests that fit."""
    folder.mkdir()
    for each in (TABLE, REPORT):
        (folder / each).write_bytes((made / each).read_bytes())
    text = (folder / name).read_text()
    assert text.count(old) >= 1
    (folder / name).write_text(text.replace(old, new, 1))
    report = json.loads((folder / REPORT).read_text())
    content = (folder / TABLE).read_bytes()
    report["files"][TABLE] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (folder / REPORT).write_text(json.dumps(report))
    files = {each: (folder / each).read_bytes() for each in (TABLE, REPORT)}
    (folder / SUMS).write_bytes(sums_of(files))
    return folder


FIRST = "1,d,3,AIDS"
"""The first line of the release."""


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ("", "does not count from 1|does not have the form"),
        ("1,b,3,AIDS", "violates K"),
        ("1,x,3,AIDS", "column ward has a value outside the column's domain"),
        ("1,d,3.0,AIDS", "column at has a value outside the column's domain"),
        ("1,,3,AIDS", "ward and at are not empty together"),
        ("1,,,AIDS", "does not have the form of a release"),
        ("2,d,3,AIDS", "column record does not count from 1"),
        ("01,d,3,AIDS", "column record has a value other than a record's number"),
        ("1,d,3,plague", "column dx has a value outside the column's domain"),
        ("1,d,3,flu", "column dx: the table does not have the form of a release"),
        ("1,f,6,AIDS", "not in the order of items|does not have the form"),
        ("1,d,3,AIDS\n1,d,3,AIDS", "not in the order of items"),
        ("1,d,3,AIDS,more", "cannot be read"),
    ],
)
def test_a_table_that_was_changed(made: Path, tmp_path: Path, new: str, words: str) -> None:
    folder = tampered(made, tmp_path / "out", FIRST + "\n", new + "\n" if new else "")
    with pytest.raises(PartyError, match=words):
        verify_folder(jobs.task_of(thesis_job()), folder)


def test_a_table_with_other_columns(made: Path, tmp_path: Path) -> None:
    with pytest.raises(PartyError, match="columns tag, ward"):
        verify_folder(jobs.task_of(thesis_job()), tampered(made, tmp_path / "out", "record,", "tag,"))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"lost":', '"lost": {"note": "none, as certified"}, "was":', "lost"),
        ('"sweeps":', '"sweeps": "few", "was":', "sweeps"),
        ('"exclusion": {', '"exclusion": {"None can be found": 0, ', "exclusion"),
        ('"largest_share": {', '"largest_share": {"note": 0, ', "requirement.largest_share.note"),
        ('"format": 1', '"format": true', "format"),
        ('"format": 1', '"format": 1.0', "format"),
    ],
)
def test_a_report_in_another_form(made: Path, tmp_path: Path, old: str, new: str, path: str) -> None:
    folder = tampered(made, tmp_path / "out", old, new, REPORT)
    with pytest.raises(PartyError, match=f"`{re.escape(path)}` is not as job and table say"):
        verify_folder(jobs.task_of(thesis_job()), folder)


@pytest.mark.parametrize(
    "key", ["instances", "records", "empty_paths", "requirement", "verified", "limits", "sensitive"]
)
def test_a_report_that_says_something_else(made: Path, tmp_path: Path, key: str) -> None:
    folder = tampered(made, tmp_path / "out", f'"{key}":', f'"{key}": 7, "was":', REPORT)
    with pytest.raises(PartyError, match=f"`{key}` is not as job and table say"):
        verify_folder(jobs.task_of(thesis_job()), folder)


def test_a_table_that_breaks_the_requirement_is_found_by_counting_alone(made: Path, tmp_path: Path) -> None:
    """As our releases are written, but one record has a reading that no other has."""
    path = tmp_path / "table.csv"
    text = (made / TABLE).read_text()
    last = text.splitlines()[-1]
    assert last.split(",")[1:3] == ["e", "8"]
    path.write_text(text.replace(last, last.replace("e,8", "f,8")))
    with pytest.raises(PartyError, match="an item violates K"):
        verify_folder(jobs.task_of(thesis_job()), path)
    with pytest.raises(PartyError, match="violates K"):
        verify_folder(jobs.task_of(thesis_job({"K": "3"})), made / TABLE)


def test_from_the_command_line(tmp_path: Path) -> None:
    """Walk as a user: the job, the run, the check, and one clear error that writes nothing."""
    table(tmp_path, *LINES)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(thesis_job()))
    validated = invoke("coordinator", "validate", tmp_path / "job.yaml")
    assert (validated.code, validated.err) == (0, "")
    assert "  requirement  L=2 K=2 C=1/2\n" in validated.out
    assert "    suppress: local\n" in validated.out
    ran = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / "out")
    assert ran.code == 0
    assert (
        "wards: 8 records with 24 readings; verified\nsuppressed: 6 of 30 readings, in 5 records" in ran.out
    )
    assert ran.out.endswith(
        "verified: no reader who knows 2 readings of a record in the table finds fewer than 2 matching records, or "
        "infers dx = AIDS with confidence above 50 %\n"
    )
    checked = invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out")
    assert checked.code == 0
    assert "8 records meet the requirement of wards, counted again from the rows" in checked.out
    table(tmp_path, "1,z,1,flu")
    failed = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / "other")
    assert failed.code == 7
    assert "column ward has a value that the column's taxonomy or domain does not list [" in failed.err
    assert ", line 2: 'z']" in failed.err
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["b,flu", "b;c,flu", "c,flu"], ""),
        (["b;c,flu", "b,flu", "c,flu"], "does not have the form of a release"),
        (["b,flu", "c;b,flu", "c,flu"], "does not have the form of a release"),
        (["b,flu", "b;b,flu"], "does not have the form of a release"),
        (["b,flu", "b;x,flu", "c,flu"], "codes has a value outside the column's domain"),
        (["b,flu", "b;,flu", "c,flu"], "codes has a value outside the column's domain"),
        (["b,flu", "c,flu"], "an item violates K"),
        (["b,HIV", "b,HIV", "b,flu"], "the whole table violates C for dx"),
        ([], "has no rows"),
    ],
)
def test_a_wide_table_is_checked_as_a_long_one(tmp_path: Path, lines: list[str], words: str) -> None:
    source = table(tmp_path, *lines, header="codes,dx")
    task = jobs.task_of(sets_job({"L": "1"}))
    if not words:
        assert verify_folder(task, source.path).fields["records"] == 3
        return
    with pytest.raises(PartyError, match=words):
        verify_folder(task, source.path)


def test_places_that_the_job_leaves_to_the_data_are_those_of_the_table(tmp_path: Path) -> None:
    job = wards_job(
        columns=wards_columns(ward={"role": "location"}, dx={"role": "sensitive", "values": ["HIV"]})
    )
    rows, _ = released(job, table(tmp_path, "1,z,1,flu", "2,z,1,HIV", "2,a,5,HIV"), tmp_path / "out")
    assert [(row["ward"], row["dx"]) for row in rows] == [("z", "HIV"), ("z", "flu")]
    assert verify_folder(jobs.task_of(job), tmp_path / "out").fields["records"] == 2


@pytest.mark.parametrize("exclusion", ["refuse", "repair"])
def test_exclusion_that_cannot_be_tested_is_not_met(tmp_path: Path, exclusion: str) -> None:
    """A record at two places in one hour: said by `report`, refused by the others, and gone with `places: first`."""
    source = table(tmp_path, "1,a,1,flu", "1,b,1,flu", "2,a,1,flu", "2,b,1,flu")
    with pytest.raises(AnonymizeError) as caught:
        run_single(jobs.task_of(exclusion_job(exclusion)), source, tmp_path / "refused")
    assert (caught.value.error_id, caught.value.private) == ("exclusion-unmet", "")
    assert "two places at the same time" in str(caught.value)
    assert "places: first" in str(caught.value.remedy)
    assert not (tmp_path / "refused").exists()
    _, report = released(exclusion_job("report"), source, tmp_path / "reported")
    untested = {"possible": False, "exposed": None, "records": None, "fewest_candidates": None}
    assert report["exclusion"] == untested
    assert any("exclusion was not tested" in line for line in report["limits"])
    assert any("exclusion was not tested" in line for line in shown_fields(report).lines)
    job = exclusion_job(exclusion)
    job["model"]["sequences"]["places"] = "first"
    _, report = released(job, source, tmp_path / "first")
    assert (report["exclusion"]["possible"], report["exclusion"]["exposed"]) == (True, 0)
    assert any("the holder tested" in line for line in report["limits"])
    _, report = released(sets_job({"exclusion": exclusion, "L": "1"}), _sets(tmp_path), tmp_path / "sets")
    assert report["exclusion"] == untested | {"exposed": 0, "records": 0}
    assert not any("two places" in line for line in report["limits"])


def _sets(folder: Path) -> Source:
    return table(folder, "b,flu", "b;c,flu", "c,flu", header="codes,dx")


# ---- the owner's page


@pytest.mark.parametrize("suppress", ["local", "global"])
@pytest.mark.parametrize(("k", "c"), [("2", "1/2"), ("3", "1"), ("2", "1/3")])
def test_lost_items_have_the_requirement_that_they_break(
    tmp_path: Path, suppress: str, k: str, c: str
) -> None:
    job = thesis_job({"K": k, "C": c, "suppress": suppress})
    rows, _ = released(job, table(tmp_path, *LINES), tmp_path / "out")
    diagnoses: dict[str, list[str]] = defaultdict(list)
    for path, dx in THESIS:
        for item in path.split():
            diagnoses[item].append(dx)
    after = defaultdict(int)
    for row in rows:
        after[row["ward"] + row["at"]] += 1
    expected = {}
    for item, found in diagnoses.items():
        if len(found) == after[item]:
            continue
        reason = "alone within the requirement, but not with other readings of the record"
        if Fraction(found.count("AIDS"), len(found)) > Fraction(c):
            reason = "alone breaks C of dx"
        if len(found) < int(k):
            reason = "in fewer records than K"
        expected[f"{item[0]}, {item[1]}"] = (len(found), after[item], reason)
    assert expected
    texts = " ".join(" ".join(Reader((tmp_path / "out" / OWN_PAGE).read_text()).texts).split())
    shown = texts.partition("Lost readings")[2]
    for label, (had, has, reason) in expected.items():
        assert f"{label} {had} {has} {reason}" in shown
    reasons = ("alone within the requirement", "alone breaks C of dx", "in fewer records than K")
    assert sum(map(shown.count, reasons)) == len(expected)


def test_a_table_that_lost_nothing_names_no_item(tmp_path: Path) -> None:
    released(thesis_job({"L": "1", "K": "2", "C": "1"}), table(tmp_path, *LINES), tmp_path / "out")
    assert "Lost readings" not in (tmp_path / "out" / OWN_PAGE).read_text()
