"""Checks of a job with `method: synthetic`: on its file, and on domains."""

from __future__ import annotations

from itertools import combinations

from anonymize.dates import DateGrid
from anonymize.errors import SchemaError
from anonymize.joint.synthetic.run import SyntheticRequest
from anonymize.scores.names import needs_class
from anonymize.synthetic.ordering import are_in_order
from anonymize.synthetic.requirement import Synthetic, check_synthetic
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import MISSING, Taxonomy
from jobs.dp import budget
from jobs.dp.settings import CELL, NEVER, SyntheticModel
from jobs.file.job import Job, check_table
from jobs.task import Task

MOST_PAIR_CELLS = 1 << 25
"""Largest number of cells of all pairs of columns together. The choice between pairs looks at every cell."""


def settings(job: Job) -> SyntheticModel:
    """Return the settings under `model.dp` of the job file."""
    assert isinstance(job.model.dp, SyntheticModel)
    return job.model.dp


def check(job: Job) -> None:
    """Refuse errors that the job file alone shows. Raises ValueError."""
    check_table(job)
    budget.check(job)
    if job.goal is not None and not needs_class(job.goal):
        for name in job.names("class"):
            raise ValueError(
                f"columns.{name}: goal {job.goal} has no `role: class`; say `role: sensitive`, or goal "
                "classification"
            )
    for name, column in job.columns.items():
        if column.set is not None:
            raise ValueError(
                f"columns.{name}: `method: synthetic` cannot publish set-valued columns; make the column "
                "categorical, or say `method: diffgen`"
            )
        if column.missing not in (None, CELL, NEVER):
            raise ValueError(
                f"columns.{name}.missing: with `method: synthetic` missing values have a separate cell, and no row "
                "is dropped; leave the key out, or say `never` for a column without missing cells"
            )
    _check_order(job)
    if job.partition == "vertical" and len(job.roster) != 2:
        raise ValueError(f"vertical DP jobs have two parties, not {len(job.roster)}")


def _check_order(job: Job) -> None:
    """Refuse an order of other columns than numbers and dates, or of fewer than two. Raises ValueError."""
    names = settings(job).order or ()
    for name in names:
        column = job.columns.get(name)
        if column is None or (column.numeric is None and column.dates is None):
            raise ValueError(f"model.dp.order names {name!r}: name columns with `numeric` or `dates`")
    if len(names) == 1 or len(set(names)) != len(names):
        raise ValueError("model.dp.order: name two columns or more, each once: [admitted, discharged]")


def requirement(task: Task) -> Synthetic:
    """Return ε and its measurements."""
    asked = settings(task.job)
    edges = None if asked.edges == "auto" else int(asked.edges)
    return Synthetic(
        asked.epsilon,
        edges,
        max_rows=asked.max_rows,
        per_person=asked.max_records_per_person or 1,
    )


def request(task: Task) -> SyntheticRequest:
    """Return the parties' request for the computation of a joint job."""
    return SyntheticRequest(task.schema, requirement(task), task.digest)


def check_opened(task: Task) -> None:
    """Refuse domains that the method cannot publish, and a value of `other` outside its taxonomy.

    Raises SchemaError.
    """
    check_synthetic(task.schema, requirement(task))
    budget.check_others(task)
    _check_never_missing(task)
    if (names := settings(task.job).order) and not are_in_order(ordered_columns(task.job, task.schema)):
        raise SchemaError(
            "job-invalid",
            f"model.dp.order: {', '.join(names)} cannot be compared: the columns need the same kind of values (dates "
            "of one form, or numbers with equally many decimals in the edges of the grid), and domains that overlap",
        )
    bins = [_most_bins(column, requirement(task)) for column in task.schema.qid]
    cells = task.schema.n_classes * sum(one * other for one, other in combinations(bins, 2))
    if settings(task.job).edges != 0 and cells > MOST_PAIR_CELLS:
        raise SchemaError(
            "domain-too-large",
            f"the pairs of {len(bins)} columns may have {cells:,} cells by class, more than {MOST_PAIR_CELLS:,}",
            remedy="publish fewer columns or classes, or say `edges: 0`",
        )


def ordered_columns(job: Job, schema: Schema) -> list[QidColumn]:
    """Return the columns that drawn rows have in order; empty without the key."""
    by_name = {column.name: column for column in schema.qid}
    return [by_name[name] for name in settings(job).order or ()]


def unordered_dates(job: Job, schema: Schema) -> list[tuple[QidColumn, QidColumn]]:
    """Return the pairs of date columns without an order between the two, in the order of the job."""
    ordered = set(settings(job).order or ())
    dates = [column for column in schema.qid if isinstance(column.values, DateGrid)]
    return [pair for pair in combinations(dates, 2) if not ordered >= {column.name for column in pair}]


def about_order(task: Task) -> list[str]:
    """Return the note for a job with several columns of numbers or dates, and no order between columns."""
    job = task.job
    dates = [name for name, column in job.columns.items() if column.dates is not None]
    if len(dates) < 2 or settings(job).order:
        return []
    example = dates if len(dates) == 2 else ["EARLIER", "LATER"]
    return [
        f"drawn rows keep no rule between columns: each of {', '.join(dates)} may lie before another; say `order: "
        f"[{', '.join(example)}]` under model.dp for columns in order, or publish a beginning and a length"
    ]


def _check_never_missing(task: Task) -> None:
    """Refuse never-missing columns with `?` or with a single value. Raises SchemaError."""
    for name, values in task.taxonomies.items():
        if task.job.columns[name].missing != NEVER:
            continue
        if values.root.last == 1:
            raise SchemaError(
                "job-invalid",
                f"columns.{name}: the column has a single value and is never missing, so there is nothing to "
                "measure",
                column=name,
                remedy="leave the column out, or add a second value",
            )
        if isinstance(values, Taxonomy) and MISSING in values.leaves:
            raise SchemaError(
                "job-invalid",
                f"columns.{name}: the values list {MISSING!r}, a missing cell, though the job says `missing: never`",
                column=name,
                remedy=f"take {MISSING!r} out of the values, or leave `missing` out",
            )


def _most_bins(column: QidColumn, asked: Synthetic) -> int:
    most = asked.design.grid_bins + column.missing_cell if column.is_numeric else asked.design.taxonomy_bins
    return min(column.n_leaves, most)


def requirement_words(task: Task) -> str:
    """Return ε and the pairs in a line."""
    asked = settings(task.job)
    return f"epsilon={asked.epsilon} method=synthetic edges={asked.edges}{budget.per_person_words(task.job)}"
