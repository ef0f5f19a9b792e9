"""First jobs for tables, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from coordinator.commands.draft import asked_of, draft_lines, drafted
from jobs.drafting.writing import name_of
from jobs.errors import ConfigError
from jobs.file.fields import NAME, NAME_RULE
from jointcut.api.errors import path_of, told
from jointcut.api.frames import Data, file_source
from jointcut.api.job import Job
from jointcut.api.wording import all_in_python


@dataclass(frozen=True)
class Draft:
    """Draft of a job, to read and edit.

    yaml:   the text of the job file, with a comment on each guess.
    notes:  the guesses, and what the draft leaves out, for the owner of the table alone.
    """

    job: Job
    yaml: str = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)


@told()
def draft(
    data: Data,
    *,
    id: str | Sequence[str] | None = (),
    sensitive: str | Sequence[str] | None = (),
    class_: str | None = None,
    model: Literal["lkc", "dp"] = "lkc",
    parties: Sequence[str] = (),
    mode: Literal["sealed", "strict", "leader"] | None = None,
    name: str | None = None,
) -> Draft:
    """Guess a first job for a table. Raises Error.

    Roles, ranges and hierarchies are guessed. Values of fewer than 10 records are in the notes, and not in the job;
    with `id`, or where ids repeat, values of fewer than 10 people.

    id:         columns that name the person of a row.
    sensitive:  columns whose values nobody may infer.
    class_:     the column that the table is to predict.
    model:      `lkc`: groups of records. `dp`: a synthetic table with differential privacy.
    parties:    names of the parties of a joint job; each party has different people, in a table like this one.
    mode:       with `parties`: what the parties of an LKC job learn during a run (`disclosure`); default `sealed`.
    name:       of the job; default from the name of the file.

    >>> import jointcut as jc
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": ["f", "m"] * 20, "smokes": ["yes", "no", "no", "no"] * 10})
    >>> draft = jc.draft(table, sensitive="smokes")
    >>> draft.job.settings.names("sensitive")
    ('smokes',)
    """
    if model not in ("lkc", "dp"):
        raise ConfigError("usage", f"model={model!r}", remedy="write 'lkc' or 'dp'")
    if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
        raise ConfigError("usage", f"name={name!r} cannot name a job", remedy=NAME_RULE)
    ids, protected = _several("id", id), _several("sensitive", sensitive)
    asked = asked_of(ids, protected, _several("class_", class_), model, _several("parties", parties), mode)
    path = path_of(data) if isinstance(data, str | Path) else None
    with file_source(data) as source:
        said = source.notes()
        table = "table.csv" if path is None else str(path)
        named = name if name is not None else ("table" if path is None else name_of(path))
        found = drafted(source, asked, table, named)
    return Draft(
        Job.from_yaml(found.text, files_anywhere=True),
        found.text,
        all_in_python((*said, *draft_lines(found, asked))),
    )


def _several(argument: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns of an argument. Raises ConfigError for other values than names."""
    if names is None:
        return ()
    found = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    for name in found:
        if not isinstance(name, str):
            raise ConfigError("usage", f"{argument}={name!r} names no column", remedy="give names as texts")
    return found
