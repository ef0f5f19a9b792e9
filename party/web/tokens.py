"""One-time sign-in tokens: `party web` makes one, the daemon takes it; on disk is its hash alone.

A token is a file of the state folder, named after the SHA-256 of the token: whoever takes the file away has signed
in, so each is used once, and the command and the daemon need not talk. It says who called `party web`, by the
operating system's name; decisions made on the page are that user's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time
from collections.abc import Callable
from pathlib import Path

from crypto.rng import Rng
from jobs.errors import json_object
from jobs.folder import as_json, place_for_owner

FOLDER = "sign-in"
TOKEN_BYTES = 32
LIVES_S = 600.0
MOST = 8
"""Tokens that are kept; one more takes the oldest's place."""
_SKEW_S = 60.0


class Tokens:
    """The tokens in one `state_dir`."""

    def __init__(self, state_dir: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = state_dir / FOLDER
        self._clock = clock

    def issue(self, who: str, rng: Rng) -> str:
        """Make a token for a user: 43 characters, good for ``LIVES_S``. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep()
        token = base64.urlsafe_b64encode(rng.bytes(TOKEN_BYTES)).rstrip(b"=").decode()
        path = self._folder / _digest(token)
        place_for_owner(path, as_json({"who": who, "issued": self._clock()}))
        if os.geteuid() == 0:  # the daemon, which is another user, has to read it
            of = self._folder.parent.stat()
            for each in (self._folder, path):
                os.chown(each, of.st_uid, of.st_gid)
        return token

    def take(self, token: str) -> str | None:
        """Use a token; return whose it is, None if it is none, was used, or is too old. Raises OSError."""
        digest = _digest(token)
        for path in self._files():
            if hmac.compare_digest(path.name, digest):
                return self._taken(path)
        return None

    def _taken(self, path: Path) -> str | None:
        try:
            fields = json_object(path.read_bytes()) or {}
            path.unlink()
        except FileNotFoundError:  # somebody else was faster
            return None
        who = fields.get("who")
        return who if isinstance(who, str) and who and self._is_good(fields) else None

    def _is_good(self, fields: dict[str, object]) -> bool:
        issued = fields.get("issued")
        return isinstance(issued, float) and -_SKEW_S <= self._clock() - issued < LIVES_S

    def _sweep(self) -> None:
        """Take away what is too old, and the oldest if there are too many."""
        files = sorted(self._files(), key=lambda path: path.stat().st_mtime)
        old = [path for path in files if not self._is_good(json_object(path.read_bytes()) or {})]
        left = [path for path in files if path not in old]
        for path in (*old, *left[: max(len(left) - MOST + 1, 0)]):
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return list(self._folder.glob("[0-9a-f]*")) if self._folder.is_dir() else []


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
