"""`stopped` in a joint report: true in the tables of all parties, and worked out again by a reader of the release."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import invoke
from tests.support.jobs import write_csv
from tests.support.network import yaml_of
from tests.support.samples import single_job

TREE = {"Any": {"Office": ["Clerk", "Lawyer"], "Craft": ["Mover", "Cook"]}}
QIDS = {
    "sex": {"role": "qid", "taxonomy": {"Any": ["F", "M"]}, "refine": "children", "missing": "drop"},
    "job": {"role": "qid", "taxonomy": TREE, "refine": "children", "missing": "drop"},
}
ILL = {"ill": {"role": "sensitive", "domain": ["yes", "no"], "values": ["yes"]}}
BELOW = {"Any": 2, "Office": 2, "Craft": 2}
"""Children of the groups of both columns; other values are leaves."""
ONLY_K, WITH_C = {"L": "2", "K": "8"}, {"L": "2", "K": "4", "C": "0.4"}


def rows(seed: int, n: int = 60) -> list[dict[str, str]]:
    rng = random.Random(seed)  # noqa: S311
    jobs = rng.choices(["Clerk", "Lawyer", "Mover", "Cook"], [8, rng.randrange(3), 4, rng.randrange(4)], k=n)
    return [
        {"id": str(i), "sex": rng.choice("FFFM"), "job": job, "ill": rng.choice(["no", "no", "yes"])}
        for i, job in enumerate(jobs)
    ]


def run(folder: Path, mode: str, table: list[dict[str, str]], lkc: dict[str, str]) -> dict[str, Any]:
    """Run a job, verify the release, and return the report; mode: single, vertical, or a disclosure."""
    folder.mkdir()
    columns = {**QIDS, **(ILL if "C" in lkc else {})}
    fields: dict[str, Any] = {"goal": "general", "model": {"lkc": lkc}, "columns": columns}
    parties: dict[str, Any] = {"a": {}, "b": {}, "c": {}}
    if mode == "single":
        write_csv(folder / "table.csv", table)
        command = ["run", folder / "job.yaml"]
    else:
        fields |= {"partition": "horizontal", "disclosure": mode, "data": None}
        if mode == "vertical":
            parties = {"a": {"columns": ["sex", *(["ill"] if "C" in lkc else [])]}, "b": {"columns": ["job"]}}
            fields |= {"partition": mode, "columns": {"id": {"role": "id"}, **columns}}
            del fields["disclosure"]
        if mode == "leader":
            fields |= {"leader": "a"}
        fields |= {"parties": parties}
        held = [table if mode == "vertical" else table[place::3] for place in range(len(parties))]
        files = zip(parties, held, strict=True)
        data = [f"--data={name}={write_csv(folder / f'{name}.csv', own)}" for name, own in files]
        command = ["simulate", folder / "job.yaml", *data, "--in-process"]
    (folder / "job.yaml").write_text(yaml_of(single_job(**fields)))
    ran = invoke("coordinator", *command, "--out", folder / "out")
    assert ran.code == 0, ran.err
    checked = invoke("coordinator", "verify", folder / "job.yaml", folder / "out")
    assert checked.code == 0, checked.err
    report: dict[str, Any] = json.loads((folder / "out" / "report.json").read_text())
    return report


def expected(out: Path, report: dict[str, Any], mode: str, lkc: dict[str, str]) -> dict[str, dict[str, str]]:
    """Work the reasons of a joint table out from its files and its job alone."""
    with (out / "anonymized.csv").open(newline="") as file:
        published = list(csv.DictReader(file))
    refused = {(step["attribute"], step["value"]) for step in report["discarded"]}
    found: dict[str, dict[str, str]] = {}
    for name, values in report["cut"].items():
        counts = Counter(row[name] for row in published)
        for value in values:
            n, is_refused = counts[value], (name, value) in refused
            if value not in BELOW:
                reason = "leaf"
            elif n == 0:
                reason = "empty"
            elif n < 2 * int(lkc["K"]):
                reason = "K" if is_refused else "small"
            elif is_refused:
                reason = "requirement" if "C" in lkc else "K"
            else:
                reason = "no step" if mode in ("sealed", "leader") else "hidden"
            found.setdefault(name, {})[value] = reason
    return found


def by_value(report: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {
        name: {value: each["reason"] for each in reasons for value in each["values"]}
        for name, reasons in report["stopped"].items()
    }


MEANT = {
    "K": {"K"},
    "requirement": {"K", "C"},
    "small": {"K", "one value"},
    "no step": {"one value", "K"},
    "hidden": {"K", "C", "one value"},
    "leaf": {"leaf"},
    "empty": {"empty"},
}
"""Reasons of a single holder's run that the reason of a joint table leaves open; goal general."""


@pytest.mark.some(6)
@pytest.mark.parametrize("lkc", [ONLY_K, WITH_C], ids=["K", "C"])
@pytest.mark.parametrize("mode", ["sealed", "leader", "strict", "vertical"])
@pytest.mark.parametrize("seed", range(3))
def test_reasons_follow_from_the_release(tmp_path: Path, mode: str, lkc: dict[str, str], seed: int) -> None:
    """Nothing but job and release enters the expected reasons; a run of one holder knows the true reasons."""
    table = rows(seed)
    report = run(tmp_path / "joint", mode, table, lkc)
    said = by_value(report)
    assert said == expected(tmp_path / "joint" / "out", report, mode, lkc)
    true = by_value(run(tmp_path / "single", "single", table, lkc))
    assert {name: set(values) for name, values in said.items()} == {
        name: set(values) for name, values in true.items()
    }
    for name, values in said.items():
        for value, reason in values.items():
            assert true[name][value] in MEANT[reason], (name, value, reason)
    allowed = {"reason", "values"} | ({"sensitive"} if "C" in lkc else set())
    assert all(each.keys() <= allowed for found in report["stopped"].values() for each in found)


@pytest.mark.parametrize("mode", ["strict", "vertical"])
def test_modes_that_open_no_step_say_alike_of_different_tables(tmp_path: Path, mode: str) -> None:
    """Two tables give the same release. In the first one lawyers are fewer than K; in the second most are ill."""
    told, true = [], []
    for name in ("few", "ill"):
        table = []
        for i in range(60):
            ill = "yes" if i % 6 < 2 else "no"
            lawyer = i in (2, 3, 4) if name == "few" else ill == "yes" or i == 2
            job = "Mover" if i >= 30 else "Lawyer" if lawyer else "Clerk"
            table.append({"id": str(i), "sex": "FM"[i % 2], "job": job, "ill": ill})
        report = run(tmp_path / name, mode, table, WITH_C)
        with (tmp_path / name / "out" / "anonymized.csv").open() as file:
            told.append((sorted(file), report["cut"], report["stopped"]))
        true.append(by_value(run(tmp_path / f"{name}-single", "single", table, WITH_C))["job"]["Office"])
    assert told[0] == told[1]
    assert true == ["K", "C"]


@pytest.mark.parametrize("mode", ["sealed", "strict"])
def test_all_parties_and_the_page_tell_the_same(tmp_path: Path, mode: str) -> None:
    """A table of fewer than 2K records: any step breaks K, in every mode."""
    table = [{"id": str(i), "sex": "FM"[i % 2], "job": "Clerk"} for i in range(15)]
    report = run(tmp_path / "joint", mode, table, ONLY_K)
    reason = "small" if mode == "strict" else "K"
    assert by_value(report)["sex"] == {"Any": reason}
    page = (tmp_path / "joint" / "out" / "report.html").read_text()
    assert "fewer than K" in page


def test_verify_works_the_reasons_out_again(tmp_path: Path) -> None:
    """A reason that the release does not show is noticed, even in a release with fitting digests."""
    run(tmp_path / "joint", "sealed", rows(0), WITH_C)
    job, out = tmp_path / "joint" / "job.yaml", tmp_path / "joint" / "out"
    report = json.loads((out / "report.json").read_text())
    reasons = [each for found in report["stopped"].values() for each in found if each["reason"] != "leaf"]
    assert reasons
    reasons[0]["reason"] = "C"
    text = json.dumps(report)
    sums = (out / "SHA256SUMS").read_text().splitlines()
    digest = hashlib.sha256(text.encode()).hexdigest()
    lines = [f"{digest}  report.json" if line.endswith("report.json") else line for line in sums]
    (out / "report.json").write_text(text)
    (out / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines))
    ran = invoke("coordinator", "verify", job, out, "--format", "json")
    assert ran.code != 0
    assert "stopped" in ran.problem["message"]
