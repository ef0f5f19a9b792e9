"""The confidence test of a vertical run: a candidate of one party against sensitive columns of others (DESIGN §7).

The *owner* has the candidate and so knows which child each record of T[v] goes to; a *holder* has a sensitive
column. Their leaf partitions, and which of them belong to a qid group, are public. Counts of (partition,
protected value, child) come out of a joint histogram as additive shares; those of qid groups are sums of
them, and p·n − q·count a share of which either side computes alone, since the owner knows n. What is left is
one sign bit for every group, value and child, inside a garbled circuit that tells the owner whether all are met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.cut import Candidate
from anonymize.group_plan import distinct_groups
from anonymize.joint import circuits
from anonymize.joint.engine import Engine, carried, low_bits, opened
from anonymize.joint.sessions import Session
from anonymize.partition import GeneralizedTable
from anonymize.privacy import Lkc, QidGroups
from anonymize.table import Codes, Ints, Schema
from anonymize.taxonomy import Node
from crypto.encoding import decode_bits, encode_bits
from crypto.joint_histogram import NO_LABEL, HistogramShape, joint_histogram_receive, joint_histogram_send
from crypto.ot.extension import OtReceiver, OtSender
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send
from crypto.two_party import CarriedWords, Value

Words = NDArray[np.uint64]

_SHARE = "confidence/share"


@dataclass(frozen=True)
class CheckPlan:
    """What everybody concerned knows of one check.

    records:   the records of T[v], cell by cell: int64, shape (n,).
    sizes:     how many of them each cell has: int64, shape (n_cells,). Cells are leaf partitions, toward
               insiders (leaf partition, class value) pairs.
    codings:   for every subset of columns the group of each cell, -1 where it is tested elsewhere.
    n_groups:  groups of all codings together; each is tested once.
    n_common:  common records of the run, a bound of every count.
    """

    records: Ints
    sizes: Ints
    codings: tuple[Ints, ...] = field(repr=False)
    n_groups: int
    n_children: int
    n_common: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Records, cells, groups, children: what a holder sees of a check."""
        return len(self.records), len(self.sizes), self.n_groups, self.n_children

    def by_group(self, by_cell: NDArray[np.generic]) -> NDArray[np.generic]:
        """Sum over the cells of every group: (n_cells, ...) to (n_groups, ...), modulo what the dtype holds."""
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
    requirement: Lkc,
) -> CheckPlan:
    """Plan the check of a node from public state alone.

    partition:  leaf partition of every common record. classes: their class values toward insiders, else None.
    members:    the records of the node.
    """
    number, node = place
    n_classes = 1 if classes is None else int(classes.max(initial=0)) + 1
    keys = partition[members] * n_classes + (0 if classes is None else classes[members])
    present, cell = np.unique(keys, return_inverse=True)
    owner = present // n_classes
    n_columns = min(requirement.max_known, table.nodes.shape[0])
    groups = QidGroups(table, Candidate(number, node, ()), owner)
    found, n_groups = distinct_groups(groups, owner, n_columns)
    codings = tuple(coding.group for coding in found)
    if classes is not None:
        codings += (n_groups + np.arange(len(present)),)
        n_groups += len(present)
    order = np.argsort(cell, kind="stable")
    return CheckPlan(members[order], np.bincount(cell), codings, n_groups, n_children, len(partition))


@dataclass(frozen=True)
class Protected:
    """The bounded sensitive columns of one holder.

    columns:  their numbers in the schema. values: how many protected values each has.
    bounds:   p and q of each column's C = p/q.
    """

    columns: tuple[int, ...]
    values: tuple[int, ...]
    bounds: tuple[tuple[int, int], ...]

    @staticmethod
    def of(schema: Schema, columns: tuple[int, ...]) -> Protected:
        described = [schema.sensitive[i] for i in columns]
        confidences = [column.confidence for column in described]
        return Protected(
            columns,
            tuple(len(column.protected) for column in described),
            tuple((c.numerator, c.denominator) for c in confidences),
        )

    def sign_bits(self, plan: CheckPlan) -> int:
        """Bits of p·n − q·count in two's complement."""
        return (max(max(bound) for bound in self.bounds) * plan.n_common).bit_length() + 1

    def histogram(self, i: int, plan: CheckPlan) -> HistogramShape:
        """Shape of the joint histogram for column number ``i`` of these."""
        bits = self.sign_bits(plan)
        return HistogramShape(len(plan.records), self.values[i], plan.n_children, share_bits=bits)


def ask(
    session: Session[OtReceiver], plan: CheckPlan, child: Codes, protected: Protected
) -> Rounds[CarriedWords]:
    """Test our candidate against a holder's columns; the result stays in the session as one bit.

    Functionality:  whether P(s | group) <= C for every qid group of the plan after the specialization, every
                    child and every protected value of the holder.
    Input:          owner: ``child``, of every record in ``plan.records``; holder, in :func:`answer`: its
                    ``labels``, of the same records. The plan and ``protected`` are public.
    Output:         one carried bit.
    Leakage:        the plan, in particular which node is tested, to the holder.
    Rounds:         that of a histogram for every column (2), side by side with the circuits' choices, and 1.
    Bytes:          those of the histograms; 32 * (sign_bits - 1) for every (group, value, child) and 32 for
                    each of the conjunctions' gates from the holder; 16 * sign_bits for each from the owner.
    Assumes:        semi-honest parties; private authenticated channel; as the histogram and the session.
    Source:         DESIGN §7.

    Raises RemoteProtocolError for a malformed message of the holder.
    """
    known = np.zeros((len(plan.sizes), plan.n_children), dtype=np.int64)
    np.add.at(known, (np.repeat(np.arange(len(plan.sizes)), plan.sizes), child), 1)
    sizes = plan.by_group(known).astype(np.uint64)
    differences = []
    for i, (p, q) in enumerate(protected.bounds):
        shape = protected.histogram(i, plan)
        share = yield from joint_histogram_receive(session.transfers, child, shape, plan.sizes)
        counts = plan.by_group(share).astype(np.uint64)
        differences.append(np.uint64(p) * sizes[:, np.newaxis, :] - np.uint64(q) * counts)
    return (yield from _all_met(session.engine, differences, protected.sign_bits(plan)))


def answer(
    session: Session[OtSender], plan: CheckPlan, labels: Sequence[Ints], protected: Protected, rng: Rng
) -> Rounds[CarriedWords]:
    """The holder's side of :func:`ask`.

    labels:  per column of ``protected`` the protected value of every record in ``plan.records``, NO_LABEL
             where it has none.
    """
    differences = []
    for i, (_, q) in enumerate(protected.bounds):
        shape = protected.histogram(i, plan)
        share = yield from joint_histogram_send(session.transfers, labels[i], shape, rng, groups=plan.sizes)
        differences.append(np.uint64(0) - np.uint64(q) * plan.by_group(share).astype(np.uint64))
    return (yield from _all_met(session.engine, differences, protected.sign_bits(plan)))


def _all_met(engine: Engine, differences: Sequence[Words], bits: int) -> Rounds[CarriedWords]:
    """Whether no shared difference is negative, as one carried bit."""
    flat = low_bits(np.concatenate([part.reshape(-1, 1) for part in differences]), bits)
    outputs = yield from engine.run(circuits.sign_circuit(bits), len(flat), {"difference": flat})
    return (yield from engine.conjoined([carried(outputs, "met")]))


def hear_verdict(engines: Sequence[Engine], met: Sequence[CarriedWords]) -> Rounds[bool]:
    """The owner's end of a check with one or more holders: whether all of them found their bounds met.

    The first holder's circuit joins the bits of all, so that the owner learns the conjunction only; the
    others' bits go into it as XOR shares.

    engines, met:  the sessions with the holders, and what :func:`ask` left in each.
    """
    shares = []
    for engine, bit in zip(engines[1:], met[1:], strict=True):
        shares.append(opened((yield from engine.run(circuits.split_circuit(), 1, {"met": bit})), "met"))
    outputs = yield from engines[0].run(circuits.verdict_circuit(len(shares)), 1, _verdict(met[0], shares))
    return opened(outputs, "met") == 1


def give_verdict(me: str, holders: Sequence[str], engine: Engine, met: CarriedWords) -> Rounds[None]:
    """A holder's end of a check; ``holders`` in the owner's order."""
    first, others = holders[0], holders[1:]
    if me != first:
        outputs = yield from engine.run(circuits.split_circuit(), 1, {"met": met})
        yield from send(_SHARE, {first: encode_bits(np.array([opened(outputs, "met")], dtype=np.uint8))})
        return
    shares = []
    for holder in others:
        payload = yield from receive(_SHARE, holder)
        shares.append(int(decode_bits(payload, 1, holder, _SHARE)[0]))
    yield from engine.run(circuits.verdict_circuit(len(shares)), 1, _verdict(met, shares))


def _verdict(met: CarriedWords, shares: Sequence[int]) -> dict[str, Value]:
    """Inputs of the last circuit: our bit, and our shares of the others."""
    return {"met": met} | ({"others": np.array([shares], dtype=np.uint64)} if shares else {})


def protected_labels(schema: Schema, protected: Protected, sensitive: Sequence[Codes | None]) -> list[Ints]:
    """Per protected column of ours the protected value of every record, NO_LABEL where it has none.

    sensitive:  our sensitive columns, by their number in the schema.
    """
    labels = []
    for i in protected.columns:
        column, values = schema.sensitive[i], sensitive[i]
        assert values is not None
        rank = np.full(len(column.domain), NO_LABEL, dtype=np.int64)
        rank[list(column.protected)] = np.arange(len(column.protected))
        labels.append(rank[values])
    return labels
