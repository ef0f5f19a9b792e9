"""Running jobs: alone, with daemons, or with all parties in this process. All end in the same folder."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anonymize.errors import DataError
from anonymize.metrics import published_class_counts, why_stopped
from anonymize.release import Release, release_of_rows
from anonymize.single import anonymize_alone
from anonymize.tds import Observer, Outcome, Step
from coordinator.conduct import Conducted, Conductor
from coordinator.dp_run import (
    NO_OPTIONS,
    DpOptions,
    Noted,
    dp_files,
    note_lkc_release,
    run_dp_alone,
    write_dp_files,
)
from coordinator.progress import Progress, progress_of
from coordinator.report import build_report, release_of_result, write_report
from crypto.local import run_local
from crypto.rng import SystemRng
from party import messages
from party.bundle import Bundle
from party.config import CoordinatorConfig
from party.console import note
from party.data import Source, generalized_rows, load, load_table
from party.dp_result import DpResult
from party.parts import part_of
from party.protocols import Result, protocol_of
from party.release_file import (
    TABLE,
    new_folder,
    read_csv,
    refuse_existing,
    require_verified,
    rows_to_csv,
    same_rows,
    write_csv,
)
from party.result import LkcResult, reveal_fields

log = logging.getLogger("coordinator")


@dataclass
class Stopwatch:
    """Seconds by phase."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, progress: Progress) -> Iterator[None]:
        progress.phase(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - start, 4)


class _Shown(Observer):
    """Shows the turns of a run on the progress line."""

    def __init__(self, progress: Progress, columns: tuple[str, ...]) -> None:
        self._progress = progress
        self._columns = columns

    def turn(self, iteration: int, step: Step) -> None:
        self._progress.turn(iteration, self._columns[step.candidate.column], step.applied)


def run_alone(bundle: Bundle, source: Source, out: Path, options: DpOptions = NO_OPTIONS) -> Path:
    """Anonymize one holder's table into a new folder."""
    if bundle.job.model.dp is not None:
        with progress_of(bundle.job.name, 1) as progress:
            shown = _Shown(progress, bundle.job.generalized)
            noted = run_dp_alone(bundle, source, out, options, shown)
        _show(noted)
        return out
    job = bundle.job
    watch = Stopwatch()
    with progress_of(job.name, 1) as progress, new_folder(out) as folder:
        with watch.phase("read", progress):
            table = load_table(source, bundle).table
        with watch.phase("anonymize", progress):
            shown = _Shown(progress, job.names("qid"))
            outcome = anonymize_alone(table, bundle.requirement, job.goal, shown)
        with watch.phase("release", progress):
            release = _single_release(bundle, source, outcome, release_of_rows(table, outcome.cut))
        _write(folder, release, bundle, watch, progress)
        histograms = [table.class_histogram(i) for i in range(len(table.schema.qid))]
        with watch.phase("report", progress):
            report = build_report(bundle, outcome, release, histograms, stopped=why_stopped(table, outcome))
        write_report(folder, report, watch.seconds)
        note_lkc_release(bundle, source, options.ledger)
    return out


def _write(folder: Path, release: Release, bundle: Bundle, watch: Stopwatch, progress: Progress) -> None:
    """Verify, then write."""
    with watch.phase("verify", progress):
        require_verified(release, bundle)
    with watch.phase("write", progress):
        write_csv(release, folder / TABLE)


def _show(noted: Noted) -> None:
    """Tell the owner of the table what the release does not say."""
    if noted.again:
        note(
            "the release of an earlier run, again: nothing was charged, and what changed in tables since is not "
            "in it. A new one needs a new name",
            again=True,
        )
    if noted.dropped:
        note(f"{noted.dropped} rows without a class or number were left out", dropped=noted.dropped)
    for name, rows in noted.outside.items():
        note(f"{rows} rows have a value outside the domain of {name}", column=name, outside=rows)


def _single_release(bundle: Bundle, source: Source, outcome: Outcome, counted: Release) -> Release:
    """The released table: from the codes, or from a second pass where plain columns are wanted.

    Raises DataError if the table changed between the two passes.
    """
    if not bundle.job.names("plain"):
        return counted.ordered(bundle.job.published).shuffled(SystemRng())
    release = read_csv(_rows(bundle, source, outcome), bundle.job.published)
    if not same_rows(release, counted, list(counted.columns)):
        raise DataError("data-unreadable", "the table changed while it was read", remedy="start again")
    return release.shuffled(SystemRng())


def _rows(bundle: Bundle, source: Source, outcome: Outcome) -> bytes:
    """Pass 2: one holder's generalized rows with their plain columns."""
    batches = generalized_rows(source, bundle, outcome.schema, outcome.cut)
    return rows_to_csv(batches, bundle.job.published)


def run_joint(
    bundle: Bundle,
    config: CoordinatorConfig,
    out: Path,
    options: DpOptions = NO_OPTIONS,
) -> Path:
    """Conduct a joint job with its parties' daemons, into a new folder."""
    refuse_existing(out)
    asyncio.run(conduct(bundle, config, out, options))
    return out


async def conduct(
    bundle: Bundle,
    config: CoordinatorConfig,
    out: Path,
    options: DpOptions = NO_OPTIONS,
) -> None:
    """Conduct a joint job with its parties' daemons, into a new folder."""
    job = bundle.job
    watch = Stopwatch()
    columns = job.generalized
    with progress_of(job.name, len(job.roster)) as progress:

        def on_progress(party: str, turn: messages.Progress) -> None:
            if party == job.leader_name and turn.column in columns:  # every party reports the same turns
                progress.turn(turn.iteration, turn.column, turn.applied)

        conductor = Conductor(bundle, config, on_progress)
        with watch.phase("connect", progress):
            await conductor.connect()
        async with conductor:
            with watch.phase("admit", progress):
                await conductor.submit()
            with watch.phase("run", progress):
                await conductor.compute()
            with watch.phase("collect", progress):
                conducted = await conductor.collect()
            with new_folder(out) as folder:
                await asyncio.to_thread(_write_joint, folder, bundle, conducted, watch, progress, options)
                if job.deliver == "all":
                    with watch.phase("deliver", progress):
                        await conductor.deliver(folder)
            if job.deliver == "all":
                for name in await conductor.commit():
                    log.warning("%s did not confirm that it kept the release", name, extra={"job": job.name})
    if isinstance(conducted.result, DpResult) and conducted.result.repeated:
        _show(Noted(again=True))


def _write_joint(
    folder: Path,
    bundle: Bundle,
    conducted: Conducted,
    watch: Stopwatch,
    progress: Progress,
    options: DpOptions,
) -> None:
    """Make, verify and write the table of a joint run, and its report."""
    if isinstance(conducted.result, DpResult):
        with watch.phase("release", progress):
            files = dp_files(bundle, conducted.result, conducted.parties)
            write_dp_files(folder, bundle, files, as_rows=options.as_records)
        return
    outcome, generalized = conducted.result.outcome, conducted.result.generalized
    with watch.phase("release", progress):
        release = release_of_result(bundle, outcome, generalized, conducted.parts)
    _write(folder, release, bundle, watch, progress)
    counts = [published_class_counts(generalized, outcome.schema, i) for i in range(len(outcome.schema.qid))]
    report = build_report(bundle, outcome, release, counts, reveals=conducted.reveals)
    write_report(folder, report, watch.seconds, conducted.parties)


def run_in_process(
    bundle: Bundle,
    sources: Mapping[str, Source],
    out: Path,
    options: DpOptions = NO_OPTIONS,
) -> Path:
    """Run all parties of a joint job in this process: the same protocol, without daemons, network and ledgers."""
    job = bundle.job
    watch = Stopwatch()
    with progress_of(job.name, len(job.roster)) as progress, new_folder(out) as folder:
        with watch.phase("read", progress):
            tables = {party: load(sources[party], bundle, party) for party in job.roster}
        with watch.phase("run", progress):
            shown = {job.leader_name: _Shown(progress, job.generalized)}
            results, _ = run_local(
                {
                    me: protocol_of(bundle, me, loaded, SystemRng(), shown.get(me, Observer()))
                    for me, loaded in tables.items()
                },
                record=False,
            )
        result = results[job.leader_name]
        parts = {
            party: part_of(name, bundle, party, sources[party], tables[party], results[party], SystemRng())
            for party in job.roster
            for name in job.parts_of(party) - {"result"}
        }
        conducted = _conducted(result, parts)
        _write_joint(folder, bundle, conducted, watch, progress, options)
    return out


def _conducted(result: Result, parts: dict[str, bytes]) -> Conducted:
    if isinstance(result, DpResult):
        return Conducted(result, parts, list(result.reveals), {})
    decoded = LkcResult(result.outcome, result.generalized)
    return Conducted(decoded, parts, reveal_fields(result.ledger), {})
