"""Confidence test of a vertical run: a candidate of a party against sensitive columns of others (semantics §7).

The *owner* has the candidate and so knows the child of each record of T[v]; a *holder* has a sensitive column. The
leaf partitions and their qid groups are public. A joint histogram gives counts of (partition, protected value, child)
as additive shares; counts of qid groups are sums of these. Each side computes its share of p·n − q·count alone, since
the owner knows n. A garbled circuit computes the sign bit for every group, value and child, and tells the owner if
all are met.

If a criterion concerns several columns of a holder together, the label of a record is its combination of values.
Every count, for example of records with neither of two values, is a sum of label counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import RECORDS, Bools, Criterion, Measure, inferences, tallies_of
from anonymize.criteria.views import CellView, linked_views_of
from anonymize.cut import Candidate
from anonymize.joint.conjunction import split_circuit, verdict_circuit
from anonymize.joint.engine import Engine, opened
from anonymize.joint.lkc.judging import judged, tests_of
from anonymize.joint.sessions import CircuitSession
from anonymize.lkc.requirement import Entry, Requirement, criteria_of
from anonymize.lkc.validity import in_first_order, whole_groups
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import distinct_groups
from anonymize.table import Codes, Ints, Schema
from anonymize.taxonomy import Node
from crypto.encoding import Words, decode_bits, encode_bits
from crypto.joint_histogram import NO_LABEL, HistogramShape, joint_histogram_receive, joint_histogram_send
from crypto.ot.extension import OtReceiver, OtSender
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send
from crypto.shares import Shares
from crypto.two_party import CarriedWords, Value

_SHARE = "confidence/share"


@dataclass(frozen=True)
class CheckPlan:
    """Plan of a check, as all concerned parties know it.

    records:   records of T[v], cell by cell: int64, shape (n,).
    sizes:     records of each cell: int64, shape (n_cells,). Cells are leaf partitions, toward insiders (leaf
               partition, class value) pairs.
    codings:   for every subset of columns the group of each cell, -1 if tested elsewhere.
    n_groups:  groups of all codings together; each is tested once.
    entries:   entries of the requirement with the node's column.
    asked:     True if an entry has a group: shape (n_entries, n_groups).
    n_common:  common records of the run, a bound on every count.
    """

    records: Ints = field(repr=False)
    sizes: Ints = field(repr=False)
    codings: tuple[Ints, ...] = field(repr=False)
    n_groups: int
    n_children: int
    entries: tuple[Entry, ...]
    asked: Bools = field(repr=False)
    n_common: int = field(repr=False)

    @property
    def size(self) -> tuple[int, int, int]:
        """Records, children, common records: the sizes that determine the shape of a histogram."""
        return len(self.records), self.n_children, self.n_common

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Records, cells, groups, children: a holder's view of a check."""
        return len(self.records), len(self.sizes), self.n_groups, self.n_children

    def by_group(self, by_cell: NDArray[np.generic]) -> NDArray[np.generic]:
        """Sum over the cells of every group: (n_cells, ...) to (n_groups, ...), modulo the range of the dtype."""
        total = np.zeros((self.n_groups, *by_cell.shape[1:]), dtype=by_cell.dtype)
        for coding in self.codings:
            cells = np.flatnonzero(coding >= 0)
            np.add.at(total, coding[cells], by_cell[cells])
        return total


def plan_check(
    table: GeneralizedTable,
    partition: Ints,
    classes: Codes | None,
    members: Ints,
    place: tuple[int, Node],
    n_children: int,
    entries: Sequence[Entry],
) -> CheckPlan:
    """Plan the check of a node from public state alone.

    partition:  leaf partition of every common record. classes: class values toward insiders, else None.
    members:    records of the node. entries: entries with the node's column.
    """
    number, node = place
    n_classes = 1 if classes is None else int(classes.max(initial=0)) + 1
    keys = partition[members] * n_classes + (0 if classes is None else classes[members])
    present, cell = np.unique(keys, return_inverse=True)
    owner = present // n_classes
    groups = distinct_groups(table, Candidate(number, node, ()), owner, [entry.scope for entry in entries])
    codings, asked = [coding.group for coding in groups.codings], [groups.asked]
    insiders = [entry.insider for entry in entries]
    for columns in dict.fromkeys(entry.scope.columns for entry in entries if entry.insider):
        cells = in_first_order(whole_groups(table, owner, columns) * n_classes + present % n_classes)
        having = [own and e.scope.columns == columns for own, e in zip(insiders, entries, strict=True)]
        codings.append(sum(part.shape[1] for part in asked) + cells)
        asked.append(np.repeat(np.array(having)[:, None], int(cells.max(initial=-1)) + 1, axis=1))
    of_groups = np.concatenate(asked, axis=1)
    order, n_groups = np.argsort(cell, kind="stable"), of_groups.shape[1]
    sizes = np.bincount(cell)
    return CheckPlan(
        members[order], sizes, tuple(codings), n_groups, n_children, tuple(entries), of_groups, len(partition)
    )


@dataclass(frozen=True)
class Protected:
    """Inference criteria on the sensitive columns of a holder.

    criteria:  criteria on columns of this holder alone.
    views:     views of the columns; columns of a common criterion are in the same view. Each view takes a joint
               histogram.
    """

    criteria: tuple[Criterion, ...]
    views: tuple[CellView, ...]

    @staticmethod
    def of(requirement: Requirement, schema: Schema, columns: tuple[int, ...]) -> Protected:
        """``columns``: the holder's."""
        criteria = tuple(
            criterion
            for criterion in inferences(criteria_of(requirement.entries(schema)))
            if {c for t in tallies_of([criterion]) for c in t.columns} <= set(columns)
        )
        return Protected(criteria, linked_views_of(schema, tallies_of(criteria)) if criteria else ())

    def bits(self, n_common: int) -> int:
        """Return the bits of the tested values of ``n_common`` records, in two's complement for negative values."""
        forms = (form for criterion in self.criteria for case in criterion.cases for form in case)
        return max(form.bits(n_common) for form in forms)

    def histogram(self, view: CellView, n_records: int, n_children: int, n_common: int) -> HistogramShape:
        """Return the shape of a view's joint histogram; ``n_records``: below the candidate's node."""
        return HistogramShape(n_records, view.n_labels, n_children, share_bits=self.bits(n_common))


def ask(
    session: CircuitSession[OtReceiver], plan: CheckPlan, child: Codes, protected: Protected
) -> Rounds[CarriedWords]:
    """Judge an own candidate against a holder's columns; the result stays in the session as a bit.

    Functionality:  conjunction over every qid group of the plan after the specialization, in every child, of all
                    criteria of its entries that bound inferences on the holder's columns: P(s | group) <= C for every
                    protected value, and so forth.
    Input:          owner: ``child``, of every record in ``plan.records``; holder, in :func:`answer`: its ``labels``,
                    of the same records. The plan and ``protected`` are public.
    Output:         one carried bit.
    Leakage:        the plan, in particular the tested node, to the holder.
    Rounds:         that of a histogram for every view (2), side by side with the circuits' choices, and 1.
    Bytes:          those of the histograms; 32 * (bits - 1) - 16 for every (group, case, child), in as many bits as
                    numbers of its group take (:func:`anonymize.joint.lkc.judging.tests_of`), and 32 for each of the
                    conjunctions' gates from the holder; 4 * bits for each from the owner. A case of C is a value; of
                    `ruled_out` a value and the excluded values.
    Assumes:        semi-honest parties; private authenticated channel; as the histogram and the session.
    Source:         semantics §7.

    Raises RemoteProtocolError for a malformed message of the holder.
    """
    known = np.zeros((len(plan.sizes), plan.n_children), dtype=np.int64)
    np.add.at(known, (np.repeat(np.arange(len(plan.sizes)), plan.sizes), child), 1)
    counts: dict[Measure, Words] = {RECORDS: plan.by_group(known).astype(np.uint64)}
    for view in protected.views:
        shape = protected.histogram(view, *plan.size)
        share = yield from joint_histogram_receive(session.transfers, child, shape, plan.sizes)
        counts |= _read(view, plan, share)
    return (yield from _all_met(session.engine, counts, protected, plan))


def answer(
    session: CircuitSession[OtSender], plan: CheckPlan, labels: Sequence[Ints], protected: Protected, rng: Rng
) -> Rounds[CarriedWords]:
    """Run the holder's side of :func:`ask`.

    labels:  per view of ``protected`` the label of every record in ``plan.records``, NO_LABEL for a record without a
             criterion's count, for example without a protected value.
    """
    counts: dict[Measure, Words] = {RECORDS: np.zeros((plan.n_groups, plan.n_children), dtype=np.uint64)}
    for view, of_record in zip(protected.views, labels, strict=True):
        shape = protected.histogram(view, *plan.size)
        share = yield from joint_histogram_send(session.transfers, of_record, shape, rng, groups=plan.sizes)
        counts |= _read(view, plan, share)
    return (yield from _all_met(session.engine, counts, protected, plan))


def _read(view: CellView, plan: CheckPlan, share: Shares) -> dict[Measure, Words]:
    """Return own shares of the tallies of every (group, child), from shares of (cell, label, child)."""
    by_label = np.moveaxis(plan.by_group(share).astype(np.uint64), 1, 0)
    return {t: words.astype(np.uint64) for t, words in view.read(by_label).items()}


def _all_met(
    engine: Engine, counts: Mapping[Measure, Words], protected: Protected, plan: CheckPlan
) -> Rounds[CarriedWords]:
    """Return a carried bit: 1 if all criteria are met in every (group, child) of their entries; all side by side."""
    stakes = {c: np.repeat(_asked(c, plan)[:, None], len(c.cases), axis=1) for c in protected.criteria}
    sizes = np.asarray(plan.by_group(plan.sizes), dtype=np.int64)
    tests = list(tests_of(protected.criteria, stakes, counts, sizes, plan.n_common))
    return (yield from engine.conjoined((yield from judged(engine, tests))))


def _asked(criterion: Criterion, plan: CheckPlan) -> Bools:
    """Return the groups that the criterion concerns: shape (n_groups,)."""
    asking = np.array([criterion in entry.criteria for entry in plan.entries])
    asked: Bools = np.logical_or.reduce(plan.asked[asking], axis=0)
    return asked


def hear_verdict(engines: Sequence[Engine], met: Sequence[CarriedWords]) -> Rounds[bool]:
    """Return True if all holders of a check found their bounds met. This is the owner's end.

    The first holder's circuit joins all bits, so the owner learns only the conjunction. The other bits enter the
    circuit as XOR shares.

    engines, met:  sessions with the holders, and the result of :func:`ask` in each.
    """
    shares = []
    for engine, bit in zip(engines[1:], met[1:], strict=True):
        shares.append(opened((yield from engine.run(split_circuit(), 1, {"met": bit})), "met"))
    outputs = yield from engines[0].run(verdict_circuit(len(shares)), 1, _verdict(met[0], shares))
    return opened(outputs, "met") == 1


def give_verdict(me: str, holders: Sequence[str], engine: Engine, met: CarriedWords) -> Rounds[None]:
    """Run a holder's end of a check; ``holders`` in the owner's order."""
    first, others = holders[0], holders[1:]
    if me != first:
        outputs = yield from engine.run(split_circuit(), 1, {"met": met})
        yield from send(_SHARE, {first: encode_bits(np.array([opened(outputs, "met")], dtype=np.uint8))})
        return
    shares = []
    for holder in others:
        payload = yield from receive(_SHARE, holder)
        shares.append(int(decode_bits(payload, 1, holder, _SHARE)[0]))
    yield from engine.run(verdict_circuit(len(shares)), 1, _verdict(met, shares))


def _verdict(met: CarriedWords, shares: Sequence[int]) -> dict[str, Value]:
    """Return the inputs of the last circuit: the own bit, and own shares of the other bits."""
    return {"met": met} | ({"others": np.array([shares], dtype=np.uint64)} if shares else {})


def protected_labels(schema: Schema, protected: Protected, sensitive: Sequence[Codes | None]) -> list[Ints]:
    """Return, per view of own columns, the label of every record, NO_LABEL where no criterion counts the record.

    sensitive:  own sensitive columns, by their number in the schema.
    """
    held = {i: schema.sensitive[i].tests(codes) for i, codes in enumerate(sensitive) if codes is not None}
    labels = [view.of_codes(held) for view in protected.views]
    return [
        np.where(label < view.n_labels, label, NO_LABEL)
        for view, label in zip(protected.views, labels, strict=True)
    ]
