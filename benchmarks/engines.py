"""Both engines of :mod:`crypto.engine` on the same work, in turn: part of ``make bench-crypto``."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.support import Row
from crypto import engine
from crypto.blocks import random_blocks
from crypto.circuit import Circuit
from crypto.garbling import Evaluation, Garbling
from crypto.rng import SystemRng

TURNS = 3
RNG = SystemRng()
_GATES = 1 << 19
_COLUMNS = 1026

EMP = {131_072: (1 / 0.93, 45 / 51, 32 / 43), 10_000: (1 / 0.78, 0.80, 0.66)}
"""EMP-toolkit's rate, and CPU time of garbler and evaluator, as multiples of NumPy's; recorded idle, in pairs."""


def engines() -> dict[str, engine.Engine]:
    """NumPy, and compiled code where it can be had."""
    found: dict[str, engine.Engine] = {"NumPy": engine.Reference()}
    if importlib.util.find_spec("llvmlite") is not None:
        from crypto.compiled.loading import load

        found["compiled"] = load()
    return found


def in_turn(measure: Callable[[], Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Measure with one engine after the other, several times; by engine, the median of each figure."""
    before, all_engines = engine.in_force(), engines()
    seen: dict[str, list[Mapping[str, float]]] = {name: [] for name in all_engines}
    for _ in range(TURNS):
        for name, each in all_engines.items():
            engine.use(each)
            seen[name].append(measure())
    engine.use(before)
    return {name: {k: statistics.median(turn[k] for turn in s) for k in s[0]} for name, s in seen.items()}


def rows_of(what: str, unit: str, found: Mapping[str, Mapping[str, float]]) -> Iterator[Row]:
    """A row for each figure and engine; beside a compiled one stands how many times NumPy's it is."""
    for figure in found["NumPy"]:
        for name, figures in found.items():
            ratio = figures[figure] / found["NumPy"][figure]
            anchor = "" if name == "NumPy" else f"{ratio:.2f} × NumPy in turn"
            yield Row(f"{figure}, {what}, {name}", figures[figure], unit, anchor=anchor, better="more")


def gate_rows(circuits: Mapping[str, Circuit]) -> Iterator[Row]:
    """Gates alone, on one core, for so many instances side by side."""
    for name, circuit in circuits.items():
        for n in (1, 8, 100, 1_000, 5_000):
            found = in_turn(lambda circuit=circuit, n=n: _gates(circuit, n))
            yield from rows_of(f"{name}, {n:,} instances, one core", "M AND per CPU s", found)


def _gates(circuit: Circuit, n: int) -> dict[str, float]:
    delta = random_blocks(RNG, 1)[0] | np.array([1, 0], dtype=np.uint64)
    garbling, evaluation = Garbling(circuit, n, delta, bytes(16)), Evaluation(circuit, n, bytes(16))
    garbling.labels[1:] = random_blocks(RNG, (circuit.rows - 1) * n).reshape(-1, 2 * n)
    evaluation.labels[1:] = garbling.labels[1:]
    tables = [table.copy() for table in garbling.tables()]
    passes = max(2, min(200, _GATES // (n * circuit.and_gates)))

    def evaluate() -> None:
        for piece, table in zip(evaluation.pieces, tables, strict=True):
            evaluation.feed(piece, table)

    works = {"garble": lambda: [len(table) for table in garbling.tables()], "evaluate": evaluate}
    return {name: n * circuit.and_gates / _cpu_s(work, passes) / 1e6 for name, work in works.items()}


def transpose_rows() -> Iterator[Row]:
    """The bit transpose of one message of transfers."""
    rows = random_blocks(RNG, 64 * _COLUMNS).reshape(128, _COLUMNS)
    scratch, out = np.empty(64 * _COLUMNS, dtype=np.uint64), np.empty((64 * _COLUMNS, 2), dtype=np.uint64)

    def measure() -> dict[str, float]:
        transpose = engine.in_force().transpose
        return {"transpose": 64 * _COLUMNS / _cpu_s(lambda: transpose(rows, scratch, out), 20) / 1e6}

    yield from rows_of("65,664 transfers, one core", "M per CPU s", in_turn(measure))


def look_up_rows(bits: int = 16) -> Iterator[Row]:
    """A level of the trees of unit vectors, hashed and grown; look-ups in a table of 2**bits entries."""
    nodes, corrections = random_blocks(RNG, 1 << 15).reshape(512, 64, 2), random_blocks(RNG, 64)
    table, vectors = (random_blocks(RNG, 1 << k).reshape(1, -1) for k in (bits - 1, bits - 7))
    of, shifts = np.zeros(8, dtype=np.intp), np.arange(8, dtype=np.uint64)

    def measure() -> dict[str, float]:
        forest, products = engine.in_force().forest(bytes(16)), engine.in_force().inner_products
        level_s = _cpu_s(lambda: forest.children(nodes, forest.hashes(nodes)[0], corrections), 10)
        answers_s = _cpu_s(
            lambda: products(table >> np.uint64(42), of, np.repeat(vectors, 8, axis=0), shifts), 5
        )
        return {"M nodes": (1 << 15) / level_s / 1e6, "k look-ups": 8 / answers_s / 1e3}

    yield from rows_of(f"tables of 2^{bits} entries, one core", "per CPU s", in_turn(measure))


def _cpu_s(work: Callable[[], Any], passes: int) -> float:
    """CPU seconds of one pass, after one that does not count."""
    work()
    start = time.process_time()
    for _ in range(passes):
        work()
    return (time.process_time() - start) / passes


def pair_rows(compare: Callable[[int, int], Row]) -> Iterator[Row]:
    """Two processes, transfers and input and output included; ``compare`` runs a batch so many times."""
    for batch, runs in ((131_072, 3), (10_000, 15)):
        found = in_turn(lambda batch=batch, runs=runs: _sides(compare(batch, runs)))
        for name, figures in found.items():
            for (figure, value), share in zip(figures.items(), EMP[batch], strict=True):
                better, unit = ("more", "M AND/s") if figure == "rate" else ("less", "CPU ns an AND")
                emp = found["NumPy"][figure] * share
                what = f"{figure}, {batch:,} comparisons, 2 processes, {name}"
                aim = None if name == "NumPy" else emp
                yield Row(
                    what,
                    value,
                    unit,
                    aim,
                    better,
                    f"EMP-toolkit, were it run here: {emp:.3g} (recorded ratio)",
                )


def _sides(row: Row) -> dict[str, float]:
    sides = {name: 1e3 / row.detail[name]["m_and_per_cpu_s"] for name in ("garbler", "evaluator")}
    return {"rate": row.value, **sides}
