"""Secure comparison and secure maximum of private values.

Two parties compare private integers (:func:`secure_compare`) or find the best of their private candidates
(:func:`secure_maximum`). With n parties the candidates go to the compute pair as additive shares
(:func:`joint_maximum`). A candidate is (valid flag, numerator, denominator, tie key). Invalid candidates never win.
Fractions are compared exactly by cross-multiplication. Ties of fractions go to the smallest tie key, ties of keys
to the first candidate. Only the index of the winner is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crypto.builder import Builder, Word
from crypto.circuit import MAX_WIDTH, Circuit, Held, To
from crypto.circuits.arithmetic import less
from crypto.circuits.fraction import Entry, best_fraction
from crypto.encoding import Words, decode_integer, encode_integer
from crypto.errors import LocalProtocolError
from crypto.rounds import Rounds, receive, send
from crypto.two_party import Computation, Outputs, expect_outcome

_WINNER = "comparison/winner"
_INDEX_BYTES = 4
_FIELDS = ("valid", "numerator", "denominator", "tie")

Sharing: TypeAlias = Callable[[Words], Rounds["Words | None"]]
"""Gives the compute pair additive shares modulo 2**64 of the sum of all parties' vectors."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """The input of one party. The denominator of a valid candidate is above 0."""

    valid: bool = field(repr=False)
    numerator: int = field(repr=False)
    denominator: int = field(repr=False)
    tie: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class EntrantWidths:
    """Bits of numerators, denominators and tie keys: public and equal for all, each from 1 to 64."""

    numerator: int
    denominator: int
    tie: int

    def __post_init__(self) -> None:
        if not all(1 <= width <= MAX_WIDTH for width in (self.numerator, self.denominator, self.tie)):
            raise LocalProtocolError(f"widths from 1 to {MAX_WIDTH}, not {self}")

    def __str__(self) -> str:
        """Return the text in names of circuits, which both peers hash: a change changes the protocol."""
        return f"Widths(numerator={self.numerator}, denominator={self.denominator}, tie={self.tie})"

    @property
    def by_field(self) -> dict[str, int]:
        return dict(zip(_FIELDS, (1, self.numerator, self.denominator, self.tie), strict=True))


def secure_compare(
    computation: Computation, values: NDArray[np.uint64], width: int
) -> Rounds[NDArray[np.bool_]]:
    """Tell both parties where the garbler's value is greater than the evaluator's.

    Functionality:  [x_i > y_i] for every i, to both.
    Input, each:    ``values``, m unsigned integers of ``width`` ≤ 64 bits; m and width public and equal.
    Output, each:   m booleans.
    Leakage:        m, width.
    Rounds:         3, as :meth:`crypto.two_party.GarblerSession.run`.
    Bytes:          about 32 * width * m sent by the garbler, 4 * width * m by the evaluator.
    Assumes:        as there.
    Source:         Yao's millionaires; the comparator of Kolesnikov, Sadeghi, Schneider (CANS 2009), 1 AND
                    gate a bit.

    Raises LocalProtocolError for values that do not fit, RemoteProtocolError as there.
    """
    outputs = yield from computation.run(
        _compare_circuit(width), len(values), {computation.role.value: values.reshape(-1, 1)}
    )
    return np.asarray(outputs["greater"]).reshape(-1).astype(bool)


def secure_maximum(
    computation: Computation, candidates: Sequence[Entrant], counts: tuple[int, int], widths: EntrantWidths
) -> Rounds[int | None]:
    """Tell both parties the place of the best candidate among the garbler's, then the evaluator's.

    Functionality:  the index of the valid candidate with the greatest numerator / denominator (ties:
                    smallest tie key, then first), None without a valid candidate; to both.
    Input, each:    ``candidates`` (private); ``counts``, the numbers of candidates of garbler and
                    evaluator, and the widths are public and equal.
    Output, each:   the index, from 0 to sum(counts) − 1, or None.
    Leakage:        counts, widths.
    Rounds:         3, as :meth:`crypto.two_party.GarblerSession.run`.
    Bytes:          32 for every AND gate sent by the garbler, about 4 · p · q gates for each candidate but
                    one (numerators of p, denominators of q bits); 4 for every bit of the evaluator's
                    candidates sent by the evaluator.
    Assumes:        as there.
    Source:         tournament of comparisons by cross-multiplication; [T] 5.6, with garbled circuits.

    Raises LocalProtocolError for a wrong number of candidates or candidates that do not fit, RemoteProtocolError as
    there.
    """
    own = counts[computation.role is Held.EVALUATOR]
    if len(candidates) != own or sum(counts) < 1:
        raise LocalProtocolError(f"{len(candidates)} candidates, not {own} of {counts}")
    table = _table(candidates, widths)
    inputs = {f"{computation.role.value}/{name}": table[name] for name in _FIELDS if own}
    outputs = yield from computation.run(_private_maximum_circuit(counts, widths), 1, inputs)
    return _winner(outputs, sum(counts), computation.peer)


def joint_maximum(
    me: str,
    parties: Sequence[str],
    pair: tuple[str, str],
    candidate: Entrant,
    widths: EntrantWidths,
    share: Sharing,
    computation: Computation | None,
) -> Rounds[int | None]:
    """Tell n ≥ 2 parties the place in the roster of the party with the best candidate.

    Functionality:  as :func:`secure_maximum`, over a candidate of each party, to all.
    Input, each:    ``candidate`` (private). ``parties``, ``pair`` (the names of garbler and evaluator) and
                    widths are public and equal. ``share`` gives the pair additive shares of the sum of all
                    parties' vectors. The pair's members pass their session, all other parties None.
    Output, each:   the index of the winner in ``parties``, or None.
    Leakage:        n, widths; the pair learns no more than the remaining parties unless both collude.
    Rounds:         at most the rounds of ``share`` + 3 ("two_party/...") + 1 ("comparison/winner", n > 2).
    Bytes:          as ``share`` for 4 * n words; between the pair as :func:`secure_maximum` plus 32 for
                    every shared bit; 4 * (n - 2) sent by the garbler in the end.
    Assumes:        as there; garbler and evaluator do not collude.
    Source:         as there; shares to a compute pair.

    Raises LocalProtocolError for a candidate that does not fit or a roster without the pair, RemoteProtocolError
    for an index out of range.
    """
    _check_roster(me, parties, pair, computation)
    words = yield from share(_slot(parties.index(me), len(parties), candidate, widths))
    if computation is None or words is None:
        payload = yield from receive(_WINNER, pair[0])
        told = decode_integer(payload, _INDEX_BYTES, len(parties) + 1, pair[0], _WINNER)
        return None if told == len(parties) else told
    # Shares modulo 2**64 are shares modulo 2**width, too.
    inputs = {
        name: (part & np.uint64((1 << width) - 1)).reshape(1, -1)
        for part, (name, width) in zip(words.reshape(4, -1), widths.by_field.items(), strict=True)
    }
    outputs = yield from computation.run(_shared_maximum_circuit(len(parties), widths), 1, inputs)
    winner = _winner(outputs, len(parties), computation.peer)
    others = [party for party in parties if party not in pair]
    if me == pair[0] and others:
        payload = encode_integer(len(parties) if winner is None else winner, _INDEX_BYTES)
        yield from send(_WINNER, dict.fromkeys(others, payload))
    return winner


@lru_cache(maxsize=64)
def _compare_circuit(width: int) -> Circuit:
    b = Builder(f"compare/{width}")
    (x,) = b.input(Held.GARBLER.value, Held.GARBLER, width)
    (y,) = b.input(Held.EVALUATOR.value, Held.EVALUATOR, width)
    b.output("greater", To.BOTH, [[less(b, y, x)]])
    return b.build()


@lru_cache(maxsize=64)
def _private_maximum_circuit(counts: tuple[int, int], widths: EntrantWidths) -> Circuit:
    b = Builder(f"maximum/{counts}/{widths}")
    entries: list[Entry] = []
    for held, count in zip((Held.GARBLER, Held.EVALUATOR), counts, strict=True):
        if count:
            columns = [b.input(f"{held.value}/{n}", held, w, count) for n, w in widths.by_field.items()]
            entries += _entries(columns)
    return _finished(b, entries)


@lru_cache(maxsize=64)
def _shared_maximum_circuit(count: int, widths: EntrantWidths) -> Circuit:
    b = Builder(f"maximum/{count}/{widths}")
    columns = [b.input(n, Held.ADDITIVE_SHARED, w, count) for n, w in widths.by_field.items()]
    return _finished(b, _entries(columns))


def _entries(columns: Sequence[Sequence[Word]]) -> list[Entry]:
    return [Entry(flag[0], n, d, tie) for flag, n, d, tie in zip(*columns, strict=True)]


def _finished(b: Builder, entries: Sequence[Entry]) -> Circuit:
    valid, index = best_fraction(b, entries)
    b.output("valid", To.BOTH, [[valid]])
    b.output("index", To.BOTH, [index])
    return b.build()


def _winner(outputs: Outputs, count: int, peer: str) -> int | None:
    valid, index = (int(np.asarray(outputs[name])[0, 0]) for name in ("valid", "index"))
    return expect_outcome(index, count, peer) if valid else None


def _table(candidates: Sequence[Entrant], widths: EntrantWidths) -> dict[str, Words]:
    """Return the candidates field by field; uint64, shape (1, count) each."""
    for candidate in candidates:
        for name, width in widths.by_field.items():
            value = getattr(candidate, name)
            if not 0 <= value < 1 << width or int(value) != value:
                raise LocalProtocolError(f"a candidate's {name} is not an integer of {width} bits")
        if candidate.valid and not candidate.denominator:
            raise LocalProtocolError("a valid candidate's denominator is 0")
    return {
        name: np.array([[int(getattr(c, name)) for c in candidates]], dtype=np.uint64) for name in _FIELDS
    }


def _slot(place: int, n: int, candidate: Entrant, widths: EntrantWidths) -> Words:
    """Return a vector of 4 * n words: the candidate in the party's place, 0 elsewhere."""
    words = np.zeros((len(_FIELDS), n), dtype=np.uint64)
    for row, column in zip(words, _table([candidate], widths).values(), strict=True):
        row[place] = column[0, 0]
    return words.reshape(-1)


def _check_roster(
    me: str, parties: Sequence[str], pair: tuple[str, str], computation: Computation | None
) -> None:
    if me not in parties or not set(pair) <= set(parties) or len(set(parties)) != len(parties):
        raise LocalProtocolError(f"{me} and the pair {pair} must be in the roster, each name once")
    if (me in pair) != (computation is not None):
        raise LocalProtocolError("the members of the pair, and only they, have a session with each other")
    if computation is not None and me != pair[computation.role is Held.EVALUATOR]:
        raise LocalProtocolError(f"{me} is the {computation.role.value} of its session, not of the pair")
