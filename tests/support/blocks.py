"""Tables and jobs with several sensitive columns, not all of which a release links."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.lkc.forms.form import form_of
from jobs.lkc.linked_columns import blocks_of
from jobs.options import NO_OPTIONS
from jobs.release.csv import read_csv
from jobs.stopwatch import Stopwatch
from jobs.task import Task
from tests.support import jobs
from tests.support.samples import single_job

DISEASES, TREATMENTS, ENDS = ("asthma", "cold", "flu", "heart"), ("IV", "drug", "surgery"), ("home", "ward")
SENSITIVE: Mapping[str, Sequence[str]] = {"disease": DISEASES, "treatment": TREATMENTS, "end": ENDS}
"""By sensitive column its domain."""
COLUMNS: dict[str, Any] = {
    "age": {"role": "qid", "numeric": {"min": "0", "max": "80", "step": "10"}},
    "job": {"role": "qid", "taxonomy": {"Any": {"Blue": ["Janitor", "Mover"], "White": ["Clerk", "Lawyer"]}}},
    **{name: {"role": "sensitive", "domain": list(domain)} for name, domain in SENSITIVE.items()},
    "paid": {"role": "class", "domain": ["N", "Y"]},
}


def rows_of(n: int, seed: int = 0) -> list[dict[str, str]]:
    """Random records; the treatment mostly follows from the disease."""
    draw = random.Random(seed)  # noqa: S311  rows of a test
    found = []
    for _ in range(n):
        disease = draw.choice(DISEASES)
        usual = {"heart": "surgery", "flu": "IV"}.get(disease, "drug")
        treatment = usual if draw.random() < 0.7 else draw.choice(TREATMENTS)
        found.append(
            {
                "age": f"{draw.randrange(800) / 10:g}",
                "job": draw.choice(["Janitor", "Mover", "Clerk", "Lawyer"]),
                "disease": disease,
                "treatment": treatment,
                "end": draw.choice(ENDS),
                "paid": draw.choice("NY"),
            }
        )
    return found


def job_of(lkc: Mapping[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """A kd job of one holder; ``lkc``: what is asked besides K = 4."""
    model = {"lkc": {"L": "all", "K": "4", "C": "1", **(lkc or {})}}
    fields = {"method": "kd", "goal": "general", "model": model, "columns": COLUMNS, **changes}
    return single_job(**{key: value for key, value in fields.items() if value is not None})


@contextmanager
def block_by_block() -> Iterator[None]:
    """Let jobs of one holder ask of each block by itself what they ask of all columns, as joint jobs do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("jobs.lkc.options.diversity.ruled_together", blocks_of)
        yield


def released(folder: Path, fields: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> tuple[Task, Path]:
    """The task of a job, and the folder of its release."""
    task, source = jobs.task_of(fields), Csv(jobs.write_csv(folder / "table.csv", rows))
    watch = Stopwatch(lambda name: None)
    task.model.run_single(task, source, folder / "out", NO_OPTIONS, watch, Observer())
    return task, folder / "out"


def read(task: Task, out: Path, name: str) -> list[dict[str, str]]:
    """A file of a release."""
    names = form_of(task.job).columns(task.job)[name]
    table = read_csv(out / name, names)
    columns = [[column.labels[code] for code in column.codes] for column in table.columns.values()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def counts_of(
    rows: Sequence[Mapping[str, str]], by: Sequence[str], block: Sequence[str]
) -> Counter[tuple[str, ...]]:
    """Records by group and values of a block."""
    return Counter(tuple(row[name] for name in (*by, *block)) for row in rows)
