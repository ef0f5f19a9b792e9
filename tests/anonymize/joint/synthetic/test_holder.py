"""Joint holders of a synthetic table: the single holder's openings, however records are spread; what is said."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.dp.noise import Plans
from anonymize.synthetic.marginals import leaf_marginals
from anonymize.table import CodedTable
from crypto.errors import RemoteProtocolError
from crypto.local import Transcript
from tests.support.dp_runs import split_columns, split_rows, thirds
from tests.support.dp_tables import people, tables
from tests.support.examples import examples
from tests.support.synthetic_joint import Joint, alone, fix_coins, horizontal, some_pairs, vertical
from tests.support.tamper import first_harmed, vouched
from tests.support.vectors import Golden


@pytest.mark.some(1)
@pytest.mark.parametrize("n_edges", [1, 2])
def test_with_the_same_coins_any_number_of_holders_opens_the_same(
    n_edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows at two, three or five parties, columns in every way at two: as one holder of everything, to the bit."""
    fix_coins(monkeypatch)
    table = people()
    expected = alone(table, n_edges, again=True)
    for n, leader, deputy in [(2, 1, 0), (3, 0, 1), (3, 2, 0), (5, 1, 3)]:
        found = horizontal(thirds(table, n), n_edges, again=True, leader=leader, deputy=deputy)
        assert found.opened == expected
    for first in ([], [0], [1], [0, 2], [0, 1, 2]):
        columns = split_columns(table, first)
        assert vertical(table.schema, columns, n_edges, again=True, leader=n_edges - 1).opened == expected


@settings(max_examples=examples(15), deadline=None)
@given(whole=tables(), data=st.data())
def test_with_the_same_coins_all_open_the_same(whole: CodedTable, data: st.DataObject) -> None:
    """Random tables, any split of rows or columns, any pair; one, two, three holders: the same openings."""
    most = len(whole.qid) - 1
    n_edges = data.draw(st.integers(min(1, most), most))
    if n_edges == 0:
        return
    n = data.draw(st.sampled_from([2, 3]))
    parts = split_rows(whole, [data.draw(st.integers(0, n - 1)) for _ in whole.cells], n)
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    first = [i for i in range(len(whole.qid)) if data.draw(st.booleans())]
    again = data.draw(st.booleans())
    expected = alone(whole, n_edges, again=again)
    with pytest.MonkeyPatch.context() as patch:
        fix_coins(patch)
        assert horizontal(parts, n_edges, again=again, leader=leader, deputy=deputy).opened == expected
        if whole.n_records:
            columns = split_columns(whole, first)
            found = vertical(whole.schema, columns, n_edges, again=again, leader=leader % 2)
            assert found.opened == expected


def test_bounds_on_rows_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """They make words wider, and nothing else."""
    fix_coins(monkeypatch)
    table = people()
    opened = [horizontal(thirds(table), 2, max_rows=most).opened for most in (100, 60_000, 10**9)]
    assert opened[0] == opened[1] == opened[2]


# ---- what is said


def runs(n_edges: int = 2, **how: Any) -> list[Joint]:
    """Rows at three parties; columns at two."""
    table = people()
    columns = split_columns(table, [0])
    return [horizontal(thirds(table), n_edges, **how), vertical(table.schema, columns, n_edges, **how)]


def test_exactly_the_listed_values_are_revealed() -> None:
    table = people()
    for mode, run in zip(("horizontal", "vertical"), runs(), strict=True):
        pairs = some_pairs(table.schema)
        tables = [(m.shape, 0) for m in leaf_marginals(table.schema)]
        chosen = [(pairs[i].shape, 2) for i in run.opened[1]]
        for ledger in run.ledgers.values():
            assert [(r.name, r.to, r.iteration, r.shape) for r in ledger.reveals] == [
                *[("noisy_marginal", "all", at, shape) for shape, at in tables],
                *[("edge", "all", i, ()) for i in (1, 2)],
                *[("noisy_marginal", "all", at, shape) for shape, at in chosen],
            ]
        listed = {(a.name, a.to) for a in ALLOWED[f"dp/{mode}/synthetic"]}
        assert {(r.name, r.to) for r in ledger.reveals} <= listed


def test_a_party_outside_the_pair_sends_shares_once_and_nothing_else() -> None:
    """Of every column and of every pair: what is measured later was shared before."""
    table = people()
    run = horizontal(thirds(table), 2, again=True)
    sent = Counter((m.step, m.recipient, len(m.payload)) for m in run.transcript.messages if m.sender == "p2")
    columns = sum(m.size for m in leaf_marginals(table.schema))
    pairs = sum(pair.size for pair in some_pairs(table.schema))
    shared = [("shares/share", "p0", 2 * columns), ("shares/share", "p0", 2 * pairs)]
    assert sent == Counter([("shares/seed", "p1", 16), *shared])


def sizes(transcript: Transcript, party: str) -> list[tuple[str, str, int]]:
    return [(m.sender, m.step, len(m.payload)) for m in transcript.view(party)]


def test_what_is_seen_has_the_same_shape_whatever_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same edges, other data, rows added and taken away: messages of the same steps and sizes at every party."""
    fix_coins(monkeypatch)
    before = horizontal(thirds(people(1, 300)), 2)
    compared = 0
    for seed in range(2, 12):
        after = horizontal(thirds(people(seed, 60 * seed)), 2)
        if after.opened[1] == before.opened[1]:
            compared += 1
            for party in before.openings:
                assert sizes(after.transcript, party) == sizes(before.transcript, party)
    assert compared >= 2


def test_nothing_travels_record_by_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the histograms' blinded vectors, no message grows with the number of records (of equal bits)."""
    fix_coins(monkeypatch)
    seen = {}
    for n in (300, 340):
        table = people(3, n)
        run = vertical(table.schema, split_columns(table, [0]), 2)
        growing = {"joint_histogram/corrections", "ot/extend"}
        assert growing <= set(run.transcript.steps)
        others = [
            (m.sender, m.step, len(m.payload)) for m in run.transcript.messages if m.step not in growing
        ]
        seen[n] = run.opened[1], others
    assert seen[300] == seen[340]


@pytest.mark.some(1)
@pytest.mark.parametrize("n_edges", [1, 2])
@pytest.mark.parametrize("again", [False, True])
def test_rounds_are_what_the_docstrings_say(n_edges: int, again: bool) -> None:
    """Setting up, columns, choice, pairs: 3, 2, 2 + 2 for every edge, 2, and 1 to hear the end of it."""
    table = people()
    rounds = {n: horizontal(thirds(table, n), n_edges, again=again).transcript.rounds for n in (2, 3, 5)}
    assert rounds[2] == 10 + 2 * n_edges + 2 * again
    assert rounds[3] == rounds[5] == rounds[2] + 3
    for first, crossing in (([0], 2), ([0, 1], 1), ([], 0), ([2], 2)):
        run = vertical(table.schema, split_columns(table, first), n_edges, again=again)
        most = 9 + 2 * n_edges + 2 * crossing + 2 * again
        assert most - 2 <= run.transcript.rounds <= most


def test_noise_is_drawn_at_the_rates_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One variable for every cell and every pair, and all parties count it."""
    asked: list[tuple[str, Fraction, int]] = []
    for kind in ("geometric", "laplace"):
        original = getattr(Plans, kind)

        def recording(
            self: Plans, rate: Fraction, draws: int, kind: str = kind, original: Any = original
        ) -> Any:
            asked.append((kind, rate, draws))
            return original(self, rate, draws)

        monkeypatch.setattr(Plans, kind, recording)
    table, expected = people(), []
    pairs, halves = some_pairs(table.schema), split_columns(table, [0])
    for n_parties, run in ((3, horizontal(thirds(table), 2)), (2, vertical(table.schema, halves, 2))):
        columns = ("laplace", Fraction(7, 30), sum(m.size for m in leaf_marginals(table.schema)))
        chosen = ("laplace", Fraction(1, 5), sum(pairs[i].size for i in run.opened[1]))
        expected += [columns, ("geometric", Fraction(1, 5), len(pairs)), chosen] * n_parties
    assert Counter(asked) == Counter(expected)


# ---- hostile peers


def flipped(place: int) -> Any:
    return lambda payload: payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("synthetic/marginals", "p0", lambda p: p[:-1]),
        ("synthetic/forest", "p0", lambda p: p + b"\0"),
        ("synthetic/forest", "p0", lambda p: b"\x03" + p[1:]),
        ("synthetic/forest", "p0", lambda p: p[:4] * 2),
        ("shares/share", "p2", lambda p: p[:-1]),
        ("shares/seed", "p2", lambda p: b""),
        ("two_party/choices", "p1", flipped(0)),
        ("two_party/tables", "p0", lambda p: p[:-1]),
        ("two_party/outputs", "p1", flipped(0)),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any) -> None:
    table = people()
    honest = horizontal(thirds(table), 2).transcript
    with pytest.raises(RemoteProtocolError) as caught:
        horizontal(thirds(table), 2, tamper=vouched(first_harmed(step, sender, harm), honest))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


@pytest.mark.parametrize("high", [b"\x40", b"\x80"])
def test_of_a_count_that_cannot_be_all_others_are_suspects(high: bytes) -> None:
    """The share of any of them may have made it."""
    honest = horizontal(thirds(people()), 2).transcript
    harm = first_harmed("synthetic/marginals", "p0", lambda p: p[:7] + high + p[8:])
    with pytest.raises(RemoteProtocolError, match="a count that no noise of this run makes") as caught:
        horizontal(thirds(people()), 2, tamper=vouched(harm, honest))
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", "synthetic/marginals")


@pytest.mark.parametrize("step", ["synthetic/marginals", "synthetic/forest"])
def test_a_pair_that_tells_two_things_is_named(step: str) -> None:
    """Counts and edges that are plausible, too."""
    with pytest.raises(RemoteProtocolError, match="tell different things") as caught:
        horizontal(thirds(people()), 2, tamper=first_harmed(step, "p0", flipped(0)))
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", step)


@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("joint_histogram/shape", "p0", flipped(0)),
        ("joint_histogram/shape", "p0", flipped(48)),
        ("joint_histogram/corrections", "p0", lambda p: p[:-1]),
        ("two_party/choices", "p1", flipped(0)),
        ("two_party/tables", "p0", lambda p: p[:-1]),
        ("two_party/outputs", "p1", lambda p: p[:-1]),
    ],
)
def test_a_hostile_holder_of_columns_is_named(step: str, sender: str, harm: Any) -> None:
    table = people()
    with pytest.raises(RemoteProtocolError) as caught:
        vertical(table.schema, split_columns(table, [0]), 2, tamper=first_harmed(step, sender, harm))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


def test_golden_transcripts(golden: Golden) -> None:
    table = people()
    for n in (2, 3):
        golden.check("synthetic", f"horizontal {n}", horizontal(thirds(table, n), 2).transcript.digest())
    run = vertical(table.schema, split_columns(table, [0]), 2)
    golden.check("synthetic", "vertical", run.transcript.digest())
