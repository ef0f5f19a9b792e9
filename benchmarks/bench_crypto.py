"""Benchmark of the secure computation engine by the second: ``make bench AREA=crypto``.

Rates of a single core are measured in this process, in CPU seconds, stated in their units. Measurements between two
parties run in two processes over a socket, as wall time with the CPU seconds of either side.
:func:`between_parties` takes the function that runs the pair, so the same rows can be measured over a different
transport.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import engines
from benchmarks.grpc_driver import run_pair_over_grpc
from benchmarks.socket_driver import Measured, run_pair
from benchmarks.support import Row, median_cpu_s, publish
from crypto.blocks import random_blocks
from crypto.builder import Builder, add, subtract
from crypto.circuit import Circuit, Held, To
from crypto.circuits import arithmetic, noise, score, selection
from crypto.circuits.constants import distance_for, geometric_plan, laplace_plan
from crypto.garbling import Evaluation, Garbling
from crypto.local import run_local
from crypto.ot import extension
from crypto.rng import SystemRng
from crypto.rounds import Rounds
from crypto.two_party import GarblerSession, Inputs, Outputs, open_evaluator, open_garbler

RNG = SystemRng()
NUMBERS = np.random.default_rng(1)
RunPair = Callable[[Mapping[str, Any]], dict[str, Measured]]

EMP_GATES = "EMP-toolkit, 2 processes on loopback: 20.5 M/s (CPU: garbler 23, evaluator 34 M/s)"
EMP_COMPARISONS = "EMP-toolkit 0.046 s; MP-SPDZ Yao 0.217 s; MPyC (3 parties) 10.4 s"
SHARED_CACHES = "CPU time, but the sibling core's work takes cache and clock: an idle machine shows more"
IN_PYTHON = "every gate is built by Python calls of its own, once per circuit"
EMP_TRANSFERS = "EMP IKNP 33 M/s, SoftSpoken 63 M/s, Ferret 10–14 M/s"


def main(path: Path) -> None:
    """Measure, print the table, write the JSON."""
    rows = [
        *both_engines(),
        *one_core(),
        *between_parties(run_pair),
        peak_memory(),
        *arithmetic_rows(),
        *over_grpc(run_pair_over_grpc),
    ]
    publish("secure computation engine", rows, path)


def both_engines() -> list[Row]:
    """Measure NumPy and compiled code in turn; all other figures are for NumPy."""
    return [
        *engines.gate_rows({"32-bit comparison": comparison(), "F(x) of 20 bits": f_circuit()}),
        *engines.transpose_rows(),
        *engines.look_up_rows(),
        *engines.pair_rows(
            lambda batch, runs: comparison_rows(run_pair, batch, 1, runs, "a plain socket")[0],
        ),
    ]


# --- circuits ---------------------------------------------------------------------------------------------


def comparison(width: int = 32) -> Circuit:
    b = Builder("compare")
    (x,), (y,) = b.input("x", Held.GARBLER, width), b.input("y", Held.EVALUATOR, width)
    b.output("less", To.BOTH, [[arithmetic.less(b, x, y)]])
    return b.build()


def f_circuit(width: int = 20) -> Circuit:
    b = Builder("F")
    (x,) = b.input("x", Held.ADDITIVE_SHARED, width)
    b.output("f", To.CARRIED, [score.f_word(b, x)])
    return b.build()


def noisy_max(candidates: int = 64, width: int = 20) -> Circuit:
    """Build noisy max: additive shares of scores, shares of validity flags, joint noise; δ ≤ 2^−40 for ε = 1."""
    plan = geometric_plan(Fraction(1, 20), candidates, distance_for(Fraction(1, 2**40), Fraction(1)))
    b = Builder("noisy max")
    scores = b.input("scores", Held.ADDITIVE_SHARED, width, candidates)
    valid = [x for (x,) in b.input("valid", Held.XOR_SHARED, 1, candidates)]
    random = noise.coins(b, "coins", plan, candidates)
    best = noise.noisy_argmax(b, plan, scores, random, valid=valid)
    b.output("index", To.BOTH, [best.index])
    return b.build()


def laplace_counts(counts: int = 3840, width: int = 32) -> Circuit:
    """Build noisy counts: shares of a count and joint discrete Laplace noise."""
    plan = laplace_plan(Fraction(1, 20), counts, distance_for(Fraction(1, 2**40), Fraction(1)))
    b = Builder("noisy count")
    (count,) = b.input("count", Held.ADDITIVE_SHARED, width)
    (random,) = noise.coins(b, "coins", plan, 1)
    drawn = noise.discrete_laplace(b, plan, random)
    b.output("noisy", To.BOTH, [noise.add_noise(b, count, drawn, width)])
    return b.build()


def keep_keys(width: int = 64) -> Circuit:
    b = Builder("keep")
    b.output("keys", To.CARRIED, b.input("x", Held.XOR_SHARED, width))
    return b.build()


def argmax_of_kept(entries: int = 256, width: int = 64) -> Circuit:
    b = Builder("argmax")
    keys = b.input("keys", Held.CARRIED, width, entries)
    b.output("index", To.BOTH, [selection.argmax(b, keys).index])
    return b.build()


def conjunction(bits: int = 5000) -> Circuit:
    b = Builder("conjunction")
    flags = [x for (x,) in b.input("x", Held.XOR_SHARED, 1, bits)]
    b.output("all", To.BOTH, [[arithmetic.all_of(b, flags)]])
    return b.build()


def large(gates: int = 100_000) -> Builder:
    """Build about 100,000 AND gates and four times as many XOR, to time building and compiling."""
    b = Builder("large")
    xs, ys = (b.input(n, h, 32, gates // 62) for n, h in (("x", Held.GARBLER), ("y", Held.EVALUATOR)))
    sums = [add(b, x, y) for x, y in zip(xs, ys, strict=True)]
    b.output("o", To.BOTH, [subtract(b, x, y[::-1]) for x, y in zip(sums, xs, strict=True)])
    return b


# --- one core ---------------------------------------------------------------------------------------------


def one_core() -> list[Row]:
    compiled = median_cpu_s(lambda: large().build(), 5)
    return [
        *garbling_rows("32-bit comparison", comparison(), 10_000, 20, 30),
        *garbling_rows("F(x) of 20 bits", f_circuit(), 1_000, None, None),
        *transfer_rows(),
        Row("build and compile 100,000 AND gates", compiled, "CPU s", 1.0, why=IN_PYTHON),
    ]


def garbling_rows(
    name: str, circuit: Circuit, batch: int, garble_target: float | None, evaluate_target: float | None
) -> list[Row]:
    """Measure AND gates per CPU second of either side alone, the batch in chunks of at most 5,000 instances."""
    n = min(batch, 5_000)
    gates = circuit.and_gates * batch
    delta = random_blocks(RNG, 1)[0] | np.array([1, 0], dtype=np.uint64)
    garbling, evaluation = Garbling(circuit, n, delta, bytes(16)), Evaluation(circuit, n, bytes(16))
    first_gate = circuit.rows - sum(g.stop - g.start for g in circuit.groups)
    garbling.labels[1:first_gate] = random_blocks(RNG, (first_gate - 1) * n).reshape(-1, 2 * n)
    evaluation.labels[1:first_gate] = garbling.labels[1:first_gate]
    tables = [table.copy() for table in garbling.tables()]

    def garble() -> None:
        for _ in range(batch // n):
            for _table in garbling.tables():
                pass

    def evaluate_all() -> None:
        for _ in range(batch // n):
            for piece, table in zip(evaluation.pieces, tables, strict=True):
                evaluation.feed(piece, table)

    garble_s, evaluate_s = median_cpu_s(garble, 9), median_cpu_s(evaluate_all, 9)
    detail = {"and_gates": circuit.and_gates, "batch": batch}
    rows = [
        Row(
            f"{verb}, {name}, one core",
            gates / seconds / 1e6,
            "M AND per CPU s",
            target,
            "more",
            EMP_GATES,
            detail,
            SHARED_CACHES,
        )
        for verb, seconds, target in (
            ("garble", garble_s, garble_target),
            ("evaluate", evaluate_s, evaluate_target),
        )
    ]
    if garble_target is None:
        anchor = "prototype (less exact, 1,293 AND gates): 21 k garbled, 33 k evaluated per second"
        rows += [
            Row(
                f"{name} {verb}, one core", batch / seconds / 1e3, "k per CPU s", anchor=anchor, detail=detail
            )
            for verb, seconds in (("garbled", garble_s), ("evaluated", evaluate_s))
        ]
    return rows


def transfer_rows(count: int = 1 << 21) -> list[Row]:
    """Measure transfers per CPU second, both roles on the same core."""

    def setup() -> dict[str, Any]:
        parties: dict[str, Rounds[Any]] = {
            "s": extension.setup_sender("s", "r", RNG),
            "r": extension.setup_receiver("r", "s", RNG),
        }
        return run_local(parties)[0]

    rows = [Row("base transfers, both roles on one core", median_cpu_s(setup), "CPU s")]
    sessions = setup()
    choices = NUMBERS.integers(0, 2, count, dtype=np.uint8)
    pairs = random_blocks(RNG, count), random_blocks(RNG, count)
    for kind, argument, target in (
        ("correlated", count, 15),
        ("random", count, None),
        ("chosen", pairs, None),
    ):

        def transfer(kind: str = kind, argument: Any = argument) -> None:
            sending = getattr(extension, f"{kind}_send")(sessions["s"], argument)
            receiving = getattr(extension, f"{kind}_receive")(sessions["r"], choices)
            run_local({"s": sending, "r": receiving}, record=False)

        rate = count / median_cpu_s(transfer, 5) / 1e6
        name = f"{kind} transfers, both roles on one core"
        rows.append(Row(name, rate, "M per CPU s", target, "more", EMP_TRANSFERS, why=SHARED_CACHES))
    return rows


# --- two parties ------------------------------------------------------------------------------------------


Steps = list[tuple[Circuit, int, Inputs | None]]
"""Runs of a side: circuit, batch, inputs; None takes the carried words of the previous run."""


def between_parties(pair: RunPair) -> list[Row]:
    """Measure the protocols of two parties; ``pair`` runs two parties (socket_driver)."""
    return [
        *comparison_rows(pair, 131_072, 10, 5, "a plain socket"),
        *comparison_rows(pair, 10_000, None, 9, "a plain socket"),
        overhead_row(pair),
        noisy_max_row(pair),
        argmax_row(pair),
        *other_rows(pair),
    ]


def timed(
    pair: RunPair, steps: Mapping[str, Steps], runs: int
) -> tuple[float, dict[str, Measured], list[Outputs]]:
    """Return the median seconds of a pass over the steps at the slower side, after a warm-up pass."""

    def side(name: str, peer: str, opening: Callable[..., Any]) -> Callable[[Callable[[Any], Any]], Any]:
        def passes(drive: Callable[[Any], Any]) -> tuple[list[float], list[Outputs]]:
            session = drive(opening(name, peer, RNG))
            times, outputs = [], []
            for _ in range(runs + 1):
                outputs, prepared = [], None
                for circuit, batch, inputs in steps[name]:
                    given = inputs if inputs is not None else prepared
                    start = time.perf_counter()
                    prepared = drive(session.run(circuit, batch, given))
                    times.append(time.perf_counter() - start)
                    outputs.append(prepared)
            last = len(steps[name])
            values = [{k: v for k, v in o.items() if isinstance(v, np.ndarray)} for o in outputs]
            return times[last - 1 :: last][1:], values

        return passes

    measured = pair(
        {
            "garbler": side("garbler", "evaluator", open_garbler),
            "evaluator": side("evaluator", "garbler", open_evaluator),
        }
    )
    slower = max(statistics.median(m.output[0]) for m in measured.values())
    return slower, measured, measured["garbler"].output[1]


def over_grpc(pair: RunPair) -> list[Row]:
    """Measure the comparisons again, over gRPC with mutual TLS."""
    [large] = comparison_rows(pair, 131_072, None, 5, "gRPC loopback")[:1]
    return [large, *comparison_rows(pair, 10_000, None, 9, "gRPC loopback", 0.25)[1:]]


def comparison_rows(
    pair: RunPair, batch: int, target: float | None, runs: int, over: str, target_s: float | None = None
) -> list[Row]:
    circuit = comparison()
    x, y = (NUMBERS.integers(0, 1 << 32, (batch, 1), dtype=np.uint64) for _ in range(2))
    seconds, measured, outputs = timed(
        pair, {"garbler": [(circuit, batch, {"x": x})], "evaluator": [(circuit, batch, {"y": y})]}, runs
    )
    assert np.array_equal(outputs[-1]["less"], x < y)
    # Base transfers and the pass to warm up are part of a side's CPU seconds.
    alone = {name: (runs + 1) * batch * 32 / m.cpu_s / 1e6 for name, m in measured.items()}
    detail = {
        name: {"cpu_s": m.cpu_s, "m_and_per_cpu_s": alone[name], "bytes_sent": m.bytes_sent}
        for name, m in measured.items()
    }
    sides = " and ".join(f"the {name} {rate:.1f}" for name, rate in alone.items())
    why = f"wall time of two processes with their sending threads; in CPU time {sides} M AND/s"
    name = f"{batch:,} comparisons of 32 bits, 2 processes over {over}, transfers included"
    rate = Row(name, batch * 32 / seconds / 1e6, "M AND/s", target, "more", EMP_GATES, detail, why)
    if target is not None:
        return [rate]
    return [rate, Row(name, seconds, "s", target_s, "less", EMP_COMPARISONS, detail, why)]


def overhead_row(pair: RunPair) -> Row:
    circuit = comparison()
    one = np.ones((1, 1), dtype=np.uint64)
    seconds, _, _ = timed(
        pair, {"garbler": [(circuit, 1, {"x": one})], "evaluator": [(circuit, 1, {"y": one})]}, 100
    )
    return Row("one 32-bit comparison, 2 processes: fixed cost of a run", seconds * 1e3, "ms", 5)


def noisy_max_row(pair: RunPair) -> Row:
    circuit = noisy_max()
    scores = NUMBERS.integers(0, 1 << 20, (1, 64), dtype=np.uint64)
    shares = NUMBERS.integers(0, 1 << 20, (1, 64), dtype=np.uint64)
    flags = np.ones((1, 64), dtype=np.uint64)
    steps = {
        "garbler": [(circuit, 1, {"scores": shares, "valid": flags})],
        "evaluator": [(circuit, 1, {"scores": (scores - shares) % (1 << 20), "valid": 0 * flags})],
    }
    seconds, _, outputs = timed(pair, steps, 20)
    assert scores.max() - scores[0, int(outputs[-1]["index"][0, 0])] < 2000  # e^-100 to fail by chance
    return Row(
        "noisy max over 64 candidates, sampling included, 2 processes",
        seconds * 1e3,
        "ms",
        80,
        anchor="exponential-mechanism prototype, randomness given: 22 ms of computation",
        detail={"and_gates": circuit.and_gates, "coins": circuit.inputs["coins"].count},
    )


def argmax_row(pair: RunPair) -> Row:
    keys = NUMBERS.integers(0, 1 << 63, (256, 1), dtype=np.uint64)
    steps: dict[str, Steps] = {
        name: [(keep_keys(), 256, {"x": keys * share}), (argmax_of_kept(), 1, None)]
        for name, share in (("garbler", np.uint64(1)), ("evaluator", np.uint64(0)))
    }
    seconds, _, outputs = timed(pair, steps, 20)
    assert int(outputs[-1]["index"][0, 0]) == int(keys.argmax())
    detail = {"and_gates": argmax_of_kept().and_gates}
    return Row("argmax of 256 kept 64-bit keys, batch 1, 2 processes", seconds * 1e3, "ms", detail=detail)


def other_rows(pair: RunPair) -> list[Row]:
    """Measure the main parts of sealed LKC and joint noise."""
    rows = []
    for name, circuit, batch, held in (
        ("F(x) of 1,000 shared counts of 20 bits, kept", f_circuit(), 1_000, "x"),
        ("discrete Laplace noise on 3,840 shared counts", laplace_counts(), 3_840, "count"),
        ("conjunction of 5,000 shared bits", conjunction(), 1, "x"),
    ):
        group = circuit.inputs[held]
        ones = np.ones((batch, group.count), dtype=np.uint64)
        steps: dict[str, Steps] = {
            "garbler": [(circuit, batch, {held: ones})],
            "evaluator": [(circuit, batch, {held: 0 * ones})],
        }
        seconds, measured, outputs = timed(pair, steps, 3)
        if "all" in outputs[-1]:
            assert outputs[-1]["all"][0, 0] == 1
        detail = {
            "and_gates": circuit.and_gates,
            "bytes_sent": {n: m.bytes_sent for n, m in measured.items()},
        }
        rows.append(Row(f"{name}, 2 processes", seconds * 1e3, "ms", detail=detail))
    return rows


# --- memory -----------------------------------------------------------------------------------------------


def peak_memory(gates: int = 100_000_000) -> Row:
    """Measure the peak of either process while 10^8 gates stream, from a fresh interpreter."""
    command = [sys.executable, "-m", "benchmarks.bench_crypto", "--memory", str(gates)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    peaks = json.loads(done.stdout)
    return Row(
        "peak memory of a process, 10^8 gates streamed", max(peaks.values()) / 1e6, "MB", 300, detail=peaks
    )


def stream(gates: int) -> dict[str, int]:
    """Stream ``gates`` gates between two processes; return their peaks in bytes."""
    circuit, batch = comparison(), gates // 32

    def side(
        me: str, peer: str, opening: Callable[..., Any], held: str
    ) -> Callable[[Callable[[Any], Any]], None]:
        def run(drive: Callable[[Any], Any]) -> None:
            session = drive(opening(me, peer, RNG))
            value = 5 if isinstance(session, GarblerSession) else 6
            outputs = drive(session.run(circuit, batch, {held: np.full((batch, 1), value, dtype=np.uint64)}))
            assert outputs["less"].all()

        return run

    measured = run_pair(
        {
            "garbler": side("garbler", "evaluator", open_garbler, "x"),
            "evaluator": side("evaluator", "garbler", open_evaluator, "y"),
        }
    )
    return {name: m.peak_bytes for name, m in measured.items()}


def arithmetic_rows() -> list[Row]:
    """Return the rows of protocols without circuits, if present."""
    if importlib.util.find_spec("benchmarks.bench_crypto_arithmetic") is None:
        return []
    rows: list[Row] = importlib.import_module("benchmarks.bench_crypto_arithmetic").rows()
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        print(json.dumps(stream(int(sys.argv[2]))))
    else:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/bench-crypto.json"))
