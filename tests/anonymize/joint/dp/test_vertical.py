"""Joint DiffGen over columns: the single holder's choices and counts up to noise; what is said and revealed."""

from __future__ import annotations

import dataclasses
import math
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
from anonymize.joint.dp.columns import OwnColumns
from anonymize.joint.dp.vertical import Sides, release_aligned
from anonymize.joint.roster import Roster
from anonymize.table import CodedTable
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Transcript, run_local
from tests.support import jobs
from tests.support.coins import ScriptedNoise
from tests.support.dp_runs import (
    MODES,
    assert_mean_of_absolute,
    convolved,
    expect_agreement,
    own_columns,
    request_for,
    rows_of,
    run_vertical,
    silence,
    split_columns,
)
from tests.support.dp_tables import hospital, people, tables
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.tamper import first_harmed
from tests.support.vectors import Golden


@settings(max_examples=examples(30))
@given(whole=tables(), data=st.data())
def test_without_noise_it_is_the_single_holders_run(whole: CodedTable, data: st.DataObject) -> None:
    """Random tables, grids and taxonomies, any split of the columns, either leader: same choices, same counts."""
    first = [i for i in range(len(whole.qid)) if data.draw(st.booleans())]
    columns = split_columns(whole, first)
    leader = data.draw(st.integers(0, 1))
    request = request_for(
        whole.schema,
        specializations=data.draw(st.integers(1, 4)),
        utility=data.draw(st.sampled_from(["max", "infogain"])),
        max_cells=data.draw(st.sampled_from([8, 24, 10**6])),
    )
    if least_cells(whole.schema, request.requirement.specializations) > request.requirement.max_cells:
        return
    alone = release_single(whole, request.requirement, ScriptedNoise(), bounded=True)
    with pytest.MonkeyPatch.context() as patch:
        silence(patch)
        results, _ = run_vertical(columns, request, leader=leader, deputy=1 - leader)
    for result in results.values():
        assert result.released.outcome == alone.outcome
        assert result.released.table.counts.tolist() == alone.table.counts.tolist()
        assert result.released.accountant.charges == alone.accountant.charges
        assert jobs.multiset(result.released.table.cells) == jobs.multiset(alone.table.cells)


@pytest.mark.some(1)
@pytest.mark.parametrize("noise", ["joint", "each"])
def test_counts_carry_noise_of_the_rate_that_was_charged(noise: str) -> None:
    table = people(n=200)
    request = request_for(table.schema, epsilon=Fraction(1, 2), specializations=5, noise=noise)
    errors = []
    for seed in range(8):
        results, _ = run_vertical(split_columns(table, [0]), request, seed=seed)
        expect_agreement(results)
        released = results["p1"].released
        cut = released.outcome.cut
        exact = cell_counts(table, cut, cut_domain(table.schema, cut), {})
        errors += (released.table.counts - exact).tolist()
    rate = float(released.accountant.charges[-1].epsilon)
    a = math.exp(-rate)
    law = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-300, 301)}
    assert_mean_of_absolute(errors, convolved(law) if noise == "each" else law)


def test_exactly_the_listed_values_are_revealed() -> None:
    table = people()
    results, _ = run_vertical(split_columns(table, [0]), request_for(table.schema, specializations=4))
    for result in results.values():
        seen = [(r.name, r.to, r.iteration, r.shape) for r in result.ledger.reveals]
        assert seen == [
            *[("candidate", "all", i, ()) for i in range(1, 5)],
            ("noisy_counts", "all", 4, (result.released.table.n_cells,)),
        ]
        assert {(n, t) for n, t, _, _ in seen} < {(a.name, a.to) for a in ALLOWED["dp/vertical/circuit"]}


def sizes(transcript: Transcript, party: str) -> list[tuple[str, int]]:
    return [(m.step, len(m.payload)) for m in transcript.view(party)]


def test_nothing_travels_record_by_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the histogram's blinded vectors, no message grows with the number of records (of equal bits)."""
    silence(monkeypatch)
    seen = {}
    for n in (300, 500):
        table = people(3, n)
        request = request_for(table.schema, specializations=2)
        results, transcript = run_vertical(split_columns(table, [0]), request)
        growing = {"joint_histogram/corrections", "ot/extend"}
        assert growing <= set(transcript.steps)
        others = [(m.sender, m.step, len(m.payload)) for m in transcript.messages if m.step not in growing]
        seen[n] = results["p0"].released.outcome, others
    assert seen[300] == seen[500]


def test_views_have_the_same_shape_whatever_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch)
    one = people(1)
    request = request_for(one.schema, specializations=2)
    first, before = run_vertical(split_columns(one, [0]), request)
    compared = 0
    for seed in range(2, 30):
        results, after = run_vertical(split_columns(people(seed), [0]), request)
        if results["p0"].released.outcome == first["p0"].released.outcome:
            compared += 1
            assert all(sizes(after, party) == sizes(before, party) for party in ("p0", "p1"))
    assert compared >= 2


@pytest.mark.parametrize("noise", ["joint", "each"])
@pytest.mark.parametrize("h", [1, 4, 6])
def test_rounds_are_what_the_docstring_says(noise: str, h: int) -> None:
    table = people()
    request = request_for(table.schema, specializations=h, noise=noise)
    _, transcript = run_vertical(split_columns(table, [0]), request)
    most = 8 + 3 * h - 2 * (noise == "each")
    assert most - h <= transcript.rounds <= most


@given(tables(), st.data())
def test_labels_of_both_sides_make_up_the_cells(table: CodedTable, data: st.DataObject) -> None:
    """Counting pairs of labels is counting cells, wherever the class goes."""
    cut = release_single(table, request_for(table.schema).requirement, ScriptedNoise()).outcome.cut
    domain = cut_domain(table.schema, cut)
    leaders = tuple(i for i in range(len(table.qid)) if data.draw(st.booleans()))
    sides = Sides(domain, leaders)
    assert sorted((*sides.axes(leads=True), *sides.axes(leads=False))) == list(range(len(domain.shape)))
    values = [cut.positions(i)[codes] for i, codes in enumerate(table.qid)] + [table.axis(0)]
    labels = []
    for leads in (True, False):
        axes = sides.axes(leads=leads)
        place = np.zeros(len(table.cells), dtype=np.int64)
        for axis in axes:
            place = place * domain.shape[axis] + values[axis]
        labels.append(place)
    pairs = np.zeros(sides.shape, dtype=np.int64)
    np.add.at(pairs, tuple(labels), 1)
    assert sides.in_order(pairs).tolist() == cell_counts(table, cut, domain, {}).tolist()
    smaller = min(math.prod(domain.shape[i] for i in side) for side in split_axes(domain.shape, leaders))
    assert min(sides.shape) <= smaller * table.schema.n_classes


def split_axes(shape: tuple[int, ...], leaders: tuple[int, ...]) -> tuple[list[int], list[int]]:
    return list(leaders), [i for i in range(len(shape) - 1) if i not in leaders]


# ---- refused


def refusal(columns: list[OwnColumns], request: Any, kind: type[Exception], **how: Any) -> Exception:
    sent = []
    with pytest.raises(kind) as caught:
        run_vertical(columns, request, tamper=lambda m: sent.append(m) or m.payload, **how)
    assert sent == []
    return caught.value


def test_set_valued_columns_are_for_single_holders() -> None:
    table = hospital()
    columns = [own_columns(table, [1]), own_columns(table, [2])]
    assert "codes is set-valued" in str(refusal(columns, request_for(table.schema), SchemaError))


def test_too_many_rows_or_cells() -> None:
    table = people(n=300)
    columns = split_columns(table, [0])
    error = refusal(columns, request_for(table.schema, max_rows=299), PrivacyError)
    assert getattr(error, "error_id", "") == "too-many-rows"
    most = least_cells(table.schema, 3)
    error = refusal(columns, request_for(table.schema, max_cells=most - 1), PrivacyError)
    assert getattr(error, "error_id", "") == "too-many-cells"


def test_no_records_or_counted_ones() -> None:
    table = people()
    request = request_for(table.schema)
    empty = rows_of(table, np.zeros(0, dtype=np.int64))
    refusal(split_columns(empty, [0]), request, LocalProtocolError)
    (first, second) = split_columns(table, [0])
    heavy = dataclasses.replace(first.table, weights=first.table.weights * 2)
    refusal([OwnColumns(heavy, first.numbers), second], request, LocalProtocolError)


def test_more_than_two_parties() -> None:
    table, names = people(), ("p0", "p1", "p2")
    request = request_for(table.schema)
    with pytest.raises(LocalProtocolError, match="two parties"):
        run_local(
            {
                me: release_aligned(
                    Roster(me, names, "p0", "p1"),
                    columns,
                    request,
                    SeededRng(me),
                    mode=MODES[release_aligned],
                )
                for me, columns in zip(names, [own_columns(table, [i]) for i in range(3)], strict=True)
            }
        )


@pytest.mark.parametrize(
    ("step", "sender", "harm", "noise"),
    [
        ("dp/split", "p0", lambda p: p[:-1], "joint"),
        ("dp/split", "p0", lambda p: b"\1" + p[1:], "joint"),
        ("dp/split", "p0", lambda p: p[:12] + b"\x63" + p[13:], "joint"),
        ("dp/counts", "p0", lambda p: p[:-1], "each"),
        ("dp/counts", "p1", lambda p: p + bytes(8), "each"),
        ("joint_histogram/shape", "p0", lambda p: bytes([p[0] ^ 1]) + p[1:], "joint"),
        ("joint_histogram/corrections", "p0", lambda p: p[:-1], "joint"),
        ("two_party/choices", "p1", lambda p: bytes([p[0] ^ 1]) + p[1:], "joint"),
        ("two_party/tables", "p0", lambda p: p[:-1], "joint"),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any, noise: str) -> None:
    table = people()
    request = request_for(table.schema, noise=noise, epsilon=Fraction(100))  # the split of age wins first
    with pytest.raises(RemoteProtocolError) as caught:
        run_vertical(split_columns(table, [0]), request, tamper=first_harmed(step, sender, harm))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


def test_golden_transcripts(golden: Golden) -> None:
    table = people()
    for noise in ("joint", "each"):
        transcript = run_vertical(split_columns(table, [0]), request_for(table.schema, noise=noise))[1]
        golden.check("dp", f"vertical {noise}", transcript.digest())
