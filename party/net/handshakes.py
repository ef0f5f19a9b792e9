"""How many connections came here over which no peer spoke.

gRPC says nothing of a TLS handshake that fails: whoever has no certificate of a peer is turned away before this
program hears of it. But it asks us for our certificates whenever a connection begins, and says over which one a call
came. The others came to nothing: strangers, other certificates, scans of ports, peers that hung up.
"""

from __future__ import annotations

from collections import OrderedDict

_REMEMBERED = 4096
"""Connections over which somebody spoke; a connection that speaks again after so many others is counted twice."""


class Handshakes:
    """Counts since the daemon started. ``begun`` may be counted in any one thread, all else in the event loop's."""

    def __init__(self) -> None:
        self.begun = 0
        self._spoken = 0
        self._known: OrderedDict[str, None] = OrderedDict()
        self._begun_before = 0
        self.n_without_peer = 0
        """As :meth:`look` found; it never falls."""

    def spoke(self, connection: str) -> None:
        """A call came over this connection, as gRPC names it."""
        if connection in self._known:
            self._known.move_to_end(connection)
            return
        self._spoken += 1
        self._known[connection] = None
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def look(self, *, over: bool = False) -> int:
        """How many more there are than at the last look. Looks are further apart than a handshake may take.

        What began since the last one may still be under way, and does not count unless all is ``over``; what spoke
        since then does: so rather too few are said, for a while.
        """
        began = self.begun if over else self._begun_before
        found = max(began - self._spoken, self.n_without_peer)
        more, self.n_without_peer = found - self.n_without_peer, found
        self._begun_before = self.begun
        return more
