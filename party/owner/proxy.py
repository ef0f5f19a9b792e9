"""HTTP proxy of outgoing connections. The credentials are secrets, absent from every repr, error and log."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import unquote_to_bytes

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from jobs.file.fields import check_port

_ADDRESS = r"(?:\[[0-9a-fA-F:]+\]|[^\s:@/\[\]]+):[0-9]{1,5}"
_URL = re.compile(rf"http://(?:([^:@/\s]+):([^:@/\s]*)@)?({_ADDRESS})/?")
_RULE = (
    "write http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, with %40 for an @ in USER or PASSWORD, %3A for a "
    "colon and %2F for a slash"
)


@dataclass(frozen=True)
class Proxy:
    """Address and credentials of a proxy.

    basic:  the credentials as HTTP's scheme Basic has them (RFC 7617); empty without.
    """

    address: str
    basic: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"http://{'USER:PASSWORD@' if self.basic else ''}{self.address}"


def _proxy(value: object) -> Proxy:
    """Read a URL. Raises ValueError, with nothing of the URL."""
    found = _URL.fullmatch(str(value))
    if found is None:
        raise ValueError(_RULE)
    user, password, address = found.groups()
    check_port(address)
    if user is None:
        return Proxy(address)
    name, secret = unquote_to_bytes(user), unquote_to_bytes(password)
    if b":" in name or any(byte < ord(" ") for byte in name + secret):
        raise ValueError("no user of a proxy has a colon, and no password a control character: " + _RULE)
    return Proxy(address, b64encode(name + b":" + secret).decode())


ProxyUrl = Annotated[
    Proxy,
    BeforeValidator(_proxy),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": f"^{_URL.pattern}$"}),
]
