"""Who is signed in to the owner's page, and how often that was tried. In memory: a daemon that ends ends them all."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from crypto.rng import Rng, SystemRng

SECRET_BYTES = 32
IDLE_S = 15 * 60.0
"""A session that is not used for so long is over."""
LASTS_S = 8 * 3600.0
MOST = 16
"""Sessions at once; one more ends the one that was used longest ago."""
TRIES, WINDOW_S = 10, 60.0
"""Wrong tokens in a window; after that nobody signs in until it is over."""


@dataclass
class SignedIn:
    """A session. who: a user of the operating system. form: what every form of its pages has to bring back."""

    who: str
    form: str = field(repr=False)
    began: float
    used: float

    def brought(self, form: str) -> bool:
        """Whether that is what the forms of this session have; compared in constant time."""
        return hmac.compare_digest(form.encode(), self.form.encode())


class Sessions:
    """All sessions of a daemon's page. For one thread."""

    def __init__(self, rng: Rng | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rng = rng or SystemRng()
        self._clock = clock
        self._sessions: dict[str, SignedIn] = {}
        self._wrong: list[float] = []

    def begin(self, who: str) -> str:
        """Sign somebody in; return what the browser keeps: 64 characters."""
        self._drop_what_is_over()
        if len(self._sessions) >= MOST:
            del self._sessions[min(self._sessions, key=lambda key: self._sessions[key].used)]
        cookie, now = self._secret(), self._clock()
        self._sessions[_key(cookie)] = SignedIn(who, self._secret(), now, now)
        return cookie

    def found(self, cookie: str, *, used: bool = True) -> SignedIn | None:
        """The session of a browser, None if there is none any more. used: it is not the page that comes by itself."""
        self._drop_what_is_over()
        session = self._sessions.get(_key(cookie))
        if session is not None and used:
            session.used = self._clock()
        return session

    def end(self, cookie: str) -> None:
        """Sign out."""
        self._sessions.pop(_key(cookie), None)

    def may_try(self) -> bool:
        """Whether a token is looked at now."""
        since = self._clock() - WINDOW_S
        self._wrong = [at for at in self._wrong if at > since]
        return len(self._wrong) < TRIES

    def tried_wrong(self) -> None:
        """A token was none."""
        self._wrong.append(self._clock())

    def _secret(self) -> str:
        return self._rng.bytes(SECRET_BYTES).hex()

    def _drop_what_is_over(self) -> None:
        now = self._clock()
        self._sessions = {
            key: each
            for key, each in self._sessions.items()
            if now - each.used < IDLE_S and now - each.began < LASTS_S
        }


def _key(cookie: str) -> str:
    """Sessions are found by a hash: how long that takes says nothing about what a browser keeps."""
    return hashlib.sha256(cookie.encode()).hexdigest()
