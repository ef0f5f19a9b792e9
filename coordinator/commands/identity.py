"""`coordinator init | peers | renew`: who we are, and whom we know."""

from __future__ import annotations

import json
from pathlib import Path

import click

from coordinator.arguments import DEFAULT_CONFIG, PATH, config_option
from jobs.folder import refuse_existing
from party.cli.certificates import renew_command
from party.cli.console import format_option, say
from party.cli.peers import peers_group
from party.owner.config import CoordinatorConfig, load_config
from party.owner.identity import replace_file
from party.owner.peer_files import CERTIFICATE, set_up
from party.owner.roster import made_roster

_TEMPLATE = """\
# Configuration of a Jointcut coordinator. Relative paths are relative to this file.
version: 1
name: {name}
tls:
  certificate: tls/certificate.pem   # send this file to every party, and its fingerprint on another channel
  key: tls/key.pem                   # never leaves this machine
peers: {{}}                            # coordinator peers add NAME CERTIFICATE [--address HOST:PORT]
"""


@click.command()
@click.option(
    "--name", required=True, help="Our name, as parties will know us; no party can know two of one name."
)
@click.option("--dir", "folder", type=PATH, default=Path(), help="Folder to set up.")
@format_option
def init(name: str, folder: Path) -> None:
    """Make an identity and a configuration."""
    text = _TEMPLATE.format(name=json.dumps(name))
    found = set_up(folder, name, folder / DEFAULT_CONFIG, CoordinatorConfig, text)
    say(
        f"{name} is set up in {folder}\n"
        f"  configuration  {folder / DEFAULT_CONFIG}\n"
        f"  certificate    {folder / CERTIFICATE}  (send it to every party)\n"
        f"  fingerprint    {found}  (tell it to every party on another channel)",
        {"name": name, "certificate": str(folder / CERTIFICATE), "fingerprint": found},
    )


@click.group()
def roster() -> None:
    """All peers in one file, for parties to install."""


@roster.command()
@click.argument("file", type=PATH)
@config_option
@format_option
def export(file: Path, config: Path) -> None:
    """Write a new FILE with all peers, signed by us.

    It has their certificates and addresses, and our own certificate.
    """
    refuse_existing(file, "file")
    settings = load_config(CoordinatorConfig, config)
    found, content = made_roster(settings)
    replace_file(file, content)
    members = [*settings.peers, settings.name]
    say(
        [
            f"{file} has {len(members)} members: {', '.join(members)}  (send it to every party)",
            f"  fingerprint    {found}  (tell it to every party on another channel)",
            f"  each of them   party peers add --roster FILE --fingerprint {found}",
        ],
        {"file": str(file), "fingerprint": found, "members": members},
    )


peers = peers_group(CoordinatorConfig, config_option)
renew = renew_command(CoordinatorConfig, config_option)
