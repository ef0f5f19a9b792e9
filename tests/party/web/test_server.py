"""The owner's page beside a real daemon: begins and ends with the daemon, and never ends a job."""

from __future__ import annotations

import asyncio
import builtins
import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError, Exit
from party.cli import serve
from party.web.server import WebServer
from tests.support.commands import invoke
from tests.support.network import Network, call, processes, sample_network
from tests.support.owners_page import ME, Site, with_page


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def test_the_page_lives_with_the_daemon(net: Network) -> None:
    site = Site(net, with_page(net))
    with processes(net, only=[ME]) as running:
        printed = invoke("party", "web", "--config", net.config_path(ME), "--format", "json")
        url = json.loads(printed.out)["url"]
        assert url.startswith(f"{site.url}/sign-in?token=")
        token = url.partition("token=")[2]
        assert token in site.get(f"/sign-in?token={token}").text
        answer = site.ask("POST", "/sign-in", {"token": token})
        site.cookie = answer.headers["set-cookie"].partition(";")[0]
        assert "No job runs." in site.get("/").text
        assert "serve" in site.get("/audit").text
        running.signal(ME, signal.SIGTERM)
        assert running.running[ME].process.wait(30) == 0
        log = running.log(ME)
    assert "signed in to the page" in log
    assert token not in log
    assert site.cookie.partition("=")[2] not in log
    with pytest.raises(ConnectionRefusedError):
        site.get("/")


def test_a_daemon_without_a_page_opens_no_port(net: Network) -> None:
    refused = invoke("party", "web", "--config", net.config_path(ME))
    assert refused.code == 2
    assert "configures no page" in refused.err
    assert "web: {listen: 127.0.0.1:7480}" in refused.err
    assert not (net.config(ME).state_dir / "web.sqlite").exists()


def test_no_link_leads_to_a_page_that_no_daemon_shows(net: Network) -> None:
    """Before the daemon is started; after `web` was added, and before the daemon is started anew."""
    with processes(net, only=[ME]):
        listen = with_page(net)
        ran = invoke("party", "web", "--config", net.config_path(ME), "--format", "json")
        assert (ran.code, ran.problem["error"]) == (Exit.UNREACHABLE, "daemon-not-ready")
        assert ran.problem["message"] == f"no daemon shows a page at {listen} (`web.listen`)"
        assert ran.problem["remedy"] == "restart the daemon: party serve"
    ran = invoke("party", "web", "--config", net.config_path(ME), "--format", "json")
    assert (ran.code, ran.problem["remedy"]) == (Exit.UNREACHABLE, "start the daemon: party serve")
    assert not (net.config(ME).state_dir / "web.sqlite").exists()


def test_a_taken_port_is_an_error_with_a_remedy(net: Network) -> None:
    listen = with_page(net)
    host, port = listen.rsplit(":", 1)
    with socket.create_server((host, int(port))):
        ran = call("serve", "--config", net.config_path(ME), "--format", "json", program="party")
    assert ran.code == 2
    assert ran.problem["error"] == "config-invalid"
    assert f"the owner's page cannot listen on {listen}" in ran.problem["message"]
    assert "web.listen" in ran.problem["remedy"]


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:7480", "192.168.0.7:7480", "hospital-a.example:7480", "[::]:7480"]
)
def test_other_machines_never_reach_the_page(net: Network, listen: str) -> None:
    net.change(ME, lambda fields: fields.update(web={"listen": listen}))
    ran = invoke("party", "web", "--config", net.config_path(ME))
    assert ran.code == 2
    assert f"{listen} is not on this machine alone" in ran.err
    assert "ssh -L 7480:127.0.0.1:7480" in ran.err


def test_the_page_needs_its_packages(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    with_page(net)
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "party.web.server":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError) as caught:
        serve._page(net.config(ME), None)  # type: ignore[arg-type]
    assert caught.value.problem.error_id == "extra-missing"
    assert "the package uvicorn" in caught.value.problem.message
    assert "pip install 'jointcut[web]'" in caught.value.problem.remedy


def test_a_server_that_fails_leaves_the_daemon_alone(
    net: Network, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_page(net)
    config = net.config(ME)
    assert config.web is not None
    listen = config.web.listen

    async def scenario() -> None:
        server = WebServer(config, listen, lambda: config, lambda: None)

        async def fails(_: object) -> None:
            raise OSError("no more files")

        monkeypatch.setattr(server._server, "serve", fails)
        server.start()
        await asyncio.sleep(0.01)
        await server.stop()
        server._socket.close()

    asyncio.run(scenario())
    assert "the owner's page ended: OSError; the daemon goes on" in caplog.text
