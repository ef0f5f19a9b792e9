"""What a joint job will take, as far as the job alone tells: for whoever is asked to approve it."""

from __future__ import annotations

from collections.abc import Iterator

from anonymize.candidates import n_children
from anonymize.joint.lkc.check_costs import CheckCosts, costs_of, of_group
from anonymize.joint.lkc.confidence import Protected
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.setting import asked_about, protected_of
from anonymize.lkc.requirement import criteria_of, most_records
from anonymize.table import QidColumn
from anonymize.taxonomy import Taxonomy
from jobs.data.counted import counted
from jobs.lkc.entries import entries_of
from jobs.lkc.requirement import requirement
from jobs.lkc.run import request
from jobs.task import Task

_RECORDS, _GROUPS = 100_000, 1_000
"""Of the example."""


def of_tests(task: Task) -> list[str]:
    """One sentence for each holder of sensitive columns that candidates of others are tested against."""
    asked = request(task)
    found = {holder: _most_children(task, asked, holder) for holder in task.job.roster}
    return [_words(task, asked, holder, n) for holder, n in found.items() if n]


def of_root(task: Task) -> list[str]:
    """One sentence on the root check of a sealed horizontal job that looks at several values together."""
    if not any(entry.looks_together for entry in entries_of(task.job)):
        return []
    entries = requirement(task).entries(task.schema)
    gates, sent = of_group(criteria_of(entries), most_records(entries))
    job = task.job
    return [
        f"to test the whole table {job.leader_name} and {job.deputy_name} evaluate about {gates:,} AND gates "
        f"({sent / 1e6:,.1f} MB between them)"
    ]


def of_groups(task: Task) -> list[str]:
    """That, and a bound for each group that is tested, which follow from the data."""
    said = of_root(task)
    if said:
        criteria = criteria_of(requirement(task).entries(task.schema))
        gates, sent = of_group(criteria, _RECORDS)
        size = 2 * sent * _GROUPS / 1e6
        said.append(
            f"a test of a specialization takes them, for each group and child, at most about {gates:,} AND gates "
            f"({sent:,} bytes) in a table of {_RECORDS:,} records: {size:,.0f} MB for {_GROUPS:,} groups with 2 "
            "children; fewer where public counts exclude that a child breaks what is asked"
        )
    return said


def _most_children(task: Task, asked: Request, holder: str) -> int:
    """Of a candidate that is tested against the holder's columns; 0 if none is."""
    columns, parties = task.holders, task.job.roster
    tested = (
        column
        for number, column in enumerate(asked.schema.qid)
        if holder in asked_about(columns, number, parties, asked)
    )
    return max((n for column in tested for n in _children(column)), default=0)


def _children(column: QidColumn) -> Iterator[int]:
    if not isinstance(column.values, Taxonomy):
        return iter([2])
    return (n_children(column, node) for node in column.values.nodes if column.children(node))


def _words(task: Task, asked: Request, holder: str, n: int) -> str:
    held = protected_of(task.holders, holder, asked)
    costs = costs_of(Protected.of(asked.requirement, asked.schema, held), _RECORDS, n)
    names = ", ".join(asked.schema.sensitive[number].name for number in held)
    return (
        f"a test of another party's candidate against {names} of {holder} "
        f"({counted(costs.labels, 'value or combination', 'values and combinations')} told apart) sends about "
        f"{costs.record_bytes:,} bytes for each record below it and, for each group and child, at most "
        f"{costs.gates:,} AND gates ({costs.gate_bytes:,} bytes): {_example(costs, n)}"
    )


def _example(costs: CheckCosts, n: int) -> str:
    size = costs.bytes_of(_RECORDS, _GROUPS, n) / 1e6
    return f"{size:,.0f} MB for {_RECORDS:,} records in {_GROUPS:,} groups with {n} children"
