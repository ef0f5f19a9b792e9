"""The audit's lines about one run: when it began, what it revealed and charged, what it came to."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from crypto.errors import LocalProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.errors import PartyError, Problem
from jobs.ledger import ChargedJob
from jobs.task import Result, Task
from party.owner.audit import Audit, Entry
from party.owner.chain import Head
from party.owner.heads import NONE, LastHeads, in_hex, telling

R = TypeVar("R")
log = logging.getLogger("party")

RELEASED = "released"
_SALT_BYTES = 16


class RunAudit:
    """What one run at this party adds to the audit. Every line has its job and its run."""

    def __init__(self, audit: Audit, task: Task, run: bytes, coordinator: str, protocol: int = 0) -> None:
        """``run``: 16 bytes, the same at all parties, as is ``protocol`` (:mod:`party.net.protocol`)."""
        self._audit = audit
        self._last = LastHeads(audit.folder.parent)
        self._task = task
        self._coordinator = coordinator
        self._protocol = protocol
        self._which = {"job": task.job.name, "run": run.hex()}
        self._revealed: list[dict[str, Any]] = []
        self._written: Counter[tuple[str, str, int]] = Counter()
        self.begun = False
        self._ended = False

    def write(self, kind: str, **fields: Any) -> Head:
        """Write a line about this run. Raises PartyError: then the run must not go on."""
        return self._audit.write(kind, **self._which, **fields)

    def start(self) -> None:
        """The table is about to be read; nothing about it has left. Raises PartyError."""
        task, job = self._task, self._task.job
        fields = {
            "job_sha256": task.digest.hex(),
            "coordinator": self._coordinator,
            "parties": list(job.roster),
            "leader": job.leader_name,
            "mode": task.mode.name,
            "protocol": self._protocol,
            "may_reveal": [[row.name, row.to] for row in task.reveals],
        }
        self.write("start", **fields)
        self.begun = True

    def charge(self, what: str, job: ChargedJob) -> None:
        """As :data:`jobs.ledger.Told`. Raises PartyError: then nothing is charged, and the run ends."""
        self.write("charge", charged=what, model=job.kind, epsilon=str(job.epsilon))

    def release(self, digest: bytes, *, agreed: bool) -> None:
        """Files are checked here (``agreed``), or stored at the coordinator; we are about to vote to keep them."""
        self.write("release", sha256=digest.hex(), checked_here=agreed)

    def end(self, came_to: str, rng: Rng) -> Head | None:
        """The run is over here; the first word on that counts. None if it was said before, or cannot be written.

        The salt makes the hash of this line fit to be shown: nobody finds out by it what the lines before it say.
        """
        if not self.begun or self._ended:
            return None
        self._ended = True
        try:
            return self.write("end", came_to=came_to, salt=rng.bytes(_SALT_BYTES).hex())
        except PartyError as error:
            log.error("how the run ended is not in the audit: %s", error.problem.cause, extra=self._which)
            return None

    # ---- ends of audits

    def ends_for(self, peers: Iterable[str], rng: Rng) -> dict[str, bytes]:
        """The run is released: note that, and say what to tell each other party of our chain and of its own."""
        ours, held = self.end(RELEASED, rng), self._last.all()
        return {peer: telling(ours, held.get(peer, NONE)) for peer in peers}

    def keep_heads(self, told: Mapping[str, tuple[bytes, bytes]]) -> None:
        """Write what the others told. What was released stays so if that cannot be written."""
        heads = {peer: theirs for peer, (theirs, _) in told.items()}
        held = {peer: ours for peer, (_, ours) in told.items()}
        try:
            self.write("heads", heads=in_hex(heads), held=in_hex(held))
        except PartyError as error:
            log.error("ends of others' audits are not in ours: %s", error.problem.cause, extra=self._which)
            return
        self._last.keep({peer: theirs for peer, theirs in heads.items() if theirs != NONE})

    # ---- reveals

    def revealed(self, name: str, shape: tuple[int, ...], to: str, iteration: int) -> None:
        """A value became known; its line is written before anything else leaves."""
        self._revealed.append({"name": name, "shape": list(shape), "to": to, "iteration": iteration})

    def before_sending(self, protocol: Rounds[R]) -> Rounds[R]:
        """The same protocol; but what it revealed is in the audit before its next message leaves, or its result.

        Raises PartyError if it cannot be written; what the protocol raises.
        """
        try:
            turn = next(protocol)
            while True:
                self._write_revealed()
                turn = protocol.send((yield turn))
        except StopIteration as over:
            return over.value  # type: ignore[no-any-return]  # the protocol returns R
        finally:
            protocol.close()
            self._write_revealed()

    def _write_revealed(self) -> None:
        lines: list[Entry] = [("reveal", self._which | fields) for fields in self._revealed]
        if lines:
            self._audit.write_all(lines)
            self._written.update(_known_by(fields) for fields in self._revealed)
            self._revealed.clear()

    def check(self, result: Result) -> None:
        """Whether the audit has what a result says was revealed. Raises LocalProtocolError if not: our own bug."""
        own = result.own
        if own.get("repeated"):  # nothing was revealed but in the run that is repeated
            return
        if missing := Counter(map(_known_by, own.get("reveals", ()))) - self._written:
            names = ", ".join(sorted({name for name, _, _ in missing}))
            raise LocalProtocolError(f"revealed and not in the audit: {names}")


def _known_by(fields: Mapping[str, Any]) -> tuple[str, str, int]:
    return fields["name"], fields["to"], fields["iteration"]


def came_to(problem: Problem | None) -> str:
    """What a run that is not released came to, in a word."""
    return "not-delivered" if problem is None else problem.error_id
