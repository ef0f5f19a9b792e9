"""Compiled Boolean circuits, and their evaluation in the clear.

A circuit is written over a :class:`crypto.builder.Builder` and compiled once. :class:`Circuit` holds everything
that a back end needs: the rows of the inputs and outputs, and groups of equal gates. A group reads earlier rows and
writes a contiguous slice of rows. Back ends are :func:`evaluate` in the clear and :mod:`crypto.garbling`. Circuits
do not depend on the back end.

Wires that depend on public inputs only are kept apart (``public_rows``). Every back end evaluates these wires in
the clear, and AND with a public bit is a selection. Both are free of communication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crypto.errors import LocalProtocolError

Values: TypeAlias = NDArray[np.uint64]
Rows: TypeAlias = NDArray[np.uint64]
Index: TypeAlias = NDArray[np.intp]
Bits: TypeAlias = NDArray[np.uint8]

MAX_WIDTH = 64


class Held(Enum):
    """The holder of an input group, and the form of the input."""

    GARBLER = "garbler"
    EVALUATOR = "evaluator"
    PUBLIC = "public"
    XOR_SHARED = "xor-shared"
    ADDITIVE_SHARED = "additive-shared"
    CARRIED = "carried"
    COINS = "coins"  # uniform bits unknown to both: each side's session draws its own summand
    MASK = "mask"  # the garbler's coins behind an additive output; declared by the builder only


class To(Enum):
    """The receivers of an output group, and the form of the output."""

    GARBLER = "garbler"
    EVALUATOR = "evaluator"
    BOTH = "both"
    XOR_SHARED = "xor-shared"
    ADDITIVE_SHARED = "additive-shared"
    CARRIED = "carried"


class Kind(IntEnum):
    """The source of a wire."""

    CONSTANT = 0
    INPUT = 1
    PUBLIC_INPUT = 2
    PUBLIC_XOR = 3
    PUBLIC_AND = 4
    LIFT = 5  # a public wire made secret; operand b is a public row
    XOR = 6
    SELECT = 7  # AND of a secret wire with a public one; operand b is a public row
    AND = 8
    AND_GARBLER = 9  # AND with a bit that the garbler knows: operand b
    AND_EVALUATOR = 10  # AND with a bit that the evaluator knows: operand b, not inverted


BLOCKS: Mapping[Kind, int] = {Kind.AND: 2, Kind.AND_GARBLER: 1, Kind.AND_EVALUATOR: 1}
"""Blocks of table of a gate, by kind; other gates have no table."""


class Region(IntEnum):
    """Regions of input rows. The first three are secret rows, in this order behind the constant row 0."""

    GARBLER = 0
    EVALUATOR = 1
    CARRIED = 2
    PUBLIC = 3


@dataclass(frozen=True, slots=True)
class InputGroup:
    """``count`` words of ``width`` bits; the bits of a word are adjacent rows, lowest first.

    first_rows:  the first row in every region the group occupies.
    """

    name: str
    held: Held
    width: int
    count: int
    first_rows: Mapping[Region, int]

    @property
    def bits(self) -> int:
        return self.width * self.count

    def rows(self, region: Region) -> slice:
        """Return the rows of the group in a region."""
        return slice(self.first_rows[region], self.first_rows[region] + self.bits)


@dataclass(frozen=True, slots=True)
class OutputGroup:
    """``count`` words of ``width`` bits.

    rows, inverted:  the secret row of every bit, word by word, and 1 for an inverted row.
    mask:            name of the input group that masks an additive output.
    """

    name: str
    to: To
    width: int
    count: int
    rows: Index
    inverted: Bits
    mask: str | None

    @property
    def bits(self) -> int:
        return self.width * self.count


@dataclass(frozen=True, slots=True)
class Group:
    """Equal gates of one level: rows ``start`` to ``stop`` are driven by rows ``a`` and ``b``.

    invert_a, invert_b:  positions within the group with an inverted operand (kinds of AND, SELECT, PUBLIC_AND).
    """

    kind: Kind
    start: int
    stop: int
    a: Index
    b: Index
    invert_a: Index
    invert_b: Index

    @property
    def blocks(self) -> int:
        """Blocks of table of one instance."""
        return BLOCKS.get(self.kind, 0) * (self.stop - self.start)

    def part(self, start: int, stop: int) -> Group:
        """Return the gates at positions ``start`` to ``stop`` of the group."""
        inside_a = self.invert_a[(self.invert_a >= start) & (self.invert_a < stop)] - start
        inside_b = self.invert_b[(self.invert_b >= start) & (self.invert_b < stop)] - start
        return Group(
            self.kind,
            self.start + start,
            self.start + stop,
            self.a[start:stop],
            self.b[start:stop],
            inside_a,
            inside_b,
        )


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """Gates of groups, column by column.

    kinds, starts, lengths:  of every group: kind, first row, number of gates.
    rows:                    the row of every gate, group after group.
    a, b:                    the operands of every gate.
    invert_a, invert_b:      numbers of the gates with an inverted operand.
    """

    kinds: Index
    starts: Index
    lengths: Index
    rows: Index
    a: Index
    b: Index
    invert_a: Index
    invert_b: Index


def columns_of(groups: Sequence[Group]) -> Columns:
    """Return the gates of groups as columns, to work on all of them at once."""
    kinds, starts, stops = (
        np.array([getattr(group, name) for group in groups], dtype=np.intp)
        for name in ("kind", "start", "stop")
    )
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    a, b, invert_a, invert_b = (
        [getattr(group, name) for group in groups] for name in ("a", "b", "invert_a", "invert_b")
    )
    rows = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return Columns(
        kinds,
        starts,
        lengths,
        rows,
        _joined(a),
        _joined(b),
        *(_joined(each) + np.repeat(before, [len(part) for part in each]) for each in (invert_a, invert_b)),
    )


def _joined(parts: Sequence[Index]) -> Index:
    return np.concatenate([np.empty(0, dtype=np.intp), *parts])


@dataclass(frozen=True, eq=False, slots=True)
class Circuit:
    """A compiled circuit; immutable. Circuits are equal if their digests are equal.

    rows:         number of secret rows: constant zero (row 0), the inputs by region, a row for each gate.
    public_rows:  number of public rows: the public inputs, a row for each public gate.
    groups:       secret gates in an order in which operands come first; public_groups likewise.
    region_rows:  number of input rows by region.
    digest:       SHA-256 over all of it.
    """

    name: str
    inputs: Mapping[str, InputGroup]
    outputs: Mapping[str, OutputGroup]
    rows: int
    public_rows: int
    region_rows: Mapping[Region, int]
    groups: tuple[Group, ...] = field(repr=False)
    public_groups: tuple[Group, ...] = field(repr=False)
    digest: bytes = field(repr=False)

    def gates(self, kind: Kind) -> int:
        """Return the number of gates of a kind in one instance."""
        return sum(g.stop - g.start for g in (*self.groups, *self.public_groups) if g.kind == kind)

    @property
    def and_gates(self) -> int:
        """Number of AND gates of one instance, with those of which a side knows an operand."""
        return sum(map(self.gates, BLOCKS))

    @property
    def table_blocks(self) -> int:
        """Blocks of table of one instance: the cost of garbling and sending."""
        return sum(group.blocks for group in self.groups)

    @property
    def and_depth(self) -> int:
        """Number of groups of AND gates: the cost of a small batch."""
        return sum(g.kind in BLOCKS for g in self.groups)

    def region(self, region: Region) -> slice:
        """Return the rows of a region."""
        before = sum(self.region_rows[r] for r in Region if r < region)
        first = 0 if region is Region.PUBLIC else 1 + before
        return slice(first, first + self.region_rows[region])


def evaluate(circuit: Circuit, batch: int, inputs: Mapping[str, Values]) -> dict[str, Values]:
    """Evaluate ``batch`` instances in the clear.

    inputs:  the values of every input group, including coins (values, not shares): integers,
             shape (batch, count).
    Returns the value of every output group, for any receiver; uint64, shape (batch, count).

    Raises LocalProtocolError for missing or unknown names, wrong shapes, values that do not fit.
    """
    groups = {name: g for name, g in circuit.inputs.items() if g.held is not Held.MASK}
    if inputs.keys() != groups.keys():
        raise LocalProtocolError(f"{circuit.name}: inputs {sorted(inputs)}, not {sorted(groups)}")
    words = -(-batch // 64)
    secret = np.zeros((circuit.rows, words), dtype=np.uint64)
    public = np.zeros((circuit.public_rows, words), dtype=np.uint64)
    for name, group in groups.items():
        values = checked_values(circuit, group, inputs[name], batch)
        region = max(group.first_rows)  # additive shares: the value for the evaluator, zero for the garbler
        target = public if region is Region.PUBLIC else secret
        target[group.rows(region)] = _pack(bits_of_values(values, group.width), words)
    evaluate_public(circuit, public)
    _evaluate_secret(circuit, secret, public)
    return {name: _output_values(group, secret, batch) for name, group in circuit.outputs.items()}


def evaluate_public(circuit: Circuit, public: Rows) -> None:
    """Evaluate the public gates: every bit position of the rows is an instance."""
    for g in circuit.public_groups:
        a, b = public[g.a], public[g.b]
        if g.kind is Kind.PUBLIC_XOR:
            np.bitwise_xor(a, b, out=public[g.start : g.stop])
        else:
            a[g.invert_a] ^= _ONES
            b[g.invert_b] ^= _ONES
            np.bitwise_and(a, b, out=public[g.start : g.stop])


_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def _evaluate_secret(circuit: Circuit, secret: Rows, public: Rows) -> None:
    for g in circuit.groups:
        out = secret[g.start : g.stop]
        if g.kind is Kind.LIFT:
            out[:] = public[g.b]
        elif g.kind is Kind.XOR:
            np.bitwise_xor(secret[g.a], secret[g.b], out=out)
        else:
            a, b = secret[g.a], (public if g.kind is Kind.SELECT else secret)[g.b]
            a[g.invert_a] ^= _ONES
            b[g.invert_b] ^= _ONES
            np.bitwise_and(a, b, out=out)


def _pack(bits: Bits, words: int) -> Rows:
    """Pack rows of bits into rows of words, 64 instances a word."""
    packed = np.zeros((len(bits), 8 * words), dtype=np.uint8)
    head = np.packbits(bits, axis=1, bitorder="little")
    packed[:, : head.shape[1]] = head
    return packed.view(np.uint64)


def _output_values(group: OutputGroup, secret: Rows, batch: int) -> Values:
    packed = secret[group.rows].view(np.uint8)
    bits = np.unpackbits(packed, axis=1, count=batch, bitorder="little")
    return values_of_bits(bits ^ group.inverted[:, np.newaxis], group.width)


def checked_values(circuit: Circuit, group: InputGroup, values: Values, batch: int) -> Values:
    """Return an input as uint64, shape (batch, count).

    Raises LocalProtocolError, naming sizes only, if the input does not fit.
    """
    where = f"{circuit.name}: input {group.name}"
    array = np.asarray(values)
    if array.shape != (batch, group.count):
        raise LocalProtocolError(f"{where} has shape {array.shape}, not {(batch, group.count)}")
    if array.dtype.kind not in "iub":
        raise LocalProtocolError(f"{where} is of type {array.dtype}, not of an integer type")
    if array.dtype.kind == "i" and (array < 0).any():
        raise LocalProtocolError(f"{where} has negative entries where unsigned ones are meant")
    unsigned = array.astype(np.uint64, copy=False)
    if group.width < MAX_WIDTH and (unsigned >> np.uint64(group.width)).any():
        raise LocalProtocolError(f"{where} has entries that do not fit {group.width} bits")
    return unsigned


def bits_of_values(values: Values, width: int) -> Bits:
    """Turn words into rows of bits.

    values:  uint64, shape (batch, count).
    Returns uint8, shape (count * width, batch): the bits of a word are adjacent rows, lowest first.
    """
    batch, count = values.shape
    octets = np.ascontiguousarray(values.T, dtype="<u8").view(np.uint8).reshape(count, batch, 8)
    octets = np.ascontiguousarray(octets[:, :, : -(-width // 8)])
    bits = np.unpackbits(octets, axis=2, count=width, bitorder="little")
    return np.ascontiguousarray(bits.transpose(0, 2, 1)).reshape(count * width, batch)


def values_of_bits(bits: Bits, width: int) -> Values:
    """Turn rows of bits back into words; the inverse of :func:`bits_of_values`."""
    count, batch = len(bits) // width, bits.shape[1]
    packed = np.packbits(bits.reshape(count, width, batch), axis=1, bitorder="little")
    octets = np.zeros((batch, count, 8), dtype=np.uint8)
    octets[:, :, : packed.shape[1]] = packed.transpose(2, 0, 1)
    return octets.reshape(batch, 8 * count).view("<u8").astype(np.uint64, copy=False)
