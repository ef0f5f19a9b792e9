"""The modes: one row for each model, partition and level that can be computed, and the only place that names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from anonymize.blocks import counted_blocks
from anonymize.joint.disclosure import ALLOWED, MIX
from anonymize.joint.grids import check_grids
from anonymize.tds import Observer
from crypto.errors import LocalProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Table
from jobs.dp.asked import request
from jobs.job import Job
from jobs.later import later
from jobs.links import with_pair
from jobs.lkc.blocks import counted_apart
from jobs.task import NOTHING_BESIDES, Account, Besides, Mode, Model, Result, Task, Withheld

if TYPE_CHECKING:
    from anonymize.joint.dp.thesis import ranges
    from anonymize.joint.lkc import strict
    from jobs.dp import report as dp_report
    from jobs.dp import run as dp_run
    from jobs.dp import words as dp_words
    from jobs.lkc import costs as lkc_costs
    from jobs.lkc import files as lkc_files
    from jobs.lkc import mixed as lkc_mixed
    from jobs.lkc import parts as lkc_parts
    from jobs.lkc import report as lkc_report
    from jobs.lkc import run as lkc_run
    from jobs.lkc import words as lkc_words
    from jobs.lkc.kd import costs as kd_costs
    from jobs.lkc.kd import run as kd_run
    from jobs.sequences import run as sequences_run
    from jobs.sequences import words as sequences_words
    from jobs.synthetic import report as synthetic_report
    from jobs.synthetic import run as synthetic_run
    from jobs.synthetic import words as synthetic_words
else:
    ranges = later("anonymize.joint.dp.thesis.ranges")
    strict = later("anonymize.joint.lkc.strict")
    dp_report = later("jobs.dp.report")
    dp_run = later("jobs.dp.run")
    dp_words = later("jobs.dp.words")
    lkc_costs = later("jobs.lkc.costs")
    lkc_files = later("jobs.lkc.files")
    lkc_mixed = later("jobs.lkc.mixed")
    lkc_parts = later("jobs.lkc.parts")
    lkc_report = later("jobs.lkc.report")
    lkc_run = later("jobs.lkc.run")
    lkc_words = later("jobs.lkc.words")
    kd_costs = later("jobs.lkc.kd.costs")
    kd_run = later("jobs.lkc.kd.run")
    sequences_run = later("jobs.sequences.run")
    sequences_words = later("jobs.sequences.words")
    synthetic_report = later("jobs.synthetic.report")
    synthetic_run = later("jobs.synthetic.run")
    synthetic_words = later("jobs.synthetic.words")


def _no_protocol(task: Task, me: str, table: Table, rng: Rng, observer: Observer) -> Rounds[Result]:
    raise LocalProtocolError(f"{me} is a single holder, who runs no protocol")


def _check_schema(task: Task) -> None:
    task.schema.require_few_cells()


def _check_blocks(task: Task) -> None:
    """Cells are counted block by block, and numbered in the result."""
    for block in counted_blocks(task.schema, counted_apart(task.job)):
        block.schema.require_few_cells()
    task.schema.require_numbers()


def _check_blocks_and_grids(task: Task) -> None:
    _check_blocks(task)
    check_grids(task.schema)


def _check_strict(task: Task) -> None:
    _check_schema(task)
    strict.check_strict(lkc_run.request(task))


def _check_cells(task: Task) -> None:
    _check_schema(task)
    request(task).check(0)


def _check_grids_and_cells(task: Task) -> None:
    check_grids(task.schema)
    _check_cells(task)


def _check_ranges(task: Task) -> None:
    _check_grids_and_cells(task)
    ranges.check_ranges(request(task))


def _check_weights(task: Task) -> None:
    _check_cells(task)
    ranges.check_weights(request(task))


# In `score` and `integrate` a party waits for others that may still be testing: seconds would tell of the tests.
_TESTS = Withheld(frozenset({"validity"}), frozenset({"score", "integrate"}), links=True)
# How many rows each party has is told to the leader alone.
_MIX = Withheld(frozenset({MIX}))
# Seconds depend, however little, on the data.
_SECONDS = Withheld(seconds=None, links=True)
# Messages of these grow with the number of records, which only the parties know.
_RECORDS = Withheld(frozenset({"align", "count"}), None, links=True)
# Here they do in all that is computed, and widths of circuits are those of that number.
_ALL_BUT_SETUP = Withheld(frozenset({"align", "measure", "choose"}), None, links=True)

MODES: tuple[Mode, ...] = (
    Mode("lkc", "single", "", "lkc/single", _no_protocol, least=0),
    Mode("lkc", "single", "kd", "lkc/single/kd", _no_protocol, least=0),
    Mode("dp", "single", "circuit", "dp/single", _no_protocol, least=0, words=dp_words.of_single_holder),
    Mode("sequences", "single", "", "sequences/single", _no_protocol, least=0),
    Mode(
        "synthetic",
        "single",
        "",
        "dp/single/synthetic",
        _no_protocol,
        least=0,
        words=dp_words.of_single_holder,
        costs=synthetic_words.of_measuring,
    ),
    Mode(
        "synthetic",
        "horizontal",
        "",
        "dp/horizontal/synthetic",
        synthetic_run.run_horizontally,
        ALLOWED["dp/horizontal/synthetic"],
        shared=True,
        links=with_pair,
        check=synthetic_run.check,
        withheld=_SECONDS,
        words=dp_words.of_horizontal_runs,
        fields=synthetic_report.joint_run_fields,
        costs=synthetic_words.of_horizontal_runs,
    ),
    Mode(
        "synthetic",
        "vertical",
        "",
        "dp/vertical/synthetic",
        synthetic_run.run_vertically,
        ALLOWED["dp/vertical/synthetic"],
        check=synthetic_run.check,
        withheld=_ALL_BUT_SETUP,
        words=dp_words.of_vertical_runs,
        fields=synthetic_report.joint_run_fields,
        costs=synthetic_words.of_vertical_runs,
    ),
    Mode(
        "lkc",
        "horizontal",
        "sealed",
        "horizontal/sealed",
        lkc_run.run_sealed,
        ALLOWED["horizontal/sealed"],
        shared=True,
        links=with_pair,
        check=_check_blocks_and_grids,
        mixed=lkc_parts.rows_mixed,
        finish=lkc_mixed.mix,
        parts=lkc_parts.rows_sent,
        delivered=lkc_files.delivered,
        withheld=_MIX,
        words=lkc_words.of_sealed_sums,
        fields=lkc_report.joint_run_fields,
        costs=lkc_costs.of_groups,
    ),
    Mode(
        "lkc",
        "horizontal",
        "leader",
        "horizontal/leader",
        lkc_run.run_led,
        ALLOWED["horizontal/leader"],
        least=3,
        least_because="`disclosure: leader` needs three or more, because with two the sum minus one's own counts is "
        "the other's counts; say `disclosure: sealed`",
        paired=False,
        check=_check_schema,
        mixed=lkc_parts.rows_mixed,
        finish=lkc_mixed.mix,
        parts=lkc_parts.rows_sent,
        delivered=lkc_files.delivered,
        withheld=_MIX,
        words=lkc_words.of_led_sums,
        fields=lkc_report.joint_run_fields,
    ),
    Mode(
        "lkc",
        "horizontal",
        "strict",
        "horizontal/strict",
        lkc_run.run_strict,
        ALLOWED["horizontal/strict"],
        shared=True,
        links=with_pair,
        check=_check_strict,
        mixed=lkc_parts.rows_mixed,
        finish=lkc_mixed.mix,
        parts=lkc_parts.rows_sent,
        delivered=lkc_files.delivered,
        withheld=_MIX,
        words=lkc_words.of_strict_sums,
        fields=lkc_report.joint_run_fields,
    ),
    Mode(
        "lkc",
        "horizontal",
        "sealed/kd",
        "horizontal/sealed/kd",
        kd_run.run_sealed,
        ALLOWED["horizontal/sealed/kd"],
        shared=True,
        links=with_pair,
        check=_check_blocks,
        mixed=lkc_parts.rows_mixed,
        finish=lkc_mixed.mix,
        parts=lkc_parts.rows_sent,
        delivered=lkc_files.delivered,
        withheld=_MIX,
        words=lkc_words.of_sealed_groups,
        fields=lkc_report.joint_run_fields,
        costs=kd_costs.of_cuts,
    ),
    Mode(
        "lkc",
        "vertical",
        "sealed",
        "vertical/sealed",
        lkc_run.run_vertically,
        ALLOWED["vertical/sealed"],
        check=_check_schema,
        withheld=_TESTS,
        parts=lkc_parts.columns_sent,
        words=lkc_words.of_sealed_scores,
        fields=lkc_report.vertical_run_fields,
        costs=lkc_costs.of_tests,
    ),
    Mode(
        "lkc",
        "vertical",
        "leader",
        "vertical/leader",
        lkc_run.run_vertically_led,
        ALLOWED["vertical/leader"],
        paired=False,
        check=_check_schema,
        withheld=_TESTS,
        parts=lkc_parts.columns_sent,
        words=lkc_words.of_told_scores,
        fields=lkc_report.vertical_run_fields,
        costs=lkc_costs.of_tests,
    ),
    Mode(
        "sequences",
        "horizontal",
        "sealed",
        "sequences/horizontal/sealed",
        sequences_run.run_sealed,
        ALLOWED["sequences/horizontal/sealed"],
        shared=True,
        links=with_pair,
        check=sequences_run.check_schema,
        mixed=sequences_run.records_mixed,
        withheld=_MIX,
        words=sequences_words.of_sealed_runs,
        fields=sequences_words.joint_run_fields,
    ),
    Mode(
        "dp",
        "horizontal",
        "circuit",
        "dp/horizontal/circuit",
        dp_run.run_horizontally,
        ALLOWED["dp/horizontal/circuit"],
        shared=True,
        links=with_pair,
        check=_check_grids_and_cells,
        withheld=_SECONDS,
        words=dp_words.of_horizontal_runs,
        fields=dp_report.joint_run_fields,
    ),
    Mode(
        "dp",
        "horizontal",
        "thesis",
        "dp/horizontal/thesis",
        dp_run.run_horizontally_as_published,
        ALLOWED["dp/horizontal/thesis"],
        shared=True,
        check=_check_ranges,
        withheld=_SECONDS,
        words=dp_words.of_published_horizontal_runs,
        fields=dp_report.joint_run_fields,
    ),
    Mode(
        "dp",
        "vertical",
        "circuit",
        "dp/vertical/circuit",
        dp_run.run_vertically,
        ALLOWED["dp/vertical/circuit"],
        check=_check_cells,
        withheld=_RECORDS,
        words=dp_words.of_vertical_runs,
        fields=dp_report.joint_run_fields,
    ),
    Mode(
        "dp",
        "vertical",
        "thesis",
        "dp/vertical/thesis",
        dp_run.run_vertically_as_published,
        ALLOWED["dp/vertical/thesis"],
        check=_check_weights,
        withheld=_RECORDS,
        words=dp_words.of_vertical_runs,
        fields=dp_report.joint_run_fields,
    ),
)

_BY_COORDINATES: Mapping[tuple[str, str, str], Mode] = {(m.model, m.partition, m.level): m for m in MODES}


def mode_of(model: Model, job: Job) -> Mode:
    """The row of a job. Raises ValueError if its level is not one of its model and partition."""
    kind, level = (model.name, job.partition), model.level(job)
    mode = _BY_COORDINATES.get((*kind, level))
    if mode is None:
        levels = " or ".join(known for *of, known in _BY_COORDINATES if tuple(of) == kind)
        raise ValueError(f"a {job.partition} {model.name} job has no level `{level}`: say {levels}")
    return mode


def protocol_of(
    task: Task,
    me: str,
    table: Table,
    rng: Rng,
    observer: Observer,
    account: Account,
    besides: Besides = NOTHING_BESIDES,
) -> Rounds[Result]:
    """The generator that party ``me`` runs for a job, under its account."""

    def run(shown: Observer) -> Rounds[Result]:
        result: Result = yield from task.mode.run(task, me, table, rng, shown)
        result = yield from task.mode.finish(task, me, table, result, besides, rng, shown)
        return result

    return account.conducted(task, me, run, observer)
