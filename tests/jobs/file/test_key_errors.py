"""Errors in job and configuration files: the key, its line, and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from jobs.errors import ConfigError
from jobs.loading import load_task
from party.owner.config import PartyConfig, load_config
from tests.support.samples import single_job

JOB = """\
version: 1
name: sample
partition: single
model:
  lkc: {L: 2, K: 2, C: 0.5}
goal: classification

# a comment, and a blank line above
data: table.csv
columns:
  job: {role: qid, taxonomy: {Any: {Blue: [Janitor, Mover], White: [Lawyer]}}}
  age:
    role: qid
    numeric: {min: 0, max: 100, step: 10}
  died: {role: class}
  surgery:
    role: sensitive
    values: [Rare]
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("K: 2,", "k: 2,", "line 5: unknown key `model.lkc.k`"),
        ("K: 2,", "", "line 5: `model.lkc.K` is missing"),
        ("K: 2,", "K: two,", "line 5: `model.lkc.K`: write a whole number, e.g. 5"),
        ("values: [Rare]", "values: HIV", "line 18: `columns.surgery.values`: write a list, e.g. [HIV]"),
        ("    role: qid\n", "    roel: qid\n", "line 13: unknown key `columns.age.roel`"),
        ("min: 0", "min: 2020-01-01", "line 14: `columns.age.numeric.min`: a date is no number"),
        (
            "numeric: {min: 0, max: 100, step: 10}",
            "numeric: [0, 100]",
            "line 14: `columns.age.numeric`: write keys",
        ),
        ("data: table.csv", "data: {paht: table.csv}", "line 9: unknown key `data.paht`"),
        ("data: table.csv", "data: {delimiter: ';'}", "line 9: `data.path` is missing"),
        ("data: table.csv", "data: [a, b]", "line 9: `data`: write keys and values"),
        ("data: table.csv", "data: {path: t.csv, delimiter: ';;'}", "line 9: `data.delimiter`"),
        ("data: table.csv\n", "", "partition single needs `data: table.csv`"),
        ("name: sample\n", "", "`name` is missing"),
        ("C: 0.5}", "C: 0.5, distinct: {}}", "list 1 or more entries, each"),
    ],
)
def test_a_wrong_key_is_named_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert JOB.count(old) == 1
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_task(path)
    assert says in caught.value.problem.message


def test_lines_of_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "party.yaml"
    path.write_text(
        "version: 1\nname: a\nlisten: 127.0.0.1:1\ndata:\n  csv:\n    path: t.csv\n    delim: ';'\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_config(PartyConfig, path)
    message = caught.value.problem.message
    assert "line 7: unknown key `data.csv.delim`" in message
    assert "`tls` is missing" in message


def test_a_key_called_path_is_named_where_no_union_is(tmp_path: Path) -> None:
    path = tmp_path / "party.yaml"
    path.write_text("version: 1\nname: a\ntls: {certificate: c, key: k}\ndata: {path: t.csv}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(PartyConfig, path)
    assert "line 4: unknown key `data.path`" in caught.value.problem.message


def test_jobs_are_the_same_whether_their_lines_are_known_or_not(tmp_path: Path) -> None:
    """What YAML adds to mappings does not come into the bundle."""
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(single_job()))
    assert load_task(path).bundle.encoded.startswith(b'{"bundle":1,"job":{"version":"1","name":"sample"')
    assert b"lines" not in load_task(path).bundle.encoded
