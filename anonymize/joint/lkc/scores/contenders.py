"""Options of nodes in a tournament for the least loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from anonymize.joint.engine import Engine, Fields, Pairs, carried, low_bits, pairs_of
from anonymize.joint.lkc import circuits
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

    def with_bit(self, engine: Engine, name: str, bits: CarriedWords) -> Rounds[Contenders]:
        """Give every option left its bit. bits: of all options, in order."""
        return replace(self, fields={**self.fields, name: bits})
        yield


@dataclass(frozen=True)
class _Selected(Contenders):
    """Options left after the first level.

    pairs:   of the first level.
    second:  1 where the second of a pair is left.
    """

    pairs: Pairs = field(kw_only=True)
    second: CarriedWords = field(kw_only=True, repr=False)

    def with_bit(self, engine: Engine, name: str, bits: CarriedWords) -> Rounds[Contenders]:
        inputs = {"index": self.second, **self.pairs.inputs({"bit": bits})}
        outputs = yield from engine.run(circuits.selected_bit_circuit(), len(self.pairs), inputs)
        return replace(self, fields={**self.fields, name: self.pairs.joined(outputs["bit"], bits)})


class Losses(Protocol):
    """Losses of all options, as questions to the engine."""

    @property
    def asked(self) -> Sequence[Asked]: ...

    def contenders(self, engine: Engine, answers: Sequence[Outputs]) -> Rounds[Contenders]:
        """Return the options, from the answers to the questions."""
        ...


@dataclass(frozen=True)
class SharedLosses:
    """Losses with additive shares. The first level of the tournament selects shares, before they are added.

    shares:  own shares of the loss of every option, modulo 2**(width + 1): uint64, shape (n_options,).
    sizes:   options of each node, at least 1.
    width:   bits of a loss.
    """

    shares: Words = field(repr=False)
    sizes: Sequence[int]
    width: int

    @cached_property
    def _pairs(self) -> Pairs:
        return pairs_of(np.asarray(self.sizes, dtype=np.int64))

    @property
    def asked(self) -> Sequence[Asked]:
        pairs = self._pairs
        of_pairs = np.stack([self.shares[pairs.first], self.shares[pairs.first + 1]], axis=1)
        inputs = {
            "loss": low_bits(of_pairs, self.width),
            "difference": low_bits(of_pairs[:, 1:] - of_pairs[:, :1], self.width + 1),
        }
        compared = circuits.least_share_circuit(self.width), len(pairs), inputs
        return [compared, entered(self.shares[pairs.alone], self.width)]

    def contenders(self, engine: Engine, answers: Sequence[Outputs]) -> Rounds[Contenders]:
        (of_pairs, alone), pairs = answers, self._pairs
        loss = carried(alone, "loss")
        fields = {
            "loss": pairs.stacked(of_pairs["loss"], loss),
            "index": pairs.stacked(of_pairs["index"], loss.resized(0)),
        }
        left = Contenders(fields, pairs.counts.tolist(), 1)
        if not len(pairs):
            return left
        return _Selected(**vars(left), pairs=pairs, second=carried(of_pairs, "index"))
        yield
