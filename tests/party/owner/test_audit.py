"""The audit: every line is on disk before anything is done, whoever writes, whatever the disk does."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crypto.errors import LocalProtocolError
from jobs.errors import PartyError
from party.owner import audit as module
from party.owner.audit import FOLDER, Audit, audit_files
from party.owner.audit_check import check, lines_of

NOON = datetime(2026, 11, 23, 12, 0, 0, 123456, UTC)


def said(state: Path) -> list[str]:
    """What the lines are about, of a chain that holds."""
    return [line.what for line in lines_of(state / FOLDER)]


def failure(audit: Audit, kind: str = "start", **fields: Any) -> PartyError:
    with pytest.raises(PartyError) as caught:
        audit.write(kind, **fields)
    return caught.value


def test_a_line_says_when_and_what(tmp_path: Path) -> None:
    audit = Audit(tmp_path, lambda: NOON)
    head = audit.write("start", job="sample", run="00")
    (path,) = audit_files(tmp_path / FOLDER)
    assert path.name == "000000000001.jsonl"
    found = json.loads(path.read_text())
    assert list(found) == ["n", "before", "at", "what", "job", "run"]
    assert (found["n"], found["at"], found["what"]) == (1, "2026-11-23T12:00:00.123Z", "start")
    assert check(tmp_path / FOLDER).head == head


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    Audit(tmp_path).write("start")
    assert (tmp_path / FOLDER).stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / FOLDER).iterdir()} == {0o600}


@pytest.mark.parametrize("kind", ["tORN", "torn", "party", ""])
def test_a_line_is_about_what_the_table_lists(tmp_path: Path, kind: str) -> None:
    with pytest.raises(LocalProtocolError):
        Audit(tmp_path).write(kind)
    assert not (tmp_path / FOLDER).exists()


def test_it_is_on_disk_when_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synced after the last byte, and the folder when a file is new."""
    done: list[str] = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(module.os, "write", lambda *args: [done.append("write"), write(*args)][1])
    monkeypatch.setattr(module.os, "fsync", lambda file: [done.append("fsync"), fsync(file)][1])
    audit = Audit(tmp_path)
    audit.write("start")
    assert done == ["fsync", "write", "fsync"]
    audit.write_all([("reveal", {}), ("reveal", {})])
    assert done[3:] == ["write", "fsync"]


def test_a_new_file_begins_when_one_is_large_enough_and_the_chain_goes_on(tmp_path: Path) -> None:
    audit = Audit(tmp_path, most_bytes=400)
    for _ in range(20):
        audit.write("start", job="sample")
    files = audit_files(tmp_path / FOLDER)
    assert len(files) > 3
    assert check(tmp_path / FOLDER).head.n == 20
    assert all(path.stat().st_size < 800 for path in files)
    Audit(tmp_path, most_bytes=400).write("stop")
    assert said(tmp_path) == ["start"] * 20 + ["stop"]


def test_a_new_file_begins_with_a_month_also_if_the_clock_goes_back(tmp_path: Path) -> None:
    now = [NOON]
    audit = Audit(tmp_path, lambda: now[0])
    for days in (0, 0, 10, -40, 0):
        now[0] = NOON + timedelta(days=days)
        audit.write("start")
    names = [path.stem.lstrip("0") for path in audit_files(tmp_path / FOLDER)]
    assert names == ["1", "3", "4", "5"]
    (note,) = check(tmp_path / FOLDER).notes
    assert "line 4 the clock went back" in note


def test_writers_take_turns(tmp_path: Path) -> None:
    """In one process or in several; each follows what the others wrote."""
    program = (
        "import sys; from pathlib import Path; from party.owner.audit import Audit\n"
        "audit = Audit(Path(sys.argv[1]), most_bytes=2000)\n"
        "for _ in range(25): audit.write('decision', by=sys.argv[2])"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name], cwd=os.getcwd())
        for name in ("one", "two")
    ]
    audit = Audit(tmp_path, most_bytes=2000)

    def write() -> None:
        for _ in range(25):
            audit.write("reveal")

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(60) for other in others] == [0, 0]
    assert sorted(said(tmp_path)) == ["decision"] * 50 + ["reveal"] * 50


def test_a_writer_that_keeps_the_lock_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOCK_S", 0.05)
    Audit(tmp_path).write("start")
    with module._only_writer(tmp_path / FOLDER):
        assert failure(Audit(tmp_path)).problem.error_id == "audit-failed"
    Audit(tmp_path).write("end")
    assert said(tmp_path) == ["start", "end"]


# ---- a writer that is cut off


@pytest.mark.parametrize("cut", [1, 20, 60])
@pytest.mark.parametrize("again", [False, True])
def test_the_next_start_says_that_a_line_was_torn_and_closes_it(
    tmp_path: Path, cut: int, again: bool
) -> None:
    """Also if it is cut off itself while it does."""
    Audit(tmp_path).write("start")
    Audit(tmp_path).write("end")
    (path,) = audit_files(tmp_path / FOLDER)
    path.write_bytes(path.read_bytes()[:-cut])
    if again:
        before = path.stat().st_size
        Audit(tmp_path).begin()
        path.write_bytes(path.read_bytes()[: before + 30])
    (note,) = check(tmp_path / FOLDER).notes
    assert "behind line 1 are no whole line" in note
    assert Audit(tmp_path).begin() > 0
    assert Audit(tmp_path).begin() == 0
    assert said(tmp_path) == ["start", "torn"]
    (note,) = check(tmp_path / FOLDER).notes
    assert note.startswith("before line 2, at ")
    Audit(tmp_path).write("start")
    assert said(tmp_path) == ["start", "torn", "start"]


def test_a_file_that_begins_torn_is_closed_in_its_place(tmp_path: Path) -> None:
    audit = Audit(tmp_path, most_bytes=1)
    audit.write("start")
    audit.write("reveal")
    _, last = audit_files(tmp_path / FOLDER)
    last.write_bytes(b'{"n":2,"be')
    Audit(tmp_path, most_bytes=1).write("start")
    assert [path.name for path in audit_files(tmp_path / FOLDER)][-1] == last.name
    assert said(tmp_path) == ["start", "torn", "start"]
    last.write_bytes(b"")
    Audit(tmp_path, most_bytes=1).write("end")
    assert said(tmp_path) == ["start", "end"]


def test_whoever_is_alive_closes_what_another_left(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    audit.write("start")
    (path,) = audit_files(tmp_path / FOLDER)
    with path.open("ab") as file:
        file.write(b'{"n":2')
    audit.write("end")
    assert said(tmp_path) == ["start", "torn", "end"]


# ---- a disk that takes no more


@contextmanager
def _files_of_at_most(n_bytes: int) -> Iterator[None]:
    """As a full disk: the kernel takes what fits, and then nothing."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_without_room_there_is_no_line_and_when_there_is_the_chain_goes_on(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    audit.write("start")
    (path,) = audit_files(tmp_path / FOLDER)
    with _files_of_at_most(path.stat().st_size + 40):
        for _ in range(2):
            error = failure(audit, "end")
            assert error.problem.error_id == "audit-failed"
            assert str(path) not in error.problem.for_others()
    assert path.stat().st_size > 40
    audit.write("end")
    assert said(tmp_path) == ["start", "torn", "end"]


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("")
    assert failure(Audit(tmp_path)).problem.error_id == "audit-failed"


def test_after_a_failed_sync_nothing_more_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may call pages written that are not: only a new process looks at the disk again."""
    audit = Audit(tmp_path)
    audit.write("start")

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(module.os, "fsync", fail)
        assert failure(audit).problem.error_id == "audit-failed"
    assert "restart the daemon" in failure(audit).problem.cause
    Audit(tmp_path).write("end")


# ---- somebody else at the files


def test_a_living_writer_notices_that_its_last_line_is_gone_or_another(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    audit.write("start", job="one")
    audit.write("end", job="one")
    (path,) = audit_files(tmp_path / FOLDER)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for changed in (
        whole[:first],
        b"",
        whole.replace(b"end", b"END"),
        whole[:-1],
        whole.replace(b"one", b"two"),
    ):
        path.write_bytes(changed)
        assert failure(audit).problem.error_id == "audit-broken"
    path.unlink()
    assert failure(audit).problem.error_id == "audit-broken"
    path.write_bytes(whole)
    audit.write("stop")
    assert said(tmp_path) == ["start", "end", "stop"]


def test_a_new_writer_follows_the_last_file(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    for name in ("one", "two", "three"):
        audit.write("start", job=name)
    (path,) = audit_files(tmp_path / FOLDER)
    path.write_bytes(path.read_bytes().replace(b"two", b"six"))
    error = failure(Audit(tmp_path))
    assert error.problem.error_id == "audit-broken"
    assert "line 3 was not written after line 2 as it is now" in error.problem.private
    assert "line 3" not in error.problem.for_others()


def test_what_another_process_wrote_meanwhile_is_followed_too(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    audit.write("start")
    (path,) = audit_files(tmp_path / FOLDER)
    with path.open("ab") as file:
        file.write(b'{"n":2,"before":"","at":"","what":"end"}\n')
    assert failure(audit).problem.error_id == "audit-broken"
