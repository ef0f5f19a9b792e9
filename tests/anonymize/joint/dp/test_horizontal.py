"""Joint DiffGen over rows: the single holder's choices and counts up to noise; what is said and revealed."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.dp.diffgen import release_single
from anonymize.dp.noisy_table import cell_counts, cut_domain, least_cells
from anonymize.errors import PrivacyError, SchemaError
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.dp.horizontal import release_horizontally
from anonymize.joint.dp.noise import DELTA
from anonymize.joint.dp.run import JOINT_NOISE_CELLS, DpRequest
from anonymize.joint.roster import Roster
from anonymize.table import CodedTable
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Transcript, run_local
from tests.support import jobs
from tests.support.coins import ScriptedNoise
from tests.support.dp_runs import (
    MODES,
    Results,
    assert_mean_of_absolute,
    convolved,
    expect_agreement,
    request_for,
    run_horizontal,
    silence,
    split_rows,
    thirds,
)
from tests.support.dp_tables import hospital, people, tables
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.tamper import first_harmed, vouched
from tests.support.vectors import Golden


@settings(max_examples=examples(30))
@given(whole=tables(), data=st.data())
def test_without_noise_it_is_the_single_holders_run(whole: CodedTable, data: st.DataObject) -> None:
    """Random tables, grids and taxonomies, any split of the rows, any pair: same choices, same counts."""
    n = data.draw(st.sampled_from([2, 2, 3, 4]))
    parts = split_rows(whole, [data.draw(st.integers(0, n - 1)) for _ in whole.cells], n)
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    h = data.draw(st.integers(1, 4))
    request = request_for(
        whole.schema, specializations=h, max_cells=data.draw(st.sampled_from([8, 24, 10**6]))
    )
    if least_cells(whole.schema, h) > request.requirement.max_cells:
        return
    alone = release_single(whole, request.requirement, ScriptedNoise(), bounded=True)
    with pytest.MonkeyPatch.context() as patch:
        silence(patch)
        results, _ = run_horizontal(parts, request, leader=leader, deputy=deputy)
    for result in results.values():
        assert result.released.outcome == alone.outcome
        assert result.released.table.counts.tolist() == alone.table.counts.tolist()
        assert result.released.accountant.charges == alone.accountant.charges
        assert jobs.multiset(result.released.table.cells) == jobs.multiset(alone.table.cells)


def test_every_party_has_the_same_release() -> None:
    table = people()
    results, _ = run_horizontal(thirds(table), request_for(table.schema))
    expect_agreement(results)


@pytest.mark.some(1)
@pytest.mark.parametrize("noise", ["joint", "each"])
def test_counts_carry_noise_of_the_rate_that_was_charged(noise: str) -> None:
    """Many cells of one run: the mean of |noise| is that of one discrete Laplace variable, or of a sum of two."""
    table = people(n=200)
    request = request_for(table.schema, epsilon=Fraction(1, 2), specializations=5, noise=noise)
    errors = []
    for seed in range(8):
        results, _ = run_horizontal(thirds(table), request, seed=seed)
        released = results["p2"].released
        exact = exact_counts(table, request, results)
        errors += (released.table.counts - exact).tolist()
    rate = float(released.accountant.charges[-1].epsilon)
    a = math.exp(-rate)
    law = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-300, 301)}
    if noise == "each":
        law = convolved(law)
    assert_mean_of_absolute(errors, law)


def exact_counts(table: CodedTable, request: DpRequest, results: Results) -> np.ndarray[Any, Any]:
    cut = results["p0"].released.outcome.cut
    return cell_counts(table, cut, cut_domain(table.schema, cut), {})


def test_exactly_the_listed_values_are_revealed() -> None:
    table = people()
    results, _ = run_horizontal(thirds(table), request_for(table.schema, specializations=4))
    released = results["p1"].released
    seen = [(r.name, r.to, r.iteration, r.shape) for r in results["p1"].ledger.reveals]
    assert seen == [
        *[("candidate", "all", i, ()) for i in range(1, 5)],
        ("noisy_counts", "all", 4, (released.table.n_cells,)),
    ]
    assert {(a.name, a.to) for a in ALLOWED["dp/horizontal/circuit"]} == {(n, t) for n, t, _, _ in seen}


def test_a_party_outside_the_pair_sends_shares_and_nothing_else() -> None:
    table = people()
    request = request_for(table.schema)
    _, transcript = run_horizontal(thirds(table), request)
    sent = Counter((m.step, m.recipient, len(m.payload)) for m in transcript.messages if m.sender == "p2")
    leaves = sum(c.n_leaves for c in table.schema.qid) * 2
    assert sent.pop(("shares/seed", "p1", 16)) == 1
    assert sent.pop(("shares/share", "p0", 2 * leaves)) == 1
    ((step, recipient, _), times), *others = sent.items()
    assert (step, recipient, times, others) == ("shares/share", "p0", 1, [])


def sizes(transcript: Transcript, party: str) -> list[tuple[str, str, int]]:
    return [(m.sender, m.step, len(m.payload)) for m in transcript.view(party)]


def test_what_is_seen_has_the_same_shape_whatever_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same choices, other data: messages of the same steps and sizes at every party."""
    silence(monkeypatch)
    one = people(1, 300)
    request = request_for(one.schema, specializations=2)
    first, before = run_horizontal(thirds(one), request)
    compared = 0
    for seed in range(2, 30):
        other = people(seed, 40 * seed)
        if other.n_records > 3000:
            continue
        results, after = run_horizontal(thirds(other), request)
        if results["p0"].released.outcome == first["p0"].released.outcome:
            compared += 1
            for party in ("p0", "p1", "p2"):
                assert sizes(after, party) == sizes(before, party)
    assert compared >= 2


@pytest.mark.some(4)
@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("noise", ["joint", "each"])
def test_rounds_and_bytes_are_what_the_docstring_says(n: int, noise: str) -> None:
    table, h = people(), 4
    request = request_for(table.schema, specializations=h, noise=noise)
    results, transcript = run_horizontal(thirds(table, n), request)
    most = 6 + 6 * h if n == 2 else 9 + 6 * h
    assert most - 3 * h <= transcript.rounds <= most
    cells = results["p0"].released.table.n_cells
    words = 2 * (8 + 5 + 2)
    for outside in range(2, n):
        counts_bytes = 8 if noise == "each" else 2
        expected = 16 + 2 * words + counts_bytes * cells
        assert transcript.bytes_sent(f"p{outside}") == expected


def test_delta_is_computed_from_what_was_drawn() -> None:
    table = people()
    deltas = {}
    for noise in ("joint", "each"):
        results, _ = run_horizontal(thirds(table), request_for(table.schema, noise=noise))
        deltas[noise] = results["p2"].delta
    assert 0 < deltas["each"] < deltas["joint"] < DELTA
    assert deltas["joint"] < Fraction(1, 2**60)


def test_above_a_public_limit_each_adds_its_own_noise() -> None:
    table = people()
    request = request_for(table.schema)
    assert request.noise_for(JOINT_NOISE_CELLS) == "joint"
    assert request.noise_for(JOINT_NOISE_CELLS + 1) == "each"
    assert request_for(table.schema, noise="each").noise_for(1) == "each"


# ---- refused


def refusal(table: CodedTable, request: DpRequest, kind: type[Exception]) -> Exception:
    transcript = []
    with pytest.raises(kind) as caught:
        run_horizontal(thirds(table), request, tamper=lambda m: transcript.append(m) or m.payload)
    assert transcript == []  # before anything is sent
    return caught.value


def test_set_valued_columns_are_for_single_holders() -> None:
    table = hospital()
    error = refusal(table, request_for(table.schema), SchemaError)
    assert "codes is set-valued" in str(error)


def test_information_gain_is_for_who_can_score() -> None:
    table = people()
    assert "utility max" in str(refusal(table, request_for(table.schema, utility="infogain"), SchemaError))


def test_too_many_rows_at_a_holder() -> None:
    table = people(n=300)
    error = refusal(table, request_for(table.schema, max_rows=99), PrivacyError)
    assert getattr(error, "error_id", "") == "too-many-rows"


def test_too_many_cells() -> None:
    table = people()
    least = least_cells(table.schema, 3)
    error = refusal(table, request_for(table.schema, max_cells=least - 1), PrivacyError)
    assert getattr(error, "error_id", "") == "too-many-cells"


def test_a_run_keeps_to_its_limit_of_cells() -> None:
    """A specialization that would exceed the limit is no candidate: public, so it costs and tells nothing."""
    table = people()
    sizes = set()
    for seed in range(6):
        request = request_for(table.schema, specializations=5, max_cells=24, epsilon=Fraction(1, 10))
        results, _ = run_horizontal(thirds(table), request, seed=seed)
        sizes.add(results["p0"].released.table.n_cells)
        assert results["p0"].released.accountant.spent == Fraction(1, 10)
    assert max(sizes) <= 24


@pytest.mark.parametrize("pair", [("p0", "p0"), ("p0", "p9")])
def test_a_pair_must_be_two_parties_of_the_roster(pair: tuple[str, str]) -> None:
    table, names = people(), ("p0", "p1", "p2")
    request = request_for(table.schema)
    with pytest.raises(LocalProtocolError, match="two different parties"):
        run_local(
            {
                me: release_horizontally(
                    Roster(me, names, *pair),
                    table,
                    request,
                    SeededRng(me),
                    mode=MODES[release_horizontally],
                )
                for me in names
            }
        )


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("step", "sender", "harm", "noise"),
    [
        ("dp/candidate", "p0", lambda p: p[:-1], "joint"),
        ("dp/candidate", "p0", lambda p: b"\xff" * 4 + p[4:], "joint"),
        ("dp/candidate", "p0", lambda p: b"\x63" + p[1:], "joint"),
        ("dp/counts", "p0", lambda p: p[:-1], "joint"),
        ("shares/share", "p2", lambda p: p + b"\0", "joint"),
        ("shares/seed", "p2", lambda p: b"", "joint"),
        ("shares/open", "p1", lambda p: p[:-8], "each"),
        ("two_party/choices", "p1", lambda p: p[:-1], "joint"),
        ("two_party/choices", "p1", lambda p: bytes([p[0] ^ 1]) + p[1:], "joint"),
        ("two_party/tables", "p0", lambda p: p[:-1], "joint"),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any, noise: str) -> None:
    table = people()
    request = request_for(table.schema, noise=noise)
    _, honest = run_horizontal(thirds(table), request)
    with pytest.raises(RemoteProtocolError) as caught:
        run_horizontal(thirds(table), request, tamper=vouched(first_harmed(step, sender, harm), honest))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


@pytest.mark.parametrize("step", ["dp/candidate", "dp/counts"])
def test_a_pair_that_tells_two_things_is_named(step: str) -> None:
    """Counts that are plausible, too."""
    table = people()
    harmed = first_harmed(step, "p0", lambda payload: bytes([payload[0] ^ 1]) + payload[1:])
    with pytest.raises(RemoteProtocolError, match="tell different things") as caught:
        run_horizontal(thirds(table), request_for(table.schema), tamper=harmed)
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", step)


def test_golden_transcripts(golden: Golden) -> None:
    table = people()
    for n in (2, 3):
        for noise in ("joint", "each"):
            transcript = run_horizontal(thirds(table, n), request_for(table.schema, noise=noise))[1]
            golden.check("dp", f"horizontal {n} {noise}", transcript.digest())
