"""`peers add` and `peers list`, the same on either command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from party.config import NodeConfig, load_config, peers_of
from party.console import format_option, say
from party.peer_files import add_peer


def peers_group(model: type[NodeConfig], config_option: Any) -> click.Group:
    """The commands about peers, for a kind of configuration and the option that names its file."""
    group = click.Group("peers", help="Who is known here.")
    group.add_command(_add_command(model, config_option))
    group.add_command(_list_command(model, config_option))
    return group


def _add_command(model: type[NodeConfig], config_option: Any) -> click.Command:
    @click.command("add")
    @click.argument("name")
    @click.argument("certificate", type=click.Path(path_type=Path))
    @click.option("--address", help="host:port where we reach it.")
    @click.option("--fingerprint", "expected", help="SHA-256 you were told on another channel.")
    @config_option
    @format_option
    def add(name: str, certificate: Path, address: str | None, expected: str | None, config: Path) -> None:
        """Install the CERTIFICATE (PEM) of the peer NAME."""
        found = add_peer(config, load_config(model, config), certificate, name, address, expected)
        unchecked = "compare the fingerprint with its owner on another channel before the first job"
        hint = "" if expected else f"\n  {unchecked}"
        say(f"{name} is known now\n  fingerprint  {found}{hint}", {"name": name, "fingerprint": found})

    return add


def _list_command(model: type[NodeConfig], config_option: Any) -> click.Command:
    @click.command("list")
    @config_option
    @format_option
    def list_(config: Path) -> None:
        """Show who is known here."""
        known = peers_of(load_config(model, config)).values()
        lines = [f"{peer.name}  {peer.fingerprint}  {peer.address or '-'}" for peer in known]
        say("\n".join(lines) or "nobody", {"peers": {peer.name: peer.fingerprint for peer in known}})

    return list_
