"""Digests of the files of a release: the form that `sha256sum -c` reads, and every way to differ from it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from jobs.errors import PartyError
from jobs.release.sums import (
    SUMS,
    check_folder,
    file_fields,
    read_sums,
    release_digest,
    sums_of,
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
