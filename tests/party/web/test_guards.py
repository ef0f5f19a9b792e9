"""Attacks on the owner's page: other names, other pages, old links, large and malformed requests."""

from __future__ import annotations

import logging
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest

from party.web.connection import MOST, Connection
from party.web.guards import HEADERS, POLICY, hosts_of
from tests.support.network import GUARD_S
from tests.support.owners_page import FORM, Answer, Site
from tests.support.waiting import until

PAGES = ("/", "/releases", "/budget", "/audit", "/audit.csv", "/certificates")
EVERYBODY = ("/sign-in", "/style.css")


def port_of(site: Site) -> str:
    return site.listen.rsplit(":", 1)[1]


def raw(site: Site, request: bytes) -> bytes:
    """Return the answer of the page to bytes, until the page closes the connection."""
    host, port = site.listen.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=GUARD_S) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


# ---- names


def test_names_of_this_machine_alone_are_answered(site: Site) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert site.get("/", host=f"{host}:{port_of(site)}").status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{}",  # a name that was rebound to 127.0.0.1
        "127.0.0.1.evil.example:{}",
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{}@evil.example",
        "LOCALHOST:{}",
        "localhost.:{}",
        "[::1]:{}",
        "0.0.0.0:{}",
        "",
        None,
    ],
)
def test_a_foreign_name_is_refused(site: Site, host: str | None) -> None:
    """DNS rebinding: the browser sends the name that it believes to talk to, and the cookie of that name alone."""
    sent = host and host.format(port_of(site))
    for path in (*PAGES, *EVERYBODY):
        answer = site.get(path, host=sent)
        assert answer.status in (400, 421), path
        assert "hospital" not in answer.text
    token = site.token()
    try:
        assert site.ask("POST", "/sign-in", {"token": token}, host=sent).status in (400, 421)
    except ConnectionResetError:  # the server closes before it has read the body
        assert sent is None  # no HTTP
    assert site.ask("POST", "/sign-in", {"token": token}).status == 303  # the token was not used up


def test_a_second_name_is_refused(site: Site) -> None:
    for other in (site.listen, "evil.example"):
        request = (
            f"GET /sign-in HTTP/1.1\r\nHost: {site.listen}\r\nHost: {other}\r\nConnection: close\r\n\r\n"
        )
        assert raw(site, request.encode()).split()[1] in (b"400", b"421")


def test_an_address_in_the_request_line_changes_nothing(site: Site) -> None:
    request = "GET http://evil.example/sign-in HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert raw(site, request.encode()).split()[1] == b"421"


def test_names_of_an_address() -> None:
    assert hosts_of("[::1]:7480") == {"[::1]:7480", "localhost:7480", "127.0.0.1:7480"}
    assert hosts_of("127.0.0.1:80") == {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"}


# ---- signing in


def test_nobody_else_sees_a_page(site: Site) -> None:
    own = site.propose(name="unseen")
    for cookie in (None, "", "jointcut=1", f"{site.cookie}0", site.cookie.upper(), f"x{site.cookie}"):
        for path in (*PAGES, own, "/releases/x/report.html"):
            answer = site.get(path, cookie=cookie)
            assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
            assert answer.text == ""
    assert "unseen" not in site.get("/nothing", cookie=None).text


def test_a_link_alone_uses_no_token_up(site: Site) -> None:
    """A preview of a link loads the page; the form signs in."""
    token = site.token()
    for _ in range(2):
        seen = site.get(f"/sign-in?token={token}", cookie=None)
        assert (seen.status, token in seen.text, "set-cookie" in seen.headers) == (200, True, False)
    answer = site.ask("POST", "/sign-in", {"token": token}, cookie=None)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    parts = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/", "max-age=28800"} <= parts
    assert token not in str(answer.headers)


def test_a_token_is_used_once(site: Site) -> None:
    token = site.token()
    assert site.ask("POST", "/sign-in", {"token": token}, cookie=None).status == 303
    again = site.ask("POST", "/sign-in", {"token": token}, cookie=None)
    assert (again.status, "set-cookie" in again.headers) == (403, False)
    assert "used already" in again.text


def test_signing_out_ends_the_session(site: Site) -> None:
    before = site.cookie
    site.sign_in()
    mine, site.cookie = site.cookie, before
    token = site.get("/", cookie=mine).tokens()["/sign-out"]
    out = site.ask("POST", "/sign-out", {"csrf": token}, cookie=mine)
    assert out.status == 303
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert site.get("/", cookie=mine).status == 303
    assert site.get("/").status == 200


# ---- forms of others


def decision(site: Site, path: str) -> object:
    *_, digest, coordinator = path.split("/")
    found = site.approvals.exactly(digest, coordinator, datetime.now(UTC))
    assert found is not None
    return found.decision


def approval(site: Site, path: str, token: str | None, **headers: str | None) -> Answer:
    hidden = site.get(path).hidden(f"{path}/approve")
    form = {"runs": "1", "seen": hidden["seen"], **({} if token is None else {"csrf": token})}
    return site.ask("POST", f"{path}/approve", form, **headers)


def test_a_form_needs_the_token_of_its_session_and_path(site: Site) -> None:
    path = site.propose(name="forms")
    right = site.get(path).tokens()[f"{path}/approve"]
    other_form = site.get(path).tokens()[f"{path}/deny"]
    mine = site.cookie
    site.sign_in()
    other_session = site.get(path).tokens()[f"{path}/approve"]
    site.cookie = mine
    changed = ("0" if right[0] != "0" else "1") + right[1:]
    for token in (None, "", other_form, other_session, changed, right.upper(), right[:-1], "ü"):
        answer = approval(site, path, token)
        assert answer.status == 403, token
    assert approval(site, path, right, cookie=None).status == 403
    assert decision(site, path) is None
    assert approval(site, path, right).status == 303
    assert decision(site, path) is not None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:{}"},
        {"origin": "http://127.0.0.1:1"},  # another user of the machine
        {"origin": "http://127.0.0.1"},
        {"origin": ""},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "x"},
        {"origin": "http://127.0.0.1:{}", "sec_fetch_site": "cross-site"},
        {"content_type": "text/plain"},
        {"content_type": "application/json"},
        {"content_type": "multipart/form-data; boundary=x"},
        {"content_type": None},
    ],
)
def test_a_form_of_another_page_is_refused_even_with_the_token(
    site: Site, headers: dict[str, str | None]
) -> None:
    path = site.propose(name="others")
    token = site.get(path).tokens()[f"{path}/approve"]
    sent = {name: value and value.format(port_of(site)) for name, value in headers.items()}
    assert approval(site, path, token, **sent).status in (403, 415)
    assert decision(site, path) is None


def test_our_own_form_is_taken_with_what_browsers_add(site: Site) -> None:
    path = site.propose(name="own")
    token = site.get(path).tokens()[f"{path}/approve"]
    added = {
        "origin": site.url,
        "sec_fetch_site": "same-origin",
        "content_type": "APPLICATION/x-www-form-urlencoded; charset=utf-8",
    }
    assert approval(site, path, token, **added).status == 303


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(site: Site, method: str) -> None:
    assert site.ask(method, "/").status in (400, 405)


def test_a_page_takes_no_form_and_a_form_shows_no_page(site: Site) -> None:
    path = site.propose(name="methods")
    token = site.get(path).tokens()[f"{path}/approve"]
    assert site.get(f"{path}/approve?csrf={token}&runs=1").status == 405
    assert site.get("/sign-out").status == 405
    assert site.ask("POST", "/", {"csrf": token}).status == 405
    assert decision(site, path) is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"token=" + b"x" * (1 << 14), 413),
        (b"&".join(b"a%d=1" % i for i in range(30)), 400),
        (b"token=1&token=2", 400),
        ("token=ü".encode(), 400),
        (b"token=%ff", 400),
    ],
)
def test_a_malformed_form_is_refused(site: Site, body: bytes, status: int) -> None:
    assert site.ask("POST", "/sign-in", body).status == status


def test_a_form_that_breaks_off_hinders_nobody(site: Site) -> None:
    host, port = site.listen.rsplit(":", 1)
    for _ in range(10):
        with socket.create_connection((host, int(port)), timeout=GUARD_S) as connection:
            form = urlencode({"token": "x"})
            head = f"POST /sign-in HTTP/1.1\r\nHost: {site.listen}\r\nContent-Type: {FORM}\r\n"
            connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{form}".encode())
    assert site.get("/").status == 200


def test_a_request_that_is_not_http_is_refused(site: Site) -> None:
    head, _, words = raw(site, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    assert (status, words) == ("HTTP/1.1 400 Bad Request", b"Invalid HTTP request received.\n")
    assert {f"{name}: {value}" for name, value in HEADERS.items()} <= {
        f"{name.lower()}: {value}" for name, _, value in (header.partition(": ") for header in headers)
    }


def test_malformed_requests_fill_no_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for _ in range(5):
            assert raw(site, b"no request\r\n\r\n").startswith(b"HTTP/1.1 400")
            assert site.ask("POST", "/sign-in", {"token": "x"}).status == 403
    assert "Invalid" not in caplog.text
    assert caplog.text.count("a sign-in to the owner's page was refused") <= 1


# ---- connections


@contextmanager
def silent_connections(site: Site, number: int) -> Iterator[select.poll]:
    """Open connections that send half a request; yield the poll for those that the page has closed."""
    host, port = site.listen.rsplit(":", 1)
    silent = [socket.create_connection((host, int(port)), timeout=GUARD_S) for _ in range(number)]
    closed = select.poll()
    for connection in silent:
        closed.register(connection, select.POLLIN)
        with suppress(ConnectionError):  # of those that were closed at once
            connection.sendall(b"POST /sign-in HTTP/1.1\r\nHost: ")
    try:
        yield closed
    finally:
        for connection in silent:
            connection.close()


def test_silent_connections_take_few_files(site: Site) -> None:
    """Each connection is an open file of the daemon, which needs files for its peers."""
    with silent_connections(site, 3 * MOST) as closed:
        until(lambda: len(closed.poll(100)) >= 2 * MOST)
        assert len(closed.poll(100)) < 3 * MOST
    until(lambda: site.get("/").status == 200)


def test_a_silent_connection_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "lasts_s", 0.5)
    with silent_connections(site, 3) as closed:
        until(lambda: len(closed.poll(100)) == 3)
    assert site.get("/").status == 200


def test_a_connection_is_for_one_request(site: Site) -> None:
    request = f"GET /sign-in HTTP/1.1\r\nHost: {site.listen}\r\n\r\n".encode()
    assert raw(site, 2 * request).count(b"HTTP/1.1 ") == 1


# ---- answers


def test_each_answer_forbids_scripts_frames_and_caches(site: Site) -> None:
    own = site.propose(name="headers")
    answers = [
        *(site.get(path) for path in (*PAGES, *EVERYBODY, own, "/nothing")),
        site.get("/", cookie=None),
        site.get("/", host="evil.example"),
        site.ask("POST", "/sign-in", {"token": "x"}),
        site.ask("PUT", "/"),
    ]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == dict(HEADERS)
        assert "server" not in answer.headers
    assert "script-src" not in POLICY  # so `default-src 'none'` forbids scripts
    assert POLICY.startswith("default-src 'none';")


def test_pages_have_nothing_from_elsewhere(site: Site) -> None:
    own = site.propose(name="elsewhere")
    for path in (*PAGES, *EVERYBODY, own):
        text = site.get(path).text
        assert "http:" not in text
        assert "https:" not in text
        assert "<script" not in text
        assert " style=" not in text
