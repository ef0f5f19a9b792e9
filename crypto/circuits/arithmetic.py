"""Sums, differences, comparisons and products of words.

Words are unsigned unless a function says otherwise; signed words are two's complement. Costs are AND gates for
words of w bits. :func:`less` is the cheapest comparison and right for large batches. For a batch of 1,
:func:`less_in_blocks` takes a quarter of the depth with less than twice the gates.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence

from crypto.builder import FALSE, TRUE, Builder, Literal, Word, add
from crypto.errors import LocalProtocolError


def constant(value: int, width: int) -> list[Literal]:
    """Return a public constant as a word; a negative constant in two's complement."""
    if not -(1 << width) // 2 <= value < 1 << width:
        raise LocalProtocolError(f"the constant {value} does not fit {width} bits")
    return [value >> i & 1 for i in range(width)]


def extend(x: Word, width: int, *, signed: bool = False) -> list[Literal]:
    """Extend a word with zeros, or with its sign, to ``width`` bits; cut a longer word."""
    fill = x[-1] if signed and x else FALSE
    return [*x[:width], *[fill] * (width - len(x))]


def add_wide(b: Builder, x: Word, y: Word) -> list[Literal]:
    """Return x + y, 1 bit wider than the wider operand: w gates."""
    width = max(len(x), len(y)) + 1
    return add(b, extend(x, width), extend(y, width))


def negate_if(b: Builder, choice: Literal, x: Word) -> list[Literal]:
    """Return −x modulo 2**w if ``choice``, else x: w − 1 gates."""
    flipped = [b.xor(p, choice) for p in x]
    return add(b, flipped, [FALSE] * len(x), choice)


def total(b: Builder, words: Sequence[Word]) -> list[Literal]:
    """Return the sum of the words, wide enough never to overflow: about 1 gate for every bit of every word."""
    bound = sum((1 << len(word)) - 1 for word in words)
    width = max(1, bound.bit_length())
    return add_columns(b, [[word[i] for word in words if i < len(word)] for i in range(width)])


def total_of_absolutes(b: Builder, words: Sequence[Word], width: int) -> list[Literal]:
    """Return Σ |x| of two's complement words of equal width w, modulo 2**width: about 1 gate for every bit of every
    word.

    For a negative x, |x| is x with flipped bits, plus 1. The added 1 is a further bit of the lowest column.
    """
    columns: list[list[Literal]] = [[] for _ in range(width)]
    for word in words:
        *bits, sign = word
        for column, bit in zip(columns, bits, strict=False):
            column.append(b.xor(bit, sign))
        columns[0].append(sign)
    return add_columns(b, columns)


def add_columns(b: Builder, columns: Sequence[Sequence[Literal]]) -> list[Literal]:
    """Return Σ_i 2**i · (sum of the bits in column i), modulo 2**len(columns).

    Three bits of a column become a sum bit and a carry, oldest first (Wallace 1964): 1 gate each time, in depth
    log2 of the height plus the number of columns.
    """
    heaps = [deque(bit for bit in column if bit != FALSE) for column in columns]
    heaps.append(deque())  # carries that fall off
    for column, above in itertools.pairwise(heaps):
        while len(column) > 1:
            p, q = column.popleft(), column.popleft()
            r = column.popleft() if column else FALSE
            p_r, q_r = b.xor(p, r), b.xor(q, r)
            column.append(b.xor(p_r, q))
            if above is not heaps[-1]:
                above.append(b.xor(r, b.and_(p_r, q_r)))
    return [column[0] if column else FALSE for column in heaps[:-1]]


def prefix_sums(b: Builder, words: Sequence[Word], width: int) -> list[list[Literal]]:
    """Return the running sums x_0, x_0 + x_1, … modulo 2**width: width − 1 gates a word."""
    sums: list[list[Literal]] = []
    for word in words:
        wide = extend(word, width)
        sums.append(add(b, sums[-1], wide) if sums else wide)
    return sums


def less(b: Builder, x: Word, y: Word) -> Literal:
    """Return x < y, widths may differ: w gates in depth w."""
    width = max(len(x), len(y))
    return _borrow(b, extend(x, width), extend(y, width), FALSE)


def _borrow(b: Builder, x: Word, y: Word, borrow: Literal) -> Literal:
    """Return the borrow of x − y − borrow: w gates."""
    for p, q in zip(x, y, strict=True):
        # Majority of ¬p, q and the borrow below.
        borrow = b.xor(borrow, b.and_(b.xor(p ^ 1, borrow), b.xor(q, borrow)))
    return borrow


BLOCKS = 4
"""Blocks of bits of a comparison that are worked through side by side."""


def less_in_blocks(b: Builder, x: Word, y: Word) -> Literal:
    """Return x < y, widths equal: 7/4·w gates in depth 3 + w / 4.

    Blocks of bits are compared at the same time, each for both borrows of the blocks below it (carry select).
    """
    size = max(1, -(-len(x) // BLOCKS))
    borrow: Literal = FALSE
    for start in range(0, len(x), size):
        p, q = x[start : start + size], y[start : start + size]
        without = _borrow(b, p, q, FALSE)
        differs = b.xor(without, _borrow(b, p, q, TRUE)) if start else FALSE
        borrow = b.xor(without, b.and_(borrow, differs))
    return borrow


def less_signed(b: Builder, x: Word, y: Word) -> Literal:
    """Return x < y for two's complement words of equal width, as :func:`less_in_blocks`."""
    return less_in_blocks(b, [*x[:-1], x[-1] ^ 1], [*y[:-1], y[-1] ^ 1])


def less_constant(b: Builder, x: Word, bound: int) -> Literal:
    """Return x < bound for a public bound: at most w − 1 gates; low zeros of the bound are free."""
    if bound <= 0:
        return FALSE
    if bound >> len(x):
        return TRUE
    below: Literal = FALSE
    for i, p in enumerate(x):
        below = b.and_(p, below ^ 1) ^ 1 if bound >> i & 1 else b.and_(p ^ 1, below)
    return below


def all_of(b: Builder, bits: Sequence[Literal]) -> Literal:
    """Return the conjunction of any number of bits (true for no bits): len − 1 gates in logarithmic depth."""
    return _tree(b.and_, bits, TRUE)


def any_of(b: Builder, bits: Sequence[Literal]) -> Literal:
    """Return the disjunction of any number of bits (false for no bits): len − 1 gates in logarithmic depth."""
    return _tree(b.or_, bits, FALSE)


def _tree(gate: Callable[[Literal, Literal], Literal], bits: Sequence[Literal], empty: Literal) -> Literal:
    level = list(bits) or [empty]
    while len(level) > 1:
        joined = [gate(p, q) for p, q in zip(level[0::2], level[1::2], strict=False)]
        level = joined + level[len(level) // 2 * 2 :]
    return level[0]


def is_zero(b: Builder, x: Word) -> Literal:
    """Return x = 0: w − 1 gates in logarithmic depth."""
    return any_of(b, x) ^ 1


def equal(b: Builder, x: Word, y: Word) -> Literal:
    """Return x = y, widths may differ: w − 1 gates in logarithmic depth."""
    width = max(len(x), len(y))
    pairs = zip(extend(x, width), extend(y, width), strict=True)
    return is_zero(b, [b.xor(p, q) for p, q in pairs])


def multiply(b: Builder, x: Word, y: Word) -> list[Literal]:
    """Return x · y in full, len(x) + len(y) bits: about 2·len(x)·len(y) gates.

    For a public factor see :func:`multiply_by_public`.
    """
    columns: list[list[Literal]] = [[] for _ in range(len(x) + len(y))]
    for i, p in enumerate(x):
        for j, q in enumerate(y):
            columns[i + j].append(b.and_(p, q))
    return add_columns(b, columns)


def shift_right(b: Builder, x: Word, amount: Word) -> list[Literal]:
    """Return x >> amount, as wide as x: free for a public amount, else len(x)·len(amount) gates."""
    shifted = list(x)
    for place, bit in enumerate(amount):
        far = extend(shifted[1 << place :], len(x))
        shifted = [b.mux(bit, one, zero) for one, zero in zip(far, shifted, strict=True)]
    return shifted


LONG = 24
"""Bits of a public factor from which digits of three bits take fewer gates than digits of two bits."""


def multiply_by_public(b: Builder, x: Word, y: Word) -> list[Literal]:
    """Return x · y in full for a public word y, len(x) + len(y) bits: about len(x)·len(y) / 3 gates; / 2 below
    LONG bits of y.
    """
    return add_columns(b, product_columns(b, x, y))


def product_columns(b: Builder, x: Word, y: Word) -> list[list[Literal]]:
    """Return the bits that add up to x · y for a public word y, by their places: for :func:`add_columns`.

    The public bits of each digit of y choose one of the multiples 0 … 7·x or 0 … 3·x, which is free. A column has a
    bit of each digit at most.
    """
    bits = 3 if len(y) >= LONG else 2
    multiples = _multiples(b, x, bits)
    columns: list[list[Literal]] = [[] for _ in range(len(x) + len(y))]
    for start in range(0, len(y), bits):
        digit = y[start : start + bits]
        chosen = _chosen(b, digit, multiples[: 1 << len(digit)])
        for column, bit in zip(columns[start:], chosen, strict=False):
            column.append(bit)
    return columns


def _multiples(b: Builder, x: Word, bits: int) -> list[list[Literal]]:
    """Return 0·x, 1·x, … below 2**bits, all of len(x) + bits bits."""
    width = len(x) + bits
    multiples = [[FALSE] * width, extend(x, width)]
    for factor in range(2, 1 << bits):
        half = multiples[factor >> 1]
        double = [FALSE, *half[:-1]]
        multiples.append(add(b, double, multiples[1]) if factor & 1 else double)
    return multiples


def _chosen(b: Builder, digit: Word, multiples: Sequence[Word]) -> list[Literal]:
    """Return the multiple at a public digit: halve the list with each bit, the highest bit first."""
    chosen = [list(multiple) for multiple in multiples]
    for bit in reversed(digit):
        half = len(chosen) // 2
        pairs = zip(chosen[:half], chosen[half:], strict=True)
        chosen = [[b.mux(bit, one, zero) for zero, one in zip(*pair, strict=True)] for pair in pairs]
    return chosen[0]
