"""Doors of the owner's page: what a request must be before a page sees the request, and what each answer says.

- *Host* is the address of the page and nothing else: a foreign name that leads to this machine is refused (DNS
  rebinding).
- *Forms* come from our own pages: `Origin` and `Sec-Fetch-Site`, where sent, say so, and each form has a token of its
  session.
- *Answers* allow no script, no frame and nothing of another host, and are kept in no cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
"""Content security policy of our own pages."""
HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # With `no-referrer` browsers would send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-frame-options": "DENY",
    # A connection is for one request (party.web.connection).
    "connection": "close",
}
"""Headers of each answer. An answer may have a stricter policy."""
FORM = "application/x-www-form-urlencoded"
_MOST_BYTES, _MOST_FIELDS = 1 << 14, 20
_HTTP_PORT = 80


def hosts_of(listen: str) -> frozenset[str]:
    """Return the values of `Host` that name an address of this machine, as browsers write the values."""
    host, port = listen.rsplit(":", 1)
    names = {host.lower(), "localhost", "127.0.0.1"}
    written = {f"{name}:{int(port)}" for name in names}
    return frozenset(written | (names if int(port) == _HTTP_PORT else set()))


class Refused(Exception):
    """Request that no page sees."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class Guard:
    """Middleware around the pages."""

    def __init__(self, pages: ASGIApp, listen: str) -> None:
        self._pages = pages
        self._hosts = hosts_of(listen)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the page serves HTTP alone, not {scope['type']}")
        guarded = _with_headers(send)
        try:
            form = await self._let_in(scope, receive)
        except Refused as refused:
            await PlainTextResponse(refused.words + "\n", refused.status)(scope, receive, guarded)
            return
        scope.setdefault("state", {})["form"] = form
        await self._pages(scope, receive, guarded)

    async def _let_in(self, scope: Scope, receive: Receive) -> dict[str, str]:
        """Return the fields of a form, empty without a form. Raises Refused."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            raise Refused(421, "This host name is not of this page.")
        if scope["method"] in ("GET", "HEAD"):
            return {}
        if scope["method"] != "POST":
            raise Refused(405, "The page answers GET and POST.")
        self._check_sender(headers)
        if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            raise Refused(415, "The page takes its own forms alone.")
        return _fields(await _body(receive))

    def _check_sender(self, headers: Headers) -> None:
        """Refuse a form of another page, as far as the browser tells. Another port is another page."""
        origins = headers.getlist("origin")
        if any(origin not in {f"http://{host}" for host in self._hosts} for origin in origins):
            raise Refused(403, "The form is of another page.")
        if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
            raise Refused(403, "The form is of another page.")


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "The form is not whole.")
        body += message.get("body", b"")
        if len(body) > _MOST_BYTES:
            raise Refused(413, f"The form has more than {_MOST_BYTES} bytes.")
        if not message.get("more_body", False):
            return bytes(body)


def _fields(body: bytes) -> dict[str, str]:
    """Read a form. A field may stand there once."""
    try:
        pairs: Sequence[tuple[str, str]] = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError:  # also of UnicodeDecodeError
        raise Refused(400, "The form is malformed.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Refused(400, "The form has a field twice.")
    return fields


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded
