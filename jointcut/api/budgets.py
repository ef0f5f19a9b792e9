"""Charges in the privacy ledger of a table, from Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from coordinator.owner_figures import charged_words
from jobs.errors import ConfigError
from jobs.options import Options
from jobs.owner.ledger import charges
from jointcut.api.errors import path_of, told
from jointcut.api.frames import Data, require_place, source_of_data
from jointcut.api.job import JobLike, job_of
from party.owner.budget import entry_lines


@dataclass(frozen=True)
class Budget:
    """Charges of all runs on a table: for the owner of the table, not for publication.

    charged:  the sum of epsilon.
    runs:     the number of charged runs.
    text:     the charges and the releases for people, as `coordinator budget` prints both.
    """

    charged: Fraction
    runs: int
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


@told()
def budget(job: JobLike, data: Data | None = None, *, ledger: str | Path | None = None) -> Budget:
    """Return the charges of one holder's table, by all jobs. Nothing is charged. Raises Error.

    data, ledger:  as of `anonymize`.

    >>> import jointcut as jc
    >>> import pandas as pd
    >>> column = jc.Column(role="qid", taxonomy={"any": ["f", "m"]})
    >>> job = jc.Job(name="visits", model=jc.Synthetic(epsilon=1), goal="general", columns={"sex": column})
    >>> table = pd.DataFrame({"sex": ["f", "m"]})
    >>> print(jc.budget(job, table, ledger="visits.privacy.sqlite"))
    privacy ledger of the table: epsilon 0 charged, by 0 runs
    """
    asked = job_of(job)
    if asked.settings.roster:
        raise ConfigError(
            "usage",
            "the job has several holders, and each holder has a ledger",
            remedy="each owner looks with `party budget`",
        )
    kept = None if ledger is None else path_of(ledger)
    with source_of_data(data, asked, kept) as source:
        require_place(source, "so no ledger is found")
        entries = Options(ledger=kept).own_ledger(source).entries()
    charged = charges(entries)
    lines = [*charged_words(charged), *(line for entry in entries for line in entry_lines(entry))]
    return Budget(sum(charged, Fraction(0)), len(charged), "\n".join(lines))
