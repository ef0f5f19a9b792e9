"""Verification of releases from Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coordinator.verify import verify_folder
from jointcut.api.errors import path_of, told
from jointcut.api.job import JobLike, job_of
from jointcut.api.result import Result
from jointcut.api.wording import in_python


@dataclass(frozen=True)
class Verified:
    """Findings of a verification. A release that fails raises Error instead.

    text:    the findings for people.
    fields:  the findings for programs, as `coordinator verify --format json` prints the findings.
    """

    text: str
    fields: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return self.text


@told()
def verify(
    folder: str | Path | Result,
    job: JobLike,
    release: str | None = None,
    *,
    config: str | Path | None = None,
) -> Verified:
    """Check a released table against its job. Raises Error if the table breaks the requirement.

    folder:   the folder of a release, or the CSV of its table.
    release:  the digest that a party keeps, or that a run printed: the folder must be the release.
    config:   configuration of a coordinator with the parties' certificates, to name who signed.

    >>> import jointcut as jc
    >>> import pandas as pd
    >>> job = jc.Job(
    ...     name="visits",
    ...     model=jc.Lkc(L=1, K=2),
    ...     goal="general",
    ...     columns={"sex": jc.Column(role="qid", suppress=["f", "m"])},
    ... )
    >>> result = jc.anonymize(pd.DataFrame({"sex": ["f", "m", "f", "m"]}), job)
    >>> jc.verify(result, job, result.digest).fields["agreed"]
    True
    """
    from party.owner.config import CoordinatorConfig, load_config
    from party.owner.signing import earlier_certificates, installed_certificates

    place = folder.folder if isinstance(folder, Result) else path_of(folder)
    settings = None if config is None else load_config(CoordinatorConfig, path_of(config))
    known = installed_certificates(settings) if settings else {}
    earlier = earlier_certificates(settings) if settings else {}
    checked = verify_folder(job_of(job).load(), place, release, known, earlier)
    return Verified(in_python(checked.text), checked.fields)
