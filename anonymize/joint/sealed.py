"""`disclosure: sealed`: horizontal LKC in which no count finer than the published table is ever opened (DESIGN §6).

Every party's counts go as additive shares to the compute pair, leader and deputy, who evaluate circuits for
all. Scores stay shared between iterations; what is opened is the candidate taken with its split point, one
validity bit, and the counts of leaf partitions just refined. Two or more parties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymize.candidates import GroupSizes
from anonymize.cut import Candidate, Cut
from anonymize.errors import PrivacyError, SchemaError
from anonymize.group_plan import GroupPlan
from anonymize.joint import circuits
from anonymize.joint.circuits import widths_for
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.engine import Engine, carried, low_bits, opened
from anonymize.joint.horizontal import JointOutcome, Profiled, Request, Roster, anonymize_horizontally
from anonymize.joint.messages import (
    checked_counts,
    decode_bit,
    decode_candidate,
    encode_bit,
    encode_candidate,
)
from anonymize.joint.pair import Pair, open_pair
from anonymize.joint.sealed_pool import Pool
from anonymize.privacy import most_records, root_refused, sensitive_view
from anonymize.table import MAX_RECORDS, CodedTable, Ints, Schema
from anonymize.tds import Observer
from crypto.encoding import as_words
from crypto.errors import RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import dtype, open_vector, share_vector, width_for
from crypto.two_party import CarriedWords

Words = NDArray[np.uint64]

_CELL_BITS = width_for(MAX_RECORDS)
_SKIP_BYTES = 4


def anonymize_sealed(
    roster: Roster, table: CodedTable, request: Request, rng: Rng, *, observer: Observer | None = None
) -> Rounds[JointOutcome]:
    """Anonymize the union of the parties' tables; nothing finer than the result is opened.

    Functionality:  the LKC table of the union as ``anonymize.single.anonymize_alone`` makes it, to every
                    party in counted form.
    Input, each:    ``table``; request and roster are public and equal for all.
    Output, each:   the same :class:`JointOutcome`.
    Leakage:        to all: root check bit; counts of the root; per iteration the candidate taken with its
                    split point, whether it is valid, and the counts of the leaf partitions refined. Finer than
                    the result are order and split points of discarded candidates, and which nodes of the cut
                    are no candidates (classification: no specialization of them has gain; general: intervals
                    without a two-sided grid point). Sizes of circuits follow from these. Leader and deputy
                    together could open everything.
    Rounds:         at most 16, 14 more for every candidate applied, 8 for every one discarded, 2 for every
                    interval passed over (goal general); with two parties 12, 10, 6, 2. A batch of more chunks
                    of instances than may be under way at once (crypto.two_party: ``LOOKAHEAD``, less for many
                    inputs) takes 2 more for every further so many of them, as wide grids with many classes
                    do; an opening of more than 1 MiB takes 1 more for every further MiB.
    Bytes:          between the pair 4,144 once; for every batch of circuits 16, 32 for every AND gate, 16 for
                    every bit of a shared number that goes in (each chunk rounded up to 64 of them), 8 and one
                    bit for every bit opened to both; 8 for every count opened. From each other party 16
                    once, and 2, 4 or 8, by their width, for every number shared. To each other party 8 for
                    every count opened, and from the leader 24 for every candidate and 1 for every bit.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels;
                    n >= 2.
    Source:         DESIGN §6; [T] 5.4 with secure sums replaced by shares and garbled circuits.

    Raises PrivacyError if the root check fails, RemoteProtocolError for a malformed message,
    LocalProtocolError for a roster without two different parties as the pair.
    """
    observer = observer or Observer()
    observer.phase("setup")
    pair = yield from open_pair(roster, request.job_hash, rng, observer)
    referee = SealedReferee(pair, request, observer)
    return (yield from anonymize_horizontally(table, request, referee, observer))


MAX_GRID_CELLS = 1 << 12
"""Grid cells of one column, at most. All are scored at once. Measured with two classes and widths for 2^31 records:
100 MB at each of the pair and 2 GB of traffic for this many, in proportion to cells and class values."""


def check_grids(schema: Schema) -> None:
    """Refuse grids that would take gigabytes to score. Raises SchemaError."""
    for column in schema.qid:
        if column.is_numeric and column.n_leaves > MAX_GRID_CELLS:
            raise SchemaError(
                "domain-too-large",
                f"the grid of column {column.name} has {column.n_leaves} cells, more than the {MAX_GRID_CELLS} that "
                "a sealed horizontal job can score inside a circuit",
                column=column.name,
                remedy="choose a larger `step` or fewer `cuts`; LKC with three parties or more: `disclosure: leader`",
            )


class SealedReferee:
    """The compute pair judges inside circuits; the others share their counts and do what comes out."""

    def __init__(self, pair: Pair, request: Request, observer: Observer) -> None:
        self._roster = pair.roster
        self._request = request
        self._pair = pair
        self._shares = pair.shares
        self._engine = pair.engine
        self._observer = observer
        self._bounds = _bounds(request)
        self.ledger = RevealLedger("horizontal/sealed")

    def meets_root(self, cell_counts: Ints) -> Rounds[bool]:
        by_axis = cell_counts.reshape(self._request.schema.cell_shape)
        own = [
            cell_counts.sum(),
            *(np.take(by_axis, bound.value, axis=bound.axis).sum() for bound in self._bounds),
        ]
        share = yield from share_vector(self._shares, as_words(np.array(own, dtype=np.int64)))
        met = False
        if self._engine is not None and share is not None:
            met = yield from self._root_bit(self._engine, share.astype(np.uint64))
        return (yield from self._tell_bit("sealed/root", met))

    def _root_bit(self, engine: Engine, share: Words) -> Rounds[bool]:
        """K <= n, every C·n − count >= 0, and n small enough for exact arithmetic."""
        below = most_records(self._request.schema) + 1
        circuit = circuits.root_circuit(len(self._bounds), self._request.requirement.min_size, below)
        inputs = {"count": share[:1].reshape(1, 1)}
        if self._bounds:
            differences = [
                b.difference(share[0], held) for b, held in zip(self._bounds, share[1:], strict=True)
            ]
            inputs["difference"] = np.array(differences, dtype=np.uint64).reshape(1, -1)
        return opened((yield from engine.run(circuit, 1, inputs)), "met") == 1

    def root_error(self) -> PrivacyError:
        return root_refused(most_records(self._request.schema))

    def start(self, n_records: int) -> None:
        schema = self._request.schema
        most_points = max(column.n_leaves for column in schema.qid)
        self._n_records = n_records
        self._widths = widths_for(n_records, schema.n_classes, most_points)
        self._pool = Pool(self._request, self._widths, self._engine, leads=self._roster.leads)

    def open(self, counts: Ints, totals: Ints | None) -> Rounds[Ints]:
        told = counts if totals is None else counts[:, :-1]
        flat = told.reshape(-1).astype(dtype(_CELL_BITS))
        share = yield from share_vector(self._shares, flat)
        total = yield from open_vector(self._shares, len(flat), _CELL_BITS, share)
        assert total is not None
        opened = total.astype(np.int64).reshape(told.shape)
        return checked_counts(opened, counts, totals, self._roster.suspects, "shares/open")

    def propose(self, nodes: Sequence[Profiled]) -> Rounds[None]:
        own = [self._pool.own_part(profiled) for profiled in nodes]
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *(part.reshape(-1) for part in own)])
        share = yield from self._share(flat, width_for(self._n_records))
        self._observer.phase("score")
        ends = np.cumsum([part.size for part in own])[:-1]
        pieces = np.split(share, ends) if share is not None and nodes else []
        parts = [piece.reshape(part.shape) for piece, part in zip(pieces, own, strict=False)]
        yield from self._pool.add(nodes, parts)

    def best(self, cut: Cut, sizes: GroupSizes | None) -> Rounds[Candidate | None]:
        step = "sealed/candidate"
        skipped, candidate = yield from self._pool.pop(sizes)
        told = skipped.to_bytes(_SKIP_BYTES, "little") + encode_candidate(candidate)
        payload = yield from self._pair.tell(step, told)
        if self._engine is None:
            leader, schema = self._roster.leader, self._request.schema
            candidate = decode_candidate(payload[_SKIP_BYTES:], schema, cut, leader, step)
            skipped = int.from_bytes(payload[:_SKIP_BYTES], "little")
            if not self._pool.follow(skipped, candidate, sizes):
                raise RemoteProtocolError(leader, step, "a candidate that was not next")
        for _ in range(skipped):
            self.ledger.reveal("split_exists", False, "all")
        return candidate

    def is_valid(self, plan: GroupPlan, sums: Ints) -> Rounds[bool]:
        tests = _Tests(plan, self._request, self._n_records)
        if not tests.any:  # K = 1 and nothing protected in these groups: public
            return True
        share = yield from self._share(sums.reshape(-1), tests.share_bits)
        self._observer.phase("validity")
        valid = False
        if self._engine is not None and share is not None:
            by_child = tests.by_child(share.reshape(sums.shape), leads=self._roster.leads)
            valid = yield from tests.all_met(self._engine, by_child, self._widths.count)
        return (yield from self._tell_bit("sealed/valid", valid))

    def _share(self, values: Ints, bits: int) -> Rounds[Words | None]:
        """Give the pair shares of everybody's values; the pair's come back as 64-bit words, modulo 2**bits."""
        self._observer.phase("share")
        share = yield from share_vector(self._shares, values.astype(np.uint64).astype(dtype(bits)))
        return None if share is None else share.astype(np.uint64)

    def _tell_bit(self, step: str, value: bool) -> Rounds[bool]:
        payload = yield from self._pair.tell(step, encode_bit(value))
        return decode_bit(payload, self._roster.leader, step)


@dataclass(frozen=True)
class _Bound:
    """A protected value: count(value) <= p/q · n. ``axis`` and ``value`` place it among a partition's cells."""

    axis: int
    value: int
    p: int
    q: int

    def difference(self, n: np.uint64, held: np.uint64) -> np.uint64:
        """Our share of p·n − q·count."""
        with np.errstate(over="ignore"):
            return np.uint64(self.p) * n - np.uint64(self.q) * held


def _bounds(request: Request) -> list[_Bound]:
    """Every protected value whose bound is below 1, in the order of :class:`GroupPlan`."""
    schema, bounds = request.schema, []
    for i in sensitive_view(schema).columns:
        column = schema.sensitive[i]
        p, q = column.confidence.numerator, column.confidence.denominator
        bounds += [_Bound(i + 1, value, p, q) for value in column.protected]
    return bounds


class _Tests:
    """The sign and zero tests of one validity check; which there are is public."""

    def __init__(self, plan: GroupPlan, request: Request, n_records: int) -> None:
        self._totals = np.concatenate([plan.sizes[:, None], *plan.protected], axis=1)
        self._least = request.requirement.min_size
        self._bounds = _bounds(request)
        factor = max([1, *(max(bound.p, bound.q) for bound in self._bounds)])
        self._sign_bits = (factor * n_records).bit_length() + 1
        # A value that a group does not have at all needs no test.
        self._groups = [np.flatnonzero(self._totals[:, 1 + i]) for i in range(len(self._bounds))]

    @property
    def any(self) -> bool:
        return self._least > 1 or any(len(groups) for groups in self._groups)

    @property
    def share_bits(self) -> int:
        """Width of shares in which counts and the tested differences fit."""
        return width_for((1 << self._sign_bits) - 1)

    def by_child(self, sums: Words, *, leads: bool) -> Words:
        """Add the last child: what the others leave of the public totals. Shape (groups, children, values)."""
        totals = self._totals.astype(np.uint64) if leads else np.zeros_like(self._totals, dtype=np.uint64)
        last = totals[:, None, :] - sums.sum(axis=1, keepdims=True, dtype=np.uint64)
        return np.concatenate([sums, last], axis=1)

    def all_met(self, engine: Engine, by_child: Words, count_bits: int) -> Rounds[bool]:
        met: list[CarriedWords] = []
        if self._least > 1:
            counts = low_bits(by_child[:, :, 0].reshape(-1, 1), count_bits)
            circuit = circuits.size_circuit(count_bits, self._least)
            met.append(carried((yield from engine.run(circuit, len(counts), {"count": counts})), "met"))
        differences = self._differences(by_child)
        if len(differences):
            circuit = circuits.sign_circuit(self._sign_bits)
            inputs = {"difference": low_bits(differences.reshape(-1, 1), self._sign_bits)}
            met.append(carried((yield from engine.run(circuit, len(differences), inputs)), "met"))
        return (yield from engine.all_met(met))

    def _differences(self, by_child: Words) -> Words:
        """Our shares of p·n − q·count for every (group, child, protected value) to be tested."""
        parts = [np.zeros(0, dtype=np.uint64)]
        for i, (bound, groups) in enumerate(zip(self._bounds, self._groups, strict=True)):
            sizes, held = by_child[groups, :, 0], by_child[groups, :, 1 + i]
            parts.append((np.uint64(bound.p) * sizes - np.uint64(bound.q) * held).reshape(-1))
        return np.concatenate(parts)
