"""Secure sums: output, cost, hostile messages, uniform views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.encoding import Words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.rounds import Rounds
from crypto.secure_sum import PairwiseMasks, agree_masks, masked_sum, ring_sum
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.vectors import Golden

JOB = bytes(32)
words = st.integers(min_value=0, max_value=2**64 - 1)


def party(kind: str, me: str, names: list[str], values: list[list[int]], seed: object) -> Rounds[list[Words]]:
    """One party that sums several vectors in a row, collected at the first name."""
    rng = SeededRng((seed, me))
    masks = (yield from agree_masks(me, names, JOB, rng)) if kind == "masked" else None
    sums = []
    for vector in values:
        own = np.array(vector, dtype=np.uint64)
        if masks is not None:
            total = yield from masked_sum(me, names, names[0], own, masks)
        else:
            total = yield from ring_sum(me, names, names[0], own, rng)
        if total is not None:
            sums.append(total)
    return sums


def run(
    kind: str, vectors: dict[str, list[list[int]]], seed: object = 0, **how: object
) -> tuple[dict[str, list[Words]], Transcript]:
    names = list(vectors)
    return run_local({n: party(kind, n, names, vectors[n], seed) for n in names}, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["masked", "ring"])
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data(), n=st.integers(3, 6), lengths=st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_sum_equals_the_plain_sum(kind: str, data: st.DataObject, n: int, lengths: list[int]) -> None:
    vectors = {
        f"p{i}": [data.draw(st.lists(words, min_size=m, max_size=m)) for m in lengths] for i in range(n)
    }
    outputs, _ = run(kind, vectors)
    for k, m in enumerate(lengths):
        expected = [sum(vectors[p][k][i] for p in vectors) % 2**64 for i in range(m)]
        assert outputs["p0"][k].tolist() == expected
    assert all(outputs[p] == [] for p in vectors if p != "p0")


@pytest.mark.parametrize("n", [3, 5])
def test_cost_is_as_documented(n: int) -> None:
    m = 7
    vectors = {f"p{i}": [[i] * m] for i in range(n)}
    _, masked = run("masked", vectors)
    assert masked.steps == ("secure_sum/keys", "secure_sum/masked")
    assert masked.rounds == 2
    assert masked.bytes_sent("p0") == 48 * (n - 1)
    assert masked.bytes_sent("p1") == 48 * (n - 1) + 8 * m
    _, ring = run("ring", vectors)
    assert ring.rounds == n
    assert {ring.bytes_sent(p) for p in vectors} == {8 * m}


def test_golden_transcripts(golden: Golden) -> None:
    vectors = {f"p{i}": [[i, 2**63 + i], [5]] for i in range(4)}
    for kind in ("masked", "ring"):
        golden.check("secure_sum", kind, run(kind, vectors, seed="golden")[1].digest())


@pytest.mark.parametrize("kind", ["masked", "ring"])
def test_what_a_peer_sends_is_uniform_whatever_its_input(kind: str) -> None:
    """Chi-square over the top byte of what the collector sees from p1, for two very different inputs."""
    m, runs = 64, 60
    for value in (0, 2**64 - 1):
        seen = np.zeros(256)
        for seed in range(runs):
            vectors = {f"p{i}": [[value] * m] for i in range(3)}
            _, transcript = run(kind, vectors, seed)
            step = {"masked": "secure_sum/masked", "ring": "secure_sum/ring"}[kind]
            recipient = "p0" if kind == "masked" else "p2"
            (message,) = [x for x in transcript.view(recipient) if x.step == step and x.sender == "p1"]
            seen += np.bincount(np.frombuffer(message.payload, np.uint8)[7::8], minlength=256)
        expected = m * runs / 256
        statistic = float(((seen - expected) ** 2 / expected).sum())
        assert statistic < 377.1  # chi-square, 255 degrees of freedom, p = 1e-6


def test_masks_of_two_sums_differ() -> None:
    vectors = {f"p{i}": [[0] * 8, [0] * 8] for i in range(3)}
    _, transcript = run("masked", vectors)
    first, second = [
        m.payload for m in transcript.view("p0") if m.sender == "p1" and m.step.endswith("masked")
    ]
    assert first != second


def agreed(seed: object = 0, job: bytes = JOB, names: tuple[str, ...] = ("a", "b", "c")) -> PairwiseMasks:
    outputs, _ = run_local({me: agree_masks(me, names, job, SeededRng((seed, me))) for me in names})
    return outputs["a"]


def test_masks_depend_on_all_that_a_sum_is_for() -> None:
    """The same coins, and so the same secrets and nonces: job, roster, step or number of the sum make other masks."""
    masks = agreed()
    words_of = [
        masks.next_mask("step", 4),
        masks.next_mask("step", 4),
        agreed().next_mask("another step", 4),
        agreed(job=b"another").next_mask("step", 4),
        agreed(job=JOB + b"a").next_mask("step", 4),
        agreed(seed=1).next_mask("step", 4),
    ]
    seen = [word for mask in words_of for word in mask.tolist()]
    assert len(set(seen)) == len(seen)
    assert agreed().next_mask("step", 4).tolist() == words_of[0].tolist()


def test_masks_of_a_pair_depend_on_the_roster() -> None:
    """The common masks of two parties change with the other parties of the run."""
    masks = [agreed(names=names) for names in (("a", "b", "c"), ("a", "b", "d"))]
    for each in masks:
        each._secrets = {"b": each._secrets["b"]}
    assert masks[0]._secrets == masks[1]._secrets
    assert not (masks[0].next_mask("step", 4) == masks[1].next_mask("step", 4)).any()


BAD_VECTORS = {
    "int64": np.array([1, -1], np.int64),
    "int32": np.array([1, 2], np.int32),
    "float64": np.ones(2),
    "list": [1, 2],
    r"shape \(1, 2\)": np.ones((1, 2), np.uint64),
}


@pytest.mark.parametrize("kind", ["masked", "ring"])
@pytest.mark.parametrize(("match", "values"), BAD_VECTORS.items(), ids=BAD_VECTORS)
def test_what_is_no_vector_of_words_is_refused_before_anything_is_sent(
    kind: str, match: str, values: Any
) -> None:
    names = ["a", "b", "c"]
    for me in names:
        protocol = (
            masked_sum(me, names, "a", values, agreed())
            if kind == "masked"
            else ring_sum(me, names, "a", values, SeededRng(0))
        )
        with pytest.raises(LocalProtocolError, match=match):
            next(protocol)


@pytest.mark.parametrize("kind", ["masked", "ring"])
def test_two_parties_are_refused(kind: str) -> None:
    with pytest.raises(LocalProtocolError, match="needs 3 or more"):
        run(kind, {"p0": [[1]], "p1": [[2]]})


@pytest.mark.parametrize(
    ("kind", "step"),
    [("masked", "secure_sum/keys"), ("masked", "secure_sum/masked"), ("ring", "secure_sum/ring")],
)
@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b""])
def test_a_wrong_length_names_the_culprit(kind: str, step: str, harm: object) -> None:
    def tamper(message: Message) -> bytes | None:
        if message.step == step and message.sender == "p2":
            return harm(message.payload)  # type: ignore[operator, no-any-return]
        return message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        run(kind, {f"p{i}": [[1, 2]] for i in range(3)}, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p2", step)


def test_a_key_of_small_order_is_refused() -> None:
    def tamper(message: Message) -> bytes | None:
        if message.step == "secure_sum/keys" and message.sender == "p1":
            return bytes(32) + message.payload[32:]
        return message.payload

    with pytest.raises(RemoteProtocolError, match="small order"):
        run("masked", {f"p{i}": [[1]] for i in range(3)}, tamper=tamper)


def test_secrets_have_no_repr() -> None:
    def one(me: str) -> Rounds[str]:
        return repr((yield from agree_masks(me, ["a", "b", "c"], JOB, SeededRng(me))))

    outputs, _ = run_local({me: one(me) for me in ("a", "b", "c")})
    assert set(outputs.values()) == {f"PairwiseMasks(me={me!r}, <secret>)" for me in ("a", "b", "c")}
