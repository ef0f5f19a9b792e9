"""The pages that only show: what is going on, what was released, spent and noted, and which certificates end."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jobs.errors import PartyError, Problem
from jobs.ledger import STATE_WORDS
from party.operations.levels import current, less, more
from party.owner.asking import proposals
from party.owner.audit import FOLDER, KINDS
from party.owner.audit_check import check, compare, last_at, lines_between
from party.owner.chain import Line
from party.owner.config import PartyConfig, certificate_warnings, credentials_of, installed_peers
from party.owner.identity import Peer, expires_soon, fingerprint, in_words, validity
from party.owner.spending import spending
from party.web.drawing import Drawing
from party.web.guard import BY_ITSELF
from party.web.house import STAGES, House

AGAIN_S = 5
LINES_A_PAGE = 50


class Records:
    """Those pages."""

    def __init__(self, drawing: Drawing, house: House) -> None:
        self._drawing = drawing
        self._house = house

    def overview(self, request: Request) -> Response:
        """What waits, what runs, what ends."""
        config = self._house.config()
        found = [(proposal, fields) for proposal, fields in proposals(config)]
        return self._drawing.page(
            "overview",
            request,
            waiting=[each for each in found if each[1]["standing"] == "waiting"],
            ending=[(p, f) for p, f in found if f["standing"] == "approved" and f.get("until")],
            asked=config.policy.approval == "required",
            present=self._house.present,
            queue=self._house.place.waiting,
            stages=list(STAGES.values()),
            certificates=_warnings(config),
            why_not=self._house.why_not(),
            level=current(),
        )

    def running(self, request: Request) -> Response:
        """How far the job that runs is; with ``BY_ITSELF`` the browser fetches it again and again."""
        again = BY_ITSELF in request.query_params
        headers = {"refresh": f"{AGAIN_S}; url=/running?{BY_ITSELF}"} if again else None
        return self._drawing.page(
            "running",
            request,
            headers=headers,
            present=self._house.present,
            queue=self._house.place.waiting,
            stages=list(STAGES.values()),
            again=again,
            again_s=AGAIN_S,
        )

    def budget(self, request: Request) -> Response:
        """What was asked, what it cost, and what is left."""
        config = self._house.config()
        found = spending(config)
        return self._drawing.page(
            "budget", request, data_set=config.data.data_set, found=found, state_words=STATE_WORDS
        )

    def certificates(self, request: Request) -> Response:
        """Ours and those of peers, and when they end."""
        config = self._house.config()
        own = _certificate(config.name, credentials_of(config).certificate)
        peers = [
            _certificate(name, peer.certificate) if isinstance(peer, Peer) else _unusable(name, peer)
            for name, peer in installed_peers(config).items()
        ]
        return self._drawing.page("certificates", request, own=own, peers=peers)

    def audit(self, request: Request) -> Response:
        """The lines of a day, the latest first; with ``verify`` also whether the whole chain holds."""
        folder = self._house.config().state_dir / FOLDER
        day = _day(request.query_params.get("day", "")) or last_at(folder)[:10]
        lines = list(lines_between(folder, day, f"{day}T99")) if day else []
        lines.reverse()
        pages = max(-(-len(lines) // LINES_A_PAGE), 1)
        page = min(_number(request.query_params.get("page", "")), pages)
        shown = [_row(line) for line in lines[(page - 1) * LINES_A_PAGE : page * LINES_A_PAGE]]
        verified = _verified(self._house.config()) if "verify" in request.query_params else None
        return self._drawing.page(
            "audit",
            request,
            day=day,
            n_lines=len(lines),
            lines=shown,
            page=page,
            pages=pages,
            kinds=KINDS,
            verified=verified,
        )

    def change_level(self, request: Request) -> Response:
        """As SIGUSR1 and SIGUSR2."""
        change = {"more": more, "less": less}.get(request.scope["visit"].fields.get("change", ""))
        if change is None:
            raise HTTPException(HTTPStatus.BAD_REQUEST)
        change()
        return RedirectResponse("/#log", HTTPStatus.SEE_OTHER)


def _warnings(config: PartyConfig) -> dict[str, str]:
    try:
        return certificate_warnings(config)
    except PartyError as error:
        return {config.name: error.problem.text(to_owner=True)}


@dataclass(frozen=True)
class _Certificate:
    """One certificate as it is shown. state: good, soon or bad."""

    name: str
    state: str
    words: str
    fingerprint: str = ""
    since: str = ""
    until: str = ""


def _certificate(name: str, pem: bytes) -> _Certificate:
    since, until = validity(pem)
    now = datetime.now(UTC)
    days = (until - now).days
    if not since <= now < until:
        state, words = "bad", "not valid now"
    else:
        state = "soon" if expires_soon(pem) else "good"
        words = f"{days} days left"
    return _Certificate(name, state, words, fingerprint(pem), in_words(since), in_words(until))


def _unusable(name: str, problem: Problem) -> _Certificate:
    return _Certificate(name, "bad", f"cannot be used: {problem.text(to_owner=True)}")


def _day(text: str) -> str:
    with suppress(ValueError):
        return datetime.strptime(text, "%Y-%m-%d").strftime("%Y-%m-%d")
    return ""


def _number(text: str) -> int:
    return max(int(text), 1) if text.isascii() and text.isdigit() and len(text) < 7 else 1


def _row(line: Line) -> dict[str, Any]:
    """A line of the audit: its job and run apart from what else it says, which is long if it says much."""
    rest = {key: value for key, value in line.fields.items() if key not in ("job", "run", "salt")}
    words = [
        (key.replace("_", " "), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in rest.items()
    ]
    return {
        "n": line.n,
        "at": line.at,
        "what": line.what,
        "job": str(line.fields.get("job", "")),
        "run": str(line.fields.get("run", "")),
        "short": [(key, value) for key, value in words if len(value) <= 90],
        "long": [(key, value) for key, value in words if len(value) > 90],
    }


def _verified(config: PartyConfig) -> dict[str, Any]:
    """What `party audit verify` says."""
    try:
        found = check(config.state_dir / FOLDER)
        n_held = compare(found, found.held)
    except PartyError as error:
        return {"holds": False, "words": error.problem.text(to_owner=True), "notes": []}
    words = f"{found.head.n} lines, each follows the one before it; {n_held} ends that others hold are in it"
    return {"holds": True, "words": words, "notes": found.notes, "end": found.head.digest}
