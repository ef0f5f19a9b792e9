"""Options of nodes in a tournament for the least loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from anonymize.joint.engine import Engine, Fields, Pairs, carried, low_bits, pairs_of
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.judging import RuleTests
from anonymize.joint.lkc.scores.looked_up import entered
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import Asked, CarriedWords, Outputs


@dataclass(frozen=True)
class Contenders:
    """Options that are left.

    fields:  ``loss`` and ``index`` of each option left: a bit of ``index`` for each level before.
    sizes:   options left of each node.
    level:   levels before.
    """

    fields: Fields = field(repr=False)
    sizes: Sequence[int]
    level: int = 0


class Losses(Protocol):
    """Losses of all options, as questions to the engine; with sizes, options also tell if they are large enough."""

    @property
    def asked(self) -> Sequence[Asked]: ...

    @property
    def tests(self) -> Sequence[RuleTests]: ...

    def contenders(
        self, engine: Engine, answers: Sequence[Outputs], met: Sequence[CarriedWords]
    ) -> Rounds[Contenders]:
        """Return the options, from the answers to the questions and the outcome of the tests: with sizes, also the
        bit ``large`` of each.
        """
        ...


@dataclass(frozen=True)
class SharedLosses:
    """Losses with additive shares. The first level of the tournament selects shares, before they are added.

    shares:  own shares of the loss of every option, modulo 2**(width + 1) or with the bits of marks: uint64, shape
             (n_options,).
    sizes:   options of each node, at least 1. Only a node of one option has more than one bit of marks.
    width:   bits of a loss.
    marks:   bits above the loss (:func:`circuits.marked_width`): 0 if the sizes of an option are allowed.
    """

    shares: Words = field(repr=False)
    sizes: Sequence[int]
    width: int
    marks: int = 0
    tests: ClassVar[Sequence[RuleTests]] = ()

    @cached_property
    def _pairs(self) -> Pairs:
        return pairs_of(np.asarray(self.sizes, dtype=np.int64))

    @property
    def asked(self) -> Sequence[Asked]:
        pairs = self._pairs
        of_pairs = np.stack([self.shares[pairs.first], self.shares[pairs.first + 1]], axis=1)
        marks = min(1, self.marks)
        inputs = {
            "loss": low_bits(of_pairs, circuits.marked_width(self.width, marks)),
            "difference": low_bits(of_pairs[:, 1:] - of_pairs[:, :1], self.width + 1),
        }
        compared = circuits.least_share_circuit(self.width, marks), len(pairs), inputs
        return [compared, entered(self.shares[pairs.alone], self.width, self.marks)]

    def contenders(
        self, engine: Engine, answers: Sequence[Outputs], met: Sequence[CarriedWords]
    ) -> Rounds[Contenders]:
        (of_pairs, alone), pairs = answers, self._pairs
        fields = {name: pairs.stacked(of_pairs[name], carried(alone, name)) for name in alone}
        fields["index"] = pairs.stacked(of_pairs["index"], carried(alone, "loss").resized(0))
        return Contenders(fields, pairs.counts.tolist(), 1)
        yield
