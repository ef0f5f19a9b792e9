"""`peers add`, `peers remove` and `peers list`, the same on either command line."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.errors import ConfigError
from party.cli.arguments import PATH
from party.cli.console import Option, format_option, say
from party.owner.config import NodeConfig, certificate_warnings, installed_peers, load_config
from party.owner.identity import Peer, in_words
from party.owner.peer_files import Added, Enrolled, add_peer, add_roster, remove_peer, replace_peer


def peers_group(model: type[NodeConfig], config_option: Option) -> click.Group:
    """Return the commands about peers, for a kind of configuration and the option with its file."""
    group = click.Group("peers", help="Install, remove and list peers.")
    for make in (_add_command, _remove_command, _list_command):
        group.add_command(make(model, config_option))
    return group


def _add_command(model: type[NodeConfig], config_option: Option) -> click.Command:
    @click.command("add")
    @click.argument("name", required=False)
    @click.argument("certificate", type=PATH, required=False)
    @click.option("--address", help="host:port of the peer.")
    @click.option("--fingerprint", "expected", help="SHA-256 that the peer told you over a separate channel.")
    @click.option("--replace", is_flag=True, help="A new certificate of a known peer; needs --fingerprint.")
    @click.option(
        "--roster",
        type=PATH,
        help="Install all peers of a coordinator's roster; --fingerprint is the coordinator's.",
    )
    @config_option
    @format_option
    def add(
        name: str | None,
        certificate: Path | None,
        address: str | None,
        expected: str | None,
        replace: bool,
        roster: Path | None,
        config: Path,
    ) -> None:
        """Install the CERTIFICATE (PEM) of the peer NAME, or a roster."""
        settings = load_config(model, config)
        if roster is not None:
            if name is not None or address is not None or replace:
                raise ConfigError(
                    "usage",
                    "a roster has names and addresses itself",
                    remedy="give --roster and --fingerprint",
                )
            _say_enrolled(add_roster(config, settings, roster, _of_coordinator(expected)))
            return
        if name is None or certificate is None:
            raise ConfigError("usage", "nobody to add", remedy="give NAME and CERTIFICATE, or --roster FILE")
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


def _of_coordinator(expected: str | None) -> str:
    if expected is None:
        raise ConfigError(
            "usage",
            "--roster needs --fingerprint, because a stranger may bring a roster",
            remedy="ask the coordinator for the fingerprint over a separate channel",
        )
    return expected


def _say_enrolled(enrolled: Enrolled) -> None:
    lines, fields = [], {}
    for name, added in enrolled.added.items():
        until, address = in_words(added.until), enrolled.addresses[name]
        lines.append(f"{name} is known now")
        lines.append(f"  fingerprint  {added.fingerprint}")
        lines.append(f"  address      {address or '-'}")
        lines.append(f"  valid until  {until}")
        if added.early:
            lines.append(_EARLY)
        fields[name] = {"fingerprint": added.fingerprint, "address": address, "valid_until": until}
    if enrolled.added:
        lines.append(
            "the coordinator vouches for these certificates: compare the fingerprints of compute pair or leader"
        )
        lines.append("with their owners, too, if the coordinator must not be able to pose as a party")
    if enrolled.removed:
        lines.append(f"not installed, as after `peers remove`: {', '.join(enrolled.removed)}")
        lines.append(
            "  their certificates lie unused in peers/; `peers add NAME CERTIFICATE` installs one again"
        )
    if enrolled.known:
        lines.append(f"known before, with the same certificate: {', '.join(enrolled.known)}")
    for name, address in enrolled.moved.items():
        lines.append(
            f"  the roster has another address of {name}, {address}: the configuration was not changed"
        )
    said = {"added": fields, "known": list(enrolled.known), "other_addresses": dict(enrolled.moved)}
    if enrolled.removed:
        said["removed_before"] = list(enrolled.removed)
    say(lines, said)


_EARLY = "  warning: the certificate is not valid yet: no job until then; compare the clocks"


def _say_added(name: str, added: Added, expected: str | None) -> None:
    lines = [f"{name} is known now", f"  fingerprint  {added.fingerprint}"]
    if expected is None:
        lines.append("  compare the fingerprint with the owner over a separate channel before the first job")
    if added.early:
        lines.append(_EARLY)
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
