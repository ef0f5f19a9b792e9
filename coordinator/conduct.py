"""Conducting a joint job: submit to every party, start, watch, collect, deliver.

One stream per party carries the whole job. As soon as one of them fails, the others are told to stop, and of
all that is reported within a moment the root cause is shown: what a party says about itself before what
others say about its silence.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from party import messages
from party.bundle import Bundle
from party.config import CoordinatorConfig, credentials_of, peers_of
from party.dp_release import delivered_files
from party.dp_result import DpResult
from party.errors import JobFailed, PartyError, Problem, TransportError, json_object, problem_of
from party.messages import Event, Progress, pieces
from party.parts import decoded_result
from party.result import LkcResult
from party.transport import Calls, ControlStream

_GRACE_S = 1.5
_COMMIT_S = 5.0
_RANK = {"peer-timeout": 1, "peer-unreachable": 1, "peer-lost": 2, "cancelled": 3}
"""Errors that follow from others; anything else is a root cause."""

OnProgress = Callable[[str, Progress], None]


@dataclass
class _Member:
    """One party's side of the job, as the coordinator sees it."""

    name: str
    stream: ControlStream
    admitted: bool = False
    finished: messages.Finished | None = None
    results: dict[str, bytearray] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    checked: bool = False


@dataclass(frozen=True)
class Conducted:
    """What a joint run gave: the result, what the parties sent besides, and the account.

    parts:  by party its rows (horizontal, plain columns), or its columns by cell (vertical).
    """

    result: LkcResult | DpResult
    parts: dict[str, bytes]
    reveals: list[dict[str, Any]]
    parties: dict[str, Any]


class Conductor:
    """Talks to all parties of one job."""

    def __init__(self, bundle: Bundle, config: CoordinatorConfig, on_progress: OnProgress) -> None:
        self._bundle = bundle
        self._config = config
        self._on_progress = on_progress
        self._members: dict[str, _Member] = {}
        self._news: asyncio.Queue[tuple[str, Event | PartyError | None]] = asyncio.Queue()
        self._readers: list[asyncio.Task[None]] = []
        self._told: list[tuple[str, Problem]] = []
        self._calls = Calls(config, credentials_of(config), peers_of(config))
        self._phase = "connect"

    async def connect(self) -> None:
        """Open a stream with every party. Raises the first error, with nothing left open."""
        try:
            await self._open()
        except PartyError as error:
            await self._close()
            raise JobFailed(error.problem.at(None, self._phase)) from error
        except BaseException:
            await self._close()
            raise
        self._readers = [asyncio.create_task(self._read(member)) for member in self._members.values()]

    async def __aenter__(self) -> Conductor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whatever happened, end every stream; of several errors, raise the one that explains the others."""
        try:
            if error is not None:
                cause = await self._root_cause(problem_of(error))
                if isinstance(error, PartyError):
                    raise JobFailed(cause) from error
        finally:
            await self._close()

    async def _close(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        closing = (member.stream.close() for member in self._members.values())
        await asyncio.gather(*closing, return_exceptions=True)
        await self._calls.close()

    async def _open(self) -> None:
        entries = self._bundle.job.parties or {}
        names = list(entries)
        addresses = [self._address(name, entries[name].address) for name in names]
        opened = await asyncio.gather(
            *(
                self._calls.open_control(name, address)
                for name, address in zip(names, addresses, strict=True)
            ),
            return_exceptions=True,
        )
        for name, stream in zip(names, opened, strict=True):
            if not isinstance(stream, BaseException):
                self._members[name] = _Member(name, stream)
        for stream in opened:
            if isinstance(stream, BaseException):
                raise stream

    def _address(self, name: str, from_job: str) -> str:
        entry = self._config.peers.get(name)
        return (entry.address if entry else None) or from_job

    async def submit(self) -> None:
        """Send the bundle to every party and wait until all have admitted it."""
        self._phase = "admit"
        run = secrets.token_bytes(messages.RUN_BYTES)
        for piece in pieces("bundle", self._bundle.encoded):
            await self._tell_all(messages.Submit(run, piece))
        await self._until(lambda m: m.admitted)

    async def compute(self) -> None:
        """Start every party and wait until all have finished."""
        self._phase = "run"
        await self._tell_all(messages.Start())
        await self._until(lambda m: m.finished is not None)

    async def collect(self) -> Conducted:
        """Compare the parties' results and fetch what the table is made of."""
        self._phase = "collect"
        job, members = self._bundle.job, list(self._members.values())
        digests = {m.finished.result for m in members if m.finished is not None}
        if len(digests) != 1:
            raise PartyError("result-mismatch", "the parties ended with different results")
        leader = self._members[job.leader_name]
        wanted = {m.name: job.parts_of(m.name) for m in members}
        for member in members:
            if wanted[member.name]:
                await member.stream.write(messages.Fetch())
        await self._until(lambda m: m.complete >= wanted[m.name])
        encoded = bytes(leader.results["result"])
        if hashlib.sha256(encoded).digest() != digests.pop():
            raise PartyError(
                "result-mismatch", "the leader sent another result than it announced", party=leader.name
            )
        result = decoded_result(encoded, self._bundle, leader.name)
        summaries = {m.name: _summary(m) for m in members}
        reveals = [summary.pop("reveals", []) for summary in summaries.values()]
        if any(ledger != reveals[0] for ledger in reveals):
            raise PartyError("result-mismatch", "the parties ended with different reveal ledgers")
        if isinstance(result, DpResult):
            result = replace(result, repeated=_all_repeat(summaries))
        parts = {
            m.name: bytes(m.results[name]) for m in members for name in wanted[m.name] if name != "result"
        }
        return Conducted(result, parts, reveals[0], summaries)

    async def deliver(self, folder: Path) -> None:
        """Send table (or counts) and report to every party; wait until each has checked them and set them aside."""
        self._phase = "deliver"
        for name in delivered_files(self._bundle):
            for piece in pieces(name, (folder / name).read_bytes()):
                await self._tell_all(messages.Release(piece))
        await self._until(lambda m: m.checked)

    async def commit(self) -> list[str]:
        """Tell every party to keep what was delivered; return those that do not confirm it in time.

        The job has succeeded by now: one party's trouble takes the table from nobody, so nothing is raised.
        """
        writes = (member.stream.write(messages.Commit()) for member in self._members.values())
        await asyncio.gather(*writes, return_exceptions=True)
        silent, kept = set(self._members), set()
        with suppress(TimeoutError):  # who was late is returned
            async with asyncio.timeout(_COMMIT_S):
                while silent:
                    name, event = await self._news.get()
                    silent.discard(name)
                    if isinstance(event, messages.Delivered):
                        kept.add(name)
        return [name for name in self._members if name not in kept]

    async def _tell_all(self, request: messages.Request) -> None:
        await asyncio.gather(*(member.stream.write(request) for member in self._members.values()))

    async def _until(self, met: Callable[[_Member], bool]) -> None:
        """Take news until every party meets the condition. Raises what a party failed with."""
        while not all(met(member) for member in self._members.values()):
            try:
                async with asyncio.timeout(self._config.timeouts.round_s):
                    name, event = await self._news.get()
            except TimeoutError:
                late = ", ".join(name for name, member in self._members.items() if not met(member))
                raise TransportError("peer-timeout", f"nothing from {late} in time", party=late) from None
            self._take(self._members[name], event)

    def _take(self, member: _Member, event: Event | PartyError | None) -> None:
        match event:
            case messages.Progress():
                self._on_progress(member.name, event)
            case messages.Admitted(job) if job == self._bundle.digest:
                member.admitted = True
            case messages.Finished():
                member.finished = event
            case messages.ResultPart(piece):
                member.results.setdefault(piece.name, bytearray()).extend(piece.content)
                member.complete |= {piece.name} if piece.last else set()
            case messages.Checked():
                member.checked = True
            case messages.Failed(problem):
                self._told.append((member.name, problem))
                raise JobFailed(problem)
            case PartyError():
                raise event
            case None:
                raise TransportError(
                    "peer-lost", f"{member.name} ended the job", party=member.name, phase=self._phase
                )
            case _:
                raise PartyError(
                    "job-hash-mismatch", f"{member.name} admitted another job", party=member.name
                )

    async def _read(self, member: _Member) -> None:
        """Pass everything a party says on, until it ends."""
        try:
            while (event := await member.stream.read()) is not None:
                await self._news.put((member.name, event))
            await self._news.put((member.name, None))
        except PartyError as error:
            await self._news.put((member.name, error))

    async def _root_cause(self, first: Problem) -> Problem:
        """Stop everybody; listen a moment longer; return the problem that explains the others."""
        problems = [first]
        cancels = (m.stream.write(messages.Cancel()) for m in self._members.values())
        await asyncio.gather(*cancels, return_exceptions=True)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (_GRACE_S if _RANK.get(first.error_id, 0) else _GRACE_S / 5)
        while (left := deadline - loop.time()) > 0:
            try:
                async with asyncio.timeout(left):
                    name, event = await self._news.get()
            except TimeoutError:
                break
            if isinstance(event, messages.Failed):
                self._told.append((name, event.problem))
            if isinstance(event, messages.Failed | PartyError):
                problems.append(event.problem)
        return root_cause(problems, self._told).at(None, self._phase)


def root_cause(problems: Sequence[Problem], told: Sequence[tuple[str, Problem]]) -> Problem:
    """The problem that explains the others: of the least rank, then one that blames a party which blames nobody.

    told: who said what. Who waits in vain for one that waits in vain itself only passes the trouble on.
    """
    blaming = {name for name, problem in told if problem.party not in {name, None}}
    return min(problems, key=lambda problem: (_RANK.get(problem.error_id, 0), problem.party in blaming))


def _all_repeat(summaries: Mapping[str, dict[str, Any]]) -> bool:
    """Take out of the accounts whether parties gave the result of an earlier run again: all did, or none."""
    said = [summary.pop("repeated", None) for summary in summaries.values()]
    if not isinstance(said[0], bool) or any(word is not said[0] for word in said):
        raise PartyError("result-mismatch", "some parties gave an earlier result again, others did not")
    return said[0]


def _summary(member: _Member) -> dict[str, Any]:
    assert member.finished is not None
    fields = json_object(member.finished.summary)
    if fields is None:
        raise PartyError("peer-protocol", f"{member.name} sent no account of the run", party=member.name)
    return fields
