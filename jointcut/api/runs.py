"""Runs of jobs from Python: alone, with daemons on this machine, and with the daemons of the parties."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from coordinator.commands.runs import require_counts, require_epsilon
from coordinator.single import AGAIN, run_single
from jobs.data.rows_read import RowsRead
from jobs.errors import ConfigError
from jobs.file.fields import positive
from jobs.file.job import require_confirmed
from jobs.options import UNLIMITED, Options
from jobs.reading import notes_on_dates
from jobs.release.checking import read_report
from jobs.release.csv import REPORT
from jobs.task import Task
from jointcut.api.errors import path_of, told
from jointcut.api.frames import Data, require_ledger, source_of_data, sources_of_data
from jointcut.api.job import Job, JobLike, job_of
from jointcut.api.result import Place, Result
from jointcut.api.voices import listening
from jointcut.api.wording import all_in_python, in_python

if TYPE_CHECKING:
    from party.owner.config import CoordinatorConfig

Epsilon: TypeAlias = int | float | str | Fraction


@told()
def anonymize(
    data: Data | None,
    job: JobLike,
    out: str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    budget: Epsilon | None = None,
    as_records: bool = False,
    progress: bool | None = None,
) -> Result:
    """Make a release of one holder's table. Raises Error.

    data:        a path, a DataFrame of pandas or polars, or an Arrow table; None: the table that the job names.
    job:         a :class:`Job`, the keys of a job file, a path, or a YAML text.
    out:         new folder of the release; default a temporary folder that lives as long as the result.
    ledger:      the privacy ledger of the table; default beside the table. A DP job on a table in memory needs it.
    budget:      DP: the largest sum of epsilon over all releases of the table.
    as_records:  DiffGen: write rows, too.
    progress:    draw the progress; default on a terminal and in a notebook.

    >>> import jointcut as jc
    >>> import pandas as pd
    >>> job = jc.Job(
    ...     name="visits",
    ...     model=jc.Lkc(L=1, K=2),
    ...     goal="general",
    ...     columns={"age": jc.Column(role="qid", numeric=jc.Numeric(min=0, max=100, step=50))},
    ... )
    >>> result = jc.anonymize(pd.DataFrame({"age": [20, 30, 60, 70]}), job)
    >>> sorted(result.table["age"])
    ['[0,50)', '[0,50)', '[50,100)', '[50,100)']
    """
    asked = job_of(job)
    task = _runnable(asked, as_records=as_records)
    if task.job.roster:
        raise ConfigError(
            "usage",
            "the job has several holders",
            remedy="call jointcut.simulate with all tables, or jointcut.Client(config).run",
        )
    kept = None if ledger is None else path_of(ledger)
    options = Options(as_records, _budget(budget), kept)
    require_epsilon(task, options)
    voice, notes = listening(progress)
    with Place(out) as place, source_of_data(data, asked, kept) as source:
        require_ledger(asked, source)
        notes += [*source.notes(), *notes_on_dates(source, task)]
        noted = run_single(task, source, place.folder, options, voice)
        if noted.again:
            warnings.warn(in_python(AGAIN), stacklevel=3)
        notes += [f"{name}: no finer: {reason}" for name, reason in noted.reasons.items()]
        notes += noted.advice
        notes += _left_out(place.folder)
        return place.bind(Result(task, place.folder, all_in_python(notes)))


@told()
def simulate(
    job: JobLike,
    tables: Mapping[str, Data],
    out: str | Path | None = None,
    *,
    in_process: bool = False,
    as_records: bool = False,
    progress: bool | None = None,
) -> Result:
    """Run a joint job with all parties on this machine. Raises Error.

    The parties are real daemons with throw-away certificates. Privacy ledgers are thrown away, too.

    tables:      a table for each party, as `data` of :func:`anonymize`.
    in_process:  all parties in this process, without daemons and network.

    >>> import jointcut as jc
    >>> import pandas as pd
    >>> job = jc.Job(
    ...     name="visits",
    ...     partition="horizontal",
    ...     parties={"north": jc.Party(), "south": jc.Party()},
    ...     model=jc.Lkc(L=1, K=2),
    ...     goal="general",
    ...     columns={"sex": jc.Column(role="qid", taxonomy={"any": ["f", "m"]})},
    ... )
    >>> tables = {"north": pd.DataFrame({"sex": ["f", "m"]}), "south": pd.DataFrame({"sex": ["m", "f"]})}
    >>> sorted(jc.simulate(job, tables, in_process=True).table["sex"])
    ['f', 'f', 'm', 'm']
    """
    from coordinator.run import run_in_process
    from coordinator.simulate import run_simulated
    from party.compiling import compile_where_it_pays

    asked = job_of(job)
    task = _runnable(asked, as_records=as_records)
    voice, notes = listening(progress)
    if in_process:
        compile_where_it_pays()
    run = run_in_process if in_process else run_simulated
    with Place(out) as place, sources_of_data(tables, asked) as sources:
        notes += [f"{party}: {words}" for party, source in sources.items() for words in source.notes()]
        run(task, sources, place.folder, Options(as_records), voice)
        return place.bind(Result(task, place.folder, all_in_python(notes)))


class Client:
    """Coordinator of joint jobs with the running daemons of their parties."""

    @told()
    def __init__(self, config: str | Path | CoordinatorConfig = "coordinator.yaml") -> None:
        """Read the configuration of a coordinator, as `coordinator init` makes it. Raises Error."""
        from party.owner.config import CoordinatorConfig, load_config

        if not isinstance(config, CoordinatorConfig):
            path = path_of(config)
            if not path.exists():
                raise ConfigError(
                    "file-missing",
                    f"there is no configuration {path}",
                    remedy="give the path of the coordinator's configuration, which `coordinator init` makes: "
                    "jointcut.Client('FOLDER/coordinator.yaml')",
                )
            config = load_config(CoordinatorConfig, path)
        self._config = config

    @told()
    def run(
        self,
        job: JobLike,
        out: str | Path | None = None,
        *,
        as_records: bool = False,
        wait: str | None = None,
        retries: int = 0,
        progress: bool | None = None,
    ) -> Result:
        """Run a joint job with the daemons of its parties. Raises Error.

        out:      new folder of the release; default a temporary folder that lives as long as the result.
        wait:     time to wait in all for the owners' approvals and for other jobs to end, such as `30m`.
        retries:  further attempts after a failure with exit code 3; each attempt is a run for the parties' limits.
        """
        from coordinator.patience import patience_of, run_patiently
        from party.owner.config import certificate_warnings

        task = _runnable(job_of(job), as_records=as_records)
        if not task.job.roster:
            raise ConfigError("usage", "the job has a single holder", remedy="call jointcut.anonymize")
        voice, notes = listening(progress)
        warned = certificate_warnings(self._config)
        notes += [f"warning: the certificate of {name} {words}" for name, words in warned.items()]
        with Place(out) as place:
            patience = patience_of(wait, retries)
            run_patiently(task, self._config, place.folder, patience, Options(as_records), voice)
            return place.bind(Result(task, place.folder, all_in_python(notes)))

    @told()
    def propose(self, job: JobLike) -> dict[str, str]:
        """Hand a joint job to its parties for their decisions; return the state of the job at each party.

        The states: `waiting`, `approved` or `denied`. Raises Error if a party gives no decision.
        """
        return self._asked(job, ask=False)

    @told()
    def status(self, job: JobLike) -> dict[str, str]:
        """Return the state of a proposed job at each party; `unknown` where it was not proposed.

        Raises Error if a party gives no decision.
        """
        return self._asked(job, ask=True)

    def _asked(self, job: JobLike, *, ask: bool) -> dict[str, str]:
        from coordinator.completing import completed
        from coordinator.proposing import propose

        task = job_of(job).load()
        require_confirmed(task.job)
        if not task.job.roster:
            raise ConfigError(
                "usage",
                "the job has a single holder, who needs nobody's approval",
                remedy="call jointcut.anonymize",
            )
        answers = completed(propose(task, self._config, ask=ask))
        answers.require_decided()
        return answers.states()

    def __repr__(self) -> str:
        return f"Client(name={self._config.name!r})"


def _left_out(folder: Path) -> list[str]:
    """Say which rows a release lacks, if its report counts the rows of the table."""
    report = read_report((folder / REPORT).read_bytes())
    rows = RowsRead.of_report(report["data"]) if "data" in report else None
    return rows.words() if rows is not None and rows.n_dropped else []


def _runnable(job: Job, *, as_records: bool) -> Task:
    """Return the task of a job that may run. Raises ConfigError or SchemaError."""
    task = job.load()
    require_confirmed(task.job)
    require_counts(task, as_records)
    return task


def _budget(budget: Epsilon | None) -> Fraction:
    try:
        return UNLIMITED if budget is None else positive(budget)
    except ValueError as error:
        raise ConfigError("usage", f"budget={budget}: {error}") from error
