"""Checks of a DP job's requirement: on its file, on the owners' policies, and on a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from anonymize.dp.accounting import Dp
from anonymize.dp.noisy_table import most_cells
from anonymize.errors import SchemaError
from anonymize.joint.dp.run import DpRequest, NoiseKind
from anonymize.scores.names import needs_class
from anonymize.taxonomy import Taxonomy
from jobs.dp import budget
from jobs.dp.settings import COUNT, DpModel
from jobs.file.columns import SetOf
from jobs.file.job import Job, check_table
from jobs.owner.rules import AMONG, Rule, Setting
from jobs.task import Task


def settings(job: Job) -> DpModel:
    """Return the settings under `model.dp` of the job file."""
    assert isinstance(job.model.dp, DpModel)
    return job.model.dp


def check(job: Job) -> None:
    """Refuse errors that the job file alone shows: everything about the domain is public, nothing is exact.

    Raises ValueError.
    """
    check_table(job)
    (name,) = job.names("class") or (None,)
    if name is None:
        raise ValueError("a DP job of `method: diffgen` needs a column with `role: class`")
    if job.goal is None or not needs_class(job.goal):
        raise ValueError(
            "`goal`: DiffGen chooses generalizations that predict a class: leave `goal` out, or say "
            "`method: synthetic`"
        )
    budget.check(job)
    if COUNT in job.published:
        raise ValueError(f"columns.{COUNT}: the release has a column {COUNT}; rename the job's column")
    _check_people(job)
    _CHECKS[job.partition](job)


def _check_single(job: Job) -> None:
    for key, default in (("noise", "joint"), ("engine", "circuit")):
        if getattr(settings(job), key) != default:
            raise ValueError(f"model.dp.{key} is for joint jobs")


def _check_people(job: Job) -> None:
    if settings(job).max_records_per_person is not None and settings(job).engine == "thesis":
        raise ValueError(
            "model.dp.max_records_per_person is for engine circuit: the published protocols weigh single records"
        )


def _check_sets(job: Job) -> None:
    for name in job.names("qid"):
        if job.columns[name].set is not None:
            raise ValueError(f"columns.{name}: set-valued columns are for jobs of a single holder")


@dataclass(frozen=True)
class _Engine:
    """Limits of an engine of joint jobs.

    two:        exactly two parties.
    utilities:  by partition.
    noise:      the source of the counts' noise, whatever the job says; None: as the job says.
    """

    two: bool
    utilities: Mapping[str, Collection[str]]
    noise: NoiseKind | None = None


_ENGINES: Mapping[str, _Engine] = {
    "circuit": _Engine(False, {"horizontal": ("max",), "vertical": ("max", "infogain")}),
    "thesis": _Engine(True, {"horizontal": ("max",), "vertical": ("max",)}, "each"),
}
"""Engines by name."""


def _engine(job: Job) -> _Engine:
    return _ENGINES[settings(job).engine]


def _check_two(job: Job) -> None:
    if len(job.roster) != 2 and _engine(job).two:
        raise ValueError(f"model.dp.engine: {settings(job).engine} is for two parties, not {len(job.roster)}")


def _check_horizontal(job: Job) -> None:
    _check_sets(job)
    _check_two(job)
    _check_gain(job)


def _check_vertical(job: Job) -> None:
    """Require two parties, and that no value decides on a row's match, because the peer would see the match."""
    _check_sets(job)
    if len(job.roster) != 2:
        raise ValueError(f"vertical DP jobs have two parties, not {len(job.roster)}")
    for name, column in job.columns.items():
        if column.missing == "drop":
            raise ValueError(
                f"columns.{name}.missing: in vertical DP jobs `drop` would tell the peer about missing values of "
                "people; leave `missing` out: missing categories become a leaf `?`, missing numbers count in the "
                "lowest cell"
            )
    _check_gain(job)


def _check_gain(job: Job) -> None:
    if settings(job).utility not in _engine(job).utilities[job.partition]:
        raise ValueError(
            "model.dp.utility: infogain is for single holders and vertical jobs with engine circuit"
        )


_CHECKS: Mapping[str, Callable[[Job], None]] = {
    "single": _check_single,
    "horizontal": _check_horizontal,
    "vertical": _check_vertical,
}
"""Additional checks, by partition."""


def requirement(task: Task) -> Dp:
    """Return ε and its uses."""
    asked = settings(task.job)
    return Dp(
        asked.epsilon,
        asked.specializations,
        asked.utility,
        asked.max_cells,
        asked.max_fanout,
        max_rows=asked.max_rows,
        per_person=asked.max_records_per_person or 1,
    )


def request(task: Task) -> DpRequest:
    """Return the parties' request for the computation of a joint job."""
    noise = _engine(task.job).noise or settings(task.job).noise
    return DpRequest(task.schema, requirement(task), task.digest, noise)


def check_opened(task: Task) -> None:
    """Refuse a value of `other` outside its taxonomy, and items that combinations do not tell apart.

    Raises SchemaError.
    """
    for name, values in task.taxonomies.items():
        if isinstance(values, Taxonomy):
            _check_items(name, values, task.job.columns[name].set)
    budget.check_others(task)


def _check_items(name: str, values: Taxonomy, sets: SetOf | None) -> None:
    """Require distinct items: combinations are printed as lists of items. Raises SchemaError."""
    if sets is None:
        return
    if len(set(values.printed)) < len(values.printed):
        raise SchemaError(
            "taxonomy-invalid",
            f"set-valued column {name}: two nodes of the taxonomy print alike",
            column=name,
        )
    if any(sets.separator in label for label in values.printed):
        raise SchemaError(
            "taxonomy-invalid",
            f"set-valued column {name}: a node's label contains the separator",
            column=name,
        )


def requirement_words(task: Task) -> str:
    """Return ε, the specializations and the largest release in a line."""
    asked = settings(task.job)
    most = "" if any(c.sets for c in task.schema.qid) else f", at most {_most_cells(task)} cells"
    unit = budget.per_person_words(task.job)
    return f"epsilon={asked.epsilon} specializations={asked.specializations}{most}{unit}"


def noise_of_counts(task: Task) -> list[str]:
    """Return how noisy a count of the release will be at most, from the job alone.

    At least half of ε is left for the counts, whatever is chosen before (semantics §8.2). The noise of a rate r is
    discrete Laplace noise of variance 2e^-r / (1 - e^-r)^2; where two parties add one each, the variances add up.
    """
    asked = requirement(task)
    rate = float(asked.of_a_record(asked.epsilon) / 2)
    joint = bool(task.job.roster)
    n_noises = 2 if joint and "each" in _noises(task) else 1
    deviation = math.sqrt(2 * n_noises * math.exp(-rate)) / -math.expm1(-rate)
    return [
        f"each count of a cell has noise with a standard deviation of about {deviation:.3g} (at most), for any "
        "count; a sum of n counts has the square root of n times as much"
    ]


def _most_cells(task: Task) -> int:
    asked = settings(task.job)
    most = most_cells(task.schema, asked.specializations)
    return min(most, asked.max_cells) if task.job.roster else most


def rules(task: Task) -> Iterator[Rule]:
    """Yield a job's requirements on a policy: for ε, the noise and the bound on rows."""
    yield from budget.rules(task)
    for kind in _noises(task):
        yield Setting("noise", AMONG, kind, f"counts may not get noise of kind {kind}")


def _noises(task: Task) -> list[NoiseKind]:
    """Return the kinds of noise that the counts of a joint job may get: of the fewest cells, and of the most."""
    made = request(task)
    return sorted({made.noise_for(1), made.noise_for(_most_cells(task))})
