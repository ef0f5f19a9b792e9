"""Deciding on the owner's page: what was shown is what is decided, by whom, and as the command line does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from party.owner.approvals import Proposal
from party.owner.audit import FOLDER
from party.owner.audit_check import lines_of
from party.owner.identity import make_credentials
from tests.support.approving import approvals_of, asking_network, task_called
from tests.support.commands import invoke
from tests.support.pages import Caller, Site, page_of
from tests.support.samples import PARTIES, columns

A, B, _ = PARTIES
APPROVE, DENY = "/jobs/1/approve", "/jobs/1/deny"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with page_of(asking_network(tmp_path / "net"), A) as site:
        site.proposed(task_called())
        yield site


@pytest.fixture
def anna(site: Site) -> Caller:
    return site.signed_in()


def fields_of(anna: Caller, path: str = "/jobs/1", **more: str) -> dict[str, str]:
    page = anna.get(path)
    return {name: page.value(name) for name in ("form", "revision", "shown")} | more


def kept(site: Site) -> Proposal:
    return approvals_of(site.net, A).found("sample")


def test_the_page_says_what_party_show_says(site: Site, anna: Caller) -> None:
    shown = invoke("party", "show", "sample", "--config", site.net.config_path(A)).out
    page = anna.get("/jobs/1").text
    lines = [line.strip().removesuffix(":") for line in shown.splitlines()[2:-1]]
    assert len(lines) > 20
    missing = [line for line in lines if line.replace("'", "&#39;").replace(">", "&gt;") not in page]
    assert missing == []


def test_a_job_is_approved_by_who_called_party_web(site: Site, anna: Caller) -> None:
    said = anna.post(APPROVE, fields_of(anna, runs="2", until="2999-12-31"))
    assert (said.status, said.head["location"]) == (303, "/jobs/1")
    found = kept(site)
    assert (found.state, found.runs, found.decided_by) == ("approved", 2, "anna")
    assert found.until == datetime(3000, 1, 1, tzinfo=UTC).timestamp()
    assert "last decided by anna" in anna.get("/jobs/1").text
    line = [each for each in lines_of(site.state / FOLDER) if each.what == "decision"][-1]
    assert (line.fields["by"], line.fields["decided"], line.fields["runs"]) == ("anna", "approved", 2)
    assert line.fields["until"] == "3000-01-01T00:00:00+00:00"
    shown = invoke("party", "jobs", "--config", site.net.config_path(A)).out
    assert "approved" in shown


def test_a_job_is_approved_for_any_number_of_runs(site: Site, anna: Caller) -> None:
    assert anna.post(APPROVE, fields_of(anna, runs="", until="")).status == 303
    assert (kept(site).state, kept(site).runs, kept(site).until) == ("approved", None, None)


def test_a_job_is_denied_with_a_reason_and_an_approval_taken_back(site: Site, anna: Caller) -> None:
    anna.post(APPROVE, fields_of(anna))
    assert anna.post(DENY, fields_of(anna, reason="  no ethics\nvote ")).status == 303
    found = kept(site)
    assert (found.state, found.reason, found.decided_by) == ("denied", "no ethics vote", "anna")


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        *(
            (APPROVE, "runs", value)
            for value in ("zero", "0", "-1", "1.5", "1e3", "²", "9999999", "1" * 5000)
        ),
        *((APPROVE, "until", value) for value in ("tomorrow", "2001-01-01", "2999-13-01", "9" * 5000)),
        *((DENY, "reason", value) for value in ("", "   ", "x" * 501)),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_decided(
    site: Site, anna: Caller, path: str, field: str, value: str
) -> None:
    said = anna.post(path, fields_of(anna, **{field: value}))
    assert said.status == 400
    assert f'aria-describedby="{field}-what {field}-wrong" aria-invalid="true"' in said.text
    assert f'<p class="wrong" id="{field}-wrong" role="alert">' in said.text
    assert kept(site).state == "waiting"


def denied(site: Site) -> None:
    approvals_of(site.net, A).deny(kept(site), "no", "somebody")


def renewed(site: Site) -> None:
    """A peer has another certificate now."""
    (site.net.root / B / "tls" / "certificate.pem").write_bytes(make_credentials(B).certificate)


def shown_again(site: Site) -> None:
    """A certificate changed, and somebody read the job as it is now; not who has the form open."""
    renewed(site)
    approvals = approvals_of(site.net, A)
    approvals.show(kept(site), kept(site).binding_now(site.config))


@pytest.mark.parametrize("change", [denied, renewed, shown_again])
def test_what_changed_since_it_was_shown_is_not_approved(
    site: Site, anna: Caller, change: Callable[[Site], None]
) -> None:
    fields = fields_of(anna)
    change(site)
    before = kept(site)
    said = anna.post(APPROVE, fields)
    assert said.status == 409
    assert "approval-changed" in said.text
    assert kept(site).state == before.state != "approved"
    assert anna.post(APPROVE, fields_of(anna)).status == 303  # as it is shown now


def test_what_changed_since_it_was_shown_is_not_denied(site: Site, anna: Caller) -> None:
    fields = fields_of(anna, reason="no")
    approvals = approvals_of(site.net, A)
    binding = kept(site).binding_now(site.config)
    approvals.show(kept(site), binding)
    anna.post(APPROVE, fields_of(anna))
    assert anna.post(DENY, fields).status == 409
    assert kept(site).state == "approved"


def test_a_form_without_what_was_shown_approves_nothing(site: Site, anna: Caller) -> None:
    fields = fields_of(anna)
    for left_out in ("revision", "shown"):
        said = anna.post(APPROVE, {key: value for key, value in fields.items() if key != left_out})
        assert said.status == 409
    assert kept(site).state == "waiting"


def test_without_a_line_in_the_audit_nothing_is_decided(site: Site, anna: Caller) -> None:
    fields = fields_of(anna)
    lines = site.state / FOLDER
    (file,) = lines.glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b"proposal", b"proposed", 1))
    said = anna.post(APPROVE, fields)
    assert (said.status, "audit-broken" in said.text) == (409, True)
    assert kept(site).state == "waiting"


def test_what_cannot_be_bound_can_be_denied_alone(site: Site, anna: Caller) -> None:
    (site.net.root / B / "tls" / "certificate.pem").write_text("none")
    page = anna.get("/jobs/1")
    assert page.status == 200
    assert 'action="/jobs/1/approve"' not in page.text
    assert "tls-failed" in page.text
    fields = {name: page.value(name) for name in ("form", "revision")}
    assert anna.post(APPROVE, {**fields, "shown": ""}).status == 409
    assert anna.post(DENY, {**fields, "reason": "no"}).status == 303
    assert kept(site).state == "denied"


def test_a_job_that_is_none_is_not_there(site: Site, anna: Caller) -> None:
    fields = fields_of(anna)
    for number in ("2", "0", "999999999999999999999", "x"):
        assert anna.get(f"/jobs/{number}").status == 404
        assert anna.post(f"/jobs/{number}/approve", fields).status == 404


NASTY = "<script>alert(1)</script>\"'&"


def test_what_others_wrote_does_nothing(site: Site, anna: Caller) -> None:
    """Names of columns are the coordinator's, and a reason comes back to the page."""
    task = task_called(
        "other", columns=columns(**{NASTY: {"role": "sensitive", "domain": ["x", "<b>"], "values": ["<b>"]}})
    )
    number = site.proposed(task).number
    page = anna.get(f"/jobs/{number}").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    path = f"/jobs/{number}"
    assert anna.post(f"{path}/deny", fields_of(anna, path, reason=f"{NASTY} \u202eabc")).status == 303
    pages = [page, *(anna.get(each).text for each in (path, "/jobs", "/audit", "/"))]
    assert sum("&lt;script&gt;" in each for each in pages) >= 3
    for each in pages:
        assert "<script" not in each
        assert "<b>&lt;" not in each
        assert "\u202e" not in each
    said = anna.post(f"{path}/approve", fields_of(anna, path, runs=f'"><script>{NASTY}'))
    assert said.status == 400
    assert "<script" not in said.text
