"""The configuration in force: what changes in the files counts from the next job, or no job is taken."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.conduct import Conductor
from coordinator.run import conduct
from jobs.errors import ConfigError, Exit, PartyError, Problem
from jobs.lkc.result import LkcResult
from party.net.client import Calls
from party.owner.config import PartyConfig, credentials_of, load_config, peers_of
from party.owner.identity import Credentials, fingerprint, make_credentials
from party.owner.in_force import STATUS, InForce, Status
from party.owner.peer_files import replace_peer
from party.owner.renewal import renew
from tests.support.by_hand import reached
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.identities import certificate_for, write_credentials
from tests.support.network import Network, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


async def job(net: Network, out: Path) -> None:
    await conduct(net.task, net.coordinator, out)


async def refusal(net: Network, out: Path) -> Problem:
    with pytest.raises(PartyError) as caught:
        await job(net, out)
    assert not out.exists()
    return caught.value.problem


def tighten(net: Network, party: str = B) -> None:
    net.change(party, lambda fields: fields["policy"].update(min_k=50))


def test_a_policy_that_is_tightened_counts_from_the_next_job(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> Problem:
        async with serving(net):
            await job(net, tmp_path / "before")
            tighten(net)
            with caplog.at_level(logging.INFO):
                return await refusal(net, tmp_path / "after")

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("policy-refused", B)
    assert "K must be at least 50" in problem.message
    (said,) = [r.getMessage() for r in caplog.records if "in force" in r.getMessage()]
    assert said.startswith("policy of 20")
    assert said.endswith(" UTC in force")


def test_a_job_that_runs_goes_on_under_what_it_was_admitted_under(net: Network, tmp_path: Path) -> None:
    async def scenario() -> Problem:
        async with serving(net):
            conductor = Conductor(net.task, net.coordinator, lambda party, turn: None)
            await conductor.connect()
            async with conductor:
                await conductor.submit()
                tighten(net)
                await conductor.compute()
                conducted = await conductor.collect()
            assert isinstance(conducted.result, LkcResult)
            return await refusal(net, tmp_path / "next")

    assert run(scenario()).error_id == "policy-refused"


BREAKING: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda fields: fields.update(colour="red"), "unknown key `colour`"),
    (lambda fields: fields.update(listen="127.0.0.1:1"), "restart the daemon: listen changed"),
    (lambda fields: fields.update(state_dir="elsewhere"), "restart the daemon: state_dir changed"),
    (lambda fields: fields.update(timeouts={"keepalive_s": 3}), "restart the daemon: timeouts.keepalive_s changed"),
    (lambda fields: fields["tls"].update(certificate="nowhere.pem"), "nowhere.pem"),
]  # fmt: skip


@pytest.mark.by_lot(1)
@pytest.mark.parametrize(("change", "detail"), BREAKING, ids=[detail[-14:] for _, detail in BREAKING])
def test_what_cannot_be_taken_over_stops_jobs_until_it_can(
    net: Network,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[dict[str, Any]], object],
    detail: str,
) -> None:
    good = net.config_path(B).read_text()

    async def scenario() -> Problem:
        async with serving(net):
            net.change(B, change)
            problem = await refusal(net, tmp_path / "refused")
            net.config_path(B).write_text(good)
            await job(net, tmp_path / "out")
            return problem

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.exit_code) == ("config-changed", B, Exit.FAILED)
    assert detail not in json.dumps(problem.shared())  # the owner's business,
    assert any(detail in r.getMessage() for r in caplog.records)  # in the owner's log


def test_a_peer_that_is_added_is_let_in_without_a_restart(net: Network, tmp_path: Path) -> None:
    entries: dict[str, Any] = {}
    net.change(A, lambda fields: entries.update(coordinator=fields["peers"].pop("coordinator")))

    async def scenario() -> Problem:
        async with serving(net):
            problem = await refusal(net, tmp_path / "refused")
            net.change(A, lambda fields: fields["peers"].update(entries))
            await job(net, tmp_path / "out")
            return problem

    assert (run(scenario()).error_id, len(net.releases(A))) == ("tls-failed", 1)


def test_a_peer_that_is_removed_gets_in_over_no_open_connection(net: Network) -> None:
    async def scenario() -> Problem:
        config = net.coordinator
        calls = Calls(config, credentials_of(config), peers_of(config))
        try:
            async with serving(net, only=[A]):
                await (await reached(calls, A, net.addresses[A])).close()
                net.change(A, lambda fields: fields["peers"].pop("coordinator"))
                with pytest.raises(PartyError) as caught:
                    await reached(calls, A, net.addresses[A])
                return caught.value.problem
        finally:
            await calls.close()

    assert run(scenario()).error_id == "identity-unknown"


def test_an_identity_is_renewed_without_a_restart(net: Network, tmp_path: Path) -> None:
    """Until the peers have the new certificate nobody works with it; then everybody does."""

    async def scenario() -> Problem:
        async with serving(net):
            await job(net, tmp_path / "before")
            made = renew(net.config(B))
            # Everybody else reads the same file here; at home each would have to install the new one.
            old = next(path for path in made.kept if path.name.startswith("certificate"))
            for other in (A, C, "coordinator"):
                net.change(other, lambda fields: fields["peers"][B].update(certificate=f"../{other}/b.pem"))  # noqa: B023
                (net.root / other / "b.pem").write_bytes(old.read_bytes())
            problem = await refusal(net, tmp_path / "between")
            for config in (net.config(A), net.config(C), net.coordinator):
                replace_peer(config, made.certificate, B, made.fingerprint)
            await job(net, tmp_path / "after")
            return problem

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("identity-mismatch", B)


# ---- certificates whose time it is not


def with_certificate(net: Network, at: str, peer: str, days: tuple[float, float]) -> Credentials:
    """Install another certificate of a peer at somebody."""
    made = certificate_for([peer], days=days)
    certificate, _ = write_credentials(net.root / f"{peer}-at-{at}", made)
    net.change(at, lambda fields: fields["peers"][peer].update(certificate=str(certificate)))
    return made


@pytest.mark.some(1)
@pytest.mark.parametrize("days", [(-30, -1), (1, 30)], ids=["expired", "early"])
def test_one_bad_certificate_stops_work_with_that_peer_alone(
    tmp_path: Path, days: tuple[float, float]
) -> None:
    parties = {name: {"address": "127.0.0.1:1"} for name in (A, C)}
    pair = sample_network(tmp_path / "pair", parties=parties, disclosure="sealed")
    for name in (A, C, "coordinator"):
        bad, _ = write_credentials(pair.root / "bad", certificate_for([B], days=days))
        pair.change(name, lambda fields: fields["peers"].update({B: {"certificate": str(bad)}}))  # noqa: B023

    async def scenario() -> None:
        async with serving(pair):
            await job(pair, tmp_path / "out")

    run(scenario())
    assert [len(pair.releases(name)) for name in (A, C)] == [1, 1]


def test_a_job_with_that_peer_is_refused_by_its_name(net: Network, tmp_path: Path) -> None:
    with_certificate(net, A, B, (-30, -1))

    async def scenario() -> tuple[Problem, Problem]:
        async with serving(net):
            at_a_party = await refusal(net, tmp_path / "party")
            with_certificate(net, "coordinator", C, (1, 30))
            return at_a_party, await refusal(net, tmp_path / "coordinator")

    at_a_party, at_the_coordinator = run(scenario())
    for problem, where, peer in ((at_a_party, A, B), (at_the_coordinator, "coordinator", C)):
        assert (problem.error_id, problem.party, problem.exit_code) == ("tls-failed", where, Exit.IDENTITY)
        assert f"the certificate of {peer} is valid from 20" in problem.message
        assert problem.message.count(" UTC") == 3  # with time: from, to, and what the clock says
    assert "at coordinator: " in at_the_coordinator.remedy
    assert f"peers add {C} CERTIFICATE --replace" in at_the_coordinator.remedy
    assert at_a_party.remedy == ""  # advice that comes over the network is not ours


def test_tls_lets_nobody_in_whose_certificate_has_expired(net: Network) -> None:
    """Installed, and known by its fingerprint: its time is over all the same."""
    expired = with_certificate(net, A, "coordinator", (-30, -1))
    config = net.coordinator
    paths = write_credentials(net.root / "expired", expired)
    tls = config.tls.model_copy(update=dict(zip(("certificate", "key"), paths, strict=True)))

    async def scenario() -> Problem:
        calls = Calls(config.model_copy(update={"tls": tls}), expired, peers_of(config))
        try:
            async with serving(net, only=[A]):
                with pytest.raises(PartyError) as caught:
                    await reached(calls, A, net.addresses[A])
                return caught.value.problem
        finally:
            await calls.close()

    assert run(scenario()).error_id == "tls-failed"


def test_our_own_certificate_that_expires_while_we_run_stops_our_jobs(net: Network) -> None:
    """The time of certificates counts in whole seconds."""
    paths = write_credentials(net.root / "short", certificate_for([B], days=(-1, 3 / 86_400)))
    tls = dict(zip(("certificate", "key"), map(str, paths), strict=True))
    net.change(B, lambda fields: fields.update(tls=tls))
    force = InForce(net.config(B), net.config_path(B))
    assert force.refresh() is force.settings
    time.sleep(3.2)
    with pytest.raises(PartyError) as caught:
        force.refresh()
    problem = caught.value.problem
    assert (problem.error_id, problem.exit_code) == ("tls-failed", Exit.IDENTITY)
    assert f"the certificate of {B} is valid from " in problem.message
    assert problem.remedy == f"at {B}: correct the clock if the clock is wrong; otherwise party renew"


# ---- what `party check` knows of a daemon


def daemon_of(net: Network) -> tuple[dict[str, Any] | None, str]:
    """Return what `party check` says of A's daemon."""
    ran = invoke("party", "check", "--config", net.config_path(A), "--format", "json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    (line,) = [line for line in said["lines"] if line.startswith("  daemon ")]
    return said["daemon"], line


def test_check_tells_whether_a_daemon_runs_and_what_it_knows(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]) as servers:
            daemon, line = daemon_of(net)
            assert daemon is not None
            assert (daemon["in_force"], daemon["pid"]) == (True, os.getpid())
            assert "this configuration is in force since 20" in line
            tighten(net, A)
            daemon, line = daemon_of(net)
            assert daemon is not None
            assert (daemon["in_force"], daemon["restart_for"]) == (False, [])
            assert "the new configuration will be in force from the next job" in line
            await servers[A]._refresh()
            daemon, line = daemon_of(net)
            assert daemon is not None
            assert daemon["in_force"]
            net.change(A, lambda fields: fields.update(listen="127.0.0.1:9"))
            daemon, line = daemon_of(net)
            assert daemon is not None
            assert daemon["restart_for"] == ["listen"]
            assert "takes no job: restart the daemon, listen changed" in line

    assert daemon_of(net)[0] is None
    run(scenario())
    assert daemon_of(net) == (None, "  daemon       no daemon runs on this `state_dir`")
    assert not (net.config(A).state_dir / STATUS).exists()


def test_a_status_that_a_killed_daemon_left_is_no_daemon(net: Network) -> None:
    status = Status(net.config(A).state_dir)
    status.hold(InForce(net.config(A), net.config_path(A)).settings)
    assert daemon_of(net)[0] is not None
    status.release()
    assert (net.config(A).state_dir / STATUS).exists()
    assert daemon_of(net)[0] is None


def test_one_daemon_per_state_dir(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]):
            net.change(A, lambda fields: fields.update(listen="127.0.0.1:0"))
            async with serving(net, only=[A]):
                pass

    with pytest.raises(ConfigError) as caught:
        run(scenario())
    assert "a second daemon runs with `state_dir`" in caught.value.problem.message


def test_a_state_dir_that_is_moved_stops_jobs_until_it_is_back(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A new folder would have a new ledger, without the charges of the moved one."""
    state = net.config(B).state_dir

    async def scenario() -> Problem:
        async with serving(net):
            await job(net, tmp_path / "before")
            state.rename(tmp_path / "moved")
            problem = await refusal(net, tmp_path / "refused")
            assert not state.exists()
            (tmp_path / "moved").rename(state)
            await job(net, tmp_path / "after")
            return problem

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("config-changed", B)
    assert str(state) not in json.dumps(problem.shared())
    assert any("is not the folder of this daemon any more" in r.getMessage() for r in caplog.records)


def test_a_daemon_that_stops_leaves_the_status_of_another(net: Network, tmp_path: Path) -> None:
    """The folder was moved, and a second daemon was started on a new one."""
    state, settings = net.config(A).state_dir, InForce(net.config(A), net.config_path(A)).settings
    first, second = Status(state), Status(state)
    first.hold(settings)
    state.rename(tmp_path / "moved")
    second.hold(settings)
    first.remove()
    assert (state / STATUS).is_file()
    second.remove()
    assert not (state / STATUS).exists()


def test_a_state_dir_that_cannot_be_written_is_found_at_the_start(net: Network) -> None:
    (net.root / A / "state").write_text("a file where a folder should be")

    async def scenario() -> None:
        async with serving(net, only=[A]):
            pass

    with pytest.raises(ConfigError) as caught:
        run(scenario())
    assert "cannot be written" in caught.value.problem.message


def test_a_configuration_without_a_file_stays(net: Network) -> None:
    fixed = InForce(net.config(A))
    tighten(net, A)
    assert fixed.refresh() is fixed.settings
    assert fixed.settings.config.policy.min_k == 2


def test_a_certificate_that_is_replaced_in_place_is_noticed(net: Network) -> None:
    """Only the content of a peer's file changes; the configuration does not."""
    force = InForce(net.config(A), net.config_path(A))
    before = force.settings
    assert force.refresh() is before
    made = make_credentials(B)
    before.config.peers[B].certificate.write_bytes(made.certificate)
    assert force.refresh().peers[B].fingerprint == fingerprint(made.certificate)
    assert before.peers[B].fingerprint != fingerprint(made.certificate)


def test_a_key_of_another_certificate_stops_jobs_until_it_is_mended(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the content of the key's file changes: the daemon and `party check` say so, and show no key."""
    force = InForce(net.config(A), net.config_path(A))
    before = force.settings
    key = before.config.tls.key
    good = key.read_bytes()
    key.write_bytes(make_credentials(A).key)
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError) as caught:
        force.refresh()
    problem = caught.value.problem
    assert (problem.error_id, problem.party) == ("config-changed", A)
    assert problem.private == f"{key} does not belong to {before.config.tls.certificate}"
    ran = invoke("party", "check", "--config", net.config_path(A), "--format", "json")
    assert ran.problem["error"] == "tls-failed"
    assert "does not belong to" in ran.problem["message"]
    key.write_bytes(good)
    assert force.refresh() is before
    for secret in (before.digest, *good.decode().splitlines()[1:-1]):
        assert secret not in "".join([caplog.text, repr(before), str(problem), ran.out, ran.err])


def test_a_change_between_reading_and_comparing_is_not_lost(net: Network) -> None:
    """The file changes after it was read and before its digest is taken: it is read again at the next job."""
    stale = net.config(A)
    tighten(net, A)
    force = InForce(stale, net.config_path(A))
    assert force.settings.config.policy.min_k == 2
    assert force.refresh().config.policy.min_k == 50
    assert force.refresh() is force.settings


def test_loading_again_gives_a_whole_configuration(net: Network) -> None:
    force = InForce(net.config(A), net.config_path(A))
    tighten(net, A)
    assert force.latest().config == load_config(PartyConfig, net.config_path(A))
    assert force.settings.config.policy.min_k == 50
