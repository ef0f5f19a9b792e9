"""The store of proposals and decisions: bounds, terms, and what a process that is killed leaves behind."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError, PartyError, PolicyError
from jobs.loading import open_task
from jobs.task import Task
from party.owner import approvals as store
from party.owner.approvals import APPROVALS, DAYS, Approvals, Decision, Proposal, Terms
from tests.support import jobs
from tests.support.killed import killed_at
from tests.support.samples import joint_job

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
TERMS = Terms({"coordinator": "c" * 64, "hospital-b": "b" * 64}, "0.2")
YES = Decision(approved=True, decided=NOW, by="olga", terms=TERMS)


def task(name: str = "survey") -> Task:
    return open_task(jobs.bundle_of({**joint_job(), "name": name}))


TASK = task()


@pytest.fixture
def approvals(tmp_path: Path) -> Approvals:
    found = Approvals(tmp_path)
    found.propose(TASK, "coordinator", NOW)
    return found


def decide(approvals: Approvals, decision: Decision = YES, name: str = "survey") -> None:
    (proposal,) = [each for each in approvals.all(NOW) if each.job == name]
    approvals.decide(proposal, decision)


def state(approvals: Approvals, terms: Terms = TERMS, now: datetime = NOW) -> str:
    return approvals.standing(TASK.digest, "coordinator", terms, now).state


def begin(approvals: Approvals, run: int, terms: Terms = TERMS, now: datetime = NOW) -> None:
    approvals.begin(TASK.digest, "coordinator", terms, bytes([run] * 16), now)


def test_nobody_but_the_owner_reads_the_file(approvals: Approvals, tmp_path: Path) -> None:
    assert (tmp_path / APPROVALS).stat().st_mode & 0o777 == 0o600


def test_the_last_decision_counts(approvals: Approvals) -> None:
    assert state(approvals) == "waiting"
    decide(approvals, replace(YES, approved=False, reason="no"))
    assert state(approvals) == "denied"
    decide(approvals)
    assert state(approvals) == "approved"
    begin(approvals, 1)
    assert state(approvals) == "unknown"
    decide(approvals)  # a second yes allows a second run
    assert state(approvals) == "approved"
    decide(approvals, replace(YES, approved=False, reason="no"))
    with pytest.raises(PolicyError, match="denied the job: no"):
        begin(approvals, 2)


@pytest.mark.parametrize(
    ("terms", "now", "why"),
    [
        (replace(TERMS, version="0.3"), NOW, "the program changed from version 0.2 to 0.3"),
        (
            replace(TERMS, certificates={**TERMS.certificates, "hospital-b": "d" * 64}),
            NOW,
            "the certificate of hospital-b changed",
        ),
        (
            replace(TERMS, certificates={**TERMS.certificates, "hospital-c": "d" * 64}),
            NOW,
            "the certificate of hospital-c changed",
        ),
        (TERMS, NOW + timedelta(days=1), "the approval ended at 2026-11-30 12:00:00 UTC"),
    ],
)
def test_an_approval_holds_on_its_terms_alone(
    approvals: Approvals, terms: Terms, now: datetime, why: str
) -> None:
    decide(approvals, replace(YES, until=NOW + timedelta(days=1)))
    assert state(approvals) == "approved"
    standing = approvals.standing(TASK.digest, "coordinator", terms, now)
    assert (standing.state, standing.own) == ("unknown", why)
    with pytest.raises(PolicyError) as caught:
        begin(approvals, 1, terms, now)
    assert (caught.value.problem.error_id, caught.value.problem.private) == ("approval-waiting", why)
    begin(approvals, 1)


def test_what_waits_and_what_was_decided_are_told_apart(approvals: Approvals) -> None:
    for number, name in enumerate(("one", "two", "three")):
        approvals.propose(task(name), "coordinator", NOW + timedelta(seconds=number))
        decide(approvals, YES if name != "two" else replace(YES, approved=False, reason="no"), name)
    decide(approvals, name="one")  # the last decision counts, also for the order
    assert [each.job for each in approvals.waiting(NOW)] == ["survey"]
    assert [each.job for each in approvals.decided(2, NOW)] == ["one", "three"]
    assert [each.job for each in approvals.decided(9, NOW)] == ["one", "three", "two"]
    assert approvals.waiting(NOW + timedelta(days=DAYS)) == []


def test_a_lapsed_job_that_is_asked_for_again_waits(approvals: Approvals, tmp_path: Path) -> None:
    """The owner is told once for each decision, and a decision that fails to be noted changes nothing."""
    noted: list[int] = []

    def ask(later: int) -> None:
        approvals.ask_again(TASK, "coordinator", NOW + timedelta(minutes=later), lambda: noted.append(later))

    ask(1)  # the first decision is still to come
    decide(approvals)
    begin(approvals, 1)
    assert [approvals.waiting(NOW), len(approvals.decided(9, NOW))] == [[], 1]

    def fails() -> None:
        raise OSError

    with pytest.raises(OSError):
        approvals.ask_again(TASK, "coordinator", NOW, fails)
    assert approvals.waiting(NOW) == []
    ask(2)
    ask(3)
    (again,) = approvals.waiting(NOW)
    assert again.decision is not None
    assert again.decision.asked == NOW + timedelta(minutes=2)
    assert (noted, approvals.decided(9, NOW)) == ([2], [])
    decide(approvals)
    assert (approvals.waiting(NOW), state(approvals)) == ([], "approved")
    ask(4)  # nobody asks while an approval holds; the store does not look
    assert noted == [2, 4]


@pytest.mark.parametrize("runs", [False, True])
def test_an_approval_that_held_again_is_asked_for_again(approvals: Approvals, runs: bool) -> None:
    """A certificate changes, is put back, and the approval ends again: each time the owner is told."""
    decide(approvals)
    other = replace(TERMS, version="0.3")
    assert state(approvals, other) == "unknown"
    assert approvals.ask_again(TASK, "coordinator", NOW)
    assert state(approvals, other) == "waiting"
    assert state(approvals) == "approved"
    if runs:
        begin(approvals, 1)
    terms = TERMS if runs else other
    assert (state(approvals, terms), approvals.waiting(NOW)) == ("unknown", [])
    assert approvals.ask_again(TASK, "coordinator", NOW)
    assert state(approvals, terms) == "waiting"


def test_a_decision_on_what_was_decided_meanwhile_is_refused(approvals: Approvals) -> None:
    (looked,) = approvals.all(NOW)
    decide(approvals, replace(YES, approved=False, reason="no"))
    noted: list[int] = []
    with pytest.raises(ConfigError, match="has changed since you looked; nothing was decided"):
        approvals.decide(looked, YES, lambda: noted.append(1))
    assert (state(approvals), noted) == ("denied", [])


def test_other_jobs_of_the_name_are_found_by_their_decisions(approvals: Approvals) -> None:
    def another(k: int, later: int) -> Task:
        fields = joint_job()
        fields["model"]["lkc"]["K"] = str(k)
        made = open_task(jobs.bundle_of({**fields, "name": "survey"}))
        approvals.propose(made, "registry", NOW + timedelta(seconds=later))
        return made

    (mine,) = approvals.all(NOW)
    assert (approvals.before(mine, NOW), approvals.beside(mine, NOW)) == (None, None)
    waits = another(3, 1)
    denied = another(4, 2)
    found = approvals.exactly(denied.digest.hex(), "registry", NOW)
    assert found is not None
    approvals.decide(found, replace(YES, approved=False, reason="no"))
    beside = approvals.beside(mine, NOW)
    assert beside is not None
    assert (beside.job_sha256, approvals.before(mine, NOW)) == (denied.digest.hex(), None)
    approvals.decide(beside, YES)
    before, beside = approvals.before(mine, NOW), approvals.beside(mine, NOW)
    assert before is not None
    assert beside is not None
    assert (before.job_sha256, beside.job_sha256) == (denied.digest.hex(), waits.digest.hex())


def test_a_proposal_is_found_by_its_whole_hash_and_coordinator(approvals: Approvals, tmp_path: Path) -> None:
    digest = TASK.digest.hex()
    found = approvals.exactly(digest, "coordinator", NOW)
    assert found is not None
    assert (found.job, found.bundle) == ("survey", TASK.bundle.encoded)
    for other in ((digest[:-1], "coordinator"), (digest, "registry"), ("%", "coordinator"), (digest, "%")):
        assert approvals.exactly(*other, NOW) is None
    assert Approvals(tmp_path / "none").exactly(digest, "coordinator", NOW) is None


def test_the_job_approved_before_is_the_last_of_its_name(approvals: Approvals) -> None:
    for k, coordinator, approved in (
        (3, "coordinator", True),
        (4, "coordinator", False),
        (5, "registry", True),
    ):
        fields = joint_job()
        fields["model"]["lkc"]["K"] = str(k)
        other = open_task(jobs.bundle_of({**fields, "name": "survey"}))
        approvals.propose(other, coordinator, NOW)
        found = approvals.exactly(other.digest.hex(), coordinator, NOW)
        assert found is not None
        approvals.decide(found, replace(YES, approved=approved, decided=NOW + timedelta(seconds=k)))
    mine = approvals.exactly(TASK.digest.hex(), "coordinator", NOW)
    assert mine is not None
    before = approvals.before(mine, NOW)
    assert before is not None
    assert (before.coordinator, json.loads(before.bundle)["job"]["model"]["lkc"]["K"]) == ("registry", 5)
    earlier = approvals.before(before, NOW)
    assert earlier is not None
    assert json.loads(earlier.bundle)["job"]["model"]["lkc"]["K"] == 3  # a denied job is none of them


def test_a_run_begins_once(approvals: Approvals) -> None:
    decide(approvals, replace(YES, runs=3))
    begin(approvals, 1)
    with pytest.raises(PartyError, match="begun before"):
        begin(approvals, 1)
    begin(approvals, 2)
    begin(approvals, 3)
    with pytest.raises(PolicyError):
        begin(approvals, 4)


def test_of_two_at_once_one_has_the_last_run(approvals: Approvals) -> None:
    decide(approvals)

    def tried(run: int) -> bool:
        try:
            begin(approvals, run)
        except PolicyError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(tried, range(8))) == 1


def test_proposals_without_a_decision_go_away(approvals: Approvals) -> None:
    approvals.propose(task("other"), "coordinator", NOW)
    decide(approvals)
    later = NOW + timedelta(days=DAYS)
    assert [each.job for each in approvals.all(later - timedelta(microseconds=1))] == ["survey", "other"]
    assert [each.job for each in approvals.all(later)] == ["survey"]
    approvals.propose(task("other"), "coordinator", later)
    assert [each.job for each in approvals.all(later)] == ["survey", "other"]


def test_a_decision_on_an_expired_proposal_is_refused(approvals: Approvals) -> None:
    (proposal,) = approvals.all(NOW)
    with pytest.raises(ConfigError, match="no proposal waits"):
        approvals.decide(proposal, replace(YES, decided=NOW + timedelta(days=DAYS)))


def test_proposals_are_bounded_for_each_coordinator(
    approvals: Approvals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_BYTES", 3 * len(TASK.bundle.encoded) - 10)
    approvals.propose(task("second"), "coordinator", NOW)
    with pytest.raises(PolicyError, match="too many proposals of coordinator wait"):
        approvals.propose(task("third"), "coordinator", NOW)
    approvals.propose(task("third"), "registry", NOW)
    decide(approvals)  # a decided proposal has no place among those that wait
    approvals.propose(task("third"), "coordinator", NOW)


def test_a_hash_names_a_proposal(approvals: Approvals) -> None:
    digest = TASK.digest.hex()
    assert approvals.named(digest[:8], None, NOW).job == "survey"
    assert approvals.named(digest.upper(), "coordinator", NOW).job == "survey"
    for digits in (digest[:7], "", "survey", "g" * 8, digest + "0"):
        with pytest.raises(ConfigError):
            approvals.named(digits, None, NOW)
    with pytest.raises(ConfigError):
        approvals.named(digest, "registry", NOW)


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / APPROVALS).write_bytes(b"no database at all" * 100)
    with pytest.raises(PartyError) as caught:
        Approvals(tmp_path).all(NOW)
    assert caught.value.problem.error_id == "io-failed"
    assert APPROVALS not in caught.value.problem.message


def test_a_run_that_is_killed_while_it_is_counted(approvals: Approvals) -> None:
    """Either the run is counted, or nobody may have begun it."""
    decide(approvals, replace(YES, runs=100))
    ended = []
    for statement in range(40):
        (before,) = [each.decision.begun for each in approvals.all(NOW) if each.decision]
        done = killed_at(statement, lambda run=statement: begin(approvals, run + 1))
        (after,) = [each.decision.begun for each in approvals.all(NOW) if each.decision]
        assert after - before == done
        ended.append(done)
    assert ended == sorted(ended)
    assert ended[0] is False
    assert ended[-1] is True


def test_a_decision_that_is_killed_while_it_is_written(approvals: Approvals) -> None:
    for statement in range(60):
        done = killed_at(statement, lambda: decide(approvals))
        assert (state(approvals) == "approved") == done
        if done:
            break
    else:
        pytest.fail("no process came to its end")


# ---- proposals that are over


def of_name(name: str, k: int) -> Task:
    fields = joint_job()
    fields["model"]["lkc"]["K"] = str(k)
    return open_task(jobs.bundle_of({**fields, "name": name}))


def approve_and_run(approvals: Approvals, made: Task, at: int, begun: int = 1, **decision: Any) -> None:
    """Propose and approve a job for a run, and begin runs."""
    now = NOW + timedelta(seconds=at)
    approvals.propose(made, "registry", now)
    found = approvals.exactly(made.digest.hex(), "registry", now)
    assert found is not None
    approvals.decide(found, replace(YES, decided=now, **decision))
    for k in range(begun):
        approvals.begin(made.digest, "registry", TERMS, at.to_bytes(15, "big") + bytes([k]), now)


def kept(approvals: Approvals, now: datetime = NOW) -> list[str]:
    return [each.job for each in approvals.all(now)]


def test_approvals_that_are_over_are_bounded(approvals: Approvals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_OVER", 3)
    for k in range(2, 12):
        approve_and_run(approvals, of_name("monthly", k), k)
    # The last is over only after its decision; the next decision removes one.
    assert kept(approvals) == ["survey", *["monthly"] * 4]
    numbers = [each.decision.number for each in approvals.all(NOW) if each.decision]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 10


def test_what_may_still_count_is_kept(approvals: Approvals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are left, denials, jobs asked for again, unfinished decisions, and the last two of each name."""
    monkeypatch.setattr(store, "MOST_OVER", 0)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("left", {"runs": 2}),
        ("denied", {"approved": False, "runs": 0, "begun": 0, "reason": "no"}),
        ("until", {"begun": 0, "until": NOW + timedelta(days=900)}),
        ("again", {}),
        ("unnoted", {"begun": 0, "runs": 0}),
        ("over", {}),
        ("ended", {"begun": 0, "until": NOW + timedelta(seconds=100)}),
    ]
    for at, (name, case) in enumerate(cases):
        approve_and_run(approvals, of_name(name, 2), at, **case)
        if name == "again":
            assert approvals.ask_again(of_name(name, 2), "registry", NOW)
        if name == "unnoted":
            with sqlite3.connect(approvals._path) as connection:
                connection.execute("INSERT INTO unnoted SELECT max(id) FROM decisions")
            connection.close()
        for k in (3, 4):  # two later jobs of the name
            approve_and_run(approvals, of_name(name, k), 20 * k + at)
    approve_and_run(approvals, of_name("last", 2), 200)
    names = kept(approvals)
    assert [names.count(name) for name, _ in cases] == [3, 3, 3, 3, 3, 2, 2]
    assert "survey" in names  # waits
    for k, name in ((2, "left"), (2, "until")):
        terms = (TERMS, NOW + timedelta(seconds=300))
        assert approvals.standing(of_name(name, k).digest, "registry", *terms).state == "approved"
    assert approvals.standing(of_name("denied", 2).digest, "registry", TERMS, NOW).reason == "no"


def test_a_removed_approval_is_neither_run_nor_counted_again(
    approvals: Approvals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_OVER", 0)
    first = of_name("monthly", 2)
    for k in (2, 3, 4, 5):
        approve_and_run(approvals, of_name("monthly", k), k)
    assert approvals.exactly(first.digest.hex(), "registry", NOW) is None
    assert approvals.standing(first.digest, "registry", TERMS, NOW) == store.UNKNOWN
    with pytest.raises(PolicyError):
        approvals.begin(first.digest, "registry", TERMS, bytes(16), NOW)
    approvals.propose(first, "registry", NOW)
    found = approvals.exactly(first.digest.hex(), "registry", NOW)
    assert found is not None
    assert found.decision is None
    approvals.decide(found, replace(YES, runs=2))
    with pytest.raises(PartyError, match="begun before"):
        approvals.begin(first.digest, "registry", TERMS, (2).to_bytes(15, "big") + b"\0", NOW)
    approvals.begin(first.digest, "registry", TERMS, b"n" * 16, NOW)
    (decision,) = [
        e.decision for e in approvals.all(NOW) if e.job_sha256 == first.digest.hex() and e.decision
    ]
    assert (decision.runs, decision.begun) == (2, 1)


def waiting_in_order(approvals: Approvals, now: datetime) -> list[Proposal]:
    """Return what waits in an order that does not tell when a job was proposed."""
    return sorted(approvals.waiting(now), key=lambda each: (each.job_sha256, each.coordinator))


def answers(folder: Path, seed: int, tasks: Sequence[Task]) -> list[Any]:
    """The answers about jobs during a history of proposals, decisions and runs."""
    draw = random.Random(seed)  # noqa: S311  a history, no secret
    approvals = Approvals(folder)
    said: list[Any] = []
    approved = set()
    for step in range(40):
        now = NOW + timedelta(hours=step)
        made, coordinator = draw.choice(tasks), draw.choice(["coordinator", "registry"])
        of = (made, coordinator, now)
        if (
            approvals.standing(made.digest, coordinator, TERMS, now).state == "unknown"
            and draw.random() < 0.7
        ):
            approvals.propose(*of) or approvals.ask_again(*of)
        waits = [each for each in waiting_in_order(approvals, now) if each.job_sha256 == made.digest.hex()]
        for each in waits if draw.random() < 0.6 else ():
            yes = (made.digest, each.coordinator) in approved or draw.random() < 0.8
            runs, hours = draw.randint(1, 2), draw.choice([None, 1, 9])
            until = None if hours is None else now + timedelta(hours=hours)
            approvals.decide(each, replace(YES, approved=yes, decided=now, reason="", runs=runs, until=until))
            approved |= {(made.digest, each.coordinator)} if yes else set()
        with suppress(PolicyError):
            approvals.begin(made.digest, coordinator, TERMS, step.to_bytes(16, "big"), now)
        for job, name in product(tasks, ("coordinator", "registry")):
            standing = approvals.standing(job.digest, name, TERMS, now)
            said.append((standing.state, standing.reason))
        for each in waiting_in_order(approvals, now):
            before = approvals.before(each, now)
            said.append((each.job_sha256, each.coordinator, before and before.job_sha256))
    return [*said, len(approvals.all(now))]


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", range(3))
def test_no_answer_changes_when_proposals_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    tasks = [of_name(name, k) for name in ("monthly", "yearly") for k in (2, 3, 4, 5)]
    for name in ("whole", "bounded"):
        (tmp_path / name).mkdir()
    *whole, n_whole = answers(tmp_path / "whole", seed, tasks)
    monkeypatch.setattr(store, "MOST_OVER", 0)
    *bounded, n_bounded = answers(tmp_path / "bounded", seed, tasks)
    assert bounded == whole
    assert n_bounded < n_whole


def test_a_removal_that_is_killed(approvals: Approvals, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proposal goes with its decisions, in the transaction that lets the new decision hold."""
    for k in (2, 3, 4, 5):
        approve_and_run(approvals, of_name("monthly", k), k)
    monkeypatch.setattr(store, "MOST_OVER", 0)
    for statement in range(60):
        with suppress(ConfigError):  # an earlier try may have been decided
            done = killed_at(statement, lambda: decide(approvals))
        removed = kept(approvals).count("monthly") == 2
        assert removed == (state(approvals) == "approved") == done
        with sqlite3.connect(approvals._path) as connection:
            orphans = "SELECT count(*) FROM decisions WHERE proposal NOT IN (SELECT id FROM proposals)"
            assert connection.execute(orphans).fetchone() == (0,)
        connection.close()
        if done:
            break
    else:
        pytest.fail("no process came to its end")
