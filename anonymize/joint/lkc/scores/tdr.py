"""InfoGain for each step of lost anonymity in joint runs: candidates are public, gains and group sizes stay shared.

The smallest group after a candidate is carried for every entry of the requirement, and compared with new groups only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from anonymize.cut import Candidate
from anonymize.joint.disclosure import Allowed
from anonymize.joint.engine import Engine, Fields, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.circuits import FractionWidths, Widths
from anonymize.joint.lkc.scores.opened import Entered, OpenedPool
from anonymize.joint.lkc.scores.score import Bench, Turns, all_valid, joined
from anonymize.joint.lkc.turns import SPLITS, OpenedTurns
from anonymize.score import impurity
from anonymize.scores.score import Wanted
from anonymize.scores.tdr import MOST_DENOMINATOR, FollowedGroups, GroupsAfter, Tdr
from anonymize.table import Schema
from crypto.blocks import WORD_BITS
from crypto.circuit import Circuit
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, Value


@dataclass(frozen=True)
class JointTdr(Tdr):
    """Score `tdr` with its circuits."""

    reveals: ClassVar[Mapping[str, Sequence[Allowed]]] = {
        "horizontal/sealed": (SPLITS,),
        "horizontal/leader": (SPLITS,),
    }

    def sealed(self, bench: Bench) -> Turns:
        return OpenedTurns(TdrPool(bench), bench)

    def fraction_bits(self, schema: Schema, n_records: int) -> tuple[int, int]:
        return WORD_BITS, (MOST_DENOMINATOR - 1).bit_length()


@dataclass
class _Shared:
    """Own shares of the known state of a candidate.

    entered:   class counts of its node, and Σ impurities of its children.
    smallest:  carried words: by entry of the requirement with its column, the smallest group after it. Without such
               an entry, a single word that no size exceeds.
    """

    entered: Entered
    smallest: CarriedWords = field(repr=False)
    _rank: tuple[tuple[int, ...], CarriedWords, Fields] | None = field(default=None, repr=False)

    def rank(self, before: tuple[int, ...]) -> Fields | None:
        """Return the rank of :meth:`keep`, if neither ``before`` nor the smallest groups have changed since."""
        if self._rank is None or self._rank[0] != before or self._rank[1] is not self.smallest:
            return None
        return self._rank[2]

    def keep(self, before: tuple[int, ...], rank: Fields) -> None:
        """Keep a rank.

        before: the smallest groups without the candidate, public.
        """
        self._rank = before, self.smallest, rank

    @property
    def candidate(self) -> Candidate:
        return self.entered.candidate


class TdrPool(OpenedPool[_Shared]):
    """Pool of public candidates. Their gains, lost anonymity and order stay inside the circuits."""

    def __init__(self, bench: Bench) -> None:
        assert isinstance(bench.followed, FollowedGroups)
        super().__init__(bench, bench.followed.terms)
        self._groups = bench.followed
        self._fractions = _widths(bench.widths, len(self._asked.scopes))

    def _enter_candidate(self, engine: Engine, entered: Entered) -> Rounds[None]:
        n_entries = max(1, len(self._asked.about(entered.candidate.column)))
        sizes = yield from self._occupied(engine, np.zeros(n_entries, dtype=np.uint64))
        self._known[entered.candidate.order] = _Shared(entered, sizes)

    def _occupied(self, engine: Engine, counts: Words) -> Rounds[CarriedWords]:
        """Return sizes of parts of groups, from own shares; empty parts get a size above all others."""
        flat = low_bits(counts.reshape(-1, 1), self._widths.count)
        outputs = yield from engine.run(
            circuits.occupied_circuit(self._widths.count), len(flat), {"count": flat}
        )
        return carried(outputs, "size")

    def _renew(self, engine: Engine, wanted: Sequence[Wanted], shares: Sequence[Words]) -> Rounds[None]:
        """Compare the smallest groups with new groups."""
        asked = [(self._known[w.candidate.order], self._groups.asked(w.candidate)) for w in wanted]
        parts = [self._parts(after, share) for (_, after), share in zip(asked, shares, strict=True)]
        if not sum(part.size for part in parts):
            return
        sizes = yield from self._occupied(engine, np.concatenate([part.reshape(-1) for part in parts]))
        words, lengths, start = [], [], 0
        for (known, after), part in zip(asked, parts, strict=True):
            places = start + np.arange(part.size).reshape(part.shape)
            start += part.size
            for number, chosen in enumerate(after.groups.asked):
                words += [known.smallest.take([number]), sizes.take(places[chosen].reshape(-1))]
                lengths.append(1 + places[chosen].size)
        smaller = circuits.smaller_circuit(self._widths.count)
        smallest = (yield from engine.reduce(smaller, {"size": joined(words)}, lengths))["size"]
        ends = np.cumsum([len(after.groups.asked) for _, after in asked])
        for (known, after), end in zip(asked, ends.tolist(), strict=True):
            if after.entries:
                known.smallest = smallest.take(np.arange(end - len(after.entries), end))

    def _parts(self, after: GroupsAfter, share: Words) -> Words:
        """Return own shares of the sizes of every (group, child)."""
        last = self._share_of(after.totals) - share.sum(axis=1, dtype=np.uint64)
        return np.column_stack([share, last])

    def _ranks(self, engine: Engine, every: Sequence[_Shared]) -> Rounds[list[Fields]]:
        """Return the fraction of each candidate, from its present loss; all candidates are valid."""
        before = [self._before(known) for known in every]
        stale = [known for known, now in zip(every, before, strict=True) if known.rank(now) is None]
        if stale:
            yield from self._rank_anew(engine, stale)
        ranks = [known.rank(now) for known, now in zip(every, before, strict=True)]
        return [rank for rank in ranks if rank is not None]

    def _before(self, known: _Shared) -> tuple[int, ...]:
        """Return the smallest group of each entry of the requirement with the candidate's column; else 0."""
        entries = self._asked.about(known.entered.candidate.column)
        return tuple(self._groups.anonymity[entry] for entry in entries) or (0,)

    def _rank_anew(self, engine: Engine, every: Sequence[_Shared]) -> Rounds[None]:
        """Compute ranks."""
        widths, before = self._fractions, [self._before(known) for known in every]
        entries = [self._asked.about(known.entered.candidate.column) for known in every]
        circuit = circuits.lost_circuit(self._widths.count, widths.lost)
        flat = _column([size for of in before for size in of])
        inputs: dict[str, Value] = {"size": joined([known.smallest for known in every]), "before": flat}
        lost = carried((yield from engine.run(circuit, len(flat), inputs)), "loss")
        add = circuits.add_circuit(widths.lost)
        summed = yield from engine.reduce(add, {"loss": lost}, [len(of) for of in before])
        totals = [known.entered.totals for known in every]
        outputs = yield from engine.run(
            circuits.fraction_circuit(self._widths.loss, widths),
            len(every),
            {
                "loss": joined([known.entered.loss for known in every]),
                "lost": summed["loss"],
                "parent": _column([int(impurity(total)) for total in totals]),
                "size": _column([int(total.sum()) for total in totals]),
                "weight": _column([max(1, len(of)) for of in entries]),
            },
        )
        valid = yield from all_valid(engine, len(every))
        fields = {name: carried(outputs, name) for name in outputs} | {"valid": valid}
        for place, known in enumerate(every):
            known.keep(before[place], {name: words.take([place]) for name, words in fields.items()})

    def _better(self, slot_width: int) -> Circuit:
        return circuits.better_fraction_circuit(self._fractions, slot_width)


def _column(numbers: Sequence[int]) -> Words:
    return np.array(numbers, dtype=np.int64).astype(np.uint64).reshape(-1, 1)


def _widths(widths: Widths, n_entries: int) -> FractionWidths:
    """Return widths from public bounds: gains below 2^loss, sizes below 2^count, ``n_entries`` per column."""
    weight = max(1, n_entries).bit_length()
    lost = widths.count + weight
    return FractionWidths(
        widths.count, lost, weight, min(WORD_BITS, widths.loss + weight), min(WORD_BITS, lost + widths.count)
    )
