"""The address of a PostgreSQL database as libpq has it, read so strictly that no part of a password ends elsewhere.

What libpq says of an address that it cannot read quotes it, and a password with an `@` too many would end in the name
of the host: in errors, and in the name of the data set. So an address is read here, and handed on in one form.

Source: PostgreSQL documentation, "Connection Strings" and "Parameter Key Words" of libpq.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

_KEYWORDS = """
    application_name channel_binding client_encoding connect_timeout dbname gssdelegation gssencmode gsslib host
    hostaddr keepalives keepalives_count keepalives_idle keepalives_interval krbsrvname load_balance_hosts
    passfile password port require_auth requirepeer ssl_max_protocol_version ssl_min_protocol_version sslcert
    sslcertmode sslcrl sslcrldir sslkey sslmode sslnegotiation sslpassword sslrootcert sslsni
    target_session_attrs tcp_user_timeout user
"""
"""What an address may say. Not `options` and `service`: they choose what the name of the data set would not show."""
_DEFAULTS = {
    "application_name": "jointcut",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
"""Seconds. Whoever is not there is waited for no longer than this, and a line that is cut is noticed in a minute."""
_SCHEMES = ("postgresql://", "postgres://")
_URI = re.compile(
    r"postgres(?:ql)?://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:@/?#\s\[\]]*))(?::(?P<port>[0-9]+))?"
    r"(?:/(?P<dbname>[^@/?#\s]*))?(?:\?(?P<rest>[^#\s]*))?"
)
_PAIR = re.compile(r"\s*([a-z_]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)+))(?=\s|$)", re.DOTALL)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PORTS = re.compile(r"[0-9]+(,[0-9]+)*")
_UNSAFE = re.compile(r"[@\s'\"\\?#]")
_FORMS = (
    "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, %2F for / and %3A for : inside a part, or "
    "host=HOST port=PORT dbname=DATABASE user=USER password='PASSWORD'"
)


@dataclass(frozen=True)
class Address:
    """Where a database is, and how it is entered. ``parameters``: all that libpq is told, with the password."""

    host: str
    port: str
    database: str
    parameters: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """The database without who reads it and how: the same for every user."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{host}:{self.port}/{self.database}"

    def conninfo(self) -> str:
        """What the driver is handed; with the password."""
        quoted = {
            key: value.replace("\\", "\\\\").replace("'", "\\'")
            for key, value in {**_DEFAULTS, **self.parameters, "client_encoding": "UTF8"}.items()
        }
        return " ".join(f"{key}='{value}'" for key, value in quoted.items())


def read_address(text: str) -> Address:
    """Read an address. Raises ValueError, which repeats nothing of it."""
    found = _of_uri(text) if text.lstrip().startswith(_SCHEMES) else _of_pairs(text)
    if not found.keys() <= set(_KEYWORDS.split()):
        raise ValueError(f"it has a key that is not known or not allowed here; {_FORMS}")
    host, port = found.get("host") or found.get("hostaddr", ""), found.get("port") or "5432"
    database = found.get("dbname", "")
    if not host or not database:
        raise ValueError(f"it must name host and database; {_FORMS}")
    if _UNSAFE.search(host + database) or "=" in database or not _PORTS.fullmatch(port):
        raise ValueError(f"host, port or database is not what such names look like; {_FORMS}")
    return Address(host, port, database, found)


def _of_uri(text: str) -> dict[str, str]:
    match = _URI.fullmatch(text.strip())
    if match is None or _BAD_ESCAPE.search(text):
        raise ValueError(f"it is not well formed; {_FORMS}")
    parts = match.groupdict()
    rest = [pair.partition("=") for pair in filter(None, (parts.pop("rest") or "").split("&"))]
    parts["host"] = parts.pop("v6") or parts["host"]
    given = {key: value for key, value in parts.items() if value}
    given |= {key: value for key, _, value in rest}
    return {key: unquote(value, errors="strict") for key, value in given.items()}


def _of_pairs(text: str) -> dict[str, str]:
    found, end = {}, 0
    while match := _PAIR.match(text, end):
        key, quoted, plain = match.groups()
        found[key] = re.sub(r"\\(.)", r"\1", plain if quoted is None else quoted, flags=re.DOTALL)
        end = match.end()
    if text[end:].strip():
        raise ValueError(f"it is not well formed; {_FORMS}")
    return found
