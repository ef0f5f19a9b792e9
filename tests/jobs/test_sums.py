"""Digests of the files of a release: the form that `sha256sum -c` reads, and every way to differ from it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from jobs.errors import PartyError
from jobs.sums import (
    SUMS,
    check_folder,
    file_fields,
    read_sums,
    release_digest,
    sums_of,
    table_of,
    unlisted,
    write_sums,
)

FILES = {"b.csv": b"x\n", "a.json": b""}
MADE = ("b.csv", "a.json", "more.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    assert write_sums(tmp_path, tuple(FILES)) == release_digest(sums_of(FILES))
    return tmp_path


def test_the_form_is_that_of_sha256sum(folder: Path) -> None:
    empty = hashlib.sha256(b"").hexdigest()
    other = hashlib.sha256(b"x\n").hexdigest()
    assert (folder / SUMS).read_text() == f"{empty}  a.json\n{other}  b.csv\n"
    assert read_sums((folder / SUMS).read_bytes()) == {"a.json": empty, "b.csv": other}
    assert file_fields(FILES) == {
        "a.json": {"sha256": empty, "bytes": 0},
        "b.csv": {"sha256": other, "bytes": 2},
    }
    if program := shutil.which("sha256sum"):
        assert subprocess.run([program, "-c", "--quiet", SUMS], cwd=folder, check=False).returncode == 0


def test_what_was_not_changed_has_the_digest_of_all(folder: Path) -> None:
    assert check_folder(folder, MADE) == hashlib.sha256((folder / SUMS).read_bytes()).digest()
    assert unlisted(folder) == []
    (folder / "own-account.json").write_text("a party's own file is in no release")
    check_folder(folder, MADE)
    assert unlisted(folder) == ["own-account.json"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("b.csv", b"y\n", "b.csv is not the file"),
        ("b.csv", None, "b.csv is missing"),
        ("a.json", b"\n", "a.json is not the file"),
        ("more.csv", b"", "more.csv is not listed"),
        (SUMS, b"", "malformed"),
        (SUMS, b"x  b.csv\n", "malformed"),
        (SUMS, sums_of(FILES) + b"\n", "malformed"),
        (SUMS, sums_of(FILES)[:-1], "malformed"),
        (SUMS, b"".join(reversed(sums_of(FILES).splitlines(keepends=True))), "malformed"),
        (SUMS, sums_of(FILES).replace(b"b.csv", b"../b"), "malformed"),
        (SUMS, sums_of(FILES).replace(b"b.csv", b"b/c.csv"), "malformed"),
        (SUMS, sums_of(FILES).replace(b"b.csv", b"../part-00000.parquet"), "malformed"),
        (SUMS, sums_of(FILES).replace(b"b.csv", b"b/../part-00000.parquet"), "malformed"),
        (SUMS, sums_of(FILES).upper(), "malformed"),
        (SUMS, "ä".encode(), "malformed"),
    ],
)
def test_every_change_is_noticed(folder: Path, name: str, content: bytes | None, says: str) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(PartyError, match=says) as caught:
        check_folder(folder, MADE)
    assert caught.value.problem.error_id == "verification-failed"


PARTS = ("more/part-00000.parquet", "more/part-00001.parquet")


def in_parts(folder: Path) -> None:
    """A table more, in two parts."""
    (folder / "more").mkdir()
    for name in PARTS:
        (folder / name).write_text(name)
    write_sums(folder, (*FILES, *PARTS))


def test_parts_have_a_digest_each(folder: Path) -> None:
    in_parts(folder)
    assert list(read_sums((folder / SUMS).read_bytes())) == ["a.json", "b.csv", *PARTS]
    check_folder(folder, MADE)
    assert unlisted(folder) == []
    if program := shutil.which("sha256sum"):
        assert subprocess.run([program, "-c", "--quiet", SUMS], cwd=folder, check=False).returncode == 0
    (folder / PARTS[1]).write_text("another")
    with pytest.raises(PartyError, match=r"part-00001.parquet is not the file"):
        check_folder(folder, MADE)


@pytest.mark.parametrize("name", ["more/part-00002.parquet", "more/rows.csv", "more.csv"])
def test_nothing_lies_beside_parts(folder: Path, name: str) -> None:
    """Whoever reads the folder of a table reads all that is in it."""
    in_parts(folder)
    (folder / name).write_text("x")
    with pytest.raises(PartyError, match=f"{name} is not listed"):
        check_folder(folder, MADE)


def test_the_table_of_a_file() -> None:
    assert [table_of(name) for name in ("b.csv", "more/part-00000.parquet", "more/part-123456.parquet")] == [
        "b.csv",
        "more.csv",
        "more.csv",
    ]
    others = ["more/x.csv", "a/more/part-00000.parquet", "../part-00000.parquet", "more/part-1.parquet"]
    assert [table_of(name) for name in others] == others
