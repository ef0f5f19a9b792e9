"""Many small jobs over the same three daemons: do these hold more after each, and are their books right at the end?

Led, sealed, vertical and differentially private jobs take turns. After each, once no daemon is at work, resident
memory, threads and open files are read in /proc, so this runs on Linux. What is judged is how much more each holds
per job (`slope`), once code is loaded, pools of threads have filled and the allocator has taken what it keeps. It
ends the daemons that it started, and no other process.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from pathlib import Path
from typing import Any

from coordinator.run import conduct
from coordinator.simulate import COORDINATOR
from jobs.bundle import Bundle
from party.auditing import RELEASED
from party.owner.accounts import BEING_MADE, UNFINISHED, accounts
from party.owner.audit import FOLDER
from party.owner.audit_check import check, lines_of
from party.owner.problems import ProblemBook
from tests.support import jobs
from tests.support.dp_jobs import dp_joint
from tests.support.joint import sample_rows
from tests.support.network import GUARD_S, Network, Processes, network, processes
from tests.support.samples import COLUMNS, PARTIES, joint_job

A, B, C = PARTIES
KINDS = ("leader", "sealed", "vertical", "dp")
N_ROWS = 40
"""Each party has rows of the same people: in vertical jobs that is what they have in common."""
JOBS = 200
EPSILON = Fraction(1, 100)
MOST = "1000000"

WARM_UP = 0.25
"""The part of all jobs that is not judged."""
MOST_MORE: Mapping[str, float] = {"rss_kb": 50, "threads": 0.05, "files": 0.05}
"""How much more a daemon may hold per job, when 200 are done. A leak keeps at least a file or a thread of one kind of
job in four (0.25), or a run, which is 350 kB.
"""


@dataclass(frozen=True)
class Held:
    """What a daemon holds of the machine."""

    rss_kb: int
    threads: int
    files: int


def held(pid: int) -> Held:
    """What a process holds now. Linux only."""
    process = Path(f"/proc/{pid}")
    rss_kb = int((process / "status").read_text().split("VmRSS:")[1].split()[0])
    return Held(rss_kb, len(os.listdir(process / "task")), len(os.listdir(process / "fd")))


def slope(values: Sequence[float]) -> float:
    """How much more each is than the one before: the median of all pairs' slopes, but for the largest step.

    One step is no leak: a daemon whose circuits came to some number of gates compiles them, once (80 MB).
    Source: Theil 1950, Sen 1968.
    """
    steps = [after - before for before, after in pairwise(values)]
    steps.remove(max(steps))
    level = list(accumulate(steps, initial=0.0))
    return statistics.median((level[j] - level[i]) / (j - i) for i, j in combinations(range(len(level)), 2))


@dataclass
class Soak:
    """What each daemon held after each job, oldest first."""

    samples: dict[str, list[Held]] = field(default_factory=lambda: {party: [] for party in PARTIES})

    def slopes(self) -> dict[str, dict[str, float]]:
        """By party and what is held: how much more per job, after the warm-up."""
        found = {}
        for party, samples in self.samples.items():
            series = zip(*map(astuple, samples[int(WARM_UP * len(samples)) :]), strict=True)
            found[party] = {what: slope(values) for what, values in zip(MOST_MORE, series, strict=True)}
        return found

    def grown(self) -> list[str]:
        """What is not flat."""
        return [
            f"{party}: {what} by {more:.3g} a job"
            for party, found in self.slopes().items()
            for what, more in found.items()
            if more > MOST_MORE[what]
        ]

    def table(self) -> list[str]:
        """The figures, a line for each daemon."""
        lines = ["party, what: after the first job, after the warm-up, at the end; more per job"]
        for party, found in self.slopes().items():
            samples = self.samples[party]
            for what, more in found.items():
                at = [getattr(samples[i], what) for i in (0, int(WARM_UP * len(samples)), -1)]
                lines.append(f"{party}, {what}: {at[0]}, {at[1]}, {at[2]}; {more:+.3f}")
        return lines


def job_of(kind: str, number: int) -> Bundle:
    """A job; each has a name of its own, so that none is answered by what the ledger keeps of another."""
    name = f"{kind}-{number}"
    if kind == "dp":
        model = {"epsilon": f"{float(EPSILON):g}"}
        return jobs.bundle_of(dp_joint("horizontal", model, name=name))
    if kind == "vertical":
        parties = {A: {"columns": ["job"]}, B: {"columns": ["age", "surgery"]}}
        parties = {party: {"address": "127.0.0.1:7401", **said} for party, said in parties.items()}
        return jobs.bundle_of(
            joint_job(name=name, partition="vertical", disclosure="sealed", parties=parties)
        )
    return jobs.bundle_of(joint_job(name=name, disclosure=kind))


def _allows(me: str) -> dict[str, Any]:
    """The settings of a policy that allows all these jobs, as often as they come."""
    return {
        "coordinators": [COORDINATOR],
        "approval": "automatic",
        "parties": [party for party in PARTIES if party != me],
        "leaders": [A],
        "pairs": [[A, B]],
        "columns": {name: [said["role"]] for name, said in COLUMNS.items()},
        "disclosure": ["leader", "sealed"],
        "min_k": 2,
        "max_c": "0.5",
        "protected": {"surgery": ["Rare"]},
        "match_ids": True,
        "max_alignments": int(MOST),
        "max_epsilon": "1",
        "epsilon_budget": MOST,
        "max_rows": 1000,
    }


def daemons_network(root: Path) -> Network:
    """Three parties whose policies allow all these jobs."""
    root.mkdir(parents=True, exist_ok=True)
    rows = sample_rows(N_ROWS)
    tables = {party: jobs.write_csv(root / f"{party}.csv", rows, COLUMNS) for party in PARTIES}
    net = network(root, job_of("leader", 0), tables)
    for party in PARTIES:
        net.change(party, lambda fields, me=party: fields.update(policy=_allows(me)))  # type: ignore[misc]
    return net


def _told(net: Network, party: str) -> bool:
    """Whether the owner's account of every run is written, which a daemon does when the run is over."""
    state = net.config(party).state_dir
    return all(own.get(UNFINISHED) != BEING_MADE for _, own in accounts(state, int(MOST), lost=False))


def _settled(daemons: Processes) -> None:
    """Wait until the daemons are done with a job: accounts written, no file opened or closed for a while."""
    deadline = time.monotonic() + GUARD_S
    while not all(_told(daemons.net, party) for party in PARTIES):
        assert time.monotonic() < deadline, "an account is not finished"
        time.sleep(0.05)
    before: list[int] = []
    while (now := [held(each.process.pid).files for each in daemons.running.values()]) != before:
        assert time.monotonic() < deadline, "files are opened and closed without end"
        before = now
        time.sleep(0.2)


def soaked(daemons: Processes, out: Path, n_jobs: int) -> Iterator[tuple[int, str, Soak]]:
    """Run so many jobs; after each yield its number, its kind and what was seen until then."""
    net, seen = daemons.net, Soak()
    for number in range(n_jobs):
        kind = KINDS[number % len(KINDS)]
        task = Network(net.root, job_of(kind, number), net.addresses).task
        asyncio.run(asyncio.wait_for(conduct(task, net.coordinator, out / str(number)), GUARD_S))
        _settled(daemons)
        for party, samples in seen.samples.items():
            samples.append(held(daemons.running[party].process.pid))
        yield number, kind, seen


def wrong_books(net: Network, n_jobs: int) -> list[str]:
    """What is wrong in what the parties keep after so many jobs, all of which came to a release.

    Raises PartyError for an audit whose lines do not follow each other.
    """
    kinds = [KINDS[number % len(KINDS)] for number in range(n_jobs)]
    wrong = []
    for party in PARTIES:
        runs = [kind for kind in kinds if kind != "vertical" or party != C]
        state, ledger = net.config(party).state_dir, net.config(party).ledger
        found: dict[str, tuple[object, object]] = {
            "releases": (len(net.releases(party)), len(runs)),
            "entries of the ledger": (len(ledger.entries()), len(runs)),
            "its entries with one delivery": (
                sum(len(entry.deliveries) == 1 and not entry.ended for entry in ledger.entries()),
                len(runs),
            ),
            "epsilon": (ledger.spent(), kinds.count("dp") * EPSILON),
            "problems": (len(ProblemBook(state).entries(n_jobs)), 0),
        }
        came_to = Counter(
            line.fields.get("came_to") for line in lines_of(state / FOLDER) if line.what == "end"
        )
        found["runs in the audit"] = (len(check(state / FOLDER).ends), len(runs))
        found["those released"] = (came_to[RELEASED], len(runs))
        wrong += [
            f"{party}: {what}: {is_}, not {ought}" for what, (is_, ought) in found.items() if is_ != ought
        ]
        wrong += [f"{party}: audit: {note}" for note in check(state / FOLDER).notes]
    return wrong


@contextmanager
def soaking(root: Path) -> Iterator[Processes]:
    """Three daemons for :func:`soaked`."""
    with processes(daemons_network(root)) as daemons:
        yield daemons


def _main(n_jobs: int) -> int:
    if not Path("/proc/self/status").exists():
        print("what a process holds is read in /proc: not on this system")
        return 2
    with tempfile.TemporaryDirectory() as folder, soaking(Path(folder) / "net") as daemons:
        for number, kind, seen in soaked(daemons, Path(folder), n_jobs):
            now = "; ".join(f"{party} {astuple(samples[-1])}" for party, samples in seen.samples.items())
            print(f"{number} {kind}: {now}", flush=True)
        wrong = [*seen.grown(), *wrong_books(daemons.net, n_jobs)]
    print(*seen.table(), f"{n_jobs} jobs: {'; '.join(wrong) or 'flat, and the books are right'}", sep="\n")
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1])))
