"""Sealed runs whose parties outside the compute pair know the pair and the coordinator, and nobody else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import coordinator.conduct
from coordinator.run import conduct
from coordinator.simulate import COORDINATOR
from jobs.commitment import COMMITMENT
from jobs.errors import PartyError, Problem
from jobs.links import COMPARED, PASSED
from jobs.release_csv import TABLE
from jobs.signatures import STATEMENT
from party.agreement import CHECKED, KEPT
from party.daemon import Daemon
from party.net.control import Envelope
from party.net.mesh import Dial
from party.net.protocol import OURS, Talked
from party.owner.config import PartyConfig
from party.owner.identity import make_credentials
from party.owner.in_force import Refresh
from party.owner.signing import CERTIFICATE
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.meddling import CUT, Meddler, once
from tests.support.network import (
    GUARD_S,
    MakeDaemon,
    Network,
    processes,
    released,
    report_of,
    sample_network,
    serving,
    write_job,
)
from tests.support.samples import columns, joint_job, single_job

A, B, C, D, E, F = ROSTER = tuple(f"hospital-{letter}" for letter in "abcdef")
LEADER, DEPUTY = B, D
BOTH = f"{B} or {D}"


def fields_of(n: int, **more: Any) -> dict[str, Any]:
    """A sealed job of the first so many, led by the second."""
    parties = {name: {"address": f"127.0.0.1:74{i:02}"} for i, name in enumerate(ROSTER[:n])}
    deputy = DEPUTY if n > 3 else A
    return joint_job(disclosure="sealed", parties=parties, leader=LEADER, deputy=deputy, **more)


def strangers(net: Network, timeouts: Mapping[str, float] | None = None) -> Network:
    """The same network, where parties outside the pair have no certificates of each other."""
    job = net.bundle.job
    pair = {job.leader_name, job.deputy_name}

    def change(fields: dict[str, Any], name: str) -> None:
        unknown = set(net.roster) - pair - {name} if name not in pair else set()
        fields["peers"] = {peer: entry for peer, entry in fields["peers"].items() if peer not in unknown}
        fields["timeouts"] = {"keepalive_s": 1, **(timeouts or {})}

    for name in net.roster:
        net.change(name, lambda fields, name=name: change(fields, name))  # type: ignore[misc]
        for other in set(net.roster) - pair - {name} if name not in pair else ():
            assert other not in net.config(name).peers
    return net


def network_of(folder: Path, n: int, timeouts: Mapping[str, float] | None = None, **more: Any) -> Network:
    return strangers(sample_network(folder / "net", **fields_of(n, **more)), timeouts)


@dataclass
class Counting:
    """Makes daemons, and counts the streams that they open."""

    talked: Talked = OURS
    opened: list[frozenset[str]] = field(default_factory=list)

    def __call__(self, config: PartyConfig, dial: Dial, refresh: Refresh) -> Daemon:
        async def counted(peer: str, address: str) -> Any:
            self.opened.append(frozenset((config.name, peer)))
            return await dial(peer, address)

        return Daemon(config, counted, refresh, talked=self.talked)


def conducted(net: Network, out: Path, daemons: Mapping[str, MakeDaemon] | None = None) -> None:
    async def scenario() -> None:
        async with serving(net, daemons):
            await conduct(net.task, net.coordinator, out)

    run(scenario())


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_the_table_is_that_of_one_holder_over_two_links_each(tmp_path: Path, n: int) -> None:
    net, counting = network_of(tmp_path, n), Counting()
    conducted(net, tmp_path / "out", dict.fromkeys(net.roster, counting))
    bundle = jobs.bundle_of(single_job())
    _, release = jobs.run_single(bundle, jobs.coded(bundle, sample_rows(60)))
    assert released(tmp_path / "out", net.bundle) == jobs.multiset(release)
    pair = {net.bundle.job.leader_name, net.bundle.job.deputy_name}
    assert len(counting.opened) == len(set(counting.opened)) == 2 * (n - 2) + 1
    assert all(link & pair for link in counting.opened)


@pytest.mark.parametrize(
    "more",
    [
        {"deliver": "coordinator"},
        {"score": "added"},
        {"columns": columns(patient={"role": "plain"})},
        {"columns": columns(patient={"role": "plain"}), "deliver": "coordinator"},
    ],
    ids=["coordinator", "added", "rows", "rows to the coordinator"],
)
def test_other_forms_of_sealed_runs_need_no_more(tmp_path: Path, more: dict[str, Any]) -> None:
    net, counting = network_of(tmp_path, 5, **more), Counting()
    conducted(net, tmp_path / "out", dict.fromkeys(net.roster, counting))
    assert len(set(counting.opened)) == 7


def test_with_a_program_that_knows_no_other_way_everybody_speaks_with_everybody(tmp_path: Path) -> None:
    net, counting = sample_network(tmp_path / "net", **fields_of(4)), Counting(Talked(0, 0))
    conducted(
        net, tmp_path / "out", {A: counting, **dict.fromkeys(net.roster[1:], Counting(OURS, counting.opened))}
    )
    assert len(set(counting.opened)) == 6
    assert all(len(each) == 3 for each in report_of(tmp_path / "out")["signatures"]["links"].values())


def test_real_daemons_sign_what_everybody_can_verify(tmp_path: Path) -> None:
    """By the certificates that come with the report; and the coordinator, who has all, by its own."""
    net = network_of(tmp_path, 5)
    job = write_job(tmp_path / "job", fields_of(5))
    with processes(net):
        ran = invoke(
            "coordinator", "run", job, "--out", tmp_path / "out", "--config", net.config_path(COORDINATOR)
        )
        assert ran.code == 0, ran.err
    checked = invoke("coordinator", "verify", job, tmp_path / "out", "--config", net.config_path(COORDINATOR))
    assert (checked.code, checked.err) == (0, "")
    signatures = report_of(tmp_path / "out")["signatures"]
    assert {party: set(links) for party, links in signatures["links"].items()} == {
        A: {B, D},
        B: {A, C, D, E},
        C: {B, D},
        D: {A, B, C, E},
        E: {B, D},
    }
    for party in net.roster:
        (folder,) = net.releases(party)
        assert (folder / TABLE).read_bytes() == (tmp_path / "out" / TABLE).read_bytes()
        kept = invoke("party", "verify", folder, "--config", net.config_path(party))
        assert kept.code == 0, kept.err


def test_the_check_of_a_job_asks_for_no_more_than_the_run(tmp_path: Path) -> None:
    net = network_of(tmp_path, 5)
    job = write_job(tmp_path / "job", fields_of(5))
    for party in (A, B):
        checked = invoke("party", "check", "--config", net.config_path(party), "--job", job, "--offline")
        assert checked.code == 0, checked.err
    net.change(A, lambda fields: fields["peers"].pop(D))
    checked = invoke("party", "check", "--config", net.config_path(A), "--job", job, "--offline")
    assert checked.code == 6
    assert f"no certificate of {D}" in checked.err


def test_a_party_without_a_certificate_of_the_pair_admits_no_job(tmp_path: Path) -> None:
    net = network_of(tmp_path, 5)
    net.change(E, lambda fields: fields["peers"].pop(B))
    problem = failed(net, tmp_path / "out", {})
    assert (problem.error_id, problem.party) == ("identity-unknown", E)


def test_a_certificate_that_is_installed_has_to_be_the_one_that_the_pair_has(tmp_path: Path) -> None:
    """Found before anything of a table leaves."""
    net = network_of(tmp_path, 5)
    other = tmp_path / "other.pem"
    other.write_bytes(make_credentials(C).certificate)
    net.change(A, lambda fields: fields["peers"].update({C: {"certificate": str(other)}}))
    watcher = Meddler(once("", lambda e: [e]))
    problem = failed(net, tmp_path / "out", {A: watcher})
    assert (problem.error_id, problem.named) == ("identity-mismatch", A)
    assert f"another certificate of {C}" in problem.message
    assert not any(envelope.step.startswith(("run/comm", "shares")) for envelope in watcher.seen)


# ---- who passes on what is not so, or nothing


@pytest.fixture
def no_bugs(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(coordinator.conduct, "_GRACE_S", 0.5)
    caplog.set_level(logging.INFO, "party")
    yield
    assert [record for record in caplog.records if getattr(record, "error_id", None) == "bug"] == []


def failed(net: Network, out: Path, daemons: Mapping[str, MakeDaemon]) -> Problem:
    """What a run ends with; no party has anything of it, and all are free for the next."""

    async def scenario() -> Problem:
        async with serving(net, daemons) as servers:
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, out)
            async with asyncio.timeout(GUARD_S):
                while not all(server._daemon.idle for server in servers.values()):
                    await asyncio.sleep(0.02)
            return caught.value.problem

    problem = run(scenario())
    assert not any(net.releases(party) for party in net.roster)
    assert not out.exists()
    return problem


Change = Callable[[Envelope], list[Envelope | str]]
CHANGES: dict[str, Change] = {
    "altered": lambda e: [replace(e, payload=e.payload[:-1] + bytes([e.payload[-1] ^ 1]))],
    "shortened": lambda e: [replace(e, payload=e.payload[:-1])],
    "nothing": lambda e: [replace(e, payload=b"")],
    "cut": lambda e: [CUT],
    "doubled": lambda e: [e, e],
}
PASSED_ON = [f"{step}/{PASSED}" for step in (CERTIFICATE, COMMITMENT, "lkc/earlier", STATEMENT)]


@pytest.mark.usefixtures("no_bugs")
@pytest.mark.parametrize("hub", [LEADER, DEPUTY])
@pytest.mark.parametrize(
    ("step", "how"),
    [
        *((step, "altered") for step in PASSED_ON),
        *((PASSED_ON[1], how) for how in CHANGES if how != "altered"),
    ],
)
def test_one_of_the_pair_passes_on_what_was_not_said(tmp_path: Path, hub: str, step: str, how: str) -> None:
    """To one party alone, which knows that one of the two is not honest; who sends it anything else is named."""
    net = network_of(tmp_path, 5)
    problem = failed(net, tmp_path / "out", {hub: Meddler(once(step, CHANGES[how], to=E))})
    if how == "cut":
        assert (problem.error_id, problem.named in {hub, E}) == ("peer-lost", True)
    elif how == "doubled":
        assert (problem.error_id, problem.named) == ("peer-protocol", hub)
    else:
        assert (problem.error_id, problem.named) == ("peer-protocol", BOTH)


def test_two_envelopes_to_different_parties_are_no_less(tmp_path: Path) -> None:
    """The leader tells all of them the same, and something else than was said."""
    net = network_of(tmp_path, 5)

    async def lie(envelope: Envelope) -> Any:
        yield CHANGES["altered"](envelope)[0] if envelope.step == PASSED_ON[1] else envelope

    problem = failed(net, tmp_path / "out", {LEADER: Meddler(lie)})
    assert (problem.error_id, problem.named) == ("peer-protocol", BOTH)


@pytest.mark.parametrize("hub", [LEADER, DEPUTY])
def test_one_of_the_pair_compares_what_was_not_said(tmp_path: Path, hub: str) -> None:
    net = network_of(tmp_path, 5)
    step = f"{COMMITMENT}/{COMPARED}"
    problem = failed(net, tmp_path / "out", {hub: Meddler(once(step, CHANGES["altered"]))})
    assert (problem.error_id, problem.named) == ("peer-protocol", f"{E} or {hub}")


@pytest.mark.parametrize("step", [COMMITMENT, "lkc/earlier"])
def test_a_party_that_tells_the_pair_different_things_is_named(tmp_path: Path, step: str) -> None:
    """By both, each with the other one: before anything is passed on."""
    net = network_of(tmp_path, 5)

    def other(envelope: Envelope) -> list[Envelope | str]:
        return [replace(envelope, payload=bytes([envelope.payload[0] ^ 1]) + envelope.payload[1:])]

    problem = failed(net, tmp_path / "out", {C: Meddler(once(step, other, to=DEPUTY))})
    assert problem.error_id == "peer-protocol"
    assert problem.named in {f"{C} or {LEADER}", f"{C} or {DEPUTY}"}


@pytest.mark.parametrize(
    ("silent", "step", "to", "named"),
    [
        (C, COMMITMENT, None, {C}),
        (C, STATEMENT, None, {C}),
        (C, COMMITMENT, LEADER, {C}),
        (LEADER, f"{COMMITMENT}/{COMPARED}", None, {LEADER}),
        (DEPUTY, f"{COMMITMENT}/{COMPARED}", None, {DEPUTY}),
        (LEADER, f"{STATEMENT}/{PASSED}", E, {LEADER}),
        (DEPUTY, f"{STATEMENT}/{PASSED}", E, {DEPUTY}),
    ],
)
def test_who_is_silent_is_named_not_who_waits_to_pass_it_on(
    tmp_path: Path, silent: str, step: str, to: str | None, named: set[str]
) -> None:
    net = network_of(tmp_path, 5, {"round_s": 1.5})

    async def silently(envelope: Envelope) -> Any:
        if envelope.step == step and to in (None, envelope.recipient):
            await asyncio.sleep(GUARD_S)
        yield envelope

    problem = failed(net, tmp_path / "out", {silent: Meddler(silently)})
    assert problem.error_id == "peer-timeout"
    assert problem.about in named or problem.party in named or any(name in problem.message for name in named)


# ---- votes


def kept_by(net: Network, out: Path, daemons: Mapping[str, MakeDaemon]) -> set[str]:
    async def scenario() -> None:
        async with serving(net, daemons) as servers:
            with suppress(PartyError):  # which of the two it was, the releases show
                await conduct(net.task, net.coordinator, out)
            async with asyncio.timeout(GUARD_S):
                while not all(server._daemon.idle for server in servers.values()):
                    await asyncio.sleep(0.02)

    run(scenario())
    return {party for party in net.roster if net.releases(party)}


@pytest.mark.parametrize(
    ("who", "step", "to", "how", "all_keep"),
    [
        (C, CHECKED, LEADER, "cut", None),
        (C, CHECKED, LEADER, "altered", None),
        (LEADER, CHECKED, E, "altered", None),
        (LEADER, CHECKED, DEPUTY, "altered", None),
        (LEADER, KEPT, E, "cut", True),
        (DEPUTY, KEPT, E, "nothing", True),
        (C, KEPT, LEADER, "cut", True),
    ],
)
def test_one_broken_link_while_they_vote(
    tmp_path: Path, who: str, step: str, to: str, how: str, all_keep: bool | None
) -> None:
    net = network_of(tmp_path, 4 if E not in (who, to) else 5, {"coordinator_s": 3})
    kept = kept_by(net, tmp_path / "out", {who: Meddler(once(step, CHANGES[how], to=to))})
    assert kept in (set(), set(net.roster))
    assert all_keep is None or bool(kept) == all_keep


def test_a_vote_that_does_not_come_is_named_by_who_waits_for_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Parties that only the pair tells of it wait longer."""
    net = network_of(tmp_path, 5, {"coordinator_s": 1.5})

    async def silently(envelope: Envelope) -> Any:
        if envelope.step == CHECKED:
            await asyncio.sleep(GUARD_S)
        yield envelope

    assert kept_by(net, tmp_path / "out", {C: Meddler(silently)}) == set()
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(said) == len(net.roster)
    assert all(f"that says that {C} checked the release" in each for each in said)
