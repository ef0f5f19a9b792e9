"""Hierarchy makers: the trees, their errors, and jobs that are equal to those with the tree written by hand."""

from __future__ import annotations

import string
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.taxonomy import from_nested
from jobs.errors import ConfigError
from jobs.file.makers import ROOT, category_9, category_10
from jobs.loading import load_task, parse_job
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.job_files import job_file


def job_of(column: Mapping[str, Any], model: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "version": "1",
        "name": "made",
        "partition": "single",
        "goal": "general",
        "data": "table.csv",
        "model": model or {"lkc": {"L": "1", "K": "2"}},
        "columns": {"x": {"role": "qid", **column}},
    }


def tree_of(**maker: Any) -> Any:
    return parse_job(job_of(maker), "job.yaml").columns["x"].taxonomy


def leaves_of(tree: Any) -> list[str]:
    """Return the values of a nested taxonomy from left to right."""
    if isinstance(tree, Mapping):
        return [leaf for below in tree.values() for leaf in leaves_of(below)]
    return list(tree)


ZIPS = ["12345", "12399", "12500", "9", "90210"]
BY_HAND = [
    (
        {"prefix": {"values": ZIPS, "lengths": ["3", "1"]}},
        {
            ROOT: {
                "1****": {"123**": ["12345", "12399"], "125**": ["12500"]},
                "9": ["9"],
                "9****": {"902**": ["90210"]},
            }
        },
    ),
    ({"prefix": {"values": ["AB", "AC"], "lengths": ["2"]}}, {ROOT: {"AB": ["AB"], "AC": ["AC"]}}),
    ({"order": {"values": ["low", "high"]}}, {ROOT: ["low", "high"]}),
    (
        {"order": {"values": ["a", "b", "c", "d", "e"]}},
        {ROOT: {"a–d": {"a–b": ["a", "b"], "c–d": ["c", "d"]}, "e": ["e"]}},
    ),
    (
        {"order": {"values": ["a", "b", "c", "d", "e"], "groups": "3"}},
        {ROOT: {"a–c": ["a", "b", "c"], "d–e": ["d", "e"]}},
    ),
    (
        {"icd": {"version": "10", "values": ["I21.0", "I21.4", "I50", "c50.9", "D50.1"]}},
        {
            ROOT: {
                "I00–I99 Circulatory system": {
                    "I20–I25": {"I21.-": ["I21.0", "I21.4"]},
                    "I30–I52": {"I50.-": ["I50"]},
                },
                "C00–D48 Neoplasms": {"C50–C50": {"C50.-": ["c50.9"]}},
                "D50–D89 Blood and immune mechanism": {"D50–D53": {"D50.-": ["D50.1"]}},
            }
        },
    ),
    (
        {"icd": {"version": "9", "values": ["410.71", "8", "V57", "E8120"]}},
        {
            ROOT: {
                "390–459 Circulatory system": {"410–414": {"410.-": ["410.71"]}},
                "001–139 Infectious diseases": {"001–009": {"008.-": ["8"]}},
                "V01–V91 Factors influencing health": {"V50–V59": {"V57.-": ["V57"]}},
                "E000–E999 External causes": {"E810–E819": {"E812.-": ["E8120"]}},
            }
        },
    ),
]


@pytest.mark.parametrize(("maker", "tree"), BY_HAND)
@pytest.mark.parametrize(
    "model",
    [{"lkc": {"L": "1", "K": "2"}}, {"dp": {"method": "synthetic", "epsilon": "1"}}],
    ids=["lkc", "dp"],
)
def test_a_job_with_a_maker_is_the_job_with_its_tree(
    maker: dict[str, Any], tree: dict[str, Any], model: dict[str, Any]
) -> None:
    made = parse_job(job_of(maker, model), "job.yaml")
    assert made.canonical() == parse_job(job_of({"taxonomy": tree}, model), "job.yaml").canonical()
    assert not {"prefix", "order", "icd"} & set(made.columns["x"].model_dump(exclude_none=True))
    assert parse_job(made.model_dump(mode="json", exclude_none=True), "job.yaml") == made


codes = st.lists(st.text(string.digits, min_size=1, max_size=6), min_size=2, max_size=20, unique=True)
words = st.lists(
    st.text(string.ascii_lowercase, min_size=1, max_size=4), min_size=2, max_size=20, unique=True
)


@given(codes, st.lists(st.integers(1, 7), min_size=1, max_size=3))
def test_prefixes_group_values_that_begin_alike(values: list[str], lengths: list[int]) -> None:
    tree = tree_of(prefix={"values": values, "lengths": lengths})
    assert sorted(leaves_of(tree)) == sorted(values)
    taxonomy = from_nested(tree, "x", missing_leaf=False)
    assert taxonomy.label(taxonomy.root) == ROOT
    for node in taxonomy.nodes[1:]:
        inside = taxonomy.leaves[node.first : node.last]
        begin = taxonomy.label(node).rstrip("*")
        assert len(inside) == 1 or set(inside) == {v for v in values if v.startswith(begin) and v != begin}


@given(words, st.integers(2, 5))
def test_ordered_values_stay_in_order_and_groups_are_neighbours(values: list[str], groups: int) -> None:
    tree = tree_of(order={"values": values, "groups": groups})
    assert leaves_of(tree) == values
    taxonomy = from_nested(tree, "x", missing_leaf=False)
    assert taxonomy.label(taxonomy.root) == ROOT
    for node, below in zip(taxonomy.nodes, taxonomy.children, strict=True):
        assert len(below) <= groups
        if below and node != taxonomy.root:
            ends = (taxonomy.leaves[node.first], taxonomy.leaves[node.last - 1])
            assert taxonomy.label(node) == "–".join(ends)


def test_every_chapter_has_its_range() -> None:
    """Compare with the ranges in the labels: the first and the last category of every chapter are in it."""
    letters = [f"{letter}{n:02d}" for letter in string.ascii_uppercase for n in range(100)]
    tree = tree_of(icd={"version": "10", "values": letters})[ROOT]
    assert len(tree) == 22
    for label, below in tree.items():
        first, last = label.split()[0].split("–")
        inside = leaves_of(below)
        assert {first, last} <= set(inside), label
        assert max(inside)[0] == last[0]
    numbers = [f"{n:03d}" for n in range(1, 1000)]
    others = [f"V{n:02d}" for n in range(1, 92)] + [f"E{n:03d}" for n in range(1000)]
    tree = tree_of(icd={"version": "9", "values": numbers + others})[ROOT]
    assert len(tree) == 19
    for label, below in tree.items():
        first, last = label.split()[0].split("–")
        assert (min(leaves_of(below)), max(leaves_of(below))) == (first, last)


@pytest.mark.parametrize(
    ("version", "codes"),
    [
        (
            "10",
            [f"{letter}{n:02d}" for letter in string.ascii_uppercase for n in range(100)]
            + ["C4A", "M1A", "Z3A"],
        ),
        (
            "9",
            [f"{n:03d}" for n in range(1, 1000)]
            + [f"V{n:02d}" for n in range(1, 92)]
            + ["E000", "E812", "E999"],
        ),
    ],
)
def test_every_block_holds_the_codes_of_its_range(version: str, codes: list[str]) -> None:
    """A code lies in the range of its block; ranges of blocks do not overlap, and blocks lie in one chapter."""
    tree = tree_of(icd={"version": version, "values": codes})[ROOT]
    ranges = []
    for blocks in tree.values():
        for label, below in blocks.items():
            first, last = label.split("–")
            inside = leaves_of(below)
            assert first <= min(inside) <= max(inside) <= last, label
            ranges.append((first, last))
    ranges.sort()
    assert all(last < first for (_, last), (first, _) in pairwise(ranges))
    assert len(set(ranges)) == len(ranges)


@pytest.mark.parametrize(
    ("code", "block"),
    [
        ("I21.4", "I20–I25"),
        ("C50.9", "C50–C50"),
        ("C4A.1", "C4A–C4A"),
        ("X90", "X85–Y09"),
        ("T79.1", "T79–T79"),
    ],
)
def test_the_block_of_a_code(code: str, block: str) -> None:
    (blocks,) = tree_of(icd={"version": "10", "values": [code]})[ROOT].values()
    assert list(blocks) == [block]


@pytest.mark.parametrize(
    ("read", "code", "category"),
    [
        (category_10, "I214", "I21"),
        (category_10, "e11.90", "E11"),
        (category_10, "C4A.1", "C4A"),
        (category_10, "A18.0+", "A18"),
        (category_10, "S72.001A", "S72"),
        (category_10, "121", None),
        (category_10, "I2", None),
        (category_10, "Influenza", None),
        (category_9, "250.83", "250"),
        (category_9, "25083", "250"),
        (category_9, "38", "038"),
        (category_9, "5.9", "005"),
        (category_9, "V270", "V27"),
        (category_9, "E812", "E812"),
        (category_9, "0", None),
        (category_9, "I21", None),
    ],
)
def test_the_category_of_a_code(read: Any, code: str, category: str | None) -> None:
    assert read(code) == category


@pytest.mark.parametrize(
    ("maker", "message"),
    [
        (
            {"prefix": {"values": ["1", "1 "], "lengths": ["1"]}},
            "prefix.values`: '1' is listed twice: list each value once",
        ),
        ({"prefix": {"values": ["1"], "lengths": ["0"]}}, "write numbers of characters, e.g. [1, 3]"),
        ({"prefix": {"values": ["1"]}}, "`columns.x.prefix.lengths` is missing"),
        ({"order": {"values": ["a", "b"], "groups": "1"}}, "columns.x.order.groups"),
        ({"order": {"values": ["a", "b–c", "a–b", "c"]}}, "the label 'a–b–c': rename a value"),
        ({"order": {"values": ["a", "b", "a–b"]}}, "the label 'a–b': rename a value"),
        (
            {"icd": {"version": "10", "values": ["410.71"]}},
            "'410.71' is no code of ICD-10: write codes such as I21.4",
        ),
        (
            {"icd": {"version": "9", "values": ["I21.4"]}},
            "'I21.4' is no code of ICD-9: write codes such as 410.71",
        ),
        ({"icd": {"version": "11", "values": ["A00"]}}, "columns.x.icd.version"),
        (
            {"order": {"values": ["a", "b"]}, "taxonomy": {"*": ["a", "b"]}},
            "columns.x`: `order` and `taxonomy` are given: give one of `taxonomy`,",
        ),
        ({"order": {"values": ["a", "b"]}, "suppress": ["a"]}, "`order` and `suppress` are given"),
        ({"order": {"values": ["a", "b", "a"]}}, "order.values`: 'a' is listed twice: list each value once"),
        ({"order": {"values": []}}, "order.values`: list at least one value"),
        ({"order": {"values": ["a", "*"]}}, "'*' is published for all values together: rename this value"),
        ({"order": {"values": ["a", "b"]}, "role": "plain"}, "a column of role plain has no key 'order'"),
        (
            {"order": {"values": ["a", "b"]}, "icd": {"version": "10", "values": ["A00"]}},
            "columns.x`: `order` and `icd` are given: give one of",
        ),
    ],
)
def test_errors_say_what_to_write(maker: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_job(job_of(maker), "job.yaml")
    assert message in str(caught.value)


def test_a_sensitive_column_takes_a_maker_with_levels() -> None:
    illness = {
        "role": "sensitive",
        "icd": {"version": "10", "values": ["I21", "I50", "C50", "C61"]},
        "level": "1",
        "C": "1/2",
    }
    fields = job_of({"order": {"values": ["a", "b"]}})
    fields["columns"] |= {"illness": illness}
    column = parse_job(fields, "job.yaml").columns["illness"]
    assert (column.level, column.icd) == (1, None)
    assert leaves_of(column.taxonomy) == ["I21", "I50", "C50", "C61"]
    with pytest.raises(
        ConfigError, match="a sensitive column has one of `domain`, `taxonomy` and `numeric`: leave"
    ):
        parse_job(
            {**fields, "columns": {**fields["columns"], "illness": {**illness, "domain": ["I21"]}}},
            "job.yaml",
        )


def test_a_release_with_makers(tmp_path: Path) -> None:
    """Run and verify a job of real commands; its groups print as documented."""
    fields = job_of({"prefix": {"values": ["12345", "12399", "90210"], "lengths": ["1", "3"]}})
    fields["columns"] |= {"stage": {"role": "qid", "order": {"values": ["I", "II", "III", "IV"]}}}
    fields["model"] = {"lkc": {"L": "1", "K": "5"}}
    rows = [
        {"x": code, "stage": stage}
        for code, stage, n in (("12345", "I", 3), ("12399", "II", 3), ("90210", "III", 9), ("90210", "IV", 9))
        for _ in range(n)
    ]
    job = job_file(tmp_path, fields)
    jobs.write_csv(tmp_path / "table.csv", rows)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    table = (tmp_path / "out" / "anonymized.csv").read_text()
    assert {"I–II", "1****", "123**"} & {cell for line in table.splitlines() for cell in line.split(",")}
    assert "12345" not in table
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0
    (tmp_path / "by hand").mkdir()
    tree = parse_job(fields, "job.yaml").columns["x"].taxonomy
    fields["columns"]["x"] = {"role": "qid", "taxonomy": tree}
    by_hand = job_file(tmp_path / "by hand", fields)
    assert load_task(by_hand).bundle.digest == load_task(job).bundle.digest


@pytest.mark.parametrize("role", [{}, {"role": "sensitive", "C": "1/2"}])
def test_ranges_are_a_grid(role: Mapping[str, str]) -> None:
    """The edges, with fractions and below 0; the job is the job with the grid written by hand."""
    grid = {"numeric": {"min": "-1.5", "max": "120", "cuts": ["0", "18"]}}
    fields = job_of({"order": {"values": ["a", "b"]}})
    made, by_hand = (
        parse_job(
            {**fields, "columns": {**fields["columns"], "age": {"role": "qid", **said, **role}}}, "job.yaml"
        )
        for said in ({"ranges": ["-1.5", "0", "18", "120"]}, grid)
    )
    assert made == by_hand
    assert made.columns["age"].ranges is None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"ranges": ["0", "18"]}, "write three edges or more, ascending"),
        ({"ranges": ["5", "1"]}, "write three edges or more, ascending"),
        ({"ranges": ["0", "20", "9", "30"]}, "write three edges or more, ascending"),
        ({"ranges": ["0", "9", "9", "30"]}, "write three edges or more, ascending"),
        ({"ranges": "0-18"}, "ranges"),
        ({"ranges": ["0", "x", "18"]}, "number"),
        ({"ranges": ["0", "9", "18"], "numeric": {"min": "0", "max": "9", "step": "1"}}, "give one of"),
        ({"ranges": ["0", "9", "18"], "taxonomy": {"*": ["a"]}}, "give one of"),
    ],
)
def test_ranges_that_are_none(said: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_job(job_of(said), "job.yaml")
