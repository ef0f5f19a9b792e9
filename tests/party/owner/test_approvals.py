"""What is kept of proposals and approvals, and what an approval is good for."""

from __future__ import annotations

import errno
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError, PartyError, PolicyError
from jobs.task import Task
from party.owner import approvals as module
from party.owner.approvals import (
    APPROVALS,
    EXPIRES_S,
    MOST,
    MOST_OF_ONE,
    SKEW_S,
    Approvals,
    Binding,
    Decision,
)
from party.owner.audit import FOLDER
from party.owner.audit_check import lines_of
from tests.support.approving import bound, task_called

DAY = 86_400.0


@dataclass
class Clock:
    now: float = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Approvals:
    return Approvals(tmp_path / "state", clock)


TASK = task_called()


def propose(store: Approvals, task: Task = TASK, coordinator: str = "coordinator") -> Binding:
    binding = bound(task, coordinator)
    store.propose(task, binding)
    return binding


def approve(store: Approvals, binding: Binding, runs: int | None = None, until: float | None = None) -> None:
    proposal = store.found(binding.job, binding.coordinator)
    store.show(proposal, binding)
    store.approve(proposal, binding, Decision("owner", runs, until))


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(PartyError) as caught:
        work()
    return caught.value.problem.error_id


def run_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_a_job_waits_until_it_is_approved(store: Approvals) -> None:
    binding = bound()
    assert store.standing(binding) == ("unknown", "")
    assert refused(lambda: store.check(binding, "a")) == "approval-needed"
    assert store.propose(TASK, binding) == ("waiting", "")
    assert refused(lambda: store.check(binding, "a")) == "approval-needed"
    approve(store, binding)
    store.check(binding, "a")
    assert store.propose(TASK, binding) == ("approved", "")


@pytest.mark.parametrize(
    "other",
    [
        {"job": "0" * 64},
        {"coordinator": "another"},
        {"roster": ("hospital-a", "hospital-b")},
        {"version": "0.2"},
        {"certificates": {**bound().certificates, "hospital-b": "cd" * 32}},
        {"certificates": {**bound().certificates, "coordinator": "cd" * 32}},
    ],
    ids=["job", "coordinator", "roster", "version", "party", "coordinator's certificate"],
)
def test_an_approval_is_for_what_was_approved_alone(store: Approvals, other: dict[str, object]) -> None:
    approve(store, propose(store))
    changed = replace(bound(), **other)  # type: ignore[arg-type]
    assert store.standing(changed)[0] in ("waiting", "unknown")
    assert refused(lambda: store.check(changed, "a")) == "approval-needed"
    assert refused(lambda: store.begin(changed, run_of(1), "a")) == "approval-needed"
    store.check(bound(), "a")


def test_the_owner_reads_what_has_changed(store: Approvals) -> None:
    approve(store, propose(store))
    certificates = {**bound().certificates, "hospital-b": "cd" * 32}
    (kept,) = store.listed()
    assert kept.changed(bound()) == []
    assert kept.changed(replace(bound(), certificates=certificates, version="0.2")) == [
        "the certificate of hospital-b",
        "the version of this program (0.1 then, 0.2 now)",
    ]


def test_runs_are_counted_down_to_none(store: Approvals) -> None:
    binding = propose(store)
    approve(store, binding, runs=2)
    store.begin(binding, run_of(1), "a")
    store.begin(binding, run_of(2), "a")
    assert refused(lambda: store.begin(binding, run_of(3), "a")) == "approval-needed"
    assert store.standing(binding) == ("ended", "")
    assert store.propose(TASK, binding) == ("waiting", "")


def test_a_run_that_is_sent_again_does_not_begin_again(store: Approvals) -> None:
    binding = propose(store)
    approve(store, binding)
    store.begin(binding, run_of(1), "a")
    assert refused(lambda: store.begin(binding, run_of(1), "a")) == "peer-protocol"
    store.begin(binding, run_of(2), "a")


_KILLED = """
import os, sys
from pathlib import Path
from party.owner import approvals
from tests.support.approving import bound
approvals.Approvals(Path(sys.argv[1])).begin(bound(), b"r" * 16, "a")
os.kill(os.getpid(), 9)
"""


def test_a_run_that_is_killed_when_it_was_counted_stays_counted(tmp_path: Path) -> None:
    store = Approvals(tmp_path / "state")
    binding = propose(store)
    approve(store, binding, runs=1)
    done = subprocess.run([sys.executable, "-c", _KILLED, tmp_path / "state"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert refused(lambda: store.begin(binding, run_of(2), "a")) == "approval-needed"


def test_runs_that_begin_at_once_are_not_more_than_were_approved(store: Approvals) -> None:
    binding = propose(store)
    approve(store, binding, runs=3)

    def begun(number: int) -> bool:
        try:
            store.begin(binding, run_of(number), "a")
        except PolicyError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(begun, range(8))) == 3


def test_until_a_date_and_no_clock_that_is_set_back_revives_it(store: Approvals, clock: Clock) -> None:
    binding = propose(store)
    approve(store, binding, until=clock.now + DAY)
    clock.now += DAY
    store.check(binding, "a")
    clock.now += 1
    assert store.standing(binding) == ("ended", "")
    clock.now -= DAY
    assert refused(lambda: store.begin(binding, run_of(1), "a")) == "approval-needed"


def test_a_clock_before_the_approval_is_wrong(store: Approvals, clock: Clock) -> None:
    binding = propose(store)
    approve(store, binding, until=clock.now + DAY)
    clock.now -= SKEW_S + 1
    assert refused(lambda: store.begin(binding, run_of(1), "a")) == "approval-needed"
    clock.now += SKEW_S + 1
    store.begin(binding, run_of(1), "a")


def test_what_nobody_decides_on_expires(store: Approvals, clock: Clock) -> None:
    binding = propose(store)
    clock.now += EXPIRES_S + 1
    assert store.standing(binding) == ("unknown", "")
    propose(store, task_called("another"))
    assert [each.job for each in store.listed()] == ["another"]


def test_a_denial_stays_however_often_the_job_is_proposed(store: Approvals, clock: Clock) -> None:
    binding = propose(store)
    store.deny(store.found("sample"), "no ethics vote", "owner")
    clock.now += EXPIRES_S - 1
    assert store.propose(TASK, binding) == ("denied", "no ethics vote")
    with pytest.raises(PolicyError, match="denied the job: no ethics vote"):
        store.check(binding, "a")
    clock.now += 2
    assert store.propose(TASK, binding) == ("waiting", "")


def test_an_approval_can_be_taken_back(store: Approvals) -> None:
    binding = propose(store)
    approve(store, binding)
    store.deny(store.found("sample"), "no more", "owner")
    assert refused(lambda: store.begin(binding, run_of(1), "a")) == "approval-needed"


def test_only_what_was_shown_as_it_is_now_can_be_approved(store: Approvals) -> None:
    binding = propose(store)
    proposal = store.found("sample")
    assert refused(lambda: store.approve(proposal, binding, Decision("owner"))) == "approval-changed"
    store.show(proposal, binding)
    renewed = replace(binding, certificates={**binding.certificates, "hospital-b": "cd" * 32})
    assert refused(lambda: store.approve(proposal, renewed, Decision("owner"))) == "approval-changed"
    assert store.standing(binding) == ("waiting", "")
    store.approve(proposal, binding, Decision("owner"))
    assert store.standing(binding) == ("approved", "")


def test_of_two_who_decide_at_once_one_is_told_to_look_again(store: Approvals) -> None:
    binding = propose(store)
    seen = store.found("sample")
    store.show(seen, binding)

    def decided(runs: int) -> str:
        try:
            store.approve(seen, binding, Decision("owner", runs))
        except PartyError as error:
            return error.problem.error_id
        return ""

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(decided, (1, 2))) == ["", "approval-changed"]
    assert refused(lambda: store.deny(seen, "no", "another")) == "approval-changed"


def test_proposals_of_one_coordinator_are_bounded_and_leave_room_for_others(store: Approvals) -> None:
    for number in range(MOST_OF_ONE):
        propose(store, task_called(f"job-{number}"))
    assert refused(lambda: propose(store)) == "proposals-full"
    assert store.propose(task_called("job-3"), bound(task_called("job-3"))) == ("waiting", "")
    store.deny(store.found("job-1"), "no", "owner")
    assert refused(lambda: propose(store)) == "proposals-full"
    approve(store, bound(task_called("job-2")))
    propose(store)
    propose(store, coordinator="another")


def test_proposals_of_all_are_bounded(store: Approvals) -> None:
    for number in range(MOST):
        propose(store, coordinator=f"coordinator-{number}")
    assert refused(lambda: propose(store)) == "proposals-full"


def test_proposals_are_bounded_in_bytes(store: Approvals, monkeypatch: pytest.MonkeyPatch) -> None:
    n = len(TASK.bundle.encoded)
    monkeypatch.setattr(module, "BYTES_OF_ONE", n)
    propose(store)
    assert refused(lambda: propose(store, task_called("another"))) == "proposals-full"
    monkeypatch.setattr(module, "BYTES", 2 * n - 1)
    assert refused(lambda: propose(store, coordinator="another")) == "proposals-full"


def test_an_expired_proposal_leaves_its_place(store: Approvals, clock: Clock) -> None:
    for number in range(MOST_OF_ONE):
        propose(store, task_called(f"job-{number}"))
    clock.now += EXPIRES_S + 1
    propose(store)


def test_a_name_that_is_two_jobs_names_none(store: Approvals) -> None:
    propose(store)
    other = propose(store, task_called(model={"lkc": {"L": "1", "K": "2", "C": "1"}}))
    with pytest.raises(ConfigError, match=other.job):
        store.found("sample")
    assert store.found(other.job[:12]).job_sha256 == other.job
    with pytest.raises(ConfigError, match="no proposal"):
        store.found(other.job[:7])


def test_the_job_of_that_name_that_was_approved_last(store: Approvals, clock: Clock) -> None:
    tasks = [task_called(model={"lkc": {"L": "1", "K": str(k), "C": "1"}}) for k in (2, 3, 4)]
    for task in tasks[:2]:
        approve(store, propose(store, task))
        clock.now += DAY
    now = store.found(propose(store, tasks[2]).job)
    before = store.last_approved(now)
    assert before is not None
    assert before.job_sha256 == tasks[1].digest.hex()
    assert store.last_approved(store.found(tasks[1].digest.hex())) == store.found(tasks[0].digest.hex())


def test_the_file_is_its_owners_alone_and_a_broken_one_lets_nothing_run(
    store: Approvals, tmp_path: Path
) -> None:
    binding = propose(store)
    path = tmp_path / "state" / APPROVALS
    assert path.stat().st_mode & 0o777 == 0o600
    approve(store, binding)
    path.write_bytes(b"not a database" * 100)
    assert refused(lambda: store.check(binding, "a")) == "approval-store"


def test_nothing_of_a_decision_is_kept_that_did_not_reach_the_disk(store: Approvals, tmp_path: Path) -> None:
    binding = propose(store)
    approve(store, binding, runs=1)
    with sqlite3.connect(tmp_path / "state" / APPROVALS) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON proposals BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
    connection.close()
    assert refused(lambda: store.begin(binding, run_of(1), "a")) == "approval-store"
    with sqlite3.connect(tmp_path / "state" / APPROVALS) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    connection.close()


def lines(tmp_path: Path) -> list[dict[str, Any]]:
    return [{"what": line.what, **line.fields} for line in lines_of(tmp_path / "state" / FOLDER)]


def test_proposals_and_decisions_are_in_the_audit(store: Approvals, tmp_path: Path) -> None:
    binding = propose(store)
    propose(store)
    approve(store, binding, runs=2, until=2e9)
    store.deny(store.found(binding.job), "not any more", "another")
    which = {"job": "sample", "job_sha256": binding.job, "coordinator": "coordinator"}
    assert lines(tmp_path) == [
        {"what": "proposal", **which},
        {
            "what": "decision",
            **which,
            "decided": "approved",
            "by": "owner",
            "runs": 2,
            "until": "2033-05-18T03:33:20+00:00",
        },
        {"what": "decision", **which, "decided": "denied", "by": "another", "reason": "not any more"},
    ]


def test_what_was_not_shown_is_no_decision_in_the_audit(store: Approvals, tmp_path: Path) -> None:
    binding = propose(store)
    before = lines(tmp_path)
    assert refused(lambda: store.approve(store.found(binding.job), binding, Decision("owner"))) == (
        "approval-changed"
    )
    assert lines(tmp_path) == before


def test_without_its_line_nothing_is_proposed_or_decided(
    store: Approvals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binding = propose(store)
    shown = store.found(binding.job)
    store.show(shown, binding)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr("party.owner.audit.os.write", full)
        other = task_called("another")
        assert refused(lambda: store.propose(other, bound(other))) == "audit-failed"
        assert refused(lambda: store.approve(shown, binding, Decision("owner"))) == "audit-failed"
        assert refused(lambda: store.deny(shown, "no", "owner")) == "audit-failed"
    assert [each.state for each in store.listed()] == ["waiting"]
    store.approve(shown, binding, Decision("owner"))
