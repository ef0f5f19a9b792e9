"""A party outside the pair that shares other counts than its records have, to learn of how many others a sequence is.

N38 says what comes of it: in every sweep one threshold of its own choice, up to the last one that is allowed, and no
error. Nothing prevents it; this shows that the list of limits says no less than is so, and that the bound holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anonymize.joint.trajectory import sealed
from anonymize.trajectory.sweep import Asked
from tests.support.paths import bounds
from tests.support.sequences import all_records, run_sealed_sequences, split

K, TARGET, LIAR = 5, 0, "p2"


class Probe:
    """Counts that the liar adds; ``known``: how many others have the target, once that is learned."""

    def __init__(self) -> None:
        self.sweep, self.known = 0, -1

    def changed(self, question: Asked) -> Asked:
        """Of the target, and all with it, enough that one sweep asks for one record of others, the next for two."""
        counts, has_target = question.counts.copy(), (question.sequences == TARGET).any(axis=1)
        is_single = question.sequences.shape[1] == 1
        self.sweep += is_single
        if self.known < 0:
            counts[0, has_target] += K - self.sweep if is_single else K
            counts[1:, has_target] -= 2 * K
            if is_single:
                counts[0, -1] -= 200  # the last one falls, so that this sweep is not the last
        return replace(question, counts=counts)

    def heard(self, question: Asked, kept: Any) -> None:
        is_target = (question.sequences == TARGET).all(axis=1)
        if self.known < 0 and question.sequences.shape[1] == 1 and not kept[is_target].all():
            self.known = self.sweep - 1


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Probe:
    honest, probe = sealed._Party._answer, Probe()

    def answer(party: Any, asked: Any, question: Asked) -> Iterator[Any]:
        lies = party._pair.roster.me == LIAR
        kept = yield from honest(party, asked, probe.changed(question) if lies else question)
        if lies:
            probe.heard(question, kept)
        return kept

    monkeypatch.setattr(sealed._Party, "_answer", answer)
    return probe


@pytest.mark.parametrize("n_others", [0, 1, 3])
def test_how_many_others_have_a_sequence(n_others: int, probe: Probe) -> None:
    """Fewer than K; the table is as it should be, and nobody notices."""
    pairs = [(i, j) for i in range(1, 10) for j in range(i + 1, 10)]
    records = [([TARGET, 1], 0)] * n_others + [([i, j], 0) for i, j in pairs] * 6
    owners = [i % 2 for i in range(len(records))] + [2] * 5
    tables = split([*records, *([([1, 2], 0)] * 5)], owners, 3, 10)
    outputs, _ = run_sealed_sequences(tables, bounds(2, K, "1/2", 2, [1]))
    assert probe.known == n_others
    assert probe.sweep < sealed.MOST_SWEEPS
    table = all_records(outputs["p0"].table)
    assert len(table) == len(owners)
    assert not any(TARGET in path for path, _ in table)
    assert np.array_equal(outputs["p0"].rows, outputs[LIAR].rows)
