"""Criteria in joint runs that tell counts block by block: what looks at several blocks is counted, and never told.

Such a tally is a side count of each holder's own rows, added up in shares; no total of it is public, so it is counted
of every part of a group. What is told of the others bounds it (:func:`tally_bounds`), and so says which cases a part
could break at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from anonymize.blocks import Blocks, CountedBlock, counted_blocks, is_public, is_told
from anonymize.criteria.criterion import (
    RECORDS,
    Beside,
    Bools,
    Criterion,
    Form,
    Measure,
    Rule,
    SideCount,
    SideData,
    Tally,
    sides_of,
    tallies_of,
)
from anonymize.criteria.ruled_out import tally_bounds
from anonymize.criteria.views import sensitive_codes
from anonymize.lkc.requirement import Entry, Requirement
from anonymize.table import CodedTable, Ints, Schema, tally


@dataclass(frozen=True)
class LinkedCount(SideCount):
    """What a tally counts that looks at columns of several blocks."""

    counted: Tally = RECORDS
    is_additive: ClassVar[bool] = True


@dataclass(frozen=True)
class Untold:
    """A criterion of tallies some of which nobody is told.

    untold:  these.
    """

    asked: Criterion
    untold: frozenset[Tally]
    search: ClassVar[None] = None

    @property
    def name(self) -> str:
        return self.asked.name

    @property
    def relief(self) -> tuple[str, ...]:
        return self.asked.relief

    @property
    def column(self) -> str | None:
        return self.asked.column

    @property
    def rule(self) -> Rule:
        return self.asked.rule

    @property
    def inference(self) -> bool:
        return self.asked.inference

    @cached_property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        return tuple(tuple(map(self._form, forms)) for forms in self.asked.cases)

    def _form(self, form: Form) -> Form:
        return Form(tuple((self._measure(measure), factor) for measure, factor in form.terms))

    def _measure(self, measure: Measure) -> Measure:
        return LinkedCount("linked", measure) if measure in self.untold else measure

    def at_stake(self, totals: Mapping[Tally, Ints], least: Ints | int = 1) -> Bools:
        """By what is told of the others."""
        known = {**dict.fromkeys(self.untold, np.zeros_like(totals[RECORDS])), **totals}
        return self.asked.at_stake(tally_bounds(known, self.untold), least)


def told_apart(criterion: Criterion, blocks: Sequence[CountedBlock]) -> Criterion:
    """A criterion of tallies where they are counted in the cells of blocks, as far as they can be."""
    if is_public(blocks, criterion):
        return criterion
    return Untold(criterion, frozenset(t for t in tallies_of([criterion]) if not is_told(blocks, t)))


@dataclass(frozen=True)
class ToldApart:
    """A requirement, of a table of which parties are told blocks."""

    asked: Requirement
    linked: Blocks

    def entries(self, schema: Schema) -> tuple[Entry, ...]:
        blocks = counted_blocks(schema, self.linked)
        return tuple(
            replace(entry, criteria=tuple(told_apart(criterion, blocks) for criterion in entry.criteria))
            for entry in self.asked.entries(schema)
        )


@dataclass(frozen=True)
class LinkedRows:
    """The rows of a table, of which a tally counts some: which is looked up when they are counted.

    weights: of every row; codes: per sensitive column its test value. Shape (n_rows,) each, the same arrays for all
    tallies: these can be thousands.
    """

    counted: Tally
    weights: Ints
    codes: Mapping[int, Ints]

    def __repr__(self) -> str:
        return "LinkedRows(<private>)"

    def count(self, rows: Ints, keys: Ints, n_keys: int) -> Ints:
        chosen = self.counted.among({column: self.codes[column][rows] for column in self.counted.columns})
        return tally(keys[chosen], self.weights[rows[chosen]], n_keys)


def linked_counts(criteria: Sequence[Criterion], table: CodedTable) -> Beside:
    """What one holder has to count what nobody is told."""
    codes = sensitive_codes(table.schema, table.cells)
    found: dict[SideCount, SideData] = {}
    for side in sides_of(criteria):
        if isinstance(side, LinkedCount):
            found[side] = LinkedRows(side.counted, table.weights, codes)
    return found
