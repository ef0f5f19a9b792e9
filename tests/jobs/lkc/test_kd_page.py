"""Reasons on both pages why groups of a kd table are no smaller, against tables with known reasons."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.page.page import PAGE
from jobs.release.folder import OWN_PAGE
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.job_files import job_file
from tests.support.pages import Reader

COLUMNS = {
    "ward": {"role": "qid", "taxonomy": {"*": ["p", "q"]}, "missing": "drop"},
    "sex": {"role": "qid", "taxonomy": {"*": ["a", "b"]}, "missing": "drop"},
    "ill": {"role": "sensitive", "domain": ["flu", "HIV"], "values": ["HIV"]},
}
REFUSED = [
    *[("p", "a", "HIV" if i < 2 else "flu") for i in range(10)],
    *[("p", "b", "flu") for _ in range(2)],  # a cut would leave two records
    *[("q", "a", "HIV") for _ in range(6)],  # a cut would leave HIV alone
    *[("q", "b", "flu") for _ in range(6)],
]
ENDED = [
    *[("p", "a" if i < 4 else "b", "flu") for i in range(9)],  # fewer than 2·K
    *[("q", "a" if i < 6 else "b", "flu") for i in range(12)],  # nothing is left to cut
]


def text_of(page: Path) -> str:
    return " ".join(" ".join(Reader(page.read_text()).texts).replace("\u00a0", " ").split())


def released(folder: Path, rows: list[tuple[str, str, str]], **lkc: str) -> Path:
    """Return the folder of a release with groups by `ward` and `sex`."""
    fields: dict[str, Any] = {
        "version": "1",
        "name": "kd",
        "partition": "single",
        "goal": "general",
        "data": "t.csv",
        "model": {"lkc": {"L": "all", "K": "5", "C": "1/2", "method": "kd", **lkc}},
        "columns": COLUMNS,
    }
    jobs.write_csv(folder / "t.csv", [dict(zip(("ward", "sex", "ill"), row, strict=True)) for row in rows])
    ran = invoke("coordinator", "run", job_file(folder, fields), "--out", folder / "out")
    assert ran.code == 0, ran.err
    return folder / "out"


def groups_of(out: Path) -> Counter[tuple[str, str]]:
    with (out / "anonymized.csv").open(newline="") as file:
        return Counter((row["ward"], row["sex"]) for row in csv.DictReader(file))


@pytest.mark.parametrize("split", ["public", "median"])
def test_groups_without_an_allowed_cut_are_told(tmp_path: Path, split: str) -> None:
    """The release does not tell the threshold. The owner sees the threshold."""
    out = released(tmp_path, REFUSED, split=split)
    text = text_of(out / PAGE)
    assert groups_of(out) == {("p", "*"): 12, ("q", "*"): 12}
    assert (
        "No allowed cut 2 100 % At each place for a cut a side would have fewer than K records or break C"
        in text
    )
    assert "ward 100 % 0 % 0 % sex 0 % 0 % 100 %" in text
    assert "ward p, sex * 12 ward q, sex * 12 To keep more detail" in text
    assert "A smaller K cuts groups" not in text
    assert ("split: median cuts" in text) == (split == "public")
    assert "A weaker C of ill." in text
    assert "ward p, sex * 12 K ward q, sex * 12 C of ill" in text_of(out / OWN_PAGE)


def test_small_groups_and_finest_values_are_told(tmp_path: Path) -> None:
    out = released(tmp_path, ENDED)
    text = text_of(out / PAGE)
    assert groups_of(out) == {("p", "*"): 9, ("q", "a"): 6, ("q", "b"): 6}
    assert "Fewer than 2·K=10 records 1 42.9 % A cut would leave a side" in text
    assert "No allowed cut 0 0 %" in text
    assert "Finest values 2 57.1 % The job has no finer values." in text
    assert "ward 100 % 0 % 0 % sex 57.1 % 42.9 % 0 %" in text
    assert "A smaller K cuts groups" in text
    assert "A weaker" not in text
    assert "no smaller" not in text_of(out / OWN_PAGE)


def test_without_a_further_threshold_the_page_names_k_alone(tmp_path: Path) -> None:
    text = text_of(released(tmp_path, REFUSED, C="1") / PAGE)
    assert "a side would have fewer than K records. " in text
    assert "which" not in text.split("No allowed cut")[1].split("Finest")[0]
    assert "A weaker" not in text


def test_a_joint_page_has_the_reasons_of_the_table_alone(tmp_path: Path) -> None:
    """The page of a party of a joint run does not say a threshold: other parties' records decide."""
    parties: Mapping[str, Any] = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate("ab")}
    fields: dict[str, Any] = {
        "version": "1",
        "name": "kd",
        "partition": "horizontal",
        "goal": "general",
        "disclosure": "sealed",
        "parties": parties,
        "model": {"lkc": {"L": "all", "K": "5", "C": "1/2", "method": "kd"}},
        "columns": COLUMNS,
    }
    data = []
    for place, party in enumerate(parties):
        rows = [dict(zip(("ward", "sex", "ill"), row, strict=True)) for row in REFUSED[place::2]]
        data.append(f"--data={party}={jobs.write_csv(tmp_path / f'{party}.csv', rows)}")
    job, out = job_file(tmp_path, fields), tmp_path / "out"
    ran = invoke("coordinator", "simulate", job, *data, "--in-process", "--out", out)
    assert ran.code == 0, ran.err
    assert "No allowed cut 2 100 %" in text_of(out / PAGE)
    assert "no smaller" not in text_of(out / "own" / "a.html")
