"""The exact order of fractions numerator / denominator with denominators above 0.

Two ways. *Cross-multiplication* compares n_a·d_b with n_b·d_a: two products for each comparison, half of
their cost where the denominators are public inputs. *Keys* turn every fraction into one integer that
compares as the fraction does: one adder for each bit of the key, once; right where the same entries are
compared again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crypto.builder import FALSE, Builder, Literal, Word, add
from crypto.circuits.arithmetic import constant, extend, less, multiply
from crypto.circuits.selection import choose, keep_if
from crypto.errors import LocalProtocolError


@dataclass(frozen=True, slots=True)
class Entry:
    """One candidate: whether it counts, its fraction, and the key that decides between equal fractions."""

    valid: Literal
    numerator: Word
    denominator: Word
    tie: Word


def fraction_less(
    b: Builder, x: tuple[Word, Word], y: tuple[Word, Word], *, log_depth: bool = False
) -> Literal:
    """x < y for (numerator, denominator) pairs: two products and a comparison."""
    return less(b, multiply(b, x[0], y[1]), multiply(b, y[0], x[1]), log_depth=log_depth)


def best_fraction(
    b: Builder, entries: Sequence[Entry], *, log_depth: bool = False
) -> tuple[Literal, list[Literal]]:
    """Return (whether any entry is valid, the index of the greatest fraction among the valid ones).

    Of equal fractions the one with the smallest tie key wins, of equal tie keys the first. The index is 0
    if no entry is valid. Words in the same place have the same width in every entry.

    A tournament of neighbours: 4·p·q gates to compare numerators of p and denominators of q bits, for each
    entry but one; the denominators of the first round may be public.
    """
    if not entries:
        raise LocalProtocolError("no entries")
    width = max(1, (len(entries) - 1).bit_length())
    level = [(entry, constant(i, width)) for i, entry in enumerate(entries)]
    while len(level) > 1:
        winners = [_better(b, x, y, log_depth) for x, y in zip(level[0::2], level[1::2], strict=False)]
        level = winners + level[len(level) // 2 * 2 :]
    winner, index = level[0]
    return winner.valid, keep_if(b, winner.valid, index)


_Ranked = tuple[Entry, list[Literal]]


def _better(b: Builder, x: _Ranked, y: _Ranked, log_depth: bool) -> _Ranked:
    (first, i), (second, j) = x, y
    cross = multiply(b, first.numerator, second.denominator), multiply(b, second.numerator, first.denominator)
    # Lexicographic: validity, then the fraction, then the inverted tie key.
    ranks = [
        [*(t ^ 1 for t in entry.tie), *product, entry.valid]
        for entry, product in zip((first, second), cross, strict=True)
    ]
    second_wins = less(b, *ranks, log_depth=log_depth)
    entry = Entry(
        valid=b.or_(first.valid, second.valid),
        numerator=choose(b, second_wins, second.numerator, first.numerator),
        denominator=choose(b, second_wins, second.denominator, first.denominator),
        tie=choose(b, second_wins, second.tie, first.tie),
    )
    return entry, choose(b, second_wins, j, i)


def divide(b: Builder, x: Word, y: Word) -> list[Literal]:
    """⌊x / y⌋ for y > 0, as wide as x: len(y) + 1 gates for every bit of x, in a chain.

    Non-restoring division: whether the divisor is added or subtracted depends on the sign so far, and
    inverting it costs nothing.
    """
    width = len(y) + 2
    divisor = extend(y, width)
    rest: list[Literal] = [FALSE] * width
    positive: Literal = 1
    quotient = []
    for bit in reversed(x):
        doubled = [bit, *rest[:-1]]
        rest = add(b, doubled, [b.xor(q, positive) for q in divisor], positive)
        positive = rest[-1] ^ 1
        quotient.append(positive)
    return quotient[::-1]


def fraction_key(b: Builder, numerator: Word, denominator: Word) -> list[Literal]:
    """An integer that compares as numerator / denominator does, equality included.

    It is ⌊n·2^s / d⌋ with 2^s ≥ d_a·d_b for denominators of the given width, so s is twice that: different
    fractions are at least 1/(d_a·d_b) ≥ 2^−s apart, hence their keys at least 1. All keys that are compared
    must come from denominators of one width; d > 0. The key has len(numerator) + 2·len(denominator) bits
    and costs len(denominator) + 1 gates for each.
    """
    scaled = [FALSE] * (2 * len(denominator)) + list(numerator)
    return divide(b, scaled, denominator)
