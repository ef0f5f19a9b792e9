"""Sentences for the console on what no reader of a released table can do: from the job alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from jobs.file.job import Job

_MOST_LISTED = 3
"""Largest number of protected values of a column in a sentence."""
_USUAL_K = 5
"""Smallest K that guides on the release of health data usually name."""


def promise(job: Job, who: str, never: list[str]) -> list[str]:
    """Return the sentence on a reader; return an empty list if the reader can do everything.

    The sentence is about readers outside the holders of a joint table: a holder can subtract its own rows.
    """
    reader = "reader outside the holders" if job.roster else "reader"
    return [f"no {reader} who knows {who} {', or '.join(never)}"] if never else []


def found(least: int) -> list[str]:
    """Say how few records nobody finds; nothing where K asks for nothing."""
    return [f"finds fewer than {least} matching records"] if least > 1 else []


def weakness(least: Iterable[int]) -> list[str]:
    """Say that a job asks for small groups, if it does. least: K of every requirement."""
    smallest = min((k for k in least if k > 1), default=1)
    if smallest >= _USUAL_K:
        return []
    chance = "for certain" if smallest == 1 else f"with a chance of up to 1 in {smallest}"
    return [
        f"K={smallest} is weak: a reader may find the record of a person {chance}; the literature mostly asks for "
        f"K={_USUAL_K} or more"
    ]


def inferred(job: Job, bounds: Mapping[str, Fraction]) -> list[str]:
    """Say, for each sensitive column with a C below 1, what nobody infers, and with which confidence."""
    below = {name: _share(bound) for name, bound in bounds.items() if bound < 1}
    return [f"infers {_protected(job, name)} with confidence above {c}" for name, c in below.items()]


def _protected(job: Job, name: str) -> str:
    values = job.columns[name].values
    if values is None:
        return f"any single value of {name}"
    if len(values) == 1:
        return f"{name} = {values[0]}"
    listed = f" ({', '.join(values)})" if len(values) <= _MOST_LISTED else ""
    return f"a single protected value of {name}{listed}"


def _share(bound: Fraction) -> str:
    """Print a bound exactly: in percent, or as a fraction where percents would be rounded."""
    return f"{float(100 * bound):g} %" if (1000 * bound).denominator == 1 else str(bound)
