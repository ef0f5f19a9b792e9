"""Engines for the bulk of the computing: gates of garbled circuits, keystreams and the bit transpose of oblivious
transfer, trees and inner products of look-ups, and digests of set intersection.

NumPy is the reference. A compiled engine computes the same bits faster. Messages, their timing and coins do not
depend on the engine, so parties may use different engines. A process has a single engine in force, for all work
begun from then on, chosen by the starter of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from crypto import keystreams, trees
from crypto.blocks import Blocks, Octets, transpose_rows
from crypto.circuit import Circuit, Rows
from crypto.digests import digests_of
from crypto.encoding import Words
from crypto.half_gates import EvaluatorGates, GarblerGates
from crypto.hashing import BlockHash
from crypto.inner_products import Places, inner_products
from crypto.pieces import Piece


class Gates(Protocol):
    """A side's gates of ``n`` instances of a circuit, bound to the rows of labels and public bits given at
    creation.
    """

    def rekey(self, key: bytes) -> None:
        """Go on with the next chunk of instances, under a new key."""

    def run(self, piece: Piece, table: Words) -> None:
        """Work through the next piece; ``table`` is written by the garbler's side and read by the evaluator's."""


class Keystreams(Protocol):
    """Keystreams of AES-128 in counter mode from zero; :class:`crypto.keystreams.Keystreams`."""

    def fill(self, rows: Words) -> None:
        """Fill row i with the next blocks of stream i; shape (n, width), contiguous, ``width`` even."""


class Trees(Protocol):
    """A party's side of trees that grow level by level; :class:`crypto.trees.Trees`."""

    def sum(self) -> Blocks:
        """Hash the level; return the XOR of the hashes of every tree."""
        ...

    def grow(self, correction: Blocks) -> None:
        """Go on to the next level."""

    def vectors(self, correction: Blocks) -> Words:
        """Return the corrected hashes of the last level, leaf after leaf."""
        ...


class Engine(Protocol):
    """See the module."""

    def garbler(
        self, circuit: Circuit, n: int, delta: Words, key: bytes, labels: Rows, public: Rows
    ) -> Gates:
        """Return the garbler's gates."""
        ...

    def evaluator(self, circuit: Circuit, n: int, key: bytes, labels: Rows, public: Rows) -> Gates:
        """Return the evaluator's gates."""
        ...

    def keystreams(self, seeds: Blocks) -> Keystreams:
        """Return keystreams, one a seed, like :class:`crypto.keystreams.Keystreams`."""
        ...

    def transpose(self, rows: Words, scratch: Words, out: Blocks) -> None:
        """Transpose like :func:`crypto.blocks.transpose_rows`."""

    def trees(self, root: Words, count: int, depth: int, hashing: BlockHash) -> Trees:
        """Return trees of a batch, like :class:`crypto.trees.Trees`."""
        ...

    def inner_products(self, planes: Words, of: Places, vectors: Words, shifts: Words) -> Words:
        """Return inner products like :func:`crypto.inner_products.inner_products`."""
        ...

    def digests(self, rows: Octets, size: int) -> Words:
        """Digest like :func:`crypto.digests.digests_of`."""
        ...


class Reference:
    """NumPy."""

    garbler = GarblerGates
    evaluator = EvaluatorGates
    keystreams = keystreams.Keystreams
    transpose = staticmethod(transpose_rows)
    trees = trees.Trees
    inner_products = staticmethod(inner_products)
    digests = staticmethod(digests_of)


@dataclass(slots=True)
class _Choice:
    """The engine in force, and a callback with the work to wait for, in AND gates."""

    engine: Engine
    missing: int = 0
    waiting: Callable[[], None] | None = None


_choice = _Choice(Reference())


def in_force() -> Engine:
    """Return the engine for work that begins now."""
    return _choice.engine


def use(engine: Engine) -> None:
    """Put an engine in force."""
    _choice.engine = engine


def after(work: int, act: Callable[[], None]) -> None:
    """Call ``act`` once the process begins further ``work`` (see :func:`begin`). ``act`` may call :func:`use`."""
    _choice.missing, _choice.waiting = work, act


def begin(work: int) -> None:
    """Count work that begins, in AND gates, all instances together. Other work counts as gates of the same time."""
    _choice.missing -= work
    if _choice.missing <= 0 and _choice.waiting is not None:
        act, _choice.waiting = _choice.waiting, None
        act()
