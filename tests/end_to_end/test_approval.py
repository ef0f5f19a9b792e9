"""The way of a job from its proposal to its release, with an owner at each party who says yes or no."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import party.approval
import party.owner.approvals
from crypto.rng import SystemRng
from jobs.loading import open_task
from party.owner.approvals import DAYS, Approvals
from party.owner.audit import Audit
from party.owner.identity import make_credentials
from tests.support import jobs
from tests.support.house import House
from tests.support.identities import write_credentials
from tests.support.network import Network, call, command, processes, sample_network, served, write_job
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    """Three parties whose owners want to approve each job, and the job beside them."""
    made = sample_network(tmp_path / "net")
    for name in PARTIES:
        made.change(name, lambda fields: fields["policy"].pop("approval"))
    write_job(tmp_path, joint_job())
    return made


def test_the_way_of_a_job(net: Network) -> None:
    house = House(net)
    with served(net):
        unknown = house.coordinator("status", "--format", "json")
        assert (unknown.code, unknown.problem["error"]) == (4, "approval-waiting")
        assert "coordinator propose" in unknown.problem["remedy"]  # an owner would find nothing to show
        proposed = house.coordinator("propose")
        assert (proposed.code, proposed.err) == (0, "")
        assert [line.strip() for line in proposed.out.splitlines()[1:]] == [
            f"{name}: waits for its owner" for name in PARTIES
        ]
        assert house.coordinator("status").code == 4
        refused = house.run("out")
        assert refused.code == 4
        assert refused.problem["error"] == "approval-waiting"
        assert all(name in refused.problem["message"] for name in PARTIES)

        assert house.owner(A, "approve", house.digest[:8]).code == 0
        assert house.owner(B, "approve", house.digest).code == 0
        assert house.states() == {A: "approved", B: "approved", C: "waiting"}
        refused = house.run("out")
        assert (refused.code, refused.problem["message"]) == (4, f"{C} has not approved the job")
        assert f"party show {house.digest[:12]}" in refused.problem["remedy"]
        assert not (net.root / "out").exists()

        assert house.owner(C, "approve", house.digest[:9].upper()).code == 0
        assert house.coordinator("status").code == 0
        done = house.run("out")
        assert done.code == 0, done.err
        assert (net.root / "out" / "anonymized.csv").is_file()
        # An approval is of one run.
        assert house.states() == dict.fromkeys(PARTIES, "unknown")
        lapsed = "over: the approved runs have begun (1)"
        listed = house.owner(A, "jobs").out
        assert lapsed in listed
        assert "asked for again" not in listed
        for _ in range(2):  # the owner hears once of each question that an approval left open
            assert house.run("again").code == 4
        assert f"{lapsed}; asked for again" in house.owner(A, "jobs").out
        assert [line["event"] for line in house.audit(A)].count("proposal") == 2


def test_a_proposal_reads_no_table_and_counts_no_question(net: Network) -> None:
    house = House(net)
    for name in PARTIES:
        (net.root / f"{name}.csv").unlink()
    with served(net):
        assert house.coordinator("propose").code == 0
        assert house.run("out").code == 4
    for name in PARTIES:
        assert not (net.config(name).state_dir / "privacy.sqlite").exists()


def test_a_denial_tells_its_reason(net: Network) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        assert house.owner(B, "deny", house.digest[:8], "--reason", "ages are too fine").code == 0
        house.owner(A, "approve", house.digest[:8])
        said = house.coordinator("propose", "--format", "json")
        assert said.code == 4
        assert json.loads(said.out)["parties"] == {A: "approved", B: "denied", C: "waiting"}
        assert said.problem["error"] == "approval-denied"
        refused = house.run("out")
        assert refused.problem["error"] == "approval-denied"
        assert refused.problem["message"] == (
            f"{B}: the owner denied the job: ages are too fine; {C} has not approved the job"
        )
        assert "as the owner says" in refused.problem["remedy"]
        house.all_approve("--despite-denial")  # an owner may change his mind
        assert house.run("out").code == 0


def test_runs_are_counted_down(net: Network) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        house.all_approve("--runs", "2")
        assert [house.run(f"out-{i}").code for i in range(3)] == [0, 0, 4]
        assert house.owner(A, "jobs", "--format", "json").code == 0


def test_a_denial_while_a_run_begins_ends_the_run_at_once(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parties have allowed the job, and one owner changes his mind before the table is read."""
    house = House(net)
    real = Approvals.begin

    def late(self: Approvals, *given: Any) -> None:
        if self._path.parent == net.config(B).state_dir:
            (proposal,) = self.all(given[-1])
            assert proposal.decision is not None
            self.decide(proposal, replace(proposal.decision, approved=False, reason="wait"))
        real(self, *given)

    monkeypatch.setattr(Approvals, "begin", late)
    with served(net):
        house.coordinator("propose")
        house.all_approve()
        began = time.monotonic()
        refused = house.run("out")
        assert time.monotonic() - began < 60
    assert refused.problem["error"] == "approval-denied"
    assert refused.problem["party"] == B


def test_an_approval_ends(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        assert house.owner(A, "approve", house.digest[:8], "--until", "2020-01-01").code == 2
        house.all_approve("--until", f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d}")
        assert house.coordinator("status").code == 0
        later(monkeypatch, 4)
        assert house.states() == dict.fromkeys(PARTIES, "unknown")
        assert house.run("out").problem["error"] == "approval-waiting"


def later(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    monkeypatch.setattr(party.approval, "_now", lambda: datetime.now(UTC) + timedelta(days=days))


def test_a_proposal_expires(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        later(monkeypatch, DAYS + 1)
        assert house.states() == dict.fromkeys(PARTIES, "unknown")
        missing = house.owner(A, "approve", house.digest[:8])
        assert missing.code == 2
        assert "no proposal waits" in missing.err


def test_a_changed_certificate_ends_an_approval(net: Network) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        house.all_approve()
        new = make_credentials(C)
        certificate, key = write_credentials(net.root / "renewed", new)
        for name in (A, B, "coordinator"):
            shutil.copy(
                certificate,
                net.config(name).peers[C].certificate
                if name != "coordinator"
                else net.coordinator.peers[C].certificate,
            )
        config = net.config(C)
        shutil.copy(certificate, config.tls.certificate)
        shutil.copy(key, config.tls.key)
        # The renewed party asked nobody about the others, whose certificates are the same.
        assert house.states() == {A: "unknown", B: "unknown", C: "approved"}
        assert f"the certificate of {C} changed" in house.owner(A, "show", house.digest[:8]).out


def test_another_version_of_the_program_ends_an_approval(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        house.all_approve()
        major, minor, *_ = party.owner.approvals.__version__.split(".")
        monkeypatch.setattr(party.owner.approvals, "__version__", f"{major}.{minor}.999")
        assert house.coordinator("status").code == 0
        monkeypatch.setattr(party.owner.approvals, "__version__", f"{major}.{int(minor) + 1}.0")
        assert house.run("out").code == 4
        shown = house.owner(A, "show", house.digest[:8]).out
        assert f"the program changed from version {major}.{minor} to {major}.{int(minor) + 1}" in shown


def test_an_approval_is_of_one_coordinator(net: Network) -> None:
    house = House(net)
    task = net.task
    now = datetime.now(UTC)
    with served(net):
        house.coordinator("propose")
        house.all_approve()
        approvals = Approvals(net.config(A).state_dir)
        (proposal,) = approvals.all(now)
        assert proposal.decision is not None
        assert approvals.standing(task.digest, "registry", proposal.decision.terms, now).state == "unknown"
        approvals.propose(task, "registry", now)
        assert approvals.standing(task.digest, "registry", proposal.decision.terms, now).state == "waiting"
        both = house.owner(A, "show", house.digest[:8])
        assert both.code == 2
        assert "--coordinator" in both.err
        assert house.owner(A, "show", house.digest[:8], "--coordinator", "coordinator").code == 0


def test_two_coordinators_ask_for_the_same_job(net: Network) -> None:
    """Each needs an approval of its own."""
    house, other = House(net), House(net, second_coordinator(net, "registry"))
    with served(net):
        assert house.coordinator("propose").code == other.coordinator("propose").code == 0
        for name in PARTIES:
            assert house.owner(name, "approve", house.digest[:8], "--coordinator", "coordinator").code == 0
        assert other.states() == dict.fromkeys(PARTIES, "waiting")
        assert other.run("other").problem["error"] == "approval-waiting"
        for name in PARTIES:
            assert house.owner(name, "approve", house.digest[:8], "--coordinator", "registry").code == 0
        assert other.run("other").code == 0
        assert house.states() == dict.fromkeys(PARTIES, "approved")
        assert house.run("out").code == 0
        assert house.states() == other.states() == dict.fromkeys(PARTIES, "unknown")


def test_a_denial_is_shown_whoever_asks_again(net: Network, tmp_path: Path) -> None:
    """Another coordinator, or another name: the owner sees the denial, and has to say so to replace it."""
    house, other = House(net), House(net, second_coordinator(net, "registry"))
    with served(net):
        assert house.coordinator("propose").code == other.coordinator("propose").code == 0
        words = ("deny", house.digest[:8], "--coordinator", "coordinator", "--reason", "not our purpose")
        assert house.owner(A, *words).code == 0
        shown = house.owner(A, "show", house.digest[:8], "--coordinator", "registry").out
        assert "WARNING: The same job was denied\n  sample, from coordinator: denied by" in shown
        assert "not our purpose" in shown
        approving = ("approve", house.digest[:8], "--coordinator", "registry")
        refused = house.owner(A, *approving)
        assert refused.code != 0
        assert f"{' '.join(approving)} --despite-denial" in refused.err
        assert house.owner(A, *approving, "--despite-denial").code == 0
        renamed = joint_job(name="another")
        write_job(tmp_path, renamed)
        assert house.coordinator("propose").code == 0
        digest = open_task(jobs.bundle_of(renamed)).digest.hex()
        assert "was denied" not in house.owner(B, "show", digest[:8]).out
        shown = house.owner(A, "show", digest[:8]).out
    assert "WARNING: The same job was denied\n  sample, from coordinator: denied by" in shown
    assert "the name alone" in shown  # as the job that A approved


def second_coordinator(net: Network, name: str) -> str:
    """Let a second coordinator start jobs on a network; return its name."""
    shutil.copytree(net.root / "coordinator", net.root / name)
    certificate, key = write_credentials(net.root / name / "tls", make_credentials(name))
    net.change(
        name, lambda fields: fields.update(name=name, tls={"certificate": str(certificate), "key": str(key)})
    )
    for each in PARTIES:
        net.change(each, lambda fields: fields["peers"].update({name: {"certificate": str(certificate)}}))
        net.change(each, lambda fields: fields["policy"]["coordinators"].append(name))
    return name


def test_a_pinned_job_counts_as_approved(net: Network) -> None:
    house = House(net)
    for name in PARTIES:
        net.change(name, lambda fields: fields["policy"].update(jobs=[house.digest]))
    with served(net):
        assert house.states() == dict.fromkeys(PARTIES, "approved")
        assert house.run("out").code == 0
        assert "no coordinator has proposed a job" in house.owner(A, "jobs").out
        # A proposed job can be read, and a denial counts all the same.
        assert house.coordinator("propose").code == 0
        assert "no decision; the policy asks for none" in house.owner(A, "jobs").out
        assert house.owner(A, "deny", house.digest[:8], "--reason", "no longer").code == 0
        assert house.run("again").problem["error"] == "approval-denied"
        again = house.owner(A, "approve", house.digest[:8], "--despite-denial").out
        assert "replaces: denied by" in again
        assert house.run("again").code == 0


def test_a_denial_is_replaced_by_those_who_know_it(net: Network) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        digest = house.digest[:8]
        assert house.owner(A, "deny", digest, "--reason", "ages are too fine").code == 0
        chosen = ("--coordinator", "coordinator")
        for more, named in (
            ((), digest),
            (chosen, f"{digest} {' '.join(chosen)}"),
            (("--runs", "3"), digest),
        ):
            refused = house.owner(A, "approve", digest, *more)
            assert refused.code == 2
            assert "the job was denied by" in refused.err
            assert "ages are too fine" in refused.err
            assert f"party approve {named} --despite-denial" in refused.err
        assert house.states()[A] == "denied"
        assert "--despite-denial" in house.owner(A, "show", digest).out
        assert house.owner(A, "deny", digest, "--reason", "still too fine").code == 0
        assert house.owner(A, "approve", digest, "--despite-denial").code == 0
        assert house.states()[A] == "approved"
        assert "--despite-denial" not in house.owner(A, "show", digest).out
        assert house.owner(A, "approve", digest, "--runs", "2").code == 0  # more runs of an approved job
        assert house.owner(B, "approve", digest, "--despite-denial").code == 0  # nothing to replace


def test_what_a_policy_refuses_does_not_wait(net: Network) -> None:
    house = House(net)
    net.change(B, lambda fields: fields["policy"].update(min_k=50))
    with served(net):
        said = house.coordinator("propose", "--format", "json")
    assert said.code == 4
    assert json.loads(said.out)["parties"] == {A: "waiting", C: "waiting", B: "policy-refused"}
    assert "K must be at least 50" in said.problem["message"]
    assert Approvals(net.config(B).state_dir).all(datetime.now(UTC)) == []


def test_a_party_that_is_not_there(net: Network) -> None:
    house = House(net)
    net.change("coordinator", lambda fields: fields.update(timeouts={"connect_s": 0.2}))
    with served(net, only=[A, B]):
        said = house.coordinator("propose", "--format", "json")
    assert said.code == 3
    assert json.loads(said.out)["parties"] == {A: "waiting", B: "waiting", C: "peer-unreachable"}


def test_a_name_is_no_hash(net: Network) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
    for words in ("hospitals", "1234567", net.bundle.job.name):
        refused = house.owner(A, "approve", words)
        assert refused.code == 2
        assert "8 digits or more" in refused.err
    assert house.owner(A, "approve", "0" * 8 if not house.digest.startswith("0" * 8) else "1" * 8).code == 2


def test_a_changed_protected_value_is_shown(net: Network, tmp_path: Path) -> None:
    """The trap: the job of the same name protects another value than the approved one."""
    house = House(net)
    with served(net):
        house.coordinator("propose")
        first = house.owner(A, "show", house.digest[:8]).out
        assert "no other job of this name was approved here" in first
        house.all_approve()
        assert house.run("out").code == 0
        trap = joint_job()
        old = trap["columns"]["surgery"]["values"]
        trap["columns"]["surgery"]["values"] = [
            each for each in trap["columns"]["surgery"]["domain"] if each not in old
        ]
        write_job(tmp_path, trap)
        assert house.coordinator("propose").code == 0
        digest = open_task(jobs.bundle_of(trap)).digest.hex()
        shown = house.owner(A, "show", digest[:8]).out
    assert "  surgery: Rare is no longer protected; Heart and Knee are protected now" in shown.splitlines()
    assert shown.splitlines()[-2:] == [
        "WARNING: What differs from the last approved job of this name",
        f"To decide: party approve {digest[:12]}, or party deny {digest[:12]} --reason TEXT",
    ]
    assert "not protected: " + ", ".join(old) in shown


def test_every_protected_value_is_named(net: Network, tmp_path: Path) -> None:
    """Two jobs that swap the thirteenth value have different texts."""
    house, shown = House(net), []
    values = [f"Surgery {k}" for k in range(20)]
    with served(net):
        for protected in (values[:13], [*values[:12], values[13]]):
            fields = joint_job()
            fields["columns"]["surgery"] |= {"domain": values, "values": protected}
            write_job(tmp_path, fields)
            assert house.coordinator("propose").code == 0
            digest = open_task(jobs.bundle_of(fields)).digest.hex()
            lines = house.owner(A, "show", digest[:8]).out.splitlines()
            shown.append([line for line in lines if line.strip().startswith("surgery:")])
    assert shown[0] != shown[1]


def test_a_denial_counts_whatever_the_policy_says(net: Network) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        house.all_approve()
        assert house.owner(B, "deny", house.digest[:8], "--reason", "no").code == 0
        net.change(B, lambda fields: fields["policy"].update(approval="automatic", jobs=[house.digest]))
        assert house.states() == {A: "approved", B: "denied", C: "approved"}
        assert house.run("out").problem["error"] == "approval-denied"


def test_a_removed_peer_hides_no_job(net: Network) -> None:
    house = House(net)
    with served(net):
        house.coordinator("propose")
        house.all_approve()
    net.change(A, lambda fields: fields["peers"].pop(C))
    listed = house.owner(A, "jobs")
    assert (listed.code, f"no certificate of {C}" in listed.out) == (0, True)
    assert house.owner(A, "show", house.digest[:8]).code == 0
    assert house.owner(A, "deny", house.digest[:8], "--reason", "no").code == 0


def test_only_so_many_proposals_wait(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party.owner.approvals, "MOST_WAITING", 2)
    net.config(A).state_dir.mkdir()
    approvals, now = Approvals(net.config(A).state_dir), datetime.now(UTC)
    for k in (2, 3):
        approvals.propose(task_of(k), "coordinator", now)
    with pytest.raises(party.owner.approvals.PolicyError, match="too many proposals of coordinator"):
        approvals.propose(task_of(4), "coordinator", now)
    approvals.propose(task_of(2), "coordinator", now)  # known already
    approvals.propose(task_of(4), "registry", now)  # another coordinator has places of its own
    approvals.propose(task_of(4), "coordinator", now + timedelta(days=DAYS, seconds=1))


def task_of(k: int) -> Any:
    fields = joint_job()
    return open_task(jobs.bundle_of({**fields, "name": f"{fields['name']}-{k}"}))


@pytest.mark.more
def test_daemons_that_are_killed_forget_no_decision(net: Network) -> None:
    """Real daemons, killed after the proposal, after the approval, and in the run, which then counts."""
    house = House(net)
    with processes(net) as daemons:
        assert call("propose", house.job, "--config", net.config_path("coordinator")).code == 0
        for name in PARTIES:
            daemons.signal(name, signal.SIGKILL)
            daemons.restart(name)
            approve = ("approve", house.digest[:8], "--runs", "2", "--config", net.config_path(name))
            assert call(*approve, program="party").code == 0
            daemons.signal(name, signal.SIGKILL)
            daemons.restart(name)
        run = command("run", house.job, "--out", net.root / "out", "--config", net.config_path("coordinator"))
        with subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as coordinator:
            while not all(begun(net, name) for name in PARTIES):
                assert coordinator.poll() is None
            daemons.signal(B, signal.SIGKILL)
            assert coordinator.wait(60) != 0
        daemons.restart(B)
        assert [begun(net, name) for name in PARTIES] == [1, 1, 1]
        for code in (0, 4):
            ran = call(
                "run",
                house.job,
                "--out",
                net.root / f"out-{code}",
                "--config",
                net.config_path("coordinator"),
            )
            assert ran.code == code, ran.err
    assert [begun(net, name) for name in PARTIES] == [2, 2, 2]
    for name in PARTIES:
        audit = Audit(net.config(name).state_dir, SystemRng())
        assert audit.checked().broken == ()
        assert [line.event for line in audit.lines()].count("start") == 2


def begun(net: Network, name: str) -> int:
    """Count the runs that a party has counted."""
    (proposal,) = Approvals(net.config(name).state_dir).all(datetime.now(UTC))
    assert proposal.decision is not None
    return proposal.decision.begun
