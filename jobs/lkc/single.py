"""Single holder's LKC release, from the table to the folder, with the result of top-down specialization."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from anonymize.lkc.metrics import measure_loss
from anonymize.lkc.requirement import criteria_of_size
from anonymize.lkc.single import anonymize_single
from anonymize.lkc.stopped import Stopped, blocked, why_stopped
from anonymize.release import Release, release_of_rows
from anonymize.tds import Observer, Outcome
from crypto.rng import SystemRng
from jobs.data.arrow import pa
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.lkc.forms.form import form_of
from jobs.lkc.method import method_of
from jobs.lkc.options.option import ByRow, options_of_job
from jobs.lkc.own_page import own_sections
from jobs.lkc.page import sections as sections_of
from jobs.lkc.report import build_report
from jobs.lkc.requirement import job_score, requirement, side_inputs
from jobs.lkc.stopping import advice, reasons
from jobs.lkc.tables import Written, table_single, write_table
from jobs.options import Noted, Options
from jobs.owner.listing import listed
from jobs.page.own import own_page, place_own_page
from jobs.page.parts import Section, facts, listing, sentence
from jobs.plain_columns import require_meant
from jobs.release.making import write_report
from jobs.stopwatch import Stopwatch
from jobs.task import Task


@dataclass(frozen=True)
class CutSingle:
    """Single holder's table, and its published cut."""

    task: Task
    loaded: Loaded = field(repr=False)
    outcome: Outcome = field(repr=False)

    @property
    def noted(self) -> Noted:
        entries = requirement(self.task).entries(self.loaded.table.schema)
        groups = blocked(self.loaded.table, self.outcome, entries)
        said = (self.task.job, self._stopped, groups)
        return Noted(reasons=reasons(*said), advice=tuple(advice(*said)))

    @cached_property
    def _stopped(self) -> dict[str, list[Stopped]]:
        table = self.loaded.table
        of_size = criteria_of_size(table.schema, requirement(self.task).entries(table.schema))
        return why_stopped(table, self.outcome, job_score(self.task.job), of_size)

    def counted(self) -> Release:
        return release_of_rows(self.loaded.table, self.outcome.cut)

    def losses(self, release: Release) -> Mapping[str, float]:
        return measure_loss(release, self.outcome.schema, self.outcome.cut)

    def again(self, source: Source) -> Iterator[pa.RecordBatch]:
        from jobs.publishing import generalized_rows

        return generalized_rows(source, self.task, self.outcome.schema, self.outcome.cut)

    def report(self, written: Written) -> dict[str, Any]:
        table = self.loaded.table
        histograms = [table.class_histogram(i) for i in range(len(table.schema.qid))]
        release, verified = written.release, written.verified
        return build_report(self.task, self.outcome, release, verified, histograms, stopped=self._stopped)


def made(task: Task, loaded: Loaded, shown: Observer) -> CutSingle:
    """Anonymize a single holder's table after pass 1. Raises PrivacyError."""
    return CutSingle(task, loaded, anonymized(task, loaded, shown))


def rows_kept(task: Task, loaded: Loaded) -> Loaded:
    """Return the part of a table left by the options of the job. Raises PrivacyError."""
    for option in options_of_job(task.job):
        loaded = option.kept(task, loaded, None)
    return loaded


def anonymized(task: Task, loaded: Loaded, shown: Observer) -> Outcome:
    """Anonymize a single holder's table after pass 1. Raises PrivacyError."""
    counted = side_inputs(task, loaded, loaded.party)
    return anonymize_single(loaded.table, requirement(task), job_score(task.job), shown, side_inputs=counted)


def release_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Anonymize a single holder's table into a new folder; list the release in the holder's privacy ledger."""
    return listed(task, source, out, options, partial(_release, task, source, watch, shown))


def _release(
    task: Task, source: Source, watch: Stopwatch, shown: Observer, folder: Path
) -> tuple[bytes, Noted]:
    """Make, verify and write table, report and digests; return the digest, and the notes for the holder alone."""
    with watch.phase("read"):
        read = form_of(task.job).load(source, task)
    loaded, options_of = read, options_of_job(task.job)
    for option in options_of:
        with watch.phase(option.phase):
            loaded = option.kept(task, loaded, shown)
    with watch.phase("anonymize"):
        made = method_of(task.job).single_result(task, loaded, shown)
    with watch.phase("release"):
        counted = made.counted()
        rows = table_single(task, counted, partial(made.again, source))
        require_meant(task.job.columns, rows)
    written = write_table(
        task, folder, rows, watch, SystemRng(), _by_row(counted, loaded), loaded.raw_of_records
    )
    with watch.phase("report"):
        # Values outside a domain are the owner's alone: no table shows their number, so nobody could check it.
        report = made.report(written) | {"data": replace(loaded.rows, outside={}).fields()}
        for option in options_of:
            report |= option.fields(task, read.table.n_records - loaded.table.n_records, written.release)
    undetermined = {option.phase for option in options_of}
    seconds = {phase: took for phase, took in watch.seconds.items() if phase not in undetermined}
    noted = made.noted
    noted = replace(
        noted, of_table=(*noted.of_table, *loaded.rows.mark_words(), *loaded.rows.outside_words())
    )
    sections = (*own_sections(task, read, written.release), *_stopped(noted))
    place_own_page(own_page(task, sections), folder)
    page = partial(sections_of, task, table=written.release)
    return write_report(task, folder, written.files, report, seconds, page), noted


def _stopped(noted: Noted) -> Iterator[Section]:
    """Yield the section on the ends of the columns, with the values and records that the page for all leaves out."""
    if noted.reasons:
        reasons_of = facts(noted.reasons.items(), head=("column", "reason"))
        yield Section("Why values are no finer", [reasons_of, listing(map(sentence, noted.advice))])


def _by_row(counted: Release, loaded: Loaded) -> ByRow:
    """Return the person and the party of each row, as far as the job tells people and parties apart."""
    return ByRow(counted, loaded.party, loaded.person)
