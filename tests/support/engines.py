"""Engines in tests: both compute whatever a test garbles, evaluates, expands, transposes or digests; compared."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

from crypto import engine
from crypto.blocks import Blocks, Octets
from crypto.circuit import Circuit, Rows
from crypto.encoding import Words
from crypto.hashing import BlockHash
from crypto.inner_products import Places
from crypto.pieces import Piece
from crypto.trees import NODES_AT_ONCE


@cache
def compiled() -> engine.Engine | str:
    """The compiled engine, or why there is none here. One that computes something else is an error.

    It compiles digests at the first row.
    """
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed"
    from crypto.compiled import blake2b
    from crypto.compiled.loading import Unusable, Wrong, load

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blake2b, "ENOUGH_ROWS", 1)
            return load()
    except Wrong:
        raise
    except Unusable as error:
        return str(error)


class Late:
    """The engine of a test, compiled for the first work: many tests have none."""

    def __init__(self, *, both: bool) -> None:
        self._both = both

    def __getattr__(self, name: str) -> Any:
        other = compiled()
        engine.use(engine.Reference() if isinstance(other, str) else Both(other) if self._both else other)
        return getattr(engine.in_force(), name)


class Both:
    """The reference, and at every step another engine beside it, on copies of the same rows."""

    def __init__(self, other: engine.Engine) -> None:
        self.other = other
        self._twins: WeakKeyDictionary[BlockHash, BlockHash] = WeakKeyDictionary()

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

    def keystreams(self, seeds: Blocks) -> engine.Keystreams:
        return _BothKeystreams(engine.Reference.keystreams(seeds), self.other.keystreams(seeds))

    def transpose(self, rows: Words, scratch: Words, out: Blocks) -> None:
        seen = np.empty_like(out)
        self.other.transpose(rows.copy(), scratch, seen)
        engine.Reference.transpose(rows, scratch, out)
        assert np.array_equal(seen, out), "the engines transpose differently"

    def trees(self, root: Words, count: int, depth: int, hashing: BlockHash) -> engine.Trees:
        """Trees of either engine; the other's tweaks come from a hash of its own, of which trees share one, too."""
        twin = self._twins.setdefault(hashing, BlockHash(hashing.key, NODES_AT_ONCE))
        one = engine.Reference.trees(root, count, depth, hashing)
        return _BothTrees(one, self.other.trees(root, count, depth, twin))

    def inner_products(self, planes: Words, of: Places, vectors: Words, shifts: Words) -> Words:
        wanted = engine.Reference.inner_products(planes, of, vectors, shifts)
        seen = self.other.inner_products(planes, of, vectors, shifts)
        assert np.array_equal(seen, wanted), "the engines' inner products differ"
        return wanted

    def digests(self, rows: Octets, size: int) -> Words:
        wanted = engine.Reference.digests(rows, size)
        assert np.array_equal(self.other.digests(rows, size), wanted), "the engines digest differently"
        return wanted


class _BothKeystreams:
    def __init__(self, one: engine.Keystreams, other: engine.Keystreams) -> None:
        self.one, self.other = one, other

    def fill(self, rows: Words) -> None:
        seen = np.empty_like(rows)
        self.one.fill(rows)
        self.other.fill(seen)
        assert np.array_equal(seen, rows), "the engines' keystreams differ"


class _BothTrees:
    def __init__(self, one: engine.Trees, other: engine.Trees) -> None:
        self.one, self.other = one, other

    def sum(self) -> Blocks:
        return _same(self.one.sum(), self.other.sum())

    def grow(self, correction: Blocks) -> None:
        self.one.grow(correction)
        self.other.grow(correction)

    def vectors(self, correction: Blocks) -> Words:
        return _same(self.one.vectors(correction), self.other.vectors(correction))


def _same(one: Words, other: Words) -> Words:
    assert np.array_equal(one, other), "the engines' trees differ"
    return one


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
