"""`party draft`: a table with its own names and values takes part in a joint job, with a block from the draft."""

from __future__ import annotations

import csv
import json
import random
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands import Ran, invoke

JOB = {
    "version": 1,
    "name": "stay",
    "partition": "horizontal",
    "disclosure": "sealed",
    "parties": {"north": {"address": "127.0.0.1:7401"}, "south": {"address": "127.0.0.1:7402"}},
    "model": {"lkc": {"L": "2", "K": "5", "C": "1/2"}},
    "goal": "general",
    "columns": {
        "sex": {"role": "qid", "suppress": ["male", "female"]},
        "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}},
        "admitted": {"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}},
        "insured": {"role": "qid", "suppress": ["yes", "no"]},
        "ward": {"role": "qid", "suppress": ["surgery-1", "surgery-2", "cardiology"]},
        "diagnosis": {"role": "sensitive", "domain": ["I21", "C50", "E11"], "missing": "leaf"},
    },
}
HEADER = ["PatNr", "Gender", "Age at entry", "Admission", "Insured", "Station", "DIAGNOSIS"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A party with a configuration, and a job."""
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB, sort_keys=False))
    made = invoke("party", "init", "--name", "north", "--dir", tmp_path / "north", "--data", "../visits.csv")
    assert made.code == 0
    return tmp_path


def write_table(folder: Path, ward: str = "Surgery 2") -> None:
    """Write a table as a hospital exports it: names and values of its own, `;`, decimal commas, days first."""
    rng = random.Random(3)  # noqa: S311
    with (folder / "visits.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(HEADER)
        for i in range(80):
            age = "NA" if i == 7 else f"{rng.uniform(18, 95):.1f}".replace(".", ",")
            day = f"{rng.randrange(1, 29):02d}.{rng.randrange(1, 13):02d}.2024"
            wards = [*["Surgery-1", "CARDIOLOGY"] * 3, ward]
            flag = rng.choice(["TRUE", "FALSE"])
            row = [i, rng.choice("mf"), age, day, flag, rng.choice(wards), rng.choice(["i21", "C50", "E11"])]
            table.writerow(row)


def draft(folder: Path, *more: str | Path) -> Ran:
    config = folder / "north" / "party.yaml"
    return invoke("party", "draft", "--config", config, "--job", folder / "job.yaml", *more)


def block_of(text: str) -> Mapping[str, Any]:
    """Return the drafted `data`, with all values as texts."""
    found: Mapping[str, Any] = yaml.load(text, yaml.BaseLoader)["data"]  # noqa: S506
    return found


def test_the_block_makes_the_table_fit(folder: Path) -> None:
    write_table(folder)
    ran = draft(folder, "--out", folder / "data.yaml")
    assert ran.code == 0
    assert "the table fits the job with this block" in ran.out
    text = (folder / "data.yaml").read_text()
    keys = block_of(text)["csv"]
    names = ["sex", "age", "admitted", "insured", "ward", "diagnosis"]
    assert keys["rename"] == dict(zip(HEADER[1:], names, strict=True))
    assert keys["missing"] == ["NA"]
    assert keys["dates"] == {"admitted": "DD.MM.YYYY"}
    assert keys["map"]["sex"] == {"m": "male", "f": "female"}
    assert "# sex: beginnings of values: check the words" in text
    assert "# Gender: the values fit" in text

    config = folder / "north" / "party.yaml"
    before = config.read_text()
    old = next(line for line in before.splitlines() if line.startswith("  csv:"))
    config.write_text(before.replace(f"data:\n{old}\n", text))
    checked = invoke("party", "check", "--config", config, "--job", folder / "job.yaml")
    assert "80 rows read, 1 left out, 79 used" in checked.out
    again = draft(folder)
    assert again.code == 0
    assert "the table fits the job as it is" in again.out


def test_the_block_is_shown_without_out(folder: Path) -> None:
    write_table(folder)
    before = sorted(path.name for path in folder.iterdir())
    ran = draft(folder)
    shown = ran.out[ran.out.index("data:\n") :].split("the table fits")[0]
    assert block_of(shown)["csv"]["rename"]["Gender"] == "sex"
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_value_that_fits_in_no_way(folder: Path) -> None:
    write_table(folder, ward="Intensive care")
    ran = draft(folder)
    assert ran.code != 0
    assert "'Intensive care' (" in ran.out
    assert "map the values, or ask the author of the job to list them" in ran.out
    assert "data-unknown-value" in ran.err
    assert "outside: missing" not in ran.err
    checked = invoke(
        "party", "check", "--config", folder / "north" / "party.yaml", "--job", folder / "job.yaml"
    )
    assert "outside: missing" not in checked.out + checked.err


@pytest.mark.parametrize(
    ("column", "own", "remedy"),
    [
        ("ward", "Intensive care", "ask the author of the job to list the value"),
        ("age", "-9", "ask the author of the job to widen the domain"),
        ("admitted", "2031-01-01", "or widen `from` and `to`; if the value means a missing cell"),
    ],
)
def test_the_cure_of_a_party(column: str, own: str, remedy: str, folder: Path) -> None:
    fit = {
        "sex": "male",
        "age": "20",
        "admitted": "2024-02-03",
        "insured": "yes",
        "ward": "cardiology",
        "diagnosis": "I21",
    }
    rows = [fit.values(), (fit | {column: own}).values()]
    (folder / "visits.csv").write_text("".join(f"{','.join(row)}\n" for row in (fit, *rows)))
    where = ("--config", folder / "north" / "party.yaml", "--job", folder / "job.yaml")
    for command in ("draft", "check"):
        ran = invoke("party", command, *where)
        assert ran.code == 7
        assert remedy in ran.err
        assert ("`data` in the configuration" in ran.err) == (column != "admitted")


def test_a_missing_column(folder: Path) -> None:
    write_table(folder)
    path = folder / "visits.csv"
    path.write_text(path.read_text().replace("Station", "x").replace("Surg", "Chir").replace("CARD", "KARD"))
    ran = draft(folder)
    assert "ward: no column of the table" in ran.out
    assert "data-missing-column" in ran.err


def test_near_misses_are_questions(folder: Path) -> None:
    """The best column and the best value are asked about; neither is written into the block."""
    write_table(folder)
    path = folder / "visits.csv"
    head, *rows = path.read_text().replace("Station", "x").splitlines()
    place = HEADER.index("Station")
    cells = [row.split(";") for row in rows]
    for number, row in enumerate(cells):
        row[place] = "cardiology" if number % 2 else "other ward"
    path.write_text("\n".join([head, *(";".join(row) for row in cells)]) + "\n")
    ran = draft(folder)
    assert "    question: is column x of the table meant (" in ran.out
    assert "% of the column's records fit)? Then write `rename: {x: ward}`" in ran.out
    found = json.loads(draft(folder, "--format", "json").out.partition('\n{"error')[0])
    (ward,) = [column for column in found["columns"] if column["name"] == "ward"]
    assert ward["near"]["ward"]["meant"] == "x"
    assert "x" not in found["data"]["csv"].get("rename", {})


def test_the_file_is_for_its_owner_alone(folder: Path) -> None:
    write_table(folder)
    assert draft(folder, "--out", folder / "data.yaml").code == 0
    assert stat.S_IMODE((folder / "data.yaml").stat().st_mode) == 0o600
    again = draft(folder, "--out", folder / "data.yaml")
    assert "exists" in again.err
    nowhere = draft(folder, "--out", folder / "no" / "data.yaml")
    assert "name a file that can be written" in nowhere.err


def test_json(folder: Path) -> None:
    write_table(folder)
    found = json.loads(draft(folder, "--format", "json").out)
    assert found["fits"] is True
    assert found["data"]["csv"]["dates"] == {"admitted": "DD.MM.YYYY"}
    assert [column["column"] for column in found["columns"]] == HEADER[1:]


def test_a_job_is_needed(folder: Path) -> None:
    ran = invoke("party", "draft", "--config", folder / "north" / "party.yaml")
    assert "--job" in ran.err
