"""Checks of an LKC job's requirement: on its file, on the owners' policies, and on a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

from anonymize.criteria.criterion import SideInputs
from anonymize.errors import SchemaError
from anonymize.lkc.requirement import AskedList, criteria_of
from anonymize.scores.names import OF_GOAL, STRICT, WITH_CONTEXTS
from anonymize.scores.score import Score, score_of
from anonymize.table import Ints
from jobs.data.counted import counted
from jobs.data.tables import Loaded
from jobs.file.fields import DEFAULT_LEVEL
from jobs.file.job import Job, check_table
from jobs.file.values import Values, values_of
from jobs.lkc import linked_columns
from jobs.lkc.entries import Entry, entries_of, is_one_of_all, least_bounds, uncovered
from jobs.lkc.forms import form as forms
from jobs.lkc.options.option import options_of_job
from jobs.lkc.settings import LkcModel, LkcSettings
from jobs.task import Task

if TYPE_CHECKING:
    from jobs.owner.composition import Known


def check(job: Job) -> None:
    """Refuse errors that the job file alone shows. Raises ValueError."""
    check_table(job)
    if isinstance(job.lkc, LkcModel):
        _check_bounded(job, job.lkc)
    for where, said in job.lkc.entries:
        _check_columns(job, where, said.columns or ())
    entries = entries_of(job)
    for entry in entries:
        _check_subsets(entry)
        _check_sensitive(job, entry)
        if not entry.asks_something:
            raise ValueError(
                f"{entry.where} asks for nothing: give a K above 1, a C or t below 1, `distinct` or `diversity`"
            )
    _check_all_are_used(job, entries)
    for entry in entries:
        for option in entry.options:
            option.check(job, entry.by_key)
    _check_columns_of_options(job, entries)
    if job.lkc.insider:
        _check_insider(job, entries)
    if job.lkc.link is not None:
        linked_columns.check(job)
        _check_blocks(job, entries)
    forms.check(job)
    for name, column in job.columns.items():
        for key in ("set", "other"):
            if getattr(column, key) is not None:
                raise ValueError(f"columns.{name}.{key} is for DP jobs")


MOST_SUBSETS = 1 << 18
"""Most sets of columns of an entry. The groups of each set are counted separately."""


def _check_subsets(entry: Entry) -> None:
    """Require that the sets of columns within an attacker's knowledge are few enough to look at each set."""
    n, known = len(entry.columns), entry.known
    if comb(n, known) > MOST_SUBSETS:
        raise ValueError(
            f"{entry.where}: {known} of {n} quasi-identifiers are {comb(n, known):,} sets of columns to be tested, "
            f"more than {MOST_SUBSETS:,}: say `L: all` (one set), a smaller L, or fewer quasi-identifiers"
        )


_OF_PARTITIONS: Mapping[str, tuple[str, str]] = {
    "secure_sum": ("horizontal", "horizontal jobs"),
    "insider": ("vertical", "vertical jobs"),
}
"""Partition of each key, and the partition in words."""


def check_partition(job: Job) -> None:
    """Refuse keys of another partition. Raises ValueError."""
    for key, (partition, words) in _OF_PARTITIONS.items():
        if getattr(job.lkc, key) is not None and job.partition != partition:
            raise ValueError(f"`{key}` is for {words}")
    for option in options_of_job(job):
        option.check_first(job)
    if job.lkc.secure_sum is not None and job.disclosure != "leader":
        raise ValueError("`secure_sum` is for `disclosure: leader`")
    if job.clusters is not None and job.partition == "vertical":
        raise ValueError(
            "goal clusters is for single and horizontal jobs: in a vertical job nobody has all columns of a model"
        )
    if job.clusters is not None and job.roster and not job.published_clusters:
        raise ValueError(
            "model.lkc.clusters.publish: name a column for the clusters; the parties see the counts of clusters in "
            "every group of the table, so the clusters are part of the table"
        )


def settings(job: Job) -> dict[str, Any]:
    """Return the keys under `model.lkc` of the whole job, without the keys of a requirement or of clusters."""
    keys = LkcSettings.model_fields.keys() - {"clusters"}
    return job.lkc.model_dump(mode="json", include=keys, exclude_none=True)


def _check_bounded(job: Job, lkc: LkcModel) -> None:
    """Require that a job with a single requirement states a C for every sensitive column, and for no other column."""
    for name in lkc.C if isinstance(lkc.C, Mapping) else ():
        if name not in job.names("sensitive"):
            raise ValueError(f"model.lkc.C names {name!r}, which is not a sensitive column")
    for name in job.names("sensitive"):
        if not _is_bounded(job, lkc, name):
            raise ValueError(
                f"sensitive column {name} needs a C, at the column or in `model.lkc` (1: no bound): add e.g. "
                "`C: 1/2` under `model.lkc`"
            )


def _is_bounded(job: Job, lkc: LkcModel, name: str) -> bool:
    """Return True if a job states a C for a sensitive column, even 1."""
    of_all = "C" in lkc.model_fields_set and not isinstance(lkc.C, Mapping)
    return of_all or job.columns[name].C is not None or (isinstance(lkc.C, Mapping) and name in lkc.C)


def _check_columns(job: Job, where: str, columns: Sequence[str]) -> None:
    """Require that every named column is a quasi-identifier, named once."""
    for i, name in enumerate(columns):
        if name not in job.columns:
            raise ValueError(f"{where}.columns names {name!r}, but the job has no such column")
        if job.columns[name].role != "qid":
            role = job.columns[name].role
            raise ValueError(
                f"{where}.columns names {name!r} with `role: {role}`: name columns with `role: qid`"
            )
        if name in columns[:i]:
            raise ValueError(f"{where}.columns names {name!r} twice")


def _check_sensitive(job: Job, entry: Entry) -> None:
    """Require a sensitive column in the job for each demand on sensitive columns."""
    for demand in entry.demands:
        for name in demand.columns:
            if name not in job.names("sensitive"):
                raise ValueError(
                    f"{entry.where}.{demand.name} names {name!r}, which is not a sensitive column"
                )


def check_opened(task: Task) -> None:
    """Refuse demands on more categories than a sensitive column has, and on values outside its domain.

    Raises SchemaError.
    """
    listed = [name for name in task.job.names("sensitive") if task.job.columns[name].is_listed]
    values = {name: values_of(task, name) for name in listed}
    for entry in entries_of(task.job):
        for name in listed:
            for option in entry.options:
                option.check_values(name, values[name])
            _check_attainable(entry, name, values[name])
        for option in entry.options if task.job.roster else ():
            option.check_joint(task.job, values)


def _check_attainable(entry: Entry, name: str, values: Values) -> None:
    """Refuse a C below 1/n if all n values are protected: some value has at least 1/n of any group."""
    n, bound = len(values.tested), entry.bounds[name]
    if bound * n < 1 and set(values.tested) <= set(values.protected):
        raise SchemaError(
            "job-invalid",
            f"{entry.where}: C={bound} of {name} cannot be met: all {n} values are protected, and in any group "
            f"some value has a share of 1/{n} or more; raise C, or protect fewer values",
            column=name,
        )


def _check_all_are_used(job: Job, entries: Sequence[Entry]) -> None:
    """Refuse a quasi-identifier without a requirement, and a C that every entry overrides."""
    for name in job.names("qid"):
        if not any(name in entry.columns for entry in entries):
            raise ValueError(
                f"columns.{name}: no requirement names the column; say `role: plain` if nobody can know its values"
            )
    for name in job.names("sensitive"):
        said = [entry.said.C for entry in entries]
        if job.columns[name].C is not None and all(isinstance(c, Mapping) and name in c for c in said):
            raise ValueError(f"columns.{name}.C is of no effect: every requirement has its own C for {name}")


def _check_columns_of_options(job: Job, entries: Sequence[Entry]) -> None:
    """Refuse keys and roles of columns for an option without the option."""
    _check_at_most(job, entries)
    for name in job.names("party"):
        if not any(entry.colluders for entry in entries):
            raise ValueError(f"columns.{name}: `role: party` is for `colluders` in `model.lkc`")
    close = [entry.by_key["t"] for entry in entries if "t" in entry.by_key]
    for name in job.names("sensitive"):
        if job.columns[name].distance is not None and not any(t.speaks_of(name) for t in close):
            raise ValueError(
                f"columns.{name}.distance is for `t`: no requirement has a `t` below 1 for {name}"
            )


def _check_at_most(job: Job, entries: Sequence[Entry]) -> None:
    """Refuse an `at_most` without effect: `ruled_out` looks at 2 values together, `diversity` at l - 1."""
    together = (entry.by_key["diversity"].together for entry in entries if "diversity" in entry.by_key)
    most = max(together, default=0)
    for name in job.names("sensitive"):
        limit = job.columns[name].at_most
        if limit is not None and not most:
            raise ValueError(
                f"columns.{name}.at_most is for `ruled_out` and `diversity`: no requirement has either key"
            )
        if limit is not None and limit >= most:
            raise ValueError(
                f"columns.{name}.at_most: {limit} limits nothing: `ruled_out` and `diversity` of this job look at "
                f"{counted(most, 'value', 'values')} together at most; leave `at_most` out"
            )


def _check_blocks(job: Job, entries: Sequence[Entry]) -> None:
    """Require a joint requirement on rows that print alike: blocks are shuffled among such rows."""
    together = any(entry.looks_together for entry in entries)
    if linked_columns.counted_apart(job) and together and not is_one_of_all(entries):
        raise ValueError(
            "`link` in joint jobs with `ruled_out`, or `diversity` above 2, needs one requirement with `L: all`, "
            "and no `columns`: blocks are shuffled among records that print alike in all quasi-identifiers, and "
            "with a smaller L the records of such a group may be so few that the release links the blocks; say `L: "
            "all`, or leave `link` out"
        )


def _check_insider(job: Job, entries: Sequence[Entry]) -> None:
    """Require bounds on inferences over all quasi-identifiers: vertical parties know all of a person's."""
    whole = [entry for entry in entries if entry.of_all]
    for name in job.names("sensitive"):
        if _strictest(whole, name) != _strictest(entries, name):
            raise ValueError(
                "`insider: true` needs a requirement of all quasi-identifiers with the smallest C and the largest "
                f"`distinct` and `diversity` of {name} (and, among requirements with `ruled_out`, the smallest C): "
                "parties know all quasi-identifiers of a person"
            )


def _strictest(entries: Sequence[Entry], name: str) -> tuple[Fraction, dict[str, tuple[Fraction | int, ...]]]:
    """Return the smallest C of a sensitive column, and the strongest demand of options on the column, by key."""
    most: dict[str, tuple[Fraction | int, ...]] = {}
    for option in (option for entry in entries for option in entry.options):
        strength = tuple(map(max, most.get(option.key, option.weakest), option.strength(name)))
        if strength != option.weakest:
            most[option.key] = strength
    return min((entry.bounds[name] for entry in entries), default=Fraction(1)), most


def job_score(job: Job) -> Score:
    """Return the score for choosing specializations."""
    assert job.lkc.score is not None
    score = score_of(job.lkc.score, job.lkc.contexts)
    said = {i: job.columns[name].weight for i, name in enumerate(job.generalized)}
    weights = {i: weight for i, weight in said.items() if weight is not None}
    if not weights:
        return score
    from anonymize.scores.weighted import Weighted

    return Weighted(score, weights)


def check_score(job: Job) -> None:
    """Refuse a score for another goal, or for another way to compute. Raises ValueError."""
    assert job.lkc.score is not None
    assert job.goal is not None
    names, score = OF_GOAL[job.goal], f"`score: {job.lkc.score}`"
    if job.lkc.score not in names:
        goals = " or ".join(f"`goal: {goal}`" for goal, known in OF_GOAL.items() if job.lkc.score in known)
        raise ValueError(
            f"{score} is for {goals}; with `goal: {job.goal}` say {' or '.join(names)}, or leave `score` out"
        )
    if job.disclosure == "strict" and job.lkc.score not in STRICT:
        raise ValueError(
            f"{score} compares candidates, with their split points, that all parties know beforehand; `disclosure: "
            f"strict` hides candidates: say `score: {next(name for name in names if name in STRICT)}`, or "
            f"`disclosure: {DEFAULT_LEVEL}`"
        )
    if job.lkc.contexts is not None and job.lkc.score not in WITH_CONTEXTS:
        raise ValueError(
            f"`contexts` is for `score: {' or '.join(WITH_CONTEXTS)}`; leave `contexts` out with {score}"
        )
    if job.lkc.contexts == "cells" and job.partition == "vertical":
        raise ValueError(
            "`contexts: cells` tells sensitive values apart, but in a vertical job only their holder knows the "
            "values; say `contexts: partitions`"
        )
    if job.lkc.contexts == "cells" and linked_columns.is_parted(job):
        raise ValueError(
            "`contexts: cells` needs class and sensitive values of a record together, but this release does not "
            "link them; say `contexts: partitions`"
        )


def requirement(task: Task) -> AskedList:
    """Return the non-redundant entries, and True if the bounds on inferences also apply to the parties."""
    return AskedList(
        tuple(entry.ask for entry in uncovered(entries_of(task.job))), bool(task.job.lkc.insider)
    )


def known(task: Task) -> tuple[Known, ...]:
    """Return the columns of each tested entry, with its L."""
    return tuple((entry.columns, entry.known) for entry in uncovered(entries_of(task.job)))


def largest_k(task: Task) -> int:
    """Return the largest K of all entries."""
    return max(entry.said.K for entry in entries_of(task.job))


def bounds_of(job: Job) -> dict[str, Fraction]:
    """Return the smallest C of every sensitive column."""
    return least_bounds(entries_of(job), job.names("sensitive"))


def requirement_words(job: Job) -> str:
    """Return the demands on groups, and the columns, in a line."""
    return "; ".join(entry.words for entry in entries_of(job))


def described_column(task: Task, name: str) -> dict[str, Any]:
    """Describe a column: the treatment of a missing cell; of a sensitive column the protected values and C."""
    column = task.job.columns[name]
    told = {"missing": column.missing or _MISSING.get(column.role)}
    if column.role != "sensitive":
        return {"missing": column.missing or "drop"} if column.is_numeric_qid else told
    protected = list(values_of(task, name).protected) or "every value found in the data"
    return {**told, "protected": protected, "C": str(bounds_of(task.job)[name])}


_MISSING = {"qid": "leaf", "class": "error", "sensitive": "error", "party": "error"}
"""Treatment of a row with a missing cell in a column of the role, unless the job says otherwise. Numbers: dropped."""


def side_inputs(task: Task, loaded: Loaded, party: Ints | None) -> SideInputs:
    """Return the data of side counts, by row of the table; empty without side counts in the job.

    party:  the party of each row, a place in the schema's parties; None where parties are not told apart.
    """
    if party is None and loaded.person is None:
        return {}
    from anonymize.criteria.persons import counted_persons
    from anonymize.criteria.remainder import own_counts

    criteria = criteria_of(requirement(task).entries(loaded.table.schema))
    of_parties = {} if party is None else own_counts(criteria, loaded.table, party)
    of_people = {} if loaded.person is None else counted_persons(criteria, loaded.person)
    return {**of_parties, **of_people}
