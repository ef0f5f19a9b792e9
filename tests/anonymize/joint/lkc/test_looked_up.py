"""Scores by table look-up in sealed runs: tables, what is opened, and where circuits take over."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from anonymize.criteria.criterion import Bools
from anonymize.joint import pair
from anonymize.joint.engine import Engine
from anonymize.joint.lkc.circuits import f_bits
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.scores import added, looked_up
from anonymize.joint.lkc.scores.looked_up import UNMARKED, entered, f_tables, looked_up_losses, prepare
from anonymize.score import f_score
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from crypto.builder import Builder
from crypto.circuit import Held, To
from crypto.circuits.score import f
from crypto.encoding import Words
from crypto.local import Transcript, run_local
from crypto.lookup import LookUps
from crypto.ot.extension import OtReceiver, OtSender
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, EvaluatorSession, GarblerSession
from tests.support import ideal, jobs
from tests.support.chi_square import chi_square
from tests.support.computations import numbers_of
from tests.support.horizontal import Ran, run_sealed, small_case, small_lkc
from tests.support.look_ups import OPEN, indices_of
from tests.support.rng import SeededRng
from tests.support.sessions import two_party_sessions

LIMIT = 55.0
"""Chi-square, 15 degrees of freedom, p = 2e-6."""


@pytest.mark.parametrize("total", [0, 1, 2, 63, 100, 127])
@pytest.mark.parametrize("penalty", [0, 1_512_775])
def test_tables_are_f_of_a_count_and_of_what_is_left(total: int, penalty: int) -> None:
    pairs, alone = f_tables(np.array([[total, 1, penalty, UNMARKED], [total, 0, penalty, UNMARKED]]), 7)
    for x in range(128):
        one, rest = (f(n) + penalty * (n > 0) if n >= 0 else 0 for n in (x, total - x))
        assert pairs[x] == (one + rest if x <= total else 0)
        assert alone[x] == (one if x <= total else 0)
    wide = f_tables(np.array([[total, 1, penalty, UNMARKED]]), 7, 12)
    assert (wide == pairs % 4096).all()


@pytest.mark.parametrize("total", [0, 1, 5, 9, 10, 64, 127])
def test_tables_mark_sizes_that_are_not_allowed(total: int) -> None:
    """Of either child of two; each kind by itself."""
    refused = np.array([[0 < size < least for size in range(128)] for least in (1, 5)])
    rows = [[total, rest, 3, kind] for rest in (0, 1) for kind in (0, 1)]
    plain = f_tables(np.array([[*row[:3], UNMARKED] for row in rows]), 7)
    found = f_tables(np.array(rows), 7, 64, refused, 1 << 40)
    for row, own, (_, has_rest, _, kind) in zip(found, plain, rows, strict=True):
        for x in range(128):
            sizes = [x, total - x] if has_rest else [x]
            is_marked = x <= total and any(refused[kind][size] for size in sizes)
            assert row[x] == own[x] + (is_marked << 40)


def test_f_of_all_counts_is_made_piece_by_piece() -> None:
    """At a size of several pieces: no count is left out or doubled where pieces meet."""
    (table,) = f_tables(np.array([[(1 << 18) - 1, 0, 0, UNMARKED]]), 18)
    for x in (0, 1, (1 << 16) - 1, 1 << 16, (1 << 17) - 1, 1 << 17, (1 << 18) - 1):
        assert table[x] == f(x)


def test_entries_fit_the_words_that_they_enter_circuits_as() -> None:
    rng = np.random.default_rng(0)
    totals = [*range(1, 300), *((1 << bits) - 1 for bits in range(9, 21)), *rng.integers(300, 1 << 20, 20)]
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
    sent = [[indices_of(m) for m in transcript.view(name) if m.step == OPEN] for name in ("p0", "p1")]
    sums = [(a + b).astype(np.int64) for a, b in zip(*sent, strict=True)]
    return np.concatenate([np.zeros(0, np.int64), *sums]) % 16


def expect_same(one: Ran, other: Ran) -> None:
    assert jobs.turns(one[0]["p0"].outcome) == jobs.turns(other[0]["p0"].outcome)
    for ran in (one, other):
        for result in ran[0].values():
            assert result.ledger.reveals == one[0]["p0"].ledger.reveals
    assert jobs.turns(one[0]["p0"].outcome)


@pytest.mark.some(1)
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
    seen = np.concatenate([opened(run_sealed(*scaled(factor))[1]) for factor in range(1, 5)])
    assert len(seen) > 200
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


WIDE = 62


def opened_terms(counts: Ints, totals: Ints, has_rest: Bools, penalties: Ints) -> list[int]:
    """The terms of rows dealt out as shares, opened."""
    b = Builder("showing")
    b.output("shown", To.BOTH, b.input("loss", Held.CARRIED, WIDE))
    showing = b.build()
    mine = np.random.default_rng(1).integers(0, 1 << 63, counts.shape).astype(np.uint64)
    shares = {"g": mine, "e": counts.astype(np.uint64) - mine}

    def protocol(session: GarblerSession | EvaluatorSession, share: Words) -> Rounds[list[int]]:
        engine = Engine(session, Observer(), LookUps(session.transfers, SeededRng(session.role.value)))
        prepare(engine, int(totals.sum(axis=1).max()), ())
        losses = yield from looked_up_losses(engine, share, totals, has_rest, penalties, WIDE)
        (words,) = yield from engine.run_all([entered(losses, WIDE)])
        outputs = yield from engine.run(showing, len(losses), words)
        return numbers_of(outputs, "shown")

    results, _ = run_local(
        {
            name: protocol(session, shares[name])
            for name, session in zip("ge", two_party_sessions(), strict=True)
        }
    )
    assert results["g"] == results["e"]
    return results["g"]


def term(counts: list[int], penalty: int) -> int:
    return f(sum(counts)) - sum(map(f, counts)) + (penalty if any(counts) else 0)


@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_terms_of_one_child_and_of_two_are_exact(n_classes: int) -> None:
    """At no record, at all of them, and in between, for totals about powers of two."""
    rng = np.random.default_rng(n_classes)
    totals = rng.integers(0, 700, (120, n_classes))
    totals[:6, 0] = 255, 256, 257, 511, 512, 0
    counts = rng.integers(0, totals + 1)
    counts[::4], counts[1::4] = 0, totals[1::4]
    has_rest, penalties = rng.integers(0, 2, 120) == 1, rng.integers(0, 3_000_000, 120)
    expected = [
        term(of, pen) + (term([t - c for t, c in zip(all_of, of, strict=True)], pen) if rest else 0)
        for of, all_of, rest, pen in zip(
            *(each.tolist() for each in (counts, totals, has_rest, penalties)), strict=True
        )
    ]
    assert opened_terms(counts, totals, has_rest, penalties) == expected


def some_terms(numbers: list[int]) -> added._Terms:
    """Terms of contexts: even numbers are shares, odd ones are carried words with the number as an id."""
    odd = [n for n in numbers if n % 2]
    words = CarriedWords("session", np.zeros((3, len(odd), 2), np.uint64), np.array(odd, np.uint64))
    of = iter(range(len(odd)))
    place = [next(of) if n % 2 else -1 for n in numbers]
    shares = np.array([0 if n % 2 else n for n in numbers], np.uint64)
    return added._Terms(shares, np.array(place, np.int64), (words,) if odd else ())


def numbers_in(terms: added._Terms) -> list[int]:
    ids = [number for words in terms.words for number in words.ids.tolist()]
    return [
        share if place < 0 else ids[place]
        for share, place in zip(terms.shares.tolist(), terms.place.tolist(), strict=True)
    ]


@pytest.mark.parametrize("first", [[], [2, 4], [1, 2, 3], [7, 5]])
@pytest.mark.parametrize("second", [[], [6], [9, 8, 11, 13]])
def test_terms_keep_their_shares_and_words(first: list[int], second: list[int]) -> None:
    both = some_terms(first).then(some_terms(second))
    assert numbers_in(both) == first + second
    for step in (1, -1, 2):
        chosen = np.arange(len(both.shares))[::step]
        assert numbers_in(both.take(chosen)) == (first + second)[::step]
    assert sum(map(len, both.take(np.zeros(0, np.int64)).words)) == 0


@pytest.mark.some(1)
@pytest.mark.parametrize(("most", "fewer"), [(110, 72), (0, 39)])
def test_contexts_that_are_computed_give_the_same_run(
    most: int, fewer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two children and with three; terms of large contexts are computed, and those of later ones looked up."""
    fields = {
        "version": "1",
        "name": "three",
        "partition": "single",
        "model": {"lkc": {"L": "2", "K": "2", "C": "1"}},
        "score": "added",
        "data": "t.csv",
        "columns": {
            "q": {"role": "qid", "taxonomy": {"*": {"g": ["a", "b"], "h": ["c", "d"], "i": ["e", "f"]}}},
            "n": {"role": "qid", "numeric": {"min": "0", "max": "8", "step": "2"}},
            "cls": {"role": "class", "domain": ["Y", "N"]},
        },
    }
    bundle = jobs.bundle_of(fields)
    codes = np.random.default_rng(3).integers(0, 40, 120).tolist()
    rows = [{"q": "abcef"[v // 8], "n": str(v % 8), "cls": "YN"[(v % 8 > 3) ^ (v // 8 > 2)]} for v in codes]
    whole = jobs.coded(bundle, rows)
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 2, 2)
    request = jobs.request_of(bundle)
    usual = run_sealed(tables, request)
    monkeypatch.setattr(added, "can_look_up", lambda engine, bound: bound <= most)
    computed = run_sealed(tables, request)
    expect_same(usual, computed)
    assert len(opened(computed[1])) == fewer < len(opened(usual[1]))
