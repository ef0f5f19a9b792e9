"""A request to the owner's page with everything that a page shows, and pages as answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from http import HTTPStatus
from itertools import islice
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response, StreamingResponse

from jobs.errors import Exit, Problem, printable
from party.owner.config import PartyConfig
from party.owner.current import CurrentJob
from party.web.signing_in import Session

PLACES: tuple[tuple[str, str], ...] = (
    ("/", "Jobs"),
    ("/releases", "Releases"),
    ("/budget", "Budget"),
    ("/audit", "Audit"),
    ("/certificates", "Certificates"),
)
"""Pages of the navigation, with their names."""
TOKEN = "csrf"  # noqa: S105  the name of a field
"""Field with the token of a form."""
_LINES_OF_CHUNK = 100
_CODE = re.compile(r"`([^`\n]+)`")
"""Key or command in a sentence."""


@dataclass(frozen=True)
class Visit:
    """Request of a signed-in owner.

    path:     as asked for.
    names:    parts of the path, as the route names the parts.
    asked:    fields behind the path's question mark.
    form:     fields of a form.
    config:   configuration in force.
    current:  job that runs now.
    by:       who decides, for the audit.
    threads:  do the work of the page.
    """

    path: str
    names: Mapping[str, str]
    asked: Mapping[str, str]
    form: Mapping[str, str] = field(repr=False)
    session: Session
    config: PartyConfig
    current: CurrentJob | None
    by: str
    now: datetime
    threads: Executor


View: TypeAlias = Callable[[Visit], Response]


def page(visit: Visit, template: str, status: int = HTTPStatus.OK, /, **values: Any) -> Response:
    """Return a page for a signed-in owner."""
    session = visit.session

    def token(path: str) -> Markup:
        hidden = Markup('<input type="hidden" name="{}" value="{}">')
        return hidden.format(TOKEN, session.token(path))

    common = {
        "me": visit.config.name,
        "session": session,
        "places": PLACES,
        "here": visit.path,
        "token": token,
    }
    return HTMLResponse(_templates().get_template(template).render(common | values), status)


def streamed(visit: Visit, lines: Iterator[str], media_type: str, headers: Mapping[str, str]) -> Response:
    """Return lines of any number, of which few are in memory. An error before the first line is the caller's."""
    first = _chunk(lines)

    async def chunks() -> AsyncIterator[str]:
        chunk = first
        while chunk:
            yield chunk
            chunk = await asyncio.get_running_loop().run_in_executor(visit.threads, _chunk, lines)

    return StreamingResponse(chunks(), media_type=media_type, headers=headers)


def _chunk(lines: Iterator[str]) -> str:
    """Return the next lines; empty after the last."""
    return "".join(islice(lines, _LINES_OF_CHUNK))


def bare_page(template: str, status: int = HTTPStatus.OK, /, **values: Any) -> Response:
    """Return a page for everybody."""
    common = {"me": "", "session": None}
    return HTMLResponse(_templates().get_template(template).render(common | values), status)


def problem_page(visit: Visit, problem: Problem) -> Response:
    """Return the page about an error, with the owner's private text."""
    wrong = problem.exit_code is Exit.USAGE
    status = HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.INTERNAL_SERVER_ERROR
    own = "".join(f" [{part}]" for part in (problem.cause, problem.private) if part)
    said = {"words": f"{problem.message}{own}", "remedy": problem.advice(to_owner=True)}
    title = "This cannot be done" if wrong else "Something went wrong"
    return page(visit, "problem.html", status, title=title, **said)


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("party.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["code"] = _with_code
    return made


def _with_code(text: str) -> Markup:
    """Return a sentence with keys and commands, which stand between backticks, as code."""
    parts = (escape(printable(part, None)) for part in _CODE.split(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)
    )


def _printable(value: Any) -> Any:
    """Return foreign text without characters that reverse the direction of writing; leave elements alone."""
    return printable(value, None) if isinstance(value, str) and not isinstance(value, Markup) else value
