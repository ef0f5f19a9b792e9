"""Statements of the page of a synthetic table on noise, against distributions term by term and released files."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from jobs.page.page import PAGE
from jobs.page.parts import percent
from jobs.synthetic.page import _of_noise
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.job_files import job_file
from tests.support.pages import Reader


@pytest.mark.parametrize("rate", [0.05, 0.7, 3.0, 400.0])
def test_the_share_of_noise(rate: float) -> None:
    """The mean error of a count, term by term; half of the errors of 30 counts of 5,000 records in all."""
    each = (1 - math.exp(-rate)) / (1 + math.exp(-rate))
    mean = 2 * math.fsum(each * k * math.exp(-rate * k) for k in range(1, 2000))
    table = {"scale": f"{1 / rate:.6g}", "counts": 30, "half_width_95": 7}
    share, words = _of_noise(table, {"a": 4000, "b": 1000})
    assert share == percent(30 * mean / 2 / 5000)
    assert words == "95 of 100 counts are off by 7 or less."


def released(folder: Path, epsilon: str) -> tuple[str, dict[str, Any]]:
    fields: dict[str, Any] = {
        "version": "1",
        "name": "drawn",
        "partition": "single",
        "goal": "general",
        "data": "t.csv",
        "model": {"dp": {"epsilon": epsilon, "method": "synthetic"}},
        "columns": {
            "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "5"}},
            "town": {"role": "qid", "taxonomy": {"*": ["Bonn", "Lyon", "Rome"]}},
            "ward": {"role": "qid", "taxonomy": {"*": ["a", "b", "c"]}},
        },
    }
    rng = random.Random(3)  # noqa: S311
    rows = [
        {"age": str(rng.randrange(50, 60)), "town": town, "ward": "abc"[["Bonn", "Lyon", "Rome"].index(town)]}
        for town in rng.choices(["Bonn", "Lyon", "Rome"], k=400)
    ]
    jobs.write_csv(folder / "t.csv", rows)
    ran = invoke("coordinator", "run", job_file(folder, fields), "--out", folder / "out")
    assert ran.code == 0, ran.err
    text = " ".join(" ".join(Reader((folder / "out" / PAGE).read_text()).texts).split())
    return text, json.loads((folder / "out" / "report.json").read_text())


def test_mostly_noise_is_told_by_table(tmp_path: Path) -> None:
    text, report = released(tmp_path, "1/100")
    tables, noisy = report["tables"], report["mostly_noise"]["tables"]
    assert noisy, "a table of noise"
    is_or_are = "is" if len(noisy) == 1 else "are"
    assert f"Of {len(tables)} measured tables {len(noisy)} {is_or_are} mostly noise: the counts are" in text
    assert "Columns of these tables: age" in text


def test_the_fit_is_in_words_and_bars_have_no_gap(tmp_path: Path) -> None:
    text, report = released(tmp_path, "10")
    fit = {each["table"]: float(each["chi_square"]) / each["counts"] for each in report["fit"]}
    assert report["edges"], "a measured pair"
    for edge in report["edges"]:
        ratio = fit[edge["table"]]
        word = "good" if ratio <= 1.5 else "fair" if ratio <= 3 else "poor"
        assert f"{word}: {ratio:.1f} times the squared distance from the noisy counts" in text
    bars = text.split("Shares of the drawn rows.")[1]
    assert "[0,5) " in bars
    assert "[95,100) " in bars
