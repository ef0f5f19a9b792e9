"""`init` and `peers add`: all or nothing, and a configuration that stays as its owner wrote it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.errors import ConfigError, IdentityError, PartyError
from jobs.file.yaml_text import parse_yaml
from party.owner.config import CoordinatorConfig, load_config
from party.owner.identity import common_name, fingerprint, make_credentials
from party.owner.peer_files import (
    CERTIFICATE,
    KEY,
    add_peer,
    make_identity,
    remove_peer,
    set_up,
    with_peer,
    without_peer,
)
from party.owner.signing import der_of, earlier_certificates

CONFIG = """\
# Ours.
version: 1
name: a
tls:
  certificate: tls/certificate.pem   # public
  key: tls/key.pem
peers: {}                            # nobody yet
timeouts: {round_s: 60}  # patience
"""


def a_folder(folder: Path, text: str = CONFIG) -> Path:
    set_up(folder, "a", folder / "config.yaml", CoordinatorConfig, text)
    return folder / "config.yaml"


def a_certificate(folder: Path, name: str = "b") -> Path:
    path = folder / f"from-{name}.pem"
    path.write_bytes(make_credentials(name).certificate)
    return path


def add(
    config: Path, certificate: Path, name: str = "b", address: str | None = None, expected: str | None = None
) -> str:
    loaded = load_config(CoordinatorConfig, config)
    return add_peer(config, loaded, certificate, name, address, expected).fingerprint


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_an_identity_is_made_once(tmp_path: Path) -> None:
    found = make_identity(tmp_path / "a", "a")
    assert fingerprint((tmp_path / "a" / CERTIFICATE).read_bytes()) == found
    assert common_name((tmp_path / "a" / CERTIFICATE).read_bytes()) == "a"
    assert stat.S_IMODE((tmp_path / "a" / KEY).stat().st_mode) == 0o600
    before = snapshot(tmp_path)
    with pytest.raises(ConfigError) as caught:
        make_identity(tmp_path / "a", "a")
    assert caught.value.problem.error_id == "output-exists"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["", "a b", "../a", ".a", "a\n", "ä"])
def test_names_are_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        make_identity(tmp_path / "x", name)
    assert not (tmp_path / "x").exists()


def test_setting_up_is_all_or_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    with pytest.raises(ConfigError) as caught:
        set_up(tmp_path, "a", config, CoordinatorConfig, CONFIG + "colour: red\n")
    assert caught.value.problem.error_id == "unknown-key"
    assert snapshot(tmp_path) == {}
    config.write_text("mine")
    with pytest.raises(ConfigError) as caught:
        set_up(tmp_path, "a", config, CoordinatorConfig, CONFIG)
    assert caught.value.problem.error_id == "output-exists"
    assert snapshot(tmp_path) == {"config.yaml": b"mine"}


def test_a_peer_is_added(tmp_path: Path) -> None:
    config, certificate = a_folder(tmp_path / "a"), a_certificate(tmp_path)
    own = fingerprint(certificate.read_bytes())
    colons = ":".join(own[i : i + 2] for i in range(0, 64, 2)).upper()
    assert add(config, certificate, address="h:1", expected=colons) == own
    loaded = load_config(CoordinatorConfig, config)
    assert loaded.peers["b"].address == "h:1"
    assert loaded.peers["b"].certificate == tmp_path / "a" / "peers" / "b.pem"
    assert loaded.peers["b"].certificate.read_bytes() == certificate.read_bytes()
    add(config, a_certificate(tmp_path, "c"), "c")
    assert set(load_config(CoordinatorConfig, config).peers) == {"b", "c"}
    text = config.read_text()
    for comment in ("# Ours.", "# public", "# nobody yet", "# patience"):
        assert comment in text


@pytest.mark.parametrize(
    ("how", "error_id"),
    [
        ({"name": "c"}, "identity-mismatch"),
        ({"expected": "00" * 32}, "identity-mismatch"),
        ({"expected": ""}, "identity-mismatch"),
        ({"address": "nowhere"}, "config-invalid"),
        ({"address": 'h:1", x: "'}, "config-invalid"),
    ],
)
def test_what_does_not_fit_changes_nothing(tmp_path: Path, how: dict[str, Any], error_id: str) -> None:
    config, certificate = a_folder(tmp_path / "a"), a_certificate(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(PartyError) as caught:
        add(config, certificate, **how)
    assert caught.value.problem.error_id == error_id
    assert snapshot(tmp_path) == before


def test_a_configuration_behind_a_link_is_changed_where_it_is(tmp_path: Path) -> None:
    """The folder of the link has no certificates, and would get a state of its own."""
    config = a_folder(tmp_path / "real")
    link = tmp_path / "links" / "config.yaml"
    link.parent.mkdir()
    link.symlink_to(config)
    add(link, a_certificate(tmp_path))
    assert link.is_symlink()
    assert sorted(path.name for path in link.parent.iterdir()) == [link.name]
    assert set(load_config(CoordinatorConfig, config).peers) == {"b"}
    remove_peer(link, load_config(CoordinatorConfig, link), "b")
    assert link.is_symlink()
    assert not load_config(CoordinatorConfig, config).peers


def test_a_peer_that_comes_back_with_a_new_key_keeps_its_earlier_certificate(tmp_path: Path) -> None:
    """Releases of the time before verify, and nobody installs the old certificate again by a list."""
    config = a_folder(tmp_path)
    first = a_certificate(tmp_path)
    old = first.read_bytes()
    add(config, first)
    remove_peer(config, load_config(CoordinatorConfig, config), "b")
    add(config, first)  # the same certificate is no earlier one
    assert [path.name for path in (tmp_path / "peers").iterdir()] == ["b.pem"]
    remove_peer(config, load_config(CoordinatorConfig, config), "b")
    add(config, a_certificate(tmp_path))
    loaded = load_config(CoordinatorConfig, config)
    (earlier,) = earlier_certificates(loaded)["b"]
    assert earlier == der_of(old)


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    config, certificate = a_folder(tmp_path / "a"), a_certificate(tmp_path)
    add(config, certificate)
    before = snapshot(tmp_path)
    for name in ("b", "a"):
        with pytest.raises(ConfigError) as caught:
            add(config, a_certificate(tmp_path / "a" / "peers", name), name)
        assert f"{name} is known already" in caught.value.problem.message
        (tmp_path / "a" / "peers" / f"from-{name}.pem").unlink()
    assert snapshot(tmp_path) == before


def test_a_certificate_is_installed_once(tmp_path: Path) -> None:
    """Somebody put b's certificate under another name by hand: it is noticed, whatever the name says."""
    text = CONFIG.replace("peers: {}", "peers: {other: {certificate: ../from-b.pem}}")
    config, certificate = a_folder(tmp_path / "a", text), a_certificate(tmp_path)
    with pytest.raises(IdentityError) as caught:
        add(config, certificate)
    assert "is installed as other already" in caught.value.problem.message


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    config = a_folder(tmp_path / "a")
    (tmp_path / "x.pem").write_text("hello")
    with pytest.raises(IdentityError) as caught:
        add(config, tmp_path / "x.pem")
    assert caught.value.problem.message == "not a PEM certificate"
    with pytest.raises(ConfigError) as missing:
        add(config, tmp_path / "absent.pem")
    assert missing.value.problem.error_id == "file-missing"


TEXTS = [
    "name: a\npeers: {}    # nobody\nz: 1\n",
    "name: a\npeers:\nz: 1\n",
    "name: a\npeers:\n",
    "name: a\npeers: ''\nz: 1\n",
    "name: a\npeers:    # nobody\nz: 1\n",
    "name: a   # us\nz: 1\n",
    "name: a",
    "name: a\npeers: {b: {certificate: b.pem}}   # flow\nz: 1\n",
    "name: a\npeers: {\n  b: {certificate: b.pem},   # inside\n  }\nz: 1\n",
    "name: a\npeers:\n  b:   # first\n    certificate: b.pem\n  # last\nz: 1\n",
    "name: a\npeers:\n      b:\n            certificate: b.pem\nz: 1\n",
    "name: a\npeers:  # all\n  # the first\n  b: {certificate: b.pem}\n  d:\n    certificate: d.pem\n",
    "peers:\n b:\n  certificate: b.pem\nname: a\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_an_entry_is_added_and_everything_else_stays(text: str) -> None:
    before = parse_yaml(text, "before")
    changed = with_peer(text, "c", "peers/c.pem", "[::1]:7")
    after = parse_yaml(changed, "after")
    assert after["peers"].pop("c") == {"certificate": "peers/c.pem", "address": "[::1]:7"}
    assert after["peers"] == (before.get("peers") or {})
    assert {k: v for k, v in after.items() if k != "peers"} == {
        k: v for k, v in before.items() if k != "peers"
    }
    for line in text.splitlines():
        if "#" in line:
            assert line[line.index("#") :] in changed


@pytest.mark.parametrize("text", TEXTS)
def test_entries_stand_in_the_order_in_which_they_were_added(text: str) -> None:
    changed = with_peer(with_peer(text, "c", "c.pem", None), "a2", "a2.pem", "h:1")
    before = list(parse_yaml(text, "before").get("peers") or {})
    assert list(parse_yaml(changed, "after")["peers"]) == [*before, "c", "a2"]


def test_a_comment_behind_peers_stays_behind_it() -> None:
    changed = with_peer("name: a\npeers: {}    # party peers add\nz: 1\n", "c", "c.pem", None)
    assert changed == 'name: a\npeers:       # party peers add\n  c:\n    certificate: "c.pem"\nz: 1\n'


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_added_is_removed_and_everything_else_stays(text: str) -> None:
    two = with_peer(with_peer(text, "c", "c.pem", "[::1]:7"), "d2", "d2.pem", None)
    before = parse_yaml(text, "before")
    for first, second in (("c", "d2"), ("d2", "c")):
        one = without_peer(two, first)
        assert list(parse_yaml(one, "one")["peers"]) == [*(before.get("peers") or {}), second]
        none = without_peer(one, second)
        after = parse_yaml(none, "after")
        assert (after.pop("peers") or {}) == (before.get("peers") or {})
        assert after == {key: value for key, value in before.items() if key != "peers"}
        for line in text.splitlines():
            if "#" in line:
                assert line[line.index("#") :] in none


@pytest.mark.parametrize("text", [text for text in TEXTS if "b.pem" in text])
def test_any_entry_is_removed(text: str) -> None:
    before = parse_yaml(text, "before")["peers"]
    after = parse_yaml(without_peer(text, "b"), "after")["peers"]
    assert after == {name: entry for name, entry in before.items() if name != "b"}


def test_without_an_address_none_is_written() -> None:
    assert yaml.safe_load(with_peer("name: a", "c", "c.pem", None))["peers"] == {
        "c": {"certificate": "c.pem"}
    }
