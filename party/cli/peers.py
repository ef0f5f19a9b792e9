"""`peers add`, `peers remove` and `peers list`, the same on either command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from jobs.errors import ConfigError
from party.cli.console import Option, format_option, say
from party.owner.config import NodeConfig, certificate_warnings, installed_peers, load_config
from party.owner.identity import Peer, in_words
from party.owner.peer_files import Added, add_peer, add_roster, remove_peer, replace_peer
from party.owner.roster import Roster, read_roster


def peers_group(model: type[NodeConfig], config_option: Option) -> click.Group:
    """The commands about peers, for a kind of configuration and the option that names its file."""
    group = click.Group("peers", help="Who is known here.")
    for make in (_add_command, _remove_command, _list_command):
        group.add_command(make(model, config_option))
    return group


def _add_command(model: type[NodeConfig], config_option: Option) -> click.Command:
    @click.command("add")
    @click.argument("name", required=False)
    @click.argument("certificate", required=False, type=click.Path(path_type=Path))
    @click.option(
        "--roster",
        type=click.Path(path_type=Path),
        help="In place of a NAME: everybody in a file of `coordinator roster export`; needs --fingerprint.",
    )
    @click.option("--address", help="host:port where we reach it.")
    @click.option("--fingerprint", "expected", help="SHA-256 you were told on another channel.")
    @click.option("--replace", is_flag=True, help="A new certificate of a known peer; needs --fingerprint.")
    @config_option
    @format_option
    def add(
        name: str | None,
        certificate: Path | None,
        roster: Path | None,
        address: str | None,
        expected: str | None,
        replace: bool,
        config: Path,
    ) -> None:
        """Install the CERTIFICATE (PEM) of peer NAME, or a roster's."""
        settings = load_config(model, config)
        if roster is not None:
            if name or replace or address:
                raise ConfigError(
                    "usage", "--roster installs whoever is in it, as it says", remedy="leave the rest out"
                )
            found = read_roster(roster, expected)
            _say_roster(found, add_roster(config, settings, found))
            return
        if name is None or certificate is None:
            raise ConfigError(
                "usage", "say whom to add", remedy="peers add NAME CERTIFICATE, or --roster FILE"
            )
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


def _say_roster(roster: Roster, added: Mapping[str, Added]) -> None:
    known = sorted(roster.members.keys() - added.keys())
    lines = [
        f"{name} is known now  {each.fingerprint}  {roster.members[name].address or '-'}"
        for name, each in added.items()
    ]
    lines += [f"as before: {', '.join(known)}"] if known else []
    lines.append(f"roster of {roster.made_by}, fingerprint {roster.fingerprint}")
    prints = {name: each.fingerprint for name, each in added.items()}
    say(lines, {"added": prints, "known": known, "made_by": roster.made_by, "roster": roster.fingerprint})


def _say_added(name: str, added: Added, expected: str | None) -> None:
    lines = [f"{name} is known now", f"  fingerprint  {added.fingerprint}"]
    if expected is None:
        lines.append("  compare the fingerprint with its owner on another channel before the first job")
    if added.early:
        lines.append("  warning: its time has not come yet; compare the clocks: no job with it until then")
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
