"""Coders of a DP job. No value is an error, because an error would tell peers about the value.

In vertical jobs a value does not decide on a row's match either, because the peer would see the match. There, a
cell without a number counts in the lowest cell of the grid, and a cell without a class as the domain's first class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anonymize.grid import Grid
from anonymize.table import SetRule
from anonymize.taxonomy import MISSING
from jobs.data.coders import DROPPED, Categorical, Coder, Numeric, Sets, taxonomy_coder
from jobs.data.table_file import as_read
from jobs.task import Task


def coder(task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
    """Return the rule of a column. All domains are listed: no domain comes from the data."""
    column = task.job.columns[name]
    nowhere = 0 if task.partition.matched else DROPPED
    if column.role == "class":
        assert column.domain is not None
        return class_coder(column.domain, column.other, nowhere)
    values = task.taxonomies[name]
    if isinstance(values, Grid):
        return Numeric(values, clamp=True, missing=nowhere)
    items = taxonomy_coder(values, drop=column.missing == "drop")
    other = items.missing if column.other is None else items.index[as_read(column.other)]
    items, rule = replace(items, other=other), _set_rule(task, name)
    return items if rule is None else Sets(items, rule)


def _set_rule(task: Task, name: str) -> SetRule | None:
    (rule,) = (column.sets for column in task.schema.qid if column.name == name)
    return rule


def class_coder(domain: Sequence[str], named: str | None, nowhere: int) -> Categorical:
    """Return the rule of the class. ``named``: the job's `other`; ``nowhere``: the code if neither fits."""
    index = {as_read(value): i for i, value in enumerate(domain)}
    other = index.get(as_read(named or ""), nowhere)
    moved = nowhere != DROPPED and MISSING not in index
    return Categorical(index, index.get(MISSING, other if moved else DROPPED), other, moved)
