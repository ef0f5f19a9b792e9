"""Paillier protocols, set intersection and joint histograms: CPU seconds of both roles in a single process.

The figures are CPU seconds because both roles share a process; between two machines the wall time is about half.
``python -m benchmarks.bench_crypto_arithmetic`` prints these rows alone; ``make bench AREA=crypto`` prints the rows
of the whole engine.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from phe import paillier as phe

from benchmarks.support import Row, median_cpu_s, publish
from crypto.intersection import intersect
from crypto.joint_histogram import HistogramShape, joint_histogram_receive, joint_histogram_send
from crypto.local import Transcript, run_local
from crypto.mixing import OpeningKey, mix_rows, sealed
from crypto.ot.extension import setup_receiver, setup_sender
from crypto.paillier import PrivateKey, generate_key
from crypto.polynomial import PolynomialShape, share_receiver, share_sender
from crypto.random_value import TRIES, random_value, random_value_circuit
from crypto.rng import Rng, SystemRng, uniform_words
from crypto.rounds import Rounds
from crypto.scalar_product import ProductShape, scalar_product_holder, scalar_product_masker
from crypto.shares import ComputePair, open_vector, setup_shares, share_vector
from crypto.two_party import open_evaluator, open_garbler

ADULT = 45_222
MILLION = 1_000_000
PSI = 50_000
JOB = bytes(32)


def rows() -> list[Row]:
    """Measure all rows of the file."""
    rng = SystemRng()
    keys = {bits: generate_key("a", rng, bits) for bits in (2048, 3072)}
    return [
        *(row for key in keys.values() for row in paillier_rows(key, rng)),
        scalar_product_row(keys[3072], rng),
        polynomial_row(keys[3072], rng),
        random_value_row(1, rng),
        random_value_row(100, rng),
        intersection_row(
            PSI, 2, rng, target=0.6, anchor="SPU (C++): KKRT 0.49, RR22 0.37; openmined-psi 9.5"
        ),
        intersection_row(MILLION, 2, rng, target=8.0, anchor="SPU (C++): KKRT 10.6, RR22 5.9 CPU s"),
        intersection_row(ADULT, 3, rng, anchor="around a ring of curve points, 3 × 45,222: 26 CPU s"),
        intersection_row(ADULT, 10, rng),
        histogram_row(ADULT, rng, 5, 1.0, "prototype 0.3–0.5 s, 13.7–16.6 MB; packed Paillier 8–15 s"),
        histogram_row(MILLION, rng, 1, 25.0, "prototype 8 s"),
        shares_row(rng),
        *mix_rows_of(rng),
    ]


def cpu_s(work: Callable[[], object], runs: int = 3) -> float:
    """Return the median CPU seconds of ``work``."""
    return median_cpu_s(work, runs, warmup=0)


def rate(work: Callable[[], object], count: int, runs: int = 3) -> float:
    """Return the median of ``work`` done per CPU second, ``count`` times at a go."""
    return count / cpu_s(lambda: [work() for _ in range(count)], runs)


def paillier_rows(key: PrivateKey, rng: Rng) -> list[Row]:
    """Measure encryptions and decryptions per CPU second, next to phe's."""
    bits, public = key.public.bits, key.public
    theirs = phe.PaillierPublicKey(int(public.n))
    ciphertext = key.encrypt(1, rng)  # the tables, too
    public.encrypt(1, rng)
    reference = rate(lambda: theirs.raw_encrypt(1), 20)
    anchor = {
        2048: "HEU ZPaillier (C++) 1,676/s, phe + gmpy2 111/s",
        3072: "HEU ZPaillier (C++) 540/s, phe + gmpy2 34/s",
    }
    here = f"; phe in this run {reference:.0f}/s"
    return [
        Row(
            f"Paillier {bits}: encryptions by the holder",
            rate(lambda: key.encrypt(1, rng), 200),
            "per CPU s",
            anchor=anchor[bits] + here,
        ),
        Row(
            f"Paillier {bits}: encryptions by others",
            rate(lambda: public.encrypt(1, rng), 100),
            "per CPU s",
            anchor=anchor[bits] + here,
        ),
        Row(
            f"Paillier {bits}: decryptions",
            rate(lambda: key.decrypt(ciphertext), 50),
            "per CPU s",
            anchor={2048: "phe + gmpy2 385/s", 3072: "phe + gmpy2 125/s"}[bits],
        ),
    ]


def measured(parties: Callable[[], dict[str, Rounds[Any]]], runs: int = 3) -> tuple[float, Transcript]:
    """Return the median CPU seconds of a protocol's roles together, and the last run's transcript."""
    transcripts: list[Transcript] = []
    return cpu_s(lambda: transcripts.append(run_local(parties())[1]), runs), transcripts[-1]


def traffic(transcript: Transcript) -> dict[str, Any]:
    return {"megabytes": transcript.bytes_sent() / 1e6, "rounds": transcript.rounds}


def scalar_product_row(key: PrivateKey, rng: Rng) -> Row:
    x, y = np.random.default_rng(1).integers(0, 2, (2, 1, ADULT), dtype=np.uint64)
    shape = ProductShape(1, ADULT)
    seconds, transcript = measured(
        lambda: {
            "a": scalar_product_holder("b", key, x, shape, rng),
            "b": scalar_product_masker("a", key.public, y, shape, rng),
        }
    )
    return Row(
        f"scalar product of {ADULT:,} bits, 3072-bit key, both roles",
        seconds,
        "CPU s",
        anchor=f"one ciphertext per element: {ADULT / 34:.0f} s with phe, {ADULT / 540:.0f} s with HEU",
        detail=traffic(transcript),
    )


def polynomial_row(key: PrivateKey, rng: Rng) -> Row:
    shape = PolynomialShape(20, 10, 20, 64)
    polynomials = [[(-1) ** i << 63 for i in range(11)]] * 20
    seconds, transcript = measured(
        lambda: {
            "a": share_receiver("b", key, [1_000_003] * 20, shape, rng),
            "b": share_sender("a", key.public, polynomials, shape, rng),
        }
    )
    return Row(
        "oblivious polynomials, 20 of degree 10, 3072-bit key, both roles",
        seconds,
        "CPU s",
        detail=traffic(transcript),
    )


def random_value_row(count: int, rng: Rng) -> Row:
    """Measure shares of ``count`` values below shared 52-bit bounds; session setup and compiling not included."""
    first = uniform_words(rng, count) >> np.uint64(12)
    second = (np.uint64(10**15) - first) & np.uint64((1 << 52) - 1)
    random_value_circuit(52, TRIES)
    sessions: dict[str, Any]
    sessions, _ = run_local({"a": open_garbler("a", "b", rng), "b": open_evaluator("b", "a", rng)})
    seconds, transcript = measured(
        lambda: {
            "a": random_value(sessions["a"], first, 52),
            "b": random_value(sessions["b"], second, 52),
        }
    )
    return Row(
        f"random values below {count} shared 52-bit bounds, both roles",
        seconds,
        "CPU s",
        detail=traffic(transcript),
    )


def half_shared(size: int, n: int) -> dict[str, list[bytes]]:
    """Return ``n`` sets of ``size``; neighbours share half of their identifiers."""
    return {f"p{i}": [b"%d" % (j + i * size // 2) for j in range(size)] for i in range(n)}


def intersection_row(size: int, n: int, rng: Rng, target: float | None = None, anchor: str = "") -> Row:
    """Measure sets of :func:`half_shared`."""
    sets = half_shared(size, n)
    names = list(sets)
    seconds, transcript = measured(
        lambda: {me: intersect(me, names, names[0], sets[me], JOB, rng) for me in names}, 1
    )
    return Row(
        f"set intersection of {n} × {size:,}, all roles",
        seconds,
        "CPU s",
        target,
        anchor=anchor,
        detail=traffic(transcript),
    )


def histogram_row(records: int, rng: Rng, runs: int, target: float, anchor: str) -> Row:
    """Measure 32 × 32, transfers included, base transfers not (30 ms once per pair of parties and job)."""
    a, b = np.random.default_rng(2).integers(0, 32, (2, records))
    shape = HistogramShape(records, 32, 32)
    sessions: dict[str, Any]
    sessions, _ = run_local({"a": setup_sender("a", "b", rng), "b": setup_receiver("b", "a", rng)})
    sent = 0

    def once() -> None:
        nonlocal sent

        def count(message: Any) -> bytes:
            nonlocal sent
            sent += len(message.payload)
            return bytes(message.payload)

        sent = 0
        parties: dict[str, Rounds[Any]] = {
            "a": joint_histogram_send(sessions["a"], a, shape, rng),
            "b": joint_histogram_receive(sessions["b"], b, shape),
        }
        run_local(parties, record=False, tamper=count)

    seconds = cpu_s(once, runs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return Row(
        f"joint histogram 32 × 32 of {records:,} records, both roles",
        seconds,
        "CPU s",
        target,
        anchor=anchor,
        detail={"megabytes": sent / 1e6, "bits": shape.width, "process_peak_megabytes": peak},
    )


def shares_row(rng: Rng) -> Row:
    """Measure three parties that share and open a million words."""
    names, pair = ["p0", "p1", "p2"], ComputePair("p0", "p1")
    values = np.ones(MILLION, np.uint64)

    def party(me: str) -> Rounds[Any]:
        session = yield from setup_shares(me, names, pair, JOB, rng)
        held = yield from share_vector(session, values)
        return (yield from open_vector(session, MILLION, 64, held))

    seconds, transcript = measured(lambda: {me: party(me) for me in names})
    return Row(
        "share and open 1,000,000 words, 3 parties, all roles", seconds, "CPU s", detail=traffic(transcript)
    )


def mix_rows_of(rng: Rng) -> list[Row]:
    """Measure making and opening boxes, and a shuffle of three parties' rows of 64 bytes, without boxes."""
    names, pair, count, width = ["p0", "p1", "p2"], ComputePair("p0", "p1"), 5_000, 64
    rows = np.frombuffer(rng.bytes(count * width), np.uint8).reshape(count, width)
    key = OpeningKey(rng)
    boxes = sealed(rows, key.public, rng)
    seconds, transcript = measured(
        lambda: {me: mix_rows(me, names, pair, rows, 3 * count, rng) for me in names}
    )
    return [
        Row("rows of 64 bytes sealed", count / cpu_s(lambda: sealed(rows, key.public, rng)), "per CPU s"),
        Row("the same opened", count / cpu_s(lambda: key.opened(boxes, "", "")), "per CPU s"),
        Row(
            f"mix of 3 × {count:,} rows of 64 bytes, all roles",
            seconds,
            "CPU s",
            detail=traffic(transcript) | {"bytes_a_row": transcript.bytes_sent() / (3 * count)},
        ),
    ]


if __name__ == "__main__":
    publish("crypto: arithmetic protocols", rows(), Path("out/bench_crypto_arithmetic.json"))
