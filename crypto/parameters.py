"""Public parameters that both sides of a protocol must have alike: told by one, checked by the other.

What is public is agreed on before a protocol starts; this catches a disagreement (another number of
records, another width) before it can pass for a result.
"""

from __future__ import annotations

from crypto.encoding import WORD, decode_integers, encode_integers
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds, receive, send


def tell(peer: str, step: str, parameters: tuple[int, ...]) -> Rounds[None]:
    """Send our parameters, 8 bytes each; LocalProtocolError if one does not fit."""
    yield from send(step, {peer: encode_integers(parameters, WORD)})


def check(peer: str, step: str, parameters: tuple[int, ...]) -> Rounds[None]:
    """Receive the peer's parameters; RemoteProtocolError unless they are ours."""
    payload = yield from receive(step, peer)
    theirs = decode_integers(payload, WORD, len(parameters), 1 << 8 * WORD, peer, step)
    if tuple(theirs) != parameters:
        raise RemoteProtocolError(peer, step, f"parameters {theirs} where ours are {list(parameters)}")
