"""Inputs that people bring (../shared/cases), as they are: each folder's command ends as its `expected.md` asks.

Folders 02, 09, 10 and 12 have tests beside the code that mends them, and so have variants of most others.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.commands import Ran, invoke
from tests.support.shared import shared


def run(folder: Path, name: str, job: str = "job.yaml", changes: Mapping[str, str] | None = None) -> Ran:
    """Run the job of a case in a copy of its folder. changes: texts that its owner changes in the job."""
    case = folder / "case"
    shutil.copytree(shared(f"cases/{name}"), case)
    text = (case / job).read_text()
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    (case / job).write_text(text)
    return invoke("coordinator", "run", case / job, "--out", case / "out")


def cut(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads((folder / "case" / "out" / "report.json").read_text())["cut"]
    return found


def test_01_a_protected_value_with_a_blank(tmp_path: Path) -> None:
    assert run(tmp_path, "01-protected-value-spelled-twice").code == 0
    assert cut(tmp_path) == {"region": ["Any"]}


def test_03_blanks_around_labels(tmp_path: Path) -> None:
    assert run(tmp_path, "03-hierarchy-blanks").code == 0
    assert {"France", "Germany"} <= set(cut(tmp_path)["city"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "04-hierarchy-gaps",
            "cities.csv: line 1: the taxonomy of column city has an empty label (level 2 is empty)",
        ),
        (
            "05-hierarchy-with-commas",
            "cities.csv: line 1: the taxonomy of column city has no ';' between labels",
        ),
    ],
)
def test_a_hierarchy_that_is_none(name: str, says: str, tmp_path: Path) -> None:
    ran = run(tmp_path, name)
    assert ran.code == 2
    assert says in ran.err


def test_05_a_header_in_a_hierarchy(tmp_path: Path) -> None:
    ran = run(tmp_path, "05-hierarchy-with-commas", changes={"cities.csv": "with-header.csv"})
    assert ran.code == 2
    assert "with-header.csv: line 1" in ran.err


def test_06_the_hierarchy_of_another_column(tmp_path: Path) -> None:
    ran = run(tmp_path, "06-hierarchy-of-another-column")
    assert ran.code == 7
    assert "5 different values in 60 of 60 rows: line 2: 'Clerk' (12 rows)" in ran.err
    assert "may be that of another column" in ran.err


def test_07_a_level_with_one_group(tmp_path: Path) -> None:
    assert run(tmp_path, "07-only-child").code == 0
    assert cut(tmp_path)["postcode"][:4] == ["10115", "10117", "20095", "20097"]


def test_08_one_missing_cell(tmp_path: Path) -> None:
    """Children leave one by one by default, so a rare child takes no column away."""
    assert run(tmp_path, "08-one-missing-cell").code == 0
    assert all(len(values) > 1 for values in cut(tmp_path).values())


def test_08_the_reason_where_children_leave_together(tmp_path: Path) -> None:
    together = {"{Any: [F, M]}": "{Any: [F, M]}, refine: children", "east]}": "east]}, refine: children"}
    ran = run(tmp_path, "08-one-missing-cell", changes=together)
    assert ran.code == 0
    assert ran.out.count("would have 1 record") == 2
    assert "`missing: drop` at sex, region" in ran.out
    assert "`refine: child` at sex, region" in ran.out


def test_11_columns_in_order(tmp_path: Path) -> None:
    said = {"max_rows: 3000": "max_rows: 3000, order: [admitted, left]"}
    ran = run(tmp_path, "11-synthetic-order-of-columns", changes=said)
    assert ran.code == 0
    assert "drawn rows had left below admitted" in ran.out
    with (tmp_path / "case" / "out" / "synthetic.csv").open(newline="") as file:
        stays = [(row["admitted"], row["left"]) for row in csv.DictReader(file)]
    assert not [1 for begins, ends in stays if begins and ends and float(ends) < float(begins)]


def test_13_values_that_nearly_fit(tmp_path: Path) -> None:
    ran = run(tmp_path, "13-values-that-nearly-fit")
    assert ran.code == 7
    hints = [
        "fit as '20' (without `.0`)",
        "fit as '04109' (leading zeros",
        "fit as 'true' (upper and lower case",
    ]
    assert [ran.err.count(hint) for hint in hints] == [1, 1, 1]


def test_14_marks_of_missing_values(tmp_path: Path) -> None:
    """The file stays as it is; the job lists the marks."""
    said = {"data: records.csv": 'data: {path: records.csv, missing: [NA, "-7", "-8", "-9"]}'}
    ran = run(tmp_path, "14-marks-of-missing-values", changes=said)
    assert ran.code == 0
    assert "left out: " in ran.out
    assert "in income" in ran.out
    with shared("cases/14-marks-of-missing-values/records.csv").open(newline="") as file:
        counts = Counter(row["income"] for row in csv.DictReader(file))
    told = next(line for line in ran.err.splitlines() if "missing cells of income" in line)
    assert {
        mark: f"{mark!r} in {counts[mark]} rows" in told for mark in ("NA", "-7", "-8", "-9")
    } == dict.fromkeys(("NA", "-7", "-8", "-9"), True)


def test_14_numbers_keep_their_rows(tmp_path: Path) -> None:
    said = {
        "data: records.csv": 'data: {path: records.csv, missing: [NA, "-7", "-8", "-9"]}',
        "step: 10}": "step: 10}, missing: leaf",
        "step: 500}": "step: 500}, missing: leaf",
    }
    assert run(tmp_path, "14-marks-of-missing-values", changes=said).code == 0
    with shared("cases/14-marks-of-missing-values/records.csv").open() as file:
        n = sum(1 for _ in file) - 1
    with (tmp_path / "case" / "out" / "anonymized.csv").open() as file:
        assert sum(1 for _ in file) - 1 == n


def test_15_one_note_a_column(tmp_path: Path) -> None:
    ran = run(tmp_path, "15-many-notes")
    assert ran.code == 0
    notes = [line for line in ran.out.splitlines() if line.startswith("columns.town:")]
    assert len(notes) == 1
    assert "40 values, such as 'Country 0'" in notes[0]
    assert "write a level of groups" in notes[0]


def test_16_nothing_predicts_the_class(tmp_path: Path) -> None:
    ran = run(tmp_path, "16-nothing-predicts-the-class")
    assert ran.code == 0
    assert ran.out.count("a step tells nothing more of died") == 2
    assert "`goal: general` keeps detail" in ran.out


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("job.yaml", "rename one of the columns in the table"),
        ("sensitive.yaml", "`missing: leaf` keeps the row"),
    ],
)
def test_17_remedies_that_fit(job: str, says: str, tmp_path: Path) -> None:
    ran = run(tmp_path, "17-wrong-remedies", job)
    assert ran.code == 7
    assert says in ran.err


def test_17_a_class_that_differs(tmp_path: Path) -> None:
    case = tmp_path / "case"
    shutil.copytree(shared("cases/17-wrong-remedies"), case)
    tables = [f"--data={name}={case / name}.csv" for name in ("shop", "bank")]
    ran = invoke(
        "coordinator", "simulate", case / "class.yaml", *tables, "--in-process", "--out", case / "out"
    )
    assert ran.code == 7
    assert "(docs/errors.md, class-mismatch)" in ran.err
    assert "(below)" not in ran.err


def test_v_half_width(tmp_path: Path) -> None:
    assert run(tmp_path, "v-half-width").code == 0
    tables = json.loads((tmp_path / "case" / "out" / "report.json").read_text())["tables"]
    assert [table["half_width_95"] for table in tables] == [2, 1]


def test_v_share_left_out(tmp_path: Path) -> None:
    assert run(tmp_path, "v-share-left-out").code == 0
    report = json.loads((tmp_path / "case" / "out" / "report.json").read_text())
    assert report["requirement"]["largest_share"] == {"dx": 0.0}


def test_every_case_is_here() -> None:
    folders = Counter(path.name for path in shared("cases").iterdir() if path.is_dir())
    tests = Path(__file__).read_text() + "".join(
        path.read_text() for path in Path(__file__).resolve().parents[1].rglob("test_*.py")
    )
    assert [name for name in folders if name not in tests and name != "02-verify-kd-protected-values"] == []
