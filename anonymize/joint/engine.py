"""Running batches of circuits at the compute pair: tournaments over groups of entries, conjunctions, gate counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from anonymize.joint.conjunction import CONJUNCTION, conjunction_circuit
from anonymize.table import Ints
from anonymize.tds import Observer
from crypto.blocks import WORD_BITS
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.encoding import Words, as_words
from crypto.lookup import LookUps
from crypto.rounds import Rounds
from crypto.two_party import Asked, CarriedWords, Computation, Inputs, Outputs, Value

Fields: TypeAlias = Mapping[str, CarriedWords]
"""Carried words by name, a word of each name per entry."""

AT_ONCE = 4
"""Bits of a group joined by a gate circuit, for small groups."""


class Engine:
    """Session with a peer for the joint algorithms; also a :class:`Computation`.

    look_ups:  in public tables at shared indices; None if the session has none.
    """

    def __init__(self, computation: Computation, observer: Observer, look_ups: LookUps | None = None) -> None:
        self._computation = computation
        self._observer = observer
        self.look_ups = look_ups
        self.peer = computation.peer
        self.role = computation.role

    def run(self, circuit: Circuit, batch: int, inputs: Inputs) -> Rounds[Outputs]:
        """Evaluate a batch, and count its gates."""
        (outputs,) = yield from self.run_all([(circuit, batch, inputs)])
        return outputs

    def run_all(self, asked: Sequence[Asked]) -> Rounds[list[Outputs]]:
        """Evaluate batches side by side, and count their gates."""
        self._observer.gates(sum(circuit.and_gates * batch for circuit, batch, _ in asked))
        return (yield from self._computation.run_all(asked))

    def carry(self, numbers: Sequence[int], width: int) -> Rounds[CarriedWords]:
        """Return public numbers as carried words of ``width`` bits."""
        public = {"word": as_words(numbers).reshape(-1, 1)}
        return carried((yield from self.run(public_circuit(width), len(numbers), public)), "word")

    def reduce(self, circuit: Circuit, fields: Fields, sizes: Sequence[int]) -> Rounds[Fields]:
        """Join the entries of every group into one, by one circuit for all levels; see :meth:`join`."""
        return self.join(lambda _: circuit, fields, sizes)

    def join(
        self, circuit_at: Callable[[int], Circuit], fields: Fields, sizes: Sequence[int], level: int = 0
    ) -> Rounds[Fields]:
        """Join the entries of every group into one, neighbours first, by a circuit of two entries.

        The circuit takes ``name`` and ``name/other`` of every field that has bits, and returns ``name``, which may be
        wider: an entry without a neighbour gets high zeros. ``sizes``: entries per group, in order; the result has
        one entry per group. ``circuit_at``: returns the circuit of a level, ``level`` first.
        """
        counts = np.asarray(sizes, dtype=np.int64)
        while counts.size and counts.max() > 1:
            pairs = pairs_of(counts)
            joined = yield from self.run(circuit_at(level), len(pairs), pairs.inputs(fields))
            fields = {name: pairs.joined(joined[name], words) for name, words in fields.items()}
            counts, level = pairs.counts, level + 1
        return fields

    def all_of_each(self, bits: CarriedWords, sizes: Ints) -> Rounds[CarriedWords]:
        """Return a carried bit for each group of ``sizes`` bits (at least 1), in order: 1 if all its bits are
        1.
        """
        while sizes.max(initial=1) > 1:
            items, of_row = in_rows(sizes, AT_ONCE)
            inputs = {"met": bits.take(items.reshape(-1))}
            outputs = yield from self.run(conjunction_circuit(AT_ONCE, To.CARRIED), len(of_row), inputs)
            bits, sizes = carried(outputs, "met"), np.bincount(of_row)
        return bits

    def all_met(self, bits: Sequence[CarriedWords]) -> Rounds[bool]:
        """Open to both whether all bits are 1, and nothing else."""
        met = yield from self._conjoined(CarriedWords.concatenate(bits), CONJUNCTION)
        count = CONJUNCTION if len(met) > 1 else 1
        inputs = {"met": _padded(met, count)}
        outputs = yield from self.run(conjunction_circuit(count, To.BOTH), 1, inputs)
        return opened(outputs, "met") == 1

    def conjoined(self, bits: Sequence[CarriedWords]) -> Rounds[CarriedWords]:
        """Return a carried bit: 1 if all bits are 1."""
        return (yield from self._conjoined(CarriedWords.concatenate(bits), 1))

    def _conjoined(self, met: CarriedWords, most: int) -> Rounds[CarriedWords]:
        """Join bits until there are at most ``most``."""
        while len(met) > most:
            batch = -(-len(met) // CONJUNCTION)
            inputs = {"met": _padded(met, batch * CONJUNCTION)}
            outputs = yield from self.run(conjunction_circuit(CONJUNCTION, To.CARRIED), batch, inputs)
            met = carried(outputs, "met")
        return met


@dataclass(frozen=True, repr=False)
class Pairs:
    """Neighbours among the entries of groups.

    first:   place of the first entry of each pair; the second follows it.
    alone:   places of the entries without a neighbour, at most one at the end of each group.
    order:   places of the entries of the next level, in order, among those of pairs, then those without a neighbour.
    counts:  entries of each group at the next level.
    """

    first: Ints
    alone: Ints
    order: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.first)

    def inputs(self, fields: Fields) -> dict[str, CarriedWords]:
        """Return ``name`` and ``name/other`` of every field that has bits, a word for each pair."""
        known = {name: words for name, words in fields.items() if words.width}
        inputs = {name: words.take(self.first) for name, words in known.items()}
        return inputs | {f"{name}/other": words.take(self.first + 1) for name, words in known.items()}

    def joined(self, of_pairs: Value, words: CarriedWords) -> CarriedWords:
        """Return the words of the next level, from those of pairs and of all entries."""
        return self.stacked(of_pairs, words.take(self.alone))

    def stacked(self, of_pairs: Value, alone: CarriedWords) -> CarriedWords:
        """Return the words of the next level, from those of pairs and those without a neighbour."""
        assert isinstance(of_pairs, CarriedWords)
        return CarriedWords.concatenate([of_pairs, alone.resized(of_pairs.width)]).take(self.order)


def pairs_of(counts: Ints) -> Pairs:
    """Return the neighbours among the entries of groups. counts: entries of each group, in order."""
    starts = np.cumsum(counts) - counts
    group = np.repeat(np.arange(len(counts)), counts // 2)
    pair = np.arange(len(group)) - np.repeat(np.cumsum(counts // 2) - counts // 2, counts // 2)
    odd = np.flatnonzero(counts % 2)
    order = np.argsort(np.concatenate([2 * group, 2 * odd + 1]), kind="stable")
    return Pairs(starts[group] + 2 * pair, starts[odd] + counts[odd] - 1, order, counts // 2 + counts % 2)


@lru_cache(maxsize=64)
def public_circuit(width: int) -> Circuit:
    """Return the circuit that turns a public word into a carried word."""
    b = Builder(f"public/{width}")
    (word,) = b.input("word", Held.PUBLIC, width)
    b.output("word", To.CARRIED, [word])
    return b.build()


def in_rows(sizes: Ints, length: int) -> tuple[Ints, Ints]:
    """Put the items of groups, group after group, into rows of equal length. A group's last item is repeated as
    padding.

    sizes:  items of every group, at least 1. Returns the items of every row, shape (n_rows, length), and its group.
    """
    n_rows = -(-sizes // length)
    group = np.repeat(np.arange(len(sizes)), n_rows)
    number = np.arange(len(group)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    place = np.minimum(number[:, None] * length + np.arange(length), sizes[group][:, None] - 1)
    items: Ints = (np.cumsum(sizes) - sizes)[group][:, None] + place
    return items, group


def _padded(met: CarriedWords, count: int) -> CarriedWords:
    """Repeat the last bit, which does not change a conjunction."""
    return met.take(np.minimum(np.arange(count), len(met) - 1))


def carried(outputs: Outputs, name: str) -> CarriedWords:
    """Return an output that stays in the session."""
    words = outputs[name]
    assert isinstance(words, CarriedWords)
    return words


def opened(outputs: Outputs, name: str) -> int:
    """Return the word of an output opened to the party."""
    values = outputs[name]
    assert isinstance(values, np.ndarray)
    return int(values[0, 0])


def low_bits(shares: Words, width: int) -> Words:
    """Convert shares modulo 2**64 to shares modulo 2**width."""
    return shares if width >= WORD_BITS else shares & np.uint64((1 << width) - 1)
