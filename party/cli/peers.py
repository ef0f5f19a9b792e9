"""`peers add`, `peers remove` and `peers list`, the same on either command line."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.errors import ConfigError
from party.cli.console import Option, format_option, say
from party.owner.config import NodeConfig, certificate_warnings, installed_peers, load_config
from party.owner.identity import Peer, in_words
from party.owner.peer_files import Added, add_peer, remove_peer, replace_peer


def peers_group(model: type[NodeConfig], config_option: Option) -> click.Group:
    """Return the commands about peers, for a kind of configuration and the option with its file."""
    group = click.Group("peers", help="Install, remove and list peers.")
    for make in (_add_command, _remove_command, _list_command):
        group.add_command(make(model, config_option))
    return group


def _add_command(model: type[NodeConfig], config_option: Option) -> click.Command:
    @click.command("add")
    @click.argument("name")
    @click.argument("certificate", type=click.Path(path_type=Path))
    @click.option("--address", help="host:port of the peer.")
    @click.option("--fingerprint", "expected", help="SHA-256 that the peer told you over a separate channel.")
    @click.option("--replace", is_flag=True, help="A new certificate of a known peer; needs --fingerprint.")
    @config_option
    @format_option
    def add(
        name: str, certificate: Path, address: str | None, expected: str | None, replace: bool, config: Path
    ) -> None:
        """Install the CERTIFICATE (PEM) of the peer NAME."""
        settings = load_config(model, config)
        if not replace:
            _say_added(name, add_peer(config, settings, certificate, name, address, expected), expected)
            return
        if address is not None:
            raise ConfigError(
                "usage",
                "--replace changes the certificate alone",
                remedy=f"write the address of {name} in {config}",
            )
        _say_added(name, replace_peer(settings, certificate, name, expected), expected)

    return add


def _say_added(name: str, added: Added, expected: str | None) -> None:
    lines = [f"{name} is known now", f"  fingerprint  {added.fingerprint}"]
    if expected is None:
        lines.append("  compare the fingerprint with the owner over a separate channel before the first job")
    if added.early:
        lines.append("  warning: the certificate is not valid yet: no job until then; compare the clocks")
    until = in_words(added.until)
    lines.append(f"  valid until  {until}")
    say(lines, {"name": name, "fingerprint": added.fingerprint, "valid_until": until})


def _remove_command(model: type[NodeConfig], config_option: Option) -> click.Command:
    @click.command("remove")
    @click.argument("name")
    @config_option
    @format_option
    def remove(name: str, config: Path) -> None:
        """Forget the peer NAME.

        Nobody with its certificate gets in any more.
        """
        file = remove_peer(config, load_config(model, config), name)
        say(f"{name} is not known any more; {file} is unused", {"name": name, "certificate": str(file)})

    return remove


def _list_command(model: type[NodeConfig], config_option: Option) -> click.Command:
    @click.command("list")
    @config_option
    @format_option
    def list_(config: Path) -> None:
        """Show who is known here, and whose certificate needs a look."""
        settings = load_config(model, config)
        found, warnings = installed_peers(settings), certificate_warnings(settings)
        lines = [
            f"{peer.name}  {peer.fingerprint}  {peer.address or '-'}"
            if isinstance(peer, Peer)
            else f"{name}  -  -"
            for name, peer in found.items()
        ]
        lines = lines or ["nobody"]
        lines += [f"warning: the certificate of {name} {text}" for name, text in warnings.items()]
        fingerprints = {name: peer.fingerprint for name, peer in found.items() if isinstance(peer, Peer)}
        say(lines, {"peers": fingerprints, "warnings": warnings})

    return list_
