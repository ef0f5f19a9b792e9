"""`party init | peers | renew`: who we are, and whom we know."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import click

from jobs.data.by_path import source_of_path
from jobs.database import VARIABLE
from jobs.errors import ConfigError
from party.cli.arguments import DEFAULT_CONFIG, config_option
from party.cli.certificates import renew_command
from party.cli.console import format_option, say
from party.cli.peers import peers_group
from party.owner.config import PartyConfig
from party.owner.peer_files import CERTIFICATE, set_up

_TEMPLATE = """\
# Configuration of a Jointcut party. Relative paths are relative to this file.
version: 1
name: {name}
listen: {listen}            # host:port; loopback until you decide otherwise
data:
  {data}
tls:
  certificate: tls/certificate.pem   # send this file to every peer, and its fingerprint on another channel
  key: tls/key.pem                   # never leaves this machine
peers: {{}}                            # party peers add NAME CERTIFICATE [--address HOST:PORT]
state_dir: state                     # releases delivered to us
policy:                              # what is not listed is refused
  coordinators: []                   # who may start jobs, e.g. [coordinator]
  approval: required                 # each job waits for `party approve`; automatic: what the policy allows runs
  parties: []                        # who may take part in a job with us, e.g. [hospital-b, hospital-c]
  # pairs: [[hospital-b, hospital-c]]  # compute pairs that we accept while we are in neither place; unset: none
  # leaders: [hospital-b]            # who else may lead; unset: any, but none where the leader learns sums
  # jobs: [SHA256]                   # pins: only these jobs, by the hash that `coordinator validate` prints
  columns: {{}}                        # the roles a column may have, e.g. {{age: [qid], surgery: [sensitive]}}
  # min_l: 2                         # smallest L we accept; unset accepts any
  # min_k: 20                        # smallest K we accept; unset accepts no job
  # min_colluders: 1                 # K and C hold for what so many parties leave, too; unset accepts any
  # min_diversity: 2                 # no group of one protected value; 3: nor once one is ruled out; unset: any
  # diversity_by_block: true         # such jobs may say `relinkable: false`: nor once one of the same block is
  # per_person: true                 # a person has several rows: K must count people; unset accepts records
  # methods: [top-down, kd]          # how LKC tables are cut; unset accepts top-down only
  # releases: [rows, anatomy]        # what LKC tables are written as; unset accepts rows only
  # max_c: 0.5                       # largest C we accept; unset accepts no sensitive column
  # protected: {{surgery: [HIV]}}      # values a job must protect; others it may leave free
  # max_epsilon: 1                   # largest epsilon of a DP job; unset accepts none
  # epsilon_budget: 3                # largest sum of epsilon over all DP jobs; unset: max_epsilon
  # max_rows: 1000000                # joint DP: our own bound on the rows of our table; others may know it
  # noise: [joint, each]             # joint DP: unset accepts joint only
  # own_k: 2                         # horizontal LKC: records of ours that a group has, if it has any; unset: 1
  # max_lkc_releases: 2              # LKC releases do not compose; unset: no limit
  # max_questions: 10                # jobs that may read the table without coming to a result, ever
  # secure_sum: [masked, ring]       # disclosure leader: unset accepts masked only
  disclosure: []                     # e.g. [sealed], see docs/security.md
  # match_ids: true                  # vertical jobs: who our people are is matched with other parties
  # max_alignments: 10               # vertical jobs: how many alignments of ids, ever
  # min_common: 20                   # vertical jobs: fewest common records for which classes are compared
  # share_class: true                # vertical jobs: we may give the class of matched people to the others
"""


@click.command()
@click.option("--name", required=True, help="Our name, as job files will use it.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=Path(), help="Folder to set up.")
@click.option("--listen", default="127.0.0.1:7400", show_default=True, help="host:port to listen on.")
@click.option(
    "--data",
    help="Our table, relative to the folder: CSV, Parquet, Arrow, a folder or pattern of these, or (with --table) a "
    "database of DuckDB or SQLite. Default table.csv.",
)
@click.option("--table", help="The table or view in the database; in PostgreSQL as schema.name.")
@click.option(
    "--dsn-env",
    metavar="NAME",
    help="Instead of --data: our table is in PostgreSQL, at the address in this variable of the environment.",
)
@format_option
def init(
    name: str, folder: Path, listen: str, data: str | None, table: str | None, dsn_env: str | None
) -> None:
    """Make an identity and a configuration that allows nothing yet."""
    shown = _source(folder, data, table, dsn_env)
    text = _TEMPLATE.format(name=json.dumps(name), listen=json.dumps(listen), data=shown)
    found = set_up(folder, name, folder / DEFAULT_CONFIG, PartyConfig, text)
    certificate = folder / CERTIFICATE
    say(
        f"{name} is set up in {folder}\n"
        f"  configuration  {folder / DEFAULT_CONFIG}  (the policy allows nothing yet)\n"
        f"  table          {shown}\n"
        f"  certificate    {certificate}  (send it to every peer)\n"
        f"  fingerprint    {found}  (tell it to every peer on another channel)",
        {"name": name, "certificate": str(certificate), "fingerprint": found},
    )


def _source(folder: Path, data: str | None, table: str | None, dsn_env: str | None) -> str:
    """The key of `data` that names our table, as a configuration has it. Raises ConfigError."""
    if dsn_env is not None:
        return _in_postgres(data, table, dsn_env)
    path = "table.csv" if data is None else data
    if _ADDRESS.match(path):
        raise ConfigError("usage", f"--data takes no address of a database. {_POSTGRES}")
    if table is None and Path(path).suffix in _DATABASES:
        raise ConfigError("usage", f"{path} is a database: name the table in it with --table")
    ((kind, found),) = source_of_path(folder / path, table=table).settings().items()
    return _flow(kind, {key: value for key, value in found.items() if key != "delimiter"} | {"path": path})


def _in_postgres(data: str | None, table: str | None, dsn_env: str) -> str:
    if not re.fullmatch(VARIABLE, dsn_env):  # perhaps the address, which no message may repeat
        raise ConfigError("usage", f"--dsn-env takes the name of a variable. {_POSTGRES}")
    if data is not None or table is None:
        raise ConfigError("usage", f"--dsn-env goes with --table, and without --data. {_POSTGRES}")
    return _flow("postgres", {"dsn_env": dsn_env, "table": table})


def _flow(kind: str, fields: Mapping[str, str]) -> str:
    return f"{kind}: {{{', '.join(f'{key}: {json.dumps(value)}' for key, value in fields.items())}}}"


_ADDRESS = re.compile(r"[a-z]+://|.*\bdbname=")
_DATABASES = frozenset({".db", ".ddb", ".duckdb", ".sqlite", ".sqlite3"})
_POSTGRES = (
    "For a table in PostgreSQL: --dsn-env JOINTCUT_DSN --table schema.name, where the variable JOINTCUT_DSN of the "
    "environment has the address"
)

peers = peers_group(PartyConfig, config_option)
renew = renew_command(PartyConfig, config_option)
