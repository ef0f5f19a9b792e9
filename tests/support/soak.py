"""Many jobs in a row over the same daemons, and what the daemons hold meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coordinator.run import conduct
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.network import GUARD_S, Network, Processes
from tests.support.silent import SILENT

MANY = 10**6
REPEATED = 10
"""Each job with this number is the job before once more, which is answered from what the parties keep."""


@dataclass(frozen=True)
class Held:
    """Resident memory in MiB, threads and open files of a daemon."""

    memory: float
    threads: int
    files: int


def held(daemons: Processes) -> dict[str, Held]:
    """Return what each daemon holds now."""
    return {name: _of(running.process.pid) for name, running in daemons.running.items()}


def _of(pid: int) -> Held:
    kb = Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]
    return Held(int(kb) / 1024, len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd")))


def allow_many(net: Network) -> None:
    """Let policies allow as many jobs as one likes."""
    for party in net.roster:
        many = {"max_lkc_releases": MANY, "max_questions": MANY}
        net.change(party, lambda fields, said=many: fields["policy"].update(said))


def work(
    net: Network, daemons: Processes, outs: Path, n_jobs: int
) -> Iterator[tuple[float, dict[str, Held]]]:
    """Run jobs, most of them new to the ledgers; after each, yield its seconds and what the daemons hold."""
    fields, name = json.loads(net.bundle.job.canonical()), ""
    for number in range(1, n_jobs + 1):
        name = name if number % REPEATED == 0 else f"job-{number}"
        task = Network(net.root, jobs.bundle_of({**fields, "name": name}), net.addresses).task
        began = time.monotonic()
        asyncio.run(conduct(task, net.coordinator, outs / str(number), voice=SILENT))
        yield time.monotonic() - began, held(daemons)


def n_charged(n_jobs: int) -> int:
    """Return the number of runs that a ledger has after so many jobs: repetitions are not charged."""
    return n_jobs - n_jobs // REPEATED


def complaints(net: Network, daemons: Processes, n_jobs: int) -> list[str]:
    """Compare ledgers, releases, audits and logs with the number of jobs; return what is not as it must be."""
    found = []
    for party in net.roster:
        states = [entry.state for entry in net.config(party).ledger.entries()]
        if states != ["released"] * n_charged(n_jobs):
            found.append(f"the ledger of {party} has {states} after {n_jobs} jobs")
        if len(whole := [path for path in net.releases(party) if not path.name.startswith(".")]) != n_jobs:
            found.append(f"{party} has {len(whole)} releases")
        ran = invoke("party", "audit", "verify", "--config", net.config_path(party), "--format", "json")
        if ran.code != 0:
            found.append(f"the audit of {party}: {ran.err}")
        lines = [json.loads(line) for line in daemons.log(party).splitlines()]
        found += [f"{party} logs {line}" for line in lines if line["level"] == "error"]
        events = [
            json.loads(line)["event"]
            for line in (net.config(party).state_dir / "audit.jsonl").read_text().splitlines()
        ]
        if events.count("start") != n_jobs or events.count("release") != n_jobs:
            found.append(
                f"the audit of {party} has {events.count('start')} starts, {events.count('release')} releases"
            )
    return found


def wait_for_ends(net: Network) -> None:
    """Wait until each daemon has put its last run away: no account is being made."""
    deadline = time.monotonic() + GUARD_S
    while any(
        path for party in net.roster for path in (net.config(party).state_dir / "releases").glob("**/.*")
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)
