"""Errors about what keys have to do with each other name the line of a key."""

from __future__ import annotations

import pytest

from jobs.file.key_errors import line_of, path_named
from jobs.file.yaml_text import parse_yaml

TEXT = """version: 1
goal: general
model:
  lkc:
    L: 2
    score: tdr
columns:
  age:
    role: qid
    numeric: {min: 0, max: 9, step: 1}
  age group: {role: class}
  age-at.death:
    role: sensitive
    domain: [a, b]
  "2":
    role: id
"""
MANY = """model:
  lkc:
    requirements:
      - K: 2
        colluders: 1
      - L: 2
        K: 3
"""


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("`score: tdr` is for `goal: classification`", 6),
        ("with `goal: general` there is no class", 2),
        ("columns.age.numeric: too many cells", 10),
        ("columns.age.at_most is for `diversity`", 8),
        ("model.lkc.L: 2 of 1 columns", 5),
        ("`nowhere` is missing, and `L` stands alone", 5),
        ("partition single needs `data: table.csv`", None),
        ("columns.sex is no column", None),
        ("nothing is named", None),
        ("columns.age group: no requirement names the column", 11),
        ("columns.age group.role is wrong", 11),
        ("columns.age-at.death: `age` is older", 12),
        ("columns.age-at.death.domain: 'a' cannot be published", 14),
        ("columns.2: two of them", 15),
        ("sensitive column x needs a C, at the column or in `model.lkc` (1: no bound)", 4),
        ("columns: at least one column needs `role: qid`", 7),
        ("goal: what is this", 2),
        ("goal general needs a class", None),
        ("model.lkc.LL is no key, nor columns.age-x", 4),
        ("`model.lkc.L: 2` is small", 5),
    ],
)
def test_the_first_key_that_the_file_has(message: str, line: int | None) -> None:
    fields = parse_yaml(TEXT, "job.yaml")
    assert line_of(path_named(message, fields), fields) == line


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("model.lkc.requirements.0.colluders is for rows", 5),
        ("model.lkc.requirements.1: asks for nothing", 6),
        ("model.lkc.requirements.1.K: too large", 7),
        ("model.lkc.requirements.7.K: there is no such entry", 3),
    ],
)
def test_entries_of_a_list(message: str, line: int | None) -> None:
    fields = parse_yaml(MANY, "job.yaml")
    assert line_of(path_named(message, fields), fields) == line


def test_only_the_beginning_of_a_message_is_read() -> None:
    fields = parse_yaml(TEXT, "job.yaml")
    assert path_named(f"{'a ' * 2000}columns.age", fields) == ("columns", "age")
    assert path_named(f"{'a ' * 1_000_000}columns.age", fields) == ()


def test_keys_of_a_column_that_an_error_is_about() -> None:
    fields = parse_yaml(TEXT, "job.yaml")
    assert path_named("column age: a `step` of 0", fields, ("columns", "age", "numeric")) == (
        *("columns", "age", "numeric"),
        "step",
    )


@pytest.mark.parametrize("fields", [None, [], "text", {"model": "dp"}, {"model": {"lkc": []}}])
def test_what_is_no_file_has_no_lines(fields: object) -> None:
    assert line_of(path_named("`L` and model.lkc.L and columns.age", fields), fields) is None
