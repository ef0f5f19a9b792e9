"""The exact order of fractions numerator / denominator with denominators above 0.

By cross-multiplication: n_a·d_b is compared with n_b·d_a, two products for each comparison, half of their cost
where the denominators are public inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crypto.builder import Builder, Literal, Word
from crypto.circuits.arithmetic import constant, less_in_blocks, multiply
from crypto.circuits.selection import choose, keep_if
from crypto.errors import LocalProtocolError


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate: a validity flag, a fraction, and a key that decides between equal fractions."""

    valid: Literal
    numerator: Word
    denominator: Word
    tie: Word


def best_fraction(b: Builder, entries: Sequence[Entry]) -> tuple[Literal, list[Literal]]:
    """Return (True if an entry is valid, the index of the greatest fraction among the valid entries).

    Ties of fractions go to the smallest tie key, ties of keys to the first entry. The index is 0 if no entry is
    valid. Corresponding words have the same width in every entry.

    A tournament of neighbours: 4·p·q gates to compare numerators of p and denominators of q bits, for each entry
    but one. The denominators of the first round may be public.
    """
    if not entries:
        raise LocalProtocolError("no entries")
    width = max(1, (len(entries) - 1).bit_length())
    level = [(entry, constant(i, width)) for i, entry in enumerate(entries)]
    while len(level) > 1:
        winners = [_better(b, x, y) for x, y in zip(level[0::2], level[1::2], strict=False)]
        level = winners + level[len(level) // 2 * 2 :]
    winner, index = level[0]
    return winner.valid, keep_if(b, winner.valid, index)


_Ranked = tuple[Entry, list[Literal]]


def _better(b: Builder, x: _Ranked, y: _Ranked) -> _Ranked:
    (first, i), (second, j) = x, y
    cross = multiply(b, first.numerator, second.denominator), multiply(b, second.numerator, first.denominator)
    # Lexicographic: validity, then the fraction, then the inverted tie key.
    ranks = [
        [*(t ^ 1 for t in entry.tie), *product, entry.valid]
        for entry, product in zip((first, second), cross, strict=True)
    ]
    second_wins = less_in_blocks(b, *ranks)
    entry = Entry(
        valid=b.or_(first.valid, second.valid),
        numerator=choose(b, second_wins, second.numerator, first.numerator),
        denominator=choose(b, second_wins, second.denominator, first.denominator),
        tie=choose(b, second_wins, second.tie, first.tie),
    )
    return entry, choose(b, second_wins, j, i)
