"""Commit without a coordinator: all parties of a run keep a release, or none does.

Each party that has checked the files and set them aside tells all others the digest of the release: its *vote*. It
keeps the release once it has all votes, for the digest that it has itself, and says so. A party that cannot have
them all, since one is late or for another digest, or is to come from a party that is gone, *withdraws* and says so.
It ends the job when all others have withdrawn, or are gone; but if one of them kept the release, that one had all
votes, and the release is kept here, too. Whether the coordinator is still there does not matter.

So no order of messages and time-outs makes parties differ while the links between them hold; of three parties one
broken link does not; and those that are left when a party dies agree. What remains is the two generals' window: a
party that dies, or loses its links, after it has voted, whether or not its vote arrives, and before it has heard all
others' and they have heard that it kept the release.
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

CHECKED, KEPT, WITHDRAWN = "commit/checked", "commit/kept", "commit/withdrawn"
_MOST_WORDS = 3
"""A vote, a withdrawal, and that the release is kept after all."""


@dataclass
class Ballot:
    """The other parties' votes as one party knows them, and what follows. No I/O.

    release:  the digest that we vote for, 32 bytes.
    trouble:  why we withdraw, if we do.
    """

    peers: Collection[str]
    release: bytes
    trouble: Problem | None = None
    _votes: set[str] = field(default_factory=set)
    _withdrawn: set[str] = field(default_factory=set)
    _gone: set[str] = field(default_factory=set)
    _kept: bool = False
    _closed: bool = False

    @property
    def keeps(self) -> bool | None:
        """Return True if the release is to be kept; None while that is open. Ask after all that arrived was
        heard.
        """
        everybody = set(self.peers)
        if self._kept:
            return True
        if self.trouble is None:
            return True if self._votes >= everybody else None
        return False if self._closed or everybody in (self._withdrawn, self._gone) else None

    def hear(self, peer: str, step: str, payload: bytes) -> None:
        """Take what a peer says. Raises RemoteProtocolError for what has no place here."""
        if step == WITHDRAWN:
            self.withdrew(peer, Problem.told(payload, peer))
        elif step in (CHECKED, KEPT):
            expect_length(payload, DIGEST_BYTES, peer, step)
            self._voted(peer, payload, kept=step == KEPT)
        else:
            raise RemoteProtocolError(peer, CHECKED, f"a message of step {step}")

    def _voted(self, peer: str, release: bytes, *, kept: bool) -> None:
        if release != self.release:
            self._withdraw(Problem("result-mismatch", f"{peer} was delivered different files than we were"))
            return
        self._votes.add(peer)
        self._kept = self._kept or kept

    def withdrew(self, peer: str, problem: Problem) -> None:
        """A peer will not keep the release, unless another tells it that it has kept it."""
        self._withdrawn.add(peer)
        self._withdraw(problem)

    def lost(self, peer: str, problem: Problem) -> None:
        """Nothing more comes of a peer; its vote counts if it is here."""
        self._gone.add(peer)
        if peer not in self._votes:
            self._withdraw(problem)

    def late(self, patience_s: float) -> None:
        """The time for votes is over."""
        missing = ", ".join(sorted(set(self.peers) - self._votes))
        message = f"within {patience_s:g} s we did not hear that {missing} checked the release"
        self._withdraw(Problem("peer-timeout", message, missing))

    def close(self) -> None:
        """The time for last words is over."""
        self._closed = True

    def _withdraw(self, problem: Problem) -> None:
        self.trouble = self.trouble or problem


class Agreement:
    """One party's part in the commit of a run, over its links.

    Functionality:  all parties keep the release, or none.
    Input, each:    the digest of the release that it checked and set aside.
    Output, each:   that it is to be kept, and then all digests are equal; or why not.
    Leakage:        the digest; of a withdrawal the reason.
    Rounds:         2 ("commit/checked", "commit/kept"); 1 more where a party withdraws ("commit/withdrawn").
    Bytes:          64 to each other party.
    Assumes:        parties that do not lie about what they checked and kept; the window that the module tells of.
    Source:         two-phase commit without a coordinator's log; folklore.
    """

    def __init__(
        self, links: Mapping[str, Link], release: bytes, *, patience_s: float, last_words_s: float
    ) -> None:
        """``patience_s``: for votes. ``last_words_s``: for what a live peer answers at once."""
        self._links = links
        self._ballot = Ballot(frozenset(links), release)
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
        """Vote; return when the release is to be kept. Raises JobFailed if nobody keeps it."""
        ballot = self._ballot
        self._tell(CHECKED, ballot.release)
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
        """Tell the others that the release is in place here, and that nothing follows."""
        self._tell(KEPT, self._ballot.release)
        self._sending += [asyncio.create_task(link.end()) for link in self._links.values()]

    async def ended(self) -> None:
        """Give the others a moment to hear it, and to say the same."""
        await asyncio.wait(self._listening, timeout=self._last_words_s)

    def _tell(self, step: str, payload: bytes) -> None:
        """To all, without waiting: one of them may take nothing any more."""
        self._sending += [asyncio.create_task(link.send(step, payload)) for link in self._links.values()]

    async def _hear(self, enough: Callable[[], bool], patience_s: float) -> None:
        """Take what is said until the outcome is known, there is ``enough``, or the time is over."""
        with suppress(TimeoutError):  # what is missing then, the ballot shows
            async with asyncio.timeout(patience_s):
                while self._ballot.keeps is None and not enough():
                    (await self._heard.get())()
                    while not self._heard.empty():  # a withdrawal may have come with the vote before it
                        self._heard.get_nowait()()

    async def _listen(self, link: Link) -> None:
        """Pass on what a peer says, all that arrived at once; then what ended it."""
        try:
            for _ in range(_MOST_WORDS + 1):
                if (message := await link.take()) is None:
                    raise PartyError("peer-lost", f"{link.peer} ended the run", party=link.peer)
                self._heard.put_nowait(partial(self._take, link.peer, *message))
            raise RemoteProtocolError(link.peer, CHECKED, "a message that nobody awaits")
        except JobFailed as error:  # it says itself that it ended the job
            self._heard.put_nowait(partial(self._ballot.withdrew, link.peer, error.problem))
            self._heard.put_nowait(partial(self._ballot.lost, link.peer, error.problem))
        except (PartyError, RemoteProtocolError) as error:
            self._heard.put_nowait(partial(self._ballot.lost, link.peer, problem_of(error)))

    def _take(self, peer: str, step: str, payload: bytes) -> None:
        try:
            self._ballot.hear(peer, step, payload)
        except RemoteProtocolError as error:
            self._ballot.lost(peer, problem_of(error))
