"""Scores by table look-up in sealed runs: tables, what is opened, and where circuits take over."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from anonymize.joint import pair
from anonymize.joint.lkc.circuits import f_bits
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.scores import looked_up
from anonymize.joint.lkc.scores.looked_up import f_tables
from anonymize.score import f_score
from anonymize.table import CodedTable, Ints
from crypto.circuit import Held
from crypto.circuits.score import f
from crypto.local import Transcript
from crypto.ot.extension import OtReceiver, OtSender
from crypto.rng import Rng
from tests.support import ideal, jobs
from tests.support.chi_square import chi_square
from tests.support.horizontal import Ran, run_sealed, small_case, small_lkc
from tests.support.look_ups import OPEN

LIMIT = 55.0
"""Chi-square, 15 degrees of freedom, p = 2e-6."""


@pytest.mark.parametrize("total", [0, 1, 2, 63, 100, 127])
def test_tables_are_f_of_a_count_and_of_what_is_left(total: int) -> None:
    pairs, alone = f_tables(np.array([[total, 1], [total, 0]]), 7)
    for x in range(128):
        assert pairs[x] == (f(x) + f(total - x) if x <= total else 0)
        assert alone[x] == (f(x) if x <= total else 0)


def test_entries_fit_the_words_that_they_enter_circuits_as() -> None:
    rng = np.random.default_rng(0)
    totals = [*range(1, 300), *((1 << bits) - 1 for bits in range(9, 19)), *rng.integers(300, 1 << 18, 30)]
    for total in totals:
        x = np.arange(total + 1)
        most = int((f_score(x) + f_score(total - x)).max())
        assert most.bit_length() <= f_bits(int(total).bit_length())


def scaled(factor: int) -> tuple[list[CodedTable], Request]:
    tables, request = small_case()
    larger = [dataclasses.replace(table, weights=factor * table.weights) for table in tables]
    return larger, dataclasses.replace(request, requirement=small_lkc(2, factor * 2))


def opened(transcript: Transcript) -> Ints:
    """x − r of every look-up, modulo 16."""
    sent = [[m.payload[16:] for m in transcript.view(name) if m.step == OPEN] for name in ("p0", "p1")]
    sums = [
        np.frombuffer(a, "<u4").astype(np.int64) + np.frombuffer(b, "<u4") for a, b in zip(*sent, strict=True)
    ]
    return np.concatenate([np.zeros(0, np.int64), *sums]) % 16


def expect_same(one: Ran, other: Ran) -> None:
    assert jobs.turns(one[0]["p0"].outcome) == jobs.turns(other[0]["p0"].outcome)
    for ran in (one, other):
        for result in ran[0].values():
            assert result.ledger.reveals == one[0]["p0"].ledger.reveals
    assert jobs.turns(one[0]["p0"].outcome)


@pytest.mark.parametrize("most", [7, 8])
def test_counts_above_the_bound_go_through_circuits(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the large nodes (180 records), or of none: the run is the same."""
    usual = run_sealed(*scaled(2))
    monkeypatch.setattr(looked_up, "MOST_BITS", most)
    bounded = run_sealed(*scaled(2))
    expect_same(usual, bounded)
    assert len(opened(bounded[1])) > 0
    assert (len(opened(bounded[1])) < len(opened(usual[1]))) == (most < 8)


def test_what_look_ups_open_is_uniform() -> None:
    seen = np.concatenate([opened(run_sealed(*scaled(factor))[1]) for factor in range(1, 9)])
    assert len(seen) > 400
    assert chi_square(np.bincount(seen, minlength=16)) < LIMIT


def test_a_run_with_ideal_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a party that everybody trusts to look up, the run is the same."""

    def look_ups(transfers: OtSender | OtReceiver, rng: Rng) -> ideal.IdealLookUps:
        role = Held.GARBLER if isinstance(transfers, OtSender) else Held.EVALUATOR
        return ideal.IdealLookUps(role, transfers.peer, rng)

    usual = run_sealed(*small_case())
    monkeypatch.setattr(pair, "LookUps", look_ups)
    trusting = run_sealed(*small_case())
    expect_same(usual, trusting)
    assert not len(opened(trusting[1]))
