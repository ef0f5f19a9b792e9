"""Pages say what the commands say, and show foreign text as text."""

from __future__ import annotations

import html
import json
import os
import re
import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import party.web.views
from jobs.errors import PolicyError
from jobs.page.html import document, tag
from jobs.page.page import PAGE
from party.owner.accounts import RELEASES
from party.owner.approvals import MOST_WAITING, Approvals, Decision, Terms, terms_of
from party.owner.audit import AUDIT
from party.owner.current import CurrentJob
from party.owner.deciding import user
from tests.support.commands import invoke
from tests.support.network import GUARD_S
from tests.support.owners_page import ME, Site, task_of
from tests.support.pages import Reader
from tests.support.samples import joint_job

EVIL = "<script>alert(1)</script>"


def text_of(site: Site, path: str) -> str:
    answer = site.get(path)
    assert answer.status == 200, answer.text
    return " ".join(" ".join(Reader(answer.text).texts).split())


def command(site: Site, *arguments: str) -> Any:
    ran = invoke("party", *arguments, "--config", site.net.config_path(ME), "--format", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def last_line(site: Site) -> dict[str, Any]:
    line = (site.net.config(ME).state_dir / AUDIT).read_bytes().splitlines()[-1]
    found: dict[str, Any] = json.loads(line)
    return found


# ---- jobs


def test_a_job_is_shown_as_by_the_command(site: Site) -> None:
    path = site.propose(name="shown")
    shown = "".join(text_of(site, path).split())
    for part in command(site, "show", path.split("/")[2])["parts"]:
        for words in (part["title"], *part["lines"]):
            assert "".join(words.replace("`", "").split()) in shown
    site.net.change(ME, lambda fields: fields["policy"].update(jobs=[path.split("/")[2]]))
    assert "(<code>policy.approval</code>, " in site.get(path).text
    assert "shown" not in text_of(site, "/")  # a pinned job waits for nobody
    site.net.change(ME, lambda fields: fields["policy"].pop("jobs"))


def test_a_decision_on_the_page_is_a_decision(site: Site) -> None:
    path = site.propose(name="decided")
    digest = path.split("/")[2]
    day = f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%d}"
    answer = site.send(path, f"{path}/approve", {"runs": "2", "until": day})
    assert (answer.status, answer.headers["location"]) == (303, path)
    by = f"{user()} (page)"
    words = f"approved by {by}, "
    (listed,) = [each for each in command(site, "jobs")["jobs"] if each["job_sha256"] == digest]
    assert listed["state"] == "approved"
    assert listed["words"].startswith(words)
    assert f"for 2 runs, until {day} 23:59:59 UTC" in listed["words"]
    assert words in text_of(site, path)
    assert words in text_of(site, "/")
    line = last_line(site)
    assert (line["event"], line["user"], line["approved"], line["runs"]) == ("decision", by, True, 2)

    answer = site.send(path, f"{path}/deny", {"reason": "too  fine\r\nfor us"})
    assert answer.status == 303
    assert f"denied by {by}" in text_of(site, path)
    assert (last_line(site)["approved"], last_line(site)["reason"]) == (False, "too fine for us")


@pytest.mark.parametrize(
    ("form", "field", "value", "words"),
    [
        ("approve", "runs", "0", "0 runs"),
        ("approve", "runs", "1000001", "1000001 runs"),
        ("approve", "runs", "-1", "is no number of runs"),
        ("approve", "runs", "٣", "is no number of runs"),
        ("approve", "runs", "", "is no number of runs"),
        ("approve", "until", "2020-01-01", "is over"),
        ("approve", "until", "tomorrow", "is no day"),
        ("approve", "until", EVIL, "is no day"),
        ("deny", "reason", "", "the reason is empty"),
        ("deny", "reason", " \n ", "the reason is empty"),
        ("deny", "reason", "x" * 501, "more than 500 characters"),
    ],
)
def test_a_wrong_form_decides_nothing(site: Site, form: str, field: str, value: str, words: str) -> None:
    path = site.propose(name="wrong")
    answer = site.send(path, f"{path}/{form}", {"runs": "1", field: value})
    assert answer.status == 400
    assert words in html.unescape(answer.text)
    assert "What to do" in answer.text
    assert EVIL not in answer.text
    digest = path.split("/")[2]
    (listed,) = [each for each in command(site, "jobs")["jobs"] if each["job_sha256"] == digest]
    assert listed["state"] == "waiting"


def test_a_form_is_of_what_its_page_showed(site: Site) -> None:
    """Another officer decides, or a certificate changes, while the page is open."""
    path = site.propose(name="stale")
    digest = path.split("/")[2]
    hidden = site.get(path).hidden(f"{path}/approve")
    command(site, "deny", digest, "--reason", "too fine")
    answer = site.ask("POST", f"{path}/approve", {**hidden, "runs": "1"})
    assert answer.status == 400
    assert "has changed since you looked; nothing was decided" in answer.text
    assert "denied by" in text_of(site, path)

    hidden = site.get(path).hidden(f"{path}/approve")
    other = next(iter(site.net.config(ME).peers.values())).certificate
    content = other.read_bytes()
    other.write_bytes(site.net.config(ME).tls.certificate.read_bytes())
    try:
        assert site.ask("POST", f"{path}/approve", {**hidden, "runs": "1"}).status == 400
    finally:
        other.write_bytes(content)
    assert "denied by" in text_of(site, path)
    for seen in ("", "0" * 64):
        assert site.ask("POST", f"{path}/approve", {**hidden, "runs": "1", "seen": seen}).status == 400
    assert site.ask("POST", f"{path}/approve", {**hidden, "runs": "1"}).status == 303


def test_a_trap_shows_before_any_decision(site: Site) -> None:
    """A job with a changed protected value beside an honest job of the same name, of which neither is approved."""
    job = joint_job()
    surgery = job["columns"]["surgery"]
    trap = {**surgery, "values": [value for value in surgery["domain"] if value not in surgery["values"]][:1]}
    honest = site.propose(name="trapped")
    changed = site.propose("registry", name="trapped", columns={**job["columns"], "surgery": trap})
    shown = text_of(site, changed)
    assert "Look at this: What differs from the job of this name that waits" in shown
    difference = (
        f"surgery: {surgery['values'][0]} is no longer protected; {trap['values'][0]} is protected now"
    )
    assert difference in shown
    assert shown.index(difference) < shown.index("What everybody will see")
    site.send(honest, f"{honest}/approve", {"runs": "1"})
    assert "Look at this: What differs from the last approved job of this name" in text_of(site, changed)
    site.send(changed, f"{changed}/deny", {"reason": "why?"})
    assert "Look at this: What differs from the job of this name that was denied" in text_of(site, honest)


def test_a_trap_under_a_new_name_shows(site: Site) -> None:
    """Without another job of the name, the most similar approved job of the same parties tells what was agreed to."""
    columns = joint_job()["columns"]
    own = {**columns, "ward": {"role": "qid", "taxonomy": {"Any": ["A", "B"]}}}
    for name, given in (("agreed", own), ("narrower", columns)):
        path = site.propose(name=name, columns=given)
        site.send(path, f"{path}/approve", {"runs": "1"})
    trap = site.propose(
        name="renamed", columns={**own, "surgery": {**columns["surgery"], "values": ["Heart"]}}
    )
    shown = text_of(site, trap)
    assert "Look at this: What differs from the last approved job of these parties (agreed)" in shown
    assert "surgery: Rare is no longer protected; Heart is protected now" in shown
    parts = command(site, "show", trap.split("/")[2])["parts"]
    n_warnings = sum(part["warning"] for part in parts)
    assert n_warnings == 2  # the policy refuses the job, too
    waiting, decided = text_of(site, "/").split("Last decisions")
    assert re.search(rf"renamed from coordinator, [^,]+ UTC {n_warnings} warnings", waiting)
    assert "warning" not in decided


def test_another_job_of_other_parties_is_not_compared(site: Site) -> None:
    job = joint_job()
    path = site.propose(name="agreed-by-three")
    site.send(path, f"{path}/approve", {"runs": "1"})
    parties = {**job["parties"], "hospital-d": {}}
    shown = text_of(site, site.propose(name="of-four", parties=parties))
    assert "no other job of this name was approved here" in shown
    assert "of these parties" not in shown


def test_columns_without_protection_are_a_warning(site: Site) -> None:
    assert "Published without protection" not in text_of(site, site.propose(name="protected"))
    columns = {
        **joint_job()["columns"],
        "ward": {"role": "plain"},
        "patient_no": {"role": "plain", "publish_as_is": "true"},
    }
    path = site.propose(name="unprotected", columns=columns)
    shown = text_of(site, path)
    assert "Look at this: Published without protection" in shown
    assert "ward: whoever knows a person's value finds the person's row" in shown
    assert "patient_no: 'patient' in the name suggests values of a single person" in shown
    parts = command(site, "show", path.split("/")[2])["parts"]
    titles = [part["title"] for part in parts if part["warning"]]
    assert [title for title in titles if not title.startswith("What differs")] == [
        "Decision",
        "Published without protection",
    ]


def test_a_lapsed_job_that_is_asked_for_again_is_under_what_waits(site: Site) -> None:
    path = site.propose(name="lapsed")
    site.send(path, f"{path}/approve", {"runs": "1", "until": f"{datetime.now(UTC):%Y-%m-%d}"})
    waits = "Waiting for a decision"
    assert text_of(site, "/").rindex("lapsed") > text_of(site, "/").index("Last decisions")
    config, task, now = site.net.config(ME), task_of(name="lapsed"), datetime.now(UTC)
    site.approvals.begin(task.digest, "coordinator", terms_of(config, task, "coordinator"), bytes(16), now)
    site.approvals.ask_again(task, "coordinator", now)
    shown = text_of(site, "/")
    assert shown.index(waits) < shown.index("lapsed") < shown.index("Last decisions")


def test_an_approval_that_holds_again_is_among_the_decisions(site: Site) -> None:
    """The coordinator asked for the job again while the clock of the party was wrong."""
    path = site.propose(name="holds-again")
    until = datetime.now(UTC) + timedelta(days=1)
    site.send(path, f"{path}/approve", {"runs": "2", "until": f"{until:%Y-%m-%d}"})
    site.approvals.ask_again(task_of(name="holds-again"), "coordinator", until + timedelta(days=9))
    waiting, decided = text_of(site, "/").split("Last decisions")
    assert ("holds-again" in waiting, "holds-again" in decided) == (False, True)


@pytest.mark.parametrize("asked_again", [False, True])
def test_an_approval_is_not_over_if_the_policy_asks_for_none(site: Site, asked_again: bool) -> None:
    name = f"needs-none-{asked_again}".lower()
    path, now = site.propose(name=name), datetime.now(UTC)
    site.send(path, f"{path}/approve", {"runs": "1"})
    config, task = site.net.config(ME), task_of(name=name)
    run = task.digest[:16]
    site.approvals.begin(task.digest, "coordinator", terms_of(config, task, "coordinator"), run, now)
    if asked_again:
        site.approvals.ask_again(task, "coordinator", now)
    site.net.change(ME, lambda fields: fields["policy"].update(approval="automatic"))
    try:
        (job,) = [each for each in command(site, "jobs")["jobs"] if each["job"] == name]
        waiting, decided = text_of(site, "/").split("Last decisions")
    finally:
        site.net.change(ME, lambda fields: fields["policy"].pop("approval"))
    assert job["state"] == "approved"
    assert job["words"].endswith("for 1 run; begun: 1; the policy asks for none")
    assert (name in waiting, name in decided) == (False, True)


def test_a_job_is_of_one_coordinator(site: Site) -> None:
    path = site.propose(name="of-one")
    for other in (
        path.replace("/coordinator", "/registry"),
        path.replace("/jobs/", "/jobs/0"),
        path.upper().replace("/JOBS", "/jobs"),
        "/jobs/../jobs/x/y",
    ):
        assert site.get(other).status == 404
    denied = site.get(path).tokens()[f"{path}/deny"]
    other = path.replace("/coordinator", "/registry")
    assert site.ask("POST", f"{other}/deny", {"csrf": denied, "reason": "x"}).status == 403


def test_foreign_text_is_text(site: Site) -> None:
    """Names of columns, values and reasons come from others."""
    evil = f"\"'>{EVIL}<img src=x onerror=alert(1)>"
    job = joint_job()
    column = dict(job["columns"]["surgery"])
    column["domain"] = [*column["domain"], evil, "{{ 7*7 }}"]
    columns = {**job["columns"], "surgery": column, EVIL: {"role": "plain", "publish_as_is": "true"}}
    path = site.propose(name="evil", columns=columns)
    site.send(path, f"{path}/deny", {"reason": f"{evil}\u202e"})
    for shown in (path, "/", "/audit"):
        page = site.get(shown)
        found = Reader(page.text)
        assert not {"script", "img"} & set(found.tags)
        assert not any(name.startswith("on") or name == "style" for name in found.names)
        assert EVIL in " ".join(found.texts)
        assert "\u202e" not in page.text
    assert "{{ 7*7 }}" in text_of(site, path)


def test_the_running_job_is_shown(site: Site) -> None:
    assert "No job runs." in text_of(site, "/")
    site.current = CurrentJob("survey", "ab" * 32, "coordinator", "specialize", 7)
    try:
        assert "survey from coordinator, abababababab Phase specialize; last turn: 7" in text_of(site, "/")
    finally:
        site.current = None


def test_a_certificate_that_cannot_be_used_hides_one_state_alone(site: Site) -> None:
    path = site.propose(name="certified")
    site.send(path, f"{path}/approve", {"runs": "1"})
    other = next(iter(site.net.config(ME).peers.values())).certificate
    content = other.read_bytes()
    other.write_bytes(b"no certificate")
    try:
        page = text_of(site, "/")
        assert "certified" in page
        assert "cannot be used" in page
        assert "Cannot be read" in text_of(site, "/certificates")
    finally:
        other.write_bytes(content)


# ---- many jobs


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.more)])
def test_few_jobs_of_a_coordinator_wait(site: Site, many: bool) -> None:
    """Of 10,000 jobs the store takes 100, so the list of what waits is bounded."""
    now = datetime.now(UTC)
    approvals, crowd = Approvals(site.net.config(ME).state_dir), f"crowd-{many}"
    task = task_of(name="many")
    for number in range(MOST_WAITING):
        approvals.propose(_numbered(task, number), crowd, now)
    for number in range(MOST_WAITING, 10_000 if many else MOST_WAITING + 100):
        with pytest.raises(PolicyError, match="too many proposals"):
            approvals.propose(_numbered(task, number), crowd, now)
    began = time.monotonic()
    page = text_of(site, "/")
    assert page.count(f"from {crowd}") == MOST_WAITING
    assert time.monotonic() - began < 5


def _numbered(task: Any, number: int) -> Any:
    """A job with a hash of its own: what is kept is not looked into."""
    return type(
        "Numbered", (), {"bundle": task.bundle, "job": task.job, "digest": number.to_bytes(32, "big")}
    )()


@pytest.mark.more
def test_ten_thousand_decided_jobs_slow_no_page(site: Site) -> None:
    now = datetime.now(UTC)
    approvals, task = Approvals(site.net.config(ME).state_dir), task_of(name="decided-many")
    terms = Terms({}, "0.2")
    with approvals._changed(now) as connection:
        for number in range(10_000):
            digest = (number + (1 << 200)).to_bytes(32, "big").hex()
            at = f"2026-11-01T00:00:00.{number:06}Z"
            row = (number + 1000, digest, "flood", task.job.name, task.bundle.encoded, at)
            connection.execute("INSERT INTO proposals VALUES (?, ?, ?, ?, ?, ?)", row)
            decided = (number + 1000, 0, at, "owner", "no", 0, "", terms.as_text())
            connection.execute(
                "INSERT INTO decisions (proposal, approved, decided, decided_by, reason, runs, until, terms) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                decided,
            )
    path = site.propose(name="decided-many")
    for shown in ("/", path):
        began = time.monotonic()
        text_of(site, shown)
        assert time.monotonic() - began < 2
    approvals.decide(
        next(each for each in approvals.waiting(now) if each.job == "decided-many"),
        Decision(False, now, "owner", terms, "no", 0),
    )


# ---- releases


def release(site: Site, name: str, page: str | None = None) -> Path:
    folder = site.net.config(ME).state_dir / RELEASES / name
    folder.mkdir(parents=True)
    if page is not None:
        (folder / PAGE).write_text(page)
    return folder


def test_releases_are_listed_and_their_pages_shown(site: Site) -> None:
    page = document("Release x", tag("h1", "Release x"))
    release(site, "survey-0123456789ab", page)
    release(site, "elsewhere-0123456789ab")
    release(site, ".half-written", page)
    listed = text_of(site, "/releases")
    assert "survey-0123456789ab" in listed
    assert "elsewhere-0123456789ab (files at the coordinator only)" in listed
    assert "half-written" not in listed
    shown = site.get("/releases/survey-0123456789ab/report.html")
    assert shown.text == page
    assert site.get("/releases/elsewhere-0123456789ab/report.html").status == 404


def test_the_page_of_a_release_is_shut_in(site: Site) -> None:
    """Its values are others': the policy allows one style and nothing else, in an origin of its own."""
    release(site, "hostile-0123456789ab", f"<style>a{{}}</style>{EVIL}<style>b{{}}</style>")
    policy = site.get("/releases/hostile-0123456789ab/report.html").headers["content-security-policy"]
    first, style, *others = policy.split("; ")
    assert first == "default-src 'none'"
    assert style.startswith("style-src 'sha256-")
    assert style.count("sha256") == 1
    assert others == ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "sandbox"]
    release(site, "bare-0123456789ab", EVIL)
    policy = site.get("/releases/bare-0123456789ab/report.html").headers["content-security-policy"]
    assert "style-src 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/releases/../privacy.sqlite/report.html",
        "/releases/../report.html",
        "/releases/%2e%2e/report.html",
        "/releases/..%2f..%2fouter/report.html",
        "/releases/.%2freal-0123456789ab/report.html",
        "/releases//report.html",
        "/releases/.hidden/report.html",
        "/releases/linked/report.html",
        "/releases/linking-0123456789ab/report.html",
        "/releases/real-0123456789ab%00/report.html",
        "/releases/real-0123456789ab/own-account.json",
        "/releases/real-0123456789ab/../real-0123456789ab/report.html",
        "/releases/%2fetc/report.html",
        "//etc/passwd",
        "/style.css/../party.yaml",
        "/static/../../party.yaml",
    ],
)
def test_no_path_leads_out_of_the_releases(site: Site, path: str) -> None:
    folder = site.net.config(ME).state_dir / RELEASES
    secret = "the owner's secret"
    outer = folder.parent / "outer"
    if not outer.exists():
        outer.mkdir()
        for place in (outer, folder.parent):
            (place / PAGE).write_text(secret)
        (release(site, "real-0123456789ab", "fine") / "own-account.json").write_text(secret)
        release(site, ".hidden", secret)
        (folder / "linked").symlink_to(outer)
        os.symlink(outer / PAGE, release(site, "linking-0123456789ab") / PAGE)
    answer = site.get(path)
    assert answer.status == 404
    assert secret not in answer.text
    assert site.get("/releases/real-0123456789ab/report.html").text == "fine"


# ---- budget, audit, certificates


def test_the_budget_is_that_of_the_command(site: Site) -> None:
    ran = invoke("party", "budget", "--config", site.net.config_path(ME))
    shown = text_of(site, "/budget")
    for line in ran.out.splitlines():
        assert " ".join(line.removeprefix(f"{ME}:").split()) in shown
    assert f"Data set {site.net.config(ME).data.data_set}" in shown


def test_the_audit_is_shown_filtered_checked_and_exported(site: Site) -> None:
    path = site.propose(name="audited")
    for _ in range(2):  # a change of the last line shows by the head alone
        site.send(path, f"{path}/approve", {"runs": "1"})
    assert "decision" in text_of(site, "/audit?event=decision")
    assert "audited" not in text_of(site, "/audit?event=refusal")
    assert EVIL not in site.get(f"/audit?event={EVIL}").text
    assert "follows from the line before" not in text_of(site, "/audit")
    assert "Each line follows from the line before." in text_of(site, "/audit?verify=yes")
    exported = site.get("/audit.csv")
    ran = invoke("party", "audit", "export", "--config", site.net.config_path(ME))
    assert exported.text == ran.out
    assert exported.headers["content-type"].startswith("text/csv")
    assert "attachment" in exported.headers["content-disposition"]

    audit = site.net.config(ME).state_dir / AUDIT
    content = audit.read_bytes()
    audit.write_bytes(content.replace(b"audited", b"changed"))
    try:
        broken = text_of(site, "/audit?verify=yes")
        assert "does not follow from the line before" in broken
        with audit.open("ab") as file:
            forged = {
                "line": 9,
                "time": "\ud800",
                "event": "stop",
                "salt": "",
                "before": "",
                "user": "\ud800",
            }
            file.write(json.dumps(forged).encode() + b"\n")
        assert "stop" in text_of(site, "/audit")
        assert "\\ud800" in site.get("/audit.csv").text
    finally:
        audit.write_bytes(content)


def test_a_large_audit_is_streamed(site: Site) -> None:
    """The memory of the page, which this process serves, is smaller than the audit."""
    audit = site.net.config(ME).state_dir / AUDIT
    content = audit.read_bytes()
    line = {
        "time": "2026-01-01T00:00:00+00:00",
        "event": "stop",
        "salt": "",
        "before": "",
        "words": "x" * 900,
    }
    with audit.open("ab") as file:
        file.writelines(json.dumps({"line": k, **line}).encode() + b"\n" for k in range(22_000))
    host, port = site.listen.rsplit(":", 1)
    connection = HTTPConnection(host, int(port), timeout=GUARD_S)
    lines = 0
    tracemalloc.start()
    try:
        connection.request("GET", "/audit.csv", headers={"cookie": site.cookie})
        answer = connection.getresponse()
        while part := answer.read(1 << 16):
            lines += part.count(b"\n")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        connection.close()
        audit.write_bytes(content)
    assert lines == 1 + content.count(b"\n") + 22_000
    assert answer.getheader("transfer-encoding") == "chunked"
    assert answer.getheader("cache-control") == "no-store"
    assert peak < 22_000 * 900 / 2


def test_an_audit_that_cannot_be_read_is_an_error_page(site: Site) -> None:
    audit = site.net.config(ME).state_dir / AUDIT
    kept = audit.rename(audit.with_name("kept"))
    audit.mkdir()
    try:
        assert site.get("/audit.csv").status == 500
    finally:
        audit.rmdir()
        kept.rename(audit)


def test_who_signs_in_and_out_is_in_the_audit(site: Site) -> None:
    before = site.cookie
    site.sign_in()
    assert (last_line(site)["event"], last_line(site)["user"]) == ("sign-in", f"{user()} (page)")
    assert site.ask("POST", "/sign-in", {"token": "x"}).status == 403
    assert last_line(site)["event"] == "sign-in"
    n_lines = last_line(site)["line"]
    assert site.ask("POST", "/sign-out", site.get("/").hidden("/sign-out")).status == 303
    assert (last_line(site)["event"], last_line(site)["line"]) == ("sign-out", n_lines + 1)
    site.cookie = before


def test_without_a_line_nobody_signs_in(site: Site) -> None:
    token, audit = site.token(), site.net.config(ME).state_dir / AUDIT
    kept = audit.rename(audit.with_name("kept"))
    audit.mkdir()
    try:
        answer = site.ask("POST", "/sign-in", {"token": token}, cookie=None)
    finally:
        audit.rmdir()
        kept.rename(audit)
    assert (answer.status, "set-cookie" in answer.headers) == (500, False)
    assert (
        site.ask("POST", "/sign-in", {"token": token}, cookie=None).status == 303
    )  # the token was not used up


def test_certificates_are_shown_with_their_ends(site: Site) -> None:
    shown = text_of(site, "/certificates")
    listed = command(site, "peers", "list")
    assert f"{ME} (we)" in shown
    for peer in site.net.config(ME).peers:
        assert peer in shown
    for fingerprint in listed["peers"].values():
        assert fingerprint in shown
    assert shown.count("Valid from") == len(site.net.config(ME).peers) + 1


# ---- errors


def test_an_error_of_a_page_is_a_page(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The error has its cause on the page and in the log, and the next page is there."""
    ledger = site.net.config(ME).state_dir / "privacy.sqlite"
    before = ledger.read_bytes() if ledger.exists() else None
    ledger.write_bytes(b"no database" * 1000)
    try:
        answer = site.get("/budget")
    finally:
        ledger.unlink()
        if before is not None:
            ledger.write_bytes(before)
    assert answer.status == 500
    assert "What to do" in answer.text
    assert str(ledger) in answer.text
    assert site.get("/").status == 200
    (problem,) = [record for record in caplog.records if "budget-ledger" in record.getMessage()]
    assert "file is not a database" in problem.getMessage()


def test_a_bug_ends_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a value")

    monkeypatch.setattr(party.web.views, "in_words", broken)
    answer = site.get("/")
    assert answer.status == 500
    monkeypatch.undo()
    assert site.get("/").status == 200


def test_an_unknown_page_is_not_found(site: Site) -> None:
    for path in ("/nothing", "/jobs", "/jobs/x/y", "/favicon.ico", "/sign-in/", "/releases/x/report.html"):
        assert site.get(path).status == 404
