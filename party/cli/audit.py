"""`party audit verify | export`: the audit of a party, for its owner."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from crypto.rng import SystemRng
from jobs.errors import ConfigError, PartyError
from party.cli.arguments import config_option
from party.cli.console import format_option, say, wants_json
from party.cli.moments import end_of, start_of
from party.owner.accounts import release_folders
from party.owner.approvals import Approvals
from party.owner.audit import Audit, as_csv, as_json
from party.owner.beginning import Beginnings
from party.owner.config import PartyConfig, load_config
from party.owner.deciding import user

_MOST_BROKEN = 5
"""Most broken lines in a message."""


@click.group(name="audit")
def audit_group() -> None:
    """Check or export the audit: who asked, who decided, what left."""


def _audit(settings: PartyConfig) -> Audit:
    return Audit(settings.state_dir, SystemRng())


@audit_group.command()
@click.option("--head", help="Head of our audit as another party noted the head; see `heads` in its export.")
@click.option(
    "--accept", is_flag=True, help="Accept an audit that was begun anew; adds a line with your name."
)
@config_option
@format_option
def verify(head: str | None, accept: bool, config: Path) -> None:
    """Check that no line of the audit was changed, removed or added.

    Names the first line that does not follow from the line before, and an audit that was begun anew. The end of the
    file is checked with --head alone: the lines up to a head are those of that time.
    """
    settings = load_config(PartyConfig, config)
    audit = _audit(settings)
    if accept:
        _accept(settings, audit)
    found = audit.checked()
    if not found.n_lines and (left := _left_by_work(settings)):
        raise PartyError(
            "verification-failed",
            f"the audit has no line, but {left}: lines of the audit are missing",
            remedy=f"compare with a backup of {audit.path}",
        )
    if found.broken:
        said = (f"line {each.number} of the audit {each.reason}" for each in found.broken[:_MOST_BROKEN])
        raise PartyError(
            "verification-failed",
            "; ".join(said),
            remedy=f"compare with a backup of {audit.path}{_untouched(found.broken[0].number)}",
        )
    if found.n_lines and Beginnings(settings.state_dir).last() not in ("", audit.beginning()):
        raise PartyError(
            "verification-failed",
            "the audit was begun anew: its first line is not the first line that the approvals remember",
            remedy=f"put the earlier {audit.path} back from a backup, or, if you moved it away yourself: "
            "party audit verify --accept",
        )
    if head is not None and not audit.has(_head(head)):
        raise PartyError(
            "verification-failed",
            f"no line of the audit has the head {head}",
            remedy="lines that the other party saw are missing here: compare with a backup",
        )
    lines = [
        f"{audit.path}: {found.n_lines} lines, each follows from the line before",
        f"  head  {found.head}",
    ]
    lines += [
        f"  line {number} is not whole: its writer was ended, or the file was cut" for number in found.torn
    ]
    say(lines, {"lines": found.n_lines, "head": found.head, "torn": list(found.torn)})


def _untouched(broken: int) -> str:
    """Name the lines that stand, as a part of a sentence. The line before a broken line may be the changed one."""
    return f"; lines 1 to {broken - 2} are as they were written" if broken > 2 else ""


def _accept(settings: PartyConfig, audit: Audit) -> None:
    """Let the audit count as it begins now, with a line about it, if another beginning is kept."""
    beginnings = Beginnings(settings.state_dir)
    if (before := beginnings.last()) not in ("", audit.beginning()):
        audit.note("begun-anew", {"user": user(), "earlier": before})
        beginnings.accept(audit.beginning())


def _left_by_work(settings: PartyConfig) -> str:
    """Say what work left beside the audit; empty: nothing. Without a line there is no decision and no release."""
    if Beginnings(settings.state_dir).last():
        return "a daemon has started"
    proposals = Approvals(settings.state_dir).all(datetime.now(UTC))
    if any(each.decision is not None and each.decision.noted for each in proposals):
        return "the owner has decided on jobs"
    return "releases were delivered" if release_folders(settings.state_dir) else ""


def _head(text: str) -> str:
    digits = text.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", digits):
        raise ConfigError("usage", f"--head {text}: no head", remedy="write the 64 digits of a head")
    return digits


@audit_group.command()
@click.option("--from", "since", callback=start_of, metavar="DATE", help="First day (UTC), or a time.")
@click.option("--to", "until", callback=end_of, metavar="DATE", help="Last day (UTC), or a time.")
@config_option
@format_option
def export(since: datetime | None, until: datetime | None, config: Path) -> None:
    """Print lines of the audit as CSV, or as a JSON object a line. Lines with an unreadable time are printed, too."""
    if since is not None and until is not None and until < since:
        raise ConfigError("usage", "--to lies before --from", remedy="name a later --to")
    lines = (
        line for line in _audit(load_config(PartyConfig, config)).lines() if line.is_between(since, until)
    )
    form = as_json(lines) if wants_json() else as_csv(lines, sys.stdout.encoding or "utf-8")
    sys.stdout.writelines(form)
    sys.stdout.flush()
