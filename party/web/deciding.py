"""The pages of proposed jobs: what each would do, and the two forms with which its owner decides.

A form brings back what was shown with it: if anything of that has changed meanwhile, in the proposal or in what an
approval would bind, nothing is decided and the page is shown anew.
"""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jobs.errors import PartyError, printable
from party.owner.approvals import Approvals, Binding, Decision, Proposal
from party.owner.asking import Asked, proposal_fields, proposals
from party.owner.config import PartyConfig
from party.owner.deciding import end_of
from party.web.drawing import Drawing
from party.web.house import House

MOST_RUNS, MOST_REASON_CHARS = 1_000_000, 500


class Deciding:
    """Those pages."""

    def __init__(self, drawing: Drawing, house: House) -> None:
        self._drawing = drawing
        self._house = house

    def jobs(self, request: Request) -> Response:
        """All that is proposed, the latest first."""
        config = self._house.config()
        found = [(proposal.number, fields) for proposal, fields in reversed(proposals(config))]
        return self._drawing.page("jobs", request, found=found, asked=config.policy.approval == "required")

    def job(self, request: Request) -> Response:
        """One of them, in plain language."""
        return self._job(request)

    def approve(self, request: Request) -> Response:
        """Let it run."""
        given = request.scope["visit"].fields
        wrong, decision = _decision(given, request.scope["visit"].signed_in.who)
        if wrong:
            return self._job(request, HTTPStatus.BAD_REQUEST, given=given, wrong=wrong)
        config, proposal = self._found(request)
        try:
            binding = proposal.binding_now(config)
            _check_shown(given, proposal, binding)
            Approvals(config.state_dir).approve(proposal, binding, decision)
        except PartyError as error:
            return self._job(request, HTTPStatus.CONFLICT, given=given, failed=error)
        return RedirectResponse(request.url.path.rpartition("/")[0], HTTPStatus.SEE_OTHER)

    def deny(self, request: Request) -> Response:
        """Let it not run, or no more."""
        given = request.scope["visit"].fields
        reason = printable(given.get("reason", "").strip(), None)
        if not 0 < len(reason) <= MOST_REASON_CHARS:
            words = f"Write a reason of at most {MOST_REASON_CHARS} characters: the coordinator reads it."
            return self._job(request, HTTPStatus.BAD_REQUEST, given=given, wrong={"reason": words})
        config, proposal = self._found(request)
        try:
            _check_shown(given, proposal, None)
            Approvals(config.state_dir).deny(proposal, reason, request.scope["visit"].signed_in.who)
        except PartyError as error:
            return self._job(request, HTTPStatus.CONFLICT, given=given, failed=error)
        return RedirectResponse(request.url.path.rpartition("/")[0], HTTPStatus.SEE_OTHER)

    def _found(self, request: Request) -> tuple[PartyConfig, Proposal]:
        config = self._house.config()
        number = request.path_params["number"]
        for proposal in Approvals(config.state_dir).listed():
            if proposal.number == number:
                return config, proposal
        raise HTTPException(HTTPStatus.NOT_FOUND)

    def _job(
        self,
        request: Request,
        status: HTTPStatus = HTTPStatus.OK,
        failed: PartyError | None = None,
        **values: Any,
    ) -> Response:
        """The page; what it says is what was shown from now on."""
        config, proposal = self._found(request)
        approvals = Approvals(config.state_dir)
        sections: list[tuple[str, list[str]]] = []
        shown = ""
        try:
            binding = proposal.binding_now(config)
            asked = Asked(config, proposal, binding, approvals.last_approved(proposal))
            sections, shown = asked.sections, _digest(binding)
            approvals.show(proposal, binding)
            fields = proposal_fields(proposal, binding)
        except PartyError as error:
            failed, fields = failed or error, proposal_fields(proposal, None)
        values = {"given": {}, "wrong": {}, **values}
        return self._drawing.page(
            "job",
            request,
            status,
            proposal=proposal,
            fields=fields,
            sections=sections,
            shown=shown,
            failed=failed.problem.text(to_owner=True) if failed else "",
            most_reason=MOST_REASON_CHARS,
            **values,
        )


def _decision(given: dict[str, str], who: str) -> tuple[dict[str, str], Decision]:
    """What is wrong, by field, and the decision if nothing is."""
    wrong: dict[str, str] = {}
    runs = until = None
    if text := given.get("runs", "").strip():
        if len(text) < 8 and text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_RUNS:
            runs = int(text)
        else:
            wrong["runs"] = "Write a whole number from 1 on, or leave it empty for any number of runs."
    if text := given.get("until", "").strip():
        try:
            until = end_of(text)
        except PartyError:
            wrong["until"] = "Write a day that is not over, such as 2030-12-31, or leave it empty."
    return wrong, Decision(who, runs, until)


def _check_shown(given: dict[str, str], proposal: Proposal, binding: Binding | None) -> None:
    """Raise PartyError unless the form was beside this proposal, and this binding if it is one to approve."""
    same = given.get("revision") == str(proposal.revision)
    if not same or (binding is not None and given.get("shown") != _digest(binding)):
        raise PartyError(
            "approval-changed",
            f"{proposal.job} has changed since this page was shown: nothing is decided",
            remedy="read it as it is now, then decide",
        )


def _digest(binding: Binding) -> str:
    return hashlib.sha256(binding.encoded.encode()).hexdigest()
