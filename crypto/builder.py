"""A builder of circuits: gates over literals, compiled once.

A literal is a plain integer: twice the number of a wire, plus 1 for an inverted wire; 0 and 1 are the constants. So
NOT costs nothing. Constants, repeated operands and repeated gates are folded at once. A *word* is a sequence of
literals, lowest bit first. The functions of :mod:`crypto.circuits` combine words and do not know the holders of the
inputs.

Compilation drops every gate without effect on an output. The remaining gates are numbered by (AND depth, place in a
chain of free gates, kind), so every group of equal gates is a single slice of rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crypto.circuit import (
    BLOCKS,
    MAX_WIDTH,
    Circuit,
    Group,
    Held,
    Index,
    InputGroup,
    Kind,
    OutputGroup,
    Region,
    To,
    columns_of,
)
from crypto.errors import LocalProtocolError

Literal: TypeAlias = int
Word: TypeAlias = Sequence[Literal]

FALSE: Literal = 0
TRUE: Literal = 1

_REGIONS = {
    Held.GARBLER: (Region.GARBLER,),
    Held.EVALUATOR: (Region.EVALUATOR,),
    Held.PUBLIC: (Region.PUBLIC,),
    Held.XOR_SHARED: (Region.EVALUATOR,),
    Held.ADDITIVE_SHARED: (Region.GARBLER, Region.EVALUATOR),
    Held.CARRIED: (Region.CARRIED,),
    Held.COINS: (Region.EVALUATOR,),
    Held.MASK: (Region.GARBLER,),
}
_NOBODY, _GARBLER, _EVALUATOR = range(3)
_KNOWN = {
    Region.GARBLER: (_GARBLER, (Held.GARBLER, Held.ADDITIVE_SHARED, Held.MASK)),
    Region.EVALUATOR: (_EVALUATOR, (Held.EVALUATOR, Held.ADDITIVE_SHARED)),
}
"""The side that knows the bits of a region, and the forms of input of which it knows them."""

_DEPTH = 1 << 24  # a level is AND depth · _DEPTH + place in a chain of free gates


class Builder:
    """Builder of one circuit; collects the gates."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kind: list[Kind] = [Kind.CONSTANT]
        self._left: list[Literal] = [0]
        self._right: list[Literal] = [0]
        self._public: list[bool] = [False]
        self._knows: list[int] = [_NOBODY]
        self._ands: dict[int, Literal] = {}
        self._xors: dict[int, Literal] = {}
        self._lifts: dict[int, Literal] = {}
        self._regions: dict[Region, list[int]] = {region: [] for region in Region}
        self._inputs: dict[str, InputGroup] = {}
        self._outputs: dict[str, tuple[To, list[list[Literal]], str | None]] = {}

    def input(self, name: str, held: Held, width: int, count: int = 1) -> list[list[Literal]]:
        """Declare ``count`` words of ``width`` (1 to 64) bits and return them.

        For shared words the reconstructed values are returned: the adder of additive shares is part of the circuit.
        """
        if held is Held.MASK:
            raise LocalProtocolError(f"{self._name}: input {name}: masks belong to outputs")
        parts = self._declare(name, held, width, count)
        if len(parts) == 1:
            return parts[0]
        return [add(self, x, y) for x, y in zip(*parts, strict=True)]

    def shares(self, name: str, width: int, count: int = 1) -> list[tuple[Word, Word]]:
        """Declare words with additive shares, as :meth:`input`; return the shares of each: garbler's, evaluator's.

        Outputs must depend on the sums alone: in the clear (:func:`crypto.circuit.evaluate`) the garbler's shares are
        0.
        """
        garblers, evaluators = self._declare(name, Held.ADDITIVE_SHARED, width, count)
        return list(zip(garblers, evaluators, strict=True))

    def output(self, name: str, to: To, words: Sequence[Word]) -> None:
        """Deliver words of equal width (1 to 64). An additive output costs width − 1 AND gates a word."""
        widths = {len(word) for word in words}
        if name in self._outputs or len(widths) != 1 or not 1 <= max(widths) <= MAX_WIDTH:
            raise LocalProtocolError(
                f"{self._name}: output {name}: declared twice, or words of widths {sorted(widths)}"
            )
        mask = None
        if to is To.ADDITIVE_SHARED:
            mask = f"{name}/mask"
            (masks,) = self._declare(mask, Held.MASK, max(widths), len(words))
            words = [subtract(self, word, r) for word, r in zip(words, masks, strict=True)]
        self._outputs[name] = (to, [[self._secret(x) for x in word] for word in words], mask)

    def _declare(self, name: str, held: Held, width: int, count: int) -> list[list[list[Literal]]]:
        """Return the words of each region."""
        if name in self._inputs or not 1 <= width <= MAX_WIDTH or count < 1:
            raise LocalProtocolError(
                f"{self._name}: input {name}: declared twice, or {count} words of {width} bits"
            )
        first_rows = {region: len(self._regions[region]) for region in _REGIONS[held]}
        self._inputs[name] = InputGroup(name, held, width, count, first_rows)
        return [self._fresh(region, held, width, count) for region in first_rows]

    def _fresh(self, region: Region, held: Held, width: int, count: int) -> list[list[Literal]]:
        public = region is Region.PUBLIC
        kind = Kind.PUBLIC_INPUT if public else Kind.INPUT
        side, known = _KNOWN.get(region, (_NOBODY, ()))
        knows = side if held in known else _NOBODY
        literals = [self._gate(kind, 0, 0, public, knows) for _ in range(width * count)]
        self._regions[region] += [x >> 1 for x in literals]
        return [literals[i : i + width] for i in range(0, width * count, width)]

    def xor(self, a: Literal, b: Literal) -> Literal:
        """Return a XOR b: free."""
        inverted = (a ^ b) & 1
        a, b = (a, b) if a < b else (b, a)
        a, b = a & ~1, b & ~1
        if a == b:
            return inverted
        if a == 0:
            return b | inverted
        key = a << 32 | b
        found = self._xors.get(key)
        if found is None:
            found = self._xors[key] = self._new_xor(a, b)
        return found ^ inverted

    def and_(self, a: Literal, b: Literal) -> Literal:
        """Return a AND b: 1 garbled gate; half of one if a side knows an operand; free if an operand is constant or
        public.
        """
        if a > b:
            a, b = b, a
        if a <= TRUE:
            return b if a else FALSE
        if a ^ b <= 1:
            return a if a == b else FALSE
        key = a << 32 | b
        found = self._ands.get(key)
        if found is None:
            found = self._ands[key] = self._new_and(a, b)
        return found

    def or_(self, a: Literal, b: Literal) -> Literal:
        """Return a OR b: 1 garbled gate."""
        return self.and_(a ^ 1, b ^ 1) ^ 1

    def mux(self, choice: Literal, one: Literal, zero: Literal) -> Literal:
        """Return ``one`` if ``choice``, else ``zero``: 1 garbled gate."""
        return self.xor(zero, self.and_(choice, self.xor(one, zero)))

    def _new_xor(self, a: Literal, b: Literal) -> Literal:
        public_a, public_b = self._public[a >> 1], self._public[b >> 1]
        if public_a and public_b:
            return self._gate(Kind.PUBLIC_XOR, a, b, True)
        if public_a or public_b:
            return self.xor(self._secret(a), self._secret(b))
        knows = self._knows[a >> 1]
        return self._gate(Kind.XOR, a, b, False, knows if knows == self._knows[b >> 1] else _NOBODY)

    def _new_and(self, a: Literal, b: Literal) -> Literal:
        public_a, public_b = self._public[a >> 1], self._public[b >> 1]
        if public_a and public_b:
            return self._gate(Kind.PUBLIC_AND, a, b, True)
        if public_a:
            return self._gate(Kind.SELECT, b, a, False)
        if public_b:
            return self._gate(Kind.SELECT, a, b, False)
        return self._secret_and(a, b)

    def _secret_and(self, a: Literal, b: Literal) -> Literal:
        """Return the AND of two secret wires, of the kind that costs least."""
        known = self._knows[a >> 1], self._knows[b >> 1]
        for side, kind in ((_GARBLER, Kind.AND_GARBLER), (_EVALUATOR, Kind.AND_EVALUATOR)):
            if side in known:
                a, b = (a, b) if known[1] == side else (b, a)
                if side == _EVALUATOR and b & 1:
                    return self.xor(a, self.and_(a, b ^ 1))
                return self._gate(kind, a, b, False)
        return self._gate(Kind.AND, a, b, False)

    def _secret(self, a: Literal) -> Literal:
        """Return the same bit on a secret wire."""
        wire = a >> 1
        if not self._public[wire]:
            return a
        if wire not in self._lifts:
            self._lifts[wire] = self._gate(Kind.LIFT, 0, 2 * wire, False, _GARBLER)
        return self._lifts[wire] ^ (a & 1)

    def _gate(self, kind: Kind, a: Literal, b: Literal, public: bool, knows: int = _NOBODY) -> Literal:
        self._left.append(a)
        self._right.append(b)
        self._public.append(public)
        self._knows.append(knows)
        self._kind.append(kind)
        return 2 * len(self._kind) - 2

    def build(self) -> Circuit:
        """Compile."""
        live = self._live()
        table = _Numbering(self._kind, self._left, self._right, live, self._regions)
        inputs = {name: table.input(group) for name, group in self._inputs.items()}
        outputs = {name: table.output(name, *given) for name, given in self._outputs.items()}
        unsealed = Circuit(
            name=self._name,
            inputs=inputs,
            outputs=outputs,
            rows=table.secret_rows,
            public_rows=table.public_rows,
            region_rows={region: len(wires) for region, wires in self._regions.items()},
            groups=table.groups(public=False),
            public_groups=table.groups(public=True),
            digest=b"",
        )
        return replace(unsealed, digest=_digest(unsealed))

    def _live(self) -> bytearray:
        """Mark every wire with an effect on an output."""
        live = bytearray(len(self._kind))
        for _, words, _ in self._outputs.values():
            for word in words:
                for x in word:
                    live[x >> 1] = 1
        left, right = self._left, self._right
        for wire in range(len(live) - 1, 0, -1):
            if live[wire]:
                live[left[wire] >> 1] = live[right[wire] >> 1] = 1
        return live


def add(b: Builder, x: Word, y: Word, carry: Literal = FALSE) -> list[Literal]:
    """Return x + y + carry modulo 2**len(x), len(y) equal: a ripple of 1 AND gate a bit, without a gate for the
    highest.
    """
    total = []
    last = len(x) - 1
    for i, (p, q) in enumerate(zip(x, y, strict=True)):
        p_carry, q_carry = b.xor(p, carry), b.xor(q, carry)
        total.append(b.xor(p_carry, q))
        if i < last:
            carry = b.xor(carry, b.and_(p_carry, q_carry))
    return total


def subtract(b: Builder, x: Word, y: Word) -> list[Literal]:
    """Return x − y modulo 2**len(x)."""
    return add(b, x, [q ^ 1 for q in y], TRUE)


class _Numbering:
    """The rows of all live wires, and the groups of rows."""

    def __init__(
        self,
        kind: list[Kind],
        left: list[Literal],
        right: list[Literal],
        live: bytearray,
        regions: dict[Region, list[int]],
    ) -> None:
        self._kind = np.array(kind, dtype=np.int64)
        self._left = np.array(left, dtype=np.intp)
        self._right = np.array(right, dtype=np.intp)
        self._level = np.array(_levels(kind, left, right, live), dtype=np.int64)
        self._live = np.frombuffer(live, dtype=np.uint8).astype(bool)
        self._row = np.zeros(len(kind), dtype=np.intp)
        self._first = {Region.PUBLIC: 0}
        next_row = 1
        for region in (Region.GARBLER, Region.EVALUATOR, Region.CARRIED):
            self._first[region] = next_row
            next_row += len(regions[region])
        for region, wires in regions.items():
            self._row[wires] = self._first[region] + np.arange(len(wires))
        self._secret_gates, self.secret_rows = self._number(np.isin(self._kind, _SECRET_GATES), next_row)
        first_public = len(regions[Region.PUBLIC])
        self._public_gates, self.public_rows = self._number(np.isin(self._kind, _PUBLIC_GATES), first_public)

    def _number(self, gates: NDArray[np.bool_], first: int) -> tuple[tuple[Index, Index], int]:
        """Give rows to live gates in the order of level and kind.

        Returns the wires, the place of the first one of every group among them, and the next row.
        """
        wires = np.flatnonzero(gates & self._live)
        key = self._level[wires] * len(Kind) + self._kind[wires]
        order = np.argsort(key, kind="stable")
        wires, key = wires[order], key[order]
        self._row[wires] = first + np.arange(len(wires))
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        return (wires, starts), first + len(wires)

    def groups(self, *, public: bool) -> tuple[Group, ...]:
        wires, starts = self._public_gates if public else self._secret_gates
        kinds, rows = self._kind[wires[starts]].tolist(), self._row[wires[starts]].tolist()
        ends = np.append(starts, len(wires))
        lengths = np.diff(ends).tolist()
        operands = [self._operands(literals[wires], ends) for literals in (self._left, self._right)]
        return tuple(
            Group(Kind(kind), row, row + length, a, b, invert_a, invert_b)
            for kind, row, length, (a, invert_a), (b, invert_b) in zip(
                kinds, rows, lengths, *operands, strict=True
            )
        )

    def _operands(self, literals: Index, ends: Index) -> Iterator[tuple[Index, Index]]:
        """Yield an operand's rows and inverted places for each group.

        literals: the operand of every gate; ends: the first gate of every group, and the number of gates.
        """
        rows, inverted = self._row[literals >> 1], np.flatnonzero(literals & 1)
        cuts = np.searchsorted(inverted, ends)
        inverted -= np.repeat(ends[:-1], np.diff(cuts))
        for (start, stop), (first, last) in zip(
            pairwise(ends.tolist()), pairwise(cuts.tolist()), strict=True
        ):
            yield rows[start:stop], inverted[first:last]

    def input(self, group: InputGroup) -> InputGroup:
        rows = {region: self._first[region] + i for region, i in group.first_rows.items()}
        return replace(group, first_rows=rows)

    def output(self, name: str, to: To, words: list[list[Literal]], mask: str | None) -> OutputGroup:
        literals = np.array(words, dtype=np.intp)
        flat = literals.reshape(-1)
        inverted = (flat & 1).astype(np.uint8)
        return OutputGroup(
            name, to, literals.shape[1], literals.shape[0], self._row[flat >> 1], inverted, mask
        )


_SECRET_GATES = (Kind.LIFT, Kind.XOR, Kind.SELECT, *BLOCKS)
_PUBLIC_GATES = (Kind.PUBLIC_XOR, Kind.PUBLIC_AND)


def _levels(kind: list[Kind], left: list[Literal], right: list[Literal], live: bytearray) -> list[int]:
    """Return the level of every live gate; public gates are levelled apart.

    An AND gate comes as early as possible, so each depth of the circuit has at most one group of each kind of AND. A
    free gate comes as late as possible, so gates on long chains of XOR share few groups.
    """
    depth = _and_depths(kind, left, right, live)
    late = _latest(kind, left, right, live, depth)
    level = [0] * len(kind)
    for wire, k in enumerate(kind):
        if not live[wire] or k <= _LAST_INPUT:
            continue
        if k >= _FIRST_AND:
            level[wire] = depth[wire] * _DEPTH
        elif k == _LIFT:
            level[wire] = late[wire] * _DEPTH + 1
        else:
            a, b = level[left[wire] >> 1], level[right[wire] >> 1]
            base = 0 if k <= _LAST_PUBLIC else late[wire] * _DEPTH
            chain = a if k == _SELECT or a > b else b
            level[wire] = (chain if chain > base else base) + 1
    return level


def _and_depths(kind: list[Kind], left: list[Literal], right: list[Literal], live: bytearray) -> list[int]:
    """Return the number of AND gates on the longest way to every wire."""
    depth = [0] * len(kind)
    for wire, k in enumerate(kind):
        if live[wire] and k > _LAST_PUBLIC and k != _LIFT:
            a, b = depth[left[wire] >> 1], depth[right[wire] >> 1]
            depth[wire] = (a if k == _SELECT or a > b else b) + (k >= _FIRST_AND)
    return depth


def _latest(
    kind: list[Kind], left: list[Literal], right: list[Literal], live: bytearray, depth: list[int]
) -> list[int]:
    """Return the latest AND depth at which every free gate is needed."""
    late = [max(depth)] * len(kind)
    for wire in range(len(kind) - 1, 0, -1):
        k = kind[wire]
        if not live[wire] or k <= _LAST_PUBLIC:
            continue
        needed = depth[wire] - 1 if k >= _FIRST_AND else late[wire]
        for operand in (left[wire] >> 1, right[wire] >> 1):
            if needed < late[operand]:
                late[operand] = needed
    return late


# Plain integers: the loops above go over every gate.
_LAST_INPUT, _LAST_PUBLIC = int(Kind.PUBLIC_INPUT), int(Kind.PUBLIC_AND)
_LIFT, _SELECT, _FIRST_AND = int(Kind.LIFT), int(Kind.SELECT), int(Kind.AND)


def _digest(circuit: Circuit) -> bytes:
    """Return SHA-256 over names, forms, shapes and gates."""
    h = hashlib.sha256(b"jointcut/circuit")

    def text(*parts: object) -> None:
        encoded = "\0".join(str(part) for part in parts).encode()
        h.update(len(encoded).to_bytes(4, "little") + encoded)

    def array(values: NDArray[np.generic]) -> None:
        h.update(len(values).to_bytes(8, "little") + values.astype("<u4").tobytes())

    text(circuit.name, circuit.rows, circuit.public_rows, len(circuit.inputs), len(circuit.outputs))
    for i in circuit.inputs.values():
        text(i.name, i.held.value, i.width, i.count, sorted(i.first_rows.items()))
    for o in circuit.outputs.values():
        text(o.name, o.to.value, o.width, o.count, o.mask)
        array(o.rows)
        array(o.inverted)
    for groups in (circuit.public_groups, circuit.groups):
        gates = columns_of(groups)
        for values in (
            gates.kinds,
            gates.starts,
            gates.lengths,
            gates.a,
            gates.b,
            gates.invert_a,
            gates.invert_b,
        ):
            array(values)
    return h.digest()
