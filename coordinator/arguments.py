"""Common arguments of several commands of the coordinator."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import click

from jobs.data.dialect import SNIFFED, Dialect
from jobs.data.sources import FileSource, Source, source_of_file
from jobs.errors import ConfigError
from jobs.file.fields import DELIMITER
from jobs.file.job import HeldTable, TableFile
from jobs.task import Task
from party.cli.arguments import PATH
from party.cli.console import note
from party.cli.job_file import JobFile

DEFAULT_CONFIG = Path("coordinator.yaml")
config_option = click.option(
    "--config", "-c", type=PATH, default=DEFAULT_CONFIG, show_default=True, help="Configuration file."
)
ledger_option = click.option(
    "--ledger",
    type=PATH,
    help="Single holder: the privacy ledger; default beside the table. LKC: begun only if named.",
)
delimiter_option = click.option(
    "--delimiter",
    help="The separator of values in CSV tables named here; default found in their first lines.",
)
data_option = click.option(
    "--data",
    type=PATH,
    help="The table, with all columns of the job; default, for a single holder: the table in the job, whose words "
    "(`missing`, `rename`, ...) apply to this table, too.",
)


def dialect_of(delimiter: str | None) -> Dialect:
    """Return the dialect with the separator named by `--delimiter`. Raises ConfigError."""
    if delimiter is None:
        return SNIFFED
    character = delimiter.replace("\\t", "\t")
    if not re.fullmatch(DELIMITER, character):
        raise ConfigError("usage", f"--delimiter {delimiter}: write one ASCII character, or \\t for a tab")
    return Dialect(character)


def source_of(path: Path, dialect: Dialect = SNIFFED, like: TableFile | HeldTable | None = None) -> Source:
    """Return a table as :func:`table_at`, and tell the owner what was found out about the table's form."""
    return _told(table_at(path, dialect, like))


def table_at(path: Path, dialect: Dialect = SNIFFED, like: TableFile | HeldTable | None = None) -> FileSource:
    """Return a table by file name: .parquet, .feather, .xlsx, .tsv, or CSV.

    like:  the table in the job. Its words apply to this table, too; its form only to the same kind of file.
    """
    if like is None:
        return source_of_file(_there(path), dialect)
    if isinstance(like, HeldTable) or Path(like.path).suffix != path.suffix:
        return source_of_file(_there(path), dialect, like.wording)
    form = replace(like.dialect, delimiter=dialect.delimiter or like.dialect.delimiter)
    return source_of_file(_there(path), form, like.wording, like.sheet)


def source_of_job(job: JobFile, table: TableFile | HeldTable) -> Source:
    """Return the table of a single holder's job, and tell the owner about the table's form."""
    return _told(table_of_job(str(job), job.folder, table))


def table_of_job(job: str, folder: Path, table: TableFile | HeldTable) -> Source:
    """Return the table of a single holder's job. Raises ConfigError.

    job:     the job file, for errors.
    folder:  base folder for paths in the job.
    """
    if isinstance(table, HeldTable):
        return table.opened(folder)
    path = folder / table.path
    if not path.is_file():
        raise ConfigError(
            "file-missing",
            f"{job}: `data` names {table.path}, and {path} is not a file",
            remedy="correct the path under `data`; a path in a job begins at the folder of the job file",
        )
    return table_at(path, like=table)


def _there(path: Path) -> Path:
    if not path.is_file():
        raise ConfigError("file-missing", f"{path} is not a file")
    return path


def _told(source: Source) -> Source:
    for words in source.notes():
        note(words)
    return source


def table_source(task: Task, job: JobFile, data: Path | None, delimiter: str | None) -> Source:
    """Return the table of `--data`; a single holder's job names a table itself. Raises ConfigError."""
    if data is not None:
        return source_of(data, dialect_of(delimiter), task.job.table)
    if delimiter is not None and task.job.table is not None:
        raise ConfigError(
            "usage",
            "--delimiter is for the table of --data; the job says how its own table is read",
            remedy="leave --delimiter out, or say `delimiter` under `data` in the job",
        )
    if (table := task.job.table) is None:
        raise ConfigError(
            "usage", "a joint job names no table", remedy="give --data FILE, with all columns of the job"
        )
    return source_of_job(job, table)
