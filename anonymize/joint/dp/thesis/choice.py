"""`engine: thesis`: the protocols of [T] chapter 7 as published, for small ranges of scores.

Both partitions use shares of a random value below the sum of the weights (RVP). A comparison circuit chooses the
candidate whose segment contains the value. Corrections (semantics §8.2): one ring, reduced shares; R < L, so that a
weight of 0 never wins; a check that the weights are ε′-DP (:mod:`anonymize.joint.dp.thesis.weights`). Values that do
not fit are refused before anything is sent.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from anonymize.candidates import profile_length
from anonymize.dp.accounting import Dp
from anonymize.errors import SchemaError
from anonymize.joint.dp.run import DpRequest
from anonymize.joint.dp.thesis.weights import SUM_BITS
from anonymize.joint.engine import Engine
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Node
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import extend, total
from crypto.circuits.selection import select_below
from crypto.encoding import Words
from crypto.random_value import random_value
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, expect_outcome


def check_thesis(request: DpRequest) -> None:
    """Refuse options that the published protocols lack. Raises SchemaError."""
    if request.requirement.utility != "max":
        raise SchemaError(
            "job-invalid", "engine: thesis has utility max: scores of infogain are out of its range"
        )
    if request.noise != "each":
        raise SchemaError("job-invalid", "engine: thesis has noise each: both parties add noise of their own")


def most_candidates(schema: Schema, requirement: Dp) -> int:
    """Return a public bound on the candidates at a time, and on the grid points of an interval."""
    grown = requirement.specializations * (max(_widest(c, c.root) for c in schema.qid) - 1)
    points = max((profile_length(c, c.root) - 1 for c in schema.qid if c.is_numeric), default=0)
    return max(len(schema.qid) + grown, points)


def _widest(column: QidColumn, node: Node) -> int:
    """Return the most children of a node at or below ``node``."""
    children = column.children(node)
    return max([len(children) or 2, *(_widest(column, child) for child in children)])


@lru_cache(maxsize=64)
def weight_sum_circuit(count: int, width: int) -> Circuit:
    """Return the circuit SUM ([T] 7.5.2): shares of the sum of ``count`` weights."""
    b = Builder(f"sum of weights/{count}/{width}")
    weights = b.input("weights", Held.CARRIED, width, count)
    b.output("sum", To.ADDITIVE_SHARED, [extend(total(b, weights), SUM_BITS)])
    return b.build()


@lru_cache(maxsize=64)
def comparison_circuit(count: int, width: int, held: Held) -> Circuit:
    """Return COMPARISON ([T] Algorithms 7.3, 7.7): the first candidate with R < L, L the sum of weights up to it."""
    b = Builder(f"comparison/{count}/{width}/{held.value}")
    weights = b.input("weights", held, width, count)
    (r,) = b.input("r", Held.ADDITIVE_SHARED, SUM_BITS)
    b.output("index", To.BOTH, [select_below(b, weights, r)])
    return b.build()


def choose_by_weight(engine: Engine, weights: CarriedWords | Words, sums: Words) -> Rounds[int]:
    """Choose a candidate with probability weight / sum of weights; both learn the choice.

    weights:  carried words, or own additive shares: uint64, shape (count,).
    sums:     own additive share of the sum of the weights modulo 2**64, shape (1,).
    """
    r = yield from random_value(engine, sums, SUM_BITS)
    given: CarriedWords | Words
    count = len(weights)
    if isinstance(weights, CarriedWords):
        circuit, given = comparison_circuit(len(weights), weights.width, Held.CARRIED), weights
    else:
        circuit = comparison_circuit(len(weights), SUM_BITS, Held.ADDITIVE_SHARED)
        given = weights.reshape(1, -1)
    outputs = yield from engine.run(circuit, 1, {"weights": given, "r": r.reshape(1, 1)})
    return expect_outcome(int(np.asarray(outputs["index"])[0, 0]), count, engine.peer)
