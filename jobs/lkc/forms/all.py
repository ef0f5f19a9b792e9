"""The forms of LKC releases: one row for each, and the only place that knows all of them."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.file.job import Job
from jobs.lkc.forms.anatomy import ANATOMY, OF_EXACT
from jobs.lkc.forms.form import Form
from jobs.lkc.forms.rows import ROWS
from jobs.lkc.settings import IN_ROWS

FORMS: Mapping[tuple[str | None, str | None], Form] = {
    (None, None): ROWS,
    ("anatomy", None): ANATOMY,
    ("anatomy", "exact"): OF_EXACT,
}
"""By `release` and `quasi` of a job, where it says them."""


def form_of(job: Job) -> Form:
    """The row of an LKC job."""
    return FORMS[job.release, job.quasi]


def check(job: Job) -> None:
    """Refuse what there is no row for, or what that does not take. Raises ValueError."""
    if (job.release, job.quasi) not in FORMS:
        raise ValueError(
            "`quasi: exact` is for `release: anatomy`: raw quasi-identifiers in one row with sensitive values would "
            "be the table itself"
        )
    form = form_of(job)
    form.check(job)
    form.quasi.check(job)


def release_name(job: Job) -> str:
    """As policies list it."""
    return job.release or IN_ROWS
