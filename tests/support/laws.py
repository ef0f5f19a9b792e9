"""Laws of what circuits draw, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from crypto.circuits.constants import AliasTable, NoisePlan

Case = tuple[int, int]
"""A column of a table, and the rest of the random bits as a number."""


def cases_of(table: AliasTable, coin_bits: int) -> dict[Case, tuple[int, Fraction]]:
    """Return the cases of a table, and how often each comes: for each column the last number below its
    threshold stands for all below it, and the threshold itself for the others.
    """
    found: dict[Case, tuple[int, Fraction]] = {}
    size = 1 << coin_bits - table.bits
    for column, (stays, alias) in enumerate(zip(table.stays, table.aliases, strict=True)):
        if stays:
            found[column, stays - 1] = column, Fraction(stays, 1 << coin_bits)
        found[column, stays] = alias, Fraction(size - stays, 1 << coin_bits)
    return found


def law_of_table(table: AliasTable, coin_bits: int) -> dict[int, Fraction]:
    """The distribution of its values."""
    law = dict.fromkeys(range(len(table.stays)), Fraction(0))
    for value, p in cases_of(table, coin_bits).values():
        law[value] += p
    return law


def exact_law(plan: NoisePlan) -> dict[int, Fraction]:
    """The distribution of a draw, in fractions: two's complement if signed."""
    law = {0: Fraction(1)}
    place = 0
    for table in plan.tables:
        of_table = law_of_table(table, plan.coin_bits)
        law = {k + (v << place): p * q for k, p in law.items() for v, q in of_table.items()}
        place += table.bits
    return {_as_drawn(word, plan): p for word, p in law.items()}


def _as_drawn(word: int, plan: NoisePlan) -> int:
    """The number that the bits of all tables stand for: with the sign set, all of them are flipped."""
    digits = plan.width - plan.signed
    return ~(word - (1 << digits)) if plan.signed and word >> digits else word


def _coins(cases: tuple[Case, ...], plan: NoisePlan) -> list[int]:
    """The random bits that are these columns and numbers."""
    words = [c | rest << table.bits for (c, rest), table in zip(cases, plan.tables, strict=True)]
    return [word >> i & 1 for word in words for i in range(plan.coin_bits)]


def outcomes(plan: NoisePlan) -> list[tuple[list[int], Fraction]]:
    """Every outcome of the coins of one variable, with its probability."""
    found = []
    for cases in product(*(cases_of(table, plan.coin_bits).items() for table in plan.tables)):
        p = Fraction(1)
        for _, (_, q) in cases:
            p *= q
        found.append((_coins(tuple(case for case, _ in cases), plan), p))
    assert sum(p for _, p in found) == 1
    return found


def coins_for(plan: NoisePlan, drawn: int) -> list[int]:
    """Random bits that make a geometric variable this; KeyError if none do."""
    cases = []
    for table in plan.tables:
        found = {v: case for case, (v, p) in cases_of(table, plan.coin_bits).items() if p}
        cases.append(found[drawn & (1 << table.bits) - 1])
        drawn >>= table.bits
    return _coins(tuple(cases), plan)


def drawn_by(plan: NoisePlan, coins: list[int]) -> int:
    """Draw from random bits by the definition."""
    word = place = 0
    for i, table in enumerate(plan.tables):
        own = coins[i * plan.coin_bits : (i + 1) * plan.coin_bits]
        number = sum(int(bit) << k for k, bit in enumerate(own))
        column, rest = number & (1 << table.bits) - 1, number >> table.bits
        word |= (column if rest < table.stays[column] else table.aliases[column]) << place
        place += table.bits
    return _as_drawn(word, plan)
