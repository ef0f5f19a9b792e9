"""The integer score of semantics §3.4: F(x) ≈ 2^20 · x · log2 x and the information gain made of it.

:func:`f` is the function in the clear, :func:`f_word` the same bit for bit as a circuit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import cache

from crypto.builder import FALSE, Builder, Literal, Word, add, subtract
from crypto.circuits.arithmetic import extend, multiply, total
from crypto.circuits.selection import encode, entry
from crypto.errors import LocalProtocolError

MAX_BITS = 31
FRACTION_BITS = 20
LOG_ERROR = 3
"""Bound of |F(x) / x − 2**FRACTION_BITS · log2 x| for x ≥ 1; the tests go through all lines of the table."""
_INDEX_BITS = 9
_STEP_BITS = 12
_DIGITS = 50
_LOOKED_UP_BITS = 10


@cache
def log2_table() -> tuple[int, ...]:
    """Return T[j] = round(2^20 · log2(1 + j/512)), j = 0 … 512, from correctly rounded decimal logarithms.

    No entry comes near a tie (the nearest is 1.5e-3 away), so 50 digits decide every entry.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        scale = (1 << FRACTION_BITS) / Decimal(2).ln()
        ones = 1 << _INDEX_BITS
        return tuple(
            int((scale * (Decimal(ones + j) / ones).ln()).to_integral_value()) for j in range(ones + 1)
        )


@cache
def _slopes() -> tuple[int, ...]:
    """Return T[j + 1] − T[j], j = 0 … 511."""
    return tuple(high - low for low, high in itertools.pairwise(log2_table()))


def f(x: int) -> int:
    """Return F(x) of semantics §3.4 for 0 ≤ x < 2^31."""
    if not 0 <= x < 1 << MAX_BITS:
        raise LocalProtocolError(f"F is defined below 2**{MAX_BITS}")
    if x < 2:
        return 0
    k = x.bit_length() - 1
    fraction = (x << (30 - k)) - (1 << 30)
    i, t = fraction >> 21, fraction >> 9 & 4095
    log = log2_table()[i] + (_slopes()[i] * t >> _STEP_BITS)
    return x * ((k << FRACTION_BITS) + log)


def f_word(b: Builder, x: Word) -> list[Literal]:
    """Return F of a word of at most 31 bits, as wide as the greatest value: 1,547 gates for 20 bits, 2,180 for 31.

    Words of up to 10 bits use a table: 11 gates for 4 bits, 55 for 6, 146 for 8, 350 for 10.
    """
    if len(x) > MAX_BITS:
        raise LocalProtocolError(f"F takes words of at most {MAX_BITS} bits, not {len(x)}")
    width = max(1, f((1 << len(x)) - 1).bit_length())
    if len(x) <= _LOOKED_UP_BITS:
        return entry(b, x, [f(value) for value in range(1 << len(x))], width)
    leading = _leading_one(b, x)
    k = encode(b, leading)
    fraction = _below_leading(b, x, leading)
    index, step = fraction[:_INDEX_BITS], fraction[_INDEX_BITS:]
    lines = [low | slope << FRACTION_BITS for low, slope in zip(log2_table(), _slopes(), strict=False)]
    line = entry(b, index[::-1], lines, FRACTION_BITS + max(_slopes()).bit_length())
    low, slope = line[:FRACTION_BITS], line[FRACTION_BITS:]
    rise = multiply(b, slope, step[::-1])[_STEP_BITS:]
    log = add(b, low, extend(rise, FRACTION_BITS))  # below 2^20: t < 4096 stays under the next entry
    return multiply(b, x, [*log, *k])[:width]


def _leading_one(b: Builder, x: Word) -> list[Literal]:
    """Return w lines; line i is 1 iff bit i is the highest set bit: w − 1 gates."""
    seen: Literal = FALSE
    lines = []
    for bit in reversed(x):
        now = b.or_(seen, bit)
        lines.append(b.xor(now, seen))
        seen = now
    return lines[::-1]


def _below_leading(b: Builder, x: Word, leading: Sequence[Literal]) -> list[Literal]:
    """Return the 21 bits below the highest set bit, highest first, filled up with zeros."""
    distance = encode(b, leading[::-1])
    shifted = list(x)
    for place in reversed(range(len(distance))):
        far = [FALSE] * (1 << place) + shifted
        shifted = [b.mux(distance[place], one, zero) for one, zero in zip(far, shifted, strict=False)]
    below = shifted[:-1][::-1]
    wanted = _INDEX_BITS + _STEP_BITS
    return extend(below, wanted)


def sum_of_f(b: Builder, counts: Sequence[Word]) -> list[Literal]:
    """Return Σ F over the counts, wide enough."""
    return total(b, [f_word(b, count) for count in counts])


def impurity(b: Builder, class_counts: Sequence[Word]) -> list[Literal]:
    """Return F(Σ_cls n_cls) − Σ_cls F(n_cls), two's complement: ≈ 2^20 · n · entropy."""
    whole = f_word(b, total(b, class_counts))
    parts = sum_of_f(b, class_counts)
    width = max(len(whole), len(parts)) + 1
    return subtract(b, extend(whole, width), extend(parts, width))


def gain(b: Builder, parent: Word, children: Sequence[Sequence[Word]]) -> list[Literal]:
    """Return gain(v) of semantics §3.4, two's complement.

    parent:    impurity of v, two's complement: a public input if the counts of v are public, else
               :func:`impurity` of the counts.
    children:  class counts of every child.
    """
    terms = [impurity(b, class_counts) for class_counts in children]
    width = max(len(parent), max((len(t) for t in terms), default=0) + len(terms).bit_length()) + 1
    rest = extend(parent, width, signed=True)
    for term in terms:
        rest = subtract(b, rest, extend(term, width, signed=True))
    return rest
