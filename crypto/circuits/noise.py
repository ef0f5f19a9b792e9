"""Geometric and discrete Laplace noise made of coins, and report noisy max.

The coins are input bits unknown to both sides (``Held.COINS``). Their public description is a
:class:`crypto.circuits.constants.NoisePlan`. [T] chapters 6 and 7 with the corrections of semantics §8.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from crypto.builder import Builder, Literal, Word, add
from crypto.circuit import Held
from crypto.circuits.arithmetic import extend, less
from crypto.circuits.constants import AliasTable, NoisePlan
from crypto.circuits.selection import Best, argmax, keep_if, lookup, one_hot
from crypto.errors import LocalProtocolError


def coins(b: Builder, name: str, plan: NoisePlan, draws: int) -> list[list[Literal]]:
    """Declare the random bits of ``draws`` noise variables of one instance, a list of bits for each variable."""
    bits = b.input(name, Held.COINS, 1, plan.bits * draws)
    flat = [bit for (bit,) in bits]
    return [flat[i : i + plan.bits] for i in range(0, len(flat), plan.bits)]


def geometric(b: Builder, plan: NoisePlan, random: Word) -> list[Literal]:
    """Return a geometric variable, P(k) ∝ e^(−rate·k), unsigned: :func:`drawn` for each of the plan's tables."""
    if plan.signed:
        raise LocalProtocolError("a plan for discrete Laplace noise, not for geometric")
    return _bits(b, plan, random)


def discrete_laplace(b: Builder, plan: NoisePlan, random: Word) -> list[Literal]:
    """Return a discrete Laplace variable, P(k) ∝ e^(−rate·|k|), two's complement: a geometric variable G and a
    sign.

    A negative variable is −1 − G, all bits of G flipped: the sign is an independent bit, and flipping is free.
    """
    if not plan.signed:
        raise LocalProtocolError("a plan for geometric noise, not for discrete Laplace")
    *digits, sign = _bits(b, plan, random)
    return [*(b.xor(digit, sign) for digit in digits), sign]


def _bits(b: Builder, plan: NoisePlan, random: Word) -> list[Literal]:
    c = plan.coin_bits
    if len(random) != plan.bits:
        raise LocalProtocolError(f"{len(random)} random bits for {len(plan.tables)} tables of {c} bits")
    return [
        bit for i, table in enumerate(plan.tables) for bit in drawn(b, table, random[i * c : (i + 1) * c])
    ]


def drawn(b: Builder, table: AliasTable, random: Word) -> list[Literal]:
    """Return a value of b bits drawn by a table from c random bits.

    Costs 2^b − b − 1 gates for the column, c gates for the value.
    """
    column, rest = random[: table.bits], random[table.bits :]
    lines = one_hot(b, column)
    moves = less(b, rest, lookup(b, lines, table.stays, len(rest))) ^ 1
    changes = lookup(b, lines, [i ^ alias for i, alias in enumerate(table.aliases)], table.bits)
    return [b.xor(bit, change) for bit, change in zip(column, keep_if(b, moves, changes), strict=True)]


def add_noise(b: Builder, count: Word, noise: Word, width: int) -> list[Literal]:
    """Return count + noise, both two's complement, modulo 2**width."""
    return add(b, extend(count, width, signed=True), extend(noise, width, signed=True))


def noisy_argmax(
    b: Builder,
    plan: NoisePlan,
    scores: Sequence[Word],
    random: Sequence[Word],
    *,
    valid: Sequence[Literal] | None = None,
) -> Best:
    """Report noisy max: the valid entry with the greatest score plus geometric noise; ties to the first.

    scores:  unsigned, equal widths.
    random:  the random bits of one draw for each entry.

    With a = e^−rate, ideal draws and sensitivity Δ of every score, the choice is 2·Δ·rate-DP, Δ·rate-DP for
    monotone scores (McKenna, Sheldon 2020; Ding et al. 2021: permute-and-flip with exponential noise;
    semantics §8.2). The scores and noisy scores stay inside.
    """
    width = max(len(scores[0]) if scores else 0, plan.width) + 1
    noisy = [
        add(b, extend(score, width), extend(geometric(b, plan, bits), width))
        for score, bits in zip(scores, random, strict=True)
    ]
    return argmax(b, noisy, valid=valid)
