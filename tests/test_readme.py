"""Commands and files of README.md and the guides work as they are written."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from jobs.errors import ConfigError
from jobs.file.yaml_text import parse_yaml
from jobs.loading import parse_job
from tests.support.bare import bare
from tests.support.commands import Ran, invoke
from tests.support.network import call, command

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide"
PAGES = [ROOT / "README.md", *sorted(GUIDE.glob("*.md"))]
README, FIRST_TABLE, HOSPITALS, TWO_HOLDERS, SEQUENCES, DP = (
    path.read_text()
    for path in (
        ROOT / "README.md",
        GUIDE / "first-table.md",
        GUIDE / "hospitals.md",
        GUIDE / "two-holders.md",
        GUIDE / "sequences.md",
        GUIDE / "dp.md",
    )
)
IN_PROCESS = "--in-process"
"""For jobs of a model that tests/end_to_end runs with daemons as processes; all other examples start daemons."""
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)


def blocks(language: str, text: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def lines_of(text: str) -> list[str]:
    """Return every command that a page shows."""
    return [line for block in blocks("sh", text) for line in block.splitlines()]


def commands_about(job: str, text: str) -> list[list[str]]:
    """Return the commands that are shown for an example's job file, as words."""
    return [line.split() for line in lines_of(text) if job in line]


def started(words: list[str]) -> list[str]:
    """Return the process of a command that a page shows."""
    return command(*words[1:], program=words[0])


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a process in a folder, in a bare environment. It must succeed."""
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, env=bare())


def ended(program: str, *words: str | Path) -> Ran:
    """Run a process in the current folder, in a bare environment, to its end."""
    return call(*words, program=program)


def done(words: list[str]) -> Ran:
    """Run a shown command in a bare environment. It must succeed."""
    ran = ended(*words)
    assert ran.code == 0, ran.err
    return ran


def assert_printed(shown: str, out: str, read: Callable[[str], str] = str.rstrip) -> None:
    """Find every line of an output that a page shows, in order; `…` stands for anything.

    read:  what of a line is compared.
    """
    left = [read(line) for line in out.splitlines()]
    for line in shown.splitlines():
        pattern = ".*".join(re.escape(part) for part in read(line).split("…"))
        found = [place for place, printed in enumerate(left) if re.fullmatch(pattern, printed)]
        assert found, f"not printed: {line}"
        left = left[found[0] + 1 :]


def without_numbers(line: str) -> str:
    """Return a line of which only the words are the same in every run."""
    return re.sub(r"[0-9][0-9.,]*", "0", line.rstrip())


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 173


@each_page
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert named or page.name != "README.md"
    assert named <= targets


def test_the_map_names_every_top_level_folder() -> None:
    shown = set(re.findall(r"(?:^|  )([a-z]+)/  ", README, re.MULTILINE))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))}
    assert shown >= folders - {"out", "build", "dist"} - {f for f in folders if f.endswith(".egg-info")}


def headings(path: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@each_page
def test_local_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(((?!http)[^)]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        assert (page.parent / path).exists(), target
        assert not heading or heading in headings(page.parent / path), target


# ---- README


@pytest.fixture
def demo(demo_in_a_c_locale: tuple[str, Path]) -> tuple[str, Path]:
    """Return what the demo printed, and its result folder: three real daemons."""
    printed, folder = demo_in_a_c_locale
    (out,) = (folder / "out").iterdir()
    return printed, out


def test_the_demo(demo: tuple[str, Path]) -> None:
    """Compare with the output that README shows; its rows are rows of the table, which stand in random order."""
    printed, out = demo
    with (out / "anonymized.csv").open(newline="") as file:
        table = {tuple(row) for row in csv.reader(file)}
    shown, _ = blocks("text", README)
    rows = [tuple(line.split()) for line in shown.splitlines() if line.startswith("  ")]
    assert len(rows) > 3  # the header, and rows
    assert set(rows) <= table
    assert_printed("".join(line for line in shown.splitlines(keepends=True) if line[:2] != "  "), printed)


def people() -> str:
    """Return a table as README begins it: old people die, and from 45 on people with a craft."""
    rows = ["age,job,city,diagnosis,died"]
    for i in range(300):
        age, job = 20 + i * 37 % 60, ("Clerk", "Carpenter", "Lawyer", "Mover")[i * 7 % 4]
        died = age >= 65 or (age >= 45 and job in ("Carpenter", "Mover"))
        city, illness = ("Paris", "Lyon", "Bonn")[i % 3], "HIV" if i % 9 == 4 else "Flu"
        rows.append(f"{age},{job},{city},{illness},{'NY'[died]}")
    return "\n".join(rows) + "\n"


@pytest.mark.some(1)
@pytest.mark.parametrize("text", [README, FIRST_TABLE], ids=["README", "first-table"])
def test_bring_your_own_csv(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job file, the taxonomy and the three commands, to the letter; README shows what they print."""
    (job,) = blocks("yaml", text)
    (tmp_path / "job.yaml").write_text(job)
    table, separator = people(), ","
    if text is README:
        (first_rows,) = blocks("csv", text)
        assert table.startswith(first_rows)
    else:
        (taxonomy,) = blocks("csv", text)
        (tmp_path / "cities.csv").write_text(taxonomy)
        separator = yaml.safe_load(job)["data"]["delimiter"]
    (tmp_path / "people.csv").write_text(table.replace(",", separator))
    commands = [line for line in lines_of(text) if " job.yaml" in line and line.startswith("coordinator")]
    assert [line.split()[1] for line in commands[:3]] == ["validate", "run", "verify"]
    monkeypatch.chdir(tmp_path)
    printed = "".join(done(line.split()).out for line in commands)
    if text is README:
        _, shown = blocks("text", text)
        assert_printed(shown, printed)
    report = json.loads((tmp_path / "result" / "report.json").read_text())
    assert report["rows"] == 300
    assert set(report["stopped"]) == {"age", "job", "city"}
    with (tmp_path / "result" / "anonymized.csv").open() as file:
        assert {row["job"] for row in csv.DictReader(file)} == {"Office", "Craft"}  # nobody has `?`


def test_the_european_csv_of_the_keys_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of `data`, in a job; the release is UTF-8 with commas and points, and dates keep their form."""
    (lines,) = blocks("yaml", (ROOT / "docs" / "job.md").read_text())
    head = "version: 1\nname: stays\npartition: single\ngoal: general\nmodel: {lkc: {L: 1, K: 5, C: 1}}\n"
    (tmp_path / "job.yaml").write_text(f"{head}{lines}  illness: {{role: sensitive}}\n")
    rows = [f"{day:02}.{1 + day % 2:02}.2024;{60 + day % 9},5;Müdigkeit" for day in range(1, 29)]
    (tmp_path / "stays.csv").write_text(
        "\n".join(["admitted;weight;illness", *rows]) + "\n", encoding="cp1252"
    )
    monkeypatch.chdir(tmp_path)
    done(["coordinator", "run", "job.yaml", "--out", "result"])
    with (tmp_path / "result" / "anonymized.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert {row["illness"] for row in found} == {"Müdigkeit"}
    assert "[01.01.2024,01.02.2024)" in {row["admitted"] for row in found}
    assert any("." in row["weight"] for row in found)


def test_a_drafted_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three commands of the guide, to the letter, on a table as the guide describes it."""
    commands = commands_about("draft.yaml", FIRST_TABLE)
    assert [words[1] for words in commands] == ["draft", "run", "verify"]
    rows = ["age;job;city;diagnosis;died"]
    for i in range(400):
        job, city = ("Clerk", "Lawyer", "Carpenter")[i % 3], ("Paris", "Lyon", "Bonn", "Oslo")[i * 7 % 4]
        rows.append(f"{20 + i * 13 % 60};{job};{city};{'HIV' if i % 9 == 0 else 'Flu'};{'YN'[i % 3 > 1]}")
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    for words in commands:
        done(words)
    assert json.loads((tmp_path / "drafted" / "report.json").read_text())["rows"] == 400


def test_the_job_of_readme_has_twelve_lines() -> None:
    (job,) = blocks("yaml", README)
    assert len(job.splitlines()) == 12


def test_the_job_of_readme_becomes_kd_or_dp_as_the_guide_says() -> None:
    (job,) = blocks("yaml", README)
    named = re.search(r"replace `suppress` by `taxonomy: ([^`]+)`", FIRST_TABLE)
    assert named
    fields = parse_yaml(job, "README")
    kd = {**fields, "goal": "general", "model": {"lkc": {"L": "all", "K": "10", "C": "0.5", "method": "kd"}}}
    with pytest.raises(ConfigError, match=r"columns\.city\.suppress"):
        parse_job(kd, "README")
    columns = {**fields["columns"], "city": {"role": "qid", "taxonomy": parse_yaml(named[1], "README")}}
    parse_job({**kd, "columns": columns}, "README")
    columns["diagnosis"] |= {"domain": ["HIV", "Flu"]}
    columns["died"] |= {"domain": ["Y", "N"]}
    for dp in ({"specializations": "6"}, {"method": "synthetic"}):
        parse_job({**fields, "columns": columns, "model": {"dp": {"epsilon": "1", **dp}}}, "README")


# ---- guides


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a copy of the examples the current folder: ledgers are written beside tables."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_discharges_example(examples: Path) -> None:
    first, verify = commands_about("examples/discharges/job.yaml", FIRST_TABLE)
    _, shown = blocks("text", FIRST_TABLE)
    assert_printed(shown, done(first).out)
    done(verify)


def test_the_explored_example(examples: Path) -> None:
    (words,) = commands_about("examples/transfusion/job.yaml", FIRST_TABLE)
    shown, _ = blocks("text", FIRST_TABLE)
    assert_printed(shown, done(words).out)


def test_the_hospitals_example(examples: Path, demo: tuple[str, Path]) -> None:
    """The simulation. It is the demo's job, so what daemons signed there is verified."""
    simulate, verify = commands_about("examples/transfusion/demo.yaml", HOSPITALS)
    of_simulation, of_verify = blocks("text", HOSPITALS)
    assert_printed(of_simulation, done([*simulate, IN_PROCESS]).out)
    shutil.rmtree(examples / verify[-1])
    shutil.copytree(demo[1], examples / verify[-1])
    assert_printed(of_verify, done(verify).out)


def test_the_policy_is_that_of_the_sample() -> None:
    (policy,) = blocks("yaml", HOSPITALS)
    sample = yaml.safe_load((ROOT / "deploy" / "three-machines" / "hospital-a.yaml").read_text())
    assert yaml.safe_load(policy)["policy"] == sample["policy"]


def test_the_vertical_example(examples: Path) -> None:
    """The commands, to the letter, with daemons."""
    simulate, verify = commands_about("examples/loan/job.yaml", TWO_HOLDERS)
    (shown,) = blocks("text", TWO_HOLDERS)
    assert_printed(shown, run(started(simulate), examples).stdout)
    report = json.loads((examples / "loan" / "report.json").read_text())
    assert (report["partition"], report["rows"]) == ("vertical", 2400)
    run(started(verify), examples)


def test_the_wards_example(examples: Path) -> None:
    """The command; the path shown is a patient's, and what is shown of it is in the table."""
    (words,) = commands_about("examples/wards/job.yaml", SEQUENCES)
    (shown,) = blocks("text", SEQUENCES)
    assert_printed(shown, done(words).out)
    out = examples / "stays"
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
        int, re.findall(r"Of ([0-9,]+) readings ([0-9]+) are gone", SEQUENCES.replace(",", ""))[0]
    )
    assert sum(len(in_cells(stay)) for stay in raw) == readings
    assert sum(map(len, seen)) == report["instances"] == readings - gone
    own = [json.loads((out / "own" / f"{name}.json").read_text())["records"] for name in report["parties"]]
    assert sum(each["lost"]["instances"] for each in own) == gone
    assert [each["exclusion"]["exposed"] for each in own] == [0, 0, 0]


Stay = frozenset[tuple[str, str]]
"""A time and a ward."""


def paths(rows: Iterable[dict[str, str]], record: str) -> list[Stay]:
    """The readings of every record."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in rows:
        found[row[record]] |= {(row["entered"], row["ward"])} if row["ward"] else set()
    return [frozenset(readings) for readings in found.values()]


@cache
def wards() -> list[str]:
    """Return the wards in the order of the job."""
    domain = yaml.safe_load((ROOT / "examples/wards/job.yaml").read_text())["columns"]["ward"]["domain"]
    assert isinstance(domain, list)
    return domain


def in_cells(stay: Stay) -> Stay:
    """With the hours since its first reading, in steps of six; of wards in one step the first, by time and name."""
    order = wards()
    readings = sorted((datetime.fromisoformat(at), order.index(ward)) for at, ward in stay)
    start, found = readings[0][0], {}
    for time, place in readings:
        hours = (time - start) // timedelta(hours=6) * 6
        found.setdefault(f"{hours // 24}d{hours % 24:02}:00", order[place])
    return frozenset(found.items())


def shown_path() -> tuple[Stay, Stay]:
    """The path before and after that the guide shows."""
    section = SEQUENCES.split("## Before and after")[1].split("\n## ")[0]
    (times, _, before, after) = [
        line.strip("|").split("|")[1:] for line in section.splitlines() if line[:1] == "|"
    ]
    return tuple(  # type: ignore[return-value]
        frozenset((at.strip(), ward.strip()) for at, ward in zip(times, wards, strict=True) if ward.strip())
        for wards in (before, after)
    )


def test_the_dp_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of docs/dp.md, in one process and with another folder; the guide shows the same run."""
    monkeypatch.chdir(ROOT)
    job = "examples/transfusion/dp.yaml"
    validate, simulate, verify = commands_about(job, (ROOT / "docs" / "dp.md").read_text())
    (guide,) = commands_about(job, DP)
    assert [*guide, "--as-records"] == simulate
    assert [words[1] for words in (validate, simulate, verify)] == ["validate", "simulate", "verify"]
    for words in (validate, [*simulate, IN_PROCESS], verify):
        done = ended(*[str(tmp_path / word) if word == "counts" else word for word in words])
        assert done.code == 0, done.err
    report = json.loads((tmp_path / "counts" / "report.json").read_text())
    assert sum(Fraction(charge["epsilon"]) for charge in report["privacy"]["account"]) == 1


def test_the_vertical_dp_example(tmp_path: Path) -> None:
    tables = [f"--data={name}={ROOT}/examples/loan/{name}.csv" for name in ("loan-company", "bank")]
    job = ROOT / "examples" / "loan" / "dp.yaml"
    done = ended("coordinator", "simulate", job, *tables, "--out", tmp_path / "out", IN_PROCESS)
    assert done.code == 0, done.err
    assert ended("coordinator", "verify", job, tmp_path / "out").code == 0


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("example", "out", "table"), [("transfusion", "surgeries", ["sex"]), ("loan", "customers", None)]
)
def test_the_joint_synthetic_examples(
    example: str, out: str, table: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of docs/dp.md; and table 8 of the first is the one that the page reads."""
    monkeypatch.chdir(ROOT)
    (words,) = commands_about(f"examples/{example}/synthetic.yaml", (ROOT / "docs" / "dp.md").read_text())
    done = ended(*[str(tmp_path / word) if word == out else word for word in words], IN_PROCESS)
    assert done.code == 0, done.err
    found = json.loads((tmp_path / out / "report.json").read_text())["tables"][7]
    assert found["table"] == 8
    assert table is None or (found["columns"], found["by"]) == (table, "bin and class")


def test_the_synthetic_example(examples: Path) -> None:
    """The commands of the guide in their order: the second run is the first again, and charged once."""
    first, verify, again, budget = commands_about("examples/discharges/synthetic.yaml", DP)
    (shown,) = blocks("text", DP)
    assert_printed(shown, done(first).out, read=without_numbers)
    done(verify)
    assert "nothing was charged" in done(again).err
    assert "epsilon 1 charged, by 1 run" in done(budget).out


def test_the_value_of_a_table(examples: Path) -> None:
    """The command of the guide, and the table that the guide shows of it, but for figures."""
    page = (GUIDE / "evaluate.md").read_text()
    (words,) = commands_about("examples/transfusion/job.yaml", page)
    (shown,) = blocks("text", page)
    assert_printed(shown, done(words).out, read=without_numbers)


@pytest.mark.more
def test_the_clusters_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the guide, on a made-up table with a job that has the lines of the guide."""
    page = (GUIDE / "clusters.md").read_text()
    commands = commands_about("job.yaml", page)
    assert [words[1] for words in commands] == ["clusters", "run", "clusters"]
    (lines,) = blocks("yaml", page)
    (of_readme,) = blocks("yaml", README)
    fields = yaml.safe_load(of_readme)
    del fields["columns"]["died"]
    model = {**fields["model"]["lkc"], **yaml.safe_load(lines)["model"]["lkc"]}
    (tmp_path / "job.yaml").write_text(
        yaml.safe_dump({**fields, "goal": "clusters", "model": {"lkc": model}})
    )
    rows = [",".join(fields["columns"])]
    for i in range(600):
        told = {"age": 20 + i % 60, "job": ("Clerk", "Lawyer", "Carpenter", "Mover")[i % 4]}
        told |= {"city": ("Paris", "Lyon", "Bonn")[i % 3], "diagnosis": "HIV" if i % 9 == 0 else "Flu"}
        rows.append(",".join(str(told[name]) for name in fields["columns"]))
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    for words in commands:
        ran = ended(*words)
        assert ran.code == 0, ran.err
    assert "adjusted" in ran.out.lower()


@each_page
def test_every_command_shown_exists(page: Path) -> None:
    """Every `party` and `coordinator` command that is shown is one, with these options."""
    shown = [
        line.split("#")[0].split()
        for line in lines_of(page.read_text())
        if line.startswith(("party ", "coordinator "))
    ]
    assert shown or page.stem == "python"  # the page of functions
    for words in shown:
        depth = 3 if words[1] in ("peers", "clusters") else 2
        helped = invoke(*words[:depth], "--help")
        assert helped.code == 0
        for option in (word for word in words if word.startswith("--")):
            assert option in helped.out, f"{' '.join(words[:depth])} has no {option}"


def test_the_commands_of_three_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block, in a folder of its own, but for `serve`; the first policy allows nothing."""
    (block,) = [block for block in blocks("sh", README) if "party init" in block]
    init, cd, add, check, serve = [line.split("#")[0].split() for line in block.strip().splitlines()]
    folder, b, examples = tmp_path / "etc jointcut", tmp_path / "b", ROOT / "examples" / "transfusion"
    there = ["party", "init", "--name", "hospital-b", "--listen", "0.0.0.0:7400", "--data", "b.csv"]
    assert ended(*there, "--dir", b).code == 0
    places = {"/etc/jointcut": str(folder), "/data/table.csv": str(examples / "hospital-a.csv")}
    ran = ended(*[places.get(word, word) for word in init])
    assert ran.code == 0, ran.err
    assert cd == ["cd", "/etc/jointcut"]
    monkeypatch.chdir(folder)
    shutil.copy(b / "tls" / "certificate.pem", "hospital-b.pem")
    fingerprint = x509.load_pem_x509_certificate(Path("hospital-b.pem").read_bytes()).fingerprint(
        hashes.SHA256()
    )
    added = ended(*[fingerprint.hex() if word.endswith("…") else word for word in add])
    assert added.code == 0, added.err
    shutil.copytree(examples / "hierarchies", "hierarchies")
    shutil.copy(examples / "job.yaml", "job.yaml")
    checked = ended(*check)
    assert "policy-refused" in checked.out, checked.err
    assert serve == ["party", "serve"]


def test_three_machines_need_few_kinds_of_commands() -> None:
    shown = {tuple(line.split()[:2]) for line in lines_of(README) if line.startswith("party ")}
    assert shown == {("party", "init"), ("party", "peers"), ("party", "check"), ("party", "serve")}
