"""Half-gates against an implementation from the paper; pieces, tweaks, labels, colours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import hashing
from crypto import pieces as cutting
from crypto.blocks import random_blocks
from crypto.circuit import BLOCKS, Circuit, Group, Kind, Region, bits_of_values, evaluate
from crypto.garbling import Evaluation, Garbling
from crypto.pieces import pieces
from tests.support.circuits import mixed
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.slow_half_gates import ev_and, ev_evaluator, ev_garbler, gb_and, gb_evaluator, gb_garbler
from tests.support.statistics import BYTE_LIMIT, byte_statistic

KEY = bytes(range(16))


def offset(seed: object = 0) -> np.ndarray:
    return random_blocks(SeededRng((seed, "delta")), 1)[0] | np.array([1, 0], dtype=np.uint64)


def prepared(
    circuit: Circuit, n: int, seed: object = 0
) -> tuple[Garbling, Evaluation, dict[str, np.ndarray]]:
    """Both halves with labels of random inputs in place."""
    delta = offset(seed)
    g, e = Garbling(circuit, n, delta, KEY), Evaluation(circuit, n, KEY)
    rng = np.random.default_rng(len(repr(seed)) + n)
    values = {
        name: rng.integers(0, 1 << i.width, (n, i.count), dtype=np.uint64)
        for name, i in circuit.inputs.items()
    }
    for name, group in circuit.inputs.items():
        bits = bits_of_values(values[name], group.width).astype(np.uint64)
        ((region, _),) = group.first_rows.items()
        rows = group.rows(region)
        if region is Region.PUBLIC:
            g.public[rows] = e.public[rows] = np.repeat(np.uint64(0) - bits, 2, axis=1)
            continue
        g.labels[rows] = random_blocks(SeededRng((seed, name)), group.bits * n).reshape(group.bits, 2 * n)
        known = bits if region is Region.GARBLER else np.uint64(0)
        g.labels[rows, 0::2] = (g.labels[rows, 0::2] & ~np.uint64(1)) | known
        e.labels[rows] = g.labels[rows] ^ (np.repeat(bits, 2, axis=1) * np.tile(delta, n))
    return g, e, values


def run(g: Garbling, e: Evaluation) -> list[np.ndarray]:
    tables = [table.copy() for table in g.tables()]
    e.begin()
    for piece, table in zip(e.pieces, tables, strict=True):
        e.feed(piece, table)
    return tables


def check_labels(g: Garbling, e: Evaluation, values: dict[str, np.ndarray]) -> None:
    """Every active label is the zero label or the other of its pair, and the outputs decode right."""
    delta, difference = offset(), g.labels ^ e.labels
    colour = difference[:, 0::2] & np.uint64(1)
    assert np.array_equal(difference, np.repeat(colour, 2, axis=1) * np.tile(delta, g.n))
    outputs = evaluate(g.circuit, g.n, values)
    for name, group in g.circuit.outputs.items():
        bits = colour[group.rows].astype(np.uint8) ^ group.inverted[:, None]
        assert np.array_equal(bits, bits_of_values(outputs[name], group.width))


@pytest.mark.parametrize("n", [1, 2, 3, 64, 600])
def test_evaluation_finds_the_label_of_the_value(n: int) -> None:
    g, e, values = prepared(mixed(), n)
    run(g, e)
    check_labels(g, e, values)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(1, 20), st.integers(1, 9), st.integers(1, 5))
def test_any_cut_into_blocks_and_pieces_works(n: int, block_gates: int, piece_gates: int) -> None:
    circuit = mixed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "BLOCK_GATES", block_gates)
        patch.setattr(cutting, "PIECE_BYTES", piece_gates * 32 * n)
        pieces.cache_clear()
        g, e, values = prepared(circuit, n)
        tables = run(g, e)
        largest = max(1, block_gates // n, piece_gates)
        assert all(piece.table_bytes <= largest * 32 * n for piece in g.pieces)
    pieces.cache_clear()
    assert [table.nbytes for table in tables] == [piece.table_bytes for piece in g.pieces]
    assert sum(table.nbytes for table in tables) == circuit.table_blocks * n * 16
    check_labels(g, e, values)


def as_integers(rows: np.ndarray) -> list[int]:
    return [int(low) | int(high) << 64 for low, high in rows.reshape(-1, 2).tolist()]


def garbled(g: Garbling) -> Iterator[Group]:
    for piece in g.pieces:
        yield from (group for group in piece.groups if group.kind in BLOCKS)


@pytest.mark.parametrize("n", [1, 3, 600])
def test_half_gates_follow_the_paper(n: int) -> None:
    """Every table, zero label and active label of every AND gate equals the paper's, of every kind."""
    g, e, _ = prepared(mixed(), n)
    tables = as_integers(np.concatenate(run(g, e)))
    (delta,) = as_integers(offset())
    used, kinds = 0, set()
    for group in garbled(g):
        gates = group.stop - group.start
        kinds.add(group.kind)
        for k in range(gates):
            flip_a, flip_b = (delta if k in inverted else 0 for inverted in (group.invert_a, group.invert_b))
            zero_a, zero_b, zero_out = (
                as_integers(g.labels[r]) for r in (group.a[k], group.b[k], group.start + k)
            )
            act_a, act_b, act_out = (
                as_integers(e.labels[r]) for r in (group.a[k], group.b[k], group.start + k)
            )
            for i in range(0, n, max(1, n // 5)):
                j = [used + half * gates * n + k * n + i for half in range(BLOCKS[group.kind])]
                sent = [tables[place] for place in j]
                zeros = zero_a[i] ^ flip_a, zero_b[i] ^ flip_b
                assert (zero_out[i], *sent) == GARBLED[group.kind](KEY, delta, *zeros, *j)
                assert act_out[i] == EVALUATED[group.kind](KEY, act_a[i], act_b[i], *sent, *j)
        used += group.blocks * n
    assert kinds == {*BLOCKS}


GARBLED = {Kind.AND: gb_and, Kind.AND_GARBLER: gb_garbler, Kind.AND_EVALUATOR: gb_evaluator}
EVALUATED = {Kind.AND: ev_and, Kind.AND_GARBLER: ev_garbler, Kind.AND_EVALUATOR: ev_evaluator}


class Spy:
    """Records every (key, tweak) that is hashed with, and every key."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.keys: list[bytes] = []
        self.tweaks: list[tuple[int, int]] = []
        plain_aes, plain_next = hashing.fixed_key_aes, hashing.BlockHash._next_tweaks

        def fixed_key_aes(key: bytes) -> object:
            self.keys.append(key)
            return plain_aes(key)

        def next_tweaks(hash_: hashing.BlockHash, shape: hashing._Shape) -> None:
            plain_next(hash_, shape)
            numbers = as_integers(shape.tweaks)
            self.tweaks += [(len(self.keys), number) for number in numbers]

        patch.setattr(hashing, "fixed_key_aes", fixed_key_aes)
        patch.setattr(hashing.BlockHash, "_next_tweaks", next_tweaks)


def test_no_tweak_comes_twice_under_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "BLOCK_GATES", 7)
    pieces.cache_clear()
    spy = Spy(monkeypatch)
    circuit = mixed()
    g, _, _ = prepared(circuit, 3)
    spy.tweaks.clear()
    for chunk in range(3):
        g.rekey(hashing.derive_key(KEY, chunk))
        list(g.tables())
    pieces.cache_clear()
    assert len(spy.tweaks) == len(set(spy.tweaks)) == 3 * 3 * circuit.table_blocks
    assert len(spy.keys) == len({*spy.keys}) + 1  # both halves of prepared() share one key


def test_what_the_evaluator_holds_contains_no_pair() -> None:
    """No two blocks among tables and active labels differ by the offset."""
    g, e, _ = prepared(mixed(), 50)
    tables = run(g, e)
    blocks = set(as_integers(np.concatenate([*tables, e.labels[1:].reshape(-1)])))
    (delta,) = as_integers(offset())
    assert len(blocks) > 1000
    assert delta not in blocks
    assert not any(block ^ delta in blocks for block in blocks)


def test_colours_and_tables_do_not_depend_on_the_inputs() -> None:
    """For two extreme inputs, over many instances: each wire's colour is a fair coin, tables uniform."""
    circuit, n = mixed(), 4000
    for value in (0, 15):
        g, e, _ = prepared(circuit, n, value)
        for group in circuit.inputs.values():
            ((region, _),) = group.first_rows.items()
            rows = group.rows(region)
            if region is Region.PUBLIC:
                g.public[rows] = e.public[rows] = 0
            else:
                e.labels[rows] = g.labels[rows] ^ (np.tile(offset(value), n) if value else np.uint64(0))
        tables = run(g, e)
        assert byte_statistic(np.concatenate(tables).tobytes()) < BYTE_LIMIT
        # Rows that hold public bits are known to both sides and left out.
        secret = [r for grp in circuit.groups if grp.kind in BLOCKS for r in range(grp.start, grp.stop)]
        ones = (e.labels[secret, 0::2] & np.uint64(1)).sum(axis=1)
        assert abs(ones - n / 2).max() < 5.5 * np.sqrt(n) / 2


def test_no_secret_in_the_repr() -> None:
    g, e, _ = prepared(mixed(), 2)
    assert repr(g) == "Garbling(circuit='mixed', n=2, <secret>)"
    assert repr(e) == "Evaluation(circuit='mixed', n=2, <secret>)"
