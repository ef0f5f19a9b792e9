"""The store of proposals and decisions: bounds, terms, and what a process that is killed leaves behind."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.errors import ConfigError, PartyError, PolicyError
from jobs.loading import open_task
from jobs.task import Task
from party.owner import approvals as store
from party.owner.approvals import APPROVALS, DAYS, Approvals, Decision, Terms
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
    found = Approvals(tmp_path / "state")
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
    assert (tmp_path / "state" / APPROVALS).stat().st_mode & 0o777 == 0o600


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
    for statement in range(40):
        done = killed_at(statement, lambda: decide(approvals))
        assert (state(approvals) == "approved") == done
        if done:
            break
    else:
        pytest.fail("no process came to its end")
