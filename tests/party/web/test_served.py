"""The owner's page of real daemons, and the command that lets its owner in."""

from __future__ import annotations

import json
import signal
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jobs.errors import ConfigError, Exit
from party.cli.serve import owners_page
from party.owner.audit import FOLDER
from party.owner.audit_check import lines_of
from party.owner.deciding import user
from party.owner.in_force import InForce
from tests.support.approving import approve, asking_network
from tests.support.commands import invoke
from tests.support.loopback import HOST, free_ports
from tests.support.network import Network, call, processes, write_job
from tests.support.pages import Caller
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    """The first party has a page."""
    net = asking_network(tmp_path / "net")
    listen = f"{HOST}:{free_ports([A])[A]}"
    net.change(A, lambda fields: fields.update(web={"listen": listen}))
    return net


def port_of(net: Network) -> int:
    web = net.config(A).web
    assert web is not None
    return int(web.listen.rpartition(":")[2])


def link(net: Network) -> str:
    ran = call("web", "--format", "json", "--config", net.config_path(A), program="party")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["link"]
    assert isinstance(found, str)
    return found


def test_a_job_is_approved_on_the_page_and_runs(net: Network, tmp_path: Path) -> None:
    job, conf = write_job(tmp_path / "job", joint_job()), ("--config", net.config_path("coordinator"))
    with processes(net) as running:
        assert call("propose", job, *conf).code == 0
        for party in (B, C):
            approve(net, party)
        at = urlsplit(link(net))
        assert at.netloc == f"{HOST}:{port_of(net)}"
        caller = Caller(port_of(net))
        token = caller.get(f"{at.path}?{at.query}").value("token")
        assert caller.sign_in(token).status == 303
        page = caller.get("/jobs/1")
        fields = {name: page.value(name) for name in ("form", "revision", "shown")}
        assert caller.post("/jobs/1/approve", {**fields, "runs": "1"}).status == 303
        assert call("run", job, "--out", tmp_path / "out", *conf).code == 0
        (release,) = net.releases(A)
        assert release.name in caller.get("/releases").text
        assert caller.get(f"/releases/{release.name}/report.json").status == 200
        assert "released" in caller.get("/budget").text
        assert "The chain holds." in caller.get("/audit?verify=yes").text
        assert "ended" in caller.get("/jobs").text
        running.signal(A, signal.SIGTERM)
        assert running.running[A].process.wait(30) == 0
        assert token not in running.log(A)
    kinds = {line.what: line.fields for line in lines_of(net.config(A).state_dir / FOLDER)}
    assert kinds["sign-in"]["by"] == kinds["decision"]["by"] == user()


def test_the_command_says_whose_link_it_is_and_needs_a_page(net: Network) -> None:
    ran = invoke("party", "web", "--config", net.config_path(A))
    assert ran.code == 0
    assert f"{user()} signs in here, once" in ran.out
    assert f"http://{HOST}:{port_of(net)}/sign-in?token=" in ran.out
    assert "no daemon runs" in ran.err
    ran = invoke("party", "web", "--config", net.config_path(B))
    assert ran.code == Exit.USAGE
    assert "has no `web`" in ran.err


def test_an_address_that_is_taken_ends_the_start(net: Network) -> None:
    with socket.create_server((HOST, port_of(net))):
        ran = call("serve", "--config", net.config_path(A), program="party")
    assert ran.code == Exit.USAGE
    assert ran.problem["error"] == "config-invalid"
    assert "web.listen" in ran.problem["remedy"]


def test_another_address_needs_a_restart(net: Network) -> None:
    force = InForce(net.config(A), net.config_path(A))
    net.change(A, lambda fields: fields.update(web={"listen": f"{HOST}:1"}))
    with pytest.raises(ConfigError) as caught:
        force.refresh()
    assert "web.listen" in caught.value.problem.private


@pytest.mark.parametrize("module", ["starlette", "uvicorn"])
def test_a_page_that_is_configured_and_not_installed_ends_the_start(
    net: Network, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    for name in [name for name in sys.modules if name.startswith(("party.web.", f"{module}."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as caught:
        owners_page(net.config(A))
    problem = caught.value.problem
    assert (problem.error_id, problem.exit_code) == ("extra-missing", Exit.USAGE)
    assert "jointcut[web]" in problem.remedy
    owners_page(net.config(B))
