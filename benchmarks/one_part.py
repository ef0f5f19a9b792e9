"""One part of the program alone, by the sources that PYTHONPATH names; prints one line of JSON.

For :mod:`benchmarks.before_after`:

    python -P one_part.py intersection IDS           of two parties, half of the identifiers common
    python -P one_part.py noise CELLS                counts opened with noise, one batch
    python -P one_part.py start PROGRAM ARGUMENT...  a whole process, the median of several
    python -P one_part.py daemons JOB_FOLDER         the daemons of a job, from their start until all listen

Nothing but what both states of the project have is used. CPU seconds of protocols are told by role; both roles run
in this process.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.joint.dp.noise import Plans, noisy_counts
from anonymize.joint.engine import Engine
from anonymize.tds import Observer
from coordinator.simulate import parties_on_loopback, sources_of
from crypto.intersection import intersect
from crypto.local import run_local
from crypto.rng import SystemRng
from crypto.two_party import open_evaluator, open_garbler
from jobs.loading import load_task
from jointcut.launcher import command

PROCESSES = 9
EPSILON = Fraction(1, 2)
"""The rate of the noise: of a count with half of ε = 1."""
COUNT_BITS = 16


def of_roles(parties: Mapping[str, Any]) -> dict[str, float]:
    """CPU seconds of each generator, and what all send."""
    used, sent = dict.fromkeys(parties, 0.0), [0]

    def timed(role: str, rounds: Any) -> Any:
        inbox = None
        while True:
            began = time.process_time()
            try:
                said = rounds.send(inbox)
            except StopIteration as stop:
                return stop.value
            finally:
                used[role] += time.process_time() - began
            inbox = yield said

    def weighed(message: Any) -> bytes:
        sent[0] += len(message.payload)
        payload: bytes = message.payload
        return payload

    run_local({me: timed(me, rounds) for me, rounds in parties.items()}, record=False, tamper=weighed)
    by_role = {f"CPU s, {role}": seconds for role, seconds in used.items()}
    return {"CPU s": sum(used.values()), **by_role, "MB sent": sent[0] / 1e6}


def intersection(ids: str) -> dict[str, float]:
    size, names = int(ids), ("collector", "other")
    sets = {me: [b"%d" % (i * size // 2 + j) for j in range(size)] for i, me in enumerate(names)}
    return of_roles({me: intersect(me, names, names[0], sets[me], bytes(32), SystemRng()) for me in names})


def noise(cells: str) -> dict[str, float]:
    """Of one cell, of so many: the sessions and the circuit are made before."""
    rng, count = SystemRng(), int(cells)
    ends: Any = {"garbler": open_garbler, "evaluator": open_evaluator}
    others = dict(zip(ends, reversed(ends), strict=True))
    sessions, _ = run_local({me: opened(me, others[me], rng) for me, opened in ends.items()})
    plan = Plans(Fraction(1), 1).laplace(EPSILON, count)
    shares = np.zeros(count, dtype=np.uint64)

    def asked() -> dict[str, Any]:
        engines = {me: Engine(session, Observer()) for me, session in sessions.items()}
        return {me: noisy_counts(engine, shares, COUNT_BITS, plan) for me, engine in engines.items()}

    of_roles(asked())
    found = of_roles(asked())
    return {"KB a cell": found.pop("MB sent") * 1e3 / count} | {
        name.replace("CPU s", "CPU µs a cell"): seconds * 1e6 / count for name, seconds in found.items()
    }


def start(*words: str) -> dict[str, float]:
    walls, before = [], _children_cpu_s()
    for _ in range(PROCESSES):
        began = time.perf_counter()
        subprocess.run([*command(words[0]), *words[1:]], check=True, stdout=subprocess.DEVNULL)
        walls.append(time.perf_counter() - began)
    return {"wall s": statistics.median(walls), "CPU s": (_children_cpu_s() - before) / PROCESSES}


def daemons(folder: str) -> dict[str, float]:
    """Of each daemon, on average, until it has ended again."""
    task = load_task(Path(folder) / "job.yaml")
    roster: Sequence[str] = task.job.roster
    sources = sources_of(task, {party: Path(folder) / f"{party}.csv" for party in roster})
    before = _children_cpu_s()
    began = time.perf_counter()
    with parties_on_loopback(task, sources):
        wall = time.perf_counter() - began
    return {"wall s": wall, "CPU s a daemon": (_children_cpu_s() - before) / len(roster)}


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


PARTS: Mapping[str, Callable[..., dict[str, float]]] = {
    "intersection": intersection,
    "noise": noise,
    "start": start,
    "daemons": daemons,
}


def main() -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  what daemons say
    print(json.dumps(PARTS[sys.argv[1]](*sys.argv[2:])))


if __name__ == "__main__":
    main()
