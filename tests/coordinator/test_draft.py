"""`coordinator draft`: foreign tables become verified tables in three commands, and nothing rare is written."""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.file.yaml_text import parse_yaml
from tests.support.commands import Ran, invoke

Row = Mapping[str, str]


def hospital(n: int = 600) -> Iterator[Row]:
    """Yield rows as a hospital in Europe exports them: `;`, decimal commas, days first, ids, names, odd values."""
    rng = random.Random(4)  # noqa: S311  the same each time, and no secret
    for i in range(n):
        born, stage = date(1930, 1, 1) + timedelta(days=rng.randrange(27_000)), rng.randrange(4)
        yield {
            "Fallnummer": str(700_000 + i),
            "patient_name": f"Person {i:04d}",
            "geb_datum": f"{born:%d.%m.%Y}",
            "PLZ": rng.choice(["01067", "01069", "10115", "10117", "80331"]) if i % 100 else f"{99_000 + i}",
            "Geschlecht": rng.choice("mw") if i % 300 else "divers",
            "Gewicht": f"{rng.uniform(45, 110):.1f}".replace(".", ",") if i else "412,5",
            "Stadium": ["I", "II", "III", "IV"][stage],
            "diagnosis": rng.choice(["I21.0", "I21.4", "C50.9", "E11.9", "J18.9"]) if i % 50 else "B20",
            "verstorben": "ja"
            if rng.random() < (0.1 + 0.5 * (stage > 1) + 0.3 * (born.year < 1960))
            else "nein",
            "Bemerkung": f"kam am Tag {i} mit dem Bus, und ging am Abend",
        }


def survey(n: int = 500) -> Iterator[Row]:
    """Yield rows as a survey in America has them: groups of ages, dates with slashes, marks of missing values."""
    rng = random.Random(5)  # noqa: S311  the same each time, and no secret
    for i in range(n):
        day = date(2023, 1, 1) + timedelta(days=rng.randrange(365))
        yield {
            "respondentId": f"R-{rng.randrange(10**9)}",
            "ageGroup": rng.choice(["18-29", "30-44", "45-64", "65+"]),
            "interview date": f"{day:%m/%d/%Y}",
            "state": rng.choice(["NY", "CA", "TX", "NA"]) if i % 60 else "Guam!",
            "children": str(min(int(rng.expovariate(0.8)), 9)),
            "income": str(int(rng.lognormvariate(10.5, 0.6))) if i != 7 else "99999999",
            "answer": rng.choice(["never", "rarely", "sometimes", "often", "always"]),
        }


def written(path: Path, rows: Sequence[Row], delimiter: str = ",", encoding: str = "utf-8") -> Path:
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def succeeded(*words: str | Path) -> Ran:
    ran = invoke("coordinator", *words)
    assert ran.code == 0, ran.err
    return ran


def drafted(job: Path) -> dict[str, Any]:
    found: dict[str, Any] = parse_yaml(job.read_text(encoding="utf-8"), "job")
    return found


def test_a_hospitals_table_in_three_commands(tmp_path: Path) -> None:
    folder = tmp_path / "a folder with blanks"
    folder.mkdir()
    table = written(folder / "Fälle 2023.csv", list(hospital()), ";", "cp1252")
    job = folder / "my job.yaml"
    ran = succeeded("draft", table, "--out", job, "--class", "verstorben")
    columns = drafted(job)["columns"]
    assert set(columns) == {"geb_datum", "PLZ", "Geschlecht", "Gewicht", "Stadium", "diagnosis", "verstorben"}
    born, code = columns["geb_datum"]["dates"], columns["PLZ"]["prefix"]
    assert born == {"from": "1930-01-01", "to": "2010-01-01", "step": "5y", "form": "DD.MM.YYYY"}
    assert code == {"values": ["01067", "01069", "10115", "10117", "80331"], "lengths": ["1", "3"]}
    assert columns["Geschlecht"]["suppress"] == ["m", "w"]
    assert columns["Stadium"]["order"]["values"] == ["I", "II", "III", "IV"]
    assert columns["Gewicht"]["numeric"]["max"] != "500"
    assert columns["diagnosis"]["role"] == "sensitive"
    for words in (
        "left out",
        "Fallnummer",
        "patient_name",
        "Bemerkung",
        "412,5",
        "divers",
        "domains become public",
    ):
        assert words in ran.out
    text = job.read_text(encoding="utf-8")
    for words in ("Fallnummer", "patient_name", "Bemerkung", "412", "divers", "Person 0", "B20"):
        assert words not in text
    succeeded("validate", job)
    run = succeeded("run", job, "--out", folder / "result")
    assert "outside the domain of PLZ" in run.err
    succeeded("verify", job, folder / "result")
    report = json.loads((folder / "result" / "report.json").read_text())
    assert report["rows"] == 600
    finer = [name for name, cut in report["cut"].items() if len(cut) > 1]
    assert len(finer) >= 2


def test_a_survey_with_one_edit(tmp_path: Path) -> None:
    table = written(tmp_path / "survey.csv", list(survey()))
    job = tmp_path / "job.yaml"
    ran = succeeded("draft", table, "--out", job, "--sensitive", "income")
    fields = drafted(job)
    columns = fields["columns"]
    assert fields["goal"] == "general"
    assert fields["data"]["missing"] == ["NA"]
    assert columns["ageGroup"]["order"]["values"] == ["18-29", "30-44", "45-64", "65+"]
    assert columns["interview date"]["dates"]["form"] == "MM/DD/YYYY"
    assert columns["state"]["suppress"] == ["CA", "NY", "TX"]
    assert columns["answer"]["order"]["values"] == ["never", "rarely", "sometimes", "often", "always"]
    assert columns["income"]["role"] == "sensitive"
    assert "99999999" in ran.out
    assert "respondentId" in ran.out
    assert not re.search(r"9999|Guam|respondentId|R-", job.read_text())
    job.write_text(job.read_text().replace("K: 5", "K: 7"))
    succeeded("run", job, "--out", tmp_path / "result")
    succeeded("verify", job, tmp_path / "result")
    with (tmp_path / "result" / "anonymized.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    report = json.loads((tmp_path / "result" / "report.json").read_text())
    assert report["data"]["used"] == 500
    assert len(rows) == 500 - report["withheld"]["rows"] >= 495
    assert len({row["ageGroup"] for row in rows}) > 1


def test_a_dp_draft_is_refused_until_confirmed(tmp_path: Path) -> None:
    table = written(tmp_path / "survey.csv", list(survey()))
    job = tmp_path / "job.yaml"
    succeeded("draft", table, "--out", job, "--model", "dp")
    succeeded("validate", job)
    columns = drafted(job)["columns"]
    assert columns
    assert all(column["from_data"] == "true" for column in columns.values())
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "result")
    assert ran.code == 2
    assert "was taken from the table (`from_data: true`)" in ran.err
    assert not (tmp_path / "result").exists()
    check = invoke("coordinator", "check", job)
    assert check.code == 2
    assert "500 rows read" in check.out
    assert "was taken from the table (`from_data: true`)" in check.err
    job.write_text(job.read_text().replace("from_data: true", "from_data: confirmed"))
    succeeded("check", job)
    succeeded("run", job, "--out", tmp_path / "result")
    succeeded("verify", job, tmp_path / "result")


def test_a_persons_rows_count_together(tmp_path: Path) -> None:
    rows = [{"who": f"p{i % 150}", "age": str(20 + i % 40), "sex": "fm"[i % 2]} for i in range(600)]
    table = written(tmp_path / "visits.csv", rows)
    succeeded("draft", table, "--out", tmp_path / "job.yaml", "--id", "who")
    fields = drafted(tmp_path / "job.yaml")
    assert fields["columns"]["who"] == {"role": "id"}
    assert fields["model"]["lkc"]["unit"] == "person"
    succeeded("run", tmp_path / "job.yaml", "--out", tmp_path / "result")
    succeeded("verify", tmp_path / "job.yaml", tmp_path / "result")


@pytest.mark.parametrize("model", ["lkc", "dp"])
def test_a_single_persons_rows_make_no_value_frequent(model: str, tmp_path: Path) -> None:
    """The town, the codes and the ends of ranges of a person with 14 visits are shown, and not written."""
    rows = [
        {
            "pid": f"p{i % 200}",
            "town": ["Bonn", "Köln"][i % 2],
            "weight": str(50 + i % 40),
            "came": f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}",
            "diagnosis": ["I21.4", "E11.9", "C50.9"][i % 3],
        }
        for i in range(600)
    ]
    one = {"pid": "one", "town": "Kleinkleckersdorf", "diagnosis": "B20.7"}
    rows += [{**one, "weight": str(301 + i), "came": f"1987-03-{1 + i:02d}"} for i in range(14)]
    table = written(tmp_path / "visits.csv", rows)
    out = tmp_path / "job.yaml"
    ran = succeeded("draft", table, "--out", out, "--id", "pid", "--model", model)
    text = out.read_text(encoding="utf-8")
    for words in ("Kleinkleckersdorf", "B20", "1987", "1980"):
        assert words not in text
    assert float(drafted(out)["columns"]["weight"]["numeric"]["max"]) <= 100
    assert "each end is reached by 10 people or more" in text
    assert "14 rows with 'Kleinkleckersdorf' (14): fewer than 10 people each" in ran.out


@pytest.mark.parametrize("name", ["employee_id", "hadm_id", "PatID", "pat_nr", "MitarbeiterNr", "visits"])
def test_people_count_where_ids_repeat(name: str, tmp_path: Path) -> None:
    """Nobody names the ids. The column `visits` is found by its values."""
    rng = random.Random(2)  # noqa: S311  the same each time, and no secret
    ids = [f"A-{i}" for i in range(1000, 1300)] if name == "visits" else rng.sample(range(1000, 9999), 300)
    rows = [
        {
            name: str(person),
            "town": "Kleinkleckersdorf" if person is ids[0] else ["Bonn", "Köln"][i % 2],
            "weight": str(301 if person is ids[0] else 50 + i % 40),
        }
        for i, person in enumerate(ids * 12)
    ]
    table = written(tmp_path / "visits.csv", rows)
    out = tmp_path / "job.yaml"
    ran = succeeded("draft", table, "--out", out)
    fields = drafted(out)
    assert set(fields["columns"]) == {"town", "weight"}
    assert fields["columns"]["town"]["suppress"] == ["Bonn", "Köln"]
    assert fields["columns"]["weight"]["numeric"]["max"] == "90"
    assert "12 rows with 'Kleinkleckersdorf' (12): fewer than 10 people each" in ran.out
    assert f"draft again with `--id {name}`" in ran.out


@pytest.mark.parametrize(("model", "counts"), [("lkc", "K counts rows"), ("dp", "epsilon protects a row")])
def test_programs_read_of_ids_that_repeat(tmp_path: Path, model: str, counts: str) -> None:
    """As the owner reads it on the console; a DP job has no K."""
    rows = [{"pid": f"p{i % 100}", "town": ["Bonn", "Köln"][i % 2]} for i in range(400)]
    table = written(tmp_path / "visits.csv", rows)
    command = ("draft", table, "--model", model, "--out")
    warning = f"values of pid repeat, and {counts}: if a person has several rows, draft again with `--id pid`"
    assert f"warning: {warning}\n" in succeeded(*command, tmp_path / "a.yaml").out
    ran = succeeded(*command, tmp_path / "b.yaml", "--format", "json")
    assert json.loads(ran.out)["columns"]["pid"]["warnings"] == [warning]


def test_people_count_by_every_column_of_ids(tmp_path: Path) -> None:
    """One patient sees 12 of 30 physicians."""
    rows = [
        {
            "physician_id": str(1000 + i % 30),
            "patient_id": f"p{person}",
            "town": "Kleinkleckersdorf" if person == 0 else ["Bonn", "Köln"][i % 2],
        }
        for i, person in enumerate([*range(300)] * 12 + [0] * 30)
    ]
    out = tmp_path / "job.yaml"
    ran = succeeded("draft", written(tmp_path / "visits.csv", rows), "--out", out)
    assert drafted(out)["columns"]["town"]["suppress"] == ["Bonn", "Köln"]
    for name in ("physician_id", "patient_id"):
        assert f"draft again with `--id {name}`" in ran.out


def test_a_draft_without_sensitive_columns_says_so(tmp_path: Path) -> None:
    rows = [{"age": str(20 + i % 40), "sex": "fm"[i % 2], "smokes": "yn"[i % 3 % 2]} for i in range(200)]
    table = written(tmp_path / "t.csv", rows)
    ran = succeeded("draft", table, "--out", tmp_path / "job.yaml")
    warning = (
        "warning: no column is sensitive: nothing bounds inferences; name a column by `--sensitive COLUMN`\n"
    )
    assert warning in ran.out
    assert "# No column is sensitive: nothing bounds inferences." in (tmp_path / "job.yaml").read_text()
    ran = succeeded("draft", table, "--out", tmp_path / "named.yaml", "--sensitive", "smokes")
    assert "nothing bounds inferences" not in ran.out + (tmp_path / "named.yaml").read_text()


def test_a_dp_draft_says_that_no_column_is_sensitive(tmp_path: Path) -> None:
    table = written(tmp_path / "survey.csv", list(survey()))
    words = "draft", table, "--model", "dp", "--out"
    ran = succeeded(*words, tmp_path / "job.yaml", "--sensitive", "answer")
    assert "`--sensitive answer`: a DP job protects all columns alike" in ran.out
    assert "protects all columns alike" not in succeeded(*words, tmp_path / "again.yaml").out
    assert "nothing bounds inferences" not in ran.out + (tmp_path / "job.yaml").read_text()


def test_two_spellings_stop_no_run(tmp_path: Path) -> None:
    illness = ["flu"] * 90 + ["Flu"] * 40 + ["FLU"] * 3 + ["cold"] * 80
    towns = ["Bonn"] * 70 + ["bonn"] * 60 + ["Lyon"] * 83
    both = zip(illness, towns, strict=True)
    rows = [{"illness": a, "town": b, "age": str(20 + i % 30)} for i, (a, b) in enumerate(both)]
    table = written(tmp_path / "t.csv", rows)
    succeeded("draft", table, "--out", tmp_path / "job.yaml")
    fields = drafted(tmp_path / "job.yaml")
    assert fields["data"]["map"] == {"illness": {"Flu": "flu"}, "town": {"bonn": "Bonn"}}
    assert "FLU" not in (tmp_path / "job.yaml").read_text()
    succeeded("run", tmp_path / "job.yaml", "--out", tmp_path / "result")
    succeeded("verify", tmp_path / "job.yaml", tmp_path / "result")


def test_formats_other_than_csv_and_a_separator(tmp_path: Path) -> None:
    table = written(tmp_path / "t.tsv", list(survey(200)), "\t")
    ran = succeeded("draft", table, "--out", tmp_path / "job.yaml", "--format", "json")
    told = json.loads(ran.out)
    assert told["columns"]["ageGroup"]["role"] == "qid"
    assert "role" not in told["columns"]["respondentId"]
    succeeded("run", tmp_path / "job.yaml", "--out", tmp_path / "result")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--id", "nobody"],
            "--id nobody: the table has no such column. What to do: name one of: respondentId,",
        ),
        (["--id", "state", "--class", "state"], "column state is named twice"),
        (["--class", "income"], "a class has from 2 to 20 values"),
        (["--class", "state", "--class", "answer"], "--class is given twice"),
        (["--model", "k"], "Invalid value for '--model'"),
    ],
)
def test_errors_say_what_to_name(tmp_path: Path, words: list[str], message: str) -> None:
    table = written(tmp_path / "survey.csv", list(survey(100)))
    ran = invoke("coordinator", "draft", table, "--out", tmp_path / "job.yaml", *words)
    assert ran.code == 2
    assert message in ran.err
    assert not (tmp_path / "job.yaml").exists()


@pytest.mark.parametrize("option", ["--id", "--sensitive", "--class"])
def test_a_named_column_needs_a_name_for_a_job(tmp_path: Path, option: str) -> None:
    rows = [{"=f": "uv"[i % 2], "town": "xyz"[i % 3]} for i in range(100)]
    ran = invoke(
        "coordinator",
        "draft",
        written(tmp_path / "t.csv", rows),
        "--out",
        tmp_path / "job.yaml",
        option,
        "=f",
    )
    assert ran.code == 2
    assert f"{option} =f: its name cannot stand in a job: a spreadsheet takes" in ran.err
    assert "rename the column in the table" in ran.err


@pytest.mark.parametrize("words", [["--model", "dp"], ["--parties", "north,south"]])
def test_a_class_of_rare_values_has_no_domain(tmp_path: Path, words: list[str]) -> None:
    rows = [{"town": "xyz"[i % 3], "rare": f"v{i % 12}", "one": f"v{int(i > 5)}"} for i in range(100)]
    table = written(tmp_path / "t.csv", rows)
    for name in ("rare", "one"):
        ran = invoke("coordinator", "draft", table, "--out", tmp_path / "job.yaml", "--class", name, *words)
        assert ran.code == 2
        assert f"--class {name}: fewer than 2 of its values have 10 records or more" in ran.err


def test_a_sensitive_column_of_rare_values_is_left_out_of_a_joint_draft(tmp_path: Path) -> None:
    """A joint job lists the values of a sensitive column, and a draft tells no rare value."""
    rows = [{"town": "xyz"[i % 3], "diagnosis": f"v{i % 30}"} for i in range(100)]
    job = tmp_path / "job.yaml"
    words = ["--sensitive", "diagnosis", "--parties", "north,south"]
    ran = succeeded("draft", written(tmp_path / "t.csv", rows), "--out", job, *words)
    assert set(drafted(job)["columns"]) == {"town"}
    assert "diagnosis: left out: named by --sensitive; no value has 10 records or more" in ran.out
    succeeded("validate", job)


def test_a_strict_draft_counts_no_people(tmp_path: Path) -> None:
    rows = [{"nr": f"p{i // 2}", "town": "xyz"[i % 3]} for i in range(100)]
    words = ["--id", "nr", "--parties", "north,south", "--mode", "strict"]
    table = written(tmp_path / "t.csv", rows)
    ran = invoke("coordinator", "draft", table, "--out", tmp_path / "job.yaml", *words)
    assert ran.code == 2
    assert "--mode strict counts records only, and ids of nr repeat" in ran.err
    assert "write --mode sealed" in ran.err


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    table = written(tmp_path / "survey.csv", list(survey(100)))
    (tmp_path / "job.yaml").write_text("mine")
    ran = invoke("coordinator", "draft", table, "--out", tmp_path / "job.yaml")
    assert ran.code == 2
    assert "drafts overwrite nothing" in ran.err
    assert (tmp_path / "job.yaml").read_text() == "mine"
    assert invoke("coordinator", "draft", tmp_path / "no.csv", "--out", tmp_path / "new.yaml").code == 2


def test_a_table_of_few_rows_has_no_draft(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", list(survey(8)))
    ran = invoke("coordinator", "draft", table, "--out", tmp_path / "job.yaml")
    assert ran.code != 0
    assert "no column of the table can be drafted" in ran.err
    assert not (tmp_path / "job.yaml").exists()


words = st.integers(1000, 9999).map(lambda n: f"val{n}x")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.dictionaries(words, st.integers(1, 40), min_size=1, max_size=12), min_size=1, max_size=4),
    st.sampled_from(["lkc", "dp"]),
)
def test_no_rare_value_is_written(tmp_path: Path, columns: list[dict[str, int]], model: str) -> None:
    """Compare the text of the job with the counts of the table."""
    cells = [[value for value, n in column.items() for _ in range(n)] for column in columns]
    rows = [
        {f"c{i}": column[row] if row < len(column) else "" for i, column in enumerate(cells)}
        for row in range(max(map(len, cells)))
    ]
    table = written(tmp_path / "t.csv", rows)
    job = tmp_path / "job.yaml"
    job.unlink(missing_ok=True)
    ran = invoke("coordinator", "draft", table, "--out", job, "--model", model)
    if ran.code:
        assert not job.exists()
        return
    text = job.read_text()
    for i in range(len(columns)):
        for value, n in Counter(row[f"c{i}"] for row in rows).items():
            if value and n < 10 and all(column.get(value, 0) < 10 for column in columns):
                assert value not in text
    assert yaml.safe_load(text)["columns"]
    assert invoke("coordinator", "validate", job).code == 0


@pytest.mark.parametrize("model", ["lkc", "dp"])
def test_a_class_whose_name_suggests_a_person(model: str, tmp_path: Path) -> None:
    """The owner named the column, so the job says that the column is meant."""
    rows = [{"age": str(20 + i % 40), "insurance": "yes" if i % 40 > 15 else "no"} for i in range(200)]
    table = written(tmp_path / "t.csv", rows)
    out = tmp_path / "job.yaml"
    assert (
        invoke("coordinator", "draft", table, "--out", out, "--class", "insurance", "--model", model).code
        == 0
    )
    assert "publish_as_is" in out.read_text()
    out.write_text(out.read_text().replace("from_data: true", "from_data: confirmed"))
    assert invoke("coordinator", "run", out, "--out", tmp_path / "out").code == 0


def test_a_scale_around_zero_is_published_whole(tmp_path: Path) -> None:
    rows = [
        {"mood": str(i % 5 - 2), "grade": f"{i % 5 - 2:+d}", "age": str(20 + i % 40)} for i in range(1000)
    ]
    table = written(tmp_path / "t.csv", rows)
    ran = succeeded("draft", table, "--out", tmp_path / "job.yaml")
    assert "warning: -2, -1 of mood are taken for numbers" in ran.out
    succeeded("run", tmp_path / "job.yaml", "--out", tmp_path / "out")
    with (tmp_path / "out" / "anonymized.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert "?" not in {row[name] for row in found for name in ("mood", "grade")}


def test_cells_that_map_makes_missing_are_counted(tmp_path: Path) -> None:
    rows = [{"age": str(20 + i % 40) if i % 10 else "-9", "sex": "fm"[i % 2]} for i in range(600)]
    table = written(tmp_path / "t.csv", rows)
    ran = succeeded("draft", table, "--out", tmp_path / "job.yaml")
    assert "warning: -9 in 60 rows of age count as missing" in ran.out
    assert "missing cells of age: '-9' in 60 rows" in succeeded("check", tmp_path / "job.yaml").out
    run = succeeded("run", tmp_path / "job.yaml", "--out", tmp_path / "out")
    assert "missing cells of age: '-9' in 60 rows" in run.err


def test_names_in_single_quotes_are_read_without_them(tmp_path: Path) -> None:
    rows = [f"'{20 + i % 40}','{'fm'[i % 2]}'" for i in range(200)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["'age','sex'", *rows]) + "\n")
    succeeded("draft", table, "--out", tmp_path / "job.yaml")
    fields = drafted(tmp_path / "job.yaml")
    assert set(fields["columns"]) == {"age", "sex"}
    assert fields["data"] == {"path": "t.csv", "quote": "'"}
    succeeded("run", tmp_path / "job.yaml", "--out", tmp_path / "out")
    assert "'" not in (tmp_path / "out" / "anonymized.csv").read_text()


def test_a_separator_that_is_named_stands_in_the_job(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("age/sex\n" + "".join(f"{20 + i % 40}/{'fm'[i % 2]}\n" for i in range(200)))
    succeeded("draft", table, "--out", tmp_path / "job.yaml", "--delimiter", "/")
    assert drafted(tmp_path / "job.yaml")["data"] == {"path": "t.csv", "delimiter": "/"}
    succeeded("run", tmp_path / "job.yaml", "--out", tmp_path / "out")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("")
    ran = invoke("coordinator", "draft", tmp_path / "t.csv", "--out", tmp_path / "job.yaml")
    assert "data-empty: the table is empty" in ran.err


def test_values_that_are_not_written_have_a_reason_each(tmp_path: Path) -> None:
    ages = [str(20 + i % 50) for i in range(500)] + ["19", "old"]
    words = ["=1+1"] * 20 + ["Bonn", "Kiel"] * 240 + ["Oslo", "Lyon"]
    rows = [{"age": age, "town": town} for age, town in zip(ages, words, strict=True)]
    ran = succeeded("draft", written(tmp_path / "t.csv", rows), "--out", tmp_path / "job.yaml")
    for line in (
        "age: 1 row with '19' (1): outside the range",
        "age: 1 row with 'old' (1): no number",
        "town: 2 rows with 'Lyon' (1), 'Oslo' (1): fewer than 10 records each",
        "town: 20 rows with '=1+1' (20): no text for a release",
    ):
        assert f"  {line}\n" in ran.out


def stays(n: int = 200, n_wrong: int = 3) -> Iterator[Row]:
    """Rows of stays with three dates in order; some discharges lie before the admission."""
    for i in range(n):
        admitted = date(2024, 1, 1) + timedelta(days=i % 150)
        discharged = admitted + timedelta(days=-2 if i < n_wrong else i % 9)
        billed = max(admitted, discharged) + timedelta(days=5 + i % 20)
        yield {
            "billed": str(billed),
            "admitted": str(admitted),
            "discharged": str(discharged),
            "born": str(date(1950, 1, 1) + timedelta(days=i * 40)),
        }


def test_a_dp_draft_orders_dates(tmp_path: Path) -> None:
    """The order holds but for three rows, of which the owner alone reads; check counts them."""
    table, job = written(tmp_path / "stays.csv", list(stays())), tmp_path / "job.yaml"
    ran = succeeded("draft", table, "--out", job, "--model", "dp")
    text = job.read_text()
    assert "order: [admitted, discharged, billed]" in text
    assert "Remove `order` if the order is no rule" in text
    assert "3 rows have discharged before admitted, against `order`" in ran.out
    assert "3 rows" not in text
    job.write_text(text.replace("from_data: true", "from_data: confirmed"))
    checked = succeeded("check", job)
    assert "3 rows have discharged below admitted, of 200 rows with both" in checked.out
    assert "no row of 200 rows has billed below discharged" in checked.out
    assert "`order`" not in succeeded("draft", table, "--out", tmp_path / "lkc.yaml").out
    assert "order:" not in (tmp_path / "lkc.yaml").read_text()


def test_dates_with_points_beside_decimal_commas_are_counted(tmp_path: Path) -> None:
    """A point of a date is no separator of thousands."""
    rows = [
        {
            "admitted": f"{1 + i % 20:02}.03.2024",
            "discharged": f"{3 + i % 20:02}.03.2024",
            "dose": f"{i % 9},5",
        }
        for i in range(60)
    ]
    rows[7]["discharged"] = "01.01.2024"
    lines = [";".join(row.values()) for row in ({key: key for key in rows[0]}, *rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    dates = "dates: {from: 2024-01-01, to: 2024-05-01, step: week, form: DD.MM.YYYY}"
    (tmp_path / "job.yaml").write_text(
        "version: 1\nname: t\npartition: single\ngoal: general\ndata: {path: t.csv}\n"
        "model: {dp: {method: synthetic, epsilon: 1, order: [admitted, discharged]}}\ncolumns:\n"
        f"  admitted: {{role: qid, {dates}}}\n  discharged: {{role: qid, {dates}}}\n"
        "  dose: {role: qid, numeric: {min: 0, max: 10, step: 1}}\n"
    )
    out = succeeded("check", tmp_path / "job.yaml").out
    assert "1 row has discharged below admitted, of 60 rows with both" in out


@pytest.mark.parametrize("n_wrong", [10, 200])
def test_dates_that_often_change_places_have_no_order(tmp_path: Path, n_wrong: int) -> None:
    rows = [{key: row[key] for key in ("admitted", "discharged")} for row in stays(n_wrong=n_wrong)]
    table, job = written(tmp_path / "stays.csv", rows), tmp_path / "job.yaml"
    succeeded("draft", table, "--out", job, "--model", "dp")
    order = "order: [discharged, admitted]" if n_wrong == 200 else "order:"
    assert (order in job.read_text()) == (n_wrong == 200)


def simulated(job: Path, rows: Sequence[Row], parties: Sequence[str], out: Path) -> Ran:
    """Cut a table into the tables of the parties, and run the job in this process."""
    tables = [written(job.parent / f"{name}.csv", rows[i :: len(parties)]) for i, name in enumerate(parties)]
    data = [f"--data={name}={table}" for name, table in zip(parties, tables, strict=True)]
    return invoke("coordinator", "simulate", job, *data, "--in-process", "--out", out)


@pytest.mark.by_lot(2)
@pytest.mark.parametrize(
    ("parties", "mode", "more"),
    [
        (["north", "south"], "sealed", []),
        (["north", "south"], "sealed", ["--id", "patient"]),
        (["north", "south"], "strict", []),
        (["north", "south", "west"], "leader", ["--class", "died"]),
    ],
)
def test_a_joint_draft_runs_as_it_is(tmp_path: Path, parties: list[str], mode: str, more: list[str]) -> None:
    """The table is one of all parties together; the draft lists its values, and has no key of a single holder."""
    towns, ills = ("Bonn", "Lyon", "Gent"), ("I21.4", "E11.9", "J45.0", "C50.9")
    rows = [
        {
            "patient": f"p{i // 2}",
            "age": str(20 + (i * 7) % 60),
            "town": towns[i % 3],
            "diagnosis": ills[i // 3 % 4],
            "died": "NY"[i // 5 % 2],
        }
        for i in range(240)
    ]
    table, job = written(tmp_path / "all.csv", rows), tmp_path / "job.yaml"
    ran = succeeded(
        "draft",
        table,
        "--out",
        job,
        "--sensitive",
        "diagnosis",
        "--parties",
        ",".join(parties),
        "--mode",
        mode,
        *more,
    )
    assert f"coordinator simulate '{job}' --data north=TABLE --data south=TABLE" in ran.out
    fields = drafted(job)
    assert (list(fields["parties"]), fields["disclosure"], fields["partition"]) == (
        parties,
        mode,
        "horizontal",
    )
    assert "data" not in fields
    assert "withhold" not in fields["model"]["lkc"]
    assert not any("outside" in column for column in fields["columns"].values())
    assert fields["columns"]["diagnosis"]["domain"] == sorted(ills)
    made = simulated(job, rows, parties, tmp_path / "out")
    assert made.code == 0, made.err
    succeeded("verify", job, tmp_path / "out")


def test_a_joint_draft_of_synthetic_rows(tmp_path: Path) -> None:
    table, job = written(tmp_path / "stays.csv", list(stays())), tmp_path / "job.yaml"
    succeeded("draft", table, "--out", job, "--model", "dp", "--parties", "north, south")
    fields = drafted(job)
    assert fields["model"]["dp"]["order"] == ["admitted", "discharged", "billed"]
    assert "disclosure" not in fields
    refused = simulated(job, list(stays()), ["north", "south"], tmp_path / "out")
    assert "from_data" in refused.err
    job.write_text(job.read_text().replace("from_data: true", "from_data: confirmed"))
    made = simulated(job, list(stays()), ["north", "south"], tmp_path / "out")
    assert made.code == 0, made.err


def test_the_owner_of_a_joint_draft_is_told_its_own_words(tmp_path: Path) -> None:
    """Marks of missing cells belong into the owner's configuration. A rare value stops a run, as the draft says."""
    rows = [{"town": ("Bonn", "Lyon", "NA")[i % 3], "sex": "FM"[i % 2]} for i in range(90)]
    table, job = written(tmp_path / "t.csv", [*rows, {"town": "Guam", "sex": "F"}]), tmp_path / "job.yaml"
    ran = succeeded("draft", table, "--out", job, "--parties", "north,south")
    assert (
        "the owner of this table writes in its configuration:\n  data: {path: TABLE, missing: [NA]}"
        in ran.out
    )
    assert "such values stop a run, unless the job lists them or the owner of a table maps them" in ran.out
    assert "Guam" not in job.read_text()
    refused = simulated(job, [{"town": "Guam", "sex": "F"}, *rows[:8]], ["north", "south"], tmp_path / "out")
    assert "data-unknown-value" in refused.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mode", "strict"], "--mode strict is for joint jobs"),
        (["--parties", "north"], "--parties names 1"),
        (["--parties", "north,south", "--mode", "leader"], "name 3 parties or more"),
        (["--parties", "north,north"], "'north' cannot name a party"),
        (["--parties", "north,the south"], "'the south' cannot name a party"),
        (["--parties", "north,south", "--mode", "strict", "--model", "dp"], "--mode strict is for LKC jobs"),
    ],
)
def test_wrong_parties_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    table = written(tmp_path / "t.csv", [{"sex": "FM"[i % 2]} for i in range(40)])
    ran = invoke("coordinator", "draft", table, "--out", tmp_path / "job.yaml", *words)
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert not (tmp_path / "job.yaml").exists()
