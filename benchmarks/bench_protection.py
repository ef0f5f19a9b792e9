"""Benchmark of protection: the check of extended transfers, and bundles read in a separate process.

python -m benchmarks.bench_protection [OUT.json]
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.support import Row, median_cpu_s, median_s, publish
from crypto.local import run_local
from crypto.ot import consistency, extension
from crypto.rng import SystemRng
from jobs.loading import decode_task
from party.decoding import READER, open_foreign
from tests.support import jobs
from tests.support.samples import joint_job

PAIRS = 200


@contextmanager
def unchecked() -> Iterator[None]:
    """Disable the check of transfers, except for its coins and its bytes on the wire."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(consistency, "challenge", lambda *_: None))
        stack.enter_context(patch.object(consistency, "proof", lambda *_: bytes(consistency.CHECK_BYTES)))
        stack.enter_context(patch.object(consistency, "holds", lambda *_: True))
        yield


def cpu_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def check_rows() -> list[Row]:
    """Measure both roles on the same core, 65,536 transfers, in turn with and without the check."""
    ends, _ = run_local(
        {
            "s": extension.setup_sender("s", "r", SystemRng()),
            "r": extension.setup_receiver("r", "s", SystemRng()),
        }
    )
    sender: Any = ends["s"]
    receiver: Any = ends["r"]
    choices = np.frombuffer(os.urandom(extension.CHUNK // 8), dtype=np.uint64)

    def extend() -> None:
        payload, _ = receiver.extend(choices, extension.CHUNK)
        sender.extend(payload, extension.CHUNK, "ot/extend")

    extend()
    checked, plain = [], []
    for _ in range(PAIRS):
        checked.append(cpu_s(extend))
        with unchecked():
            plain.append(cpu_s(extend))
    with_check, without = statistics.median(checked), statistics.median(plain)
    message = os.urandom(extension.extension_bytes(extension.CHUNK) - consistency.CHECK_BYTES)
    digest = median_cpu_s(lambda: consistency.challenge(bytes(16), 0, memoryview(message)), PAIRS)
    return [
        Row("65,536 transfers, both roles, checked", 1e3 * with_check, "CPU ms"),
        Row("the same without the check", 1e3 * without, "CPU ms"),
        Row(
            "the check",
            100 * (with_check / without - 1),
            "%",
            target=8.0,
            anchor="the same transfers without it",
            detail={"digest_of_the_message_percent": 100 * 2 * digest / without},
            why=f"the digest of the message alone is {100 * 2 * digest / without:.0f} % (benchmarks/RESULTS.md)",
        ),
    ]


def decoding_rows() -> list[Row]:
    """Measure the delay of a job's start when a daemon reads the bundle in a separate process."""
    encoded = jobs.bundle_of(joint_job()).encoded
    READER.start()
    open_foreign(encoded)
    apart, here = median_s(lambda: open_foreign(encoded), 20), median_s(lambda: decode_task(encoded), 20)
    READER.stop()
    name = "start of a job: its bundle in a process of its own"
    return [Row(name, apart - here, "s", target=0.3, anchor="in the daemon")]


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/bench-protection.json")
    publish("what protection costs", [*check_rows(), *decoding_rows()], path)


if __name__ == "__main__":
    main()
