"""Engines in tests: whatever a test garbles, transposes or looks up is computed by both, and compared."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import numpy as np

from crypto import engine
from crypto.blocks import Blocks
from crypto.circuit import Circuit, Rows
from crypto.encoding import Words
from crypto.pieces import Piece


@cache
def compiled() -> engine.Engine | str:
    """The compiled engine, or why there is none here. One that computes something else is an error."""
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed"
    from crypto.compiled.loading import Unusable, Wrong, load

    try:
        return load()
    except Wrong:
        raise
    except Unusable as error:
        return str(error)


class Both:
    """The reference, and at every step another engine beside it, on copies of the same rows."""

    def __init__(self, other: engine.Engine) -> None:
        self.other = other

    def garbler(
        self, circuit: Circuit, n: int, delta: Words, key: bytes, labels: Rows, public: Rows
    ) -> engine.Gates:
        copy = np.empty_like(labels)
        return _BothGates(
            engine.Reference.garbler(circuit, n, delta, key, labels, public),
            self.other.garbler(circuit, n, delta, key, copy, public),
            labels,
            copy,
        )

    def evaluator(self, circuit: Circuit, n: int, key: bytes, labels: Rows, public: Rows) -> engine.Gates:
        copy = np.empty_like(labels)
        return _BothGates(
            engine.Reference.evaluator(circuit, n, key, labels, public),
            self.other.evaluator(circuit, n, key, copy, public),
            labels,
            copy,
        )

    def transpose(self, rows: Words, scratch: Words, out: Blocks) -> None:
        seen = np.empty_like(out)
        self.other.transpose(rows.copy(), scratch, seen)
        engine.Reference.transpose(rows, scratch, out)
        assert np.array_equal(seen, out), "the engines transpose differently"

    def forest(self, key: bytes) -> engine.Forest:
        return _BothForests(engine.Reference.forest(key), self.other.forest(key))

    def inner_products(self, *given: Any) -> Words:
        return same(
            "inner products", engine.Reference.inner_products(*given), self.other.inner_products(*given)
        )


def same(what: str, one: Words, other: Words) -> Words:
    assert one.shape == other.shape
    assert np.array_equal(one, other), f"the engines' {what} differ"
    return one


class _BothForests:
    def __init__(self, one: engine.Forest, other: engine.Forest) -> None:
        self.one, self.other = one, other

    def hashes(self, nodes: Blocks) -> tuple[Blocks, Blocks]:
        (hashed, sums), (hashed_too, sums_too) = self.one.hashes(nodes), self.other.hashes(nodes)
        return same("hashes", hashed, hashed_too), same("sums", sums, sums_too)

    def children(self, *given: Blocks) -> Blocks:
        return same("children", self.one.children(*given), self.other.children(*given))

    def leaves(self, *given: Blocks) -> Words:
        return same("leaves", self.one.leaves(*given), self.other.leaves(*given))


class _BothGates:
    def __init__(self, one: engine.Gates, other: engine.Gates, rows: Rows, copy: Rows) -> None:
        self.one, self.other, self.rows, self.copy = one, other, rows, copy

    def rekey(self, key: bytes) -> None:
        self.one.rekey(key)
        self.other.rekey(key)

    def run(self, piece: Piece, table: Words) -> None:
        np.copyto(self.copy, self.rows)
        seen = table.copy()
        self.one.run(piece, table)
        self.other.run(piece, seen)
        assert np.array_equal(seen, table), "the engines' tables differ"
        assert np.array_equal(self.copy, self.rows), "the engines' labels differ"
