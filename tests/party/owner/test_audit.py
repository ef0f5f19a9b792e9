"""The audit: each line follows from the line before, whoever is killed or tampers; nothing happens without a line."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from crypto.rng import SystemRng
from jobs.errors import PartyError
from party.owner import audit as module
from party.owner.audit import AUDIT, Audit, Broken, Line, as_csv
from tests.support.rng import SeededRng


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    found = Audit(tmp_path, SeededRng("audit"))
    for i in range(6):
        found.note("start", {"job": f"job-{i}", "parties": ("a", "b")})
    return found


def broken_of(audit: Audit) -> Broken | None:
    """Return the first line that does not follow from the line before."""
    return next(iter(audit.checked().broken), None)


def test_lines_follow_from_each_other(audit: Audit) -> None:
    assert broken_of(audit) is None
    assert [line.number for line in audit.lines()] == [1, 2, 3, 4, 5, 6]
    assert [line.facts["job"] for line in audit.lines()] == [f"job-{i}" for i in range(6)]
    assert audit.path.stat().st_mode & 0o777 == 0o600
    salts = [json.loads(line)["salt"] for line in audit.path.read_text().splitlines()]
    assert len(set(salts)) == 6
    assert {len(salt) for salt in salts} == {32}


def test_the_last_lines_are_the_newest_first(audit: Audit) -> None:
    audit.note("stop", {})
    assert [line.number for line in audit.last(3)] == [7, 6, 5]
    assert [line.number for line in audit.last(2, "start")] == [6, 5]
    assert [line.number for line in audit.last(100)] == [7, 6, 5, 4, 3, 2, 1]
    assert audit.last(3, "reveal") == []
    with audit.path.open("ab") as file:
        file.write(b'{"line":8')  # a program that was killed
    assert [line.number for line in audit.last(2)] == [7]


def test_a_reader_holds_up_no_writer(audit: Audit) -> None:
    reader = audit.lines()
    next(reader)
    audit.note("stop", {})  # waits for the lock of the file, if the reader still has it
    assert [line.event for line in reader] == ["start"] * 5
    assert [line.event for line in audit.lines()][-1] == "stop"


def test_a_head_stays_in_the_chain(audit: Audit) -> None:
    before = audit.head().hex()
    audit.note("stop", {})
    assert audit.head().hex() != before
    assert audit.has(before)
    assert not audit.has("1" * 64)
    assert not audit.has("0" * 64)


def test_every_changed_byte_is_found(audit: Audit) -> None:
    content = audit.path.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(content) if byte == 10)]
    head = audit.head().hex()
    for place in range(0, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 1
        audit.path.write_bytes(changed)
        of_line = sum(start <= place for start in starts)
        found = broken_of(audit)
        if of_line == 6 and found is None:  # the end is known to the other parties alone
            assert not audit.has(head)
        else:
            assert found is not None
            assert of_line <= found.number <= of_line + 1


@pytest.mark.parametrize("gone", range(6))
def test_a_removed_line_is_found(audit: Audit, gone: int) -> None:
    head = audit.head().hex()
    lines = audit.path.read_bytes().splitlines(keepends=True)
    audit.path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    found = broken_of(audit)
    if gone == 5:
        assert found is None
        assert not audit.has(head)
    else:
        assert found is not None
        assert found.number == gone + 1


def test_lines_in_another_order_are_found(audit: Audit) -> None:
    lines = audit.path.read_bytes().splitlines(keepends=True)
    lines[2], lines[3] = lines[3], lines[2]
    audit.path.write_bytes(b"".join(lines))
    found = broken_of(audit)
    assert found is not None
    assert found.number == 3


def test_a_torn_line_is_named_and_the_work_goes_on(audit: Audit) -> None:
    content = audit.path.read_bytes()
    audit.path.write_bytes(content[:-20])
    assert audit.checked().torn == (6,)
    audit.note("serve", {})
    assert [line.number for line in audit.lines()] == [1, 2, 3, 4, 5, 7]
    found = audit.checked()
    assert (found.n_lines, found.broken, found.torn) == (6, (), (6,))
    lines = audit.path.read_bytes().splitlines(keepends=True)
    audit.path.write_bytes(b"".join([*lines[:5], lines[5].replace(b"start", b"stort"), *lines[6:]]))
    assert [each.number for each in audit.checked().broken] == [7]


def test_all_breaks_are_found(audit: Audit) -> None:
    lines = audit.path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"job-1", b"job-x")
    del lines[4]
    audit.path.write_bytes(b"".join(lines))
    assert [each.number for each in audit.checked().broken] == [3, 5]


def noted(folder: Path, n: int) -> None:
    audit = Audit(folder, SystemRng())
    for _ in range(n):
        audit.note("start", {}, durable=False)


def test_several_processes_write_one_chain(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("fork")) as processes:
        for done in [processes.submit(noted, tmp_path, 40) for _ in range(3)]:
            done.result()
    audit = Audit(tmp_path, SystemRng())
    assert broken_of(audit) is None
    assert sum(1 for _ in audit.lines()) == 120


@pytest.mark.parametrize("point", range(8))
def test_a_process_that_is_killed_while_it_writes(audit: Audit, point: int) -> None:
    """The chain verifies, or names the torn line; the line is there if the writer went on."""
    steps = ["open", "flock", "fstat", "pread", "write", "half", "fsync", "after"]
    pid = os.fork()
    if pid == 0:  # pragma: no cover  the child is killed
        _kill_at(steps[point])
        try:
            audit.note("charge", {"epsilon": "1"})
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    found, events = broken_of(audit), Counter(line.event for line in audit.lines())
    assert found is None
    assert audit.checked().torn == ((7,) if steps[point] == "half" else ())
    assert events["charge"] == (point >= steps.index("fsync"))
    audit.note("serve", {})
    assert [line.event for line in audit.lines()][-1] == "serve"


def _kill_at(step: str) -> None:
    """Let the kernel kill this process at a step of a note."""
    holder: Any = module.fcntl if step == "flock" else module.os
    name = {"half": "write"}.get(step, step)
    real = getattr(holder, name, None)

    def killed(*given: Any) -> Any:
        if step == "half":
            real(given[0], given[1][: len(given[1]) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    if real is not None:
        setattr(holder, name, killed)


@pytest.mark.parametrize("step", ["open", "write", "fsync"])
def test_a_full_disk_is_an_error(audit: Audit, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(PartyError) as caught:
        audit.note("start", {})
    problem = caught.value.problem
    assert problem.error_id == "io-failed"
    assert AUDIT not in problem.message
    assert "No space left" in problem.cause


def test_a_line_that_is_taken_in_part_is_an_error(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, content: real(file, content[:10]))
    with pytest.raises(PartyError):
        audit.note("start", {})
    monkeypatch.undo()
    found = audit.checked()
    assert (found.n_lines, found.broken, found.torn) == (6, (), ())


def test_a_line_that_is_too_long_is_an_error(audit: Audit) -> None:
    with pytest.raises(PartyError):
        audit.note("start", {"parties": ["x" * 400] * 400})
    assert audit.checked().n_lines == 6


def test_a_nested_line_is_no_line(audit: Audit) -> None:
    with audit.path.open("ab") as file:
        file.write(b"[" * 100_000 + b"\n")
    assert audit.checked().torn == (7,)


def test_words_of_others_make_no_line_of_their_own(audit: Audit) -> None:
    audit.note("refusal", {"message": 'x\n{"line": 8}\x1b[31m', "more": ["\n", {"a\n": "b" * 9000}]})
    assert broken_of(audit) is None
    *_, last = audit.lines()
    assert "\n" not in json.dumps(last.facts["message"])
    assert "\x1b" not in last.facts["message"]
    assert len(last.facts["more"][1]["a\n"]) <= 500


def test_lines_as_csv(audit: Audit) -> None:
    rows = list(as_csv(audit.lines()))
    assert rows[0] == "line,time,event,facts\n"
    assert len(rows) == 7
    assert "salt" not in rows[1]


def test_csv_is_written_line_by_line(audit: Audit) -> None:
    read = []

    def lines() -> Iterator[Line]:
        for line in audit.lines():
            read.append(line.number)
            yield line

    rows = as_csv(lines())
    assert next(rows) == "line,time,event,facts\n"
    assert read == []
    next(rows)
    assert read == [1]


def forge(audit: Audit, **fields: Any) -> None:
    """Add a line that the program would not write."""
    own = {"line": 7, "time": "2026-01-01T00:00:00+00:00", "event": "stop", "salt": "", "before": ""}
    with audit.path.open("ab") as file:
        file.write(json.dumps(own | fields).encode() + b"\n")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_cannot_be_encoded_is_escaped_in_csv(audit: Audit, encoding: str) -> None:
    for field in ("time", "event", "user"):
        forge(audit, **{field: "\ud800"})
    *_, time, event, user = as_csv(audit.lines(), encoding)
    for row in (time, event, user):
        row.encode(encoding)
        assert "\\ud800" in row


def test_a_deep_line_is_written_as_csv(audit: Audit) -> None:
    for depth in range(0, 2000, 20):
        with audit.path.open("ab") as file:
            file.write(
                b'{"line":7,"time":"","event":"","salt":"","before":"","x":'
                + b"[" * depth
                + b"]" * depth
                + b"}\n"
            )
    assert len(list(as_csv(audit.lines()))) > 7


@pytest.mark.parametrize("time", ["yesterday", "2026-01-01T00:00:00", "", "2026-13-01T00:00:00+00:00"])
def test_a_line_of_an_unreadable_time_lies_between_all(audit: Audit, time: str) -> None:
    forge(audit, time=time)
    *_, line = audit.lines()
    day = datetime(2026, 1, 2, tzinfo=UTC)
    assert line.is_between(day, day)


def test_a_line_lies_between_its_times(audit: Audit) -> None:
    forge(audit, time="2026-01-02T00:00:00+01:00")
    *_, line = audit.lines()
    first, day, last = (datetime(2026, 1, k, tzinfo=UTC) for k in (1, 2, 3))
    assert line.is_between(None, None)
    assert line.is_between(first, day)
    assert line.is_between(first, None)
    assert not line.is_between(day, last)
    assert not line.is_between(None, first)
