"""Errors about what keys have to do with each other name the line of a key."""

from __future__ import annotations

import pytest

from jobs.file.key_errors import line_named
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
    ],
)
def test_the_first_key_that_the_file_has(message: str, line: int | None) -> None:
    assert line_named(message, parse_yaml(TEXT, "job.yaml")) == line


@pytest.mark.parametrize("fields", [None, [], "text", {"model": "dp"}, {"model": {"lkc": []}}])
def test_what_is_no_file_has_no_lines(fields: object) -> None:
    assert line_named("`L` and model.lkc.L and columns.age", fields) is None
