"""`coordinator`: the command line for requesting a joint table."""

from __future__ import annotations

import click

from party.cli.console import Program, run_command
from party.cli.late import Late

COMMANDS = (
    Late("init", "coordinator.commands.identity:init", "Make an identity and a configuration."),
    Late("peers", "coordinator.commands.identity:peers", "Install, remove and list peers."),
    Late("roster", "coordinator.commands.identity:roster", "Give the parties each other's certificates."),
    Late(
        "renew",
        "coordinator.commands.identity:renew",
        "Make a new key and certificate, and keep the old files aside.",
    ),
    Late("draft", "coordinator.commands.draft:draft", "Write a first job for a table, to edit."),
    Late(
        "validate",
        "coordinator.commands.validate:validate",
        "Check a job file and its taxonomies, without data.",
    ),
    Late(
        "check",
        "coordinator.commands.check:check",
        "Compare a single holder's table with the job; release nothing.",
    ),
    Late(
        "explore",
        "coordinator.commands.explore:explore",
        "Compare requirements by utility and risk; release nothing.",
    ),
    Late(
        "propose",
        "coordinator.commands.approval:propose",
        "Hand a joint job to its parties for their decisions.",
    ),
    Late(
        "status",
        "coordinator.commands.approval:status",
        "Ask the parties of a joint job for their decisions.",
    ),
    Late("run", "coordinator.commands.runs:run", "Run a job: alone, or with the daemons of its parties."),
    Late(
        "relay",
        "coordinator.commands.relay:relay",
        "Join parties that accept no connection from outside.",
    ),
    Late(
        "budget",
        "coordinator.commands.budget:budget",
        "Show the charges of a single holder's table.",
    ),
    Late(
        "simulate",
        "coordinator.commands.runs:simulate",
        "Run a joint job with all parties on this machine.",
    ),
    Late(
        "demo",
        "coordinator.commands.runs:demo",
        "Let three hospitals on this machine make an anonymous table.",
    ),
    Late("verify", "coordinator.commands.verify:verify", "Check a released table against its job."),
    Late(
        "evaluate",
        "evaluation.commands:evaluate",
        "Compare classifiers of anonymized and of raw rows.",
    ),
    Late(
        "clusters",
        "evaluation.cluster_commands:clusters",
        "Fit models of clusters; compare the clusters of a release.",
    ),
)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="jointcut")
def app() -> None:
    """Ask data holders for one anonymous table."""


for command in COMMANDS:
    app.add_command(command)


def main() -> None:
    """Run the console script."""
    run_command(app, "coordinator")
