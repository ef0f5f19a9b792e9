"""Pages of the owner: functions of a visit."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from http import HTTPStatus
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.responses import HTMLResponse, RedirectResponse, Response

from crypto.rng import SystemRng
from jobs.data.counted import counted
from jobs.errors import MAX_SHARED_CHARS, ConfigError, PartyError
from jobs.loading import read_task
from jobs.page.page import PAGE
from party.owner.accounts import release_folders
from party.owner.approvals import Approvals, Proposal, decided_meanwhile, terms_of
from party.owner.asked import asked, numbers_of_warnings, state_of
from party.owner.audit import Audit, Line, as_csv
from party.owner.budget import answer_line, budget, entry_lines
from party.owner.config import NodeConfig, PartyConfig, certificate_warnings
from party.owner.deciding import MOST_RUNS, approve, deny
from party.owner.identity import fingerprint, in_words, read_bytes, validity
from party.web.visit import Visit, page, streamed

_MOST_DECIDED = 20
_MOST_COUNTED = 20
"""Most waiting jobs of which the list has the numbers of warnings."""
_MOST_LINES = 200
_MOST_RELEASES = 200
_EVENTS = (
    "begun-anew",
    "charge",
    "checked",
    "configuration",
    "decision",
    "failure",
    "heads",
    "proposal",
    "refusal",
    "release",
    "reveal",
    "sent",
    "serve",
    "sign-in",
    "sign-out",
    "start",
    "stop",
)
"""Events of an audit, as in docs/operation.md."""
_SHORT, _SECONDS = 12, len("12:00:00")
_DIGEST = re.compile("[0-9a-f]{32,}")


def see_other(path: str) -> Response:
    """Return the answer to a form: the browser loads a page, and does not send the form again."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER)


def not_found(visit: Visit) -> Response:
    words = {"words": "There is no such page here.", "remedy": ""}
    return page(visit, "problem.html", HTTPStatus.NOT_FOUND, title="Not found", **words)


# ---- jobs


def jobs(visit: Visit) -> Response:
    """Show jobs that wait, the running job, and the last decisions."""
    approvals = Approvals(visit.config.state_dir)
    states = [(each, *state_of(visit.config, each, visit.now)) for each in approvals.waiting(visit.now)]
    waiting = [(each, words) for each, state, words in states if state == "waiting"]
    first = [each for each, _ in waiting[:_MOST_COUNTED]]
    warnings = numbers_of_warnings(visit.config, first, visit.now)
    # An approval that had lapsed may hold again: a clock was put right, or a certificate was put back.
    again = [each for each, state, _ in states if state != "waiting" and each.decision is not None]
    decided = [*again, *approvals.decided(_MOST_DECIDED, visit.now)]
    decided.sort(key=lambda each: each.last_decision, reverse=True)
    return page(
        visit,
        "jobs.html",
        as_of=in_words(visit.now),
        current=visit.current,
        waiting=[
            _listed(each, words) | {"warnings": counted(number, "warning", "warnings") if number else ""}
            for (each, words), number in zip_longest(waiting, warnings)
        ],
        decided=[_listed(each, _words(visit, each)) for each in decided[:_MOST_DECIDED]],
    )


def _words(visit: Visit, proposal: Proposal) -> str:
    return state_of(visit.config, proposal, visit.now)[1]


def _listed(proposal: Proposal, words: str) -> dict[str, str]:
    return {
        "name": proposal.job,
        "coordinator": proposal.coordinator,
        "digest": proposal.job_sha256,
        "path": _path_of(proposal),
        "words": words,
    }


def _path_of(proposal: Proposal) -> str:
    return f"/jobs/{proposal.job_sha256}/{quote(proposal.coordinator, safe='')}"


def _proposal(visit: Visit) -> Proposal | None:
    approvals = Approvals(visit.config.state_dir)
    return approvals.exactly(visit.names["digest"], visit.names["coordinator"], visit.now)


def job(visit: Visit) -> Response:
    """Show a job as `party show` does, with the forms of a decision."""
    proposal = _proposal(visit)
    if proposal is None:
        return not_found(visit)
    return page(
        visit,
        "job.html",
        job=_listed(proposal, _words(visit, proposal)),
        parts=asked(visit.config, proposal, visit.now),
        seen=_seen(visit, proposal),
        most_runs=MOST_RUNS,
        most_chars=MAX_SHARED_CHARS,
        today=f"{visit.now:%Y-%m-%d}",
    )


def _seen(visit: Visit, proposal: Proposal) -> str:
    """Return a digest of everything that a decision depends on beside the job: a form is of what its page showed."""
    try:
        terms = terms_of(visit.config, read_task(proposal.bundle), proposal.coordinator).as_text()
    except PartyError:  # the page says why; the form to approve fails with the same words
        terms = ""
    return hashlib.sha256(f"{proposal.last_decision} {terms}".encode()).hexdigest()


def _decidable(visit: Visit) -> Proposal | None:
    """Return the job of a form. Raises ConfigError if anything has changed since the owner loaded the form."""
    proposal = _proposal(visit)
    if proposal is not None and visit.form.get("seen", "") != _seen(visit, proposal):
        raise decided_meanwhile()
    return proposal


def approve_job(visit: Visit) -> Response:
    """Take the form that approves a job. Raises PartyError."""
    proposal = _decidable(visit)
    if proposal is None:
        return not_found(visit)
    runs, until = _runs(visit.form.get("runs", "")), _end_of(visit.form.get("until", ""))
    approve(visit.config, proposal, visit.by, visit.now, runs=runs, until=until)
    return see_other(_path_of(proposal))


def _runs(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ConfigError("usage", f"{text!r} is no number of runs", remedy=f"write 1 to {MOST_RUNS}")
    return int(text)


def _end_of(text: str) -> datetime | None:
    """Read a day; return its end, or None without a day."""
    try:
        return datetime.combine(date.fromisoformat(text), time.max, UTC) if text else None
    except ValueError:
        raise ConfigError("usage", f"{text!r} is no day", remedy="write a day as 2026-12-31") from None


def deny_job(visit: Visit) -> Response:
    """Take the form that denies a job. Raises PartyError."""
    proposal = _decidable(visit)
    if proposal is None:
        return not_found(visit)
    reason = " ".join(visit.form.get("reason", "").split())  # in one line, as the coordinator reads the words
    deny(visit.config, proposal, visit.by, visit.now, reason)
    return see_other(_path_of(proposal))


# ---- releases


def releases(visit: Visit) -> Response:
    """List the releases that were delivered to us."""
    found = sorted(
        release_folders(visit.config.state_dir), key=lambda folder: (-folder.stat().st_mtime_ns, folder.name)
    )
    listed = [
        {
            "name": folder.name,
            "path": f"/releases/{quote(folder.name, safe='')}/{PAGE}" if _has_page(folder) else "",
            "delivered": in_words(datetime.fromtimestamp(folder.stat().st_mtime, UTC)),
        }
        for folder in found[:_MOST_RELEASES]
    ]
    return page(visit, "releases.html", releases=listed)


def _has_page(folder: Path) -> bool:
    return (folder / PAGE).is_file() and not (folder / PAGE).is_symlink()


def release(visit: Visit) -> Response:
    """Show the page of a release, in a sandbox. The folder is found by listing, never opened by the asked name."""
    named = [
        each
        for each in release_folders(visit.config.state_dir)
        if each.name == visit.names["folder"] and _has_page(each)
    ]
    if not named:
        return not_found(visit)
    content = (named[0] / PAGE).read_bytes()
    return HTMLResponse(content, headers={"content-security-policy": policy_of_release(content)})


def policy_of_release(content: bytes) -> str:
    """Return the policy of a page with the data of others: one style by its digest, and nothing else."""
    styles = re.findall(rb"<style>(.*?)</style>", content, re.DOTALL)[:1]
    allowed = [f"'sha256-{b64encode(hashlib.sha256(style).digest()).decode()}'" for style in styles]
    style = " ".join(allowed) or "'none'"
    nothing = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
    return f"default-src 'none'; style-src {style}; {nothing}"


# ---- budget, audit, certificates


def budget_page(visit: Visit) -> Response:
    """Show what `party budget` shows. Raises BudgetError."""
    found = budget(visit.config)
    lines = [[line.strip() for line in entry_lines(entry)] for entry in reversed(found.entries)]
    return page(
        visit,
        "budget.html",
        data_set=visit.config.data.data_set,
        words=found.words(),
        charges=[(first, others) for first, *others in lines],
        answers=[answer_line(answer) for answer in found.given],
    )


def _audit(config: PartyConfig) -> Audit:
    return Audit(config.state_dir, SystemRng())


def audit(visit: Visit) -> Response:
    """Show the last lines of the audit; check all lines if asked to. Raises PartyError."""
    audit, event, verify = _audit(visit.config), visit.asked.get("event", ""), "verify" in visit.asked
    event = event if event in _EVENTS else ""
    return page(
        visit,
        "audit.html",
        events=_EVENTS,
        event=event,
        most=_MOST_LINES,
        checked=audit.checked() if verify else None,
        lines=[_row(line) for line in audit.last(_MOST_LINES, event)],
    )


def _row(line: Line) -> dict[str, Any]:
    told = {key: value for key, value in line.facts.items() if value not in ("", None)}
    facts = "; ".join(f"{key}: {_fact(value)}" for key, value in told.items())
    day, _, rest = line.time.partition("T")
    when = f"{day} {rest[:_SECONDS]} UTC" if line.time.endswith("+00:00") else line.time
    return {"number": line.number, "time": when, "event": line.event, "facts": facts}


def _fact(value: Any) -> str:
    if isinstance(value, str):
        return value[:_SHORT] if _DIGEST.fullmatch(value) else value
    return json.dumps(value, ensure_ascii=False)


def audit_csv(visit: Visit) -> Response:
    """Return what `party audit export` prints, as far as the time of a connection suffices."""
    name = {"content-disposition": 'attachment; filename="audit.csv"'}
    return streamed(visit, as_csv(_audit(visit.config).lines()), "text/csv; charset=utf-8", name)


def certificates(visit: Visit) -> Response:
    """Show our certificate and the certificates of the peers, with their ends and warnings."""
    return page(visit, "certificates.html", certificates=list(_certificates(visit.config)))


def _certificates(config: NodeConfig) -> Iterator[dict[str, Any]]:
    warnings = _warnings(config)
    files = {name: entry.certificate for name, entry in config.peers.items()}
    for name, file in {config.name: config.tls.certificate, **files}.items():
        yield {
            "name": name,
            "ours": name == config.name,
            "warning": warnings.get(name, ""),
            **_of_certificate(file),
        }


def _warnings(config: NodeConfig) -> Mapping[str, str]:
    """Return the warnings by name. An identity of ours that cannot be used hides the warnings about peers."""
    try:
        return certificate_warnings(config)
    except PartyError as error:
        return {config.name: f"cannot be used: {error.problem.text(to_owner=True)}"}


def _of_certificate(file: Path) -> dict[str, str]:
    try:
        pem = read_bytes(file)
        since, until = validity(pem)
    except PartyError:  # the warning says why
        return {"since": "", "until": "", "fingerprint": ""}
    return {"since": in_words(since), "until": in_words(until), "fingerprint": fingerprint(pem)}
