"""InfoGain in joint runs: keys that compare as integers, made once and carried inside the pair's circuits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

from anonymize.criteria.criterion import Criterion
from anonymize.cut import Candidate, Order
from anonymize.joint.disclosure import Allowed
from anonymize.joint.engine import Engine, Fields, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.circuits import widths_for
from anonymize.joint.lkc.judging import RuleTests
from anonymize.joint.lkc.scores.contenders import Contenders, Losses, SharedLosses
from anonymize.joint.lkc.scores.looked_up import Marks, can_look_up, looked_up_losses, prepare, with_sum
from anonymize.joint.lkc.scores.score import (
    Bench,
    Contested,
    Nodes,
    Profiled,
    Scored,
    Turns,
    joined,
    opened_candidates,
)
from anonymize.joint.lkc.scores.sizes import Sizes
from anonymize.joint.lkc.turns import ORDER, RANKED_SPLITS, HiddenTurns, RankedTurns
from anonymize.joint.messages import opened_candidate
from anonymize.score import impurity
from anonymize.scores.infogain import InfoGain
from anonymize.table import Ints, Schema
from crypto.circuit import Circuit
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from crypto.two_party import Asked, CarriedWords, Outputs, Value, expect_outcome


@dataclass(frozen=True)
class JointInfoGain(InfoGain):
    """Score `infogain` with its circuits."""

    reveals: ClassVar[Mapping[str, Sequence[Allowed]]] = {"horizontal/sealed": (RANKED_SPLITS, ORDER)}

    def sealed(self, bench: Bench) -> Turns:
        """Return turns in an open order, if every candidate has a turn. Of the children of a node that may leave
        one by one, some never have a turn, so their order stays hidden.
        """
        if any(column.by_child for column in bench.schema.qid):
            return HiddenTurns(GainPool(bench), bench)
        return RankedTurns(RankedGains(bench), bench)

    def strict(self, bench: Bench) -> GainPool:
        return GainPool(bench)

    def fraction_bits(self, schema: Schema, n_records: int) -> tuple[int, int]:
        widths = widths_for(n_records, schema.n_classes, 1)
        return widths.loss, widths.count


PAIR = 2
"""Number of children for which the count of one determines the count of the other."""


class _ComputedLosses:
    """Losses from F of every child's size and class counts."""

    def __init__(
        self,
        asked: Asked,
        losses: Callable[[Engine, Outputs], Rounds[CarriedWords]],
        n_options: Sequence[int],
        tested: tuple[Sizes, Sequence[RuleTests], Ints] | None,
    ) -> None:
        """Take the question for F, what returns a loss for each option from its answer, the options of each node, and
        the tests of sizes with their options.
        """
        self.asked = [asked]
        self._losses = losses
        self._n_options = n_options
        self._tested = tested

    @property
    def tests(self) -> Sequence[RuleTests]:
        return () if self._tested is None else self._tested[1]

    def contenders(
        self, engine: Engine, answers: Sequence[Outputs], met: Sequence[CarriedWords]
    ) -> Rounds[Contenders]:
        loss = yield from self._losses(engine, *answers)
        fields = {"loss": loss, "index": loss.resized(0)}
        if self._tested is not None:
            sizes, _, owner = self._tested
            fields["large"] = yield from sizes.large(engine, met, owner)
        return Contenders(fields, self._n_options)


class Gains(Nodes):
    """Base of pools with InfoGain: ``key0`` …, ``valid``, ``index`` for every node."""

    smaller: ClassVar[Sequence[int]] = (2,)
    """Bits by which smaller tables are smaller: of a class with a quarter of the records."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._n_records = bench.n_records
        prepare(self._engine, (1 << self._widths.count) - 1, self.smaller)

    def own_part(self, profiled: Profiled) -> Ints:
        return profiled.counts[:-1]

    def _enter(self, engine: Engine, chosen: Scored, fixed: Scored) -> Rounds[None]:
        """Enter the chosen option and its score."""
        nodes = [*chosen, *fixed]
        if nodes:
            totals = [self._share_of(n.totals) for n, _ in chosen]
            sides, _ = self._sides(chosen, totals, self._schema.n_classes)
            losses = yield from self._losses(engine, sides, chosen, fixed)
            answers = yield from engine.run_all(losses.asked)
            best = yield from self._least(engine, (yield from losses.contenders(engine, answers, ())))
            self._keep(nodes, (yield from self._keys(engine, best, [n for n, _ in nodes])))

    def _least(self, engine: Engine, options: Contenders, *bits: str) -> Rounds[Fields]:
        """Return the option with the least loss of each node, and its ``index``: the option's way through the
        tournament, a bit for each level.

        An option with an empty side has no gain, as its loss is the loss of the whole node: it needs no flag.

        bits:  names of further fields of an option.
        """

        def circuit_at(level: int) -> Circuit:
            return circuits.least_loss_circuit(self._widths.loss, level, bits)

        best = yield from engine.join(circuit_at, options.fields, options.sizes, options.level)
        return {**best, "index": best["index"].resized(self._widths.index)}

    def _losses(
        self,
        engine: Engine,
        sides: Words,
        chosen: Scored,
        fixed: Scored,
        of_size: Sequence[Sequence[Criterion]] | None = None,
    ) -> Rounds[Losses]:
        """Return the losses of every option, with given sides, and of every node with fixed children.

        of_size:  by column, criteria on the size of each child; None: sizes do not count.
        """
        points = [n.prospect.n_options for n, _ in chosen]
        children = [*sides.reshape(-1, 2, self._schema.n_classes)]
        children += [
            np.concatenate([s, self._share_of(n.totals) - s.sum(axis=0, keepdims=True, dtype=np.uint64)])
            for n, s in fixed
        ]
        columns = np.repeat([n.column for n, _ in [*chosen, *fixed]], points + [1] * len(fixed)).tolist()
        allowed = None if of_size is None else Sizes(of_size, columns)
        of_nodes, sizes = np.stack([n.totals for n, _ in [*chosen, *fixed]]), points + [1] * len(fixed)
        most = int(of_nodes.sum(axis=1).max())
        if can_look_up(engine, most):
            return (
                yield from self._looked_up(engine, children, of_nodes.repeat(sizes, axis=0), sizes, allowed)
            )
        return self._computed(children, most, sizes, allowed)

    def _looked_up(
        self,
        engine: Engine,
        children: Sequence[Words],
        totals: Ints,
        n_options: Sequence[int],
        allowed: Sizes | None,
    ) -> Rounds[SharedLosses]:
        """Look up the losses of options.

        children:   own shares for every option: shape (n_children, n_classes).
        totals:     class counts of its node, public: int64, shape (n_options, n_classes).
        n_options:  of each node.

        A look-up stands for both children if a node has two. It marks a loss if a size is not allowed.
        """
        rows = [each[:1] if len(each) == PAIR else each for each in children]
        sizes = np.array([len(row) for row in rows])
        has_rest = np.array([len(each) == PAIR for each in children]).repeat(sizes)
        of_rows, none = totals.repeat(sizes, axis=0), np.zeros(sizes.sum(), dtype=np.int64)
        loss, marks, n_marks = self._widths.loss, None, 0
        if allowed is not None:
            refused = allowed.refused(int(totals.sum(axis=1).max()))
            marks, n_marks = (
                Marks(refused, allowed.columns.repeat(sizes), loss + 1),
                int(sizes.max()).bit_length(),
            )
        width = loss + 1 + n_marks
        counts = np.concatenate(rows)
        shares = yield from looked_up_losses(engine, counts, of_rows, has_rest, none, width, marks)
        of_options: Words = np.add.reduceat(shares, np.cumsum(sizes) - sizes)
        return SharedLosses(of_options, n_options, loss, n_marks)

    def _computed(
        self, children: Sequence[Words], most: int, sizes: Sequence[int], allowed: Sizes | None
    ) -> Losses:
        """Return the losses by F of every child's size and class counts. most: greatest size of a node."""
        width = max(2, most.bit_length())
        counts = low_bits(with_sum(np.concatenate(children)).reshape(-1, 1), width)
        circuit = circuits.f_circuit(width, min(circuits.f_bits(width), self._widths.loss))
        asked = circuit, len(counts), {"count": counts}
        tested = None if allowed is None else (allowed, *allowed.tests(children, self._widths.count))
        return _ComputedLosses(
            asked, partial(self._impurities, [len(each) for each in children]), sizes, tested
        )

    def _impurities(self, sizes: Sequence[int], engine: Engine, outputs: Outputs) -> Rounds[CarriedWords]:
        """Return Σ impurity over the children of each option, from F of the children's sizes and class counts."""
        f = carried(outputs, "f")
        circuit = circuits.impurity_circuit(self._schema.n_classes, f.width, self._widths.loss)
        of_children = yield from engine.run(circuit, sum(sizes), {"f": f})
        losses = {"loss": carried(of_children, "loss")}
        summed = yield from engine.reduce(circuits.add_circuit(self._widths.loss), losses, sizes)
        return summed["loss"]

    def _keys(self, engine: Engine, best: Fields, nodes: Sequence[Profiled]) -> Rounds[Fields]:
        """Return InfoGain as a key, from each node's least loss and its public counts.

        The gain of a node of all records is its key. Only the key of a smaller node takes a product.
        """
        is_whole = np.array([int(n.totals.sum()) == self._n_records for n in nodes])
        given = (
            (np.flatnonzero(is_whole), self._keys_of_wholes),
            (np.flatnonzero(~is_whole), self._keys_of_parts),
        )
        kinds = [(places, question) for places, question in given if places.size]
        asked = [
            question(best["loss"].take(places), np.stack([nodes[i].totals for i in places.tolist()]))
            for places, question in kinds
        ]
        answers = yield from engine.run_all(asked)
        order = np.argsort(np.concatenate([places for places, _ in kinds]))
        keys = {
            name: CarriedWords.concatenate([carried(answer, name) for answer in answers]).take(order)
            for name in answers[0]
        }
        return {**keys, "index": best["index"]}

    def _keys_of_wholes(self, losses: CarriedWords, totals: Ints) -> Asked:
        """Return the question for the keys of nodes of all records; totals: class counts, a row for each node."""
        inputs: dict[str, Value] = {"loss": losses, "parent": self._parents(totals)}
        return circuits.whole_key_circuit(self._widths), len(totals), inputs

    def _keys_of_parts(self, losses: CarriedWords, totals: Ints) -> Asked:
        """Return the question for the keys of smaller nodes, as :meth:`_keys_of_wholes`."""
        sizes = totals.sum(axis=1).tolist()
        magic = [circuits.magic(size, self._n_records, self._widths) for size in sizes]
        inputs: dict[str, Value] = {
            "loss": losses,
            "parent": self._parents(totals),
            "magic": np.array(magic, dtype=np.uint64),
            "size bits": np.array([[circuits.size_bits(size)] for size in sizes], dtype=np.uint64),
        }
        return circuits.key_circuit(self._widths), len(totals), inputs

    def _parents(self, totals: Ints) -> Words:
        """Return the impurity of each node, a row for each."""
        return low_bits(impurity(totals).astype(np.uint64), self._widths.loss).reshape(-1, 1)


class GainPool(Contested, Gains):
    """Pool with a tournament of keys."""

    def _rank(self, profiled: Profiled) -> tuple[int, ...]:
        return profiled.prospect.specialized(1).order

    def _better(self, slot_width: int) -> Circuit:
        return circuits.better_candidate_circuit(self._widths, slot_width)


@dataclass(frozen=True)
class _Entered:
    """New or present candidate at one of the pair.

    rank:      of two equal keys the lower rank is the better one.
    is_whole:  True for a node of all records: its key has no fractional bits.
    """

    rank: Order
    is_whole: bool
    fields: Fields = field(repr=False)


class RankedGains(Gains):
    """Pool that opens the order of keys: each new key is compared with all others, and the results are opened.

    A node has one prospect at most. Ties: candidate order.
    """

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self._ledger = bench.ledger
        self._order: list[Candidate] = []
        self._kept: dict[Candidate, _Entered] = {}

    def add(self, nodes: Sequence[Profiled], shares: Sequence[Words]) -> Rounds[Sequence[int]]:
        """Return the split of each node for :func:`opened_candidates`, then the place of each, 0 for none."""
        if self._engine is None or not nodes:
            return ()
        yield from super().add(nodes, shares)
        entered = [
            _Entered(
                node.prospect.specialized(1).order,
                int(node.totals.sum()) == self._n_records,
                self._fields[self._place_of(node)],
            )
            for node in nodes
        ]
        self._nodes, self._fields = [], []
        return (yield from self._opened(self._engine, nodes, entered))

    def _opened(
        self, engine: Engine, nodes: Sequence[Profiled], entered: Sequence[_Entered]
    ) -> Rounds[Sequence[int]]:
        """Open the splits of nodes, and the order."""
        n_old, every = len(self._order), [*(self._kept[candidate] for candidate in self._order), *entered]
        pairs = [_by_rank(every, i, j) for j in range(n_old, len(every)) for i in range(j)]
        shown = circuits.open_circuit((("index", self._widths.index),))
        of_nodes = {name: joined([each.fields[name] for each in entered]) for name in ("valid", "index")}
        compared = list(self._comparisons(every, pairs))
        outputs = yield from engine.run_all(
            [(shown, len(nodes), of_nodes), *(asked for asked, _ in compared)]
        )
        flags, places = (np.asarray(outputs[0][name]).reshape(-1).tolist() for name in ("valid", "index"))
        splits = [
            flag and (1 + expect_outcome(place, max(1, node.prospect.n_options), engine.peer))
            for node, flag, place in zip(nodes, flags, places, strict=True)
        ]
        for node, split, own in zip(nodes, splits, entered, strict=True):
            if split:
                self._kept[opened_candidate(node.prospect, split, engine.peer)] = own
        there = [True] * n_old + [split > 0 for split in splits]
        above = [*range(n_old), *[0] * len(nodes)]
        for output, (_, same) in zip(outputs[1:], compared, strict=True):
            for (i, j), second in zip(same, np.asarray(output["greater"]).reshape(-1).tolist(), strict=True):
                if there[i] and there[j]:
                    above[i if second else j] += 1
        taken = [count for count, is_there in zip(above, there, strict=True) if is_there]
        if sorted(taken) != list(range(len(taken))):
            raise RemoteProtocolError(engine.peer, "sealed/split", "an order with a circle")
        return [*splits, *above[n_old:]]

    def _comparisons(
        self, every: Sequence[_Entered], pairs: Sequence[_Pair]
    ) -> Iterator[tuple[Asked, Sequence[_Pair]]]:
        """Yield questions if the second of two keys is greater, with the pairs of each. Fractional bits are left out
        if neither key has any.
        """
        for is_whole in (True, False):
            same = [(i, j) for i, j in pairs if is_whole == (every[i].is_whole and every[j].is_whole)]
            if same:
                circuit = circuits.greater_key_circuit(self._widths, self._widths.fraction * is_whole)
                yield (circuit, len(same), _both_of(every, same)), same

    def n_told(self, n_nodes: int) -> int:
        return 2 * n_nodes

    def enter(
        self, nodes: Sequence[Profiled], numbers: Sequence[int], sender: str, step: str
    ) -> list[Candidate]:
        splits, places = numbers[: len(nodes)], numbers[len(nodes) :]
        found = opened_candidates(nodes, splits, sender, step)
        taken = [place for split, place in zip(splits, places, strict=True) if split]
        total = len(self._order) + len(found)
        if len(set(taken)) < len(taken) or any(place >= total for place in taken):
            raise RemoteProtocolError(sender, step, "candidates at the same or an impossible place")
        at, rest = dict(zip(taken, found, strict=True)), iter(self._order)
        self._order = [at[place] if place in at else next(rest) for place in range(total)]
        self._ledger.reveal("order", found, "all", (len(nodes),))
        return found

    def ranked(self) -> Sequence[Candidate]:
        return tuple(self._order)

    def discard(self, candidate: Candidate) -> None:
        self._order.remove(candidate)
        self._kept.pop(candidate, None)

    def drop(self, applied: Candidate) -> None:
        for candidate in [other for other in self._order if other.is_beside(applied)]:
            self.discard(candidate)


_Pair: TypeAlias = tuple[int, int]
"""Numbers of two candidates, the lower rank first."""


def _by_rank(every: Sequence[_Entered], i: int, j: int) -> _Pair:
    return (i, j) if every[i].rank < every[j].rank else (j, i)


def _both_of(every: Sequence[_Entered], pairs: Sequence[_Pair]) -> Mapping[str, CarriedWords]:
    """Return the keys and flags of both of each pair."""
    inputs = {}
    for name in every[0].fields:
        if name != "index":
            words = joined([each.fields[name] for each in every])
            inputs[name] = words.take(np.array([i for i, _ in pairs]))
            inputs[f"{name}/other"] = words.take(np.array([j for _, j in pairs]))
    return inputs
