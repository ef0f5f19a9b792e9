"""A certificate that was renewed since makes no genuine release a wrong one."""

from __future__ import annotations

from pathlib import Path

from coordinator.run import conduct
from coordinator.simulate import COORDINATOR
from jobs.errors import Exit
from tests.support.commands import Ran, invoke
from tests.support.duplex import run
from tests.support.network import Network, sample_network, serving, write_job
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


def renewed(net: Network, party: str) -> None:
    """Let a party renew its certificate. In these networks all others read it where it lies."""
    assert invoke("party", "renew", "--config", net.config_path(party)).code == 0


def verified(net: Network, folder: Path, job: Path) -> Ran:
    return invoke("coordinator", "verify", job, folder, "--config", net.config_path(COORDINATOR))


def test_releases_from_before_a_renewal_are_verified(tmp_path: Path) -> None:
    net, out = sample_network(tmp_path / "net"), tmp_path / "out"

    async def released(folder: Path) -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, folder)

    run(released(out))
    job = write_job(tmp_path, joint_job())
    assert "earlier" not in verified(net, out, job).out
    renewed(net, B)
    ran = verified(net, out, job)
    assert ran.code == 0, ran.err
    assert ran.out.count("an earlier certificate") == 1
    for party in PARTIES:  # B itself, too, which has a new one
        own = invoke("party", "verify", net.releases(party)[0], "--config", net.config_path(party))
        assert own.code == 0, own.err
        assert f"{B} (an earlier certificate, installed here until 20" in own.out
    run(released(tmp_path / "again"))  # jobs go on with the new one
    for file in (net.root / B / "tls").glob("certificate.until-*.pem"):
        file.unlink()
    gone = verified(net, out, job)
    assert gone.code == Exit.FAILED
    assert f"a different certificate than the certificate installed for {B}" in gone.err
