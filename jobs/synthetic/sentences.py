"""Forecast of the measures of a job with `method: synthetic`, in sentences, before any data is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from anonymize.joint.synthetic.costs import Cost, Joined, Rows
from anonymize.joint.synthetic.run import cost_at_most
from anonymize.synthetic.foreseen import Foreseen
from anonymize.synthetic.loop import Synthesis
from anonymize.synthetic.opened import rows_above_noise
from anonymize.table import Schema
from anonymize.tds import Observer, run_single
from jobs.data.counted import counted
from jobs.dp.report import half_width
from jobs.synthetic.requirement import request, requirement, settings
from jobs.task import Task


def of_measuring(task: Task) -> list[str]:
    """Return the largest numbers of tables, counts and noise of every step; and the fewest rows for a pair."""
    asked = requirement(task)
    foreseen = Foreseen(asked.max_rows * max(1, len(task.job.roster)))
    run_single(Synthesis(task.schema, asked, foreseen, Observer()).run())
    clear = _rows_above_noise(foreseen)
    return [*_steps(foreseen, task.schema), *_without_pairs(task, clear), _mostly_noise(foreseen, clear)]


def _steps(foreseen: Foreseen, schema: Schema) -> Iterator[str]:
    by = "by bin" if schema.class_name is None else "by bin and class"
    what = ("of each column by its values", f"of each column {by}", f"of each pair of columns {by}")
    for (marginals, rate), name in zip(foreseen.measured, what, strict=False):
        n, scale = sum(m.size for m in marginals), float(1 / rate)
        tables = counted(len(marginals), "table", "tables")
        yield (
            f"{tables} {name}: at most {counted(n, 'count', 'counts')}, each with noise of scale {_number(scale)} "
            f"(95 of 100 within ±{half_width(float(rate))})"
        )
    if foreseen.choice:
        n_pairs, n_edges = foreseen.choice
        yield f"at most {n_edges} of {counted(n_pairs, 'pair', 'pairs')} of columns chosen, by a noisy draw each"


def _without_pairs(task: Task, clear: int) -> Iterator[str]:
    """Yield the sentence on pairs. clear: rows from which the counts of columns are larger than the noise."""
    if settings(task.job).edges == "auto" and len(task.schema.qid) > 1:
        asked = requirement(task)
        rows = asked.rows_for_edges(task.schema)
        early = "; measuring begins among counts that are mostly noise (below)" if rows < clear else ""
        yield (
            f"`edges: auto` measures no pair of columns below about {rows:,} rows (epsilon times rows below "
            f"{float(asked.of_a_record(asked.epsilon)) * rows:,.0f}; by the noisy number of rows){early}"
        )


@dataclass(frozen=True)
class Expected:
    """Largest work and traffic of a joint run, and the usual duration in seconds.

    here_s, line_s:  on a single machine, and over lines of the given Mbit/s and ms a round trip; without reading,
                     alignment, drawing and checking. Within a factor of 2 on the machine of benchmarks/RESULTS.md
                     (benchmarks/bench_synthetic_jobs.py).
    """

    cost: Cost
    here_s: float
    line_s: float


def expected(task: Task, n_records: int) -> Expected:
    """Return the forecast of a run. n_records: common records, where columns are spread."""
    asked, job = request(task), task.job
    if job.partition == "vertical":
        cost = cost_at_most(asked, Joined(task.holders.qid_of(job.leader_name), n_records))
    else:
        cost = cost_at_most(asked, Rows(len(job.roster), asked.requirement.max_rows))
    usual = replace(cost, bytes=round(_USUAL * cost.bytes))
    here, line = (_START_S + usual.seconds(*link) for link in (_LOOPBACK, _LINE))
    return Expected(cost, here, line)


def _rows_above_noise(foreseen: Foreseen) -> int:
    """Return the fewest rows at which no table by value, the basis of all else, has more noise than records."""
    marginals, rate = foreseen.measured[0]
    return max(rows_above_noise(marginal, rate) for marginal in marginals)


def _mostly_noise(foreseen: Foreseen, clear: int) -> str:
    """Return the number of rows below which a table has more noise than records. clear: the number."""
    warning = "warning: " if foreseen.most_records < clear else ""
    return (
        f"{warning}below {clear:,} rows the counts of a column by its values are on average smaller than the noise"
        + (
            ", and max_rows allows no more: publish fewer columns or values, or raise epsilon"
            if warning
            else ": first of the column with most values"
        )
    )


def of_horizontal_runs(task: Task) -> list[str]:
    """Return the sentences on horizontal runs, with the cost for the parties."""
    return [*of_measuring(task), _cost_words(expected(task, 0), "whatever the number of rows")]


def of_vertical_runs(task: Task) -> list[str]:
    """Return the sentences on vertical runs, with an example: bytes grow with the number of common records."""
    n_records = min(requirement(task).max_rows, _RECORDS)
    words = f"for {n_records:,} common records, after matching"
    return [*of_measuring(task), _cost_words(expected(task, n_records), words)]


def _cost_words(expected: Expected, of_what: str) -> str:
    cost = expected.cost
    return (
        f"between the parties at most {cost.gates:,} AND gates, {cost.bytes / 1e6:,.0f} MB and {cost.rounds} "
        f"rounds, {of_what}; as a rule about {_number(expected.here_s, 2)} s on a single machine and "
        f"{_number(expected.line_s, 2)} s over lines of {MBIT_S} Mbit/s and {ROUND_TRIP_MS} ms a round trip, "
        "beside reading tables and drawing rows"
    )


def _number(x: float, digits: int = 3) -> str:
    """Return a number with the given digits, or with all digits before the point."""
    return f"{x:.{digits}g}" if x < 10**digits else f"{x:,.0f}"


_RECORDS = 100_000
"""Number of records of the example."""
_USUAL = 0.7
"""Usual share of a run's largest traffic: bins merge. Adult's rows take 0.53, columns 0.72, 50 columns 0.74."""
_START_S = 0.2
ROUND_TRIP_MS, MBIT_S = 20, 100
"""Properties of the assumed lines: there and back, and each way."""
_LOOPBACK, _LINE = (0.0, 120e6), (ROUND_TRIP_MS / 2000, MBIT_S * 1e6 / 8)
"""Latency one way in seconds, bytes a second. On a single machine, parties wait for garbling and counting."""
