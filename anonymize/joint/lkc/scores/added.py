"""Score `added` in joint runs: candidates are public, their counts by context stay shared.

A(v) = Σ_x impurity(n_x) + Σ_x U·(classes_x − 1) − Σ_x Σ_c (impurity(n_x,c) + U·(classes_x − 1)·[n_x,c > 0]). The
first two sums are public; the subtracted terms are added up inside circuits. Terms of unrefined contexts are carried
from turn to turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

import numpy as np

from anonymize.contexts import MOST_CONTEXTS, PARAMETER, Large, beyond_one
from anonymize.criteria.criterion import Bools
from anonymize.cut import Candidate
from anonymize.joint.disclosure import Allowed
from anonymize.joint.engine import Engine, Fields, carried
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.scores.infogain import PAIR
from anonymize.joint.lkc.scores.looked_up import MOST_BITS, can_look_up, entered, looked_up_losses
from anonymize.joint.lkc.scores.opened import Entered, OpenedPool
from anonymize.joint.lkc.scores.score import Bench, Turns, joined
from anonymize.joint.lkc.scores.terms import terms_beside
from anonymize.joint.lkc.turns import SPLITS, OpenedTurns
from anonymize.score import impurity
from anonymize.scores.added import COUNTS, Added, FollowedContexts
from anonymize.scores.score import Wanted
from anonymize.table import Ints, Schema
from crypto.circuit import Circuit
from crypto.circuits.score import f
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import Asked, CarriedWords, Outputs, Value

_CONTEXTS = Allowed(
    COUNTS, "leader", "class counts of a candidate's children in every context of its node", finer=True
)


@dataclass(frozen=True)
class JointAdded(Added):
    """Score `added` with its circuits."""

    reveals: ClassVar[Mapping[str, Sequence[Allowed]]] = {
        "horizontal/sealed": (SPLITS,),
        "horizontal/leader": (SPLITS, _CONTEXTS),
    }

    def sealed(self, bench: Bench) -> Turns:
        return OpenedTurns(AddedPool(bench), bench)

    def fraction_bits(self, schema: Schema, n_records: int) -> tuple[int, int]:
        return max(1, f(n_records).bit_length()), 1


@dataclass(frozen=True)
class _Part:
    """Own shares of some contexts of a candidate.

    totals:  public class counts of each context: int64, shape (n_contexts, n_classes).
    counts:  by child: shape (n_contexts, n_children, n_classes).
    """

    totals: Ints = field(repr=False)
    counts: Words = field(repr=False)

    @property
    def told_apart(self) -> Bools:
        """Contexts with two classes or more; other contexts cannot add anything."""
        several: Bools = (self.totals > 0).sum(axis=1) > 1
        return several

    def take(self, kept: Bools) -> _Part:
        return _Part(self.totals[kept], self.counts[kept])


@dataclass(frozen=True)
class _Terms:
    """Subtracted terms of contexts: own additive shares of looked-up terms, carried words of computed terms.

    shares:  uint64, shape (n_contexts,); 0 for a carried word.
    place:   of each context among the carried words; -1 for a looked-up term: int64, shape (n_contexts,).
    words:   carried words, in one vector or more.
    """

    shares: Words = field(repr=False)
    place: Ints = field(repr=False)
    words: Sequence[CarriedWords] = ()

    def take(self, contexts: Ints) -> _Terms:
        """Return the terms of some contexts, in their order."""
        place = self.place[contexts]
        is_word = place >= 0
        words = (joined(self.words).take(place[is_word]),) if is_word.any() else ()
        return _Terms(self.shares[contexts], np.where(is_word, np.cumsum(is_word) - 1, -1), words)

    def then(self, more: _Terms) -> _Terms:
        """Return our terms, then further terms."""
        shift = sum(map(len, self.words))
        place = np.where(more.place >= 0, more.place + shift, -1)
        shares = np.concatenate([self.shares, more.shares])
        return _Terms(shares, np.concatenate([self.place, place]), (*self.words, *more.words))


class _Contexts:
    """Contexts of several parts, one after the other, all looked up or all computed.

    totals:     public class counts: int64, shape (n_contexts, n_classes).
    rows:       own shares of the class counts of every child: uint64, shape (n_rows, n_classes).
    owner:      context of each row: shape (n_rows,).
    penalties:  of every child with a record, public: int64, shape (n_contexts,).
    look_up:    True if the terms are looked up.
    halved:     True for contexts of two children: a look-up of the first child stands for both.
    """

    def __init__(self, parts: Sequence[_Part], engine: Engine) -> None:
        self.totals = np.concatenate([part.totals for part in parts])
        self.rows = np.concatenate([part.counts.reshape(-1, part.counts.shape[2]) for part in parts])
        self.n_children = np.repeat(
            [part.counts.shape[1] for part in parts], [len(part.totals) for part in parts]
        )
        self.owner = np.repeat(np.arange(len(self.totals)), self.n_children)
        self.penalties = _penalties(self.totals)
        self.look_up = can_look_up(engine, int(self.totals.sum(axis=1).max(initial=0)))
        self.halved = self.n_children == PAIR
        self._ends = np.cumsum([len(part.totals) for part in parts])

    @property
    def by_part(self) -> list[Ints]:
        """Numbers of the contexts of each part."""
        return np.split(np.arange(self._ends[-1]), self._ends[:-1])

    @property
    def place(self) -> Ints:
        """Place of each context among the computed contexts; -1 for a looked-up context."""
        return np.full(len(self.totals), -1) if self.look_up else np.arange(len(self.totals))

    @property
    def asked(self) -> Ints:
        """Rows that are looked up."""
        is_first = np.append(True, self.owner[1:] != self.owner[:-1])
        return np.flatnonzero(is_first | ~self.halved[self.owner])


_NO_TERMS = _Terms(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))


@dataclass
class _Shared:
    """Own shares of the known state of a candidate; see :class:`anonymize.scores.added.RankedByAdded`.

    contexts:   all contexts but the remainder of the node.
    partition:  of each context: int64, shape (n_contexts,).
    terms:      subtracted term of each context with two classes or more.
    rank:       ``added``, and ``valid``: 1 if the candidate adds anything.
    """

    candidate: Candidate
    of_node: Words = field(repr=False)
    contexts: _Part
    partition: Ints = field(repr=False)
    terms: _Terms = _NO_TERMS
    rank: Fields = field(default_factory=dict)

    def replace(self, fresh: _Part, partition: Ints, broken: Ints) -> None:
        """Replace the contexts of broken leaf partitions by new contexts, without their terms."""
        kept = ~np.isin(self.partition, broken)
        self.terms = self.terms.take(np.flatnonzero(kept[self.contexts.told_apart]))
        old = self.contexts.take(kept)
        totals = np.concatenate([old.totals, fresh.totals])
        self.contexts = _Part(totals, np.concatenate([old.counts, fresh.counts]))
        self.partition = np.concatenate([self.partition[kept], partition])

    def left(self, of_node: Ints) -> _Part:
        """Return the remainder of the node outside its contexts; its class counts are public: shape (n_classes,)."""
        totals = of_node - self.contexts.totals.sum(axis=0)
        counts = self.of_node - self.contexts.counts.sum(axis=0, dtype=np.uint64)
        return _Part(totals[None], counts[None])


class AddedPool(OpenedPool[_Shared]):
    """Pool of public candidates. Their additions, also additions of 0, stay inside the circuits."""

    smaller = range(3, MOST_BITS, 3)
    """Contexts are of all sizes."""

    def __init__(self, bench: Bench) -> None:
        assert isinstance(bench.followed, FollowedContexts)
        super().__init__(bench, bench.followed.terms)
        self._contexts = bench.followed
        self._width = _width(bench.schema, bench.widths.count)

    def _enter_candidate(self, engine: Engine, entered: Entered) -> Rounds[None]:
        none, children = np.zeros(0, dtype=np.int64), entered.children
        nothing = _Part(none.reshape(0, children.shape[1]), np.zeros((0, *children.shape), dtype=np.uint64))
        self._known[entered.candidate.order] = _Shared(entered.candidate, children, nothing, none)
        return
        yield

    def _renew(self, engine: Engine, wanted: Sequence[Wanted], shares: Sequence[Words]) -> Rounds[None]:
        """Recompute the candidates' scores after the replacement of contexts."""
        changed, fresh, left = [], [], []
        for each, share in zip(wanted, shares, strict=True):
            known, large = self._known[each.candidate.order], self._contexts.asked(each.candidate)
            part = self._with_last(large, share)
            known.replace(part, large.partition, self._contexts.broken)
            changed.append(known)
            fresh.append(part.take(part.told_apart))
            rest = known.left(self._contexts.class_counts(each.candidate))
            left.append(rest.take(rest.told_apart))
        summed = yield from self._summed(engine, changed, fresh, left)
        public = np.array([self._public(known) for known in changed], dtype=np.int64).astype(np.uint64)
        inputs: dict[str, Value] = {"loss": summed, "public": public.reshape(-1, 1)}
        ranks = yield from engine.run(circuits.added_circuit(self._width), len(changed), inputs)
        for place, known in enumerate(changed):
            known.rank = {name: carried(ranks, name).take([place]) for name in ranks}

    def _summed(
        self, engine: Engine, changed: Sequence[_Shared], fresh: Sequence[_Part], left: Sequence[_Part]
    ) -> Rounds[CarriedWords]:
        """Return the sum of the terms of each candidate.

        fresh, left:  new contexts of each candidate, whose terms are kept; the remainder of its node.
        """
        contexts = _Contexts([*fresh, *left], engine)
        shares = yield from self._looked_up_terms(engine, contexts)
        places = contexts.by_part
        each = list(zip(changed, places, places[len(fresh) :], strict=False))
        sums = [
            np.concatenate([known.terms.shares, shares[new], shares[rest]]).sum(dtype=np.uint64)
            for known, new, rest in each
        ]
        asked = entered(np.array(sums, dtype=np.uint64), self._width)
        words, outputs = yield from self._computed_terms(engine, contexts, asked)
        terms, looked_up = _Terms(shares, contexts.place, words), carried(outputs, "loss")
        added = []
        for number, (known, new, rest) in enumerate(each):
            known.terms = known.terms.then(terms.take(new))
            added.append([*known.terms.words, *terms.take(rest).words, looked_up.take([number])])
        of_all = {"loss": joined(list(chain.from_iterable(added)))}
        sizes = [sum(map(len, words)) for words in added]
        return (yield from engine.reduce(circuits.add_circuit(self._width), of_all, sizes))["loss"]

    def _with_last(self, large: Large, share: Words) -> _Part:
        """Return own shares of new contexts, from shares of all children but the last."""
        totals = self._share_of(large.totals.reshape(-1)).reshape(-1, 1, self._schema.n_classes)
        last = totals - share.sum(axis=1, keepdims=True, dtype=np.uint64)
        return _Part(large.totals, np.concatenate([share, last], axis=1))

    def _public(self, known: _Shared) -> int:
        """Return the public minuend of a candidate's terms."""
        left = known.left(self._contexts.class_counts(known.candidate)).totals
        totals = np.concatenate([known.contexts.totals, left])
        return int((impurity(totals) + _penalties(totals)).sum())

    def _looked_up_terms(self, engine: Engine, contexts: _Contexts) -> Rounds[Words]:
        """Return own shares of Σ_c (impurity(n_x,c) + U·(classes_x − 1)·[n_x,c > 0]) of every looked-up context, two
        children at a time; 0 for computed contexts: shape (n_contexts,).
        """
        shares = np.zeros(len(contexts.totals), dtype=np.uint64)
        if contexts.look_up and len(contexts.totals):
            rows = contexts.asked
            of = contexts.owner[rows]
            given = contexts.rows[rows], contexts.totals[of], contexts.halved[of], contexts.penalties[of]
            np.add.at(shares, of, (yield from looked_up_losses(engine, *given, self._width)))
        return shares

    def _computed_terms(
        self, engine: Engine, contexts: _Contexts, other: Asked
    ) -> Rounds[tuple[Sequence[CarriedWords], Outputs]]:
        """Return the same sums of the computed contexts, as words. Run another batch side by side."""
        if contexts.look_up or not len(contexts.totals):
            return (), (yield from engine.run(*other))
        of = contexts.owner
        given = contexts.rows, contexts.totals[of], contexts.penalties[of], self._width
        terms, outputs = yield from terms_beside(engine, *given, other)
        sizes = contexts.n_children.tolist()
        sums = yield from engine.reduce(circuits.add_circuit(self._width), {"loss": terms}, sizes)
        return (sums["loss"],), outputs

    def _ranks(self, engine: Engine, every: Sequence[_Shared]) -> Rounds[list[Fields]]:
        """Return the ranks; ``valid`` is 0 for candidates that add nothing."""
        return [known.rank for known in every]
        yield

    def _better(self, slot_width: int) -> Circuit:
        return circuits.more_added_circuit(self._width, slot_width)


def _penalties(totals: Ints) -> Ints:
    """Return U·(classes − 1) of contexts, from their class counts: int64, shape (n_contexts,)."""
    return PARAMETER * beyond_one(totals > 0)


def _width(schema: Schema, count_bits: int) -> int:
    """Return the bits of the subtracted terms, and of A(v) in two's complement, from public bounds."""
    most_children = max(column.n_leaves for column in schema.qid)
    penalties = PARAMETER * schema.n_classes * most_children * (MOST_CONTEXTS + 1)
    return (f((1 << count_bits) - 1) + penalties).bit_length() + 1
