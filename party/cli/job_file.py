"""Job of a command line, with the files named by the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from jobs.file.yaml_text import read_text
from jobs.loading import load_task, reader_below
from jobs.task import Task
from party.cli.arguments import PATH


@dataclass(frozen=True, slots=True)
class JobFile:
    """Job file named by a command line.

    anywhere:  the job may name files outside its folder. The files become part of the job, and go to all
               parties.
    """

    path: Path
    anywhere: bool = False

    @property
    def folder(self) -> Path:
        """Base folder for paths in the job."""
        return self.path.parent

    def load(self, changes: Mapping[str, Any] | None = None) -> Task:
        """Return the task, as :func:`jobs.loading.load_task`."""
        return load_task(self.path, changes, read_text if self.anywhere else reader_below(self.folder))

    def __str__(self) -> str:
        return str(self.path)


_anywhere_option = click.option(
    "--files-anywhere",
    is_flag=True,
    help="Let the job read taxonomies and models outside its own folder: for jobs of your own.",
)


def _with_job_file(command: Callable[..., Any]) -> Callable[..., Any]:
    """Hand a command its job as a :class:`JobFile`, or None without a job."""

    @wraps(command)
    def called(*args: Any, job: Path | None, files_anywhere: bool, **others: Any) -> Any:
        return command(*args, job=job and JobFile(job, files_anywhere), **others)

    return called


def job_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take JOB."""
    return click.argument("job", type=PATH)(_anywhere_option(_with_job_file(command)))


def job_option(text: str, *, required: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a command take `--job`. text: the option's help."""
    return lambda command: click.option("--job", type=PATH, required=required, help=text)(
        _anywhere_option(_with_job_file(command))
    )
