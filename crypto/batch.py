"""A run of a circuit on a batch, as both sides see it: chunks of instances, rows of inputs and outputs.

:class:`Run` derives the messages and their pieces from the circuit and the batch alone, whichever side garbles.
:class:`Results` gathers one side's outputs chunk by chunk. :class:`CarriedWords` are words kept in the session
between runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crypto.blocks import BLOCK_BYTES, WORD_BITS, words_for
from crypto.circuit import (
    Bits,
    Circuit,
    Held,
    InputGroup,
    OutputGroup,
    Region,
    Rows,
    To,
    Values,
    bits_of_values,
    values_of_bits,
)
from crypto.encoding import WORD, Words
from crypto.errors import LocalProtocolError
from crypto.garbling import Evaluation, Garbling
from crypto.ot.extension import transfer_bytes
from crypto.pieces import BLOCK_GATES, slices

ROWS_BYTES = 1 << 26
"""Approximate memory for the labels of one chunk of instances."""

LOOKAHEAD = 8
"""Maximum chunks of choices that the evaluator sends before the tables of the first chunk."""

WINDOW_BYTES = 1 << 24
"""Maximum bytes of choices sent ahead of the chunk that is due. A driver must take in as much while the party
computes or sends; then neither side can block the peer.
"""

DIGEST_BYTES = 16
_ONE = np.uint64(1)


class CarriedWords:
    """Words that stay inside a session as labels, for later circuits of the same session.

    A flat vector, instance after instance. Both sides must rearrange theirs alike, by public indices.
    """

    __slots__ = ("ids", "labels", "session")

    def __init__(self, session: object, labels: Words, ids: Words) -> None:
        self.session = session
        self.labels = labels  # (width, words, 2)
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        return len(self.labels)

    def take(self, indices: Sequence[int] | NDArray[np.intp]) -> CarriedWords:
        """Return the words at public ``indices``, in the order of the indices; repetitions are allowed."""
        chosen = np.asarray(indices, dtype=np.intp)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(self):
            raise LocalProtocolError(f"indices outside of the {len(self)} carried words")
        return CarriedWords(self.session, self.labels[:, chosen], self.ids[chosen])

    def resized(self, width: int) -> CarriedWords:
        """Return the words with ``width`` bits: pad with high zeros, or cut the high bits."""
        kept = self.labels[:width]
        zeros = np.zeros((width - len(kept), *kept.shape[1:]), dtype=np.uint64)
        return CarriedWords(self.session, np.concatenate([kept, zeros]), self.ids)

    @staticmethod
    def concatenate(vectors: Sequence[CarriedWords]) -> CarriedWords:
        """Return the words of all ``vectors`` in a row; all vectors must have the same session and width."""
        if len({(id(v.session), v.width) for v in vectors}) != 1:
            raise LocalProtocolError("only words of one session and one width can be put in a row")
        labels = np.concatenate([v.labels for v in vectors], axis=1)
        return CarriedWords(vectors[0].session, labels, np.concatenate([v.ids for v in vectors]))

    def __repr__(self) -> str:
        return f"CarriedWords({len(self)} words of {self.width} bits, <secret>)"


Value: TypeAlias = "Values | CarriedWords"
Inputs: TypeAlias = Mapping[str, Value]
Outputs: TypeAlias = "dict[str, Value]"


class Run:
    """A run as either side sees it: the agreed facts, the chunks, and the form of delivery of every output."""

    def __init__(self, circuit: Circuit, batch: int, inputs: Inputs, digest: bytes) -> None:
        self.circuit = circuit
        self.batch = batch
        self.inputs = inputs
        self.digest = digest
        self.chunks = _chunks(circuit, batch)
        choice_rows = circuit.region_rows[Region.EVALUATOR]
        self.evaluator_opens = choice_rows > 0
        self.choice_bytes = [BLOCK_BYTES * choice_rows * (chunk.stop - chunk.start) for chunk in self.chunks]
        self.decoded = Ports(circuit, (To.EVALUATOR, To.BOTH, To.ADDITIVE_SHARED))
        self.returned = Ports(circuit, (To.GARBLER, To.BOTH))
        self.shared = Ports(circuit, (To.XOR_SHARED,))

    @property
    def total_bytes(self) -> int:
        """Number of bytes that both sides send, as in :meth:`crypto.two_party.GarblerSession.run`."""
        total = DIGEST_BYTES
        for chunk in self.chunks:
            n = chunk.stop - chunk.start
            total += (
                BLOCK_BYTES * n * self.circuit.table_blocks + self.decoding_bytes(n) + self.proof_bytes(n)
            )
            total += transfer_bytes(n * self.circuit.region_rows[Region.EVALUATOR])
            total += WORD * n * len(self.returned.rows)
        return total

    def decoding_bytes(self, n: int) -> int:
        """Return the bytes from which the evaluator reads its output bits of ``n`` instances."""
        return (len(self.decoded.rows) * n + 7) // 8

    def proof_bytes(self, n: int) -> int:
        """Return the bytes by which the evaluator checks labels that it returns, of ``n`` instances."""
        return 2 * WORD * n * len(self.returned.rows)

    @property
    def more_rounds(self) -> int:
        """Rounds beyond those of a batch whose choices are all under way at once."""
        return more_rounds([self])

    def bits(self, name: str, chunk: slice) -> Bits:
        """Return the bits of one input of this side, as rows."""
        values = self.inputs[name]
        assert not isinstance(values, CarriedWords)
        return bits_of_values(values[chunk], self.circuit.inputs[name].width)

    def groups(self, region: Region) -> list[InputGroup]:
        return [g for g in self.circuit.inputs.values() if region in g.first_rows]

    @property
    def known_to_evaluator(self) -> list[InputGroup]:
        """Inputs of which the evaluator knows the bits of its rows."""
        return [g for g in self.groups(Region.EVALUATOR) if g.held in (Held.EVALUATOR, Held.ADDITIVE_SHARED)]

    def fill_shared(self, chunk: slice, half: Garbling | Evaluation) -> None:
        """Fill in the values known to both sides: public masks and carried labels."""
        for group in self.groups(Region.PUBLIC):
            masks = np.uint64(0) - self.bits(group.name, chunk).astype(np.uint64)
            half.public[group.rows(Region.PUBLIC)] = np.repeat(masks, 2, axis=1)
        for group in self.groups(Region.CARRIED):
            words = self.inputs[group.name]
            assert isinstance(words, CarriedWords)
            labels = words.labels[:, chunk.start * group.count : chunk.stop * group.count]
            parted = labels.reshape(group.width, -1, group.count, 2).transpose(2, 0, 1, 3)
            half.labels[group.rows(Region.CARRIED)] = parted.reshape(group.bits, -1)

    def table_messages(self, half: Garbling | Evaluation, first: bool) -> list[tuple[int, int, int]]:
        """Return the bytes of (digest, table, decoding and proof) in the message of every piece; no message is sent
        if all are 0.
        """
        sizes = [(0, piece.table_bytes, 0) for piece in half.pieces]
        if first and not self.evaluator_opens:
            sizes[0] = (DIGEST_BYTES, sizes[0][1], 0)
        sizes[-1] = (sizes[-1][0], sizes[-1][1], self.decoding_bytes(half.n) + self.proof_bytes(half.n))
        return sizes


@dataclass(frozen=True)
class Turn:
    """A chunk of a run. The turns of several runs that go side by side follow each other.

    run:    number of the run.
    chunk:  None for an empty batch.
    after:  number of finished turns when the evaluator sends the choices of the turn.
    """

    run: int
    chunk: slice | None
    after: int


def turns_of(runs: Sequence[Run]) -> list[Turn]:
    """Return the turns of runs: at most LOOKAHEAD under way, with at most WINDOW_BYTES of choices beyond the due
    turn.
    """
    chunks: list[tuple[int, slice | None, int]] = []
    for number, run in enumerate(runs):
        sized = zip(run.chunks, run.choice_bytes, strict=True)
        chunks += [(number, chunk, size) for chunk, size in sized] or [(number, None, 0)]
    turns: list[Turn] = []
    after = under_way = 0
    for place, (number, chunk, size) in enumerate(chunks):
        under_way += size if place else 0
        while place - after >= LOOKAHEAD or under_way > WINDOW_BYTES:
            after += 1
            under_way -= chunks[after][2]
        turns.append(Turn(number, chunk, after))
    return turns


def more_rounds(runs: Sequence[Run]) -> int:
    """Return the rounds beyond those of runs whose choices are all under way at once."""
    waits: list[int] = []
    for turn in turns_of(runs):
        before = waits[-1] if waits else 0
        waited = turn.after and runs[turn.run].evaluator_opens
        waits.append(max(before, waits[turn.after - 1] + 1) if waited else before)
    return 2 * waits[-1]


class Ports:
    """The outputs of some destinations, with joined rows."""

    def __init__(self, circuit: Circuit, destinations: tuple[To, ...]) -> None:
        self.groups = [g for g in circuit.outputs.values() if g.to in destinations]
        self.rows = np.concatenate([np.empty(0, dtype=np.intp), *(g.rows for g in self.groups)])
        joined = np.concatenate([np.empty(0, dtype=np.uint8), *(g.inverted for g in self.groups)])
        self.inverted: Bits = joined[:, np.newaxis]

    def split(self, bits: Bits) -> Iterator[tuple[OutputGroup, Values]]:
        """Yield every group with its values."""
        start = 0
        for group in self.groups:
            yield group, values_of_bits(bits[start : start + group.bits], group.width)
            start += group.bits


class Results:
    """Outputs of one side, filled chunk by chunk."""

    def __init__(self, run: Run, mine: tuple[To, ...]) -> None:
        self._run = run
        outputs = run.circuit.outputs.values()
        self.values: dict[str, Values] = {
            g.name: np.empty((run.batch, g.count), dtype=np.uint64) for g in outputs if g.to in mine
        }
        self.labels: dict[str, Words] = {
            g.name: np.empty((g.width, run.batch * g.count, 2), dtype=np.uint64)
            for g in outputs
            if g.to is To.CARRIED
        }

    def put(self, ports: Ports, bits: Bits, chunk: slice) -> None:
        for group, values in ports.split(bits):
            self.values[group.name][chunk] = values

    def put_carried(self, labels: Rows, chunk: slice, delta: Words | None) -> None:
        """Keep labels. For an inverted wire the garbler keeps the label of 1 as the zero label."""
        for name, kept in self.labels.items():
            group = self._run.circuit.outputs[name]
            rows = labels[group.rows].reshape(group.bits, -1, 2)
            if delta is not None:
                rows[group.inverted == 1] ^= delta
            words = rows.reshape(group.count, group.width, -1, 2).transpose(1, 2, 0, 3)
            span = slice(chunk.start * group.count, chunk.stop * group.count)
            kept[:, span] = words.reshape(group.width, -1, 2)

    def ordered(self, carried: Mapping[str, Value]) -> Outputs:
        """Return all outputs of this side, in the order of the circuit."""
        everything = {**self.values, **carried}
        return {name: everything[name] for name in self._run.circuit.outputs if name in everything}


def _chunks(circuit: Circuit, batch: int) -> list[slice]:
    """Cut a batch into chunks of about equal size that fit the working memory, in multiples of 64."""
    choice_rows = circuit.region_rows[Region.EVALUATOR]
    fitting = min(ROWS_BYTES // circuit.rows, WINDOW_BYTES // (2 * max(1, choice_rows))) // BLOCK_BYTES
    most = max(1, min(BLOCK_GATES, fitting))
    if batch > most:
        even = -(-batch // -(-batch // most))
        most = min(most // WORD_BITS, words_for(even)) * WORD_BITS or most
    return list(slices(batch, most))


def lowest_bits(labels: Rows) -> Bits:
    """Return the lowest bit of every label; uint8, shape (rows, n)."""
    return (labels[:, 0::2] & _ONE).astype(np.uint8)
