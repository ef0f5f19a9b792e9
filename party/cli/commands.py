"""`party`: the command line of a data holder."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from anonymize.errors import AnonymizeError
from jobs.description import description_fields, description_lines
from jobs.errors import PartyError, PolicyError, Problem, problem_of
from jobs.folder import sweep
from jobs.loading import load_task
from jobs.objections import check_policy
from jobs.task import Task
from jobs.version import __version__
from party.cli.certificates import renew_command, warn_of_certificates
from party.cli.console import format_option, json_unless_watched, run_command, say, set_up_logs
from party.cli.peers import peers_group
from party.cli.records import (
    DEFAULT_CONFIG,
    accounts_command,
    budget_command,
    check_ledger,
    config_option,
    opening_command,
    problems_command,
    verify_command,
)
from party.daemon import Daemon
from party.decoding import READER
from party.net.server import PartyServer
from party.net.streams import raise_file_limit
from party.owner.accounts import RELEASES, give_up
from party.owner.config import (
    PartyConfig,
    certificate_warnings,
    credentials_of,
    load_config,
    peers_of,
    usable_peer,
)
from party.owner.identity import fingerprint
from party.owner.in_force import running
from party.owner.peer_files import CERTIFICATE, set_up

log = logging.getLogger("party")

_TEMPLATE = """\
# Configuration of a Jointcut party. Relative paths are relative to this file.
version: 1
name: {name}
listen: {listen}            # host:port; loopback until you decide otherwise
data:
  csv: {{path: {data}}}
tls:
  certificate: tls/certificate.pem   # send this file to every peer, and its fingerprint on another channel
  key: tls/key.pem                   # never leaves this machine
peers: {{}}                            # party peers add NAME CERTIFICATE [--address HOST:PORT]
state_dir: state                     # releases delivered to us
policy:                              # what is not listed is refused
  coordinators: []                   # who may start jobs, e.g. [coordinator]
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


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def app() -> None:
    """Keep a table, and take part in joint anonymization.

    Nothing leaves it that the policy in the configuration does not allow.
    """


@app.command()
@click.option("--name", required=True, help="Our name, as job files will use it.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=Path(), help="Folder to set up.")
@click.option("--listen", default="127.0.0.1:7400", show_default=True, help="host:port to listen on.")
@click.option("--data", default="table.csv", show_default=True, help="Our table, relative to the folder.")
@format_option
def init(name: str, folder: Path, listen: str, data: str) -> None:
    """Make an identity and a configuration that allows nothing yet."""
    text = _TEMPLATE.format(name=json.dumps(name), listen=json.dumps(listen), data=json.dumps(data))
    found = set_up(folder, name, folder / DEFAULT_CONFIG, PartyConfig, text)
    certificate = folder / CERTIFICATE
    say(
        f"{name} is set up in {folder}\n"
        f"  configuration  {folder / DEFAULT_CONFIG}  (the policy allows nothing yet)\n"
        f"  certificate    {certificate}  (send it to every peer)\n"
        f"  fingerprint    {found}  (tell it to every peer on another channel)",
        {"name": name, "certificate": str(certificate), "fingerprint": found},
    )


@app.command()
@config_option
@format_option
def serve(config: Path) -> None:
    """Run the daemon until it is told to stop.

    Without a terminal on standard error, everything it says is JSON lines.
    """
    READER.start()  # before there are keys in memory, and gRPC with its threads
    json_unless_watched()
    set_up_logs()
    asyncio.run(_serve(load_config(PartyConfig, config), config))


async def _serve(config: PartyConfig, path: Path) -> None:
    stop = stop_signals()
    warn_of_certificates(config)
    raise_file_limit()
    server = PartyServer(config, Daemon, path)
    address = await server.start()  # from here on no other daemon has this state folder
    if n_left := sweep(config.state_dir / RELEASES):
        log.warning("removed %d releases that runs killed earlier left unfinished", n_left)
    if n_left := give_up(config.state_dir):
        log.warning("accounts that an earlier daemon did not finish: %d; shown by `party accounts`", n_left)
    say(
        f"{config.name} listens on {address} (Jointcut {__version__})",
        {"event": "listening", "name": config.name, "address": address},
    )
    await stop.wait()
    await server.stop()


def stop_signals() -> asyncio.Event:
    """Set by the first signal that asks us to stop; the second ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def first() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in numbers:
        loop.add_signal_handler(number, first)
    return stop


@app.command()
@config_option
@click.option("--job", type=click.Path(path_type=Path), help="Check table and policy against this job too.")
@click.option("--coordinator", help="The coordinator the job would come from.")
@format_option
def check(config: Path, job: Path | None, coordinator: str | None) -> None:
    """Check configuration, identity and table; start nothing.

    With a job: who is asked for what, and who learns what, as its author is shown it; then whether we agree.
    Shows numbers of our own table; run it where only its owner reads along.
    """
    settings = load_config(PartyConfig, config)
    own = fingerprint(credentials_of(settings).certificate)
    known = peers_of(settings)
    lines = [f"{settings.name}: configuration and identity are in order", f"  fingerprint  {own}"]
    lines += [f"  peer         {peer.name}  {peer.fingerprint}" for peer in known.values()]
    warnings = certificate_warnings(settings)
    lines += [f"  warning      the certificate of {name} {text}" for name, text in warnings.items()]
    daemon = running(settings, config)
    lines.append(f"  daemon       {daemon or 'none runs on this `state_dir`'}")
    lines.append(f"  columns      {', '.join(settings.source.column_names())}")
    fields: dict[str, Any] = {"name": settings.name, "fingerprint": own, "lines": lines, "warnings": warnings}
    fields["daemon"] = asdict(daemon) if daemon else None
    problem = None
    if job is not None:
        task = load_task(job)
        fields["asked"] = description_fields(task)
        lines += description_lines(task)
        problem = _check_task(settings, task, coordinator, lines)
    say(lines, fields)
    if problem is not None:
        raise problem


def _check_task(
    settings: PartyConfig, task: Task, coordinator: str | None, lines: list[str]
) -> Exception | None:
    """Load the table as the job would, and ask the policy; report both, return the first problem."""
    first: Exception | None = None
    table = None
    try:
        table = task.load(settings.source, settings.name)
        told = (*table.rows.words(), *task.model.for_owner(task, table))
        lines += [f"  table        {words}" for words in told]
    except AnonymizeError as error:
        first = error
        lines.append(f"  table        {problem_of(error)}")
    caller = coordinator or next(iter(settings.policy.coordinators), "coordinator")
    try:
        check_policy(settings.policy, task, settings.name, caller)
        lines.append(f"  policy       allows the job from {caller}")
    except PolicyError as error:
        first = first or error
        lines.append(f"  policy       {_short(problem_of(error))}")
    for peer in (each for each in (caller, *task.job.roster) if each != settings.name):
        try:
            usable_peer(settings, peer)
        except PartyError as error:
            first = first or error
            lines.append(f"  {peer:12} {problem_of(error)}")
    refused = check_ledger(settings, task, caller, table, lines)
    lines.append("  connections  not tested: whether the other parties and the coordinator can be reached")
    return first or refused


def _short(problem: Problem) -> str:
    return f"{problem.error_id}: {problem.message}"


for command in (budget_command, accounts_command, problems_command, verify_command, opening_command):
    app.add_command(command)
app.add_command(peers_group(PartyConfig, config_option))
app.add_command(renew_command(PartyConfig, config_option))


def main() -> None:
    """The console script."""
    run_command(app, "party")
