"""`party init | peers | renew`: our identity, and our known peers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from party.cli.arguments import DEFAULT_CONFIG, PATH, config_option
from party.cli.certificates import renew_command
from party.cli.console import format_option, note, say
from party.cli.peers import peers_group
from party.owner.config import PartyConfig
from party.owner.peer_files import CERTIFICATE, set_up

_TEMPLATE = """\
# Configuration of a Jointcut party. Relative paths are relative to this file.
version: 1
name: {name}
listen: {listen}            # host:port; loopback until you decide otherwise
data:
  csv: {{path: {data}}}
tls:
  certificate: tls/certificate.pem   # send this file to every peer, and the fingerprint over a separate channel
  key: tls/key.pem                   # never leaves this machine
peers: {{}}                            # party peers add NAME CERTIFICATE [--address HOST:PORT]
state_dir: state                     # releases delivered to us
# on_proposal: [/usr/local/bin/tell, me]  # runs when a job waits, with the job hash on standard input
# web: {{listen: 127.0.0.1:7480}}       # the owner's page on this machine; sign in with `party web`
policy:                              # the policy refuses everything not listed
  coordinators: []                   # may start jobs, e.g. [coordinator]
  parties: []                        # may take part in a job with us, e.g. [hospital-b, hospital-c]
  # pairs: [[hospital-b, hospital-c]]  # compute pairs that we accept without us in the pair; unset: no pair
  # leaders: [hospital-b]            # may lead, besides us; unset: any party, except if the leader learns sums
  # approval: automatic              # each job that the policy allows may run; unset: you approve each job
  # jobs: [SHA256]                   # jobs that count as approved, by the hash that `coordinator validate` prints
  columns: {{}}                        # the roles a column may have, e.g. {{age: [qid], surgery: [sensitive]}}
  # min_l: 2                         # smallest L we accept; unset accepts any
  # min_k: 20                        # smallest K we accept; unset accepts no job
  # min_colluders: 1                 # K and C hold without the rows of so many parties, too; unset accepts any
  # min_diversity: 2                 # no protected value is certain; 3: even after a value is ruled out; unset: any
  # per_person: true                 # a person has several rows: K must count people; unset accepts records
  # methods: [top-down, kd]          # methods of LKC jobs; unset accepts top-down only
  # releases: [rows, anatomy]        # forms of LKC tables; unset accepts rows only
  # max_c: 0.5                       # largest C we accept; unset accepts no sensitive column
  # protected: {{surgery: [HIV]}}      # values that a job must protect
  # max_epsilon: 1                   # largest epsilon of a DP job; unset accepts no job
  # epsilon_budget: 3                # largest sum of epsilon over all DP jobs; unset: max_epsilon
  # max_rows: 1000000                # joint DP: public bound on the rows of our table
  # noise: [joint, each]             # joint DP: unset accepts joint only
  # own_k: 2                         # horizontal LKC: a group has no records of ours or so many, over all releases
  # max_lkc_releases: 1              # LKC releases of the data set, ever; releases do not compose
  # max_questions: 10                # jobs that may read the table without coming to a result, ever
  # secure_sum: [masked, ring]       # disclosure leader: unset accepts masked only
  disclosure: []                     # e.g. [sealed], see docs/security.md
  # match_ids: true                  # vertical jobs: our ids are matched with the ids of the remaining parties
  # max_alignments: 10               # vertical jobs: how many alignments of ids, ever
  # max_peer_ids: 5000               # vertical jobs: ids that each peer may enter; unset: 10 times ours, or 1000
  # min_common: 20                   # vertical jobs: fewest common records for which classes are compared
  # share_class: true                # vertical jobs: we may give the class of matched people to the remaining parties
"""


@click.command()
@click.option("--name", required=True, help="Our name, as job files will use it.")
@click.option("--dir", "folder", type=PATH, default=Path(), help="Folder to set up.")
@click.option("--listen", default="127.0.0.1:7400", show_default=True, help="host:port to listen on.")
@click.option("--data", show_default="table.csv", help="Our table, relative to the folder.")
@format_option
def init(name: str, folder: Path, listen: str, data: str | None) -> None:
    """Make an identity and a configuration that allows nothing."""
    table = json.dumps("table.csv" if data is None else data)
    text = _TEMPLATE.format(name=json.dumps(name), listen=json.dumps(listen), data=table)
    found = set_up(folder, name, folder / DEFAULT_CONFIG, PartyConfig, text)
    certificate = folder / CERTIFICATE
    say(
        f"{name} is set up in {folder}\n"
        f"  configuration  {folder / DEFAULT_CONFIG}  (the policy allows nothing yet)\n"
        f"  certificate    {certificate}  (send the certificate to every peer)\n"
        f"  fingerprint    {found}  (tell the fingerprint to every peer over a separate channel)",
        {"name": name, "certificate": str(certificate), "fingerprint": found},
    )
    if data is not None and not (folder / data).exists():
        note(_missing(folder, data), missing=str(folder / data))


def _missing(folder: Path, data: str) -> str:
    """Return the note that the table is not where the new configuration looks for it."""
    here = os.path.relpath(data, folder.resolve())
    cure = f"; the file {data} of this folder is {here} there" if Path(data).exists() else ""
    return (
        f"{folder / data} is not there yet: `data` in {folder / DEFAULT_CONFIG} says {data}, and a path there begins "
        f"at {folder}{cure}"
    )


peers = peers_group(PartyConfig, config_option)
renew = renew_command(PartyConfig, config_option)
