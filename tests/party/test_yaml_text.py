"""YAML as text: scalars stay what they say, and malformed files say where."""

from __future__ import annotations

from pathlib import Path

import pytest

from party.errors import ConfigError
from party.yaml_text import parse_yaml, read_text


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
        ("a: 1\na: 2", "f, line 2, column 1: key 'a' stands twice"),
        ("x: {b: {c: 1, c: 1}}", "f, line 1, column 15: key 'c' stands twice"),
        ("a: [1, 2", "line 1, column 9"),
        ("a: b: c", "line 1, column 5"),
        ("a: *nobody", "line 1, column 4"),
        ("? [a, b]\n: c", "a key must be plain text"),
        ("a: 1\n---\nb: 2", "line 2"),
        ("a: &x [*x]", "f"),
        ("a: \x07", "not valid YAML"),
        ("{a: " * 5000 + "1" + "}" * 5000, "nested too deeply"),
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


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(tmp_path / "bom") == "a: 1"
