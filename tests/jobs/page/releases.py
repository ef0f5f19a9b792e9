"""Releases of every model for tests of pages, made when a test asks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support import jobs
from tests.support.commands import invoke
from tests.support.job_files import job_file

EVIL = "<img src=x onerror=alert(1)>"
QID = {
    "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}, "missing": "leaf"},
    "town": {"role": "qid", "suppress": ["Bonn", "Lyon", EVIL]},
}
ILL = {"role": "sensitive", "domain": ["flu", "cold", "HIV"], "values": ["HIV"], "C": "1/2"}
PARTIES = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate("abc")}
JOINT = {"partition": "horizontal", "parties": PARTIES, "disclosure": "sealed", "data": None}
TREE = {**QID, "town": {"role": "qid", "taxonomy": {"*": ["Bonn", "Lyon", EVIL]}}}
OF_LKC = {"L": "2", "K": "5", "C": "1/2"}
OF_DP = {
    name: {key: value for key, value in column.items() if key != "missing"} for name, column in TREE.items()
}
CLASS = {"died": {"role": "class", "domain": ["N", "Y"]}}
JOBS: Mapping[str, dict[str, Any]] = {
    "single": {"model": {"lkc": OF_LKC}, "columns": {**QID, "ill": ILL}},
    "classified": {
        "model": {"lkc": OF_LKC},
        "columns": {**QID, "ill": ILL, **CLASS},
        "goal": "classification",
    },
    "withheld": {"model": {"lkc": {**OF_LKC, "withhold": "1/20"}}, "columns": {**QID, "ill": ILL}},
    "kd": {"model": {"lkc": {**OF_LKC, "L": "all", "method": "kd"}}, "columns": {**TREE, "ill": ILL}},
    "anatomy": {
        "model": {"lkc": {**OF_LKC, "L": "all", "release": "anatomy"}},
        "columns": {**QID, "ill": ILL},
    },
    "joint": {"model": {"lkc": OF_LKC}, "columns": {**QID, "ill": ILL}, **JOINT},
    "vertical": {
        "model": {"lkc": OF_LKC},
        "columns": {"person": {"role": "id"}, **TREE, "ill": ILL, **CLASS},
        "goal": "classification",
        "partition": "vertical",
        "parties": {
            "a": {"address": "127.0.0.1:7401", "columns": ["age"]},
            "b": {"address": "127.0.0.1:7402", "columns": ["town", "ill"]},
        },
        "disclosure": "sealed",
        "data": None,
    },
    "sequences": {
        "model": {"sequences": {"L": "2", "K": "5", "C": "1/2"}},
        "columns": {
            "town": {"role": "items", "domain": ["Bonn", "Lyon", EVIL]},
            "ill": {"role": "sensitive", "domain": ["flu", "cold", "HIV"], "values": ["HIV"]},
        },
        "goal": None,
    },
    "dp": {
        "model": {"dp": {"epsilon": "1", "specializations": "3"}},
        "columns": {**OF_DP, **CLASS},
        "goal": "classification",
    },
    "synthetic": {
        "model": {"dp": {"epsilon": "2", "method": "synthetic"}},
        "columns": {**OF_DP, **CLASS},
        "goal": "classification",
    },
}


def table() -> list[dict[str, str]]:
    rng = random.Random(9)  # noqa: S311
    return [
        {
            "person": f"p{i}",
            "age": "" if i % 20 == 0 else str(rng.randrange(100)),
            "town": rng.choice(["Bonn", "Lyon", "Lyon", EVIL]),
            "ill": rng.choice(["flu", "flu", "cold", "cold", "HIV"]),
            "died": rng.choice("NNY"),
        }
        for i in range(240)
    ]


def made_releases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return the folder of a release of every model, by name; the job lies beside."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        whole = {
            "version": "1",
            "name": name,
            "partition": "single",
            "goal": "general",
            "data": "t.csv",
        } | JOBS[name]
        job = job_file(folder, {key: value for key, value in whole.items() if value is not None})
        rows = table()
        jobs.write_csv(folder / "t.csv", rows)
        if "parties" in whole:
            vertical = whole["partition"] == "vertical"
            data = [
                f"--data={party}={jobs.write_csv(folder / f'{party}.csv', rows if vertical else rows[place::3])}"
                for place, party in enumerate(whole["parties"])
            ]
            ran = invoke("coordinator", "simulate", job, *data, "--in-process", "--out", folder / "out")
        else:
            ran = invoke("coordinator", "run", job, "--out", folder / "out")
        assert ran.code == 0, ran.err
        return folder

    class Made(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            return made(name)

    return Made()
