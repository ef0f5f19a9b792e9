"""A folder is there whole or not at all, and over no other."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError, problem_of
from jobs.release.folder import new_folder, sweep, write_files
from tests.support.bare import bare
from tests.support.network import GUARD_S


def left_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def written(path: Path, files: dict[str, bytes]) -> None:
    with new_folder(path) as folder:
        write_files(folder, files)


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "er" / "out") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "deep" / "er" / "out").exists()
    assert left_in(tmp_path) == ["deep", "deep/er", "deep/er/out", "deep/er/out/a"]
    written(tmp_path / "two", {"x": b"1", "y": b"2"})
    assert {p.name: p.read_bytes() for p in (tmp_path / "two").iterdir()} == {"x": b"1", "y": b"2"}


def fail_in(out: Path, error: BaseException, beside: str = "") -> None:
    """Fail half-way through making a folder, after somebody else put a file ``beside`` it."""
    with new_folder(out) as folder:
        (folder / "a").write_text("1")
        if beside:
            (out.parent / beside).write_text("1")
        raise error


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), OSError()])
def test_a_failure_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        fail_in(tmp_path / "deep" / "er" / "out", error)
    assert left_in(tmp_path) == []


def test_a_failure_leaves_what_others_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"):
        fail_in(tmp_path / "shared" / "out", ValueError("x"), beside="theirs")
    assert left_in(tmp_path) == ["shared", "shared/theirs"]


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "dangling link"])
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("mine")
    elif kind == "dangling link":
        out.symlink_to(tmp_path / "nowhere")
    else:
        out.mkdir()
        if kind == "folder":
            (out / "mine").write_text("1")
    before = left_in(tmp_path)
    with pytest.raises(ConfigError) as caught, new_folder(out):
        raise AssertionError("not reached")
    assert caught.value.problem.error_id == "output-exists"
    assert left_in(tmp_path) == before


def test_what_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(ConfigError), new_folder(tmp_path / "out"):
        written(tmp_path / "out", {"b": b"theirs"})
    assert left_in(tmp_path) == ["out", "out/b"]


def test_what_appears_at_the_last_moment_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(
        "jobs.release.folder.make_durable", lambda _: (out.mkdir(), (out / "b").write_text("theirs"))
    )
    with pytest.raises(ConfigError) as caught:
        written(out, {"a": b"mine"})
    assert caught.value.problem.error_id == "output-exists"
    assert left_in(tmp_path) == ["out", "out/b"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("umask", "of_folder", "of_file"),
    [(0o022, 0o755, 0o644), (0o027, 0o750, 0o640), (0o077, 0o700, 0o600), (0o002, 0o775, 0o664)],
)
def test_a_folder_is_readable_for_whom_the_umask_allows(
    tmp_path: Path, umask: int, of_folder: int, of_file: int
) -> None:
    """While it is made, it lies in a folder that its owner alone can enter."""
    before = os.umask(umask)
    try:
        with new_folder(tmp_path / "out") as folder:
            write_files(folder, {"x": b""})
            meanwhile = [mode(path) for path in tmp_path.iterdir()]
    finally:
        os.umask(before)
    assert meanwhile == [0o700]
    assert (mode(tmp_path / "out"), mode(tmp_path / "out" / "x")) == (of_folder, of_file)
    assert left_in(tmp_path) == ["out", "out/x"]


def test_an_error_without_a_path_gets_one(tmp_path: Path) -> None:
    """A full disk says no more than that it is full."""
    with pytest.raises(OSError, match="No space left on device") as caught:
        fail_in(tmp_path / "out", OSError(28, "No space left on device"))
    assert problem_of(caught.value).cause == f"{tmp_path / 'out'}: No space left on device"


def test_a_folder_in_place_stays_whatever_the_disk_says_of_the_folder_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would undo what goes with the release, as its entry in a ledger."""

    def failing(file: int) -> None:
        if os.path.samestat(os.fstat(file), tmp_path.stat()):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    written(tmp_path / "out", {"x": b"1"})
    assert left_in(tmp_path) == ["out", "out/x"]


def test_a_folder_that_only_takes_files_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may open any folder, so the answers of the system are given here."""
    access, opening = os.access, os.open

    def listable(path: Path, mode: int) -> bool:
        return access(path, mode) and not (Path(path) == tmp_path and mode == os.R_OK)

    def opened(path: Path, *rest: Any, **named: Any) -> int:
        if Path(path) == tmp_path:
            raise PermissionError(13, "Permission denied", str(path))
        return opening(path, *rest, **named)

    monkeypatch.setattr(os, "access", listable)
    monkeypatch.setattr(os, "open", opened)
    written(tmp_path / "out", {"x": b"1"})
    assert left_in(tmp_path) == ["out", "out/x"]


# ---- what killed makers leave

MAKER = """
import sys
from pathlib import Path
from jobs.release.folder import new_folder
with new_folder(Path(sys.argv[1])) as folder:
    (folder / "table.csv").write_text("a secret")
    print("ready", flush=True)
    sys.stdin.read()
"""


def making(out: Path) -> subprocess.Popen[str]:
    """Another process in the middle of making a folder."""
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKER, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=bare(),
        cwd=Path(__file__).parents[3],
    )
    assert maker.stdout is not None
    assert maker.stdout.readline() == "ready\n"
    return maker


def ended(maker: subprocess.Popen[str]) -> int:
    maker.communicate(timeout=GUARD_S)
    return maker.returncode


def test_what_a_killed_maker_left_is_removed_by_the_next(tmp_path: Path) -> None:
    maker = making(tmp_path / "out")
    maker.send_signal(signal.SIGKILL)
    assert ended(maker) == -signal.SIGKILL
    (hidden,) = tmp_path.iterdir()
    assert (hidden / "out" / "table.csv").exists()
    written(tmp_path / "other", {"x": b"1"})  # not what was being made there
    assert hidden.exists()
    written(tmp_path / "out", {"x": b"1"})
    assert left_in(tmp_path) == ["other", "other/x", "out", "out/x"]


def test_what_a_living_maker_makes_stays(tmp_path: Path) -> None:
    maker = making(tmp_path / "out")
    (hidden,) = tmp_path.iterdir()
    assert sweep(tmp_path) == 0
    written(tmp_path / "out", {"x": b"ours"})
    assert (hidden / "out" / "table.csv").exists()
    assert ended(maker) == 1  # ours was there first
    assert left_in(tmp_path) == ["out", "out/x"]


def test_all_that_killed_makers_left_is_counted(tmp_path: Path) -> None:
    makers = [making(tmp_path / name) for name in ("one", "two", "one")]
    for maker in makers:
        maker.send_signal(signal.SIGKILL)
        ended(maker)
    (tmp_path / "release").mkdir()
    assert sweep(tmp_path) == 3
    assert left_in(tmp_path) == ["release"]
    assert sweep(tmp_path / "nowhere") == 0


@pytest.mark.parametrize("name", [".out-0a2b4c6d", ".out-backup", ".config"])
def test_hidden_folders_of_others_stay(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "theirs").write_text("1")
    assert sweep(tmp_path) == 0
    assert left_in(tmp_path) == [name, f"{name}/theirs"]


def test_a_maker_that_is_swept_away_before_it_locks_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = fcntl.flock
    swept: list[int] = []

    def flock(file: int, how: int) -> None:
        if not swept:
            swept.append(0)
            monkeypatch.setattr(fcntl, "flock", original)
            swept[0] = sweep(tmp_path)
            monkeypatch.setattr(fcntl, "flock", flock)
        original(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    written(tmp_path / "out", {"x": b"1"})
    assert swept == [1]
    assert left_in(tmp_path) == ["out", "out/x"]


def test_a_maker_that_is_swept_away_before_it_has_a_lock_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = tempfile.mkdtemp
    swept: list[int] = []

    def mkdtemp(**how: str) -> str:
        made = original(**how)
        if not swept:
            swept.append(sweep(tmp_path))
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    written(tmp_path / "out", {"x": b"1"})
    assert swept == [1]
    assert left_in(tmp_path) == ["out", "out/x"]
