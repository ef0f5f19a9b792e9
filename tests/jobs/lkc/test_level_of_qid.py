"""`level` at a quasi-identifier: no published value is deeper, with one holder and with several."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import SchemaError
from jobs.errors import ConfigError
from jobs.loading import parse_job
from jobs.owner.domains import domain_of
from tests.support import jobs
from tests.support.clusters import single_clusters
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_single
from tests.support.job_files import job_file

TREE = {"Any": {"A": {"A1": ["a", "b"], "A2": ["c"]}, "B": ["d", "e"]}}
GROUP_AT = {
    1: dict(zip("abcde", "AAABB", strict=True)),
    2: dict(zip("abcde", ["A1", "A1", "A2", "d", "e"], strict=True)),
}
SEX = {"role": "qid", "suppress": ["m", "f"]}
PARTIES = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate("abc")}


def table() -> list[dict[str, str]]:
    rng = random.Random(7)  # noqa: S311
    return [
        {"id": str(i), "code": "" if i % 10 == 0 else rng.choice("abcde"), "sex": rng.choice("mf")}
        for i in range(120)
    ]


def fields(level: int | None = 1, **changes: Any) -> dict[str, Any]:
    code = {"role": "qid", "taxonomy": TREE, **({} if level is None else {"level": str(level)})}
    return {
        "version": "1",
        "name": "levels",
        "partition": "single",
        "goal": "general",
        "data": "table.csv",
        "model": {"lkc": {"L": "2", "K": "2"}},
        "columns": {"code": code, "sex": SEX},
        **changes,
    }


def rows_of(out: Path) -> list[tuple[str, ...]]:
    with (out / "anonymized.csv").open(newline="", encoding="utf-8") as file:
        return sorted(tuple(row[name] for name in ("code", "sex")) for row in csv.DictReader(file))


def run(folder: Path, level: int) -> list[tuple[str, ...]]:
    folder.mkdir(exist_ok=True)
    job = job_file(folder, fields(level))
    jobs.write_csv(folder / "table.csv", table())
    for command in (("run", job, "--out", folder / "out"), ("verify", job, folder / "out")):
        ran = invoke("coordinator", *command)
        assert ran.code == 0, ran.err
    return rows_of(folder / "out")


@pytest.mark.parametrize("level", [1, 2])
def test_raw_values_are_published_as_their_group(level: int, tmp_path: Path) -> None:
    """K is small, so all rows have the finest value that the level allows."""
    expected = sorted((GROUP_AT[level].get(row["code"], "?"), row["sex"]) for row in table())
    assert run(tmp_path, level) == expected


@pytest.mark.some(1)
@pytest.mark.parametrize("mode", ["vertical", "sealed", "leader"])
def test_several_holders_make_the_table_of_one(mode: str, tmp_path: Path) -> None:
    joint: dict[str, Any] = {"partition": "horizontal", "parties": PARTIES, "disclosure": mode}
    columns = fields()["columns"]
    if mode == "leader":
        joint["leader"] = "a"
    if mode == "vertical":
        columns = {"id": {"role": "id"}, **columns}
        parties = {"a": {**PARTIES["a"], "columns": ["code"]}, "b": {**PARTIES["b"], "columns": ["sex"]}}
        joint = {"partition": "vertical", "parties": parties}
    expected = run(tmp_path / "single", 1)
    (tmp_path / "joint").mkdir()
    whole = fields(columns=columns, **joint)
    job = job_file(tmp_path / "joint", {key: value for key, value in whole.items() if key != "data"})
    data = []
    for place, name in enumerate(joint["parties"]):
        rows = table() if mode == "vertical" else table()[place::3]
        data += ["--data", f"{name}={jobs.write_csv(tmp_path / 'joint' / f'{name}.csv', rows)}"]
    ran = invoke("coordinator", "simulate", job, "--out", tmp_path / "out", *data)
    assert ran.code == 0, ran.err
    assert rows_of(tmp_path / "out") == expected


def test_a_value_outside_the_deeper_taxonomy_is_refused(tmp_path: Path) -> None:
    """The groups themselves are no values of the table."""
    job = job_file(tmp_path, fields())
    jobs.write_csv(tmp_path / "table.csv", [*table(), {"id": "x", "code": "A", "sex": "m"}])
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out", "--format", "json")
    assert (ran.code, ran.problem["error"]) == (7, "data-unknown-value")


def test_domains_with_other_groups_have_other_digests() -> None:
    """A pinned domain means the same groups of the same raw values: A without `c` is another group."""
    moved = {"Any": {"A": {"A1": ["a", "b"]}, "B": ["c", "d", "e"]}}
    trees = [(TREE, None), (TREE, 1), (TREE, 2), (moved, 1), ({"Any": ["A", "B"]}, None)]
    digests = set()
    for tree, level in trees:
        job = fields(level)
        job["columns"]["code"]["taxonomy"] = tree
        digests.add(domain_of(jobs.task_of(job), "code"))
    assert len(digests) == len(trees)


@pytest.mark.parametrize(
    ("taxonomy", "level", "says"),
    [
        (TREE, 4, "`level: 4` is below all leaves of the taxonomy; the deepest leaves are 3 below the root"),
        ({"Any": {"A": {"Other": ["a"]}, "B": {"Other": ["b"]}}}, 2, r"two groups .* the label 'Other\*'"),
    ],
)
def test_levels_that_a_taxonomy_lacks(taxonomy: Any, level: int, says: str) -> None:
    job = fields(level)
    job["columns"]["code"]["taxonomy"] = taxonomy
    with pytest.raises(SchemaError, match=says):
        _ = jobs.task_of(job).taxonomies


DP = dp_single()
CLUSTERS = single_clusters()
EXACT = {"L": "all", "C": "1", "K": "3", "release": "anatomy", "quasi": "exact"}
CODE = {"role": "qid", "taxonomy": TREE, "level": "1"}


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (
            fields(columns={"code": SEX | {"level": "1"}, "sex": SEX}),
            "`level` is for columns with a `taxonomy`",
        ),
        ({**DP, "columns": {**DP["columns"], "job": CODE}}, "columns.job.level at a qid is for LKC jobs"),
        (
            {**CLUSTERS, "columns": {**CLUSTERS["columns"], "code": CODE}},
            "columns.code.level at a qid is for",
        ),
        (
            fields(
                model={"lkc": EXACT},
                columns={"code": CODE, "sex": SEX, "ill": {"role": "sensitive", "domain": ["y", "n"]}},
            ),
            "columns.code.level: `quasi: exact` publishes quasi-identifiers as they are",
        ),
    ],
)
def test_jobs_without_levels(job: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_job(job, "job")
