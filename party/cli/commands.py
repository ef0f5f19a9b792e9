"""`party`: the command line of a data holder."""

from __future__ import annotations

import click

from party.cli.console import Program, run_command
from party.cli.late import Late

COMMANDS = (
    Late(
        "init",
        "party.cli.identity:init",
        "Make an identity and a configuration that allows nothing.",
    ),
    Late("peers", "party.cli.identity:peers", "Install, remove and list peers."),
    Late(
        "renew", "party.cli.identity:renew", "Make a new key and certificate, and keep the old files aside."
    ),
    Late("serve", "party.cli.serve:serve", "Run the daemon until you stop it."),
    Late(
        "check",
        "party.cli.check:check",
        "Check configuration, identity and table; start nothing.",
    ),
    Late("probe", "party.cli.probe:probe", "Ask the monitor if the daemon is alive, or ready for a job."),
    Late("draft", "party.cli.draft:draft", "Fit our table to a job: names and values to write under `data`."),
    Late(
        "jobs",
        "party.cli.approval:jobs_command",
        "List the proposed jobs, with our decisions.",
    ),
    Late("show", "party.cli.approval:show_command", "Say in plain words what a proposed job asks of us."),
    Late("approve", "party.cli.approval:approve_command", "Allow a proposed job to run."),
    Late("deny", "party.cli.approval:deny_command", "Deny a proposed job."),
    Late("web", "party.cli.web:web_command", "Print a link to the owner's page, for one sign-in."),
    Late(
        "audit",
        "party.cli.audit:audit_group",
        "Check or export the audit: who asked, who decided, what left.",
    ),
    Late(
        "budget", "party.cli.records:budget_command", "Show charges, releases, and the privacy budget left."
    ),
    Late(
        "accounts",
        "party.cli.records:accounts_command",
        "Show the owner the effect of releases on our rows.",
    ),
    Late("problems", "party.cli.records:problems_command", "Show why jobs failed here, to the owner alone."),
    Late(
        "verify",
        "party.cli.records:verify_command",
        "Compare a result folder with the releases we agreed on.",
    ),
    Late(
        "opening",
        "party.cli.records:opening_command",
        "Check whether our table is the table of a signed run.",
    ),
)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="jointcut")
def app() -> None:
    """Hold a table, and take part in joint jobs.

    A job runs only if the policy in the configuration allows the job, and the owner has approved the job.
    """


for command in COMMANDS:
    app.add_command(command)


def main() -> None:
    """Run the console script."""
    run_command(app, "party")
