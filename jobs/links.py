"""Which parties of a joint run speak with each other, and how all learn what those say whom they do not speak with.

A mode says which links it needs (:class:`jobs.task.Mode`). Two parties without one have two *hubs* in common, who
have a link with everybody: the compute pair. The hubs pass on what each party says to all, the first hub as it is,
the second a digest of it, after they have compared it with each other. So what one hub changes, leaves out, or tells
parties differently is found out in the same round, as is who tells the hubs different things; only both hubs together
can do it, as only they can open what is shared between them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rounds import Round, Rounds, send

if TYPE_CHECKING:
    from jobs.job import Job

T = TypeVar("T")

Links: TypeAlias = Mapping[str, Sequence[str]]
"""By party, in job order, whom it has a link with, in job order."""
COMPARED, PASSED = "compared", "passed-on"
_DIGEST_BYTES = 32
_LENGTH_BYTES = 4


def between_all(job: Job) -> Links:
    """Everybody with everybody: n (n - 1) / 2 links."""
    return {party: _but(party, job.roster) for party in job.roster}


def with_pair(job: Job) -> Links:
    """Leader and deputy with everybody, the others with these alone: 2 (n - 2) + 1 links."""
    pair = [party for party in job.roster if party in (job.leader_name, job.deputy_name)]
    return {party: _but(party, job.roster if party in pair else pair) for party in job.roster}


def _but(party: str, of: Sequence[str]) -> tuple[str, ...]:
    return tuple(each for each in of if each != party)


def hubs(links: Links) -> tuple[str, ...]:
    """Who passes on what others say; nobody where everybody has a link with everybody.

    Raises LocalProtocolError for links where some need others to pass on, and there are not two to do so.
    """
    those = tuple(party for party in links if speaks_with_all(links, party))
    if len(those) == len(links):
        return ()
    if len(those) != 2:
        raise LocalProtocolError("parties without links with each other need two who have links with all")
    return those


def speaks_with_all(links: Links, party: str) -> bool:
    """Whether a party has a link with everybody."""
    return len(links[party]) == len(links) - 1


def tell_all(me: str, links: Links, step: str, payload: bytes) -> Rounds[dict[str, bytes]]:
    """Tell all parties something of a length that is everybody's, and learn the same of them.

    Functionality:  (x_1, ..., x_n) to every party.
    Input, each:    ``payload``; ``links`` and its length public and equal for all.
    Output, each:   everybody's, by name, in job order.
    Leakage:        none beyond the output.
    Rounds:         1 (``step``), and those of :func:`pass_on`.
    Bytes:          the payload over each link, and those of :func:`pass_on`.
    Assumes:        as :func:`pass_on`.
    Source:         folklore.

    Raises RemoteProtocolError for a message of another length, and as :func:`pass_on`.
    """
    peers = links[me]
    inbox = yield Round(step, dict.fromkeys(peers, payload), frozenset(peers))
    read = of_length(len(payload), step)
    told = {me: payload, **{peer: read(peer, inbox[peer]) for peer in peers}}
    told |= yield from pass_on(me, links, step, told, read)
    return {party: told[party] for party in links}


def of_length(count: int, step: str) -> Callable[[str, bytes], bytes]:
    """Reads what has so many bytes. Raises RemoteProtocolError."""

    def read(party: str, said: bytes) -> bytes:
        expect_length(said, count, party, step)
        return said

    return read


def pass_on(
    me: str, links: Links, step: str, said: Mapping[str, bytes], read: Callable[[str, bytes], T]
) -> Rounds[dict[str, T]]:
    """Learn from the hubs what those said with whom we have no link.

    Functionality:  to every party that is no hub what every other of them said.
    Input:          ``said``: at a hub what each of them said, read without objection, in at most 2**32 - 1 bytes;
                    at any other party what itself said. ``read``: what a hub must not pass on it refuses.
    Output:         by name what those said with whom we have no link, as it was read; nothing at a hub.
    Leakage:        none beyond the output: a hub that tells parties different things learns nothing by it.
    Rounds:         2 (``step`` with "/compared" between the hubs, and with "/passed-on"); none without hubs.
    Bytes:          the hubs 32 to each other for each of the m others; the first hub what they said and 4 for each to
                    every one of them, the second 32.
    Assumes:        the hubs do not collude with each other; SHA-256 is collision-resistant; private authenticated
                    channels between hubs and all.
    Source:         echo of a broadcast; folklore.

    Raises RemoteProtocolError: at a hub, naming a party and the other hub, if that party told them different things;
    elsewhere, naming both hubs, if these tell different things, or what was not said or must not be passed on.
    """
    two = hubs(links)
    if not two:
        return {}
    others = [party for party in links if party not in two]
    if me in two:
        yield from _tell(me, two, others, step, said)
        return {}
    at = f"{step}/{PASSED}"
    inbox = yield Round(at, {}, frozenset(two), hops=3)
    whole = inbox[two[0]]
    if inbox[two[1]] != hashlib.sha256(whole).digest():
        raise _not_so(two, at, "they tell different things of other parties")
    found = dict(zip(others, _unframed(whole, len(others), two, at), strict=True))
    if found.pop(me) != said[me]:
        raise _not_so(two, at, f"they pass on something else than {me} said")
    return {party: _read(read, party, each, two, at) for party, each in found.items()}


def _tell(
    me: str, two: Sequence[str], others: Sequence[str], step: str, said: Mapping[str, bytes]
) -> Rounds[None]:
    """What a hub does: what it is about to pass on it first compares with the other one."""
    (peer,) = _but(me, two)
    at = f"{step}/{COMPARED}"
    ours = [hashlib.sha256(said[party]).digest() for party in others]
    inbox = yield Round(at, {peer: b"".join(ours)}, frozenset({peer}), hops=2)
    expect_length(inbox[peer], len(others) * _DIGEST_BYTES, peer, at)
    for i, party in enumerate(others):
        if inbox[peer][i * _DIGEST_BYTES : (i + 1) * _DIGEST_BYTES] != ours[i]:
            reason = f"{peer} was told something else by {party} than {me}, or says so"
            raise RemoteProtocolError(f"{party} or {peer}", at, reason)
    whole = b"".join(len(said[party]).to_bytes(_LENGTH_BYTES, "little") + said[party] for party in others)
    told = whole if me == two[0] else hashlib.sha256(whole).digest()
    yield from send(f"{step}/{PASSED}", dict.fromkeys(others, told))


def _unframed(whole: bytes, count: int, two: Sequence[str], at: str) -> list[bytes]:
    """What was passed on, one for each party. Raises RemoteProtocolError, naming the hubs."""
    found, start = [], 0
    for _ in range(count):
        begin = start + _LENGTH_BYTES
        start = begin + int.from_bytes(whole[start:begin], "little")
        found.append(whole[begin:start])
    if start != len(whole):
        raise _not_so(two, at, "what they pass on is not of one piece for each party")
    return found


def _read(read: Callable[[str, bytes], T], party: str, said: bytes, two: Sequence[str], at: str) -> T:
    try:
        return read(party, said)
    except RemoteProtocolError as error:
        raise _not_so(two, at, f"they pass on what is not valid of {party}: {error.reason}") from error


def _not_so(two: Sequence[str], at: str, reason: str) -> RemoteProtocolError:
    return RemoteProtocolError(" or ".join(two), at, reason)
