"""The pages of what was delivered to us: folders of `state_dir/releases`, with the report of each.

A folder is found among those that are there, never by putting a name into a path. A report as a page was made
elsewhere, so it comes with a policy of its own: a sandbox, in which nothing can act, and which is of no site.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from jobs.errors import json_object
from jobs.folder import OWN_ACCOUNT
from jobs.release_csv import REPORT
from party.owner.accounts import RELEASES, words_of
from party.owner.identity import in_words
from party.web.drawing import Drawing
from party.web.house import House

PAGE = "report.html"
FILES = {REPORT: "application/json", PAGE: "text/html"}
"""What is served of a release; its table is for who opens the folder."""
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
MOST_SHOWN_BYTES = 256 << 10
MOST_LISTED = 200


@dataclass(frozen=True)
class Release:
    """A folder. made: when. files: of FILES, those that are there."""

    name: str
    path: Path
    made: str
    files: tuple[str, ...]


class Releases:
    """Those pages."""

    def __init__(self, drawing: Drawing, house: House) -> None:
        self._drawing = drawing
        self._house = house

    def releases(self, request: Request) -> Response:
        """All of them, the latest first."""
        return self._drawing.page("releases", request, found=self._all()[:MOST_LISTED], most=MOST_LISTED)

    def release(self, request: Request) -> Response:
        """One, with what its report says and what it did to our own records."""
        found = self._found(request)
        report = _text(found.path / REPORT) if REPORT in found.files else ""
        return self._drawing.page(
            "release", request, found=found, report=report.splitlines(), account=_account(found.path)
        )

    def file(self, request: Request) -> Response:
        """A file of it."""
        found, name = self._found(request), request.path_params["file"]
        if name not in found.files:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        if name == PAGE:
            headers = {"content-security-policy": SANDBOX}
            return FileResponse(found.path / name, headers=headers, media_type=FILES[name])
        return FileResponse(found.path / name, media_type=FILES[name], filename=f"{found.name}-{name}")

    def _all(self) -> list[Release]:
        folder = self._house.config().state_dir / RELEASES
        if not folder.is_dir():
            return []
        found = [
            path for path in folder.iterdir() if not path.name.startswith(".") and _is(path, stat.S_ISDIR)
        ]
        newest = sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)
        return [
            Release(
                path.name,
                path,
                in_words(datetime.fromtimestamp(path.stat().st_mtime, UTC)),
                tuple(name for name in FILES if _is(path / name, stat.S_ISREG)),
            )
            for path in newest
        ]

    def _found(self, request: Request) -> Release:
        for each in self._all():
            if each.name == request.path_params["name"]:
                return each
        raise HTTPException(HTTPStatus.NOT_FOUND)


def _is(path: Path, kind: object) -> bool:
    """Whether something of this kind is there, not a link to one."""
    assert callable(kind)
    try:
        return bool(kind(path.lstat().st_mode))
    except FileNotFoundError:
        return False


def _text(path: Path) -> str:
    """A report, if it is not too long for a page."""
    return path.read_text(errors="replace") if path.stat().st_size <= MOST_SHOWN_BYTES else ""


def _account(folder: Path) -> list[str]:
    """What `party accounts` says of it."""
    path = folder / OWN_ACCOUNT
    fields = json_object(path.read_bytes()) if _is(path, stat.S_ISREG) else None
    return words_of(fields) if fields is not None else []
