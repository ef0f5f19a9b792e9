"""Many parties by rows, sealed: who sends and receives how much, and how long it takes.

Adult dealt out evenly, L=4 K=50 C=0.2, score `added` (the default). 20 daemons on loopback, and 100 parties one after
the other in one process, signatures included: there the seconds are those of all of them together.

    python -m benchmarks.bench_parties
"""

from __future__ import annotations

import hashlib
import os
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from anonymize.tds import Observer
from benchmarks.bench_lkc import run_repeatedly
from benchmarks.one_run import cpu_s
from benchmarks.shared_jobs import shared_job
from benchmarks.support import Row, publish
from crypto.local import Message, run_local
from crypto.rng import SystemRng
from crypto.rounds import Rounds
from jobs.account import Unaccounted
from jobs.commitment import commit, opening_of
from jobs.data.sources import Csv
from jobs.data.tables import Table
from jobs.links import pass_on
from jobs.loading import load_task
from jobs.modes import protocol_of
from jobs.signatures import Statement, attest
from jobs.task import Besides, Task
from party.owner.identity import make_credentials
from party.owner.signing import CERTIFICATE, Signer, der_of, read_certificate

DAEMONS, IN_PROCESS = 20, 100
_RUN = bytes(16)


def party_rows() -> list[Row]:
    """Of daemons, then in one process."""
    return [*daemon_rows(), *in_process_rows()]


def _job(parties: int) -> Path:
    return shared_job("adult", f"parties={parties}", "disclosure=sealed", "L=4", "K=50", "C=0.2")


def daemon_rows() -> list[Row]:
    """Daemons on loopback, up before; the median of three runs after a first one."""
    before = cpu_s()
    seconds, report = run_repeatedly(_job(DAEMONS), runs=3)
    cpu = (cpu_s() - before) / 4
    parties = report["cost"]["parties"]
    sent = {name: _of(cost["phases"], "bytes_sent") for name, cost in parties.items()}
    received = {name: _of(cost["phases"], "bytes_received") for name, cost in parties.items()}
    links = sum(map(len, report["signatures"]["links"].values())) // 2
    name = f"{DAEMONS} daemons on loopback, {links} links"
    anchor = (
        f"{cpu:.1f} CPU s of all processes, starting included; {_account(sent, received, report['leader'])}"
    )
    return [Row(name, seconds, "s", anchor=anchor, detail=report["cost"])]


def _of(phases: dict[str, dict[str, int]], key: str) -> int:
    return sum(phase[key] for phase in phases.values())


def in_process_rows() -> list[Row]:
    """All parties in one process, one thread."""
    folder = _job(IN_PROCESS)
    task = load_task(folder / "job.yaml")
    tables = {me: task.load(Csv(folder / f"{me}.csv"), me) for me in task.job.roster}
    signers = _signers(task)
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    around: Counter[str] = Counter()

    def count(message: Message) -> bytes:
        sent[message.sender] += len(message.payload)
        received[message.recipient] += len(message.payload)
        if message.step.startswith("run/"):
            around[message.sender] += len(message.payload)
        return message.payload

    start, before = time.perf_counter(), cpu_s()
    results, _ = run_local(
        {me: _whole_run(task, me, tables[me], signers[me]) for me in task.job.roster},
        record=False,
        tamper=count,
    )
    seconds, cpu = time.perf_counter() - start, cpu_s() - before
    assert len(set(results.values())) == 1
    rest = [name for name in task.job.roster if name not in (task.job.leader_name, task.job.deputy_name)]
    leader, deputy = task.job.leader_name, task.job.deputy_name
    other = statistics.median(around[name] for name in rest)
    anchor = (
        f"{cpu:.1f} CPU s of all parties; {_account(sent, received, leader)}; of what is sent, for commitments, "
        f"certificates and signatures: leader {around[leader] / 1e6:.2f} MB, deputy {around[deputy] / 1e6:.2f} MB, "
        f"others {other / 1e3:.1f} kB"
    )
    links = sum(map(len, task.links.values())) // 2
    return [Row(f"{IN_PROCESS} parties in one process, {links} links", seconds, "s", anchor=anchor)]


def _signers(task: Task) -> dict[str, Signer]:
    """Everybody with a key; everybody has the certificates of those whom it speaks with."""
    keys = {me: make_credentials(me) for me in task.job.roster}
    certificates = {me: der_of(each.certificate) for me, each in keys.items()}
    return {
        me: Signer(me, keys[me], {peer: certificates[peer] for peer in (me, *task.links[me])})
        for me in task.job.roster
    }


def _whole_run(task: Task, me: str, table: Table, signer: Signer) -> Rounds[bytes]:
    """As a daemon does it, but that nothing is charged and digests of links are made up."""
    rng, links = SystemRng(), task.links
    signer = signer.with_told(
        (yield from pass_on(me, links, CERTIFICATE, signer.certificates, read_certificate))
    )
    commitments = yield from commit(me, links, opening_of(table, rng), rng)
    result: Any = yield from protocol_of(task, me, table, rng, Observer(), Unaccounted(), Besides())
    ours = Statement(
        me,
        task.digest.hex(),
        _RUN.hex(),
        {party: each.hex() for party, each in commitments.items()},
        {peer: _digest(me, peer) for peer in links[me]},
        {peer: _digest(peer, me) for peer in links[me]},
        hashlib.sha256(result.encoded).hexdigest(),
    )
    yield from attest(ours, links, signer.sign, signer.check)
    return bytes(result.encoded)


def _digest(sender: str, recipient: str) -> str:
    return hashlib.sha256(f"{sender} {recipient}".encode()).hexdigest()


def _account(sent: dict[str, int], received: dict[str, int], leader: str) -> str:
    """Of leader, deputy (the next in size) and the median of all others."""
    deputy, *others = sorted((name for name in sent if name != leader), key=lambda name: -sent[name])
    words = [
        f"{who} sends {sent[name] / 1e6:.2f}, receives {received[name] / 1e6:.2f} MB"
        for who, name in (("leader", leader), ("deputy", deputy))
    ]
    out, back = (statistics.median(of[name] for name in others) / 1e3 for of in (sent, received))
    return "; ".join([*words, f"another sends {out:.1f}, receives {back:.1f} kB (median)"])


if __name__ == "__main__":
    print(f"load before: {os.getloadavg()[0]:.1f}")
    publish("parties", party_rows(), Path("out/bench_parties.json"))
