"""Records that an owner can look up: charges and releases, the reason of a refusal, the origin of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from jobs.errors import Exit, PartyError
from jobs.release.csv import REPORT, TABLE
from jobs.release.sums import SUMS, write_sums
from party.costs import AGAIN
from tests.support import jobs
from tests.support.commands import Ran, invoke
from tests.support.dp_jobs import dp_joint, dp_network
from tests.support.duplex import run
from tests.support.network import Network, network, sample_network, serving, write_job
from tests.support.samples import PARTIES, joint_job
from tests.support.wards import dealt_records, joint_wards_job, movements

A = PARTIES[0]


@pytest.fixture
def net(tmp_path: Path) -> Network:
    made = sample_network(tmp_path / "net")
    made.change(A, lambda fields: fields["policy"].update(max_lkc_releases=1))
    return made


def conducted(net: Network, out: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, out)

    run(scenario())


def party(net: Network, *arguments: str | Path) -> Ran:
    return invoke("party", *arguments, "--config", net.config_path(A))


def checked(net: Network, folder: Path, **job: Any) -> Ran:
    return party(net, "check", "--job", write_job(folder, joint_job(**job)))


def test_check_asks_the_ledger_about_lkc_releases(net: Network, tmp_path: Path) -> None:
    ran = checked(net, tmp_path / "job")
    assert (ran.code, ran.err) == (0, "")
    assert "ledger       LKC releases: 0 charged, left: 1" in ran.out
    assert "connections  not tested" in ran.out
    conducted(net, tmp_path / "out")
    again = checked(net, tmp_path / "job")
    assert again.code == 0
    assert "the result of this job on this table is kept" in again.out
    other = checked(net, tmp_path / "other", name="other")
    assert other.code == Exit.REFUSED
    assert "ledger       LKC releases: 1 charged, left: 0" in other.out
    assert "policy-refused: no further LKC release" in other.out
    assert (
        "to allow the job, change the key of `policy` in the message" in other.err
    )  # said to the owner, who is not told to ask the owner
    assert "ask" not in other.err.rpartition("What to do")[2]


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_check_asks_the_ledger_about_epsilon(tmp_path: Path, partition: str) -> None:
    net = dp_network(tmp_path, jobs.bundle_of(dp_joint(partition)))
    job = write_job(tmp_path / "job", dp_joint(partition))
    fresh = party(net, "check", "--job", job)
    assert fresh.code == 0, fresh.err
    assert "ledger       epsilon 0 spent, left: 1" in fresh.out
    conducted(net, tmp_path / "out")
    again = party(net, "check", "--job", job)
    assert again.code == 0
    assert (
        "the result is kept: if all parties keep the result, a repeated run gives it again and costs nothing"
        in again.out
    )
    other = party(net, "check", "--job", write_job(tmp_path / "other", dp_joint(partition, name="other")))
    assert other.code == Exit.BUDGET
    assert "ledger       epsilon 1 spent, left: 0" in other.out
    assert "budget-exceeded" in other.out


def test_check_of_a_ledger_that_cannot_be_read(net: Network, tmp_path: Path) -> None:
    state = net.config(A).state_dir
    state.mkdir(parents=True)
    (state / "privacy.sqlite").write_bytes(b"no database" * 100)
    ran = checked(net, tmp_path / "job")
    assert ran.code == Exit.BUDGET
    assert str(state / "privacy.sqlite") in ran.out


def test_looking_begins_no_ledger(net: Network, tmp_path: Path) -> None:
    assert checked(net, tmp_path / "job").code == 0
    assert party(net, "budget").code == 0
    assert not net.config(A).state_dir.exists()


def test_what_was_delivered_is_told_from_what_was_only_charged(net: Network, tmp_path: Path) -> None:
    with pytest.raises(PartyError):
        conducted(net, tmp_path / "net" / A)  # a folder that exists: found when the release is written
    said = party(net, "budget").out
    assert "LKC releases: 1 charged, left: 0" in said
    assert "  lkc  charged, not delivered; the result is kept  epsilon 0  sample  " in said
    assert "  released  " not in said
    conducted(net, tmp_path / "out")
    said = party(net, "budget").out
    assert "LKC releases: 1 charged, left: 0" in said
    assert "  lkc  released  epsilon 0  sample  " in said
    fields = json.loads(party(net, "budget", "--format", "json").out)
    (entry,) = fields["releases"]
    (delivery,) = entry["deliveries"]
    assert (entry["state"], entry["means"], delivery["agreed"]) == ("released", "released", True)
    assert delivery["release"] in said
    job = write_job(tmp_path / "job", joint_job())
    release = json.loads(invoke("coordinator", "verify", job, tmp_path / "out", "--format", "json").out)[
        "release"
    ]
    assert release == delivery["release"]


def test_accounts_of_releases_are_shown_to_the_owner(tmp_path: Path) -> None:
    tables = dealt_records(tmp_path, ("north", "south"), movements(60))
    net = network(tmp_path / "net", jobs.bundle_of(joint_wards_job()), tables)

    def shown(*options: str) -> Ran:
        return invoke("party", "accounts", *options, "--config", net.config_path("north"))

    assert shown().out == "north: no account of a release is on record\n"
    conducted(net, tmp_path / "out")
    path = net.account("north")
    lost = json.loads(path.read_text())["records"]["lost"]
    lines = shown().out.splitlines()
    assert lines[0].startswith("wards  (run ")
    assert lines[0].endswith(", asked by coordinator)")
    assert f"  suppressed: {lost['instances']} of {lost['of_instances']} readings, in " in "\n".join(lines)
    assert lines[-1] == f"  file: {path}"
    conducted(net, tmp_path / "again")
    accounts = [
        json.loads(shown("--format", "json", *last).out)["accounts"] for last in ((), ("--last", "1"))
    ]
    assert [len(each) for each in accounts] == [2, 1]
    assert accounts[1] == accounts[0][1:]
    assert accounts[0][0]["records"]["lost"] == lost
    assert "records" not in accounts[1][0]
    assert AGAIN in accounts[1][0]["in_words"]


def test_a_folder_is_compared_with_what_the_party_keeps(net: Network, tmp_path: Path) -> None:
    conducted(net, tmp_path / "out")
    ran = party(net, "verify", tmp_path / "out")
    assert (ran.code, ran.err) == (0, "")
    assert "job sample, files checked here" in ran.out
    (folder,) = net.releases(A)
    assert party(net, "verify", folder).code == 0
    table = tmp_path / "out" / TABLE
    table.write_bytes(table.read_bytes() + b"\n")
    ran = party(net, "verify", tmp_path / "out", "--format", "json")
    assert (ran.code, ran.problem["error"]) == (Exit.FAILED, "verification-failed")
    write_sums(tmp_path / "out", (TABLE, REPORT))  # digests that fit the change
    ran = party(net, "verify", tmp_path / "out", "--format", "json")
    assert (ran.code, ran.problem["error"]) == (Exit.FAILED, "verification-failed")
    assert "keeps no release with the digest" in ran.problem["message"]
    (tmp_path / "out" / SUMS).unlink()
    assert party(net, "verify", tmp_path / "out", "--format", "json").problem["error"] == "file-missing"
