"""Sequences with enough records of all holders, within the bounds: an opened bit each, and no count."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from anonymize.criteria.confidence import NotNegative
from anonymize.criteria.criterion import RECORDS, Bools, Form, Measure, Tally
from anonymize.criteria.size import LargeEnough
from anonymize.joint.engine import Engine, low_bits
from anonymize.joint.lkc.circuits import InCircuit
from anonymize.joint.pair import Pair
from anonymize.table import Ints
from anonymize.tds import Observer
from anonymize.trajectory.requirement import Bounds
from crypto.builder import Builder
from crypto.circuit import Bits, Circuit, Held, To
from crypto.circuits.arithmetic import all_of
from crypto.encoding import Words, decode_bits, encode_bits
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.pieces import slices
from crypto.rounds import Rounds
from crypto.shares import dtype, share_vector, width_for

STEP = "sequences/kept"
MOST_AT_ONCE = 1 << 19
"""Most sequences of a batch: the numbers of a batch take some tens of megabytes."""


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of every kept sequence, in a table with a public number of records.

    least:    K. forms: forms of a sequence's counts that must not be negative.
    tallies:  tallies of a sequence, its records first.
    """

    least: int
    forms: tuple[Form, ...]
    tallies: tuple[Tally, ...]
    n_records: int = field(repr=False)

    @property
    def circuit(self) -> Circuit:
        """Circuit on n − K, followed by every form."""
        excess = max(self.least, self.n_records).bit_length() + 1
        most = max((_most_times(form) for form in self.forms), default=0) * self.n_records
        return kept_circuit(excess, most.bit_length() + 1, len(self.forms))

    def words(self, counts: Ints, *, leads: bool) -> Ints:
        """Return a party's part of these numbers; K is in the leader's part: int64, shape (n_sequences, 1 + n_forms).

        counts:  counts of its records: int64, shape (n_tallies, n_sequences).
        """
        of: dict[Measure, Ints] = dict(zip(self.tallies, counts, strict=True))
        excess = of[RECORDS] - (self.least if leads else 0)
        return np.stack([excess, *(form.of(of) for form in self.forms)], axis=1)


def _most_times(form: Form) -> int:
    """Return the largest multiple of the number of records that a form can reach: no tally exceeds the records."""
    factors = dict(form.terms)
    of_all = factors.pop(RECORDS, 0)
    above = of_all + sum(factor for factor in factors.values() if factor > 0)
    return max(above, -of_all - sum(factor for factor in factors.values() if factor < 0))


def thresholds(bounds: Bounds, n_records: int) -> Thresholds:
    """Return the thresholds of bounds. Raises LocalProtocolError for criteria other than K and C."""
    least, forms = 1, []
    for criterion in bounds.entry.criteria:
        match criterion.rule:
            case LargeEnough(K):
                least = max(least, K)
            case NotNegative():
                forms += [form for (form,) in criterion.cases]
            case _:
                raise LocalProtocolError(f"no circuit says of sequences whether they meet {criterion.name}")
    return Thresholds(least, tuple(forms), bounds.tallies, n_records)


def kept_sequences(pair: Pair, asked: Thresholds, counts: Ints, observer: Observer) -> Rounds[Bools]:
    """Open the kept sequences.

    Functionality:  per sequence 1 if K or more records of all parties have it, and at most C of these have each
                    protected value; else 0: absent and violating sequences are not distinguished.
    Input, each:    ``counts`` of own records, as for :meth:`Thresholds.words`; their shape and ``asked`` are public
                    and equal for all.
    Output, each:   the bits, shape (n_sequences,).
    Leakage:        the bits. Leader and deputy together learn all parties' counts.
    Rounds:         4 for every batch of MOST_AT_ONCE sequences; with two parties 2, and 1 more for the last. A batch
                    of more chunks of instances than may be under way at once takes 2 more for every further so many
                    of them.
    Bytes:          for every sequence with N numbers of W bits in all between the pair 32 (W − 1) − 16 N + 24, a
                    bit, and W transfers (:func:`crypto.ot.extension.correlated_send`: about 4 each), and 16 for every
                    batch; from each other party 2, 4 or 8, by their width, for every number; to each other party a
                    bit for every sequence from the leader, and 16 for every batch from the deputy.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels; n >= 2.
    Source:         the requirement as sign bits of shared differences; [T] 4.1 with sums that nobody learns.

    Raises RemoteProtocolError for a malformed message, or a bit that contradicts own records.
    """
    found = [np.zeros(0, dtype=bool)]
    for piece in slices(counts.shape[1], MOST_AT_ONCE):
        found.append((yield from _of_batch(pair, asked, counts[:, piece], observer)))
    return np.concatenate(found)


def _of_batch(pair: Pair, asked: Thresholds, counts: Ints, observer: Observer) -> Rounds[Bools]:
    roster, circuit = pair.roster, asked.circuit
    words = asked.words(counts, leads=roster.leads)
    widths = [group.width for group in circuit.inputs.values() for _ in range(group.count)]
    observer.phase("share")
    kind = dtype(width_for((1 << max(widths)) - 1))
    share = yield from share_vector(pair.shares, words.reshape(-1).astype(np.uint64).astype(kind))
    observer.phase("validity")
    told = b""
    if pair.engine is not None and share is not None:
        shared = share.astype(np.uint64).reshape(words.shape)
        told = encode_bits((yield from _judged(pair.engine, circuit, shared)))
    payload = yield from pair.tell(STEP, told)
    kept: Bools = decode_bits(payload, len(words), roster.leader, STEP) == 1
    if not asked.forms and (counts[0, ~kept] >= asked.least).any():
        raise RemoteProtocolError(
            pair.roster.judges, STEP, "fewer than K records have what K records of ours have"
        )
    return kept


def _judged(engine: Engine, circuit: Circuit, shared: Words) -> Rounds[Bits]:
    """Return the bits of a batch; shape (n_sequences,)."""
    inputs, start = {}, 0
    for name, group in circuit.inputs.items():
        inputs[name] = low_bits(shared[:, start : start + group.count], group.width)
        start += group.count
    outputs = yield from engine.run(circuit, len(shared), inputs)
    kept = outputs["kept"]
    assert isinstance(kept, np.ndarray)
    return kept.reshape(-1).astype(np.uint8)


@lru_cache(maxsize=16)
def kept_circuit(excess_width: int, difference_width: int, n_differences: int) -> Circuit:
    """Return the circuit that opens to both if no number of a sequence is negative: the conjunction of their sign
    bits.

    excess:      n − K. difference: p·n − q·n_s for each bound. Both in two's complement, shared.

    AND gates: the number of input bits less 1. Adding two shares takes their bits less 1, and so does joining the
    signs.
    """
    b = Builder(f"kept/{excess_width}/{difference_width}/{n_differences}")
    words = b.input("excess", Held.ADDITIVE_SHARED, excess_width)
    if n_differences:
        words += b.input("difference", Held.ADDITIVE_SHARED, difference_width, n_differences)
    on = InCircuit(b)
    b.output("kept", To.BOTH, [[all_of(b, [on.not_negative(word) for word in words])]])
    return b.build()
