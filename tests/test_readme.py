"""What README.md shows works as it is written."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from tests.support.bare import bare
from tests.support.commands import invoke
from tests.support.network import command

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def started(words: list[str]) -> list[str]:
    """The process of a command that README shows."""
    return command(*words[1:], program=words[0])


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"make ([a-z-]+)", README))
    assert named
    assert named <= targets


def test_the_map_names_every_top_level_folder() -> None:
    shown = set(re.findall(r"^([a-z]+)/ ", README, re.MULTILINE))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))}
    assert shown >= folders - {"out", "build", "dist"} - {f for f in folders if f.endswith(".egg-info")}


def test_local_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(((?!http)[^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_bring_your_own_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job file and the three commands, to the letter."""
    (job,) = blocks("yaml")
    (tmp_path / "job.yaml").write_text(job)
    (tmp_path / "cities.csv").write_text("Paris;France;*\nLyon;France;*\nBonn;Germany;*\n")
    rows = ["age,job,city,diagnosis,died"]
    for i in range(300):
        job_name = ("Clerk", "Lawyer", "Carpenter", "Mover")[i % 4]
        city = ("Paris", "Lyon", "Bonn")[i % 3]
        rows.append(
            f"{20 + i % 60},{job_name},{city},{'HIV' if i % 9 == 0 else 'Flu'},{'Y' if i % 4 > 1 else 'N'}"
        )
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    commands = next(block for block in blocks("sh") if "coordinator validate" in block).strip().splitlines()
    assert [line.split()[:2] for line in commands] == [
        ["coordinator", "validate"],
        ["coordinator", "run"],
        ["coordinator", "verify"],
    ]
    monkeypatch.chdir(tmp_path)
    for line in commands:
        program, *words = line.split()
        done = invoke(program, *words)
        assert done.code == 0, done.err
    report = json.loads((tmp_path / "result" / "report.json").read_text())
    assert report["rows"] == 300
    assert set(report["stopped"]) == {"age", "job", "city"}
    with (tmp_path / "result" / "anonymized.csv").open() as file:
        assert {row["job"] for row in csv.DictReader(file)} == {"Office", "Craft"}  # nobody has `?`


def test_the_vertical_example(tmp_path: Path) -> None:
    """The command, to the letter but for where the result goes."""
    (line,) = [line for block in blocks("sh") for line in block.splitlines() if "examples/loan" in line]
    words = line.split()
    assert words[-2:] == ["--out", "loan"]
    subprocess.run(
        started([*words[:-1], str(tmp_path / "loan")]), cwd=ROOT, check=True, capture_output=True, env=bare()
    )
    report = json.loads((tmp_path / "loan" / "report.json").read_text())
    assert (report["partition"], report["rows"]) == ("vertical", 2400)


def test_the_wards_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, without daemons; the path shown is a patient's, and what is shown of it is in the table."""
    monkeypatch.chdir(ROOT)
    (words,) = commands_about("examples/wards/job.yaml", README)
    assert words[-2:] == ["--out", "stays"]
    out = tmp_path / "stays"
    done = invoke("coordinator", *words[1:-1], str(out), "--in-process")
    assert done.code == 0, done.err
    report = json.loads((out / "report.json").read_text())
    with (out / "anonymized.csv").open(newline="") as file:
        seen = paths(csv.DictReader(file), "record")
    raw: list[Stay] = []
    for name in report["parties"]:
        with (ROOT / f"examples/wards/hospital-{name[-1]}.csv").open(newline="") as file:
            raw += paths(csv.DictReader(file), "stay")
    before, after = shown_path()
    assert before in map(in_cells, raw)
    assert after in seen
    assert before not in seen
    readings, gone = map(
        int, re.findall(r"Of ([0-9,]+) readings ([0-9]+) are gone", README.replace(",", ""))[0]
    )
    assert sum(len(in_cells(stay)) for stay in raw) == readings
    assert sum(map(len, seen)) == report["instances"] == readings - gone
    own = [json.loads((out / "own" / f"{name}.json").read_text())["records"] for name in report["parties"]]
    assert sum(each["lost"]["instances"] for each in own) == gone
    assert [each["exclusion"]["exposed"] for each in own] == [0, 0, 0]


Stay = frozenset[tuple[str, str]]
"""When, and in which ward."""


def paths(rows: Iterable[dict[str, str]], record: str) -> list[Stay]:
    """The readings of every record."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in rows:
        found[row[record]] |= {(row["entered"], row["ward"])} if row["ward"] else set()
    return [frozenset(readings) for readings in found.values()]


def in_cells(stay: Stay) -> Stay:
    """With the hours since its first reading, in steps of six; of wards in one step the first, by time and name."""
    order = yaml.safe_load((ROOT / "examples/wards/job.yaml").read_text())["columns"]["ward"]["domain"]
    readings = sorted((datetime.fromisoformat(at), order.index(ward)) for at, ward in stay)
    start, found = readings[0][0], {}
    for time, place in readings:
        hours = (time - start) // timedelta(hours=6) * 6
        found.setdefault(f"{hours // 24}d{hours % 24:02}:00", order[place])
    return frozenset(found.items())


def shown_path() -> tuple[Stay, Stay]:
    """The path before and after that README shows."""
    section = README.split("## Where people went")[1].split("\n## ")[0]
    (times, _, before, after) = [
        line.strip("|").split("|")[1:] for line in section.splitlines() if line[:1] == "|"
    ]
    return tuple(  # type: ignore[return-value]
        frozenset((at.strip(), ward.strip()) for at, ward in zip(times, wards, strict=True) if ward.strip())
        for wards in (before, after)
    )


def commands_about(job: str, text: str) -> list[list[str]]:
    """The commands that are shown for an example's job file, as words."""
    shown = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line.split() for block in shown for line in block.splitlines() if job in line]


def test_the_dp_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of docs/dp.md, but for where the result goes, and without daemons; README shows the same run."""
    monkeypatch.chdir(ROOT)
    job = "examples/transfusion/dp.yaml"
    validate, simulate, verify = commands_about(job, (ROOT / "docs" / "dp.md").read_text())
    (readme,) = commands_about(job, README)
    assert [*readme, "--as-records"] == simulate
    assert [words[1] for words in (validate, simulate, verify)] == ["validate", "simulate", "verify"]
    for words in (validate, [*simulate, "--in-process"], verify):
        done = invoke(words[0], *[str(tmp_path / word) if word == "counts" else word for word in words[1:]])
        assert done.code == 0, done.err
    report = json.loads((tmp_path / "counts" / "report.json").read_text())
    assert sum(Fraction(charge["epsilon"]) for charge in report["privacy"]["account"]) == 1


def test_the_vertical_dp_example(tmp_path: Path) -> None:
    tables = [f"--data={name}={ROOT}/examples/loan/{name}.csv" for name in ("loan-company", "bank")]
    job = ROOT / "examples" / "loan" / "dp.yaml"
    done = invoke("coordinator", "simulate", job, *tables, "--out", tmp_path / "out", "--in-process")
    assert done.code == 0, done.err
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0


@pytest.mark.parametrize(
    ("example", "out", "table"), [("transfusion", "surgeries", ["sex"]), ("loan", "customers", None)]
)
def test_the_joint_synthetic_examples(
    example: str, out: str, table: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of docs/dp.md, without daemons; and table 8 of the first is the one that the page reads."""
    monkeypatch.chdir(ROOT)
    (words,) = commands_about(f"examples/{example}/synthetic.yaml", (ROOT / "docs" / "dp.md").read_text())
    done = invoke(
        words[0], *[str(tmp_path / word) if word == out else word for word in words[1:]], "--in-process"
    )
    assert done.code == 0, done.err
    found = json.loads((tmp_path / out / "report.json").read_text())["tables"][7]
    assert found["table"] == 8
    assert table is None or (found["columns"], found["by"]) == (table, "bin and class")


def test_three_machines_commands_exist(tmp_path: Path) -> None:
    """Every `party` and `coordinator` command that is shown is one, with these options."""
    shown = [
        line.split("#")[0].split()
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith(("party ", "coordinator "))
    ]
    assert len(shown) > 8
    for words in shown:
        depth = 3 if words[1] == "peers" else 2
        helped = invoke(*words[:depth], "--help")
        assert helped.code == 0
        for option in (word for word in words if word.startswith("--")):
            assert option in helped.out, f"{' '.join(words[:depth])} has no {option}"
