"""Job of the Python interface: keys in the form of a job file, and the folder of the files that the job names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from jobs.description import description_lines
from jobs.drafting.writing import yaml_lines
from jobs.errors import ConfigError
from jobs.file import job as form
from jobs.file.yaml_text import Keys as Lines
from jobs.file.yaml_text import parse_yaml, read_text
from jobs.loading import changed, parse_job, reader_below, task_of
from jobs.task import Task
from jointcut.api import forms
from jointcut.api.errors import Error, path_of, told
from jointcut.api.wording import as_arguments
from jointcut.api.written import written

Keys: TypeAlias = Mapping[str, Any]
_UNNAMED = "job"
_SINGLE = "single"
_TABLE = "table.csv"
"""Name of a table given in Python, for a job without `data`: the job hash is of a job with a named table."""
_GIVEN = f"# `data: {_TABLE}` stands for a table given in Python.\n"
_BY_NAME = ("columns", "parties")
"""Keys with an entry for each name, which the YAML text shows in a line each."""


class Job:
    """Job, whether written as objects, as a dict or as YAML. Files that the job names are found from its folder.

    >>> import jointcut as jc
    >>> job = jc.Job(
    ...     name="visits",
    ...     model=jc.Lkc(L=1, K=2),
    ...     goal="general",
    ...     columns={"age": jc.Column(role="qid", numeric=jc.Numeric(min=0, max=100, step=20))},
    ... )
    >>> job
    Job(name='visits', partition='single', columns=['age'])
    >>> print(job.with_(model={"lkc": {"K": 3}}).to_yaml())
    # `data: table.csv` stands for a table given in Python.
    version: 1
    name: visits
    partition: single
    model: {lkc: {L: 1, K: 3}}
    goal: general
    data: table.csv
    columns:
      age: {role: qid, numeric: {min: 0, max: 100, step: 20}}
    <BLANKLINE>
    """

    _fields: Any
    _folder: Path
    _label: str
    _anywhere: bool
    settings: form.Job
    """Job as read, with all defaults."""

    @told()
    def __init__(
        self,
        *,
        name: str,
        model: forms.Lkc | forms.Requirements | forms.Dp | forms.Synthetic | forms.Sequences | Keys,
        columns: Mapping[str, forms.Column | Keys],
        partition: Literal["single", "horizontal", "vertical"] = "single",
        goal: Literal["classification", "general", "clusters"] | None = None,
        disclosure: Literal["sealed", "strict", "leader"] | None = None,
        data: str | Path | forms.Table | Keys | None = None,
        parties: Mapping[str, forms.Party | Keys] | None = None,
        leader: str | None = None,
        deputy: str | None = None,
        deliver: Literal["all", "coordinator"] | None = None,
        folder: str | Path = ".",
        version: Literal["1"] = "1",
    ) -> None:
        """Make a job of objects; the arguments are the keys of a job file (docs/job.md). Raises Error.

        data:    the table of a job of a single holder; None for a table given in Python.
        folder:  of the files that the job names.
        """
        keys = {
            "version": version,
            "name": name,
            "partition": partition,
            "model": _under_key(model),
            "goal": goal,
            "disclosure": disclosure,
            "data": data,
            "parties": parties,
            "leader": leader,
            "deputy": deputy,
            "deliver": deliver,
            "columns": columns,
        }
        with _as_arguments():
            self._set(written(keys), path_of(folder), _UNNAMED, anywhere=False)

    def _set(self, fields: Any, folder: Path, label: str, *, anywhere: bool) -> None:
        self._fields, self._folder, self._label, self._anywhere = fields, folder.absolute(), label, anywhere
        self.settings = parse_job(_completed(fields), str(self))

    @classmethod
    def _made(cls, fields: Any, folder: Path, label: str, *, anywhere: bool = False) -> Job:
        job = cls.__new__(cls)
        job._set(fields, folder, label, anywhere=anywhere)
        return job

    @classmethod
    @told()
    def from_dict(cls, keys: Keys, folder: str | Path = ".") -> Job:
        """Return the job of a job file's keys. Raises Error.

        >>> import jointcut as jc
        >>> column = {"role": "qid", "suppress": ["f", "m"]}
        >>> keys = {"version": 1, "name": "visits", "partition": "single", "data": "visits.csv"}
        >>> keys |= {"model": {"lkc": {"L": 1, "K": 2}}, "goal": "general", "columns": {"sex": column}}
        >>> jc.Job.from_dict(keys).name
        'visits'
        """
        return cls._made(written(keys), path_of(folder), _UNNAMED)

    @classmethod
    @told()
    def from_yaml(
        cls, source: str | Path, folder: str | Path | None = None, *, files_anywhere: bool = False
    ) -> Job:
        """Return the job of a file or of a YAML text. Raises Error.

        source:          a path, or a text of several lines.
        folder:          of the files that the job names; default the folder of the job file.
        files_anywhere:  the job may name files outside its folder, which become part of the job.
        """
        if isinstance(source, str) and _is_text(source):
            fields, label = parse_yaml(source, _UNNAMED), _UNNAMED
            place = path_of(folder or ".")
        else:
            path = path_of(source)
            fields, label = parse_yaml(read_text(path), str(path)), path.name
            place = path.parent if folder is None else path_of(folder)
        return cls._made(fields, place, label, anywhere=files_anywhere)

    @told()
    def with_(self, **keys: Any) -> Job:
        """Return the job with changed keys. A mapping changes the keys that it names; None removes a key.

        A job of several holders has no `data`, so a new `partition` removes the key.

        >>> import jointcut as jc
        >>> job = jc.Job(
        ...     name="visits",
        ...     model=jc.Lkc(L=1, K=2),
        ...     goal="general",
        ...     columns={"sex": jc.Column(role="qid", suppress=["f", "m"])},
        ... )
        >>> job.with_(model={"lkc": {"K": 9}}).settings.lkc.K
        9
        """
        given = {key: _under_key(value) if key == "model" else value for key, value in keys.items()}
        if keys.get("partition", _SINGLE) != _SINGLE:
            given.setdefault("data", None)
        with _as_arguments():
            return self._made(
                _merged(self._fields, given), self._folder, self._label, anywhere=self._anywhere
            )

    def load(self, changes: Keys | None = None) -> Task:
        """Return the task with all named files. Raises ConfigError or SchemaError; for the interface itself.

        changes:  replacements of keys, as :func:`jobs.loading.load_task`.
        """
        fields = _completed(self._fields)
        fields = changed(fields, changes) if changes else fields
        read = read_text if self._anywhere else reader_below(self._folder)
        return task_of(fields, Path(str(self)), read)

    @told()
    def check(self) -> list[str]:
        """Check the job with all files that the job names; return the job in sentences. Raises Error."""
        return description_lines(self.load())

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.settings.name

    @property
    def names_table(self) -> bool:
        """True if the job says where the table of a single holder is."""
        return "data" in self._fields

    @property
    def folder(self) -> Path:
        """Folder of the files that the job names."""
        return self._folder

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of the job file, as given. Every scalar is a text."""
        keys: dict[str, Any] = written(_completed(self._fields))
        return keys

    def to_yaml(self) -> str:
        """Return the text of a job file. A job file has a name for the table, also for a table given in Python."""
        lines = [] if self.names_table or self.settings.roster else [_GIVEN]
        for key, value in self.to_dict().items():
            if key in _BY_NAME:
                lines.append(f"{key}:\n")
                lines += [line for name, of in value.items() for line in yaml_lines(name, of, "  ")]
            else:
                lines += yaml_lines(key, value, "")
        return "".join(lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Job):
            return NotImplemented
        return (self.to_dict(), self.folder) == (other.to_dict(), other.folder)

    __hash__ = None  # type: ignore[assignment]  # a job changes

    def __str__(self) -> str:
        """Return the place of the job, for errors."""
        path = self._folder / self._label
        with suppress(OSError, ValueError):  # the current folder is gone, or is elsewhere
            return str(path.relative_to(Path.cwd()))
        return str(path)

    def __repr__(self) -> str:
        job = self.settings
        return f"Job(name={job.name!r}, partition={job.partition!r}, columns={list(job.columns)})"


JobLike: TypeAlias = Job | Keys | str | Path
"""Job, keys of a job file, a path, or a YAML text."""


def job_of(job: JobLike) -> Job:
    """Return the job of any form. Raises Error."""
    if isinstance(job, Job):
        return job
    if not isinstance(job, Mapping | str | Path):
        with told():
            raise ConfigError(
                "usage",
                f"no job can be read from a {type(job).__name__}",
                remedy="give a Job, keys, a path or YAML; `anonymize` takes the table first, all other functions "
                "take the job first",
            )
    return Job.from_dict(job) if isinstance(job, Mapping) else Job.from_yaml(job)


def _completed(fields: Any) -> Any:
    """Return the keys of a job with a name for the table of a single holder, if the keys have none."""
    if not isinstance(fields, Mapping) or fields.get("partition") != _SINGLE or "data" in fields:
        return fields
    made: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "columns":
            made["data"] = _TABLE
        made[key] = value
    if not isinstance(fields, Lines):
        return made
    lined = Lines(made)
    lined.lines = fields.lines
    return lined


@contextmanager
def _as_arguments() -> Iterator[None]:
    """Word errors about keys for an author who writes arguments."""
    try:
        yield
    except ConfigError as error:
        found = error.problem
        message, remedy = as_arguments(found.message), as_arguments(found.remedy)
        raise Error(replace(found, message=message, remedy=remedy)) from None


def _is_text(source: str) -> bool:
    return "\n" in source or not source.strip() or source.lstrip().startswith("{")


def _under_key(model: Any) -> Any:
    """Return a privacy model below its key."""
    key = forms.MODELS.get(type(model))
    return model if key is None else {key: model}


def _merged(found: Any, change: Any) -> Any:
    """Return keys with a change applied: mappings key by key; anything else takes the place."""
    if isinstance(change, BaseModel) or not isinstance(change, Mapping) or not isinstance(found, Mapping):
        return written(change)
    unknown = [key for key in change if not isinstance(key, str)]
    if unknown:
        raise ConfigError("job-invalid", "a key of a job is a text", remedy="write the name of the key")
    made = {key: _merged(found.get(key), value) for key, value in change.items() if value is not None}
    kept = {key: made.get(key, value) for key, value in found.items() if change.get(key, value) is not None}
    return {**kept, **made}
