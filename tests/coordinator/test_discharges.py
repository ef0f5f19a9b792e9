"""The example of kd and several sensitive columns: its job runs, and its README shows what comes of it."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import examples.discharges.generate as generator
from jobs.loading import load_task
from jobs.release.csv import REPORT, TABLE
from jobs.task import Task
from tests.support.commands import invoke

FOLDER = Path(generator.__file__).parent
README = (FOLDER / "README.md").read_text()
QID = ("age", "sex", "postcode", "admission")
SENSITIVE = ("diagnosis", "treatment", "outcome")
Row = Mapping[str, str]


def rows_of(text: str) -> list[Row]:
    return list(csv.DictReader(text.splitlines()))


def shown() -> tuple[list[Row], list[Row]]:
    """The rows of the two tables of the README."""
    lines = re.findall(r"^\| (.+) \|$", README, re.MULTILINE)
    cells = [[cell.replace("\\|", "|") for cell in re.split(r" (?<!\\)\| ", line)] for line in lines]
    rows = [dict(zip((*QID, *SENSITIVE), own, strict=True)) for own in cells if own[0][0] in "[0123456789"]
    half = len(rows) // 2
    return rows[:half], rows[half:]


def values_of(task: Task, name: str, label: str) -> Iterator[str]:
    """The values that a box of a categorical column stands for."""
    for part in label.split("|"):
        taxonomy = task.taxonomies[name]
        (place,) = (i for i, printed in enumerate(taxonomy.printed) if printed == part)
        node = taxonomy.nodes[place]
        yield from taxonomy.leaves[node.first : node.last]


def holds(task: Task, box: Row, row: Row) -> bool:
    first, last = map(int, re.findall(r"\d+", box["age"]))
    inside = all(row[name] in values_of(task, name, box[name]) for name in QID[1:])
    return inside and first <= int(row["age"]) < last


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("discharges") / "out"
    done = invoke("coordinator", "run", FOLDER / "job.yaml", "--out", folder)
    assert done.code == 0, done.err
    return folder


def test_the_data_are_what_the_generator_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "HERE", tmp_path)
    generator.main()
    name = "discharges.csv"
    assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


def test_no_group_tells_what_the_job_forbids(out: Path) -> None:
    """Counted here once more, with groups of diagnoses from the taxonomy's file."""
    category = dict(
        line.split(";")[:2] for line in (FOLDER / "hierarchies/diagnosis.csv").read_text().split("\n")[:-1]
    )
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows_of((out / TABLE).read_text()):
        groups.setdefault(tuple(row[name] for name in QID), []).append(row)
    for group in groups.values():
        assert len(group) >= 10
        diagnoses = Counter(category[row["diagnosis"]] for row in group)
        assert all(2 * diagnoses[name] <= len(group) for name in ("Mental health", "Infection", "Pregnancy"))
        assert len({row["treatment"] for row in group}) > 1
        assert {row["outcome"] for row in group} != {"Died"}


def test_the_readme_shows_these_tables(out: Path) -> None:
    task, (before, after) = load_task(FOLDER / "job.yaml"), shown()
    assert len(before) == len(after) == 6
    raw, table = rows_of((FOLDER / "discharges.csv").read_text()), rows_of((out / TABLE).read_text())
    for row, box in zip(before, after, strict=True):
        assert row in raw
        assert box in table
        assert holds(task, box, row)
        assert all(row[name] == box[name] for name in SENSITIVE)


def test_the_readme_says_what_the_report_does(out: Path) -> None:
    metrics = json.loads((out / REPORT).read_text())["metrics"]
    assert f"in {metrics['groups']} groups of {metrics['smallest']} and more" in README
    assert f"{metrics['average_group']:.1f} for an average stay" in README
    assert f"of {metrics['linked_exposure']} stays" in README


def test_the_readme_compares_with_top_down(tmp_path: Path) -> None:
    job = (FOLDER / "job.yaml").read_text().replace("method: kd}", "method: top-down}")
    for name in ("discharges.csv", "hierarchies/diagnosis.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((FOLDER / name).read_bytes())
    (tmp_path / "job.yaml").write_text(job)
    done = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "out" / REPORT).read_text())
    assert report["cut"]["age"] == ["[16,54)", "[54,100)"]
    assert report["cut"]["admission"] == ["Emergency", "other Any"]
    assert f"there are {report['metrics']['leaf_partitions']} groups" in README
