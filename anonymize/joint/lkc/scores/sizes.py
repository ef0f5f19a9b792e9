"""Criteria on the size of a single child, for all options of new nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.criteria.clear import met_by_group
from anonymize.criteria.criterion import RECORDS, Bools, Criterion, Measure
from anonymize.joint.engine import Engine
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.judging import RuleTests
from anonymize.joint.lkc.scores.score import all_valid, joined
from anonymize.table import Ints
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords


class Sizes:
    """Criteria on the sizes of children; each option has those of its column."""

    def __init__(self, of_columns: Sequence[Sequence[Criterion]], columns: Sequence[int]) -> None:
        """Take the criteria of each column, and the column of each option."""
        self._of_columns = of_columns
        self._columns = np.array(columns, dtype=np.int64)

    def refused(self, most: int) -> Bools:
        """Return True for the sizes that the criteria of a column do not allow: shape (n_columns, most + 1)."""
        sizes: dict[Measure, Ints] = {RECORDS: np.arange(most + 1, dtype=np.int64)}
        found = np.zeros((len(self._of_columns), most + 1), dtype=bool)
        for column in np.unique(self._columns).tolist():
            for criterion in self._of_columns[column]:
                found[column] |= ~met_by_group(criterion, sizes)
        return found

    @property
    def columns(self) -> Ints:
        """Column of each option: shape (n_options,)."""
        return self._columns

    def tests(self, children: Sequence[Words], width: int) -> tuple[list[RuleTests], Ints]:
        """Return the tests of all children of every option, and the option of each test.

        children:  own shares of the class counts of the children of every option: shape (n_children, n_classes).
        """
        tests, owner = [], [np.zeros(0, dtype=np.int64)]
        for criterion, options in self._judged().items():
            sizes = [children[i].sum(axis=1, dtype=np.uint64) for i in options]
            owner.append(np.repeat(options, [len(of_children) for of_children in sizes]))
            words = np.concatenate(sizes).reshape(-1, 1)
            tests.append(RuleTests.of_rows(criterion.rule, width, words))
        return tests, np.concatenate(owner)

    def large(self, engine: Engine, met: Sequence[CarriedWords], owner: Ints) -> Rounds[CarriedWords]:
        """Return a carried bit for each option, 1 if all its children have an allowed size.

        met:  outcome of :meth:`tests`. ``owner``: option of each test.
        """
        ones = yield from all_valid(engine, len(self._columns))
        place = np.concatenate([np.arange(len(self._columns)), owner])
        in_order = joined([ones, *met]).take(np.argsort(place, kind="stable"))
        sizes = np.bincount(place).tolist()
        all_met = yield from engine.reduce(circuits.both_circuit(), {"met": in_order}, sizes)
        return all_met["met"]

    def _judged(self) -> dict[Criterion, list[int]]:
        """Return the options judged by each criterion."""
        found: dict[Criterion, list[int]] = {}
        for option, column in enumerate(self._columns.tolist()):
            for criterion in self._of_columns[column]:
                found.setdefault(criterion, []).append(option)
        return found
