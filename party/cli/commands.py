"""`party`: the command line of a data holder."""

from __future__ import annotations

import click

from party.cli.console import run_command
from party.cli.late import Late

COMMANDS = (
    Late("init", "party.cli.identity:init", "Make an identity and a configuration that allows nothing yet."),
    Late("peers", "party.cli.identity:peers", "Who is known here."),
    Late("renew", "party.cli.identity:renew", "Make a new key and certificate, and keep the old ones aside."),
    Late("serve", "party.cli.serve:serve", "Run the daemon until it is told to stop."),
    Late(
        "check",
        "party.cli.check:check",
        "Check configuration, identity, table and peers; start nothing.",
    ),
    Late("jobs", "party.cli.approvals:jobs", "List the jobs that coordinators propose."),
    Late("show", "party.cli.approvals:show", "Say in plain language what a proposed job would do."),
    Late("approve", "party.cli.approvals:approve", "Let a proposed job that was shown run."),
    Late(
        "deny", "party.cli.approvals:deny", "Deny a proposed job, with a reason that its coordinator reads."
    ),
    Late("web", "party.cli.web:web", "Print a link to the owner's page, good once and for ten minutes."),
    Late(
        "budget", "party.cli.records:budget_command", "Show charges, releases, and the privacy budget left."
    ),
    Late(
        "accounts",
        "party.cli.records:accounts_command",
        "Show, to the owner alone, what releases did to our own rows.",
    ),
    Late("audit", "party.cli.audit:audit", "What happened here, line by line, and whether the lines hold."),
    Late("problems", "party.cli.records:problems_command", "Show why jobs failed here, to the owner alone."),
    Late(
        "verify",
        "party.cli.records:verify_command",
        "Compare a result folder with the releases we agreed on.",
    ),
    Late(
        "opening", "party.cli.records:opening_command", "Tell whether our table is the one of a signed run."
    ),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="jointcut")
def app() -> None:
    """Keep a table, and take part in joint anonymization.

    Nothing leaves it that the policy in the configuration does not allow.
    """


for command in COMMANDS:
    app.add_command(command)


def main() -> None:
    """The console script."""
    run_command(app, "party")
