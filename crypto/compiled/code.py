"""Operators on :class:`Value` that emit LLVM's instructions instead of computing.

A kernel reads like its formula, at any number of lanes. Code branches or addresses memory by a value only at the
explicit request of the kernel: loops and conditions are over counts, rows and kinds, all public.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

WORD = ir.IntType(64)
WORDS = ir.PointerType()
"""The types of arguments: a number, and the address of an array of words."""

_OCTET, _INDEX = ir.IntType(8), ir.IntType(32)


def _vector(lanes: int) -> ir.Type:
    return ir.VectorType(WORD, lanes)


@dataclass(frozen=True, slots=True)
class Value:
    """A word, or a vector of words, of the running kernel. An int among operands is a constant."""

    code: Code
    raw: ir.Value

    def __xor__(self, other: Value | int) -> Value:
        return self._new(self.code.emit.xor(self.raw, self._like(other)))

    def __and__(self, other: Value | int) -> Value:
        return self._new(self.code.emit.and_(self.raw, self._like(other)))

    def __add__(self, other: Value | int) -> Value:
        return self._new(self.code.emit.add(self.raw, self._like(other)))

    def __sub__(self, other: Value | int) -> Value:
        return self._new(self.code.emit.sub(self.raw, self._like(other)))

    def __mul__(self, other: Value | int) -> Value:
        return self._new(self.code.emit.mul(self.raw, self._like(other)))

    def __lshift__(self, bits: Value | int) -> Value:
        return self._new(self.code.emit.shl(self.raw, self._like(bits)))

    def __rshift__(self, bits: Value | int) -> Value:
        return self._new(self.code.emit.lshr(self.raw, self._like(bits)))

    def rotate(self, bits: int) -> Value:
        """Rotate to the right."""
        right, left = self >> bits, self << WORD.width - bits
        return self._new(self.code.emit.or_(right.raw, left.raw))

    def mask(self) -> Value:
        """Return all ones for 1, zero for 0."""
        return self._new(self.code.emit.neg(self.raw))

    def pick(self, *lanes: int, other: Value | None = None) -> Value:
        """Return a vector of picked lanes; lane numbers beyond the last lane of the value count on into ``other``."""
        numbers = ir.Constant(ir.VectorType(_INDEX, len(lanes)), list(lanes))
        second = ir.Constant(self.raw.type, ir.Undefined) if other is None else other.raw
        return self._new(self.code.emit.shuffle_vector(self.raw, second, numbers))

    def spread(self, lanes: int) -> Value:
        """Return a vector of ``lanes`` copies of the word."""
        empty = ir.Constant(_vector(lanes), ir.Undefined)
        first = self.code.emit.insert_element(empty, self.raw, ir.Constant(_INDEX, 0))
        return self._new(first).pick(*[0] * lanes)

    def sum_of_lanes(self) -> Value:
        """Return the sum of all lanes, a word; lanes are a power of two."""
        value, lanes = self, self.raw.type.count
        while lanes > 1:
            lanes //= 2
            value = value.pick(*range(lanes)) + value.pick(*range(lanes, 2 * lanes))
        return self._new(self.code.emit.extract_element(value.raw, ir.Constant(_INDEX, 0)))

    def _new(self, raw: ir.Value) -> Value:
        return Value(self.code, raw)

    def _like(self, other: Value | int) -> ir.Value:
        if isinstance(other, Value):
            return other.raw
        kind = self.raw.type
        return ir.Constant(kind, [other] * kind.count if isinstance(kind, ir.VectorType) else other)


@dataclass(slots=True)
class Carried:
    """A value that a loop changes: the first value before the loop, in its body the present one, then the last."""

    value: Value


class Code:
    """A function under construction, without a return value."""

    def __init__(self, module: ir.Module, name: str, arguments: Sequence[ir.Type]) -> None:
        self._function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
        self._module = module
        self.emit = ir.IRBuilder(self._function.append_basic_block())
        self.arguments = [Value(self, argument) for argument in self._function.args]

    def word(self, number: int) -> Value:
        """Return a constant word."""
        return Value(self, self._word(number))

    def constant(self, *words: int) -> Value:
        """Return a vector of constants."""
        return Value(self, ir.Constant(_vector(len(words)), list(words)))

    def load(self, array: Value, at: Value | int, lanes: int | None = None) -> Value:
        """Read the word ``at`` words into an array, or ``lanes`` adjacent words."""
        kind = WORD if lanes is None else _vector(lanes)
        return Value(self, self.emit.load(self._address(array, at), align=8, typ=kind))

    def store(self, value: Value, array: Value, at: Value | int) -> None:
        """Write a word or adjacent words ``at`` words into an array."""
        self.emit.store(value.raw, self._address(array, at), align=8)

    def call(self, name: str, *operands: Value | int) -> Value:
        """Use an instruction of the CPU, by LLVM's name for it; an int is an octet inside the instruction."""
        raw = [o.raw if isinstance(o, Value) else ir.Constant(_OCTET, o) for o in operands]
        known = self._module.globals
        if name not in known:
            ir.Function(self._module, ir.FunctionType(raw[0].type, [r.type for r in raw]), name)
        return Value(self, self.emit.call(known[name], raw))

    @contextmanager
    def count(
        self, start: Value | int, last: Value | int, step: int = 1, *carried: Carried
    ) -> Iterator[Value]:
        """Emit the block as the body of a loop: its number goes from ``start`` by steps, up to ``last``.

        carried: values that the body changes.

        After the loop the number is the first beyond.
        """
        before = self.emit.block
        test, body, after = (self._function.append_basic_block() for _ in range(3))
        self.emit.branch(test)
        self.emit.position_at_end(test)
        number = self.emit.phi(WORD)
        number.add_incoming(self._word(start), before)
        values = [self.emit.phi(each.value.raw.type) for each in carried]
        for each, value in zip(carried, values, strict=True):
            value.add_incoming(each.value.raw, before)
            each.value = Value(self, value)
        self.emit.cbranch(self.emit.icmp_signed("<=", number, self._word(last)), body, after)
        self.emit.position_at_end(body)
        yield Value(self, number)
        number.add_incoming((Value(self, number) + step).raw, self.emit.block)
        for each, value in zip(carried, values, strict=True):
            value.add_incoming(each.value.raw, self.emit.block)
            each.value = Value(self, value)
        self.emit.branch(test)
        self.emit.position_at_end(after)

    @contextmanager
    def where(self, word: Value, equals: int) -> Iterator[None]:
        """Emit the body of the ``with`` statement as code that runs if ``word`` equals ``equals``."""
        with self.emit.if_then(self.emit.icmp_signed("==", word.raw, self._word(equals))):
            yield

    def end(self) -> None:
        """Complete the function."""
        self.emit.ret_void()

    def _address(self, array: Value, at: Value | int) -> ir.Value:
        return self.emit.gep(array.raw, [self._word(at)], inbounds=True, source_etype=WORD)

    @staticmethod
    def _word(number: Value | int) -> ir.Value:
        return number.raw if isinstance(number, Value) else ir.Constant(WORD, number)
