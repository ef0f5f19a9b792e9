"""`engine: thesis`: the published protocols end to end on small tables, with the corrections of semantics §8.2."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.dp.noisy_table import cell_counts, cut_domain
from anonymize.errors import SchemaError
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.dp.thesis.choice import choose_by_weight, comparison_circuit, most_candidates
from anonymize.joint.dp.thesis.horizontal import (
    max_circuit,
    release_horizontally_as_published,
    weight_circuit,
)
from anonymize.joint.dp.thesis.ranges import KeySize, Ranges, ranges_for
from anonymize.joint.dp.thesis.weights import exponential_weights
from anonymize.joint.engine import Engine
from anonymize.table import CodedTable
from anonymize.tds import Observer
from crypto.circuit import Held, evaluate
from crypto.encoding import as_words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, run_local
from crypto.random_value import random_value_circuit
from crypto.rounds import Rounds
from tests.support.dp_runs import (
    expect_agreement,
    request_for,
    run_horizontal,
    split_rows,
)
from tests.support.dp_tables import categorical, numeric, schema_of
from tests.support.ideal import ideal_sessions
from tests.support.tamper import first_harmed
from tests.support.thesis import SHORT, idealize, published, small


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_a_run_end_to_end(partition: str) -> None:
    """Both parties agree; the account is that of DiffGen; the counts carry both parties' noise."""
    table, errors = small(), []
    for seed in range(3):
        results, _ = published(partition, table, seed)
        expect_agreement(results)
        released = results["p0"].released
        assert len(released.outcome.steps) == 2
        assert sum((c.epsilon for c in released.accountant.charges), Fraction(0)) == Fraction(1, 2)
        assert (results["p0"].delta, results["p0"].noise) == (0, "each")
        cut = released.outcome.cut
        exact = cell_counts(table, cut, cut_domain(table.schema, cut), {})
        errors += (released.table.counts - exact).tolist()
    assert any(errors)
    assert np.abs(errors).mean() < 15  # two variables of scale 3


@pytest.mark.more
@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_the_law_of_the_first_choice(partition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 runs over ideal twins, ε′ = 1: split of age, then column, against weight / sum of weights."""
    idealize(monkeypatch)
    table, seen = small(12, 3), {}
    request = request_for(table.schema, noise="each", epsilon=Fraction(6), specializations=1, max_rows=6)
    runs = 200
    for seed in range(runs):
        results, _ = published(partition, table, seed, epsilon=Fraction(6), specializations=1, max_rows=12)
        step = results["p0"].released.outcome.steps[0].candidate
        key = (step.column, step.children[0].last)
        seen[key] = seen.get(key, 0) + 1
    expected = first_choice(table, request.requirement.step_epsilon(table.schema))
    assert seen.keys() == expected.keys()
    assert sum((seen[k] - runs * p) ** 2 / (runs * p) for k, p in expected.items()) < 28


def first_choice(table: CodedTable, epsilon: Fraction) -> dict[tuple[int, int], float]:
    """The law, from the definition."""
    weights = exponential_weights(epsilon, table.n_records).values
    counts = [table.class_histogram(i) for i in range(2)]
    splits = [
        weights[sum(int(side.sum(axis=0).max()) for side in (counts[0][:i], counts[0][i:]))] for i in (1, 2)
    ]
    job = weights[sum(int(counts[1][a:b].sum(axis=0).max()) for a, b in ((0, 2), (2, 3)))]
    law = {(1, 2): 0.0}
    for i, split in enumerate(splits, start=1):
        drawn = split / sum(splits)
        law[0, i] = drawn * split / (split + job)
        law[1, 2] += drawn * job / (split + job)
    return law


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_exactly_the_listed_values_are_revealed(partition: str) -> None:
    results, _ = published(partition, small())
    seen = {(r.name, r.to) for r in results["p1"].ledger.reveals}
    assert seen <= {(a.name, a.to) for a in ALLOWED[f"dp/{partition}/thesis"]}
    names = [r.name for r in results["p1"].ledger.reveals]
    assert names.count("candidate") == 2
    assert names[-1] == "noisy_counts"
    assert ("split" in names) == ("own_noisy_counts" in names) == (partition == "horizontal")


@pytest.mark.some(2)
@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
@pytest.mark.parametrize("h", [1, 3])
def test_rounds_are_what_the_docstring_says(partition: str, h: int) -> None:
    results, transcript = published(partition, small(), specializations=h)
    choices = sum(r.name in {"candidate", "split"} for r in results["p0"].ledger.reveals)
    most = 4 + 8 * h if partition == "vertical" else 8 * choices + 9 * (1 + h) + 4
    assert most / 2 <= transcript.rounds <= most


def test_the_deputy_may_lead() -> None:
    results, _ = published("vertical", small(), leader=1, deputy=0)
    expect_agreement(results)


# ---- RVP and comparison


def law_of_choice(weights: tuple[int, ...]) -> dict[int, Fraction]:
    """The comparison circuit for every R below the sum of the weights."""
    total = sum(weights)
    circuit = comparison_circuit(len(weights), 64, Held.ADDITIVE_SHARED)
    inputs = {
        "weights": np.tile(as_words(weights), (total, 1)),
        "r": np.arange(total, dtype=np.uint64).reshape(-1, 1),
    }
    index = evaluate(circuit, total, inputs)["index"][:, 0]
    return {int(i): Fraction(int((index == i).sum()), total) for i in set(index.tolist())}


@pytest.mark.parametrize("weights", [(3, 1, 2), (0, 5, 0, 1), (7, 0), (0, 0, 9), (1, 1, 1, 1, 1)])
def test_the_law_of_a_joint_choice(weights: tuple[int, ...]) -> None:
    """Exactly weight / sum over all values of R; weight 0 never wins."""
    expected = {i: Fraction(w, sum(weights)) for i, w in enumerate(weights) if w}
    assert law_of_choice(weights) == expected


def test_choices_in_one_ring_with_reduced_shares() -> None:
    """Shares of weights and of their sum, R by RVP: 100 choices against the law."""
    weights = (5, 1, 0, 2)
    garbler, evaluator = ideal_sessions("choices")

    def protocol(session: Any, side: int) -> Rounds[list[int]]:
        engine, found = Engine(session, Observer()), []
        for i in range(100):
            mask = np.random.default_rng(i).integers(0, 1 << 63, 5, dtype=np.uint64)
            values = as_words([*weights, sum(weights)])
            share = values - mask if side else mask
            found.append((yield from choose_by_weight(engine, share[:4], share[4:])))
        return found

    outputs, _ = run_local({"g": protocol(garbler, 0), "e": protocol(evaluator, 1)}, record=False)
    assert outputs["g"] == outputs["e"]
    seen = np.bincount(outputs["g"], minlength=4)
    assert seen[2] == 0
    expected = 100 * np.array([5, 1, 2]) / 8
    assert float(((seen[[0, 1, 3]] - expected) ** 2 / expected).sum()) < 28  # 2 degrees, p < 1e-6
    assert random_value_circuit(64, 64).and_gates > 0


# ---- Max, Taylor series, shares


def test_the_max_circuit_gives_shares_that_add_up() -> None:
    """α_1 + α_2 = Max as integers, whatever α_2 is: no ring, no wrap ([T] Algorithm 7.6)."""
    circuit = max_circuit(2, 2, 5, 40)
    rng = np.random.default_rng(0)
    batch = 200
    sides = [rng.integers(0, 15, (batch, 4), dtype=np.uint64) for _ in range(2)]
    alpha = rng.integers(0, 1 << 40, (batch, 1), dtype=np.uint64)
    inputs = {"counts/garbler": sides[0], "counts/evaluator": sides[1], "alpha": alpha}
    share = evaluate(circuit, batch, inputs)["alpha"][:, 0].astype(np.int64)
    signed = share - ((share >> 40) << 41)
    total = (sides[0] + sides[1]).astype(np.int64).reshape(batch, 2, 2)
    assert (signed + alpha[:, 0].astype(np.int64) == total.max(axis=2).sum(axis=1)).all()
    assert signed.min() < 0


def test_the_weight_circuit_adds_words_and_shifts() -> None:
    rng = np.random.default_rng(1)
    circuit = weight_circuit(3, 70, 50)
    values = [int.from_bytes(rng.bytes(14), "little") for _ in range(50)]
    masks = [int.from_bytes(rng.bytes(30), "little") for _ in values]
    words = [
        np.array([[v >> 64 * i & (1 << 64) - 1 for i in range(3)] for v in column], dtype=np.uint64)
        for column in (masks, [v - m for v, m in zip(values, masks, strict=True)])
    ]
    out = evaluate(circuit, len(values), {"garbler": words[0], "evaluator": words[1]})["weight"][:, 0]
    assert out.tolist() == [v >> 70 for v in values]


def test_ranges_follow_from_the_job_alone() -> None:
    request = request_for(small().schema, noise="each", epsilon=Fraction(2), max_rows=24)
    ranges = ranges_for(request)
    weights = exponential_weights(request.requirement.step_epsilon(request.schema), 48).values
    assert len(ranges.series.weights.values) == 49
    assert abs(ranges.series.weights.values[-1] - weights[-1]) <= weights[-1] / 2**20
    assert ranges.share_bits >= ranges.count_bits + 40
    assert ranges.mask_bits == ranges.series.value_bits + 64
    shape = ranges.polynomials(5)
    top = (1 << ranges.share_bits) - 1
    for a in (-top, 0, 17):  # the coefficients fit, whatever the leader's share is
        constant, *others = ranges.series.shifted(a)
        assert all(abs(c) < 1 << shape.coefficient_bits for c in (constant, *others))
        assert abs(constant - (1 << ranges.mask_bits)) < 1 << shape.coefficient_bits


def test_most_candidates_bounds_every_run() -> None:
    schema = small().schema
    request = request_for(schema, specializations=3)
    assert most_candidates(schema, request.requirement) == 2 + 3 * 1
    wide = schema_of(numeric("x", 90), categorical("q", {"*": [f"v{i}" for i in range(12)]}))
    assert most_candidates(wide, request.requirement) == max(2 + 3 * 11, 89)


# ---- refused, with the numbers, before anything is sent


def refusal(partition: str, **settings: Any) -> str:
    sent: list[Message] = []
    with pytest.raises(SchemaError) as caught:
        published(partition, small(), tamper=lambda m: sent.append(m) or m.payload, **settings)
    assert sent == []
    return str(caught.value)


def test_ranges_that_are_too_large() -> None:
    assert "scores up to 20000" in refusal("horizontal", max_rows=10_000)
    text = refusal("horizontal", max_rows=24, options={"key_size": KeySize(512, unsafe_short=True)})
    assert "Taylor polynomial of degree" in text
    assert "a key of 512 bits has 511" in text
    assert "4 candidates with scores up to 24 need sums of 92 bits" in refusal(
        "vertical", epsilon=Fraction(40)
    )


def test_only_max() -> None:
    assert "utility max" in refusal("vertical", utility="infogain")
    assert "noise each" in refusal("vertical", noise="joint")


def test_keys_too_short_for_a_scalar_product() -> None:
    sent: list[Message] = []
    with pytest.raises(LocalProtocolError, match="a scalar product"):
        published(
            "vertical",
            small(),
            tamper=lambda m: sent.append(m) or m.payload,
            options={"key_size": KeySize(64, unsafe_short=True)},
        )
    assert sent == []


def test_two_parties_only() -> None:
    table = small()
    request = request_for(table.schema, noise="each", epsilon=Fraction(2), max_rows=24)
    rows = split_rows(table, [i % 3 for i in range(24)], 3)
    with pytest.raises(LocalProtocolError, match="two parties"):
        run_horizontal(rows, request, release=release_horizontally_as_published, options=SHORT)


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("partition", "step", "sender"),
    [
        ("vertical", "paillier/key", "p0"),
        ("vertical", "scalar_product/masked", "p1"),
        ("vertical", "dp/counts", "p1"),
        ("horizontal", "paillier/key", "p1"),
        ("horizontal", "polynomial/values", "p0"),
        ("horizontal", "dp/counts", "p0"),
        ("horizontal", "two_party/choices", "p1"),
    ],
)
def test_hostile_messages_name_the_culprit(partition: str, step: str, sender: str) -> None:
    tamper = first_harmed(step, sender, lambda payload: payload[:-1])
    with pytest.raises(RemoteProtocolError) as caught:
        published(partition, small(), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (sender, step)


def test_ranges_are_frozen_public_sizes() -> None:
    assert isinstance(ranges_for(request_for(small().schema, epsilon=Fraction(2), max_rows=24)), Ranges)
