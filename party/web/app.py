"""All pages of the owner's page by their paths, behind the guard."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from jobs.errors import PartyError
from party.owner.audit import Audit
from party.owner.problems import ProblemBook
from party.web.deciding import Deciding
from party.web.drawing import FOLDER, Drawing
from party.web.guard import FAILED, ICON, SIGN_IN, STYLE, Guard
from party.web.house import House
from party.web.records import Records
from party.web.releases import Releases
from party.web.sessions import Sessions
from party.web.signing_in import SigningIn
from party.web.tokens import Tokens

Page = Callable[[Request], object]


def application(house: House, host: str, port: int, sessions: Sessions | None = None) -> ASGIApp:
    """The pages of a daemon, served at this host and port."""
    config = house.config()
    drawing = Drawing(config.name)
    sessions = sessions or Sessions()
    failing = _Failing(drawing)
    guard = Guard(sessions, host, port, failing.refused, ProblemBook(config.state_dir))
    signing_in = SigningIn(drawing, sessions, Tokens(config.state_dir), Audit(config.state_dir), guard.cookie)
    guard.pages = Starlette(
        routes=[
            _get(STYLE, _file("style.css", "text/css")),
            _get(ICON, _file("icon.svg", "image/svg+xml")),
            _get(SIGN_IN, signing_in.form),
            _post(SIGN_IN, signing_in.sign_in),
            _post("/sign-out", signing_in.sign_out),
            *_routes(drawing, house),
        ],
        exception_handlers={
            HTTPException: failing.not_there,
            PartyError: failing.failed,
            Exception: failing.unforeseen,
        },
    )
    return guard


def _routes(drawing: Drawing, house: House) -> list[Route]:
    """What is for who is signed in."""
    records, deciding, releases = Records(drawing, house), Deciding(drawing, house), Releases(drawing, house)
    return [
        _get("/", records.overview),
        _get("/jobs", deciding.jobs),
        _get("/jobs/{number:int}", deciding.job),
        _post("/jobs/{number:int}/approve", deciding.approve),
        _post("/jobs/{number:int}/deny", deciding.deny),
        _get("/running", records.running),
        _get("/releases", releases.releases),
        _get("/releases/{name}", releases.release),
        _get("/releases/{name}/{file}", releases.file),
        _get("/budget", records.budget),
        _get("/audit", records.audit),
        _get("/certificates", records.certificates),
        _post("/log-level", records.change_level),
    ]


def _get(path: str, page: Page) -> Route:
    return Route(path, page, methods=["GET"])


def _post(path: str, page: Page) -> Route:
    return Route(path, page, methods=["POST"])


def _file(name: str, kind: str) -> Page:
    """How the pages look."""
    content = (FOLDER / name).read_bytes()
    return lambda _: Response(content, media_type=kind)


class _Failing:
    """Pages for what does not work."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing

    def refused(self, request: Request, status: HTTPStatus, words: str) -> Response:
        """What the guard turned away; says nothing of this party, whoever asked is not known."""
        return self._drawing.page("message", request, status, title=status.phrase, words=words)

    def not_there(self, request: Request, error: Exception) -> HTMLResponse:
        assert isinstance(error, HTTPException)
        status = HTTPStatus(error.status_code)
        return self._drawing.page("message", request, status, title=status.phrase, words="")

    def failed(self, request: Request, error: Exception) -> HTMLResponse:
        assert isinstance(error, PartyError)
        words = error.problem.text(to_owner=True)
        return self._drawing.page(
            "message", request, HTTPStatus.INTERNAL_SERVER_ERROR, title="That did not work", words=words
        )

    def unforeseen(self, request: Request, _: Exception) -> HTMLResponse:
        return self._drawing.page(
            "message", request, HTTPStatus.INTERNAL_SERVER_ERROR, title="That did not work", words=FAILED
        )
