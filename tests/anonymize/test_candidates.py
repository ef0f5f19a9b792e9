"""The order of candidates: exact, whatever floating point would make of it."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from anonymize.candidates import Proposal
from anonymize.cut import Candidate
from anonymize.scores.infogain import InfoGain
from anonymize.scores.score import NOTHING
from anonymize.taxonomy import Node


def proposal(column: int, gain: int, size: int) -> Proposal:
    return Proposal(Candidate(column, Node(0, 2, 0), ()), gain, size, np.zeros((0, 2), dtype=np.int64))


def test_candidates_whose_gains_no_float_tells_apart() -> None:
    """InfoGains a / b that differ by 1 / (b (b - 1)): the same double."""
    b = 2**31 - 1
    close = [
        proposal(0, 2**50 * b, b),
        proposal(1, 2**50 * b + 1, b),
        proposal(2, 2**50 * (b - 1) + 1, b - 1),
    ]
    assert len({p.gain / p.size for p in close}) == 1
    for order in permutations(close):
        pool = InfoGain().pool(NOTHING)
        for each in order:
            pool.add(each)
        taken = [pool.pop() for _ in close]
        assert [c.column for c in taken if c is not None] == [2, 1, 0]
