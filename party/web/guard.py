"""What every request to the owner's page must be before a page sees it, and what every answer says to browsers.

Who may do what is decided here alone, so no page can forget it:

- `Host` is a loopback name with our port: another name is a page of somebody else's that points here (DNS rebinding).
- A request that another site caused is refused, also one on another port of this machine; only the page to sign in,
  on which nothing happens by being looked at, may be reached by a link from elsewhere.
- All pages but that one, with how it looks, are for who is signed in.
- What changes anything is POST: with an `Origin` that is ours, at most ``MOST_BODY_BYTES`` of form fields, and the
  field `form` of the session, which only our own pages know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobs.errors import problem_of
from party.owner.problems import ProblemBook, note_problem
from party.web.sessions import Sessions, SignedIn

SIGN_IN, STYLE, ICON = "/sign-in", "/style.css", "/icon.svg"
OPEN = frozenset({SIGN_IN, STYLE, ICON})
"""What is shown to everybody."""
BY_ITSELF = "again"
"""The parameter of a page that the browser fetches again by itself: that keeps no session alive."""
MOST_BODY_BYTES = 16 << 10
MOST_FIELDS = 16
HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    # Not `no-referrer`: with that browsers send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-frame-options": "DENY",
}
"""Of every answer; a page may say another policy for what is not ours."""
FAILED = "The page failed; party problems says why."
_OURS = frozenset({"same-origin", "none"})
"""`Sec-Fetch-Site` of requests that our own pages caused, or the person at the browser."""


@dataclass(frozen=True)
class Visit:
    """What a page is told of a request. fields: of a form, by name."""

    signed_in: SignedIn | None
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)


class Refusing(Protocol):
    """Makes the answer to a request that is turned away."""

    def __call__(self, request: Request, status: HTTPStatus, words: str) -> Response: ...


class _RefusedError(Exception):
    """A request is turned away."""

    def __init__(self, status: HTTPStatus, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class Guard:
    """Stands before all pages. cookie: the name under which browsers keep a session."""

    pages: ASGIApp

    def __init__(
        self, sessions: Sessions, host: str, port: int, refusing: Refusing, problems: ProblemBook
    ) -> None:
        self._sessions = sessions
        self._names = {f"{name}:{port}" for name in (host, "localhost", "127.0.0.1")}
        self._refusing = refusing
        self._problems = problems
        self.cookie = f"jointcut-{port}"  # ports do not keep cookies apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, whatever happens: an error of a page is no matter of the daemon."""
        if scope["type"] != "http":
            return
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            answer = await self._stopped(scope, receive)
            await (answer or self.pages)(scope, receive, sending)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  the edge: what is wrong with a page stays on the page
            await run_in_threadpool(note_problem, problem_of(error), error, None, self._problems)
            if not begun:
                await PlainTextResponse(f"{FAILED}\n", 500)(scope, receive, sending)

    async def _stopped(self, scope: Scope, receive: Receive) -> Response | None:
        """The answer to a request that no page sees; None for one that a page may see, with its visit."""
        request = Request(scope, receive)
        try:
            return await self._looked_at(request)
        except _RefusedError as refused:
            return self._refusing(request, refused.status, refused.words)

    async def _looked_at(self, request: Request) -> Response | None:
        _check_host(request, self._names)
        _check_method(request)
        _check_site(request)
        fields = await _form(request) if request.method == "POST" else {}
        cookie = request.cookies.get(self.cookie, "")
        used = BY_ITSELF not in request.query_params
        signed_in = self._sessions.found(cookie, used=used)
        request.scope["visit"] = Visit(signed_in, fields)
        if request.url.path in OPEN:
            return None
        if signed_in is None:
            return RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER)
        if request.method == "POST" and not signed_in.brought(fields.get("form", "")):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "This form is of an earlier session: open it again.")
        return None


def _check_host(request: Request, names: set[str]) -> None:
    if request.headers.getlist("host") != [request.headers.get("host", "")]:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "A request names one host.")
    if request.headers.get("host") not in names:
        raise _RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "This page is not of the host that was named.")


def _check_method(request: Request) -> None:
    if request.method not in {"GET", "HEAD", "POST"}:
        raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "Pages are read, and forms are sent.")


def _check_site(request: Request) -> None:
    """Refuse what another site caused: it says so itself, or the browser does."""
    site = request.headers.get("sec-fetch-site", "none")
    if request.method == "POST":
        ours = request.headers.getlist("origin") == [f"http://{request.headers['host']}"]
        if not ours or site not in _OURS:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "This form was sent from another site.")
    elif site not in _OURS and request.url.path != SIGN_IN:
        raise _RefusedError(
            HTTPStatus.FORBIDDEN, "This page was opened from another site: open it from here."
        )


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, each once. Raises _RefusedError for anything else."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "That is no form of these pages.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BODY_BYTES:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is more than a form holds.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "That is no form of these pages.") from error
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "A form has each field once.")
    return fields
