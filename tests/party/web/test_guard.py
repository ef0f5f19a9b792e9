"""Attacks on the owner's page: from other sites, other names, without a session, with guesses, with too much."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crypto.rng import SystemRng
from party.owner.audit import FOLDER
from party.owner.audit_check import lines_of
from party.owner.problems import ProblemBook
from party.web import records, server
from party.web.guard import HEADERS, MOST_BODY_BYTES
from party.web.sessions import IDLE_S, TRIES, WINDOW_S
from party.web.tokens import Tokens
from tests.support.approving import approvals_of, asking_network, task_called
from tests.support.loopback import HOST
from tests.support.pages import Caller, Clock, Said, Site, page_of
from tests.support.samples import PARTIES

A = PARTIES[0]
PAGES = ("/", "/jobs", "/jobs/1", "/running", "/releases", "/budget", "/audit", "/certificates")
CHANGES = ("/jobs/1/approve", "/jobs/1/deny", "/log-level", "/sign-out")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with page_of(asking_network(tmp_path / "net"), A) as site:
        yield site


@pytest.fixture
def anna(site: Site) -> Caller:
    site.proposed(task_called())
    return site.signed_in()


def denial(anna: Caller) -> dict[str, str]:
    """All that the form needs."""
    page = anna.get("/jobs/1")
    return {name: page.value(name) for name in ("form", "revision")} | {"reason": "no"}


def state(site: Site) -> str:
    (proposal,) = approvals_of(site.net, A).listed()
    return proposal.state


def test_every_answer_says_what_browsers_must_not_do(site: Site, anna: Caller) -> None:
    answers = [anna.get(path) for path in (*PAGES, "/nowhere", "/sign-in", "/style.css", "/icon.svg")]
    answers += [site.caller().get("/"), anna.post("/sign-out", {}), anna.get("/", Host="evil.example")]
    for said in answers:
        assert {name: said.head.get(name) for name in HEADERS} == dict(HEADERS)
        assert "server" not in said.head
    policy = HEADERS["content-security-policy"]
    for part in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policy.split("; ")
    assert "script" not in policy


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_no_script_no_style_and_nothing_of_others(anna: Caller, path: str) -> None:
    said = anna.get(path)
    assert said.status == 200
    for forbidden in ("<script", " style=", " onclick", "http://", "https://", "src="):
        assert forbidden not in said.text.lower()


@pytest.mark.parametrize("path", [*PAGES, "/releases/x/report.json", "/nowhere"])
def test_nothing_is_shown_to_who_is_not_signed_in(site: Site, path: str) -> None:
    caller = site.caller()
    for cookie in ("", f"jointcut-{site.port}=", f"jointcut-{site.port}={'0' * 64}"):
        caller.cookie = cookie
        said = caller.get(path)
        assert (said.status, said.head["location"], said.body) == (303, "/sign-in", b"")


@pytest.mark.parametrize("path", CHANGES)
def test_nothing_is_changed_by_who_is_not_signed_in(site: Site, anna: Caller, path: str) -> None:
    fields = denial(anna)
    said = site.caller().post(path, fields)
    assert (said.status, said.head["location"]) == (303, "/sign-in")
    assert state(site) == "waiting"


@pytest.mark.parametrize(
    "name", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "[::1]:{}"]
)
def test_another_name_for_this_machine_is_not_answered(site: Site, anna: Caller, name: str) -> None:
    """A name of somebody else's that points here (DNS rebinding), with that page's own origin."""
    host = name.format(site.port)
    assert anna.get("/", Host=host).status == 421
    assert anna.post("/jobs/1/deny", denial(anna), {"Host": host, "Origin": f"http://{host}"}).status == 421
    assert state(site) == "waiting"


def test_this_machine_may_be_called_localhost(site: Site) -> None:
    assert site.caller().get("/sign-in", Host=f"localhost:{site.port}").status == 200


OTHERS = [
    {"Origin": None},
    {"Origin": "null"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://127.0.0.1:{}"},
    {"Origin": "http://127.0.0.1:{}.evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("head", OTHERS, ids=str)
def test_no_form_of_another_site_is_taken(site: Site, anna: Caller, head: dict[str, str | None]) -> None:
    """Even if it had all that our own form has, and the browser sent the cookie."""
    said = {name: value and value.format(site.port) for name, value in head.items()}
    assert anna.post("/jobs/1/deny", denial(anna), said).status == 403
    assert anna.post("/sign-out", denial(anna), said).status == 403
    assert state(site) == "waiting"
    token = site.token("berta")
    assert site.caller().post("/sign-in", {"token": token}, said).status == 403
    assert anna.post("/jobs/1/deny", denial(anna)).status == 303
    assert Tokens(site.state).take(token) == "berta"


@pytest.mark.parametrize("form", [None, "", "0" * 64, "another's"])
def test_no_form_without_what_our_pages_put_in_is_taken(site: Site, anna: Caller, form: str | None) -> None:
    fields = denial(anna)
    if form == "another's":
        form = denial(site.signed_in("berta"))["form"]
    said = {key: value for key, value in {**fields, "form": form}.items() if value is not None}
    for path in CHANGES:
        assert anna.post(path, said).status == 403
    assert state(site) == "waiting"
    assert anna.get("/").status == 200


@pytest.mark.parametrize("where", ["cross-site", "same-site"])
def test_pages_are_not_opened_by_other_sites_but_the_one_to_sign_in(anna: Caller, where: str) -> None:
    assert anna.get("/jobs/1", **{"Sec-Fetch-Site": where}).status == 403
    assert anna.get("/sign-in?token=x", **{"Sec-Fetch-Site": where}).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_pages_are_read_and_forms_are_sent(anna: Caller, method: str) -> None:
    assert anna.ask(method, "/jobs/1/deny").status == 405


def test_looking_changes_nothing(site: Site, anna: Caller) -> None:
    for path in CHANGES:
        assert anna.get(path).status == 405
    assert state(site) == "waiting"
    assert anna.get("/").status == 200


# ---- signing in


def test_a_link_is_not_used_up_by_being_looked_at(site: Site) -> None:
    token, caller = site.token(), site.caller()
    for _ in range(3):
        assert token in caller.get(f"/sign-in?token={token}").text
        assert caller.ask("HEAD", f"/sign-in?token={token}").status == 200
    said = caller.sign_in(token)
    assert (said.status, said.head["location"]) == (303, "/")
    assert "Signed in as <strong>anna</strong>" in caller.get("/").text
    *_, last = lines_of(site.state / FOLDER)
    assert (last.what, last.fields) == ("sign-in", {"by": "anna"})


def test_what_the_browser_keeps_is_for_our_own_pages_alone(site: Site) -> None:
    kept = site.caller().sign_in(site.token()).head["set-cookie"]
    name, *rules = kept.lower().split("; ")
    assert name.startswith(f"jointcut-{site.port}=")
    assert set(rules) == {"httponly", "path=/", "samesite=strict"}


def test_a_token_is_used_once(site: Site) -> None:
    token = site.token()
    assert site.caller().sign_in(token).status == 303
    other = site.caller()
    said = other.sign_in(token)
    assert (said.status, other.cookie) == (403, "")
    assert 'aria-describedby="what wrong"' in said.text
    assert 'role="alert"' in said.text
    assert token not in said.text


def test_a_token_that_is_too_old_is_none(site: Site) -> None:
    token = Tokens(site.state, Clock(time.time() - 601)).issue("anna", SystemRng())
    assert site.caller().sign_in(token).status == 403


def test_guessing_is_stopped(site: Site) -> None:
    caller, token = site.caller(), site.token()
    assert [caller.sign_in(f"guess{i}").status for i in range(TRIES + 2)] == [403] * TRIES + [429] * 2
    said = caller.sign_in(token)  # not looked at, so not used up
    assert (said.status, said.head["retry-after"]) == (429, "60")
    site.clock.now += WINDOW_S
    assert caller.sign_in(token).status == 303


def test_signing_in_makes_a_session_of_its_own(site: Site) -> None:
    """Whoever put a cookie into the browser before, or has seen the one of an earlier session, is not signed in."""
    caller = site.caller()
    caller.cookie = f"jointcut-{site.port}={'a' * 64}"
    caller.sign_in(site.token())
    first = caller.cookie
    assert "a" * 64 not in first
    caller.sign_in(site.token())
    assert caller.cookie != first
    caller.cookie = first
    assert caller.get("/").status == 303


def test_signing_out_ends_the_session_for_everybody_who_has_it(site: Site, anna: Caller) -> None:
    kept = anna.cookie
    said = anna.post("/sign-out", {"form": anna.get("/").value("form")})
    assert (said.status, said.head["location"]) == (303, "/sign-in")
    assert f"jointcut-{site.port}=" in said.head["set-cookie"]
    anna.cookie = kept
    assert anna.get("/").status == 303


def test_a_page_that_is_fetched_again_by_itself_ends_with_the_session(site: Site, anna: Caller) -> None:
    assert anna.get("/running?again").head["refresh"] == "5; url=/running?again"
    assert "refresh" not in anna.get("/running").head
    for _ in range(2):
        site.clock.now += IDLE_S / 2
        said = anna.get("/running?again")
    assert said.status == 303


# ---- too much, too slow, malformed


def test_a_body_is_bounded(site: Site, anna: Caller) -> None:
    fields = denial(anna)
    assert anna.post("/jobs/1/deny", {**fields, "reason": "x" * MOST_BODY_BYTES}).status == 413
    assert anna.post("/jobs/1/deny", {**fields, **{f"x{i}": "" for i in range(20)}}).status == 400
    assert state(site) == "waiting"


def test_a_body_without_an_end_is_not_read_to_it(site: Site) -> None:
    with socket.create_connection((HOST, site.port), timeout=20) as caller:
        head = (
            f"POST /sign-in HTTP/1.1\r\nHost: {HOST}:{site.port}\r\nOrigin: http://{HOST}:{site.port}\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        caller.sendall(head.encode())
        for _ in range(8):
            caller.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        assert caller.recv(4096).split()[1] == b"413"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"reason": "no"}', "application/json", 415),
        (b"reason=no", "multipart/form-data; boundary=x", 415),
        (b"reason=no", None, 415),
        (b"reason=no&reason=yes", "application/x-www-form-urlencoded", 400),
        (b"reason=%ff", "application/x-www-form-urlencoded", 400),
        (b"\xff", "application/x-www-form-urlencoded", 400),
    ],
)
def test_what_is_no_form_is_refused(anna: Caller, body: bytes, kind: str | None, status: int) -> None:
    assert anna.ask("POST", "/jobs/1/deny", body, {"Content-Type": kind}).status == status


def raw(site: Site, sent: bytes) -> bytes:
    with socket.create_connection((HOST, site.port), timeout=20) as caller:
        caller.sendall(sent)
        try:
            return caller.recv(4096)
        except ConnectionResetError:
            return b""


def test_heads_that_are_none_are_refused(site: Site) -> None:
    host = f"Host: {HOST}:{site.port}\r\n".encode()
    for sent in (
        b"\x16\x03\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"Host: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"X: " + b"x" * (2 * server.MOST_HEAD_BYTES),
    ):
        assert raw(site, sent)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431", b"")
    assert site.caller().get("/sign-in").status == 200


def test_who_says_nothing_or_never_ends_is_left(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.3)
    for begun in (b"", b"GET / HTTP/1.1\r\nHost: "):
        with socket.create_connection((HOST, site.port), timeout=20) as slow:
            slow.sendall(begun)
            assert ended(slow)


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_many_who_say_nothing_keep_nobody_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next connection ends the oldest."""
    monkeypatch.setattr(server, "PATIENCE_S", 600.0)
    silent = [socket.create_connection((HOST, site.port), timeout=20) for _ in range(3 * server.MOST_AT_ONCE)]
    try:
        assert site.caller().get("/sign-in").status == 200
        assert all(ended(each) for each in silent[: 2 * server.MOST_AT_ONCE])
    finally:
        for each in silent:
            each.close()


def test_a_page_that_fails_says_so_and_no_more(
    site: Site, anna: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> object:
        raise ValueError("row 17 says diabetes")

    monkeypatch.setattr(records, "spending", broken)
    said = anna.get("/budget")
    assert said.status == 500
    assert "party problems" in said.text
    assert "diabetes" not in said.text
    assert "Jointcut" in said.text
    deadline = time.monotonic() + 20  # it is noted when it is said
    while not (noted := ProblemBook(site.state).entries(5)):
        assert time.monotonic() < deadline
    assert [fields["error"] for _, fields in noted] == ["bug"]
    assert anna.get("/").status == 200


def test_connections_can_be_used_again(site: Site, anna: Caller) -> None:
    connection = http.client.HTTPConnection(HOST, site.port, timeout=20)
    said: list[Said] = []
    for path in ("/", "/jobs"):
        connection.request("GET", path, headers={"Host": f"{HOST}:{site.port}", "Cookie": anna.cookie})
        answer = connection.getresponse()
        said.append(Said(answer.status, {}, answer.read()))
    connection.close()
    assert [each.status for each in said] == [200, 200]
