"""The URL of a proxy: what is read, and that nobody repeats its password."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest

from jobs.errors import ConfigError
from party.owner.config import PartyConfig, load_config
from party.owner.proxy import Proxy
from tests.support.configs import party_fields
from tests.support.network import yaml_of

SECRET = "kennwort9"


def _config(folder: Path, **changes: object) -> PartyConfig:
    path = folder / "party.yaml"
    path.write_text(yaml_of(party_fields(**changes)))
    return load_config(PartyConfig, path)


@pytest.mark.parametrize(
    ("url", "address", "credentials"),
    [
        ("http://proxy:3128", "proxy:3128", b""),
        ("http://proxy.example:3128/", "proxy.example:3128", b""),
        ("http://[2001:db8::1]:3128", "[2001:db8::1]:3128", b""),
        ("http://me:secret@proxy:3128", "proxy:3128", b"me:secret"),
        ("http://me:@proxy:3128", "proxy:3128", b"me:"),
        ("http://m%20e:p%40%3A%2F%C3%A4@proxy:3128", "proxy:3128", "m e:p@:/ä".encode()),
    ],
)
def test_urls(tmp_path: Path, url: str, address: str, credentials: bytes) -> None:
    proxy = _config(tmp_path, proxy=url).proxy
    assert proxy is not None
    assert (proxy.address, b64decode(proxy.basic)) == (address, credentials)


@pytest.mark.parametrize(
    "url",
    [
        "proxy:3128",
        "http://proxy",
        "https://proxy:3128",
        f"http://me:{SECRET}@proxy",
        f"http://me:{SECRET}/x@proxy:3128",
        f"http://me:{SECRET}@x@proxy:3128",
        f"http://me:{SECRET}@proxy:99999",
        f"http://me:{SECRET}@proxy:3128/path",
        f"http://me%3A:{SECRET}@proxy:3128",
        f"http://me:{SECRET}%0D%0AX@proxy:3128",
        f"http://me:{SECRET} x@proxy:3128",
        f"socks5://me:{SECRET}@proxy:3128",
        ["http://proxy:3128"],
    ],
)
def test_what_is_no_url_of_a_proxy_is_refused_and_not_repeated(tmp_path: Path, url: object) -> None:
    with pytest.raises(ConfigError) as caught:
        _config(tmp_path, proxy=url)
    problem = caught.value.problem
    assert "`proxy`" in problem.message
    assert "write " in problem.message + problem.remedy
    assert SECRET not in repr(problem) + str(caught.value) + repr(caught.value.__cause__)


def test_nothing_of_ours_has_the_password(tmp_path: Path) -> None:
    config = _config(tmp_path, proxy=f"http://me:{SECRET}@proxy:3128")
    assert config.proxy == Proxy("proxy:3128", "bWU6a2VubndvcnQ5")
    for text in (repr(config), str(config), repr(config.proxy), str(config.proxy), config.model_dump_json()):
        assert SECRET not in text
        assert "bWU6a2VubndvcnQ5" not in text


def test_a_peer_at_the_relay_needs_a_relay(tmp_path: Path) -> None:
    peers = {"hospital-b": {"certificate": "b.pem", "address": "relay"}}
    with pytest.raises(ConfigError) as caught:
        _config(tmp_path, peers=peers)
    assert "`peers.hospital-b.address` is relay, and no relay is named" in caught.value.problem.message
    assert "add `relay: {address: HOST:PORT, certificate: FILE}`" in caught.value.problem.message
    config = _config(
        tmp_path, peers=peers, relay={"address": "relay.example:7443", "certificate": "relay.pem"}
    )
    assert config.relay is not None
    assert (config.relay.name, config.relay.certificate) == ("relay", tmp_path / "relay.pem")
