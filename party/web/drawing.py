"""Pages made of templates. Whatever is put into one is escaped, and steers neither browser nor reading direction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from jobs.errors import printable
from jobs.version import __version__
from party.owner.identity import in_words
from party.web.guard import Visit

FOLDER = Path(__file__).resolve().parent / "templates"


def _shown(value: object) -> object:
    """Text of others on one line, without what turns the direction of writing; what a template made as it is."""
    return printable(value, None) if isinstance(value, str) and not isinstance(value, Markup) else value


def _moment(seconds: float) -> str:
    return in_words(datetime.fromtimestamp(seconds, UTC))


def _moment_of(text: str) -> str:
    """A time that is kept as text, as people read it."""
    return in_words(datetime.fromisoformat(text))


class Drawing:
    """Draws the pages of one party."""

    def __init__(self, name: str) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"name": name, "version": __version__}
        self._templates.filters |= {"moment": _moment, "moment_of": _moment_of}

    def page(
        self,
        template: str,
        request: Request,
        status: HTTPStatus = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """A page with these values."""
        visit: Visit = request.scope.get("visit", Visit(None))
        drawn = self._templates.get_template(f"{template}.html")
        text = drawn.render(signed_in=visit.signed_in, path=request.url.path, **values)
        return HTMLResponse(text, status, headers)
