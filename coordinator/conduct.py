"""Conduct of a joint job: submit to every party, start, watch, collect, deliver.

A stream per party carries the whole job. As soon as a party fails, the remaining parties are told to stop. Among
all reports within a moment, the root cause is shown: a party's report about itself comes before peers' reports
about its silence.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, assert_never

from crypto.mixing import OpeningKey
from crypto.rng import SystemRng
from jobs.errors import (
    ANSWERS,
    CATALOGUE,
    JobFailed,
    PartyError,
    Problem,
    TransportError,
    json_object,
    problem_of,
)
from jobs.release.maker import is_cost_of_party
from jobs.release.report import SIGNATURES, as_text
from jobs.release.signatures import read_signatures
from jobs.task import Collected, Result, Task
from party.net import control
from party.net.client import Calls, ControlStream
from party.net.control import Event, Progress, pieces
from party.owner.config import RELAYED, CoordinatorConfig, address_of, credentials_of, peers_of, usable_peer
from party.owner.signing import check_signed, der_of

_GRACE_S = 1.5
_COMMIT_S = 5.0
_TELLS_S = 5.0
"""Time for a party to tell which peer it waits for in vain: its ``round_s`` begins later than ours."""
_NEWS_AHEAD = 8
_RANK = {"peer-timeout": 1, "peer-unreachable": 1, "peer-lost": 2, "cancelled": 3}
"""Errors caused by earlier errors, by rank; all remaining errors are root causes."""

_LOST_AT_RELAY = "look at the party's log, and at the log of the relay; start the job again"

WAITING, DENIED = "approval-waiting", "approval-denied"
UNAPPROVED = (WAITING, DENIED)
"""Errors of an owner who has not approved the job. The coordinator waits for the answers of all parties."""

_BEAT_S, _LONG_S = 0.25, 3.0
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Clock that counts the machine's sleep, if available."""

OnProgress = Callable[[str, Progress], None]


@dataclass
class _Member:
    """A party's side of the job, as the coordinator sees the party."""

    name: str
    stream: ControlStream
    allowed: bool = False
    unapproved: Problem | None = None
    """Reason that the owner's approval is missing, if it is."""
    admitted: bool = False
    finished: control.Finished | None = None
    results: dict[str, bytearray] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    wanted: frozenset[str] = frozenset()
    """Names of the parts due from the party; empty until the party has finished."""


class Conductor:
    """Conductor of all parties of a job."""

    def __init__(self, task: Task, config: CoordinatorConfig, on_progress: OnProgress) -> None:
        self._task = task
        self._config = config
        self._on_progress = on_progress
        self._members: dict[str, _Member] = {}
        self._news: asyncio.Queue[tuple[str, Event | PartyError | None]] = asyncio.Queue(_NEWS_AHEAD)
        self._readers: list[asyncio.Task[None]] = []
        self._told: list[tuple[str, Problem]] = []
        self._calls = Calls(config, credentials_of(config), peers_of(config))
        self._phase = "connect"
        self._slept_s = 0.0
        self._noticing: asyncio.Task[None] | None = None
        self._submitting: asyncio.Task[None] | None = None
        self._key = OpeningKey(SystemRng()) if task.job.deliver == "coordinator" else None

    async def connect(self) -> None:
        """Open a stream with every party, and begin to submit. Raises the first error, with nothing left open."""
        try:
            await self._open()
        except PartyError as error:
            await self._close()
            raise JobFailed(error.problem.at(None, self._phase)) from error
        except BaseException:
            await self._close()
            raise
        self._readers = [asyncio.create_task(self._read(member)) for member in self._members.values()]
        self._noticing = asyncio.create_task(self._notice_sleep())

    async def __aenter__(self) -> Conductor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every stream, after success and failure alike; of several errors, raise the root cause."""
        try:
            if error is not None:
                is_interrupted = isinstance(error, asyncio.CancelledError)
                found = Problem("cancelled", "interrupted") if is_interrupted else problem_of(error)
                cause = await self._root_cause(found)
                if isinstance(error, PartyError):
                    raise JobFailed(cause) from error
        finally:
            await self._close()

    async def _close(self) -> None:
        tasks = [*self._readers, *(task for task in (self._noticing, self._submitting) if task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        closing = (member.stream.close() for member in self._members.values())
        await asyncio.gather(*closing, return_exceptions=True)
        await self._calls.close()

    async def _open(self) -> None:
        """Open the streams. Once all parties are connected, submit while the parties are asked for their versions.

        Nothing that a party says is read before all versions are known, and the protocols of all are the same.
        """
        names = self._task.job.roster
        for name in names:
            usable_peer(self._config, name)
        addresses = [address_of(self._config, self._task.job, name) for name in names]
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
        if len(self._members) == len(names):
            self._submitting = asyncio.create_task(self._submit())
        waiting = (self._calls.reached(*each) for each in zip(names, addresses, strict=True))
        reached = await asyncio.gather(*waiting, return_exceptions=True)
        for found in (*reached, *opened):
            if isinstance(found, BaseException):
                raise found
        first, *others = zip(names, reached, strict=True)
        for name, protocols in others:
            if protocols != first[1]:
                raise PartyError(
                    "version", f"{name} has other protocols of joint runs than {first[0]}", party=name
                )

    async def _submit(self) -> None:
        run = secrets.token_bytes(control.RUN_BYTES)
        for piece in pieces("bundle", self._task.bundle.encoded):
            await self._tell_all(control.Submit(run, piece))

    async def submit(self) -> None:
        """Send the rest of the bundle. Wait until all parties allow the job, then until all tables fit.

        Raises JobFailed, with the names of all parties whose owners have not approved the job.
        """
        assert self._submitting is not None  # connected
        self._phase = "admit"
        await self._submitting
        await self._until(lambda m: m.allowed or m.unapproved is not None)
        if unapproved := {m.name: m.unapproved for m in self._members.values() if m.unapproved is not None}:
            raise JobFailed(not_approved(self._task, unapproved))
        await self._tell_all(control.Read())
        await self._until(lambda m: m.admitted)

    async def compute(self) -> None:
        """Start every party and wait until all have finished."""
        self._phase = "run"
        await self._tell_all(control.Start(b"" if self._key is None else self._key.public))
        await self._until(lambda m: m.finished is not None, _TELLS_S)

    async def collect(self) -> Collected:
        """Compare the parties' results and take the parts of the table."""
        self._phase = "collect"
        job, members = self._task.job, list(self._members.values())
        digests = {m.finished.result for m in members if m.finished is not None}
        if len(digests) != 1:
            raise PartyError("result-mismatch", "the parties ended with different results")
        leader = self._members[job.leader_name]
        await self._until(lambda m: m.complete >= m.wanted)
        encoded = bytes(leader.results["result"])
        if hashlib.sha256(encoded).digest() != digests.pop():
            raise PartyError(
                "result-mismatch",
                "the leader announced a different result than the result sent",
                party=leader.name,
            )
        result = self._task.model.decode(self._task, encoded, leader.name)
        summaries = {m.name: _summary(m) for m in members}
        result = result.completed(_told(summaries, result))
        signatures = self._signatures(summaries, encoded)
        for name, cost in summaries.items():
            if not is_cost_of_party(cost, job.roster):
                raise PartyError("peer-protocol", f"{name} reported costs in an unknown form", party=name)
        return Collected(result, _parts(members), summaries, signatures, self._key)

    def _signatures(self, summaries: Mapping[str, dict[str, Any]], encoded: bytes) -> dict[str, Any]:
        """Take the parties' signatures out of their accounts.

        Raises PartyError unless all accounts give the same signatures, of this result, with the certificates
        installed here.
        """
        told = [summary.pop(SIGNATURES, None) for summary in summaries.values()]
        if not isinstance(told[0], dict) or any(as_text(each) != as_text(told[0]) for each in told):
            raise PartyError("result-mismatch", "the parties give different signatures of the run")
        signed = read_signatures(told[0], self._task.digest, self._task.job.roster)
        if signed[0].statement.result != hashlib.sha256(encoded).hexdigest():
            raise PartyError("result-mismatch", "the parties signed a different result than the result sent")
        known = {name: der_of(usable_peer(self._config, name).certificate) for name in self._members}
        check_signed(signed, known)
        return told[0]

    async def deliver(self, folder: Path, release: bytes) -> list[str]:
        """Send table (or counts), report and digests to every party, or their digest if parties get no files.

        From the last message on the parties decide among themselves whether to keep the release, so ``folder`` must
        be on disk. Returns when a party keeps the release, with the parties without a confirmation in time. Raises
        PartyError if all parties have ended the job, or are silent.

        release:  the digest of the release in ``folder``.
        """
        self._phase = "deliver"
        if self._task.job.deliver == "coordinator":
            await self._tell_all(control.Stored(release))
        else:
            for name in self._task.delivered:
                for piece in pieces(name, (folder / name).read_bytes()):
                    await self._tell_all(control.Release(piece))
        self._phase = "commit"
        return await self._kept(release)

    async def _kept(self, release: bytes) -> list[str]:
        """Hear the parties' decision. A party keeps a release only after all parties have checked the files."""
        kept, ended = set[str](), dict[str, Problem]()
        while waiting := self._members.keys() - kept - ended.keys():
            try:
                async with asyncio.timeout(_COMMIT_S if kept else self._config.timeouts.round_s):
                    name, event = await self._news.get()
            except TimeoutError:
                late = ", ".join(sorted(waiting))
                ended[late] = Problem("peer-timeout", f"nothing from {late} in time", late)
                break
            match event:
                case control.Delivered(found) if found == release:
                    kept.add(name)
                case control.Delivered():
                    ended[name] = Problem(
                        "result-mismatch", f"{name} keeps different files than the files delivered", name
                    )
                case _:
                    self._note_end(name, event, ended)
        if not kept:
            raise JobFailed(root_cause(list(ended.values()), self._told))
        return [name for name in self._members if name not in kept]

    def _note_end(self, name: str, event: Event | PartyError | None, ended: dict[str, Problem]) -> None:
        """Note the first problem that ends a party."""
        try:
            self._take(self._members[name], event)
        except PartyError as error:
            ended.setdefault(name, error.problem)

    async def _tell_all(self, request: control.Request) -> None:
        await asyncio.gather(*(member.stream.write(request) for member in self._members.values()))

    async def _until(self, met: Callable[[_Member], bool], more_s: float = 0) -> None:
        """Take news until every party meets the condition. Raises a failed party's error.

        more_s:  seconds to wait beyond ``round_s``.
        """

        def late() -> str:
            return ", ".join(name for name, member in self._members.items() if not met(member))

        while not all(met(member) for member in self._members.values()):
            try:
                async with asyncio.timeout(self._config.timeouts.round_s + more_s):
                    name, event = await self._news.get()
            except TimeoutError:
                raise TransportError("peer-timeout", f"nothing from {late()} in time", party=late()) from None
            try:
                self._take(self._members[name], event)
            except PartyError as error:
                if error.problem.error_id == "peer-timeout" and met(self._members[name]):
                    raise JobFailed(_gave_up(error.problem, name, late())) from error
                raise

    def _take(self, member: _Member, event: Event | PartyError | None) -> None:
        match event:
            case control.Progress():
                self._on_progress(member.name, event)
            case control.Allowed(job) if job == self._task.digest:
                member.allowed = True
            case control.Admitted(job) if job == self._task.digest:
                member.admitted = True
            case control.Finished():
                member.finished = event
                member.wanted = self._task.parts_of(member.name)
            case control.ResultPart(piece):
                self._take_part(member, piece)
            case control.Failed(problem) if problem.error_id in UNAPPROVED and not member.allowed:
                member.unapproved = problem
            case None if member.unapproved is not None:
                return  # the party has ended the job; the other parties still say if they allow the job
            case control.Failed(problem):
                self._told.append((member.name, problem))
                raise JobFailed(problem)
            case PartyError():
                raise event
            case None:
                raise TransportError(
                    "peer-lost", f"{member.name} ended the job", party=member.name, phase=self._phase
                )
            case control.Allowed() | control.Admitted():
                raise PartyError(
                    "job-hash-mismatch", f"{member.name} admitted another job", party=member.name
                )
            case control.Delivered():
                raise PartyError(
                    "peer-protocol",
                    f"{member.name} reported a kept release before a release was in place",
                    party=member.name,
                )
            case _:
                assert_never(event)

    def _take_part(self, member: _Member, piece: control.Piece) -> None:
        """Take a piece. Raises PartyError for a part not due, and beyond ``limits.delivery_mb`` of a party."""
        if piece.name not in member.wanted - member.complete:
            message = f"{member.name} sent a part of a result that is not due"
            raise PartyError("peer-protocol", message, party=member.name)
        limits = self._config.limits
        if sum(map(len, member.results.values())) + len(piece.content) > limits.delivery_bytes:
            bound = f"the {limits.delivery_mb} MiB of `limits.delivery_mb`"
            message = f"{member.name} sent more than {bound}"
            remedy = "raise `limits.delivery_mb` of the coordinator if releases are so large"
            raise PartyError("peer-protocol", message, party=member.name, remedy=remedy)
        member.results.setdefault(piece.name, bytearray()).extend(piece.content)
        member.complete |= {piece.name} if piece.last else set()

    async def _read(self, member: _Member) -> None:
        """Pass on all events of a party, until the end."""
        try:
            while (event := await member.stream.read()) is not None:
                await self._news.put((member.name, event))
            await self._news.put((member.name, None))
        except PartyError as error:
            await self._news.put((member.name, error))

    async def _notice_sleep(self) -> None:
        """Notice when this process did not run for seconds: the process was stopped, or the machine slept."""
        while True:
            before = _seconds()
            await asyncio.sleep(_BEAT_S)
            self._slept_s = max(self._slept_s, _seconds() - before - _BEAT_S)

    async def _root_cause(self, first: Problem) -> Problem:
        """Stop everybody; listen a moment longer; return the root cause."""
        problems = [first]
        cancel = control.Cancel(_told_to_all(first).for_others())
        cancels = (member.stream.write(cancel) for member in self._members.values())
        await asyncio.gather(*cancels, return_exceptions=True)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (_GRACE_S if _RANK.get(first.error_id, 0) else _GRACE_S / 5)
        while (left := deadline - loop.time()) > 0:
            try:
                async with asyncio.timeout(left):
                    name, event = await self._news.get()
            except TimeoutError:
                break
            if isinstance(event, control.Failed):
                self._told.append((name, event.problem))
            if isinstance(event, control.Failed | PartyError):
                problems.append(event.problem)
        cause = root_cause(problems, self._told)
        if self._slept_s >= _LONG_S and _RANK.get(cause.error_id):  # the parties took us for gone
            slept = f"for {self._slept_s:.0f} s this process did not run, and the parties ended the job"
            cause = Problem(cause.error_id, slept, remedy="start the job again, and let the process run")
        elif cause.error_id == "peer-lost" and cause.about is None and self._is_relayed(cause.party):
            cause = replace(cause, remedy=_LOST_AT_RELAY)
        return cause.at(None, self._phase)

    def _is_relayed(self, party: str | None) -> bool:
        entry = self._config.peers.get(party or "")
        return entry is not None and entry.address == RELAYED


def not_approved(task: Task, problems: Mapping[str, Problem]) -> Problem:
    """Return one problem for all parties whose owners have not approved the job. problems: by party."""
    waiting = [name for name, problem in problems.items() if problem.error_id == WAITING]
    said = [f"{name}: {problem.message}" for name, problem in problems.items() if problem.error_id != WAITING]
    if waiting:
        said.append(f"{' and '.join(waiting)} {'has' if len(waiting) == 1 else 'have'} not approved the job")
    error_id = DENIED if len(waiting) < len(problems) else WAITING
    ask = f"ask the owner to look at the job with `party show {task.digest.hex()[:12]}`; then start the job again"
    return Problem(error_id, "; ".join(said), remedy=CATALOGUE[DENIED].remedy if error_id == DENIED else ask)


def _gave_up(problem: Problem, name: str, late: str) -> Problem:
    """Return the problem of a party that waited for us, while we waited for the parties that are late."""
    return replace(
        problem,
        message=f"{problem.message}; the coordinator still waited for {late}",
        remedy=f"look at the log of {late}; if {late} needs so long, raise `timeouts.coordinator_s` at {name}",
    )


def _seconds() -> float:
    return time.clock_gettime(_CLOCK)


def _told_to_all(problem: Problem) -> Problem:
    """Return a problem fit for every party. A problem from a party's table is reduced to the party's name."""
    if problem.error_id in ANSWERS:
        return Problem("cancelled", "a different party ended the job", problem.named)
    return problem


def root_cause(problems: Sequence[Problem], told: Sequence[tuple[str, Problem]]) -> Problem:
    """Return the problem that explains the rest: of the least rank; among equals, in this order, a problem that was
    not passed on, a problem about a party that blames no peer, and a party's report about itself.

    told: the problem that each party reported. A party that waits for a waiting party only passes the
          trouble on.
    """
    blaming = {name for name, problem in told if problem.about is not None and problem.hops == 1}

    def order(problem: Problem) -> tuple[int, bool, bool, bool]:
        rank = _RANK.get(problem.error_id, 0)
        return rank, problem.hops > 1, problem.named in blaming, problem.about is not None

    return min(problems, key=order)


def _told(summaries: Mapping[str, dict[str, Any]], result: Result) -> list[dict[str, Any]]:
    """Take the statements on the result out of the parties' accounts. Raises PartyError for unequal reveals."""
    told = [
        {key: summary.pop(key) for key in result.told if key in summary} for summary in summaries.values()
    ]
    if any(each.get("reveals") != told[0].get("reveals") for each in told):
        raise PartyError("result-mismatch", "the parties ended with different reveal ledgers")
    return told


def _parts(members: Sequence[_Member]) -> dict[str, dict[str, bytes]]:
    """Return the parties' parts beside the result, by name and party."""
    parts: dict[str, dict[str, bytes]] = {}
    for member in members:
        for name in member.wanted - {"result"}:
            parts.setdefault(name, {})[member.name] = bytes(member.results[name])
    return parts


def _summary(member: _Member) -> dict[str, Any]:
    assert member.finished is not None
    fields = json_object(member.finished.summary)
    if fields is None:
        raise PartyError("peer-protocol", f"{member.name} sent no account of the run", party=member.name)
    return fields
