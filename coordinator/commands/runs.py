"""`coordinator run | simulate | demo`: running jobs, and showing releases."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice
from pathlib import Path

import click

from coordinator.arguments import (
    config_option,
    delimiter_option,
    dialect_of,
    ledger_option,
    source_of_job,
)
from coordinator.owner_figures import tell_dates
from coordinator.single import run_single
from jobs.data.dialect import SNIFFED, Dialect
from jobs.errors import ConfigError
from jobs.file.fields import positive
from jobs.file.job import require_confirmed
from jobs.options import NO_OPTIONS, NOTHING_NOTED, UNLIMITED, Noted, Options
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_PAGE
from jobs.release.sums import SUMS, release_digest
from jobs.task import Task
from party.cli.arguments import PATH
from party.cli.console import format_option, note, say, set_up_logs
from party.cli.job_file import JobFile, job_argument

out_option = click.option("--out", type=PATH, required=True, help="New folder for table and report.")
as_records_option = click.option(
    "--as-records", is_flag=True, help="DiffGen: write rows, too, as many as the counts say after Norm-Sub."
)

MOST_RETRIES = 100


@click.command()
@job_argument
@out_option
@as_records_option
@click.option(
    "--budget", help="DP, single holder: the largest sum of epsilon over all releases of the table."
)
@ledger_option
@config_option
@click.option(
    "--wait",
    metavar="TIME",
    help="Joint: wait so long in all for the owners' approvals and for other jobs to end, e.g. 30m.",
)
@click.option(
    "--retries",
    type=click.IntRange(0, MOST_RETRIES),
    default=0,
    help="Joint: try so often again after a failure with exit code 3. Each attempt is a run for the parties' limits.",
)
@format_option
def run(
    job: JobFile,
    out: Path,
    as_records: bool,
    budget: str | None,
    ledger: Path | None,
    config: Path,
    wait: str | None,
    retries: int,
) -> None:
    """Run a job: alone, or with the daemons of its parties."""
    set_up_logs("WARNING")
    task = job.load()
    _require_joint(task, wait, retries)
    require_confirmed(task.job)
    require_counts(task, as_records)
    options = Options(as_records, _budget(budget), ledger)
    require_epsilon(task, options)
    if (table := task.job.table) is not None:
        source = source_of_job(job, table)
        tell_dates(source, task)
        noted = run_single(task, source, out, options)
        _show_result(task, out, noted=noted)
    else:
        _run_joint(task, config, out, options, wait, retries)
        _show_result(task, out)


def _require_joint(task: Task, wait: str | None, retries: int) -> None:
    """Refuse patience for a job that waits for nobody. Raises ConfigError."""
    if task.job.table is not None and (wait or retries):
        raise ConfigError(
            "usage",
            "--wait and --retries are for joint jobs: nobody else is asked for a table of a single holder",
            remedy="leave --wait and --retries out",
        )


def _run_joint(task: Task, config: Path, out: Path, options: Options, wait: str | None, retries: int) -> None:
    from coordinator.patience import patience_of, run_patiently
    from party.cli.certificates import warn_of_certificates
    from party.owner.config import CoordinatorConfig, load_config

    settings = load_config(CoordinatorConfig, config)
    warn_of_certificates(settings)
    run_patiently(task, settings, out, patience_of(wait, retries), options)


def require_counts(task: Task, as_records: bool) -> None:
    """Refuse to write counts as rows if no counts are released. Raises ConfigError."""
    if as_records and task.model.name != "dp":
        raise ConfigError(
            "usage",
            "--as-records is for `method: diffgen`, which releases counts; the job releases rows",
            remedy="leave --as-records out",
        )


def require_epsilon(task: Task, options: Options) -> None:
    """Refuse a budget for a release that spends no epsilon. Raises ConfigError."""
    if options.budget != UNLIMITED and task.job.model.dp is None:
        raise ConfigError(
            "usage",
            "--budget is for jobs with differential privacy; the job spends no epsilon",
            remedy="leave --budget out",
        )


def _budget(text: str | None) -> Fraction:
    try:
        return UNLIMITED if text is None else positive(text)
    except ValueError as error:
        raise ConfigError("usage", f"--budget {text}: {error}") from error


@click.command()
@job_argument
@click.option("--data", "tables", multiple=True, metavar="NAME=FILE", help="A party's table; once per party.")
@out_option
@click.option("--in-process", is_flag=True, help="All parties in this process, without daemons and network.")
@delimiter_option
@as_records_option
@format_option
def simulate(
    job: JobFile,
    tables: tuple[str, ...],
    out: Path,
    in_process: bool,
    delimiter: str | None,
    as_records: bool,
) -> None:
    """Run a joint job with all parties on this machine.

    The parties are real daemons with throw-away certificates. Privacy ledgers are thrown away, too: a
    simulation of a DP job spends no privacy budget.
    """
    set_up_logs("WARNING")
    _simulate(job, tables, out, in_process, Options(as_records), dialect_of(delimiter))


def _simulate(
    job: JobFile,
    tables: tuple[str, ...],
    out: Path,
    in_process: bool,
    options: Options = NO_OPTIONS,
    dialect: Dialect = SNIFFED,
    rows: int = 0,
) -> None:
    from coordinator.run import run_in_process
    from coordinator.simulate import run_simulated, sources_of
    from party.compiling import compile_where_it_pays

    task = job.load()
    if not task.job.roster:
        raise ConfigError(
            "usage", "the job has a single holder", remedy="run the job: coordinator run JOB --out DIR"
        )
    require_confirmed(task.job)
    require_counts(task, options.as_records)
    given = {}
    for entry in tables:
        name, found, file = entry.partition("=")
        if not found or not file:
            raise ConfigError("usage", f"--data {entry}: write NAME=FILE")
        if name in given:
            raise ConfigError("usage", f"--data {name} is given twice")
        given[name] = Path(file)
    sources = sources_of(task, given, dialect)
    if in_process:
        compile_where_it_pays()
    (run_in_process if in_process else run_simulated)(task, sources, out, options)
    _show_result(task, out, rows)


@click.command()
@click.option("--out", type=PATH, help="New folder for table and report; default a new one under out/.")
@format_option
def demo(out: Path | None) -> None:
    """Let three hospitals on this machine make an anonymous table.

    The hospitals report surgeries to a blood transfusion service.
    """
    set_up_logs("WARNING")
    folder = _examples() / "transfusion"
    out = out or Path("out") / f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    hospitals = tuple(f"hospital-{x}={folder / f'hospital-{x}.csv'}" for x in "abc")
    job = folder / "demo.yaml"
    note(f"three hospitals, each with a daemon on this machine; the job is {job}", job=str(job))
    _simulate(JobFile(job), hospitals, out, in_process=False, rows=6)


def _examples() -> Path:
    """Return the folder of examples: inside an installed package, or beside the package in the sources."""
    import jointcut

    package = Path(jointcut.__file__).parent
    inside = package / "examples"
    return inside if inside.is_dir() else package.parent / "examples"


def _show_result(task: Task, out: Path, rows: int = 0, noted: Noted = NOTHING_NOTED) -> None:
    """Show the result and the place. noted: what the owner of a single holder's table is told, too."""
    report = json.loads((out / REPORT).read_text(encoding="utf-8"))
    release = release_digest((out / SUMS).read_bytes()).hex()
    shown = task.model.shown(task, report)
    lines = [
        f"{report['job']}: {shown.size}; verified",
        *shown.lines,
        *_cut_lines(report.get("cut", {}), noted.reasons),
        *noted.advice,
    ]
    lines += _first_rows(out / TABLE, rows) if rows else []
    made = [name for name in task.model.made if (out / name).exists()]
    lines += [*(f"table:  {out / name}" for name in made), f"page:   {out / PAGE}", f"report: {out / REPORT}"]
    lines += [f"owner:  {out / OWN_PAGE}, from raw rows: only for you"] if (out / OWN_PAGE).is_file() else []
    lines += [f"digest: {release}"]
    lines += [f"verified: {words}" for words in shown.verified]
    made_of = {"job_sha256": report["job_sha256"], "release": release, "verified": list(shown.verified)}
    fields = {"out": str(out), **shown.fields, **made_of}
    say(lines, fields, done=f"{out} is complete, with table and report")


def _first_rows(table: Path, most: int) -> list[str]:
    """Return the first rows of a table below its header, in columns."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(islice(csv.reader(file), most + 1))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return ["rows:", *(f"  {line}" for line in aligned)]


def _cut_lines(cut: dict[str, list[str]], reasons: Mapping[str, str]) -> list[str]:
    """Return the values of every column, if all groups share the values, with the reasons for no finer values."""
    lines = []
    for name, labels in cut.items():
        lines.append(f"  {name:16} {_cut_line(labels)}")
        lines += [f"  {'':16} no finer: {reasons[name]}"] if name in reasons else []
    return ["cut:", *lines] if lines else []


def _cut_line(labels: list[str], most: int = 8) -> str:
    shown = "  ".join(labels[:most])
    return shown if len(labels) <= most else f"{shown}  … ({len(labels)} values)"
