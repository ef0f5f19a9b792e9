"""What daemons write about runs: every reveal of every mode, charges, releases, refusals; and no work without it."""

from __future__ import annotations

import csv
import json
import os
import pwd
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from jobs.errors import PartyError, Problem
from party.owner.audit import FOLDER, Audit, audit_files
from party.owner.audit_check import check, compare, lines_of, read_held
from party.owner.chain import Line
from tests.support import jobs
from tests.support.approving import asking_network
from tests.support.commands import Ran, invoke
from tests.support.dp_jobs import dp_joint, dp_network
from tests.support.duplex import run
from tests.support.network import (
    GUARD_S,
    Network,
    call,
    processes,
    report_of,
    sample_network,
    serving,
    write_job,
)
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


def conducted(net: Network, out: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, out)

    run(scenario())


def failed(net: Network, out: Path) -> Problem:
    with pytest.raises(PartyError) as caught:
        conducted(net, out)
    return caught.value.problem


def lines(net: Network, party: str) -> list[Line]:
    return list(lines_of(net.root / party / "state" / FOLDER))


def kinds(net: Network, party: str) -> list[str]:
    """What the lines are about, reveals side by side once."""
    found = [line.what for line in lines(net, party)]
    return [what for i, what in enumerate(found) if what != "reveal" or found[i - 1] != "reveal"]


def about(net: Network, party: str, what: str) -> list[dict[str, Any]]:
    return [dict(line.fields) for line in lines(net, party) if line.what == what]


def reveals(entries: Any) -> Counter[str]:
    keys = ("name", "shape", "to", "iteration")
    return Counter(json.dumps([entry[key] for key in keys]) for entry in entries)


def test_a_run_from_its_start_to_its_end(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    conducted(net, tmp_path / "out")
    report = report_of(tmp_path / "out")
    for party in PARTIES:
        assert kinds(net, party) == [
            "configuration",
            "start",
            "charge",
            "charge",
            "reveal",
            "release",
            "end",
            "heads",
            "stop",
        ]
        (start,) = about(net, party, "start")
        assert start["job_sha256"] == net.task.digest.hex()
        assert (start["coordinator"], start["parties"]) == ("coordinator", list(PARTIES))
        assert start["mode"] == net.task.mode.name
        assert ["valid", "all"] in start["may_reveal"]
        assert [charge["charged"] for charge in about(net, party, "charge")] == ["question", "release"]
        assert reveals(about(net, party, "reveal")) == reveals(report["reveals"])
        (release,) = about(net, party, "release")
        (delivery,) = net.config(party).ledger.entries()[0].deliveries
        assert (release["sha256"], release["checked_here"]) == (delivery.release, True)
        (end,) = about(net, party, "end")
        assert end["came_to"] == "released"
        of_run = [line for line in lines(net, party) if "run" in line.fields]
        assert {line.fields["run"] for line in of_run} == {end["run"]}
        assert {line.fields["job"] for line in of_run} == {"sample"}


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_runs_of_differential_privacy(tmp_path: Path, partition: str) -> None:
    net = dp_network(tmp_path / "net", jobs.bundle_of(dp_joint(partition)))
    conducted(net, tmp_path / "out")
    first = {party: len(about(net, party, "reveal")) for party in net.roster}
    names = {entry["name"] for entry in report_of(tmp_path / "out")["reveals"]}
    for party in net.roster:
        charges = about(net, party, "charge")
        assert charges[-1]["charged"] == "release" or partition == "vertical"
        assert {"release"} <= {charge["charged"] for charge in charges}
        assert {charge["epsilon"] for charge in charges if charge["charged"] == "release"} == {"1"}
        assert names <= {entry["name"] for entry in about(net, party, "reveal")}
    conducted(net, tmp_path / "again")  # the kept result: nothing new is revealed or charged
    assert {party: len(about(net, party, "reveal")) for party in net.roster} == first


def test_the_ends_of_audits_are_exchanged_and_tell_of_changes(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    conducted(net, tmp_path / "one")
    ends = {party: check(net.root / party / "state" / FOLDER).ends for party in PARTIES}
    for party in PARTIES:
        (heads,) = about(net, party, "heads")
        assert heads["held"] == {}
        others = [other for other in PARTIES if other != party]
        assert heads["heads"] == {other: ends[other][heads["run"]].digest for other in others}
    conducted(net, tmp_path / "two")
    for party in PARTIES:
        run_one = about(net, party, "heads")[0]["run"]
        held = about(net, party, "heads")[1]["held"]
        assert held == dict.fromkeys([p for p in PARTIES if p != party], ends[party][run_one].digest)
        verified = invoke("party", "audit", "verify", "--config", net.config_path(party))
        assert verified.code == 0, verified.err
        assert "2 ends that others told us they hold" in verified.out
    # B writes all of its chain anew, as if the second run had been another one
    shutil.rmtree(net.root / B / "state" / FOLDER)
    Audit(net.root / B / "state").write("configuration")
    told = invoke("party", "audit", "heads", B, "--config", net.config_path(C))
    (tmp_path / "held.json").write_text(told.out)
    with pytest.raises(PartyError, match=f"{C} holds an end of our chain of run"):
        compare(check(net.root / B / "state" / FOLDER), read_held(tmp_path / "held.json", B))
    conducted(net, tmp_path / "three")  # and is told so by the next run
    verified = invoke("party", "audit", "verify", "--config", net.config_path(B))
    assert verified.code == 1
    assert "holds an end of our chain that is not in it" in verified.err
    for party in (A, C):
        assert invoke("party", "audit", "verify", "--config", net.config_path(party)).code == 0


def test_who_is_turned_away_is_noted(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    net.change(B, lambda fields: fields["policy"].update(min_k=50))
    net.change(C, lambda fields: fields["policy"].update(coordinators=["somebody"]))
    failed(net, tmp_path / "out")
    (refusal,) = about(net, C, "refusal")
    assert (refusal["caller"], refusal["error"]) == ("coordinator", "policy-refused")
    assert "job" not in refusal  # not a byte of it was read
    found = about(net, B, "refusal")
    for refusal in found:  # if it came so far before it was cancelled
        assert (refusal["job"], refusal["job_sha256"]) == ("sample", net.task.digest.hex())
    assert about(net, B, "start") == []


def test_owners_commands_and_daemons_write_one_chain(tmp_path: Path) -> None:
    """Over real processes: a proposal, who approved it, a policy that changed, the run; then read as CSV."""
    net, job = asking_network(tmp_path / "net"), write_job(tmp_path / "job", joint_job())
    conf = ("--config", net.config_path("coordinator"))

    def at(party: str, *words: str) -> Ran:
        ran = call(*words, "--config", net.config_path(party), program="party")
        assert ran.code == 0, ran.err
        return ran

    allowed = net.config(A).policy.min_k
    with processes(net) as running:
        net.change(A, lambda fields: fields["policy"].update(min_k=50))
        assert call("propose", job, *conf).code == 4  # A's policy is against it
        net.change(A, lambda fields: fields["policy"].update(min_k=allowed))
        running.signal(A, signal.SIGHUP)
        until(lambda: kinds(net, A).count("configuration") == 3)
        assert call("propose", job, *conf).code == 0
        assert call("propose", job, *conf).code == 0  # it waits already: no line
        for party in PARTIES:
            at(party, "show", "sample")
            at(party, "approve", "sample", "--runs", "1")
        ran = call("run", job, "--out", tmp_path / "out", *conf)
        assert ran.code == 0, ran.err
        until(lambda: all("heads" in kinds(net, party) for party in PARTIES))
    assert kinds(net, A)[:8] == [
        "configuration",
        "configuration",
        "refusal",
        "configuration",
        "proposal",
        "decision",
        "start",
        "charge",
    ]
    assert [fields.get("changed") for fields in about(net, A, "configuration")] == [None] + [
        ["policy.min_k"]
    ] * 2
    (refusal,) = about(net, A, "refusal")
    which = {"job": "sample", "job_sha256": net.task.digest.hex()}
    assert refusal == which | {"caller": "coordinator", "error": "policy-refused", "phase": "propose"}
    for party in PARTIES:
        (proposal,), (decision,) = about(net, party, "proposal"), about(net, party, "decision")
        assert proposal == which | {"coordinator": "coordinator"}
        user = pwd.getpwuid(os.getuid()).pw_name
        assert decision == proposal | {"decided": "approved", "by": user, "runs": 1}
        assert f"lines: {len(lines(net, party))}" in at(party, "audit", "verify").out
    days = [line.at[:10] for line in lines(net, A)]
    rows = list(
        csv.DictReader(at(A, "audit", "export", "--from", days[0], "--to", days[-1]).out.splitlines())
    )
    assert [(row["n"], row["what"]) for row in rows] == [(str(line.n), line.what) for line in lines(net, A)]
    assert {row["job"] for row in rows} == {"", "sample"}
    assert at(A, "audit", "export", "--from", "2999-01-01").out.splitlines() == ["n,at,what,job,run,fields"]


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GUARD_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_failed_run_has_its_end(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net", model={"lkc": {"L": 2, "K": 61, "C": 1}})
    assert failed(net, tmp_path / "out").error_id == "requirement-unmet"
    opened = {party: {entry["name"] for entry in about(net, party, "reveal")} for party in PARTIES}
    for party in PARTIES:
        (end,) = about(net, party, "end")
        assert end["came_to"] in ("requirement-unmet", "cancelled")
        assert about(net, party, "release") == about(net, party, "heads") == []
        assert opened[party] <= {"earlier_run", "root_totals", "root_check"}
    # Who is told by another why the run ended, or is cancelled, may not have come as far as the bit itself.
    assert any("root_check" in names for names in opened.values())


# ---- no line, no work


def failing_at(kind: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From the first line about ``kind`` on, the disk of one party is full; return what it writes till then."""
    written: list[str] = []
    original = Audit._put

    def put(self: Audit, path: Path, text: bytes) -> None:
        if self.folder == state / FOLDER:
            kinds_of_text = [json.loads(line)["what"] for line in text.splitlines()]
            if kind in kinds_of_text or "full" in written:
                written.append("full")
                raise OSError(28, "No space left on device", str(path))
            written.extend(kinds_of_text)
        original(self, path, text)

    monkeypatch.setattr(Audit, "_put", put)
    return written


@pytest.mark.parametrize("kind", ["start", "charge", "reveal", "release"])
def test_a_full_disk_ends_the_job_before_anything_more_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    net = sample_network(tmp_path / "net")
    with monkeypatch.context() as patched:
        written = failing_at(kind, net.root / B / "state", patched)
        problem = failed(net, tmp_path / "out")
        assert "full" in written
    assert (problem.error_id, problem.party) == ("audit-failed", B)
    assert str(net.root) not in problem.message
    assert [net.releases(party) for party in PARTIES] == [[], [], []]
    assert not (tmp_path / "out").exists()
    if kind in ("start", "charge"):
        assert net.config(B).ledger.entries() == []
    conducted(net, tmp_path / "after")
    for party in PARTIES:
        check(net.root / party / "state" / FOLDER)


@pytest.mark.parametrize("kind", ["end", "heads"])
def test_what_was_agreed_on_is_kept_though_the_disk_is_full_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The line `release` is there since before the vote."""
    net = sample_network(tmp_path / "net")
    with monkeypatch.context() as patched:
        failing_at(kind, net.root / B / "state", patched)
        conducted(net, tmp_path / "out")
    assert [len(net.releases(party)) for party in PARTIES] == [1, 1, 1]
    (heads,) = about(net, A, "heads")
    assert (B in heads["heads"]) == (kind == "heads")
    assert len(about(net, B, "release")) == 1


def test_without_an_audit_a_daemon_does_not_start(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    folder = net.root / A / "state" / FOLDER
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("in the way")
    with pytest.raises(PartyError) as caught:
        conducted(net, tmp_path / "out")
    assert caught.value.problem.error_id == "audit-failed"
    folder.unlink()
    conducted(net, tmp_path / "out")
    (path,) = audit_files(folder)
    path.write_bytes(path.read_bytes().replace(b'"start"', b'"STOP"', 1))
    assert failed(net, tmp_path / "none").error_id == "audit-broken"


def test_a_torn_line_is_told_at_the_next_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    net = sample_network(tmp_path / "net")
    conducted(net, tmp_path / "one")
    (path,) = audit_files(net.root / A / "state" / FOLDER)
    path.write_bytes(path.read_bytes()[:-7])
    conducted(net, tmp_path / "two")
    assert "the audit's last line was torn off" in caplog.text
    found = kinds(net, A)
    assert found[found.index("heads") + 1 :][:2] == ["torn", "configuration"]
    assert "a writer was cut off" in invoke("party", "audit", "verify", "--config", net.config_path(A)).out
