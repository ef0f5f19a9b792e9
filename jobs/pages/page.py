"""`report.html`: one file beside `report.json`, which shows to people what that says.

It is made from the job and the report alone, so whoever has both can make it again: it is no part of the release, no
digest stands for it, and `coordinator verify` compares it with what it makes itself. It holds no script and loads
nothing; a policy inside it forbids both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.errors import PartyError, json_object
from jobs.pages import common
from jobs.release_csv import REPORT
from jobs.task import Task

if TYPE_CHECKING:
    from jinja2 import Template

PAGE = "report.html"
_HERE = Path(__file__).parent


def page_of(task: Task, report: Mapping[str, Any]) -> bytes:
    """The page of a report of the job: the same bytes for the same report, whoever makes it.

    Raises PartyError for a report that does not say what such reports do.
    """
    try:
        return _rendered(task, report)
    except _UNREADABLE as error:
        raise PartyError(
            "verification-failed", "the report does not say what reports of such jobs do"
        ) from error


_UNREADABLE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What reading a report raises that has another shape."""


def _rendered(task: Task, report: Mapping[str, Any]) -> bytes:
    told = task.model.told(task, report)
    sections = [
        common.asked(task),
        *told.sections,
        common.learned(task, report),
        *common.to_be_known(report),
        *common.cost(report),
        common.made(report),
        common.glossary(told.words),
    ]
    text = _template().render(title=task.job.name, opening=told.opening, sections=sections)
    return text.encode()


def write_page(task: Task, folder: Path) -> None:
    """Write the page of the report in a folder beside it. Raises PartyError as :func:`page_of`."""
    (folder / PAGE).write_bytes(page_of(task, json_object((folder / REPORT).read_bytes()) or {}))


@cache
def _template() -> Template:
    """The one template; what it is given is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(_HERE)
    made = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return made.get_template("page.html.jinja")
