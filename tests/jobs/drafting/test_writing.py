"""Text of a draft: YAML that reads back as it was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.drafting.writing import name_of, quoted, unnameable, yaml_lines
from jobs.file.yaml_text import parse_yaml

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
values = st.recursive(
    texts, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5)
)


@given(texts)
def test_a_text_reads_back(text: str) -> None:
    assert parse_yaml(f"key: {quoted(text)}\n", "x") == {"key": text}


@given(texts, values)
def test_a_field_reads_back_and_keeps_to_the_width(key: str, value: object) -> None:
    lines = yaml_lines(key, value, "  ")
    assert parse_yaml("".join(lines), "x") == {key: value}
    assert all(line.endswith("\n") for line in lines)


def test_long_lists_are_broken_between_values() -> None:
    lines = yaml_lines("city", {"suppress": [f"Town {n}" for n in range(100)]}, "  ")
    assert len(lines) > 5
    assert max(map(len, lines)) <= 111


@pytest.mark.parametrize(
    ("table", "name"),
    [("my table (1).csv", "my-table-1"), ("data.csv.gz", "data"), ("…", "drafted"), ("-x.csv", "x")],
)
def test_the_name_of_a_job(table: str, name: str) -> None:
    assert name_of(Path(table)) == name


def test_names_that_no_job_can_have() -> None:
    found = unnameable(["age", "", "=cmd", "Age", "city", "city"])
    assert set(found) == {"", "=cmd", "Age", "city"}
