"""Circuits of sealed kd, over additively shared counts of leader and deputy; compiled once per width."""

from __future__ import annotations

from functools import lru_cache

from anonymize.criteria.criterion import Rule
from anonymize.joint.lkc.circuits import InCircuit
from crypto.builder import FALSE, Builder, subtract
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import all_of, equal
from crypto.circuits.selection import encode


@lru_cache(maxsize=64)
def sides_circuit(rule: Rule, width: int, n_values: int) -> Circuit:
    """Return the circuit that tells if both sides of a cut are allowed, from shares of the left side's values.

    The group's values ``whole`` are public; the right-hand side has the difference.
    """
    kind, *numbers = rule.title
    b = Builder("/".join(map(str, ("sides", kind, width, n_values, *numbers))))
    left = b.input(rule.entry, Held.ADDITIVE_SHARED, width, n_values)
    whole = b.input("whole", Held.PUBLIC, width, n_values)
    right = [subtract(b, total, own) for total, own in zip(whole, left, strict=True)]
    on = InCircuit(b)
    b.output("met", To.CARRIED, [[all_of(b, [rule.met(on, left), rule.met(on, right)])]])
    return b.build()


@lru_cache(maxsize=32)
def ends_circuit(width: int) -> Circuit:
    """Return the circuit that tells if a number is 0 left of a cut, and if it is 0 right of the cut.

    The garbler enters its share of the number on the left, and the share less the group's public number; the
    evaluator its negated share. The number is 0 if both entries are equal, without an addition.
    """
    b = Builder(f"ends/{width}")
    left, right = b.input(Held.GARBLER.value, Held.GARBLER, width, 2)
    (other,) = b.input(Held.EVALUATOR.value, Held.EVALUATOR, width)
    b.output("none", To.CARRIED, [[equal(b, left, other)]])
    b.output("all", To.CARRIED, [[equal(b, right, other)]])
    return b.build()


TESTS_AT_ONCE = 4
"""Tests of a candidate judged by a circuit."""


@lru_cache(maxsize=16)
def zeros_circuit(rule: Rule, n_values: int) -> Circuit:
    """Return the circuit that tells if both sides of a cut pass tests that only look for values of 0."""
    kind, *numbers = rule.title
    b = Builder("/".join(map(str, ("zeros", kind, n_values, *numbers))))
    on, met = InCircuit(b), []
    for side in ("none", "all"):
        bits = b.input(side, Held.CARRIED, 1, TESTS_AT_ONCE * n_values)
        words = [[zero ^ 1] for (zero,) in bits]
        met += [rule.met(on, words[i : i + n_values]) for i in range(0, len(words), n_values)]
    b.output("met", To.CARRIED, [[all_of(b, met)]])
    return b.build()


@lru_cache(maxsize=16)
def first_circuit(count: int) -> Circuit:
    """Open the first present and valid candidate of ``count`` candidates: from 1, or 0 without such a candidate."""
    b = Builder(f"first/{count}")
    met = [bit for (bit,) in b.input("met", Held.CARRIED, 1, count)]
    present = [bit for (bit,) in b.input("present", Held.PUBLIC, 1, count)]
    found, lines = FALSE, []
    for one, there in zip(met, present, strict=True):
        valid = b.and_(one, there)
        lines.append(b.and_(valid, found ^ 1))
        found = b.or_(found, valid)
    b.output("first", To.BOTH, [encode(b, [found ^ 1, *lines])])
    return b.build()
