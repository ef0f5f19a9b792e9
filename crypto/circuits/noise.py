"""Geometric and discrete Laplace noise made of coins, and report noisy max.

The coins are input bits that neither side knows (``Held.COINS``); what is public about them is a
:class:`crypto.circuits.constants.NoisePlan`. [T] chapters 6 and 7 with the corrections of semantics §8.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from crypto.builder import Builder, Literal, Word, add
from crypto.circuit import Held
from crypto.circuits.arithmetic import add_wide, constant, extend, less_constant, negate_if
from crypto.circuits.constants import NoisePlan
from crypto.circuits.selection import Best, argmax, keep_if
from crypto.errors import LocalProtocolError


def coins(b: Builder, name: str, plan: NoisePlan, draws: int) -> list[list[Literal]]:
    """Declare the random bits of ``draws`` noise variables of one instance, one list of bits for each."""
    bits = b.input(name, Held.COINS, 1, plan.bits * draws)
    flat = [bit for (bit,) in bits]
    return [flat[i : i + plan.bits] for i in range(0, len(flat), plan.bits)]


def geometric(b: Builder, plan: NoisePlan, random: Word) -> list[Literal]:
    """A geometric variable, P(k) ∝ e^(−rate·k), unsigned: about coin_bits gates a digit."""
    if plan.zero is not None:
        raise LocalProtocolError("a plan for discrete Laplace noise, not for geometric")
    return _digits(b, plan, random)


def discrete_laplace(b: Builder, plan: NoisePlan, random: Word) -> list[Literal]:
    """A discrete Laplace variable, P(k) ∝ e^(−rate·|k|), two's complement.

    0 by a coin of its own, else a fair sign and one more than a geometric variable: half the coins of a
    difference of two geometric ones.
    """
    if plan.zero is None:
        raise LocalProtocolError("a plan for geometric noise, not for discrete Laplace")
    c = plan.coin_bits
    sign, zero, rest = random[0], less_constant(b, random[1 : 1 + c], plan.zero), random[1 + c :]
    magnitude = add_wide(b, _digits(b, plan, rest), constant(1, 1))
    kept = keep_if(b, zero ^ 1, magnitude)
    return negate_if(b, sign, extend(kept, len(kept) + 1))


def _digits(b: Builder, plan: NoisePlan, random: Word) -> list[Literal]:
    c = plan.coin_bits
    if len(random) != c * len(plan.digits):
        raise LocalProtocolError(f"{len(random)} random bits for {len(plan.digits)} coins of {c} bits")
    return [less_constant(b, random[i * c : (i + 1) * c], t) for i, t in enumerate(plan.digits)]


def add_noise(b: Builder, count: Word, noise: Word, width: int) -> list[Literal]:
    """count + noise, both two's complement, modulo 2**width."""
    return add(b, extend(count, width, signed=True), extend(noise, width, signed=True))


def noisy_argmax(
    b: Builder,
    plan: NoisePlan,
    scores: Sequence[Word],
    random: Sequence[Word],
    *,
    valid: Sequence[Literal] | None = None,
    log_depth: bool = False,
) -> Best:
    """Report noisy max: the valid entry with the greatest score plus geometric noise; ties to the first.

    scores:  unsigned, equal widths.
    random:  the random bits of one draw for each entry.

    With a = e^−rate, ideal draws and sensitivity Δ of every score, the choice is 2·Δ·rate-DP, Δ·rate-DP for
    monotone scores (McKenna, Sheldon 2020; Ding et al. 2021: permute-and-flip with exponential noise;
    semantics §8.2). The scores and noisy scores stay inside.
    """
    width = max(len(scores[0]) if scores else 0, len(plan.digits)) + 1
    noisy = [
        add(b, extend(score, width), extend(geometric(b, plan, bits), width))
        for score, bits in zip(scores, random, strict=True)
    ]
    return argmax(b, noisy, valid=valid, log_depth=log_depth)
