"""Comparison of requirements on a table, from Python. Nothing is released or charged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from coordinator.loss_picture import picture
from jobs.errors import ConfigError, printable
from jobs.file.fields import Confidence, Least
from jobs.file.key_errors import fault_of
from jobs.lkc.exploring import Explorer, Point, grid_of, require_explorable
from jobs.lkc.settings import Known
from jobs.lkc.suggesting import Suggested, explored
from jointcut.api.errors import told
from jointcut.api.frames import Data, source_of_data
from jointcut.api.job import JobLike, job_of
from jointcut.api.voices import listening
from jointcut.api.wording import all_in_python
from jointcut.api.written import written

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
Goal: TypeAlias = Literal["general", "classification"]
Share: TypeAlias = float | int | str | Fraction


@dataclass(frozen=True)
class Explored:
    """Figures of every requirement of a grid, from raw rows: for the owner of the table, not for publication.

    points:     a requirement each, with its figures, or with the reason that no table meets the requirement.
    suggested:  single changes of the job that free detail, if asked for.
    notes:      notes for the owner of the table alone.
    """

    name: str
    points: tuple[Point, ...] = field(repr=False)
    suggested: Suggested | None = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)

    @property
    def text(self) -> str:
        """Reasons of whole columns and suggested changes, best first; empty without suggestions.

        `each.change.changes` of `suggested.as_strong()` are arguments for `Job.with_`.
        """
        if self.suggested is None:
            return ""
        return "\n".join(all_in_python([*self.suggested.why, *self.suggested.lines]))

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each requirement, with the names of the report."""
        import pandas as pd

        return pd.DataFrame([point.fields for point in self.points])

    @cached_property
    def picture(self) -> str:
        """Picture as SVG text: the loss over K, a line for each L."""
        return picture(f"{self.name}: loss over K", self.points)

    def _repr_svg_(self) -> str:
        return self.picture


@told()
def explore(
    job: JobLike,
    data: Data | None = None,
    *,
    K: int | Sequence[int] = (),
    L: int | Literal["all"] | Sequence[int | Literal["all"]] = (),
    C: Share | Sequence[Share] = (),
    goal: Goal | Sequence[Goal] = (),
    suggest: bool = False,
    progress: bool | None = None,
) -> Explored:
    """Compare requirements by utility and risk on a table; release nothing. Raises Error.

    job:      an LKC job of one holder, or a horizontal job with a party's own table as `data`.
    data:     as of `anonymize`.
    K, L, C:  values to combine; default the job's value.
    goal:     goals to combine; default the job's goal.
    suggest:  also try single changes of the job.

    >>> import jointcut as jc
    >>> import pandas as pd
    >>> job = jc.Job(
    ...     name="visits",
    ...     model=jc.Lkc(L=1, K=2),
    ...     goal="general",
    ...     columns={"age": jc.Column(role="qid", numeric=jc.Numeric(min=0, max=100, step=25))},
    ... )
    >>> found = jc.explore(job, pd.DataFrame({"age": [20, 30, 60, 70]}), K=[2, 4])
    >>> found.to_frame()["ncp"].round(2).tolist()
    [0.33, 1.0]
    """
    asked = job_of(job)
    task = asked.load()
    require_explorable(task)
    if task.job.roster and data is None:
        raise ConfigError(
            "usage",
            "explore is for a single table: in a joint run every point would be a release, told to all parties",
            remedy="give a party's own table as `data`",
        )
    _refuse_empty(K=K, L=L, C=C, goal=goal)
    grid = grid_of(
        task.job,
        _read("K", Least, _several(K)),
        _read("L", Known, _several(L)),
        _read("C", Confidence, _several(C)),
        _read("goal", Goal, _several(goal)),
    )
    voice, notes = listening(progress)
    with source_of_data(data, asked) as source, voice.progress(task.job.name, 1) as shown:
        notes += source.notes()
        shown.phase("read")
        explorer = Explorer.of(str(asked), asked.load, source)
        shown.phase("anonymize")
        points, better = explored(explorer, grid, suggest=suggest, trial=shown.trial)
    rows = explorer.loaded.rows
    notes += rows.words() if rows.n_dropped else []
    return Explored(task.job.name, tuple(points), better, all_in_python(notes))


def _refuse_empty(**arguments: Any) -> None:
    """Refuse an empty list, which would compare nothing. Raises ConfigError."""
    for name, values in arguments.items():
        if isinstance(values, Sized) and not isinstance(values, str | tuple) and not len(values):
            raise ConfigError(
                "usage",
                f"{name}=[] compares nothing",
                remedy=f"list values, or leave `{name}` out for the job's",
            )


_MOST_SHOWN = 40
"""Most characters of a wrong value in an error."""


def _several(values: Any) -> list[Any]:
    is_list = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    return list(values) if is_list else [values]


def _read(name: str, form: Any, values: Sequence[Any]) -> list[Any]:
    """Return the different values of an argument as the job format reads the values. Raises ConfigError."""
    reads = TypeAdapter(form).validate_python
    found = []
    for value in values:
        try:
            found.append(reads(written(value)))
        except ValidationError as error:
            words = fault_of({**error.errors(include_url=False)[0], "loc": (name,)})
            shown = repr(value) if len(repr(value)) <= _MOST_SHOWN else f"{repr(value)[:_MOST_SHOWN]}..."
            raise ConfigError(
                "usage",
                f"{name}={printable(shown)}: {words}",
                remedy=f"give a value, or a list of values: {name}={_EXAMPLES[name]}",
            ) from None
    return list(dict.fromkeys(found))


_EXAMPLES = {"K": "[5, 10]", "L": "[2, 'all']", "C": "[0.5, 0.8]", "goal": "['general', 'classification']"}
