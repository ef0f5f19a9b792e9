"""What both command lines share: errors as one clear message and the right exit code, and logs.

Logs go to standard error: for people on a terminal, one JSON object a line otherwise. They carry time (UTC),
job, party and phase; never a data value, count, share or key.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import click

from party.errors import Exit, Problem, problem_of

_FIELDS = ("job", "party", "phase", "error_id")


class _Settings:
    """What the common options of a call say."""

    format = "text"


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
    """Whether this call asked for `--format json`."""
    return _settings.format == "json"


def run_command(command: click.Command, name: str) -> None:
    """Run a command line; every error becomes one message and an exit code (DESIGN §9)."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # clean up, as after Ctrl-C
    try:
        code = command.main(prog_name=name, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else Exit.OK)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        sys.exit(Exit.USAGE)
    except click.UsageError as error:
        if "json" in _formats(sys.argv):  # click gave up before it came to our option
            _settings.format = "json"
        where = f"{error.ctx.command_path}: " if error.ctx else ""
        show_problem(Problem("usage", f"{where}{error.format_message()}"))
        sys.exit(Exit.USAGE)
    except (click.Abort, KeyboardInterrupt):
        show_problem(Problem("cancelled", "interrupted"))
        sys.exit(Exit.FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.FAILED)
    except Exception as error:
        problem = problem_of(error)
        show_problem(problem)
        if problem.exit_code is Exit.BUG and os.environ.get("JOINTCUT_TRACEBACK"):
            raise
        sys.exit(problem.exit_code)


def _formats(arguments: Sequence[str]) -> list[str]:
    """What a command line gives as `--format`."""
    joined = [
        argument.removeprefix("--format=") for argument in arguments if argument.startswith("--format=")
    ]
    return joined + [value for option, value in pairwise(arguments) if option == "--format"]


def show_problem(problem: Problem) -> None:
    """Print a problem on standard error, with what only the owner of this console may read."""
    if wants_json():
        fields = problem.shared() | ({"private": problem.private} if problem.private else {})
        print(json.dumps(fields | {"exit_code": int(problem.exit_code)}), file=sys.stderr)
    else:
        print(f"error: {problem}", file=sys.stderr)


def say(text: str, fields: dict[str, Any] | None = None) -> None:
    """Print a result: the text for people, the fields as JSON."""
    print(json.dumps(fields if fields is not None else {"message": text}) if wants_json() else text)


def note(text: str, **fields: object) -> None:
    """Tell the owner of this console something, on standard error: for people on a terminal, else as a JSON line."""
    for_people = sys.stderr.isatty() and not wants_json()
    print(text if for_people else json.dumps({"event": "note", **fields}), file=sys.stderr)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _utc(record), "level": record.levelname.lower(), "source": record.name}
        line |= {key: value for key in _FIELDS if (value := getattr(record, key, None)) is not None}
        return json.dumps(line | {"message": record.getMessage()})


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_utc(record)} {record.levelname.lower():7} {record.getMessage()}"


def _utc(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def set_up_logs(level: str = "INFO") -> None:
    """Send logs to standard error in the form its reader wants."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Human() if sys.stderr.isatty() else _JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
