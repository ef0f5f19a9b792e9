"""Signing in to the owner's page, and out.

The link that `party web` prints shows a form with the token in it; signing in is sending that form. So whatever looks
at links on its way, a preview or a scanner, uses no token up.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jobs.errors import printable
from party.owner.audit import Audit
from party.web.drawing import Drawing
from party.web.guard import SIGN_IN
from party.web.sessions import TRIES, WINDOW_S, Sessions
from party.web.tokens import Tokens

log = logging.getLogger("party")

WRONG = "This token is not valid: it was used, it is too old, or it is none. Call party web for a new one."
TOO_MANY = f"More than {TRIES} wrong tokens within {WINDOW_S:g} seconds: wait a minute, then try again."


class SigningIn:
    """The pages for that. cookie: its name in browsers."""

    def __init__(
        self, drawing: Drawing, sessions: Sessions, tokens: Tokens, audit: Audit, cookie: str
    ) -> None:
        self._drawing = drawing
        self._sessions = sessions
        self._tokens = tokens
        self._audit = audit
        self._cookie = cookie

    async def form(self, request: Request) -> Response:
        """The form; on it nothing happens by being looked at."""
        return self._form(request, request.query_params.get("token", ""))

    async def sign_in(self, request: Request) -> Response:
        """Use a token up."""
        if not self._sessions.may_try():
            return self._form(request, "", HTTPStatus.TOO_MANY_REQUESTS, TOO_MANY)
        token = request.scope["visit"].fields.get("token", "").strip()
        who = await run_in_threadpool(self._taken, token)
        if who is None:
            self._sessions.tried_wrong()
            log.warning("somebody tried to sign in to the owner's page with a token that is not valid")
            return self._form(request, "", HTTPStatus.FORBIDDEN, WRONG)
        log.info("%s signed in to the owner's page", printable(who))
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        self._sessions.end(request.cookies.get(self._cookie, ""))
        answer.set_cookie(self._cookie, self._sessions.begin(who), httponly=True, samesite="strict")
        return answer

    async def sign_out(self, request: Request) -> Response:
        """End the session, here and in the browser."""
        self._sessions.end(request.cookies.get(self._cookie, ""))
        answer = RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER)
        answer.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return answer

    def _taken(self, token: str) -> str | None:
        """Whose token that was; in the audit before anything is shown. Raises PartyError if it cannot be."""
        who = self._tokens.take(token)
        if who is not None:
            self._audit.write("sign-in", by=printable(who))
        return who

    def _form(
        self, request: Request, token: str, status: HTTPStatus = HTTPStatus.OK, wrong: str = ""
    ) -> Response:
        headers = {"retry-after": f"{WINDOW_S:g}"} if status == HTTPStatus.TOO_MANY_REQUESTS else None
        return self._drawing.page("sign_in", request, status, headers, token=token, wrong=wrong)
