"""`coordinator explore`: a table of requirements on the owner's console, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.support import jobs
from tests.support.commands import Ran, invoke, listing
from tests.support.dp_jobs import dp_single
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import COLUMNS, joint_job, single_job, vertical_job
from tests.support.wards import wards_job


def job_of(folder: Path, fields: dict[str, Any] | None = None, n_rows: int = 90) -> Path:
    path = write_job(folder, fields or single_job())
    jobs.write_csv(folder / "table.csv", sample_rows(n_rows), COLUMNS)
    return path


def explored(*arguments: str | Path) -> dict[str, Any]:
    ran = done(*arguments, "--format", "json")
    found = json.loads(ran.out)
    assert isinstance(found, dict)
    return found


def done(*arguments: str | Path) -> Ran:
    ran = invoke("coordinator", "explore", *arguments)
    assert ran.code == 0, ran.err
    return ran


def refused(*arguments: str | Path) -> dict[str, Any]:
    ran = invoke("coordinator", "explore", *arguments, "--format", "json")
    assert ran.code == 2
    assert ran.out == ""
    return ran.problem


def test_what_is_printed(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    before = listing(tmp_path)
    ran = done(job, "--K", "5,91", "--L", "1,all")
    head, titles, *rows, own = ran.out.splitlines()
    assert head == "sample: L=2 K=2 C=1/2; 90 rows, requirements: 4"
    assert titles.split() == [
        "K",
        "L",
        "loss",
        "groups",
        "alone",
        "below",
        "K",
        "discernibility",
        "whole",
        "columns",
    ]
    assert [row.split()[:2] for row in rows] == [["5", "1"], ["91", "1"], ["5", "all"], ["91", "all"]]
    assert "cannot be met: the fully generalized table already violates K" in rows[1]
    assert len({row.index("%") for row in rows if "%" in row}) == 1
    assert "not for publication" in own
    assert "N26" in own
    assert listing(tmp_path) == before


def test_figures_as_json(tmp_path: Path) -> None:
    found = explored(job_of(tmp_path), "--K", "2,91", "--C", "0.5,3/5")
    assert {key: found[key] for key in ("job", "requirement", "rows")} == {
        "job": "sample",
        "requirement": "L=2 K=2 C=1/2",
        "rows": 90,
    }
    first, second, third, _ = found["points"]
    asked = {"K": 2, "L": 2, "C": {"surgery": "1/2"}, "goal": "classification"}
    assert {key: first[key] for key in asked} == asked
    assert set(first) == {
        *asked,
        "ncp",
        "generalization_loss",
        "whole",
        "rows",
        "withheld",
        "leaf_partitions",
        "unique",
        "below_k",
    } | {"discernibility_ratio"}
    assert set(second) == {*asked, "unmet"}
    assert third["C"] == {"surgery": "3/5"}


def test_columns_that_differ_are_shown(tmp_path: Path) -> None:
    job = job_of(tmp_path, single_job(model={"lkc": {"L": "2", "K": "5", "C": "0.4", "withhold": "1/10"}}))
    out = done(job, "--goal", "general,classification", "--C", "0.4,0.5").out
    assert out.splitlines()[1].split()[:4] == ["K", "L", "C", "goal"]
    assert " 2/5  " in out
    assert "  classification  " in out


def test_the_ledger_is_not_touched(tmp_path: Path) -> None:
    """A job that was released before is explored without an entry."""
    job = job_of(tmp_path)
    ledger = tmp_path / "ledger.jsonl"
    assert invoke("coordinator", "run", job, "--out", tmp_path / "out", "--ledger", ledger).code == 0
    before = {
        name: (tmp_path / name).read_bytes() for name in listing(tmp_path) if (tmp_path / name).is_file()
    }
    done(job, "--K", "2,3", "--suggest")
    after = {
        name: (tmp_path / name).read_bytes() for name in listing(tmp_path) if (tmp_path / name).is_file()
    }
    assert after == before


def test_the_picture(tmp_path: Path) -> None:
    job, file = job_of(tmp_path), tmp_path / "loss.svg"
    ran = done(job, "--K", "2,5,91", "--L", "1,2", "--picture", file)
    assert f"picture: {file}" in ran.out
    svg = ElementTree.parse(file).getroot()  # noqa: S314  our own file
    tags = [each.tag.rpartition("}")[2] for each in svg.iter()]
    assert (tags.count("circle"), tags.count("path")) == (4, 2)
    assert file.stat().st_mode & 0o077 == 0
    problem = refused(job, "--K", "2", "--picture", file)
    assert problem["error"] == "output-exists"
    assert problem["remedy"] == "name a new file; nothing is overwritten"


def test_a_picture_has_the_name_of_its_kind(tmp_path: Path) -> None:
    problem = refused(job_of(tmp_path), "--picture", tmp_path / "loss.png")
    assert (problem["error"], problem["remedy"]) == ("usage", "write a name that ends in .svg")
    assert not (tmp_path / "loss.png").exists()


def test_a_picture_has_a_folder(tmp_path: Path) -> None:
    problem = refused(job_of(tmp_path), "--picture", tmp_path / "none" / "loss.svg")
    assert problem["error"] == "file-missing"


def test_suggestions(tmp_path: Path) -> None:
    job = job_of(tmp_path, single_job(goal="general", model={"lkc": {"L": "2", "K": "9", "C": "0.4"}}))
    out = done(job, "--suggest").out
    assert "single changes that free the most detail, from L=2 K=9 C=2/5:" in out
    assert "\n  that protect less:\n    `" in out
    assert " lowers the mean loss from " in out
    found = explored(job, "--suggest")["suggested"]
    first = found["best"][0]
    assert f"    {first['sentence']}" in out
    assert first["loss_before"] == found["loss"] > first["loss_after"]
    assert set(first) == {"change", "changes", "sentence", "loss_before", "loss_after", "weaker", "figures"}


def test_a_suggestion_of_a_single_size(tmp_path: Path) -> None:
    """Four rare values block a step: K one smaller frees the column."""
    rows = [{**row, "job": "Mover" if i > 3 else "Lawyer"} for i, row in enumerate(sample_rows(100))]
    columns = {"job": {**COLUMNS["job"], "refine": "children"}}
    fields = single_job(goal="general", columns=columns, model={"lkc": {"L": "1", "K": "5"}})
    job = job_of(tmp_path, fields)
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    out = done(job, "--suggest").out
    assert "Weaker: groups of 4 records become possible." in out


def test_nothing_to_suggest(tmp_path: Path) -> None:
    """Columns with a single value cannot become finer."""
    rows = [{**row, "job": "Mover", "age": "5"} for row in sample_rows(40)]
    job = job_of(tmp_path, single_job(goal="general", model={"lkc": {"L": "1", "K": "1", "C": "0.9"}}))
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    found = explored(job, "--suggest")["suggested"]
    assert (found["best"], found["loss"], list(found["whole"])) == ([], 0.5, ["age"])
    assert f"none of {found['tried']} changes of L=1 K=1 C=9/10 frees detail" in done(job, "--suggest").out


def test_a_goal_that_frees_detail_is_suggested(tmp_path: Path) -> None:
    """Reasons of columns stand above the heading of the changes, and all runs are counted once."""
    rows = [{**row, "transfused": "YN"[number % 2]} for number, row in enumerate(sample_rows(90))]
    job = job_of(tmp_path)
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    ran = done(job, "--suggest", "--K", "2,3")
    lines = ran.out.splitlines()
    (heading,) = [number for number, line in enumerate(lines) if line.startswith("single changes")]
    assert any(" stays whole: " in line for line in lines[:heading])
    assert lines[heading + 1] == "  that keep K, L and C:"
    assert lines[heading + 2].startswith("    `goal: general` lowers the mean loss from ")
    assert "Groups predict transfused less well" in lines[heading + 2]
    counts = [line.split("run ")[1].split(" · ")[0] for line in ran.err.splitlines() if "run " in line]
    most = len(counts)
    assert counts == [f"{number} of at most {most}" for number in range(1, most + 1)]


def test_an_l_above_all_quasi_identifiers_is_told(tmp_path: Path) -> None:
    ran = done(job_of(tmp_path), "--L", "1,2,7,9,all")
    assert "--L 7, 9 is above the number of quasi-identifiers (2): the same as all\n" in ran.err
    assert "above the number" not in done(job_of(tmp_path / "other"), "--L", "1,2,all").err


@pytest.mark.parametrize("fields", [joint_job(), joint_job(disclosure="sealed", leader=None)])
def test_a_horizontal_job_on_the_own_table_of_a_party(tmp_path: Path, fields: dict[str, Any]) -> None:
    job = job_of(tmp_path, {**fields, "goal": "general"})
    problem = refused(job)
    assert "every point would be a release" in problem["message"]
    assert "--data FILE" in problem["remedy"]
    table = tmp_path / "table.csv"
    assert "its figures will differ" in done(job, "--data", table, "--K", "2,5").out
    alone = explored(job_of(tmp_path / "alone", single_job(goal="general")), "--K", "2,5")
    assert explored(job, "--data", table, "--K", "2,5")["points"] == alone["points"]


def test_a_partys_words_for_its_table(tmp_path: Path) -> None:
    """A joint job has no words of a party: the configuration of the party has them."""
    job, table = job_of(tmp_path, {**joint_job(), "goal": "general"}), tmp_path / "table.csv"
    plain = explored(job, "--data", table, "--K", "2,5")
    table.write_text(table.read_text().replace("age,", "Alter,", 1).replace("surgery", "OP"))
    assert invoke("party", "init", "--name", "north", "--dir", tmp_path / "north", "--data", table).code == 0
    config = tmp_path / "north" / "party.yaml"
    fields = yaml.load(config.read_text(), yaml.BaseLoader)  # noqa: S506
    words = {"rename": {"Alter": "age", "OP": "surgery"}}
    config.write_text(yaml.safe_dump({**fields, "data": {"csv": {"path": str(table), **words}}}))
    assert invoke("coordinator", "explore", job, "--data", table).code != 0
    assert explored(job, "--config", config, "--K", "2,5")["points"] == plain["points"]
    assert (
        "--config and --data name a table each"
        in refused(job, "--config", config, "--data", table)["message"]
    )
    assert "give --config party.yaml instead" in refused(job)["remedy"]


def test_another_table_than_that_of_the_job(tmp_path: Path) -> None:
    job, other = job_of(tmp_path), tmp_path / "other.csv"
    jobs.write_csv(other, sample_rows(60), COLUMNS)
    other.write_text(other.read_text().replace(",", ";"))
    assert explored(job, "--data", other, "--delimiter", ";")["rows"] == 60


def test_words_of_the_job_apply_to_another_table(tmp_path: Path) -> None:
    """The form of a text applies to a text alone; what the command line says comes first."""
    words = {"path": "table.csv", "rename": {"Alter": "age"}, "delimiter": "/", "quote": "'"}
    job = job_of(tmp_path, single_job(data=words))
    jobs.write_csv(tmp_path / "own.csv", sample_rows(60), COLUMNS)
    own = (tmp_path / "own.csv").read_text().replace("age,", "Alter,", 1)
    (tmp_path / "own.csv").write_text(own.replace(",", "/"))
    (tmp_path / "semicolons.csv").write_text(own.replace(",", ";"))
    (tmp_path / "tabs.tsv").write_text(own.replace(",", "\t"))
    assert explored(job, "--data", tmp_path / "own.csv")["rows"] == 60
    assert explored(job, "--data", tmp_path / "semicolons.csv", "--delimiter", ";")["rows"] == 60
    assert explored(job, "--data", tmp_path / "tabs.tsv")["rows"] == 60


@pytest.mark.parametrize("command", [["explore"], ["evaluate"], ["clusters", "fit", "--count", "2"]])
def test_a_separator_without_a_table(command: list[str], tmp_path: Path) -> None:
    job = job_of(tmp_path)
    out = ["--out", tmp_path / "model.json"] if "fit" in command else []
    ran = invoke("coordinator", *command, job, *out, "--delimiter", ";", "--format", "json")
    assert (ran.code, ran.problem["error"]) == (2, "usage")
    assert (
        ran.problem["message"]
        == "--delimiter is for the table of --data; the job says how its own table is read"
    )
    assert ran.problem["remedy"] == "leave --delimiter out, or say `delimiter` under `data` in the job"


@pytest.mark.parametrize(
    ("fields", "says"),
    [(dp_single(), "LKC jobs"), (wards_job(), "LKC jobs"), (vertical_job(), "vertical job")],
    ids=["dp", "sequences", "vertical"],
)
def test_other_jobs_are_refused(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    problem = refused(write_job(tmp_path, fields))
    assert problem["error"] == "usage"
    assert says in problem["message"]
    assert not problem["remedy"].startswith("see ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--K", "5,none"), "--K 5,none: 'none' is no possible K"),
        (("--K", "0"), "--K 0: '0' is no possible K"),
        (("--K", ""), "--K : '' is no possible K"),
        (("--L", "1,some"), "--L 1,some: 'some' is no possible L"),
        (("--C", "0.2,2"), "--C 0.2,2: '2' is no possible C"),
        (("--goal", "clusters"), "--goal clusters: 'clusters' is no possible goal"),
        (("--K", ",".join(map(str, range(1, 502)))), "501 requirements are more than 500"),
    ],
)
def test_lists_that_make_no_sense(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    problem = refused(job_of(tmp_path), *arguments)
    assert says in problem["message"]
    assert problem["remedy"].startswith(("write ", "give fewer"))


def test_a_c_needs_a_sensitive_column(tmp_path: Path) -> None:
    job = job_of(
        tmp_path,
        single_job(goal="general", columns={"job": COLUMNS["job"]}, model={"lkc": {"L": "1", "K": "2"}}),
    )
    problem = refused(job, "--C", "0.5")
    assert "the job has no column of `role: sensitive`" in problem["message"]
    assert problem["remedy"].startswith("leave --C out, or give the column")


def test_values_of_a_list_are_tried_once(tmp_path: Path) -> None:
    found = explored(job_of(tmp_path), "--K", "5, 5,2", "--L", "all")
    assert [(point["K"], point["L"]) for point in found["points"]] == [(5, "all"), (2, "all")]
