"""What a job with `method: synthetic` will measure, in sentences, before any data is read."""

from __future__ import annotations

from collections.abc import Iterator

from anonymize.joint.synthetic.costs import Cost, Joined, Rows
from anonymize.joint.synthetic.run import cost_at_most
from anonymize.synthetic.foreseen import Foreseen
from anonymize.synthetic.loop import Synthesis
from anonymize.table import Schema
from anonymize.tds import Observer, run_alone
from jobs.data.counted import counted
from jobs.synthetic.asked import request, requirement, settings
from jobs.task import Task


def of_measuring(task: Task) -> list[str]:
    """Tables, counts and noise of every step, at most; and below how many rows no pair is measured."""
    asked = requirement(task)
    foreseen = Foreseen(asked.max_rows * max(1, len(task.job.roster)))
    run_alone(Synthesis(task.schema, asked, foreseen, Observer()).run())
    return [*_steps(foreseen, task.schema), *_without_pairs(task)]


def _steps(foreseen: Foreseen, schema: Schema) -> Iterator[str]:
    by = "by bin" if schema.class_name is None else "by bin and class"
    what = ("of each column by its values", f"of each column {by}", f"of each pair of columns {by}")
    for (marginals, rate), name in zip(foreseen.measured, what, strict=False):
        n, scale = sum(m.size for m in marginals), float(1 / rate)
        tables = counted(len(marginals), "table", "tables")
        yield (
            f"{tables} {name}: at most {counted(n, 'count', 'counts')}, each with noise of scale {_number(scale)} "
            f"(95 of 100 within ±{_number(3 * scale)})"
        )
    if foreseen.choice:
        n_pairs, n_edges = foreseen.choice
        yield f"at most {n_edges} of {counted(n_pairs, 'pair', 'pairs')} of columns chosen, by one noisy draw each"


def _without_pairs(task: Task) -> Iterator[str]:
    if settings(task.job).edges == "auto" and len(task.schema.qid) > 1:
        asked = requirement(task)
        rows = asked.rows_for_edges(task.schema)
        yield (
            f"`edges: auto` measures no pair of columns below {rows:,} rows (epsilon times rows below "
            f"{float(asked.of_a_record(asked.epsilon)) * rows:,.0f})"
        )


def of_horizontal_runs(task: Task) -> list[str]:
    """The same, and what it costs the parties."""
    asked = request(task)
    spread = Rows(len(task.job.roster), asked.requirement.max_rows)
    return [*of_measuring(task), _cost_words(cost_at_most(asked, spread), "whatever the number of rows")]


def of_vertical_runs(task: Task) -> list[str]:
    """The same for columns of two, with an example: bytes grow with the number of common records."""
    asked, holders = request(task), task.holders
    n_records = min(asked.requirement.max_rows, _RECORDS)
    cost = cost_at_most(asked, Joined(holders.qid_of(task.job.leader_name), n_records))
    return [
        *of_measuring(task),
        _cost_words(cost, f"for {n_records:,} common records, once these are matched"),
    ]


def _cost_words(cost: Cost, of_what: str) -> str:
    computing = cost.gates * _GATE_S
    here, far = (cost.seconds(latency, rate) + computing for latency, rate in (_LOOPBACK, _LINE))
    return (
        f"between the parties at most {cost.gates:,} AND gates, {cost.bytes / 1e6:,.0f} MB and {cost.rounds} rounds, "
        f"{of_what}: about {_number(here)} s on one machine, {_number(far)} s over lines of 100 Mbit/s and 20 ms"
    )


def _number(x: float) -> str:
    """Three digits, or all before the point."""
    return f"{x:.3g}" if x < 1000 else f"{x:,.0f}"


_RECORDS = 100_000
"""Of the example."""
_GATE_S = 3e-7
"""Garbled at one party and evaluated at another, on the machine of docs/performance.md."""
_LOOPBACK, _LINE = (0.0, 100e6), (0.02, 12.5e6)
"""Latency one way in seconds, bytes a second."""
