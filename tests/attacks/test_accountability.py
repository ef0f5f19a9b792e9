"""Runs that are signed: who told parties different things is named, and a tampered report is found out."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import party.delivery
from coordinator.conduct import Conductor
from coordinator.run import conduct
from jobs.errors import Exit, PartyError, Problem
from jobs.release.commitment import COMMITMENT, OPENINGS, kept_opening
from jobs.release.csv import REPORT, TABLE
from jobs.release.signatures import STATEMENT, Signed, read_signatures, signature_fields
from jobs.release.sums import write_sums
from party.net.control import Envelope
from party.owner.config import credentials_of
from party.owner.identity import Credentials, make_credentials
from party.owner.signing import der_of, sign
from tests.support import jobs
from tests.support.commands import Ran, invoke
from tests.support.dp_jobs import dp_joint, dp_network
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.meddling import Meddler, once
from tests.support.network import Network, report_of, sample_network, serving, write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job

A, B, C = PARTIES


def conducted(net: Network, out: Path, daemons: dict[str, Any] | None = None) -> None:
    async def scenario() -> None:
        async with serving(net, daemons):
            await conduct(net.task, net.coordinator, out)

    run(scenario())


def failed(net: Network, out: Path, daemons: dict[str, Any]) -> Problem:
    with pytest.raises(PartyError) as caught:
        conducted(net, out, daemons)
    assert not any(net.releases(party) for party in PARTIES)
    return caught.value.problem


# ---- during a run


@pytest.mark.some(1)
@pytest.mark.parametrize("disclosure", ["sealed", "leader"])
def test_a_party_that_commits_to_different_tables_is_named(tmp_path: Path, disclosure: str) -> None:
    net = sample_network(tmp_path / "net", disclosure=disclosure)

    def other(envelope: Envelope) -> list[Envelope | str]:
        return [_with(envelope, bytes(32) + envelope.payload[32:])]

    problem = failed(net, tmp_path / "out", {B: Meddler(once(COMMITMENT, other, to=C))})
    assert (problem.error_id, problem.named in {B, C}) == ("peer-protocol", True)  # B itself says it of C
    assert "different commitments of hospital-b" in problem.message


def test_two_ends_of_a_link_that_signed_different_records_are_named(tmp_path: Path) -> None:
    """Nothing that either end publishes is changed on the way: no result, no commitment differs."""
    net = sample_network(tmp_path / "net")

    def other(envelope: Envelope) -> list[Envelope | str]:
        return [_with(envelope, envelope.payload[:32] + bytes(32))]

    problem = failed(net, tmp_path / "out", {B: Meddler(once(COMMITMENT, other, to=C))})
    assert problem.error_id == "peer-protocol"
    assert "signed different records of what hospital-b sent to hospital-c" in problem.message


def test_a_statement_that_is_not_signed_by_its_sender(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")

    def other(envelope: Envelope) -> list[Envelope | str]:
        flipped = bytearray(envelope.payload)
        flipped[20] ^= 1
        return [_with(envelope, bytes(flipped))]

    problem = failed(net, tmp_path / "out", {B: Meddler(once(STATEMENT, other, to=A))})
    assert (problem.error_id, problem.named) == ("identity-mismatch", B)


def _with(envelope: Envelope, payload: bytes) -> Envelope:
    return Envelope(
        envelope.job,
        envelope.run,
        envelope.sender,
        envelope.recipient,
        envelope.sequence,
        envelope.step,
        payload,
        envelope.last,
    )


def test_a_coordinator_that_reports_other_signatures_delivers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = sample_network(tmp_path / "net")

    async def scenario() -> Problem:

        original = Conductor._signatures

        def changed(self: Any, summaries: Any, encoded: bytes) -> dict[str, Any]:
            fields = original(self, summaries, encoded)
            return {**fields, "run": "0" * 32}

        monkeypatch.setattr(Conductor, "_signatures", changed)
        async with serving(net):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, tmp_path / "out")
            return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.phase) == ("result-mismatch", "deliver")
    assert "signatures" in problem.message


@pytest.mark.some(2)
@pytest.mark.parametrize("harm", ["none", "another run", "another key"])
def test_signatures_that_a_party_makes_up_for_the_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    net = sample_network(tmp_path / "net")
    original, strangers = party.delivery.signature_fields, {name: make_credentials(name) for name in PARTIES}

    made: list[dict[str, Any]] = []

    def changed(signed: list[Signed]) -> dict[str, Any]:
        fields = original(signed)
        if harm == "none":
            return {}
        if harm == "another run":
            return {**fields, "run": "0" * 32}
        if not made:
            made.append(original([resigned(each, strangers[each.statement.party]) for each in signed]))
        return made[0]

    monkeypatch.setattr(party.delivery, "signature_fields", changed)  # of all parties: they say the same
    problem = failed(net, tmp_path / "out", {})
    assert problem.error_id == "verification-failed"
    assert not (tmp_path / "out").exists()


def test_a_party_that_tells_more_than_costs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The costs that parties tell stand in the report of all."""
    costs = {"phases": {}, "links": {}, "guarantee": "certified"}
    monkeypatch.setattr(party.delivery, "public_costs", lambda *_: costs)
    problem = failed(sample_network(tmp_path / "net"), tmp_path / "out", {})
    assert (problem.error_id, problem.party in PARTIES) == ("peer-protocol", True)
    assert "costs in an unknown form" in problem.message


def resigned(each: Signed, key: Credentials) -> Signed:
    return Signed(each.statement, sign(key, each.statement.encoded), der_of(key.certificate))


# ---- afterwards


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Network, Path, Path]:
    """A network, its job, and the release of a run."""
    folder = tmp_path_factory.mktemp("signed")
    net = sample_network(folder / "net")
    conducted(net, folder / "out")
    return net, write_job(folder / "job", joint_job()), folder / "out"


def verified(site: tuple[Network, Path, Path], out: Path, *more: str | Path) -> Ran:
    return invoke("coordinator", "verify", site[1], out, *more)


def test_a_report_has_the_signatures_of_all_parties(site: tuple[Network, Path, Path]) -> None:
    net, _, out = site
    report = report_of(out)["signatures"]
    assert report["parties"].keys() == report["commitments"].keys() == set(PARTIES)
    for name in PARTIES:
        installed = base64.b64encode(der_of(credentials_of(net.config(name)).certificate)).decode()
        assert report["parties"][name]["certificate"] == installed
        opening = kept_opening(net.config(name).state_dir / OPENINGS, report["run"])
        assert opening.commitment.hex() == report["commitments"][name]
        assert opening.salt.hex() not in (out / REPORT).read_text()
    config = net.config_path("coordinator")
    with_config, without = verified(site, out, "--config", config), verified(site, out)
    assert with_config.code == without.code == 0
    assert with_config.out.count("as installed here") == 3
    assert without.out.count("not compared: no certificate is installed here") == 3
    assert "signed  " in invoke("party", "verify", out, "--config", net.config_path(A)).out


def tampered(site: tuple[Network, Path, Path], to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of the release with another report, and digests that fit it."""
    shutil.copytree(site[2], to)
    report = json.loads((to / REPORT).read_text())
    change(report)
    (to / REPORT).write_text(json.dumps(report, indent=1))
    write_sums(to, (TABLE, REPORT))
    return to


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "run": lambda f: f.update(run="0" * 32),
    "result": lambda f: f.update(result="0" * 64),
    "commitment": lambda f: f["commitments"].update({B: "0" * 64}),
    "link": lambda f: f["links"][B].update({C: "0" * 64}),
    "swapped": lambda f: f["parties"].update({A: f["parties"][B], B: f["parties"][A]}),
    "signature of another": lambda f: f["parties"][A].update(signature=f["parties"][B]["signature"]),
    "no party": lambda f: f["parties"].pop(C),
    "malformed": lambda f: f["parties"][C].update(certificate="AAAA"),
}


@pytest.mark.parametrize("known", [True, False], ids=["certificates installed", "none installed"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_report_that_was_tampered_with_is_refused(
    site: tuple[Network, Path, Path], tmp_path: Path, change: str, known: bool
) -> None:
    out = tampered(site, tmp_path / "out", lambda report: CHANGES[change](report["signatures"]))
    more = ["--config", site[0].config_path("coordinator")] if known else []
    ran = verified(site, out, *more, "--format", "json")
    assert (ran.code, ran.problem["error"]) == (Exit.FAILED, "verification-failed")


def signed_by_strangers(report: dict[str, Any]) -> None:
    """Everything signed again, with keys that nobody installed."""

    signed = read_signatures(report["signatures"], bytes.fromhex(report["job_sha256"]), PARTIES)
    made = [resigned(each, make_credentials(each.statement.party)) for each in signed]
    report["signatures"] = signature_fields(made)


def test_keys_of_others_are_found_out_where_certificates_are_installed(
    site: tuple[Network, Path, Path], tmp_path: Path
) -> None:
    out = tampered(site, tmp_path / "out", signed_by_strangers)
    config = site[0].config_path("coordinator")
    ran = verified(site, out, "--config", config, "--format", "json")
    assert ran.problem["error"] == "verification-failed"
    assert (
        "signed with a different certificate than the certificate installed for hospital-a"
        in ran.problem["message"]
    )
    alone = verified(site, out)
    assert alone.code == 0
    assert alone.out.count("not compared: no certificate is installed here") == 3


def test_a_joint_report_without_signatures_is_refused(
    site: tuple[Network, Path, Path], tmp_path: Path
) -> None:
    out = tampered(site, tmp_path / "out", lambda report: report.pop("signatures"))
    ran = verified(site, out)
    assert ran.code == Exit.FAILED
    assert "has no signatures" in ran.err


def test_a_table_can_be_shown_to_be_the_one_that_was_committed_to(
    site: tuple[Network, Path, Path], tmp_path: Path
) -> None:
    net, job, out = site
    config = net.config_path(A)
    ran = invoke("party", "opening", job, out, "--config", config)
    assert ran.code == 0, ran.err
    assert "was committed to in run" in ran.out
    table = net.config(A).source.path
    before = table.read_bytes()
    try:
        jobs.write_csv(table, sample_rows(60)[0::3][::-1], COLUMNS)  # the same rows
        assert invoke("party", "opening", job, out, "--config", config).code == 0
        jobs.write_csv(table, sample_rows(60)[0::3][1:], COLUMNS)
        changed = invoke("party", "opening", job, out, "--config", config, "--format", "json")
    finally:
        table.write_bytes(before)
    assert (changed.code, changed.problem["error"]) == (Exit.FAILED, "verification-failed")
    other = tampered(site, tmp_path / "out", lambda r: r["signatures"]["commitments"].update({A: "0" * 64}))
    assert invoke("party", "opening", job, other, "--config", config).code == Exit.FAILED
    other = tampered(site, tmp_path / "again", lambda r: r["signatures"].update(run="0" * 32))
    assert invoke("party", "opening", job, other, "--config", config).code == Exit.FAILED
    other = tampered(site, tmp_path / "result", lambda r: r["signatures"].update(result="0" * 64))
    assert invoke("party", "opening", job, other, "--config", config).code == Exit.FAILED
    other = tampered(site, tmp_path / "job", lambda r: r.update(job_sha256="0" * 64))
    ran = invoke("party", "opening", job, other, "--config", config)
    assert (ran.code, "is about a different job" in ran.err) == (Exit.FAILED, True)


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_dp_runs_are_signed_too(tmp_path: Path, partition: str) -> None:
    net = dp_network(tmp_path, jobs.bundle_of(dp_joint(partition)))
    conducted(net, tmp_path / "out")
    assert report_of(tmp_path / "out")["signatures"]["parties"].keys() == set(net.roster)
    signed = invoke("party", "verify", tmp_path / "out", "--config", net.config_path(net.roster[0]))
    assert f"signed  {', '.join(net.roster)}" in signed.out
