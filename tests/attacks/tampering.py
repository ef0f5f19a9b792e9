"""Runs in which one message is not what its sender ought to have sent, and what the honest parties make of it.

Every mode that `jobs.modes` has is run, its accounts included. What may come of a changed message:

- *refused*: a party says that a peer broke the protocol; who sent the changed message is among those it names;
- *itself*: the sender of the changed message is the first to stop, because of what others made of that message;
- *documented*: another documented error (data, privacy, policy), to which a party with other inputs could have led;
- *waits*: parties wait for each other, which a daemon ends after `timeouts.round_s` (`peer-timeout`);
- *harmless*: the same result as undisturbed;
- *ended*: the same result at all parties, but not that one (docs/security.md, N1);
- *differ*: parties have different results, which the coordinator finds by their digests.

`innocent` and `bug` are findings: somebody is named who did nothing, or an exception is raised that is no protocol's.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from anonymize.errors import AnonymizeError
from anonymize.tds import Observer
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Tamper, Transcript, run_local
from crypto.paillier import PrivateKey, generate_key
from crypto.rounds import Inbox, Round, Rounds
from jobs.data.sources import Csv
from jobs.data.tables import Table
from jobs.errors import PartyError
from jobs.file.bundle import Bundle
from jobs.modes import protocol_of
from jobs.owner.answers import Answering
from jobs.owner.ledger import PrivacyLedger
from jobs.owner.objections import allowance
from jobs.owner.policy import Policy
from jobs.task import Mode, Result, RunInputs, Task
from tests.support import jobs
from tests.support.dp_jobs import dp_joint, dp_tables
from tests.support.joint import sample_rows
from tests.support.modes import MODES
from tests.support.rng import SeededRng
from tests.support.samples import columns, joint_job, vertical_job
from tests.support.synthetic_jobs import synthetic_joint
from tests.support.wards import dealt_records, joint_wards_job, movements

Verdict = Literal[
    "refused", "itself", "documented", "waits", "harmless", "ended", "differ", "innocent", "bug"
]
FINDINGS: tuple[Verdict, ...] = ("innocent", "bug")
JOINT: Mapping[str, Mode] = {mode.name: mode for mode in MODES if mode.least > 0}
COORDINATOR = "coordinator"
_N_ROWS = 24
_EVERY_WORD = (0, 1, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1)


COLLUDERS = "horizontal/sealed with colluders"
PLAIN = "horizontal/sealed/kd with plain columns"
KINDS: Sequence[str] = (*JOINT, COLLUDERS, PLAIN)
"""The modes, and what else of a mode has messages of its own."""


def _of_sequences(mode: Mode) -> dict[str, Any]:
    return joint_wards_job(parties={name: {"address": f"{name}:1"} for name in ("north", "south", "west")})


def _of_dp(mode: Mode) -> dict[str, Any]:
    return dp_joint(mode.partition, {"engine": mode.level, "max_rows": "30"})


def _of_synthetic(mode: Mode) -> dict[str, Any]:
    return synthetic_joint(mode.partition, {"max_rows": "30"})


def _of_lkc(mode: Mode) -> dict[str, Any]:
    if mode.partition == "vertical":
        return vertical_job(disclosure=mode.level, model={"lkc": {"L": "2", "K": "2", "C": "0.8"}})
    level, _, method = mode.level.partition("/")
    if method:
        model = {"lkc": {"L": "all", "K": "2", "C": "0.8"}}
        return joint_job(disclosure=level, method=method, goal="general", model=model)
    return joint_job(disclosure=level)


def _readings(folder: Path, bundle: Bundle) -> Mapping[str, Path]:
    return dealt_records(folder, bundle.job.roster, movements(_N_ROWS))


def _rows(folder: Path, bundle: Bundle) -> Mapping[str, Path]:
    return dp_tables(folder, bundle, sample_rows(_N_ROWS))


@dataclass(frozen=True)
class Small:
    """Of a model a small job of each of its modes, and the parties' tables, in a folder."""

    fields: Callable[[Mode], dict[str, Any]]
    tables: Callable[[Path, Bundle], Mapping[str, Path]]


_MODELS: Mapping[str, Small] = {
    "lkc": Small(_of_lkc, _rows),
    "dp": Small(_of_dp, _rows),
    "synthetic": Small(_of_synthetic, _rows),
    "sequences": Small(_of_sequences, _readings),
}


def fields_of(mode: Mode) -> dict[str, Any]:
    """A small job of a mode."""
    return _MODELS[mode.model].fields(mode)


def _fields_of_kind(kind: str) -> dict[str, Any]:
    if kind == PLAIN:
        plain = columns(transfused={"role": "plain"})
        return {**fields_of(JOINT["horizontal/sealed/kd"]), "columns": plain}
    if kind != COLLUDERS:
        return fields_of(JOINT[kind])
    return joint_job(disclosure="sealed", model={"lkc": {"L": "2", "K": "2", "C": "0.8", "colluders": "1"}})


@dataclass
class Stage:
    """The parties of a small job of one mode, with their tables, ready to run it any number of times.

    files:  by party its table as it is read again for plain columns.
    """

    task: Task
    tables: Mapping[str, Table]
    files: Mapping[str, bytes]

    def run(
        self, coins: object, tamper: Tamper | None = None, watched: Watched | None = None
    ) -> tuple[set[bytes], Transcript]:
        """Run the job with new ledgers; return the different results, encoded, and the transcript."""
        watched = watched or Watched()
        with tempfile.TemporaryDirectory() as folder, _keys_drawn_once():
            parties = {me: watched.watching(me, self._party(Path(folder), me, coins)) for me in self.tables}
            results, transcript = run_local(parties, record=tamper is None, tamper=tamper)
        return {result.encoded for result in results.values()}, transcript

    def _party(self, folder: Path, me: str, coins: object) -> Rounds[Result]:
        policy = Policy.model_validate(allowance(self.task, me, COORDINATOR))
        ledger = PrivacyLedger(folder / me, me, COORDINATOR)
        account = Answering(
            self.task.model.charges.account(ledger, policy, self.task, bytes(16)), ledger, policy, self.task
        )
        path = folder / f"{me}.csv"
        path.write_bytes(self.files[me])
        rng, run_inputs = SeededRng((coins, me)), RunInputs(Csv(path))
        return protocol_of(self.task, me, self.tables[me], rng, Observer(), account, run_inputs)


@cache
def _key(owner: str, bits: int) -> PrivateKey:
    """Keys of full size, drawn once: no run is about how they are drawn."""
    return generate_key(owner, SeededRng(("key", owner)), bits)


def _keys_drawn_once() -> ExitStack:
    stack = ExitStack()
    for module in ("horizontal", "vertical"):
        name = f"anonymize.joint.dp.thesis.{module}.generate_key"
        stack.enter_context(patch(name, lambda owner, rng, bits, **_: _key(owner, bits)))
    return stack


@dataclass
class Watched:
    """State of the parties of a run: the last round of each, and the party that raised what the run ended
    with.
    """

    rounds: dict[str, Round] = field(default_factory=dict)
    raised: list[str] = field(default_factory=list)

    def watching(self, me: str, generator: Rounds[Result]) -> Rounds[Result]:
        """The same generator."""
        inbox: Inbox | None = None
        while True:
            try:
                self.rounds[me] = next(generator) if inbox is None else generator.send(inbox)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            except Exception:
                self.raised.append(me)
                raise
            inbox = yield self.rounds[me]

    def complainants(self, culprit: str, step: str) -> set[str]:
        """Return the parties that say that a message of the culprit is wrong: they raised it, or wait for
        that message.
        """
        waiting = {me for me, at in self.rounds.items() if at.step == step and culprit in at.wait_for}
        return set(self.raised) or waiting


def stage(mode: str) -> Stage:
    """The parties of a small job of one of :data:`KINDS`."""
    bundle = jobs.bundle_of(_fields_of_kind(mode))
    task = jobs.open_task(bundle)
    with tempfile.TemporaryDirectory() as folder:
        paths = _MODELS[task.mode.model].tables(Path(folder), bundle)
        tables = {me: task.load(Csv(path), me) for me, path in paths.items()}
        return Stage(task, tables, {me: path.read_bytes() for me, path in paths.items()})


def changed(payload: bytes, earlier: Sequence[bytes], rng: random.Random) -> tuple[str, bytes]:
    """Change a message; return the change in a word, and the message; ``earlier``: messages of its step
    before it.
    """
    how = rng.choice(sorted(_WAYS))
    return how, _WAYS[how](payload, earlier, rng)


def _flipped(payload: bytes, n_bits: int, rng: random.Random) -> bytes:
    data = bytearray(payload)
    for _ in range(n_bits if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _words(payload: bytes, rng: random.Random) -> bytes:
    whole = len(payload) // 8
    words = b"".join(rng.choice(_EVERY_WORD).to_bytes(8, "little") for _ in range(whole))
    return words + payload[8 * whole :]


_WAYS: Mapping[str, Callable[[bytes, Sequence[bytes], random.Random], bytes]] = {
    "a bit": lambda payload, _, rng: _flipped(payload, 1, rng),
    "many bits": lambda payload, _, rng: _flipped(payload, max(1, len(payload) // 8), rng),
    "shorter": lambda payload, _, rng: payload[: rng.randrange(len(payload) + 1)],
    "longer": lambda payload, _, rng: payload + rng.randbytes(rng.randrange(1, 20)),
    "zeros": lambda payload, *_: bytes(len(payload)),
    "ones": lambda payload, *_: b"\xff" * len(payload),
    "empty": lambda *_: b"",
    "words": lambda payload, _, rng: _words(payload, rng),
    "an earlier one": lambda payload, earlier, rng: rng.choice(earlier) if earlier else payload[:-1],
}


@dataclass
class Tampered:
    """One message of a run, changed: the ``index``-th of a step."""

    step: str
    index: int
    rng: random.Random
    sender: str = ""
    how: str = ""
    _earlier: list[bytes] = field(default_factory=list)

    def __call__(self, message: Message) -> bytes:
        if message.step != self.step:
            return message.payload
        self._earlier.append(message.payload)
        if len(self._earlier) != self.index + 1:
            return message.payload
        self.sender = message.sender
        self.how, payload = changed(message.payload, self._earlier[:-1], self.rng)
        return payload


@dataclass
class Tally:
    """Outcome of the runs of one mode, and an example of each finding."""

    verdicts: Counter[str] = field(default_factory=Counter)
    found: dict[str, str] = field(default_factory=dict)


def tally(mode: str, runs: int, seed: object = 0) -> Tally:
    """Change one message in each of ``runs`` runs of a mode: any step as often as any other."""
    rng, made, total = random.Random(str(seed) + mode), stage(mode), Tally()  # noqa: S311  inputs, no secrets
    results, transcript = made.run(0)
    steps = Counter(message.step for message in transcript.messages)
    for _ in range(runs):
        step = rng.choice(sorted(steps))
        tampered = Tampered(step, rng.randrange(steps[step]), rng)
        verdict, said = _verdict(made, results, tampered)
        total.verdicts[verdict] += 1
        if verdict in FINDINGS:
            total.found.setdefault(f"{verdict}: {said}", f"{tampered.sender} at {step}: {tampered.how}")
    return total


def _verdict(made: Stage, undisturbed: set[bytes], tampered: Tampered) -> tuple[Verdict, str]:
    watched = Watched()
    try:
        results, _ = made.run(0, tampered, watched)
    except RemoteProtocolError as error:
        if is_named(tampered.sender, error.culprit):
            return "refused", ""
        who = watched.complainants(error.culprit, error.step)
        return ("itself" if who == {tampered.sender} else "innocent"), f"{sorted(who)}: {error}"
    except LocalProtocolError as error:
        return ("waits" if "every party waits" in str(error) else "bug"), str(error)
    except (AnonymizeError, PartyError) as error:
        return "documented", str(error)
    except Exception as error:  # noqa: BLE001  what is looked for
        return "bug", f"{type(error).__name__}: {error}"
    if len(results) > 1:
        return "differ", ""
    return ("harmless" if results == undisturbed else "ended"), ""


def is_named(sender: str, culprit: str) -> bool:
    """Return True if a diagnosis (`hospital-a or hospital-b`) has the sender among those who may have been
    it.
    """
    return sender in culprit.split(" or ")


def _main(runs: int, modes: Sequence[str]) -> int:
    """Print what comes of ``runs`` runs, shared out among the modes; the number of findings."""
    findings = 0
    for mode in modes:
        began = time.monotonic()
        total = tally(mode, -(-runs // len(modes)))
        print(mode, f"{time.monotonic() - began:.0f} s", dict(sorted(total.verdicts.items())), flush=True)
        for what, where in total.found.items():
            print(f"  {what} ({where})", flush=True)
        findings += len(total.found)
    return findings


if __name__ == "__main__":
    sys.exit(min(_main(int(sys.argv[1]), sys.argv[2:] or KINDS), 1))
