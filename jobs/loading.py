"""Reader of jobs, from files and bundles, with all checks possible without data.

The only module with knowledge of every model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from anonymize.errors import SchemaError
from jobs.errors import ConfigError
from jobs.file.bundle import FORMAT, MAX_BUNDLE_BYTES, Bundle
from jobs.file.clusters import read_model
from jobs.file.fields import parse_model
from jobs.file.job import Job, check_columns, require_confirmed
from jobs.file.schema import check_values
from jobs.file.yaml_text import is_too_deep, parse_yaml, read_text
from jobs.json_text import read_json
from jobs.modes import mode_of
from jobs.partitions import PARTITIONS
from jobs.task import Model, Task

MODELS: Mapping[str, str] = {
    "lkc": "jobs.lkc.model",
    "dp": "jobs.dp.model",
    "sequences": "jobs.sequences.model",
    "synthetic": "jobs.synthetic.model",
}
"""Module of each model, by name. A job's model is imported on demand."""

_OF_SOME_JOBS = (
    "jobs.clusters",
    "jobs.file.key_errors",
    "jobs.moved_keys",
    "jobs.owner.limited",
    "jobs.vertical",
)
"""Modules for jobs with clusters, jobs with an error, jobs under a policy, and vertical jobs."""

MADE = (
    "anonymized.csv",
    "anonymized",
    "groups.csv",
    "sensitive.csv",
    "counts.csv",
    "synthetic.csv",
    "marginals.csv",
)
"""Possible files and folders of a release of any model, apart from report and digests."""


def model_named(name: str) -> Model:
    """Return the model of a name."""
    found: Model = import_module(MODELS[name]).MODEL
    return found


def import_models() -> None:
    """Import every model with its modes, and what some jobs alone need. Normally a job imports what it asks for."""
    for name in MODELS:
        for partition in PARTITIONS:
            model_named(name).modes(partition)
    for module in _OF_SOME_JOBS:
        import_module(module)


def import_packages() -> None:
    """Import every module of every model. Normally a module is imported at first use, for instance by a page."""
    import_models()
    for module in MODELS.values():
        package = import_module(module.rpartition(".")[0])
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(found.name)


def open_task(bundle: Bundle) -> Task:
    """Return the bundle with model, partition and mode. Raises ValueError for a job refused by :func:`parse_job`."""
    job = bundle.job
    model = model_named(job.model.name)
    return Task(bundle, model, PARTITIONS[job.partition], mode_of(model, job))


def reader_below(folder: Path) -> Callable[[Path], str]:
    """Return a reader of text files in a folder or below, with links followed. The reader raises ConfigError."""

    def read(path: Path) -> str:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                "job-invalid",
                f"the job names {path}, which is outside its folder",
                remedy="put the file into the folder of the job or below; or give --files-anywhere if you know who "
                "wrote the job: the file goes to all parties",
            )
        return read_text(path)

    return read


def load_task(
    path: Path, changes: Mapping[str, Any] | None = None, read: Callable[[Path], str] = read_text
) -> Task:
    """Read a job file with all named files, and check everything possible without data.

    changes:  replacements of keys of the job, or of keys below; None removes a key.
    read:     reads a file that the job names.

    Raises ConfigError or SchemaError.
    """
    return task_of(_fields(path, changes or {}), path, read)


def task_of(fields: Any, path: Path, read: Callable[[Path], str] = read_text) -> Task:
    """Return the task of the keys of a job, with all named files, and check everything possible without data.

    path:  the job file, for errors; the files that the job names are found from its folder.

    Raises ConfigError or SchemaError.
    """
    job = _with_model(parse_job(fields, str(path)), path, read, fields)
    named = {name: column.file for name, column in job.columns.items()}
    files = {
        name: _read_named(read, path, _key_of(fields, name, file), file, fields)
        for name, file in named.items()
        if file is not None
    }
    filed = {name: job.columns[name].filed(name) for name in files}
    task = open_task(Bundle(job.model_copy(update={"columns": {**job.columns, **filed}}), files))
    try:
        check_task(task)
    except SchemaError as error:
        from jobs.file.key_errors import located

        raise located(error, path, fields, named) from None
    return task


def _read_named(read: Callable[[Path], str], path: Path, keys: Sequence[str], file: str, fields: Any) -> str:
    """Read a file that a key of the job names. Raises ConfigError with the key and its place.

    keys:  the path of the key, or of a key above.
    """
    try:
        return read(path.parent / file)
    except ConfigError as error:
        from jobs.file.key_errors import place_of

        problem = error.problem
        where, named = place_of(path, keys, fields), ".".join(keys)
        raise ConfigError(
            problem.error_id, f"{where}: {named}: {problem.message}", remedy=problem.remedy or _PATHS
        ) from None


_PATHS = "correct the path; a path in a job begins at the folder of the job file"


def _key_of(fields: Any, column: str, file: str) -> tuple[str, ...]:
    """Return the path of the key of a column that names a file, as far as the column shows the key."""
    keys = fields["columns"][column]
    return ("columns", column, *[key for key, value in keys.items() if value == file][:1])


def _fields(path: Path, changes: Mapping[str, Any]) -> Any:
    found = parse_yaml(read_text(path), str(path))
    return changed(found, changes) if changes else found


def changed(found: Any, changes: Mapping[str, Any]) -> Any:
    """Return the keys of a file with changes applied, key by key also inside nested values."""
    if not isinstance(found, Mapping):
        return found
    made = {
        key: changed(found.get(key, {}), value) if isinstance(value, Mapping) else value
        for key, value in changes.items()
    }
    return {key: value for key, value in {**found, **made}.items() if value is not None}


def _with_model(job: Job, path: Path, read: Callable[[Path], str], fields: Any) -> Job:
    """Return the job with the model of clusters, if a file has the model."""
    asked = job.clusters
    if asked is None or not isinstance(asked.model, str):
        return job
    text = _read_named(read, path, ("model", "lkc", "clusters", "model"), asked.model, fields)
    opened = asked.model_copy(update={"model": read_model(text, str(path.parent / asked.model))})
    lkc = job.lkc.model_copy(update={"clusters": opened})
    return job.model_copy(update={"model": job.model.model_copy(update={"lkc": lkc})})


def decode_task(encoded: bytes) -> Task:
    """Read a bundle from a coordinator, and check everything possible without data.

    Raises ConfigError or SchemaError, also for a non-canonical bundle.
    """
    task = read_task(encoded)
    check_task(task)
    return task


def read_task(encoded: bytes) -> Task:
    """Read a bundle without the taxonomies. Raises ConfigError for a non-canonical bundle."""
    try:
        parts: Any = read_json(encoded)
    except (ValueError, RecursionError) as error:
        raise ConfigError("job-invalid", "the bundle is not JSON") from error
    if is_too_deep(parts):
        raise ConfigError("job-invalid", "the bundle is nested too deeply")
    if (
        not isinstance(parts, dict)
        or parts.get("bundle") != FORMAT
        or not isinstance(parts.get("files"), dict)
    ):
        raise ConfigError("job-invalid", "the bundle has another format; compare versions")
    job = parse_job(parts.get("job"), "bundle")
    if job.clusters is not None and isinstance(job.clusters.model, str):
        raise ConfigError("job-invalid", "bundle: model.lkc.clusters.model is a path, not the model")
    require_confirmed(job)
    task = open_task(Bundle(job, {str(k): str(v) for k, v in parts["files"].items()}))
    if not task.bundle.is_canonical(encoded):
        raise ConfigError("job-invalid", "the bundle is not in canonical form; compare versions")
    return task


def parse_job(fields: Any, where: str) -> Job:
    """Validate a job read from YAML or JSON. Raises ConfigError with the path of every wrong key."""
    job = parse_model(Job, fields, where, "job-invalid", _advice_on)
    model = model_named(job.model.name)
    try:
        model.check_first(job)
        check_columns(job)
        PARTITIONS[job.partition].check(job)
        model.check(job)
        mode = mode_of(model, job)
    except ValueError as error:
        raise invalid_job(error, where, fields) from None
    if len(job.roster) < mode.least:
        message = f"{where}: {len(job.roster)} parties are too few: {mode.least_because}"
        raise ConfigError("job-too-few-parties", message)
    return job


def invalid_job(error: ValueError, where: str, fields: Any) -> ConfigError:
    """Return the error for keys of a job that a check refused, with the line of the key and what to write instead."""
    from jobs.file.key_errors import path_named, place_of, remedy_of

    place = place_of(where, path_named(str(error), fields), fields)
    return ConfigError("job-invalid", f"{place}: {error}", remedy=remedy_of(str(error), fields))


def _advice_on(keys: Sequence[str], job: Any) -> str:
    """Return the advice on an unknown key, from the keys of all models."""
    from jobs.moved_keys import advice_on

    return advice_on(keys, job)


def check_task(task: Task) -> None:
    """Refuse what job and taxonomy files show to be wrong: size of the bundle, values, sizes of the schema.

    Raises SchemaError, or PrivacyError for more cells than a joint job may have.
    """
    if len(task.bundle.encoded) > MAX_BUNDLE_BYTES:
        raise SchemaError("domain-too-large", f"the bundle has more than {MAX_BUNDLE_BYTES} bytes")
    check_values(task.job, task.taxonomies)
    task.model.check_opened(task)
    task.mode.check(task)
