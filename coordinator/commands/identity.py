"""`coordinator init | peers | roster | renew`: our identity, and our known peers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from coordinator.arguments import DEFAULT_CONFIG, config_option
from party.cli.arguments import PATH
from party.cli.certificates import renew_command
from party.cli.console import format_option, note, say
from party.cli.peers import peers_group
from party.owner.config import CoordinatorConfig, credentials_of, load_config
from party.owner.identity import fingerprint
from party.owner.peer_files import CERTIFICATE, set_up
from party.owner.roster import make_roster

_TEMPLATE = """\
# Configuration of a Jointcut coordinator. Relative paths are relative to this file.
version: 1
name: {name}
tls:
  certificate: tls/certificate.pem   # send this file to every party, and the fingerprint over a separate channel
  key: tls/key.pem                   # never leaves this machine
peers: {{}}                            # coordinator peers add NAME CERTIFICATE [--address HOST:PORT]
"""


@click.command()
@click.option(
    "--name",
    required=True,
    help="Our name, as parties will know us; no party can know two coordinators with the same name.",
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
        f"  certificate    {folder / CERTIFICATE}  (send the certificate to every party)\n"
        f"  fingerprint    {found}  (tell the fingerprint to every party over a separate channel)",
        {"name": name, "certificate": str(folder / CERTIFICATE), "fingerprint": found},
    )


peers = peers_group(CoordinatorConfig, config_option)
renew = renew_command(CoordinatorConfig, config_option)


@click.group()
def roster() -> None:
    """Give the parties each other's certificates."""


@roster.command()
@config_option
@format_option
def export(config: Path) -> None:
    """Print all our peers, signed, for `party peers add --roster FILE --fingerprint SHA256` at each party."""
    settings = load_config(CoordinatorConfig, config)
    made = make_roster(settings)
    sys.stdout.write(made.text)
    sys.stdout.flush()
    found = fingerprint(credentials_of(settings).certificate)
    note(
        f"roster of {len(made.content.parties)} parties\n"
        f"  fingerprint  {found}  (tell the fingerprint to every party over a separate channel)",
        parties=[party.name for party in made.content.parties],
        fingerprint=found,
    )
