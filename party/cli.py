"""`party`: the command line of a data holder."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import click

from anonymize.errors import AnonymizeError
from party import __version__
from party.bundle import load_bundle
from party.config import PartyConfig, credentials_of, load_config, peers_of
from party.console import format_option, run_command, say, set_up_logs
from party.data import load
from party.errors import PolicyError, Problem, problem_of
from party.identity import fingerprint
from party.peer_files import CERTIFICATE, set_up
from party.peers_cli import peers_group
from party.policy import check_policy
from party.transport import PartyServer

DEFAULT_CONFIG = Path("party.yaml")

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
  columns: {{}}                        # the roles a column may have, e.g. {{age: [qid], surgery: [sensitive]}}
  # min_l: 2                         # smallest L we accept; unset accepts any
  # min_k: 20                        # smallest K we accept; unset accepts no job
  # max_c: 0.5                       # largest C we accept; unset accepts no sensitive column
  # protected: {{surgery: [HIV]}}      # values a job must protect; others it may leave free
  disclosure: []                     # e.g. [sealed], see docs/security.md
  # match_ids: true                  # vertical jobs: who our people are is matched with other parties
  # share_class: true                # vertical jobs: we may give the class of matched people to the others
"""


config_option = click.option(
    "--config",
    "-c",
    type=click.Path(path_type=Path),
    default=DEFAULT_CONFIG,
    show_default=True,
    help="Configuration file.",
)


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
    """Run the daemon until it is told to stop."""
    set_up_logs()
    asyncio.run(_serve(load_config(PartyConfig, config)))


async def _serve(config: PartyConfig) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = PartyServer(config)
    address = await server.start()
    say(
        f"{config.name} listens on {address} (Jointcut {__version__})",
        {"event": "listening", "name": config.name, "address": address},
    )
    await stop.wait()
    await server.stop()


@app.command()
@config_option
@click.option("--job", type=click.Path(path_type=Path), help="Check table and policy against this job too.")
@click.option("--coordinator", help="The coordinator the job would come from.")
@format_option
def check(config: Path, job: Path | None, coordinator: str | None) -> None:
    """Check configuration, identity and table without starting anything.

    Shows numbers of our own table; run it where only its owner reads along.
    """
    settings = load_config(PartyConfig, config)
    own = fingerprint(credentials_of(settings).certificate)
    known = peers_of(settings)
    lines = [f"{settings.name}: configuration and identity are in order", f"  fingerprint  {own}"]
    lines += [f"  peer         {peer.name}  {peer.fingerprint}" for peer in known.values()]
    lines.append(f"  columns      {', '.join(settings.source.column_names())}")
    problem = None
    if job is not None:
        problem = _check_job(settings, job, coordinator, lines)
    say("\n".join(lines), {"name": settings.name, "fingerprint": own, "lines": lines})
    if problem is not None:
        raise problem


def _check_job(
    settings: PartyConfig, path: Path, coordinator: str | None, lines: list[str]
) -> Exception | None:
    """Load the table as the job would, and ask the policy; report both, return the first problem."""
    bundle = load_bundle(path)
    first: Exception | None = None
    try:
        loaded = load(settings.source, bundle, settings.name)
        lines.append(
            f"  table        {loaded.n_read} rows read, {loaded.n_dropped} dropped for missing values"
        )
    except AnonymizeError as error:
        first = error
        lines.append(f"  table        {problem_of(error)}")
    caller = coordinator or next(iter(settings.policy.coordinators), "coordinator")
    try:
        check_policy(settings.policy, bundle.job, settings.name, caller)
        lines.append(f"  policy       allows the job from {caller}")
    except PolicyError as error:
        first = first or error
        lines.append(f"  policy       {_short(problem_of(error))}")
    return first


def _short(problem: Problem) -> str:
    return f"{problem.error_id}: {problem.message}"


app.add_command(peers_group(PartyConfig, config_option))


def main() -> None:
    """The console script."""
    run_command(app, "party")
