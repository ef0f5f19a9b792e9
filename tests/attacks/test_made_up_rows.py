"""A party whose table is made up: K rows and more of every combination, so that all is valid down to the leaves.

The table is right and private; less the made-up rows it is the others' table in full detail. K counts made-up rows
like any others. `own_k` counts a party's own.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from anonymize.cut import Cut, top
from anonymize.release import release_of_rows
from anonymize.tds import Observer, Step
from coordinator.run import conduct
from crypto.local import run_local
from jobs.data.rows_read import RowsRead
from jobs.data.tables import Loaded
from jobs.errors import PartyError, PolicyError
from jobs.modes import protocol_of
from jobs.owner.account import Unaccounted
from jobs.owner.own_groups import OwnGroups
from jobs.task import Task
from tests.support import jobs
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.network import network, serving
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS, PARTIES, joint_job

A, B, LIAR = PARTIES
JOBS, AGES = ("Janitor", "Mover", "Lawyer"), range(5, 100, 10)
Rows = list[dict[str, str]]


def made_up(copies: int = 40) -> Rows:
    common = {"transfused": "Y", "surgery": "Heart"}
    return [
        {"patient": f"x{i}", "job": job, "age": str(age), **common}
        for i, (job, age, _) in enumerate(itertools.product(JOBS, AGES, range(copies)))
    ]


def task(disclosure: str = "sealed") -> Task:
    model = {"lkc": {"L": "2", "K": "10", "C": "0.3"}}
    return jobs.task_of(joint_job(disclosure=disclosure, goal="general", model=model))


def dealt(third: Rows) -> dict[str, Rows]:
    """The others' 90 rows between two, and a third table."""
    rows = sample_rows(90)
    return {A: rows[0::2], B: rows[1::2], LIAR: third}


class Watching(Observer):
    """Follows what is opened, as every party can."""

    def __init__(self, task: Task) -> None:
        self.cut: Cut = top(task.schema)

    def turn(self, iteration: int, step: Step) -> None:
        if step.applied:
            self.cut = self.cut.specialized(step.candidate)


def seen_of(asked: Task, tables: Mapping[str, Rows], own_k: int) -> tuple[Cut, bool]:
    """Return the finest view of the others' rows that the liar had, and True if they ended the run. It may
    have all counts up to then.
    """
    loaded = {
        me: Loaded(jobs.coded(asked.bundle, rows), RowsRead(len(rows), len(rows)))
        for me, rows in tables.items()
    }
    watching = Watching(asked)
    observers = {A: OwnGroups(Observer(), own_k), B: OwnGroups(Observer(), own_k), LIAR: watching}
    try:
        run_local(
            {
                me: protocol_of(asked, me, loaded[me], SeededRng(me), observers[me], Unaccounted())
                for me in PARTIES
            },
            record=False,
        )
    except PolicyError:
        return watching.cut, True
    return watching.cut, False


def left(asked: Task, cut: Cut) -> Counter[tuple[str, ...]]:
    """The others' rows by job and age, once the liar has subtracted its own."""
    release = release_of_rows(jobs.coded(asked.bundle, sample_rows(90)), cut)
    return Counter(row[:2] for row in jobs.multiset(release).elements())


def truth() -> Counter[tuple[str, ...]]:
    """The same in full detail."""
    rows = sample_rows(90)
    lower = [int(row["age"]) // 10 * 10 for row in rows]
    # the only value below White is Lawyer
    return Counter(
        ("White" if row["job"] == "Lawyer" else row["job"], f"[{low},{low + 10})")
        for row, low in zip(rows, lower, strict=True)
    )


def in_full(groups: Counter[tuple[str, ...]]) -> int:
    """Count the rows that are known in full detail."""
    named = Counter({("White" if job == "Lawyer" else job, age): n for (job, age), n in groups.items()})
    return (named & truth()).total()


@pytest.mark.parametrize("disclosure", ["sealed", "leader"])
def test_without_own_k_the_liar_has_the_others_rows(disclosure: str) -> None:
    asked = task(disclosure)
    cut, stopped = seen_of(asked, dealt(made_up()), own_k=1)
    assert not stopped
    assert in_full(left(asked, cut)) == 90
    assert min(left(asked, cut).values()) == 1


@pytest.mark.by_lot(3)
@pytest.mark.parametrize("disclosure", ["sealed", "leader"])
@pytest.mark.parametrize("own_k", [2, 3, 5])
def test_with_own_k_groups_of_so_many_are_left(disclosure: str, own_k: int) -> None:
    """Each of the two has as many in each group that it is in; two of them, or more, are left together."""
    asked = task(disclosure)
    cut, stopped = seen_of(asked, dealt(made_up()), own_k)
    assert stopped
    assert in_full(left(asked, cut)) == 0
    assert min(left(asked, cut).values()) >= own_k


def test_an_honest_run_goes_on() -> None:
    asked = task()
    cut, stopped = seen_of(asked, dealt(sample_rows(45, seed=9)), own_k=2)
    assert not stopped
    assert in_full(left(asked, cut)) == 0


def test_a_daemon_ends_the_run_and_counts_it(tmp_path: Path) -> None:
    """The others hear that it stopped, not how many; no table is anywhere, and the run stays charged."""
    asked = task()
    tables = {
        me: jobs.write_csv(tmp_path / f"{me}.csv", rows, COLUMNS) for me, rows in dealt(made_up(10)).items()
    }
    net = network(tmp_path / "net", asked.bundle, tables)
    net.change(A, lambda fields: fields["policy"].update(own_k=2, max_lkc_releases=1))

    async def scenario() -> None:
        async with serving(net):
            await conduct(asked, net.coordinator, tmp_path / "out")

    with pytest.raises(PartyError) as caught:
        run(scenario())
    problem = caught.value.problem
    assert (problem.error_id, problem.party) == ("policy-refused", A)
    assert "fewer of our records than our policy asks for" in problem.message
    assert not (tmp_path / "out").exists()
    assert [net.releases(party) for party in PARTIES] == [[], [], []]
    assert [entry.state for entry in net.config(A).ledger.entries()] == ["opened"]
