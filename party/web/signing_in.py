"""Signing in to the owner's page: a token of five minutes for one use makes a session of eight hours.

Tokens and sessions are 32 random bytes. The file has only the SHA-256 of each, so a reader of the file cannot sign
in. A session also has a secret, from which the tokens of its forms follow.
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from crypto.rng import Rng
from jobs.errors import PartyError
from jobs.owner.durable import time_as_text, transaction

WEB = "web.sqlite"
TOKEN_LASTS, SESSION_LASTS = timedelta(minutes=5), timedelta(hours=8)
_BYTES = 32

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tokens (sha256 TEXT PRIMARY KEY, ends TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (sha256 TEXT PRIMARY KEY, secret BLOB NOT NULL, ends TEXT NOT NULL)
"""


@dataclass(frozen=True)
class Session:
    """Session of a browser.

    name:    SHA-256 of the cookie.
    secret:  key of the tokens of forms.
    """

    name: str
    secret: bytes = field(repr=False)

    def token(self, path: str) -> str:
        """Return the token of a form, by the path that the form is sent to."""
        return hmac.new(self.secret, path.encode(), hashlib.sha256).hexdigest()

    def has_sent(self, token: str, path: str) -> bool:
        """Return True if a token is of the session's form. Compares in constant time."""
        return hmac.compare_digest(token.encode(), self.token(path).encode())


class SignIns:
    """Store of tokens and sessions, in the state folder of a party."""

    def __init__(self, state_dir: Path, rng: Rng) -> None:
        self._path = state_dir / WEB
        self._rng = rng

    def token(self, now: datetime) -> str:
        """Make a token for one use."""
        made = self._rng.bytes(_BYTES).hex()
        with self._changed(now) as connection:
            connection.execute(
                "INSERT INTO tokens VALUES (?, ?)", (_sha256(made), time_as_text(now + TOKEN_LASTS))
            )
        return made

    def sign_in(self, token: str, now: datetime, noted: Callable[[], object] = lambda: None) -> str | None:
        """Use a token up; return the cookie of a new session, or None for a token that is not valid.

        noted:  called before the session begins. If it raises, the token stays.
        """
        cookie, secret = self._rng.bytes(_BYTES).hex(), self._rng.bytes(_BYTES)
        with self._changed(now) as connection:
            if connection.execute("DELETE FROM tokens WHERE sha256 = ?", (_sha256(token),)).rowcount != 1:
                return None
            noted()
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?)",
                (_sha256(cookie), secret, time_as_text(now + SESSION_LASTS)),
            )
        return cookie

    def session(self, cookie: str, now: datetime) -> Session | None:
        """Return the session of a cookie, if the session has not ended."""
        if not self._path.exists():
            return None
        name = _sha256(cookie)
        with self._changed(now) as connection:
            row = connection.execute("SELECT secret FROM sessions WHERE sha256 = ?", (name,)).fetchone()
        return None if row is None else Session(name, row[0])

    def sign_out(self, session: Session, now: datetime) -> None:
        """End a session."""
        with self._changed(now) as connection:
            connection.execute("DELETE FROM sessions WHERE sha256 = ?", (session.name,))

    def _changed(self, now: datetime) -> AbstractContextManager[sqlite3.Connection]:
        """Return a transaction, after tokens and sessions that have ended are gone."""
        over = f"WHERE ends <= '{time_as_text(now)}'"
        ended = f"DELETE FROM tokens {over}; DELETE FROM sessions {over}"  # noqa: S608 (a time of ours)
        return transaction(self._path, f"{_SCHEMA}; {ended}", self._failed)

    def _failed(self, error: sqlite3.Error) -> PartyError:
        return PartyError("io-failed", "sign-ins cannot be read or written", cause=f"{self._path}: {error}")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
