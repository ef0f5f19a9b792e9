"""Turns of the candidates of a horizontal run: the values that the compute pair opens about a candidate, and when.

The score chooses one of three kinds. :class:`HiddenTurns` open a candidate at its turn. :class:`OpenedTurns` also
open candidates and split points as soon as a node appears. :class:`RankedTurns` open the order of all candidates,
too, so that many are judged at once: for scores that other specializations do not change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.cut import Candidate, Cut
from anonymize.joint.disclosure import Allowed
from anonymize.joint.engine import Engine
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.scores.score import (
    Bench,
    ContestPool,
    Pool,
    Prepare,
    Profiled,
    RankedPool,
    finest_of,
    opened_candidates,
)
from anonymize.joint.messages import (
    CANDIDATE_BYTES,
    decode_bit,
    decode_candidate,
    encode_bit,
    encode_candidate,
)
from crypto.encoding import Words, as_words, decode_words, encode_words, expect_length
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, expect_outcome

_CANDIDATE, _VALID, _SPLIT = "sealed/candidate", "sealed/valid", "sealed/split"

SPLITS = Allowed(
    "split",
    "all",
    "of each node that appeared whether it was a candidate, and its split point, also if it was never taken",
    finer=True,
)
RANKED_SPLITS = Allowed(
    "split", "all", "whether each new node is a candidate, and its split point, before its turn", finer=True
)
ORDER = Allowed(
    "order", "all", "the order of the candidates before their turns (not with `refine: child`)", finer=True
)


class HiddenTurns:
    """Turns of candidates that the pair opens one by one."""

    def __init__(self, pool: ContestPool, bench: Bench) -> None:
        self._pool = pool
        self._bench = bench
        self._pair = bench.pair
        self._told: bytes | None = None

    @property
    def pool(self) -> Pool:
        return self._pool

    def enter(
        self, nodes: Sequence[Profiled], parts: Sequence[Words], prepare: Prepare
    ) -> Rounds[Sequence[Candidate]]:
        known = finest_of(nodes)
        yield from prepare(known)
        yield from self._pool.add(nodes, parts)
        return known

    def next(self, cut: Cut) -> Rounds[Sequence[Candidate]]:
        """Open the best candidate, unless it came with the last verdict."""
        told, self._told = self._told, None
        if told is None:
            best = encode_candidate((yield from self._pool.pop()))
            told = yield from self._pair.tell_ahead(_CANDIDATE, best)
        deputy = self._pair.roster.deputy
        candidate = decode_candidate(told, self._bench.schema, cut, deputy, _CANDIDATE)
        if self._pair.engine is None and not self._pool.follow(candidate):
            raise RemoteProtocolError(deputy, _CANDIDATE, "a candidate that was not next")
        return () if candidate is None else (candidate,)

    def decide(self, n_asked: int, met: Sequence[CarriedWords]) -> Rounds[int]:
        """Open the verdict. If the candidate is discarded, the next candidate comes with the verdict.

        A discarded candidate leaves all others unchanged, so no sums are needed before the next candidate.
        """
        told = b""
        if met:
            is_met, following = yield from self._pool.pop_unless(met[0])
            told = encode_bit(is_met) + (b"" if is_met else encode_candidate(following))
        told = yield from self._pair.tell_ahead(_VALID, told)
        deputy = self._pair.roster.deputy
        is_met = decode_bit(told[:1], deputy, _VALID)
        expect_length(told, 1 if is_met else 1 + CANDIDATE_BYTES, deputy, _VALID)
        self._told = None if is_met else told[1:]
        return 0 if is_met else 1


class OpenedTurns(HiddenTurns):
    """Turns of candidates that are opened with their split points as soon as a node appears."""

    def enter(
        self, nodes: Sequence[Profiled], parts: Sequence[Words], prepare: Prepare
    ) -> Rounds[Sequence[Candidate]]:
        splits = yield from self._pool.add(nodes, parts)
        told = yield from _told_numbers(self._bench, splits, len(nodes))
        found = opened_candidates(nodes, told, self._pair.roster.deputy, _SPLIT)
        yield from prepare(found)
        return found


class RankedTurns:
    """Turns in an order that all know. Several candidates are judged together: the first valid one is applied."""

    def __init__(self, pool: RankedPool, bench: Bench) -> None:
        self._pool = pool
        self._bench = bench
        self._pair = bench.pair

    @property
    def pool(self) -> Pool:
        return self._pool

    def enter(
        self, nodes: Sequence[Profiled], parts: Sequence[Words], prepare: Prepare
    ) -> Rounds[Sequence[Candidate]]:
        yield from prepare(finest_of(nodes))
        numbers = yield from self._pool.add(nodes, parts)
        told = yield from _told_numbers(self._bench, numbers, self._pool.n_told(len(nodes)))
        return self._pool.enter(nodes, told, self._pair.roster.deputy, _SPLIT)

    def next(self, cut: Cut) -> Rounds[Sequence[Candidate]]:
        return self._pool.ranked()
        yield

    def decide(self, n_asked: int, met: Sequence[CarriedWords]) -> Rounds[int]:
        """Open the number of candidates before the first valid one, and discard these."""
        engine, told = self._pair.engine, b""
        if engine is not None:
            told = encode_words(as_words([(yield from _first_met(engine, met))]))
        told = yield from self._pair.tell_ahead(_VALID, told)
        deputy = self._pair.roster.deputy
        n_discarded = int(decode_words(told, 1, deputy, _VALID)[0])
        if n_discarded > n_asked:
            raise RemoteProtocolError(deputy, _VALID, "more discarded candidates than were judged")
        for candidate in self._pool.ranked()[:n_discarded]:
            self._pool.discard(candidate)
        return n_discarded


def _told_numbers(bench: Bench, numbers: Sequence[int], n_numbers: int) -> Rounds[list[int]]:
    """Tell all what the pair has opened about new nodes; numbers: at the pair. Return the numbers."""
    pair = bench.pair
    payload = yield from pair.tell_ahead(_SPLIT, encode_words(as_words(numbers)))
    words = decode_words(payload, n_numbers, pair.roster.deputy, _SPLIT)
    told: list[int] = bench.ledger.reveal("split", words, "all").tolist()
    return told


def _first_met(engine: Engine, met: Sequence[CarriedWords]) -> Rounds[int]:
    """Open the place of the first bit that is 1, and nothing else; without one, the number of bits."""
    circuit = circuits.first_met_circuit(len(met))
    outputs = yield from engine.run(circuit, 1, {"met": CarriedWords.concatenate(met)})
    so_far = np.asarray(outputs["met"]).reshape(-1).tolist()
    if so_far != sorted(so_far):
        expect_outcome(len(met), len(met), engine.peer)
    return so_far.count(0)
