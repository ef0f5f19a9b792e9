"""`coordinator verify`: every way in which a released table can be made worse is noticed."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Exit
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN, OWN_PAGE
from jobs.release.sums import SUMS, fields_of_file, write_sums
from tests.support import jobs
from tests.support.commands import Ran, invoke
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job, single_job

Rows = list[list[str]]
JOB, AGE, CLASS, SURGERY = range(4)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job, its table and its result; goal general, so that both columns are refined."""
    folder = tmp_path_factory.mktemp("made")
    job = write_job(folder, single_job(goal="general"))
    jobs.write_csv(folder / "table.csv", sample_rows(60), COLUMNS)
    assert invoke("coordinator", "run", job, "--out", folder / "out").code == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "made")
    return tmp_path / "made"


def read(folder: Path) -> Rows:
    with (folder / "out" / TABLE).open(newline="") as file:
        return list(csv.reader(file))


def write(folder: Path, rows: Rows) -> None:
    with (folder / "out" / TABLE).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def verified(folder: Path, what: str = "out", *more: str) -> Ran:
    return invoke("coordinator", "verify", folder / "job.yaml", folder / what, *more)


def refused(folder: Path, what: str = "out", error_id: str = "verification-failed") -> dict[str, Any]:
    ran = verified(folder, what, "--format", "json")
    assert ran.problem["error"] == error_id
    assert ran.out == ""
    assert (
        ran.code
        == {"verification-failed": Exit.FAILED, "data-unreadable": Exit.DATA, "file-missing": Exit.USAGE}[
            error_id
        ]
    )
    return ran.problem


def groups(rows: Rows, *columns: int) -> dict[tuple[str, ...], Rows]:
    found: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        found.setdefault(tuple(row[c] for c in columns), []).append(row)
    return found


def smallest(rows: Rows) -> Rows:
    """A group of two on both quasi-identifiers: one row fewer breaks K."""
    return next(group for group in groups(rows, JOB, AGE).values() if len(group) == 2)


def test_what_we_made_is_accepted_as_folder_and_as_file(folder: Path) -> None:
    assert verified(folder).code == 0
    ran = verified(folder, f"out/{TABLE}")
    assert (ran.code, ran.err) == (0, "")
    assert REPORT not in ran.out
    write(folder, [*read(folder)[:1], *reversed(read(folder)[1:])])
    assert "was made with a different anonymized.csv" in refused(folder)["message"]
    forget(folder)
    ran = verified(folder)
    assert ran.code == 0  # order carries no meaning
    assert "not checked: who made the file and whether somebody changed it" in ran.out


def forget(folder: Path) -> None:
    """Leave the table alone, without what was made with it."""
    for name in (REPORT, SUMS):
        (folder / "out" / name).unlink()


def flipped(folder: Path, most: int = 20) -> None:
    """Exchange class values so that groups, and so the requirement, stay as they are."""
    header, *rows = read(folder)
    for row in rows[:most]:
        row[CLASS] = "N" if row[CLASS] == "Y" else "Y"
    write(folder, [header, *rows])


def test_class_values_that_were_flipped_are_found_by_the_digest(folder: Path) -> None:
    flipped(folder)
    assert f"{REPORT} was made with a different {TABLE}" in refused(folder)["message"]


def with_digests_of_now(folder: Path) -> None:
    """Forge as somebody does who knows the format: report and digests are made to fit the changed table."""
    out = folder / "out"
    report = json.loads((out / REPORT).read_text())
    report["files"] = {TABLE: fields_of_file(out / TABLE)}
    (out / REPORT).write_text(json.dumps(report))
    write_sums(out, (TABLE, REPORT))


def test_a_consistent_forgery_is_found_by_a_digest_from_elsewhere_only(folder: Path) -> None:
    kept = json.loads(verified(folder, "out", "--format", "json").out)["release"]
    assert verified(folder, "out", "--release", kept).code == 0
    assert "the digest matches" in verified(folder, "out", "--release", kept.upper()).out
    flipped(folder)
    with_digests_of_now(folder)
    ran = verified(folder)
    assert ran.code == 0
    assert "not checked: whether somebody changed the files" in ran.out
    assert "part" not in ran.out  # a single holder has nobody to ask
    assert kept not in ran.out
    ran = verified(folder, "out", "--release", kept, "--format", "json")
    assert (ran.code, ran.problem["error"]) == (Exit.FAILED, "verification-failed")
    assert "the files do not have the digest" in ran.problem["message"]
    assert ran.problem["remedy"] == "do not use the files; ask the holder for the files of the release"
    assert json.loads(verified(folder, "out", "--format", "json").out)["agreed"] is None


def test_a_part_of_a_digest_accuses_nobody(folder: Path) -> None:
    kept = json.loads(verified(folder, "out", "--format", "json").out)["release"]
    for part in (kept[:12], ""):
        ran = verified(folder, "out", "--release", part, "--format", "json")
        assert (ran.code, ran.problem["error"]) == (Exit.USAGE, "usage")
        assert "64 hexadecimal digits" in ran.problem["message"]


def _computed_in_one_process(tmp_path: Path) -> Path:
    """The release of a joint job, made for a trial."""
    job, out = write_job(tmp_path, joint_job()), tmp_path / "out"
    tables = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', sample_rows(60)[i::3], COLUMNS)}"
        for i, name in enumerate(PARTIES)
    ]
    ran = invoke("coordinator", "simulate", job, *tables, "--in-process", "--out", out)
    assert ran.code == 0, ran.err
    return out


def test_a_report_says_that_nobody_signed_it_and_cannot_leave_it_out(tmp_path: Path) -> None:
    out = _computed_in_one_process(tmp_path)
    ran = verified(tmp_path)
    assert (ran.code, ran.out.splitlines()[-1].partition(":")[0]) == (Exit.OK, "not signed")
    assert json.loads(verified(tmp_path, "out", "--format", "json").out)["signed"] is None
    report = json.loads((out / REPORT).read_text())
    del report["signatures"]
    (out / REPORT).write_text(json.dumps(report))
    write_sums(out, (TABLE, REPORT))
    assert verified(tmp_path, "out", "--format", "json").problem["error"] == "verification-failed"
    assert "has no signatures" in verified(tmp_path).err


def test_of_a_joint_release_a_party_keeps_the_digest(tmp_path: Path) -> None:
    _computed_in_one_process(tmp_path)
    assert "not checked: whether the parties agreed on the files" in verified(tmp_path).out
    assert "that a party keeps (at a party: party verify FOLDER, or party budget" in verified(tmp_path).out
    ran = verified(tmp_path, "out", "--release", "ab" * 32, "--format", "json")
    assert ran.problem["remedy"] == "do not use the files; ask a party for the files of the release"


def test_what_a_simulation_tells_owners_is_not_to_be_passed_on(folder: Path) -> None:
    (folder / "out" / OWN).mkdir()
    said = verified(folder).out
    assert "from raw rows, and only for the owner: own/, owner-report.html. Do not publish them\n" in said
    assert "not checked: own/" not in said


def test_what_lies_beside_a_release_is_named(folder: Path) -> None:
    """It is a warning: the release is what it should be."""
    assert "warning" not in verified(folder).out
    for name in ("raw.csv", "a\tb"):
        (folder / "out" / name).write_text("x")
    (folder / "out" / "more").mkdir()
    ran = verified(folder)
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert "every file listed has the bytes listed\n" in ran.out
    assert "warning: not part of the release, and not checked: a b, more/, raw.csv\n" in ran.out
    assert json.loads(verified(folder, "out", "--format", "json").out)["unlisted"] == [
        "a\tb",
        "more/",
        OWN_PAGE,
        "raw.csv",
    ]
    for i in range(9):
        (folder / "out" / f"z{i}").touch()
    assert "raw.csv, z0, z1, z2, z3, z4, z5, z6 and 2 more\n" in verified(folder).out


@pytest.mark.parametrize("name", [REPORT, SUMS])
def test_half_of_what_a_run_writes_is_not_enough(folder: Path, name: str) -> None:
    (folder / "out" / name).unlink()
    assert f"but not the {name} made with it" in refused(folder)["message"]


def test_a_report_that_was_changed_is_found_by_the_digest(folder: Path) -> None:
    report = json.loads((folder / "out" / REPORT).read_text())
    report["versions"] = {}
    (folder / "out" / REPORT).write_text(json.dumps(report))
    assert f"{REPORT} is not the file that {SUMS} lists" in refused(folder)["message"]


@pytest.mark.parametrize("files", [None, [], {}, {"../x": {}}, {TABLE: {}}, {TABLE: 3}])
def test_a_report_without_proper_digests(folder: Path, files: object) -> None:
    report = json.loads((folder / "out" / REPORT).read_text()) | {"files": files}
    (folder / "out" / REPORT).write_text(json.dumps(report))
    write_sums(folder / "out", (TABLE, REPORT))
    assert REPORT in refused(folder)["message"]


def test_a_lone_table_has_no_digest_to_compare(folder: Path) -> None:
    ran = verified(folder, f"out/{TABLE}", "--release", "ab" * 32, "--format", "json")
    assert "a comparison with a digest needs the file" in ran.problem["message"]


def test_a_row_removed_breaks_k(folder: Path) -> None:
    header, *rows = read(folder)
    rows.remove(smallest(rows)[0])
    write(folder, [header, *rows])
    forget(folder)
    assert refused(folder)["message"] == "a group on job, age violates K"


def test_a_row_doubled_is_not_what_the_report_speaks_of(folder: Path) -> None:
    header, *rows = read(folder)
    write(folder, [header, *rows, next(row for row in rows if row[SURGERY] != "Rare")])
    assert "different numbers of rows" in refused(folder)["message"]


def test_a_sensitive_value_concentrated_breaks_c(folder: Path) -> None:
    header, *rows = read(folder)
    group = max(groups(rows, JOB, AGE).values(), key=len)
    others = [row for row in rows if row[SURGERY] == "Rare" and row not in group]
    for row in group:
        if row[SURGERY] != "Rare" and others:
            other = others.pop()
            row[SURGERY], other[SURGERY] = other[SURGERY], row[SURGERY]
    write(folder, [header, *rows])
    message = refused(folder)["message"]
    assert message.endswith("violates C for surgery")


def test_one_group_of_one_among_many_is_found(folder: Path) -> None:
    header, *rows = read(folder)
    rows[0][AGE] = "[0,100)"
    write(folder, [header, *rows])
    assert "violates K" in refused(folder)["message"]


@pytest.mark.parametrize(
    ("column", "label", "says"),
    [
        (JOB, "Doctor", "column job has a value that is not a node"),
        (JOB, "any", "column job has a value that is not a node"),
        (JOB, "", "column job has a value that is not a node"),
        (AGE, "[0,101)", "column age has a value that is not a node"),
        (AGE, "[0,5)", "column age has a value that is not a node"),
        (AGE, "[20,10)", "column age has a value that is not a node"),
        (AGE, "[10,10)", "column age has a value that is not a node"),
        (AGE, "[0,10]", "column age has a value that is not a node"),
        (AGE, "0,10", "column age has a value that is not a node"),
        (AGE, "[0, 10)", "column age has a value that is not a node"),
        (AGE, "[00,10)", "column age has a value that is not a node"),
        (AGE, "[0,10,20)", "column age has a value that is not a node"),
        (AGE, "15", "column age has a value that is not a node"),
        (CLASS, "maybe", "column transfused has a value that is not in its domain"),
        (SURGERY, "Zebra", "column surgery has a value that is not in its domain"),
    ],
)
def test_a_label_that_the_job_does_not_know(folder: Path, column: int, label: str, says: str) -> None:
    header, *rows = read(folder)
    for row in rows:  # all of them, so that no group gets too small
        row[column] = label
    write(folder, [header, *rows])
    problem = refused(folder)
    assert says in problem["message"]
    assert problem.get("private", "") == label


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header[:-1],
        lambda header: [*header, "name"],
        lambda header: [header[1], header[0], *header[2:]],
        lambda header: ["patient", *header[1:]],
        lambda header: [header[0].upper(), *header[1:]],
    ],
)
def test_other_columns(folder: Path, change: Callable[[list[str]], list[str]]) -> None:
    rows = read(folder)
    header = change(rows[0])
    write(folder, [header, *([row[0]] * len(header) for row in rows[1:])])
    assert f"{TABLE} has columns" in refused(folder)["message"]


def test_ids_left_in_the_table_are_noticed(folder: Path) -> None:
    rows = read(folder)
    write(folder, [["patient", *rows[0]], *([str(i), *row] for i, row in enumerate(rows[1:]))])
    assert f"{TABLE} has columns patient" in refused(folder)["message"]


@pytest.mark.parametrize("content", [b"", b"job,age\n1\n", b'"', b"\x00\xff\xfe secret,1\n"])
def test_no_table_at_all(folder: Path, content: bytes) -> None:
    """Nothing of such a file is printed: it may be anybody's."""
    (folder / "out" / TABLE).write_bytes(content)
    said = json.dumps(refused(folder))
    assert f"{TABLE} cannot be read as a table" in said
    assert "secret" not in said
    assert "xff" not in said


def test_an_empty_table(folder: Path) -> None:
    write(folder, read(folder)[:1])
    assert refused(folder)["message"] == "the table has no rows"


def test_nothing_there(folder: Path) -> None:
    refused(folder, "nowhere", "file-missing")
    (folder / "out" / TABLE).unlink()
    refused(folder, "out", "file-missing")


@pytest.mark.parametrize("content", ["", "no json", "[]", "null", '"x"', "3", "[" * 10**5])
def test_a_report_that_is_none(folder: Path, content: str) -> None:
    (folder / "out" / REPORT).write_text(content)
    assert "is not a report" in refused(folder)["message"]


def test_a_report_of_another_job(folder: Path) -> None:
    job = (folder / "job.yaml").read_text()
    (folder / "job.yaml").write_text(job.replace("name: sample", "name: another"))
    assert "about a different job" in refused(folder)["message"]
    (folder / "out" / REPORT).write_text("{}")
    assert "about a different job" in refused(folder)["message"]


def test_a_report_of_another_table(folder: Path) -> None:
    report = json.loads((folder / "out" / REPORT).read_text())
    report["rows"] += 1
    (folder / "out" / REPORT).write_text(json.dumps(report))
    assert "different numbers of rows" in refused(folder)["message"]


@pytest.mark.parametrize(
    ("lkc", "met"),
    [
        ({"L": "1", "K": "2", "C": "0.5"}, True),
        ({"L": "1", "K": "2", "C": "1"}, True),
        ({"L": "2", "K": "60", "C": "1"}, False),
        ({"L": "2", "K": "2", "C": "0.01"}, False),
        ({"L": "9", "K": "2", "C": "0.5"}, True),
    ],
)
def test_against_another_requirement(folder: Path, lkc: dict[str, str], met: bool) -> None:
    write_job(folder, single_job(goal="general", model={"lkc": lkc}))
    forget(folder)
    assert (verified(folder).code == 0) == met
