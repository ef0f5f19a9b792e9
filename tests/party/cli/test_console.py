"""Commons of both command lines: one message per error, the right exit code, and logs without values."""

from __future__ import annotations

import io
import json
import logging
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import coordinator.cli
import party.cli.commands
import party.cli.console
from anonymize.errors import DataError
from jobs.errors import MAX_LINE_CHARS, ConfigError, Exit, JobFailed, Problem
from party.cli.console import (
    format_option,
    json_unless_watched,
    note,
    run_command,
    say,
    set_up_logs,
    show_problem,
)
from tests.support.commands import Ran, invoke, running


@pytest.fixture(autouse=True)
def _own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the tracebacks of these tests in their own folders."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def ran(action: Callable[[], object], *arguments: str) -> Ran:
    @click.command()
    @format_option
    def app() -> None:
        action()

    return running(lambda: run_command(app, "app"), ["app", *arguments])


def test_a_missing_option_is_named_with_its_meaning() -> None:
    """Each remedy ends with the command for more help."""
    for arguments, says in {
        ("draft", "t.csv"): "add --out PATH (new job file, e.g. job.yaml); see coordinator draft --help\n",
        ("run",): "name JOB; see coordinator run --help\n",
        ("run", "--oot"): "see coordinator run --help\n",
        ("nothing",): "see coordinator --help\n",
    }.items():
        refused = invoke("coordinator", *arguments)
        assert (refused.code, refused.err.startswith("error: usage: ")) == (2, True)
        assert refused.err.endswith(f"What to do: {says}")


def failing(error: BaseException) -> Callable[[], object]:
    def action() -> object:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "error_id"),
    [
        (ConfigError("job-invalid", "x"), Exit.USAGE, "job-invalid"),
        (DataError("data-empty", "x"), Exit.DATA, "data-empty"),
        (JobFailed(Problem("policy-refused", "x", "p")), Exit.REFUSED, "policy-refused"),
        (OSError(28, "No space left"), Exit.FAILED, "io-failed"),
        (ZeroDivisionError("x"), Exit.BUG, "bug"),
        (KeyboardInterrupt(), Exit.FAILED, "cancelled"),
        (click.Abort(), Exit.FAILED, "cancelled"),
        (click.UsageError("x"), Exit.USAGE, "usage"),
    ],
)
def test_every_error_is_one_message_and_an_exit_code(error: BaseException, code: Exit, error_id: str) -> None:
    text = ran(failing(error))
    assert text.code == code
    assert text.out == ""
    assert text.err.strip().startswith(f"error: {error_id}")
    assert "What to do: " in text.err
    fields = ran(failing(error), "--format", "json")
    assert (fields.code, fields.out) == (code, "")
    assert fields.problem["error"] == error_id
    assert fields.problem["exit_code"] == code


@pytest.mark.parametrize("app", [coordinator.cli.app, party.cli.commands.app])
def test_an_interrupt_says_nothing_but_json(app: click.Group, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @format_option
    def stuck() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(app.commands, "stuck", stuck)
    ended = running(lambda: run_command(app, "app"), ["app", "stuck", "--format", "json"])
    assert ended.code == Exit.FAILED
    assert [json.loads(line)["error"] for line in ended.err.splitlines()] == ["cancelled"]


def test_the_owner_reads_what_is_private() -> None:
    error = DataError("data-unknown-value", "column x", private="row 3: 'Zebra'")
    assert "[row 3: 'Zebra']" in ran(failing(error)).err
    assert ran(failing(error), "--format=json").problem["private"] == "row 3: 'Zebra'"


def test_a_bug_shows_no_traceback_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in ran(failing(ZeroDivisionError("x"))).err
    monkeypatch.setenv("JOINTCUT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        ran(failing(ZeroDivisionError("x")))


def test_a_bug_of_a_party_names_no_place_here(tmp_path: Path) -> None:
    """The party has the place in its log. A place here would send the reader to the wrong code."""
    told = ran(failing(JobFailed(Problem("bug", "unexpected KeyError", "hospital-b", hops=1))))
    assert told.code == Exit.BUG
    assert told.err.startswith("error: bug (hospital-b): unexpected KeyError. What to do: report the place")
    assert "of a party: in its log" in told.err
    assert list(tmp_path.glob("jointcut-*.traceback")) == []


def test_a_bug_names_the_place_and_keeps_the_traceback_for_the_owner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = ran(failing(ZeroDivisionError("x")))
    (kept,) = tmp_path.glob("jointcut-*.traceback")
    assert re.search(r"\[cli/test_console\.py:[0-9]+; traceback in ", told.err)
    assert str(kept) in told.err
    assert kept.read_text().endswith("ZeroDivisionError: x\n")
    assert kept.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    fields = ran(failing(KeyError("most")), "--format", "json").problem
    assert re.fullmatch(r"cli/test_console\.py:[0-9]+; no file for the traceback: .+", fields["cause"])


def test_results_in_both_forms() -> None:
    assert ran(lambda: say("for people", {"n": 1})).out == "for people\n"
    assert json.loads(ran(lambda: say("for people", {"n": 1}), "--format", "json").out) == {"n": 1}
    assert json.loads(ran(lambda: say("only text"), "--format", "json").out) == {"message": "only text"}


def logged(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, form: str = "text") -> str:
    """Return what a daemon's console shows of one line of the log, a note and a result."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr(party.cli.console._settings, "format", form)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        json_unless_watched()
        set_up_logs()
        logging.getLogger("party").info("hello", extra={"job": "j", "phase": "load", "row": "Zebra"})
        logging.getLogger("party").debug("quiet")
        note("a note", noted=1)
        say("listens", {"event": "listening"})
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    return stream.getvalue()


@pytest.mark.parametrize(("terminal", "form"), [(False, "text"), (False, "json"), (True, "json")])
def test_a_daemon_says_everything_in_json_lines(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, form: str
) -> None:
    log, noted, said = map(json.loads, logged(monkeypatch, terminal=terminal, form=form).splitlines())
    assert log.pop("time").endswith("Z")
    assert log == {"level": "info", "source": "party", "job": "j", "phase": "load", "message": "hello"}
    assert noted == {"event": "note", "noted": 1}
    assert said == {"event": "listening"}


def test_a_daemon_says_everything_in_plain_lines_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    log, noted, said = logged(monkeypatch, terminal=True).splitlines()
    assert log.split(None, 2)[1:] == ["info", "hello"]
    assert (noted, said) == ("a note", "listens")


def test_logs_of_a_command_are_plain_lines_unless_json_is_asked_for() -> None:
    def warns() -> None:
        set_up_logs("WARNING")
        logging.getLogger("coordinator").warning("look")

    assert ran(warns).err.split(None, 2)[1:] == ["warning", "look\n"]
    assert json.loads(ran(warns, "--format", "json").err)["message"] == "look"


class _Block(io.StringIO):
    """A stream that keeps what is written to it until it is flushed, as a pipe's does."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = ""

        self.pieces: list[str] = []

    def write(self, text: str) -> int:
        self.pieces.append(text)
        return super().write(text)

    def flush(self) -> None:
        self.arrived = self.getvalue()


@pytest.mark.parametrize(
    "shown", [lambda: say("x"), lambda: note("x"), lambda: show_problem(Problem("bug", "x"))]
)
def test_whatever_is_said_leaves_at_once(monkeypatch: pytest.MonkeyPatch, shown: Callable[[], None]) -> None:
    """And in one piece: a line of a log into the same file comes before or after."""
    stream = _Block()
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("sys.stderr", stream)
    shown()
    assert stream.arrived == stream.getvalue()
    (piece,) = stream.pieces
    assert piece.endswith("\n")


EVIL = "\x1b]0;owned\x07\x1b[2J\u202eHello\nerror: forged\x9b"


def test_what_others_wrote_steers_no_terminal() -> None:
    """Nor does it look like a line of ours."""

    def action() -> None:
        set_up_logs()
        say([f"name {EVIL}"])
        logging.getLogger("x").error("log %s", EVIL)
        raise ConfigError("job-invalid", f"column {EVIL}")

    text = ran(action)
    assert not [c for c in text.out + text.err if not c.isprintable() and c != "\n"]
    assert len(text.out.splitlines()) == 1
    assert not [line for line in text.err.splitlines() if line.startswith("error: forged")]


def test_a_line_of_a_log_has_a_bound() -> None:
    def action() -> None:
        set_up_logs()
        logging.getLogger("x").error("log %s", "y" * (1 << 20))

    for form in ("text", "json"):
        assert len(ran(action, "--format", form).err) < MAX_LINE_CHARS + 200


def test_a_warning_of_a_library_is_a_line_of_the_log() -> None:
    def action() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            set_up_logs()
            warnings.warn("overflow", RuntimeWarning, stacklevel=1)

    (line,) = ran(action, "--format", "json").err.splitlines()
    assert json.loads(line)["message"].startswith("RuntimeWarning at test_console.py:")
