"""What a DP job asks: of its file, of the owners' policies, and of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from anonymize.dp.accounting import Dp
from anonymize.dp.noisy_table import most_cells
from anonymize.dp.persons import at_most
from anonymize.errors import DataError, SchemaError
from anonymize.joint.dp.run import DpRequest, NoiseKind
from anonymize.joint.lkc.scores.rows import needs_class
from anonymize.table import CodedTable
from anonymize.taxonomy import Taxonomy
from crypto.rng import Rng
from jobs.columns import SetOf
from jobs.data.counted import counted
from jobs.data.table_file import nfc
from jobs.data.tables import Loaded, Table
from jobs.dp.settings import COUNT, DpModel
from jobs.fields import DEFAULT_LEVEL
from jobs.job import Job, check_domains, check_table
from jobs.policy import Policy
from jobs.refusals import only, too_large, too_small
from jobs.task import Task


def settings(job: Job) -> DpModel:
    """What the job file says under `model.dp`."""
    assert job.model.dp is not None
    return job.model.dp


def check(job: Job) -> None:
    """Refuse what the job file alone shows to be wrong: everything about the domain is public, nothing is exact.

    Raises ValueError.
    """
    check_table(job)
    (name,) = job.names("class") or (None,)
    if name is None or job.goal is None or not needs_class(job.goal):
        raise ValueError("a DP job needs a column with `role: class`, and goal classification")
    for sensitive in job.names("sensitive"):
        if job.columns[sensitive].has_hierarchy:
            raise ValueError(
                f"columns.{sensitive}: a DP job generalizes a sensitive column below one root, so it has a `domain`; "
                "`taxonomy` and `numeric` of sensitive columns are for LKC jobs (`role: qid` generalizes by them)"
            )
    check_domains(job)
    if job.columns[name].shared_by is not None:
        raise ValueError(f"columns.{name}.shared_by: in DP jobs both parties must hold the class")
    if job.names("plain"):
        raise ValueError(
            f"columns.{job.names('plain')[0]}: a DP release holds nothing exact, so no `plain` column"
        )
    if job.names("party"):
        raise ValueError(f"columns.{job.names('party')[0]}: `role: party` is for LKC jobs with `colluders`")
    if job.withhold is not None:
        raise ValueError("`withhold` is for LKC jobs: in a DP job no group is too small")
    for name, column in job.columns.items():
        for key in ("refine", "suppress"):
            if getattr(column, key) is not None:
                raise ValueError(f"columns.{name}.{key} is for LKC jobs: DP jobs refine all children at once")
    if COUNT in job.published:
        raise ValueError(f"columns.{COUNT}: the release has a column of this name; rename yours")
    for key in (
        "method",
        "split",
        "link",
        "relinkable",
        "release",
        "quasi",
        "accept_exact_quasi_identifiers",
    ):
        if getattr(job, key) is not None:
            raise ValueError(f"`{key}` is for LKC jobs")
    for key in ("score", "contexts"):
        if getattr(job, key) is not None:
            raise ValueError(f"`{key}` is for LKC jobs: what a DP job optimizes is `utility` in `model.dp`")
    if job.disclosure not in (None, DEFAULT_LEVEL) or job.insider:
        raise ValueError("`disclosure: leader` and `insider` are for LKC jobs")
    _check_people(job)
    _CHECKS[job.partition](job)


def _check_single(job: Job) -> None:
    for key, default in (("noise", "joint"), ("engine", "circuit")):
        if getattr(settings(job), key) != default:
            raise ValueError(f"model.dp.{key} is for joint jobs")


def _check_people(job: Job) -> None:
    """Whose records are whose must be known where people are protected."""
    if settings(job).max_records_per_person is None:
        return
    if job.partition == "vertical":
        raise ValueError(
            "model.dp.max_records_per_person: a vertical job has one record of each id, so epsilon is per person"
        )
    if settings(job).engine == "thesis":
        raise ValueError(
            "model.dp.max_records_per_person is for engine circuit: the published protocols weigh single records"
        )
    if not job.names("id"):
        raise ValueError(
            "model.dp.max_records_per_person needs a column with `role: id`, which says whose record a row is"
        )


def _check_sets(job: Job) -> None:
    for name in job.names("qid"):
        if job.columns[name].set is not None:
            raise ValueError(f"columns.{name}: set-valued columns are for jobs of a single holder")


@dataclass(frozen=True)
class _Engine:
    """What joint jobs of an engine can ask for.

    two:        there must be two parties, no more.
    utilities:  by partition.
    noise:      how the counts get theirs, whatever the job says; None: as it says.
    """

    two: bool
    utilities: Mapping[str, Collection[str]]
    noise: NoiseKind | None = None


_ENGINES: Mapping[str, _Engine] = {
    "circuit": _Engine(False, {"horizontal": ("max",), "vertical": ("max", "infogain")}),
    "thesis": _Engine(True, {"horizontal": ("max",), "vertical": ("max",)}, "each"),
}
"""By name."""


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
    """Two parties; and no value decides whether its row is matched, which the peer would see."""
    _check_sets(job)
    if len(job.roster) != 2:
        raise ValueError(f"vertical DP jobs have two parties, not {len(job.roster)}")
    for name, column in job.columns.items():
        if column.missing == "drop":
            raise ValueError(
                f"columns.{name}.missing: in vertical DP jobs `drop` would tell the peer whose value is missing; "
                "leave it out: missing categories become a leaf `?`, missing numbers count in the lowest cell"
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
"""By partition, what is refused besides."""


def requirement(task: Task) -> Dp:
    """ε and what it is spent on."""
    asked = settings(task.job)
    return Dp(
        asked.epsilon,
        asked.specializations,
        asked.utility,
        asked.max_rows,
        asked.max_cells,
        asked.max_fanout,
        asked.max_records_per_person or 1,
    )


def request(task: Task) -> DpRequest:
    """What the parties of a joint job compute."""
    noise = _engine(task.job).noise or settings(task.job).noise
    return DpRequest(task.schema, requirement(task), task.digest, noise)


def check_opened(task: Task) -> None:
    """Refuse a value of `other` outside its taxonomy, and items that combinations would not tell apart.

    Raises SchemaError.
    """
    for name, values in task.taxonomies.items():
        if isinstance(values, Taxonomy):
            _check_items(name, values, task.job.columns[name].set)
            _check_other(name, values, task.job.columns[name].other)


def _check_other(name: str, values: Taxonomy, other: str | None) -> None:
    if other is not None and nfc(other) not in map(nfc, values.leaves):
        raise SchemaError(
            "job-invalid", f"columns.{name}: `other` must be a value of its taxonomy", column=name
        )


def _check_items(name: str, values: Taxonomy, sets: SetOf | None) -> None:
    """Combinations are printed as lists of items, so those must be told apart. Raises SchemaError."""
    if sets is None:
        return
    if len(set(values.printed)) < len(values.printed):
        raise SchemaError(
            "taxonomy-invalid",
            f"set-valued column {name}: two nodes of its taxonomy print alike",
            column=name,
        )
    if any(sets.separator in label for label in values.printed):
        raise SchemaError(
            "taxonomy-invalid",
            f"set-valued column {name}: a node's label has the separator in it",
            column=name,
        )


def requirement_words(task: Task) -> str:
    """ε, the specializations and the largest release in a line."""
    asked = settings(task.job)
    most = "" if any(c.sets for c in task.schema.qid) else f", at most {_most_cells(task)} cells"
    people = asked.max_records_per_person
    unit = "" if people is None else f", per person of at most {counted(people, 'record', 'records')}"
    return f"epsilon={asked.epsilon} specializations={asked.specializations}{most}{unit}"


def _most_cells(task: Task) -> int:
    asked = settings(task.job)
    most = most_cells(task.schema, asked.specializations)
    return min(most, asked.max_cells) if task.job.roster else most


def objections(task: Task, policy: Policy) -> Iterator[str]:
    """What a policy does not allow of ε, the noise and the bound on rows."""
    asked = settings(task.job)
    if policy.max_epsilon is None:
        yield "no DP job is allowed (`policy.max_epsilon` is unset)"
    elif asked.epsilon > policy.max_epsilon:
        yield too_large("epsilon", policy.max_epsilon, asked.epsilon, "max_epsilon")
    if policy.per_person and task.job.partition != "vertical" and asked.max_records_per_person is None:
        yield "epsilon must be per person: the job must say `max_records_per_person` (`policy.per_person`)"
    if asked.max_rows < policy.max_rows:
        yield too_small("max_rows", f"{policy.max_rows}, our own bound", asked.max_rows, "max_rows")
    for kind in _noises(task):
        if kind not in policy.noise:
            yield only(f"counts may not get noise of kind {kind}", policy.noise, "noise")


def _noises(task: Task) -> list[NoiseKind]:
    """How the counts of a joint job may come to get their noise: of the fewest cells, and of the most."""
    made = request(task)
    return sorted({made.noise_for(1), made.noise_for(_most_cells(task))})


def counting(task: Task, loaded: Loaded, rng: Rng) -> CodedTable:
    """The records that count: of every person at most as many as the job says, chosen at random."""
    most = settings(task.job).max_records_per_person
    if most is None or loaded.person is None:
        return loaded.table
    return at_most(loaded.table, loaded.person, most, rng)


def check_bound(table: Table, bound: int) -> None:
    """Raise DataError if a table has more rows than its owner's bound; what is told does not depend on the job."""
    if table.rows.used > bound:
        raise DataError(
            "too-many-rows",
            "the table has more rows than its owner's own bound for DP jobs",
            remedy="the table's owner raises `policy.max_rows`; jobs then need a `max_rows` as large",
            private=f"{counted(table.rows.used, 'row', 'rows')}, and `policy.max_rows` is {bound:,}",
        )


def largest_sum(policy: Policy) -> Fraction | None:
    """The largest sum of ε over all DP jobs on a data set; None where no DP job is allowed."""
    return policy.epsilon_budget or policy.max_epsilon


def allowance(task: Task) -> dict[str, Any]:
    """The settings of a policy that allows just this."""
    asked, noises = settings(task.job), _noises(task)
    kinds = {} if noises == ["joint"] else {"noise": noises}
    people = {} if asked.max_records_per_person is None else {"per_person": True}
    return {"max_epsilon": str(asked.epsilon), "max_rows": asked.max_rows, **people, **kinds}
