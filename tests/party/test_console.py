"""What both command lines share: one message per error, the right exit code, and logs without values."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable

import click
import pytest

from anonymize.errors import DataError
from party.console import format_option, run_command, say, set_up_logs
from party.errors import ConfigError, Exit, JobFailed, Problem
from tests.support.commands import Ran, running


def ran(action: Callable[[], object], *arguments: str) -> Ran:
    @click.command()
    @format_option
    def app() -> None:
        action()

    return running(lambda: run_command(app, "app"), ["app", *arguments])


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


def test_the_owner_reads_what_is_private() -> None:
    error = DataError("data-unknown-value", "column x", private="row 3: 'Zebra'")
    assert "[row 3: 'Zebra']" in ran(failing(error)).err
    assert ran(failing(error), "--format=json").problem["private"] == "row 3: 'Zebra'"


def test_a_bug_shows_no_traceback_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in ran(failing(ZeroDivisionError("x"))).err
    monkeypatch.setenv("JOINTCUT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        ran(failing(ZeroDivisionError("x")))


def test_results_in_both_forms() -> None:
    assert ran(lambda: say("for people", {"n": 1})).out == "for people\n"
    assert json.loads(ran(lambda: say("for people", {"n": 1}), "--format", "json").out) == {"n": 1}
    assert json.loads(ran(lambda: say("only text"), "--format", "json").out) == {"message": "only text"}


def logged(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        set_up_logs()
        logging.getLogger("party").info("hello", extra={"job": "j", "phase": "load", "row": "Zebra"})
        logging.getLogger("party").debug("quiet")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    return stream.getvalue()


def test_logs_are_json_lines_with_time_job_and_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = logged(monkeypatch, terminal=False).splitlines()
    fields = json.loads(line)
    assert fields.pop("time").endswith("Z")
    assert fields == {"level": "info", "source": "party", "job": "j", "phase": "load", "message": "hello"}


def test_logs_are_plain_lines_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = logged(monkeypatch, terminal=True).splitlines()
    assert line.split(None, 2)[1:] == ["info", "hello"]
