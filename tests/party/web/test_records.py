"""What the owner's page shows: what runs, releases, budget, audit, certificates, the log's level."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.folder import OWN_ACCOUNT
from party.operations.levels import OURS
from party.owner.audit import FOLDER, Audit
from party.states import Admitted, Begun, Closed, Session, Submitted
from party.web.drawing import FOLDER as TEMPLATES
from party.web.house import STAGES
from party.web.records import LINES_A_PAGE
from party.web.releases import SANDBOX
from tests.support.approving import asking_network, task_called
from tests.support.network import Network
from tests.support.pages import Caller, Site, page_of
from tests.support.samples import PARTIES

A, B, _ = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return asking_network(tmp_path / "net")


@pytest.fixture
def site(net: Network) -> Iterator[Site]:
    with page_of(net, A) as site:
        yield site


@pytest.fixture
def anna(site: Site) -> Caller:
    return site.signed_in()


# ---- what runs


def running(state: type[Any]) -> Session:
    """As much of a session as can be seen."""
    task = task_called("discharges")
    key = SimpleNamespace(run=b"r" * 16)
    began = datetime(2026, 11, 24, tzinfo=UTC)
    fields = {
        "task": task,
        "coordinator": "clinic",
        "key": key,
        "began": began,
        "phase": "grow",
        "n_turns": 7,
    }
    return cast(Session, SimpleNamespace(**fields, state=object.__new__(state)))


def test_a_job_that_runs_is_shown_with_how_far_it_is(site: Site, anna: Caller) -> None:
    assert "No job runs." in anna.get("/running").text
    assert "No job runs." in anna.get("/").text
    site.place.session = running(Begun)
    page = anna.get("/running").text
    for said in ("discharges", "clinic", "grow, iteration 7", ", ".join(PARTIES), "2026-11-24 00:00:00 UTC"):
        assert said in page
    step = list(STAGES).index(Begun) + 1
    assert f"Step {step} of {len(STAGES)}: {STAGES[Begun]}" in page
    assert f'<progress id="progress" max="{len(STAGES)}" value="{step}">' in page
    assert "discharges" in anna.get("/").text


def test_steps_follow_each_other(site: Site, anna: Caller) -> None:
    steps = []
    for state in (Submitted, Admitted, Begun):
        site.place.session = running(state)
        found = re.search(r"Step (\d+) of", anna.get("/running").text)
        assert found
        steps.append(int(found[1]))
    assert steps == [1, 4, 5]
    site.place.session = running(Closed)
    assert "it is over" in anna.get("/running").text


def test_who_waits_for_a_turn_is_shown(site: Site, anna: Caller) -> None:
    site.place.take("first")
    for name in ("second", "third"):
        site.place.queue(name, site.config.limits)
    assert "second, third" in anna.get("/").text
    assert re.search(r"<ol>\s*<li>second</li>\s*<li>third</li>", anna.get("/running").text)


def test_why_no_job_would_be_taken_is_shown(site: Site, anna: Caller) -> None:
    assert "No job would be taken now" not in anna.get("/").text
    site.why_not = ("state", "leaving")
    assert "No job would be taken now: state, leaving." in anna.get("/").text


def test_what_waits_for_the_owner_and_what_ends_is_shown(site: Site, anna: Caller) -> None:
    assert "No job waits for a decision." in anna.get("/").text
    site.proposed(task_called("discharges"))
    page = anna.get("/").text
    assert '<a href="/jobs/1">discharges</a>' in page
    assert "nobody need decide after" in page
    site.net.change(A, lambda fields: fields["policy"].update(approval="automatic"))
    assert "Nobody is asked" in anna.get("/").text
    assert "Nobody is asked" in anna.get("/jobs").text


# ---- releases


def release(site: Site, name: str = "sample-0123456789ab", **files: str) -> Path:
    folder = site.state / "releases" / name
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file.replace("_", ".")).write_text(text)
    return folder


def test_a_release_is_shown_with_its_report(site: Site, anna: Caller) -> None:
    assert "Nothing was delivered here." in anna.get("/releases").text
    folder = release(site, report_json='{"job": "<b>sample</b>",\n "rows": 20}', anonymized_csv="secret,row")
    (folder / OWN_ACCOUNT).write_text(json.dumps({"in_words": ["20 rows read"]}))
    assert "sample-0123456789ab" in anna.get("/releases").text
    page = anna.get("/releases/sample-0123456789ab").text
    assert "20 rows read" in page
    assert "&lt;b&gt;sample&lt;/b&gt;&#34;,\n &#34;rows&#34;: 20}" in page
    said = anna.get("/releases/sample-0123456789ab/report.json")
    assert (said.status, json.loads(said.body)["rows"]) == (200, 20)
    assert said.head["content-type"] == "application/json"
    assert said.head["content-disposition"].startswith("attachment; ")


def test_a_report_as_a_page_comes_in_a_sandbox(site: Site, anna: Caller) -> None:
    release(site, report_html="<script>alert(1)</script>")
    said = anna.get("/releases/sample-0123456789ab/report.html")
    assert (said.status, said.text) == (200, "<script>alert(1)</script>")
    assert said.head["content-security-policy"] == SANDBOX
    assert SANDBOX.split("; ")[:2] == ["sandbox", "default-src 'none'"]
    assert "script" not in SANDBOX
    assert said.head["x-content-type-options"] == "nosniff"


def test_a_report_that_is_too_long_for_a_page_is_said_to_be(site: Site, anna: Caller) -> None:
    release(site, report_json='"' + "x" * (300 << 10) + '"')
    page = anna.get("/releases/sample-0123456789ab")
    assert "too long for a page" in page.text
    assert len(page.body) < 10_000


@pytest.mark.parametrize(
    "path",
    [
        "/releases/..",
        "/releases/../approvals.sqlite",
        "/releases/..%2F..%2Fparty.yaml",
        "/releases/%2e%2e/approvals.sqlite",
        "/releases/sample-0123456789ab/..%2f..%2fapprovals.sqlite",
        "/releases/sample-0123456789ab/../../approvals.sqlite",
        "/releases/sample-0123456789ab/anonymized.csv",
        f"/releases/sample-0123456789ab/{OWN_ACCOUNT}",
        "/releases/sample-0123456789ab/report.html",
        "/releases/sample-0123456789ab/%2Fetc%2Fpasswd",
        "/releases/.sample-0123456789ab-abcdefgh",
        "/releases/linked",
        "/releases/linked/report.json",
        "/releases/%00",
        "/style.css/../../app.py",
    ],
)
def test_nothing_but_reports_of_releases_is_served(site: Site, anna: Caller, path: str) -> None:
    site.proposed(task_called())  # so that there are approvals
    folder = release(site, report_json="{}", anonymized_csv="secret,row")
    (folder / OWN_ACCOUNT).write_text("{}")
    (folder / "report.html").symlink_to(site.state / "approvals.sqlite")
    release(site, ".sample-0123456789ab-abcdefgh", report_json="{}")
    (site.state / "releases" / "linked").symlink_to(folder)
    assert anna.get(path).status == 404
    assert anna.get("/releases/sample-0123456789ab/report.json").status == 200


# ---- audit


def test_the_lines_of_a_day_are_shown_page_by_page(site: Site, anna: Caller) -> None:
    audit = Audit(site.state, clock=lambda: datetime(2026, 3, 1, 12, tzinfo=UTC))
    for n in range(LINES_A_PAGE + 5):
        audit.write("refusal", caller=f"stranger-{n:03}")
    Audit(site.state, clock=lambda: datetime(2026, 3, 2, 8, tzinfo=UTC)).write("stop")
    page = anna.get("/audit?day=2026-03-01").text
    assert f"Lines of 2026-03-01 (UTC): {LINES_A_PAGE + 5}, the latest first; page 1 of 2" in page
    shown = [n for n in range(LINES_A_PAGE + 5) if f"stranger-{n:03}" in page]
    assert shown == list(range(5, LINES_A_PAGE + 5))
    page = anna.get("/audit?day=2026-03-01&page=2").text
    assert [n for n in range(LINES_A_PAGE + 5) if f"stranger-{n:03}" in page] == list(range(5))
    page = anna.get("/audit?day=2026-03-02").text
    assert "Lines of 2026-03-02 (UTC): 1" in page
    assert "stranger" not in page
    assert "No line is of 2026-02-28." in anna.get("/audit?day=2026-02-28").text


def test_without_a_day_the_last_one_is_shown(anna: Caller) -> None:
    """The line of who signed in is there."""
    page = anna.get("/audit?day=nonsense&page=-1").text
    assert "sign-in" in page
    assert f'value="{datetime.now(UTC):%Y-%m}' in page


def test_whether_the_chain_holds_is_said_when_it_is_asked(site: Site, anna: Caller) -> None:
    assert "The chain" not in anna.get("/audit").text
    assert "The chain holds." in anna.get("/audit?verify=yes").text
    (file,) = (site.state / FOLDER).glob("*.jsonl")
    Audit(site.state).write("stop")
    file.write_bytes(file.read_bytes().replace(b"anna", b"berta", 1))
    page = anna.get("/audit?verify=yes").text
    assert "The chain is broken." in page
    assert "audit-broken" in page


# ---- the rest


def test_the_budget_is_what_party_budget_says(anna: Caller) -> None:
    page = anna.get("/budget").text
    assert "epsilon 0 spent" in page
    assert "questions: 0 of" in page
    assert "Nothing was charged." in page


def test_certificates_are_shown_and_which_cannot_be_used(site: Site, anna: Caller) -> None:
    page = anna.get("/certificates").text
    assert page.count("days left") == len(PARTIES) + 1
    assert f"{A} (we)" in page
    (site.net.root / B / "tls" / "certificate.pem").write_text("none")
    assert "cannot be used" in anna.get("/certificates").text
    assert f"of {B} cannot be used" in anna.get("/").text


@pytest.fixture
def levels() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in OURS}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("levels")
def test_how_much_is_logged_is_changed(anna: Caller) -> None:
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    form = anna.get("/").value("form")
    assert "at the level <strong>info</strong>" in anna.get("/").text
    assert anna.post("/log-level", {"form": form, "change": "more"}).status == 303
    assert "at the level <strong>debug</strong>" in anna.get("/").text
    for _ in range(2):
        anna.post("/log-level", {"form": form, "change": "less"})
    assert logging.getLogger("party").level == logging.WARNING
    assert anna.post("/log-level", {"form": form, "change": "all"}).status == 400


# ---- how it looks


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1."""
    style = (TEMPLATES / "style.css").read_text()
    first, second = re.findall(r":root \{([^}]*)\}", style)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", first if scheme == "light" else second))
    pairs = [
        *((ink, paper) for ink in ("ink", "soft", "accent", "bad") for paper in ("paper", "card")),
        *((name, f"{name}-paper") for name in ("good", "warn", "bad")),
        ("on-accent", "accent"),
    ]
    too_little = [(a, b) for a, b in pairs if _contrast(colours[a], colours[b]) < 4.5]
    assert too_little == []
