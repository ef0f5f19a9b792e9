"""`missing: leaf` at numbers and dates: rows without a number stay, in one table for one holder and for several."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from anonymize.grid import Grid, from_step
from anonymize.taxonomy import Node
from jobs.errors import ConfigError
from jobs.loading import parse_job
from jobs.owner.domains import digest_of
from tests.support import jobs
from tests.support.clusters import single_clusters
from tests.support.commands import invoke
from tests.support.job_files import job_file

AGE = {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}, "missing": "leaf"}
CAME = {"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}, "missing": "leaf"}
SEX = {"role": "qid", "suppress": ["m", "f"]}
ILL = {"role": "sensitive", "domain": ["flu", "cold", "gout"], "C": "3/4"}
COLUMNS = {"age": AGE, "came": CAME, "sex": SEX, "ill": ILL}
KD = {
    "model": {"lkc": {"L": "all", "K": "5", "C": "3/4", "method": "kd"}},
    "columns": {**COLUMNS, "sex": {"role": "qid", "taxonomy": {"*": ["m", "f"]}}},
}
N = 240


def table() -> list[dict[str, str]]:
    rng = random.Random(2)  # noqa: S311
    return [
        {
            "id": f"p{i}",
            "age": "" if rng.random() < 0.2 else str(rng.randrange(100)),
            "came": "?"
            if rng.random() < 0.1
            else f"2024-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}",
            "sex": rng.choice("mf"),
            "ill": rng.choice(["flu", "cold", "gout"]),
        }
        for i in range(N)
    ]


def fields(columns: Mapping[str, Any] = COLUMNS, **changes: Any) -> dict[str, Any]:
    return {
        "version": "1",
        "name": "numbers",
        "partition": "single",
        "goal": "general",
        "data": "table.csv",
        "model": {"lkc": {"L": "2", "K": "4", "C": "3/4"}},
        "columns": dict(columns),
        **changes,
    }


def run(folder: Path, **changes: Any) -> list[dict[str, str]]:
    """Run a job of one holder, and verify; return the table."""
    folder.mkdir(exist_ok=True)
    job = job_file(folder, fields(**changes))
    jobs.write_csv(folder / "table.csv", table())
    ran = invoke("coordinator", "run", job, "--out", folder / "out")
    assert ran.code == 0, ran.err
    checked = invoke("coordinator", "verify", job, folder / "out")
    assert checked.code == 0, checked.err
    return rows_of(folder / "out")


def rows_of(out: Path) -> list[dict[str, str]]:
    with (out / "anonymized.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def holds(label: str, value: str) -> bool:
    """Return True if a label covers a value, without the program's own reader of labels."""
    if label == "*" or value in label.split("|"):
        return True
    interval, _, missing = label.partition(" or ")
    if value in ("", "?"):
        return label == "?" or missing == "?"
    if not interval.startswith("["):
        return False
    low, high = interval.strip("[)").split(",")
    if "-" in value:
        return low <= value < high
    return float(low) <= float(value) < float(high)


@pytest.mark.parametrize("changes", [{}, KD], ids=["top-down", "kd"])
def test_every_row_stays_and_every_label_covers_its_value(changes: dict[str, Any], tmp_path: Path) -> None:
    """Rows of the table and of the release correspond: a greedy choice fails nowhere, as groups do not overlap."""
    released = run(tmp_path, **changes)
    assert len(released) == N
    columns = ("age", "came", "sex")
    groups = Counter(tuple(row[name] for name in columns) for row in released)
    for row in table():
        fitting = [group for group in groups if all(map(holds, group, (row[name] for name in columns)))]
        assert len(fitting) == 1
        groups[fitting[0]] -= 1
    assert not +groups


def test_the_requirement_holds_by_counting(tmp_path: Path) -> None:
    released = run(tmp_path)
    assert any("?" in row["age"] or "?" in row["came"] for row in released)
    for known in combinations(("age", "came", "sex"), 2):
        groups = Counter(tuple(row[name] for name in known) for row in released)
        assert min(groups.values()) >= 4


def test_missing_numbers_part_from_numbers(tmp_path: Path) -> None:
    """The leaf is a group by itself where enough rows have no number."""
    released = run(tmp_path, columns={"age": AGE, "sex": SEX}, model={"lkc": {"L": "1", "K": "4"}})
    lost = sum(not row["age"] for row in table())
    assert Counter(row["age"] for row in released)["?"] == lost


def test_evaluate_reads_rows_without_numbers(tmp_path: Path) -> None:
    columns = {"age": AGE, "came": CAME, "sex": SEX, "ill": {"role": "class"}}
    job = job_file(tmp_path, fields(columns, goal="classification", model={"lkc": {"L": "2", "K": "4"}}))
    jobs.write_csv(tmp_path / "table.csv", table())
    ran = invoke("coordinator", "evaluate", job, "--seed", "1", "--splits", "1")
    assert ran.code == 0, ran.err
    assert "raw" in ran.out


PARTIES = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate("abc")}
HORIZONTAL = {"partition": "horizontal", "parties": PARTIES}
LEADER = {"disclosure": "leader", "leader": "a"}
MODES = {
    "sealed": {**HORIZONTAL, "disclosure": "sealed"},
    "leader": {**HORIZONTAL, **LEADER},
    "kd": {**HORIZONTAL, "disclosure": "sealed", **KD},
    "vertical": {
        "partition": "vertical",
        "parties": {
            "a": {**PARTIES["a"], "columns": ["age", "ill"]},
            "b": {**PARTIES["b"], "columns": ["came", "sex"]},
        },
        "columns": {"id": {"role": "id"}, **COLUMNS},
    },
}


@pytest.mark.some(2)
@pytest.mark.parametrize("mode", MODES)
def test_several_holders_make_the_table_of_one(mode: str, tmp_path: Path) -> None:
    changes = MODES[mode]
    single = {key: changes[key] for key in ("model", "columns") if key in changes}
    expected = run(tmp_path / "single", **single)
    (tmp_path / "joint").mkdir()
    job = job_file(
        tmp_path / "joint", {key: value for key, value in fields(**changes).items() if key != "data"}
    )
    tables = {}
    for place, name in enumerate(changes["parties"]):
        rows = table() if mode == "vertical" else table()[place::3]
        tables[name] = jobs.write_csv(tmp_path / "joint" / f"{name}.csv", rows)
    data = [part for name, path in tables.items() for part in ("--data", f"{name}={path}")]
    ran = invoke("coordinator", "simulate", job, *data, "--out", tmp_path / "out", "--in-process")
    assert ran.code == 0, ran.err
    order = [Counter(tuple(row.items()) for row in rows) for rows in (expected, rows_of(tmp_path / "out"))]
    assert order[0] == order[1]
    checked = invoke("coordinator", "verify", job, tmp_path / "out")
    assert checked.code == 0, checked.err


# ---- grids


def test_every_interval_has_its_own_label() -> None:
    grid = Grid(tuple(map(Decimal, range(6))), missing_leaf=True)
    nodes = [Node(a, b) for a in range(6) for b in range(a + 1, 7)]
    labels = [grid.label(node) for node in nodes]
    assert len(set(labels)) == len(nodes)
    assert [grid.interval(label) for label in labels] == nodes
    assert labels[nodes.index(Node(5, 6))] == "?"
    assert labels[nodes.index(Node(0, 6))] == "[0,5) or ?"


@pytest.mark.parametrize(
    "label", ["? or ?", "[0,5) or", "[5,5) or ?", "[0,2) or ? or ?", " or ?", "[0,2) or  ?", ""]
)
def test_other_texts_are_no_intervals(label: str) -> None:
    assert Grid(tuple(map(Decimal, range(6))), missing_leaf=True).interval(label) is None


@pytest.mark.parametrize("label", ["?", "[0,5) or ?", "[2,5) or ?"])
def test_without_the_leaf_no_label_has_one(label: str) -> None:
    assert from_step(Decimal(0), Decimal(5), Decimal(1), "x").interval(label) is None


def test_middles() -> None:
    grid = Grid(tuple(map(Decimal, range(0, 60, 10))), missing_leaf=True)
    middles = [grid.middle(Node(*run)) for run in ((0, 1), (4, 5), (4, 6), (5, 6), (0, 6))]
    assert middles == [5.0, 45.0, 45.0, 25.0, 25.0]


def test_an_owner_can_tell_the_leaf_by_the_digest() -> None:
    digests = set()
    for missing in ("leaf", "drop"):
        columns = {
            name: {**column, "missing": missing} for name, column in {"age": AGE, "came": CAME}.items()
        }
        digests |= {digest_of(values) for values in jobs.task_of(fields(columns)).taxonomies.values()}
    assert len(digests) == 4


# ---- jobs


@pytest.mark.parametrize(
    "job",
    [fields({"age": AGE}, model={"dp": {"epsilon": "1", "method": "synthetic"}}), single_clusters()],
    ids=["dp", "clusters"],
)
def test_models_that_need_numbers_refuse_the_leaf(job: dict[str, Any]) -> None:
    columns = {**job["columns"], "age": {**job["columns"]["age"], "missing": "leaf"}}
    with pytest.raises(ConfigError, match=r"columns.age.missing: `leaf` at a column of numbers"):
        parse_job({**job, "columns": columns}, "job")


def test_the_description_says_what_becomes_of_missing_numbers(tmp_path: Path) -> None:
    job = job_file(tmp_path, fields())
    jobs.write_csv(tmp_path / "table.csv", table())
    found = json.loads(invoke("coordinator", "validate", job, "--format", "json").out)
    text = json.dumps(found)
    assert '"missing": "leaf"' in text
