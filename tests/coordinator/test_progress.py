"""Progress: a bar on a terminal, plain lines elsewhere, JSON lines for programs."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import party.cli.console
from coordinator.progress import Pace, RowsShown, _JsonLines, _Lines, progress_of
from tests.support import jobs
from tests.support.bare import bare
from tests.support.joint import sample_rows
from tests.support.network import GUARD_S, command, write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(*arguments: str | Path) -> tuple[int, str, str]:
    """Run the coordinator with a terminal as its standard error; return code, output, and what was shown."""
    master, slave = pty.openpty()
    shown = bytearray()

    def watch() -> None:
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the last writer is gone
                return
            if not part:
                return
            shown.extend(part)

    with subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**bare(), "TERM": "xterm", "COLUMNS": "140"},
    ) as process:
        os.close(slave)
        watcher = threading.Thread(target=watch)
        watcher.start()
        out, _ = process.communicate(timeout=2 * GUARD_S)
        watcher.join(GUARD_S)
    os.close(master)
    return process.returncode, out.decode(), ANSI.sub("", shown.decode())


@pytest.fixture
def arguments(tmp_path: Path) -> list[str | Path]:
    rows = sample_rows(300)
    given: list[str | Path] = ["simulate", write_job(tmp_path, joint_job(goal="general"))]
    for i, name in enumerate(PARTIES):
        given.append(f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', rows[i::3], COLUMNS)}")
    return [*given, "--out", tmp_path / "out"]


def test_a_terminal_shows_iteration_column_parties_and_time(arguments: list[str | Path]) -> None:
    code, out, shown = on_a_terminal(*arguments, "--in-process")
    assert code == 0
    assert "sample · 3 parties · " in shown
    assert re.search(r"iteration \d+: (age|job) (specialized|step refused)", shown)
    assert re.search(r"· \d+\.\d s", shown)
    assert '{"' not in shown
    assert "300 rows" in out
    assert "\x1b" not in out


def test_json_is_json_on_a_terminal_too(arguments: list[str | Path]) -> None:
    code, out, shown = on_a_terminal(*arguments, "--in-process", "--format", "json")
    assert code == 0
    assert json.loads(out)["rows"] == 300
    assert {json.loads(line)["event"] for line in shown.splitlines()} == {"phase", "root", "turn"}


def test_an_error_on_a_terminal_is_one_line(arguments: list[str | Path], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    code, out, shown = on_a_terminal(*arguments)
    assert (code, out) == (2, "")
    (line,) = [line for line in shown.splitlines() if line.strip()]
    assert line.startswith("error: output-exists: ")


def test_lines_carry_job_parties_and_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(party.cli.console._settings, "format", "json")
    with progress_of("a job", 3) as progress:
        progress.phase("run")
        progress.turn(7, "age", False)
        progress.trial(2, 9)
    first, second, third = map(json.loads, capsys.readouterr().err.splitlines())
    assert first.pop("elapsed_s") <= second.pop("elapsed_s")
    assert first == {"job": "a job", "parties": 3, "event": "phase", "phase": "run"}
    assert second == {
        "job": "a job",
        "parties": 3,
        "event": "turn",
        "iteration": 7,
        "column": "age",
        "applied": False,
    }
    assert (third["event"], third["trial"], third["most"]) == ("trial", 2, 9)


def test_a_file_gets_a_plain_line_for_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of("a [job]", 3) as progress:
        progress.phase("run")
        progress.root()
        progress.turn(7, "age", False)
        progress.phase("release")
        progress.trial(2, 9)
    assert [line.rpartition(" · ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "a [job] · 3 parties · run · compute",
        "a [job] · 3 parties · run · the whole table is checked",
        "a [job] · 3 parties · run · iteration 7: age step refused",
        "a [job] · 3 parties · release · make the table",
        "a [job] · 3 parties · release · run 2 of at most 9",
    ]


def test_a_name_with_brackets_is_shown_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "140")
    with progress_of("job [bold]", 1) as progress:
        progress.turn(1, "age [years]", True)
    shown = ANSI.sub("", capfd.readouterr().err)
    assert "job [bold] · one holder · iteration 1: age [years] specialized" in shown


def drawn(code: str, columns: str = "140") -> str:
    """Run code with `progress` and a pseudo-terminal as standard error; return what the terminal got."""
    script = f"""
import time
from coordinator.progress import progress_of
with progress_of("visits", 1) as progress:
    {code}
    time.sleep(0.5)  # several frames
"""
    master, slave = pty.openpty()
    env = {**bare(), "TERM": "xterm", "COLUMNS": columns}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=slave, env=env
    ) as ran:
        os.close(slave)
        shown = bytearray()
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the writer is gone
                break
            shown.extend(part)
        out, _ = ran.communicate(timeout=GUARD_S)
    os.close(master)
    assert (ran.returncode, out) == (0, b"")
    return shown.decode()


BAR = re.compile(r"[━╸╺]{20}")


def test_a_bar_on_a_terminal_shows_a_known_share() -> None:
    frame = ANSI.sub("", drawn("progress.phase('read'); progress.rows(2500, 10_000, None)"))
    assert BAR.search(frame)
    assert "25 %  visits · one holder · read · 2,500 of about 10,000 rows" in frame


def test_a_bar_without_a_share_moves() -> None:
    """Frames differ in the place of the bright part; no percent is told."""
    shown = drawn("progress.phase('run'); progress.turn(3, 'age', True)")
    frames = {
        line.partition("visits")[0] for line in shown.replace("\x1b[2K", "\n").splitlines() if "━" in line
    }
    assert len(frames) > 1
    assert "%" not in ANSI.sub("", shown)
    assert "visits · one holder · run · iteration 3: age specialized" in ANSI.sub("", shown)


def test_a_narrow_terminal_keeps_the_bar_in_one_line() -> None:
    shown = drawn("progress.phase('read'); progress.rows(2500, 10_000, None)", columns="50")
    lines = [line for line in ANSI.sub("", shown).replace("\r", "\n").splitlines() if line.strip()]
    assert lines
    assert [line for line in lines if not BAR.search(line) or len(line) > 50] == []


class Told:
    """Progress that keeps what it is told about rows."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int | None, float | None]] = []

    def rows(self, read: int, of: int | None, left_s: float | None) -> None:
        self.lines.append((read, of, left_s))


def test_rows_are_told_every_few_seconds_with_the_time_that_is_left() -> None:
    now, told = [0.0], Told()
    meter = RowsShown(told, clock=lambda: now[0])  # type: ignore[arg-type]  (the other methods are not asked)
    for second, read, of in [
        (1, 100, 1000),  # too early: a small table has no line
        (2, 200, 1000),
        (3, 300, 1000),
        (4, 400, 1000),
        (5, 1, 1000),  # the second pass begins
        (6, 100, 1000),
        (7, 200, None),
        (9, 1500, 1000),  # an estimate that was too low
    ]:
        now[0] = second
        meter.rows(read, lambda of=of: of)
    now[0] = 20
    meter.rows(0, lambda: 5_000_000)  # an engine begins a query
    meter.rows(0, lambda: 5000)
    meter.rows(0, lambda: None)
    assert told.lines.pop() == (0, 5_000_000, None)
    assert told.lines == [(200, 1000, 8.0), (400, 1000, 6.0), (200, None, None), (1500, 1500, 0.0)]


@pytest.mark.parametrize(
    ("of", "left_s", "said"),
    [(None, None, "1,200 rows ·"), (5000, 61.4, "1,200 of about 5,000 rows, about 61 s left ·")],
)
def test_people_read_rows_in_words(
    of: int | None, left_s: float | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_of("visits", 1) as progress:
        progress.phase("read")
        progress.rows(1200, of, left_s)
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_programs_read_rows_as_fields(capsys: pytest.CaptureFixture[str]) -> None:
    with _JsonLines("visits", 1) as progress:
        progress.rows(1200, None, None)
        progress.rows(1200, 5000, 61.44)
        progress.rows(0, 5000, None)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    kept = [{key: line[key] for key in ("event", "rows", "of", "left_s") if key in line} for line in lines]
    assert kept == [
        {"event": "rows", "rows": 1200},
        {"event": "rows", "rows": 1200, "of": 5000, "left_s": 61.4},
        {"event": "rows", "rows": 0, "of": 5000},
    ]


def test_the_time_left_follows_from_the_runs_so_far() -> None:
    times = iter([10.0, 11.0, 14.0, 16.0])
    pace = Pace(lambda: next(times))
    assert pace.left_s(1, 10) is None
    assert pace.left_s(2, 10) is None  # a second is too short for an estimate
    assert pace.left_s(3, 10) == 2 * 8  # 4 s for two runs, and the runs 3 to 10 are left
    assert pace.left_s(1, 5) is None  # other runs begin


def test_progress_says_the_time_left_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 30.0])
    line = _Lines("j", 1, Pace(lambda: next(times)))
    line.trial(1, 4)
    line.trial(2, 4)
    first, second = capsys.readouterr().err.splitlines()
    assert "left" not in first
    assert "run 2 of at most 4, at most about 90 s left" in second
