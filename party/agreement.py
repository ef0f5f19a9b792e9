"""Commit without a coordinator: all parties of a run keep a release, or no party does.

A party checks the files, sets them aside, and sends all peers the digest of the release: its *vote*. The party
keeps the release once all votes are present, for the party's own digest, and announces so. A vote can be late, for
a different digest, or due from a party that is gone. The party then *withdraws*, announces so, and ends the job
when all peers have withdrawn, or are gone. But if a peer kept the release, the peer had all votes, and the release
is kept here, too. The coordinator's presence does not matter.

So no order of messages and time-outs makes parties differ while the links between the parties hold, nor does a
single broken link among three parties. The remaining parties agree when a party dies. What remains is the two
generals' window: a party that dies, or loses its links, after its vote (arrived or not), and before it has heard
all peers' votes and the peers have heard that it kept the release.

The death of leader or deputy, or a broken link with leader or deputy, also breaks carried links. The survivor of the
pair has a link with everybody, and passes on that a release is kept. So the remaining parties still agree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType

from crypto.encoding import expect_length
from crypto.errors import RemoteProtocolError
from jobs.errors import JobFailed, PartyError, Problem, problem_of
from jobs.release.sums import DIGEST_BYTES
from party.net.link import Link
from party.net.waiting import stopped
from party.owner.audit import HEAD_BYTES

CHECKED, KEPT, WITHDRAWN = "commit/checked", "commit/kept", "commit/withdrawn"
_MOST_WORDS = 3
"""Largest number of messages of a peer: a vote, a withdrawal, and that the release is kept after all."""


@dataclass
class Ballot:
    """Peers' votes as known to a party, and the outcome. No I/O.

    release:   the digest of our vote, 32 bytes.
    trouble:   the reason of our withdrawal, if any.
    suspects:  parties to name for a missing vote, by peer; the peer, if not given.
    """

    peers: Collection[str]
    release: bytes
    trouble: Problem | None = None
    suspects: Mapping[str, str] = field(default_factory=dict)
    _votes: set[str] = field(default_factory=set)
    _withdrawn: set[str] = field(default_factory=set)
    _gone: set[str] = field(default_factory=set)
    _kept: bool = False
    _closed: bool = False

    @property
    def keeps(self) -> bool | None:
        """True if the release is to be kept; None while undecided. Ask after all arrived messages are heard."""
        everybody = set(self.peers)
        if self._kept:
            return True
        if self.trouble is None:
            return True if self._votes >= everybody else None
        return False if self._closed or everybody in (self._withdrawn, self._gone) else None

    def hear(self, peer: str, step: str, payload: bytes) -> None:
        """Take a message of a peer. Raises RemoteProtocolError for a message out of place."""
        if step == WITHDRAWN:
            self.withdrew(peer, Problem.told(payload, peer))
        elif step == CHECKED:
            expect_length(payload, DIGEST_BYTES + HEAD_BYTES, peer, step)
            self._voted(peer, payload[:DIGEST_BYTES], kept=False)
        elif step == KEPT:
            expect_length(payload, DIGEST_BYTES, peer, step)
            self._voted(peer, payload, kept=True)
        else:
            raise RemoteProtocolError(peer, CHECKED, f"a message of step {step}")

    def _voted(self, peer: str, release: bytes, *, kept: bool) -> None:
        if release != self.release:
            self._withdraw(Problem("result-mismatch", f"{peer} was delivered different files than we were"))
            return
        self._votes.add(peer)
        self._kept = self._kept or kept

    def withdrew(self, peer: str, problem: Problem) -> None:
        """Note a peer's withdrawal. The peer still keeps the release if another party reports the release as kept."""
        self._withdrawn.add(peer)
        self._withdraw(problem)

    def lost(self, peer: str, problem: Problem) -> None:
        """Note the loss of a peer. The peer's vote counts if present."""
        self._gone.add(peer)
        if peer not in self._votes:
            self._withdraw(problem)

    def late(self, patience_s: float) -> None:
        """Note that the time for votes is over."""
        missing = sorted(set(self.peers) - self._votes)
        message = f"within {patience_s:g} s we did not hear that {', '.join(missing)} checked the release"
        named = ", ".join(self.suspects.get(peer, peer) for peer in missing)
        self._withdraw(Problem("peer-timeout", message, named))

    def close(self) -> None:
        """Note that the time for last words is over."""
        self._closed = True

    def _withdraw(self, problem: Problem) -> None:
        self.trouble = self.trouble or problem


class Agreement:
    """A party's part in the commit of a run, over its links.

    Functionality:  all parties keep the release, or no party does.
    Input, each:    the digest of the release that the party checked and set aside; the head of its audit.
    Output, each:   the decision to keep the release, and then all digests are equal; or the reason against. Each
                    link has the head of its peer's audit.
    Leakage:        the digest; the head, which says nothing about its line; for a withdrawal the reason.
    Rounds:         2 ("commit/checked", "commit/kept"); 1 more if a party withdraws ("commit/withdrawn").
    Bytes:          96 to each peer.
    Assumes:        parties that do not lie about checked and kept files; the window described in the module.
    Source:         two-phase commit without a coordinator's log; folklore.
    """

    def __init__(
        self,
        links: Mapping[str, Link],
        release: bytes,
        head: bytes,
        *,
        patience_s: float,
        last_words_s: float,
    ) -> None:
        """``head``: of our audit, 32 bytes. ``patience_s``: for votes. ``last_words_s``: for immediate answers of a
        live peer.
        """
        self._links = links
        self._head = head
        suspects = {peer: link.suspects for peer, link in links.items()}
        self._ballot = Ballot(frozenset(links), release, suspects=suspects)
        self._patience_s = patience_s
        self._last_words_s = last_words_s
        self._heard: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
        self._listening: list[asyncio.Task[None]] = []
        self._sending: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Agreement:
        self._listening = [asyncio.create_task(self._listen(link)) for link in self._links.values()]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await stopped(*self._listening, *self._sending)

    async def reached(self) -> None:
        """Vote; return when the release is to be kept. Raises JobFailed if nobody keeps the release."""
        ballot = self._ballot
        self._tell(CHECKED, ballot.release + self._head)
        await self._hear(lambda: ballot.trouble is not None, self._patience_s)
        if ballot.keeps is None and ballot.trouble is None:
            ballot.late(self._patience_s)
        if ballot.trouble is not None and not ballot.keeps:
            self._tell(WITHDRAWN, ballot.trouble.for_others().encode())
            await self._hear(lambda: False, self._last_words_s)
            ballot.close()
        if not ballot.keeps and ballot.trouble is not None:
            raise JobFailed(ballot.trouble)

    def kept(self) -> None:
        """Tell the peers that the release is in place here, and that nothing follows."""
        self._tell(KEPT, self._ballot.release)
        self._sending += [asyncio.create_task(link.end()) for link in self._links.values()]

    async def ended(self) -> None:
        """Give the peers a moment to hear the news, and to report the same."""
        await asyncio.wait(self._listening, timeout=self._last_words_s)

    def _tell(self, step: str, payload: bytes) -> None:
        """Send to all peers without waiting: a peer may have stopped reading."""
        self._sending += [asyncio.create_task(link.send(step, payload)) for link in self._links.values()]

    async def _hear(self, enough: Callable[[], bool], patience_s: float) -> None:
        """Take messages until the outcome is known, until there is ``enough``, or until the time is over."""
        with suppress(TimeoutError):  # the ballot shows the missing votes
            async with asyncio.timeout(patience_s):
                while self._ballot.keeps is None and not enough():
                    (await self._heard.get())()
                    while not self._heard.empty():  # a withdrawal may have come together with an earlier vote
                        self._heard.get_nowait()()

    async def _listen(self, link: Link) -> None:
        """Pass on a peer's messages, all arrived messages at once; then the reason of the end."""
        try:
            for _ in range(_MOST_WORDS + 1):
                if (message := await link.take()) is None:
                    raise PartyError("peer-lost", f"{link.peer} ended the run", party=link.peer)
                self._heard.put_nowait(partial(self._take, link.peer, *message))
            raise RemoteProtocolError(link.peer, CHECKED, "a message that nobody awaits")
        except JobFailed as error:  # the peer says itself that the job ended there
            self._heard.put_nowait(partial(self._ballot.withdrew, link.peer, error.problem))
            self._heard.put_nowait(partial(self._ballot.lost, link.peer, error.problem))
        except (PartyError, RemoteProtocolError) as error:
            self._heard.put_nowait(partial(self._ballot.lost, link.peer, problem_of(error)))

    def _take(self, peer: str, step: str, payload: bytes) -> None:
        try:
            self._ballot.hear(peer, step, payload)
        except RemoteProtocolError as error:
            self._ballot.lost(peer, problem_of(error))
            return
        if step == CHECKED:
            self._links[peer].head = payload[DIGEST_BYTES:]
