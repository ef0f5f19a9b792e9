"""Goal classification: InfoGain per lost step of anonymity ([TDR] 3.2, Score; semantics §10.12).

The anonymity A of an entry of the requirement is the size of its smallest group; A and scores move with T_g. A
divided group has a part that is no larger, so A only falls. So the smallest group ever counted for a candidate is the
smallest of all, and only new groups need counting. After a specialization of a column, they agree on this column,
too, and consist of the refined leaf partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from anonymize.candidates import Proposal
from anonymize.criteria.criterion import Bools
from anonymize.cut import Candidate
from anonymize.errors import PrivacyError
from anonymize.partition import GeneralizedTable, Refinement
from anonymize.qid_groups import Groups, Names, RecordSets, distinct_groups
from anonymize.score import FRACTION_BITS, impurity, information_gain
from anonymize.scores.score import Followed, MovingPool, Ranked, Terms, Wanted
from anonymize.table import Ints, Schema
from anonymize.tds import Step

SIZES = "group_counts"

UNIT_BITS = 2 * FRACTION_BITS
"""Binary places of the published score."""

MOST_DENOMINATOR = 1 << 62
"""Bound above all denominators, so that numerators are also words."""

NO_GROUP = np.iinfo(np.int64).max
"""Stands for the size of the smallest of no groups."""


@dataclass(frozen=True)
class Tdr:
    """Candidates with gain and children of an allowed size, greatest InfoGain / (lost anonymity + 1) first.

    The lost anonymity is the mean of A − min(A, smallest group after it) over the entries with the column, as in the
    paper.
    """

    needs_class: ClassVar[bool] = True
    no_candidate: ClassVar[str] = (
        "no specialization of them tells the classes apart, or some child has too few records"
    )
    follows_partitions: ClassVar[bool] = True
    wants_sums: ClassVar[bool] = True

    def merit(self, left: Ints, right: Ints) -> Ints:
        """Return the gain, less the part common to all grid points. Anonymity does not influence the split point."""
        return -(impurity(left) + impurity(right))

    def published(self, step: Step, class_counts: Ints) -> tuple[float, int]:
        """Return the score in bits per record, and the gain of InfoGain."""
        return step.score / (1 << UNIT_BITS), information_gain(step.candidate, class_counts)[0]

    def followed(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> FollowedGroups:
        check_products(terms, table.n_records)
        return FollowedGroups(schema, table, terms)

    def pool(self, followed: Followed) -> RankedByTdr:
        assert isinstance(followed, FollowedGroups)
        return RankedByTdr(followed)


def check_products(terms: Terms, n_records: int) -> None:
    """Refuse tables whose scores are not fractions of words. Raises PrivacyError."""
    most = max(1, len(terms.scopes))
    if most * n_records * (n_records + 1) >= MOST_DENOMINATOR:
        raise PrivacyError(
            "too-many-rows",
            f"the table has too many rows for `score: tdr` with {most} requirements",
            remedy="take another `score`, or fewer requirements",
        )


@dataclass(frozen=True)
class GroupsAfter:
    """Groups that decide the lost anonymity of a candidate.

    entries:  numbers of the requirement's entries with the candidate's column.
    groups:   groups of these entries.
    totals:   records of each group before the specialization: int64, shape (n_groups,).
    """

    entries: tuple[int, ...]
    groups: Groups
    totals: Ints = field(repr=False)

    def among(self, chosen: Bools) -> GroupsAfter:
        return GroupsAfter(self.entries, self.groups.among(chosen), self.totals[chosen])

    def sums(self, counts: Ints) -> Ints:
        """Count the records per (group, child but the last): int64; counts: per (refined entry, child)."""
        return self.groups.summed(counts[:, :-1])

    def smallest(self, sums: Ints) -> list[int]:
        """Return, by entry, the size of the smallest non-empty (group, child), from the result of :meth:`sums`."""
        sizes = np.column_stack([sums, self.totals - sums.sum(axis=1)])
        sizes[sizes == 0] = NO_GROUP
        of_group = sizes.min(axis=1)
        return [int(of_group[asked].min(initial=NO_GROUP)) for asked in self.groups.asked]


class FollowedGroups:
    """Anonymity of every entry, and the groups with opened sizes of every candidate.

    anonymity:  A by entry: the size of its smallest group in T_g.
    """

    def __init__(self, schema: Schema, table: GeneralizedTable, terms: Terms) -> None:
        self._schema = schema
        self.terms = terms
        self.table = table
        self.anonymity = [table.n_records] * len(terms.scopes)
        self._sets = RecordSets(table)
        self._told: dict[Candidate, Names] = {}
        self._asked: dict[Candidate, GroupsAfter] = {}
        self._column: int | None = None
        self._changed: Bools = np.zeros(table.n_partitions, dtype=bool)

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> int:
        """Account for a specialization; return its score, in units of 2^-UNIT_BITS bits, rounded down."""
        counts = np.append(refinement.table.count, 0)[refinement.targets]
        after = self._groups(refinement.candidate, refinement.entries)
        smallest = after.smallest(after.sums(counts))
        gain = self._gain(before.cell[refinement.entries], counts)
        numerator, denominator = self.fraction(after.entries, gain, int(counts.sum()), smallest)
        for entry, least in zip(after.entries, smallest, strict=True):
            self.anonymity[entry] = min(self.anonymity[entry], least)
        self._follow_partitions(before, refinement)
        return (numerator << (UNIT_BITS - FRACTION_BITS)) // denominator

    def _gain(self, cells: Ints, counts: Ints) -> int:
        """Return the gain of the node; counts: per (refined entry, child)."""
        by_class = np.zeros((self._schema.n_classes, counts.shape[1]), dtype=np.int64)
        np.add.at(by_class, self._schema.classes_of(cells), counts)
        return int(impurity(by_class.sum(axis=1)) - impurity(by_class.T).sum())

    def _follow_partitions(self, before: GeneralizedTable, refinement: Refinement) -> None:
        self._sets.follow(before, refinement)
        self.table = refinement.table
        self._column = refinement.candidate.column
        self._changed = np.arange(self.table.n_partitions) >= before.n_partitions
        self._changed[before.partition[refinement.entries]] = True

    def wants(self, candidates: Collection[Candidate]) -> Sequence[Wanted]:
        """Return the sizes of all groups of new candidates; for old candidates, of the groups from the last turn."""
        self._asked, wanted = {}, []
        for candidate in candidates:
            is_new = candidate not in self._told
            holding = self.table.nodes[candidate.column] == candidate.node.first
            asked = holding if is_new else holding & self._changed
            if is_new or asked.any():
                entries = np.flatnonzero(asked[self.table.partition])
                after = self._fresh(candidate, entries, None if is_new else self._column)
                if is_new or after.groups.n_groups:
                    self._asked[candidate] = after
                    wanted.append(Wanted(candidate, SIZES, entries, after.sums, after.totals))
        self._changed[:] = False
        return wanted

    def _fresh(self, candidate: Candidate, refined: Ints, within: int | None) -> GroupsAfter:
        """Return the candidate's groups from :meth:`_groups` without opened sizes."""
        after = self._groups(candidate, refined, within)
        names = after.groups.names_by_scope
        told = self._told.get(candidate, names[:0])
        self._told[candidate] = np.union1d(names, told)
        return after.among(~np.isin(names, told))

    def asked(self, candidate: Candidate) -> GroupsAfter:
        """Return the groups of the candidate's sums in this turn."""
        return self._asked[candidate]

    def _groups(self, candidate: Candidate, refined: Ints, within: int | None = None) -> GroupsAfter:
        """Return the groups that decide a specialization, from the current T_g.

        refined:  entries of T_g in the groups: all refined entries, or the entries refined in the last turn.
        within:   in the second case, the column of the last turn: groups must agree on it, too.
        """
        entries = self.terms.about(candidate.column)
        scopes = [self.terms.scopes[entry] for entry in entries]
        partition = self.table.partition[refined]
        groups = distinct_groups(self.table, candidate, partition, scopes, self._sets.names, within)
        return GroupsAfter(entries, groups, groups.summed(self.table.count[refined]))

    def fraction(
        self, entries: Sequence[int], gain: int, size: int, smallest: Sequence[int]
    ) -> tuple[int, int]:
        """Return gain·p and |T[v]|·(Δ + p): the score in 2^-FRACTION_BITS bits. smallest: by entry, after it."""
        p = max(1, len(entries))
        lost = sum(max(0, self.anonymity[e] - least) for e, least in zip(entries, smallest, strict=True))
        return gain * p, size * (lost + p)


@dataclass
class _Known:
    """Candidate, with its smallest counted groups by entry."""

    proposal: Proposal
    smallest: list[int]

    @property
    def candidate(self) -> Candidate:
        return self.proposal.candidate


class RankedByTdr(MovingPool[_Known]):
    """Pool of :class:`Tdr`."""

    def __init__(self, followed: FollowedGroups) -> None:
        super().__init__()
        self._followed = followed

    def add(self, proposal: Proposal) -> bool:
        candidate, terms = proposal.candidate, self._followed.terms
        if proposal.gain <= 0 or not terms.allow(candidate, proposal.counts.sum(axis=1)):
            return False
        entries = terms.about(candidate.column)
        self._known[candidate.order] = _Known(proposal, [NO_GROUP] * len(entries))
        return True

    def told(self, wanted: Wanted, sums: Ints) -> None:
        known = self._known[wanted.candidate.order]
        found = self._followed.asked(wanted.candidate).smallest(sums)
        known.smallest = [min(pair) for pair in zip(known.smallest, found, strict=True)]

    def best(self) -> Ranked | None:
        ranked = [self._ranked(known) for known in self._known.values()]
        return min(
            ranked, key=lambda r: (-Fraction(r.numerator, r.denominator), r.candidate.order), default=None
        )

    def _ranked(self, known: _Known) -> Ranked:
        proposal, followed = known.proposal, self._followed
        entries = followed.terms.about(proposal.candidate.column)
        fraction = followed.fraction(entries, proposal.gain, proposal.size, known.smallest)
        return Ranked(proposal.candidate, *fraction)
