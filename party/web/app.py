"""The owner's page as an application: routes, who is let in, and errors as pages.

No work of the page is in the daemon's event loop or in the threads of a job: pages have threads of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from crypto.rng import SystemRng
from jobs.errors import Exit, Problem, problem_of
from jobs.page.page import PAGE
from party.owner.audit import Audit
from party.owner.config import PartyConfig
from party.owner.current import CurrentJob
from party.owner.problems import ProblemBook, note_problem
from party.owner.repeated import Repeated
from party.web import views
from party.web.guards import Guard
from party.web.signing_in import SESSION_LASTS, Session, SignIns
from party.web.style import STYLE
from party.web.visit import TOKEN, View, Visit, bare_page, problem_page

log = logging.getLogger("party")

_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
_JOB = "/jobs/{digest}/{coordinator}"
_SHOWN: Mapping[str, View] = {
    "/": views.jobs,
    _JOB: views.job,
    "/releases": views.releases,
    f"/releases/{{folder}}/{PAGE}": views.release,
    "/budget": views.budget_page,
    "/audit": views.audit,
    "/audit.csv": views.audit_csv,
    "/certificates": views.certificates,
}
"""Pages by path."""
_DECIDED: Mapping[str, View] = {
    f"{_JOB}/approve": views.approve_job,
    f"{_JOB}/deny": views.deny_job,
}
"""Forms by path."""


@dataclass(frozen=True)
class Sources:
    """Sources of the pages, and the right to look.

    listen:   host:port of the page.
    config:   returns the configuration in force; reads files.
    current:  returns the job that runs now.
    by:       user who decides on the page, for the audit.
    threads:  do the work of the page.
    """

    listen: str
    config: Callable[[], PartyConfig]
    current: Callable[[], CurrentJob | None]
    sign_ins: SignIns = field(repr=False)
    by: str
    threads: Executor

    @property
    def cookie(self) -> str:
        """Name of the cookie. Browsers send cookies to every port of a host, so the port is in the name."""
        return f"jointcut-{self.listen.rsplit(':', 1)[1]}"


def app_of(sources: Sources) -> ASGIApp:
    """Return the application."""
    shown = [Route(path, _signed_in(sources, view)) for path, view in _SHOWN.items()]
    decided = [Route(path, _signed_in(sources, view), methods=["POST"]) for path, view in _DECIDED.items()]
    others = [
        Route("/sign-in", _signing_in(sources), methods=["GET", "POST"]),
        Route("/sign-out", _signed_in(sources, partial(_sign_out, sources)), methods=["POST"]),
        Route("/style.css", _style),
    ]
    pages = Starlette(
        routes=[*shown, *decided, *others],
        exception_handlers={HTTPException: _refused},
    )
    pages.router.redirect_slashes = False
    return Guard(pages, sources.listen)


async def _style(_: Request) -> Response:
    return Response(STYLE, media_type="text/css")


async def _refused(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    return _message(HTTPStatus(status), "There is no such page here.")


def _message(status: HTTPStatus, words: str, remedy: str = "") -> Response:
    return bare_page("problem.html", status, title=status.phrase.capitalize(), words=words, remedy=remedy)


def _in_thread(
    sources: Sources, answer: Callable[[Sources, Request, CurrentJob | None], Response]
) -> _Endpoint:
    async def endpoint(request: Request) -> Response:
        # The event loop changes the job, so the job is looked at here.
        work = partial(_answered, answer, sources, request, sources.current())
        return await asyncio.get_running_loop().run_in_executor(sources.threads, work)

    return endpoint


def _answered(
    answer: Callable[[Sources, Request, CurrentJob | None], Response],
    sources: Sources,
    request: Request,
    current: CurrentJob | None,
) -> Response:
    try:
        return answer(sources, request, current)
    except Exception as error:  # noqa: BLE001  the edge: no error of a page reaches the daemon
        problem = problem_of(error)
        cause = f" [{problem.cause}]" if problem.cause else ""
        log.error("the owner's page failed: %s: %s%s", problem.error_id, problem.message, cause)
        return _message(HTTPStatus.INTERNAL_SERVER_ERROR, "The page failed.", "see the log of the daemon")


def _signed_in(sources: Sources, view: View) -> _Endpoint:
    """Return an endpoint for a signed-in owner alone. A form needs the token of the session."""

    def answer(sources: Sources, request: Request, current: CurrentJob | None) -> Response:
        now = datetime.now(UTC)
        session = _session(sources, request, now)
        if session is None and request.method != "POST":
            return views.see_other("/sign-in")
        path, form = request.scope["path"], request.state.form
        if session is None or (request.method == "POST" and not session.has_sent(form.get(TOKEN, ""), path)):
            words = "The form is not of this session. Nothing was done."
            return _message(HTTPStatus.FORBIDDEN, words, "load the page again, or sign in with `party web`")
        visit = Visit(
            path,
            request.path_params,
            request.query_params,
            form,
            session,
            sources.config(),
            current,
            sources.by,
            now,
            sources.threads,
        )
        return _viewed(view, visit)

    return _in_thread(sources, answer)


def _viewed(view: View, visit: Visit) -> Response:
    """Return a page, or the page about an error. Errors beyond wrong forms stand in the problem book."""
    try:
        return view(visit)
    except Exception as error:  # noqa: BLE001  the edge: each error becomes a problem, bugs included
        problem = problem_of(error).at(visit.config.name, "page")
        if problem.exit_code is not Exit.USAGE:
            note_problem(problem, error, None, ProblemBook(visit.config.state_dir))
        return problem_page(visit, problem)


def _session(sources: Sources, request: Request, now: datetime) -> Session | None:
    cookie = request.cookies.get(sources.cookie)
    return sources.sign_ins.session(cookie, now) if cookie else None


def _signing_in(sources: Sources) -> _Endpoint:
    """Return the endpoint of sign-ins. Refusals are logged once a minute."""
    answered, repeated = _in_thread(sources, _sign_in), Repeated()
    problem = Problem("usage", "a sign-in to the owner's page was refused")

    async def endpoint(request: Request) -> Response:
        answer = await answered(request)
        if answer.status_code == HTTPStatus.FORBIDDEN and not repeated.is_told("a browser", problem):
            log.warning(problem.message)
        return answer

    return endpoint


def _sign_in(sources: Sources, request: Request, _: CurrentJob | None) -> Response:
    """Show the form with the token of a link; use the token up when the form comes."""
    if request.method != "POST":
        return bare_page("sign_in.html", one_time=request.query_params.get("token", ""), refused=False)
    config, now = sources.config(), datetime.now(UTC)
    noted = partial(Audit(config.state_dir, SystemRng()).note, "sign-in", {"user": sources.by})
    cookie = sources.sign_ins.sign_in(request.state.form.get("token", ""), now, noted)
    if cookie is None:
        return bare_page("sign_in.html", HTTPStatus.FORBIDDEN, one_time="", refused=True)
    log.info("the owner signed in to the page")
    answer = views.see_other("/")
    lasts = int(SESSION_LASTS.total_seconds())
    answer.set_cookie(sources.cookie, cookie, max_age=lasts, path="/", httponly=True, samesite="strict")
    return answer


def _sign_out(sources: Sources, visit: Visit) -> Response:
    Audit(visit.config.state_dir, SystemRng()).note("sign-out", {"user": visit.by})
    sources.sign_ins.sign_out(visit.session, visit.now)
    answer = views.see_other("/sign-in")
    answer.delete_cookie(sources.cookie, path="/", httponly=True, samesite="strict")
    return answer
