"""Commons of both command lines: a clear message and the right exit code for an error, and logs.

All output of a call has a single form, for people or a JSON object a line, and leaves the process at once: the
reader of a pipe gets each line, however Python buffers. Logs go to standard error, with time (UTC), job, party and
phase; never with a data value, count, share or key. Foreign text, in names of columns or in messages, steers no
terminal and makes no line of its own (:func:`jobs.errors.printable`).
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TextIO

import click

from jobs.errors import MAX_LINE_CHARS, Exit, PartyError, Problem, printable, problem_of

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Adds an option to the function of a command, as click's decorators do."""

_FIELDS = ("job", "party", "phase", "error_id")


class _Settings:
    """Common options of a call. ``owner``: the name of the own party, where a data holder reads."""

    format = "text"
    owner = False


_settings = _Settings()


def _choose(_context: click.Context, _option: click.Parameter, value: str) -> str:
    _settings.format = value
    return value


format_option = click.option(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    callback=_choose,
    expose_value=False,
    is_eager=True,
    help="How results and errors are printed.",
)


def wants_json() -> bool:
    """Return True if the call prints JSON: on request, or for a daemon without a terminal."""
    return _settings.format == "json"


def json_unless_watched() -> None:
    """Print JSON lines from here on, unless standard error is a terminal. A daemon's output is usually collected."""
    if not sys.stderr.isatty():
        _settings.format = "json"


def _interrupted(*_: object) -> None:
    """Clean up, as after Ctrl-C; also in the background of a shell, where Ctrl-C is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


class Program(click.Group):
    """Commands of a program."""

    def invoke(self, context: click.Context) -> Any:
        """Run a command. Where output is JSON, spare an interrupt the empty line that click prints."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt as error:
            if wants_json():
                raise click.Abort from error
            raise


def run_command(command: click.Command, name: str) -> None:
    """Run a command line. Every error becomes a message and an exit code (semantics §9.6)."""
    _settings.owner = name == "party"
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        code = command.main(prog_name=name, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else Exit.OK)
    except click.exceptions.NoArgsIsHelpError as error:
        _print(error.format_message(), sys.stdout)
        sys.exit(Exit.USAGE)
    except click.UsageError as error:
        if "json" in _formats(sys.argv):  # click gave up before reading our option
            _settings.format = "json"
        where = f"{error.ctx.command_path}: " if error.ctx else ""
        show_problem(Problem("usage", f"{where}{error.format_message()}", remedy=_to_write(error, name)))
        sys.exit(Exit.USAGE)
    except (click.Abort, KeyboardInterrupt):
        show_problem(Problem("cancelled", "interrupted"))
        sys.exit(Exit.FAILED)
    except BrokenPipeError:  # the reader of --help left early
        sys.exit(Exit.FAILED)
    except Exception as error:  # the edge: each error becomes a shown problem and an exit code
        problem = problem_of(error)
        if problem.is_bug_here:  # a party has the place of its bug in its log
            problem = replace(problem, cause=_where(error))
        show_problem(problem)
        if problem.exit_code is Exit.BUG and os.environ.get("JOINTCUT_TRACEBACK"):
            raise
        sys.exit(problem.exit_code)
    finally:
        _leave(sys.stdout)
        _leave(sys.stderr)


def _to_write(error: click.UsageError, program: str) -> str:
    """Return what to write instead of a command line that click refused."""
    help_of = f"see {error.ctx.command_path if error.ctx else program} --help"
    if not isinstance(error, click.MissingParameter) or error.param is None or error.ctx is None:
        return help_of
    metavar = error.param.make_metavar(error.ctx)
    if not isinstance(error.param, click.Option):
        return f"name {metavar}; {help_of}"
    about = error.param.help or ""
    return f"add {error.param.opts[0]} {metavar} ({about[:1].lower()}{about[1:].rstrip('.')}); {help_of}"


def _where(error: BaseException) -> str:
    """Return the place in our code, and the file with the whole traceback for the owner alone.

    A traceback may quote data, so no console and no log has a traceback.
    """
    *_, last = traceback.extract_tb(error.__traceback__)
    file = Path(last.filename)
    place = f"{file.parent.name}/{file.name}:{last.lineno}"
    try:
        with NamedTemporaryFile("w", prefix="jointcut-", suffix=".traceback", delete=False) as kept:
            kept.write("".join(traceback.format_exception(error)))
    except OSError as full:
        return f"{place}; no file for the traceback: {os.strerror(full.errno or 0)}"
    return f"{place}; traceback in {kept.name}"


def _leave(stream: TextIO | None) -> None:
    """Drop the rest of a full or broken stream: otherwise Python would fail over the rest again."""
    if stream is None:  # the process was started without the stream
        return
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _formats(arguments: Sequence[str]) -> list[str]:
    """Return the values of `--format` in a command line."""
    joined = [
        argument.removeprefix("--format=") for argument in arguments if argument.startswith("--format=")
    ]
    return joined + [value for option, value in pairwise(arguments) if option == "--format"]


def show_problem(problem: Problem) -> None:
    """Print a problem on standard error, with the private text for the owner of the console."""
    to_owner = _settings.owner or (problem.party is None and not problem.hops)
    if wants_json():
        own = {"private": problem.private, "cause": problem.cause}
        fields = problem.shared() | {key: value for key, value in own.items() if value}
        fields |= {"remedy": problem.advice(to_owner=to_owner), "exit_code": int(problem.exit_code)}
        tell(json.dumps(fields))
    else:
        tell(printable(f"error: {problem.text(to_owner=to_owner)}", None))


def say(
    text: str | Sequence[str], fields: dict[str, Any] | None = None, *, done: str = "all was done"
) -> None:
    """Print a result after all work is done: the text for people, the fields as JSON.

    text:  a list of lines, if a line holds foreign names or values.
    done:  the message on standard error if standard output is full or broken. Raises PartyError then.
    """
    lines = [printable(line, None) for line in (text.split("\n") if isinstance(text, str) else text)]
    shown = "\n".join(lines)
    if wants_json():
        shown = json.dumps({"message": shown} if fields is None else fields)
    try:
        _print(shown, sys.stdout)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise PartyError(
            "output-lost", f"{done}, but standard output did not take the rest: {reason}"
        ) from error


def note(text: str, **fields: object) -> None:
    """Print a note for the owner of the console, on standard error."""
    tell(json.dumps({"event": "note", **fields}) if wants_json() else text)


def tell(line: str) -> None:
    """Print a line on standard error. A program with an unreadable error stream goes on."""
    fit = "\n".join(printable(each, None) for each in line.split("\n"))
    try:
        _print(fit, sys.stderr)
    except OSError:
        _leave(sys.stderr)


def _print(text: str, stream: TextIO) -> None:
    """Print in one piece. `print` writes the line's end by itself, and a line of another thread's log, or of the
    other stream into the same file, may come between.
    """
    stream.write(f"{text}\n")
    stream.flush()


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _utc(record), "level": record.levelname.lower(), "source": record.name}
        line |= {key: value for key in _FIELDS if (value := getattr(record, key, None)) is not None}
        return json.dumps(line | {"message": printable(record.getMessage(), MAX_LINE_CHARS)})


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_utc(record)} {record.levelname.lower():7} {printable(record.getMessage(), MAX_LINE_CHARS)}"


def _utc(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def set_up_logs(level: str = "INFO") -> None:
    """Send logs to standard error, in the form of the call."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if wants_json() else _Human())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    warnings.showwarning = _log_warning


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Turn a library's warning into a line of the log. A bare warning is neither a log line nor JSON."""
    place = f"{Path(filename).name}:{lineno}"
    logging.getLogger("warnings").warning("%s at %s: %s", category.__name__, place, message)
