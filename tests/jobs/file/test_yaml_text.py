"""YAML as text: scalars stay what they say, and malformed files say where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.errors import ConfigError
from jobs.file.yaml_text import MAX_NODES, MAX_TEXT_BYTES, parse_yaml, read_text


def test_scalars_stay_text() -> None:
    text = "{a: 0.20, b: 1/5, c: No, d: 010, e: null, f: 2024-01-01, g: [Y, N, ~], h: '', i: .inf, j: 1_000}"
    assert parse_yaml(text, "f") == {
        "a": "0.20",
        "b": "1/5",
        "c": "No",
        "d": "010",
        "e": "null",
        "f": "2024-01-01",
        "g": ["Y", "N", "~"],
        "h": "",
        "i": ".inf",
        "j": "1_000",
    }


def test_order_is_kept() -> None:
    assert list(parse_yaml("b: 1\na: 2\nc: 3", "f")) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\na: 2", "f: line 2, column 1: key 'a' stands twice"),
        ("x: {b: {c: 1, c: 1}}", "f: line 1, column 15: key 'c' stands twice"),
        ("a: [1, 2", "f: line 1: the `[` is not closed"),
        ("a: b: c", "line 1, column 5: a second colon"),
        ("a: 1\nb 2\nc: 3", "f: line 2: no colon with a blank after it"),
        ("a: 1\nb:2\n\n# x\nc: 3", "f: line 2: no colon with a blank after it"),
        ("b 2\n# x\nc: 1", "f: line 1: no colon with a blank after it"),
        ("a:\n  b 1\n  c: 2", "f: line 2: no colon with a blank after it"),
        ("a:\n  b {c: 1, d: 2}\n", "f: line 2: no colon with a blank after it"),
        ("a: x\n  b: 2", "f: line 2: a key below a value"),
        ("a: 1\n b: 2\nc: 3", "f: line 2: a key below a value"),
        ("a:\n  b: 1\n c: 2", "f: line 3: an indent unlike the lines above"),
        ("a: {b: 1\nc: 2", "f: line 1: the `{` is not closed, or a comma is missing before line 2"),
        ("a: [1, 2\nb: 3", "f: line 1: the `[` is not closed, or a comma is missing before line 2"),
        ("a: 'x\nb: 2", "f: line 1: a quote is not closed"),
        ("a:\n\tb: 1", "f: line 2: a tab at the beginning"),
        ("a: *nobody", "line 1, column 4: an alias"),
        ("a: &x [1]\nb: *x", "f: line 2, column 4: an alias"),
        ('a: "\\ud800"', "line 1"),
        ("a: \ud800", "not valid YAML"),
        ("a: \0", "not valid YAML"),
        ("? [a, b]\n: c", "a key must be plain text"),
        ("a: 1\n---\nb: 2", "line 2"),
        ("a: &x [*x]", "f"),
        ("a: \x07", "not valid YAML"),
        ("{a: " * 5000 + "1" + "}" * 5000, "nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        (f"[{'a, ' * MAX_NODES}a]", f"more than {MAX_NODES} values"),
    ],
)
def test_malformed_yaml_says_where(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "f")
    assert caught.value.problem.error_id == "yaml-invalid"
    assert says in caught.value.problem.message


def test_tags_build_nothing() -> None:
    assert parse_yaml("a: !!python/object/apply:os.getcwd []\nb: !!int 3", "f") == {"a": [], "b": "3"}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("Größe".encode("latin-1"))
    for name, says in (("absent", "No such file"), (".", "Is a directory"), ("latin", "is not UTF-8")):
        with pytest.raises(ConfigError) as caught:
            read_text(tmp_path / name)
        assert caught.value.problem.error_id == "file-missing"
        assert says in caught.value.problem.message


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ConfigError, match="is no regular file"):
            read_text(path)


def test_a_file_has_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(MAX_TEXT_BYTES + 1))
    with pytest.raises(ConfigError, match="has more than 8388608 bytes"):
        read_text(path)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(tmp_path / "bom") == "a: 1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            "Linz;*\nKöln;*\n".encode("latin-1"),
            "is not UTF-8 text (line 2; perhaps Latin-1 or Windows-1252)",
        ),
        ("Linz;*\n".encode("utf-16"), "is UTF-16 text"),
        (b"\xfe\xff" + "Linz;*\n".encode("utf-16-be"), "is UTF-16 text"),
        ("Linz;*\n".encode("utf-16-le"), "has a zero byte (NUL) on line 1: perhaps UTF-16 text"),
        (b"Linz;*\nG\0raz;*\n", "has a zero byte (NUL) on line 2: perhaps UTF-16 text"),
        (b"PK\x03\x04\x14\xff\xfe", "is an Excel workbook or a different archive"),
    ],
    ids=["latin-1", "utf-16", "utf-16 big", "utf-16 without mark", "zero", "workbook"],
)
def test_another_encoding_is_named_with_its_cure(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "cities.csv"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_text(path)
    problem = caught.value.problem
    assert (problem.error_id, problem.message) == ("file-missing", f"{path} {says}")
    assert "UTF-8" in problem.remedy
