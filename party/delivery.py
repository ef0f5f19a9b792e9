"""After the protocol: a party's parts for the coordinator, deliveries, and the files that a party keeps."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from crypto.rng import SystemRng
from jobs.errors import ConfigError, PartyError, Problem
from jobs.page.own import own_page_of_folder, place_own_page
from jobs.page.page import write_page
from jobs.release.csv import REPORT
from jobs.release.delivery import checked_release
from jobs.release.folder import make_durable, new_folder, sweep, write_files, write_own_account
from jobs.release.report import SIGNATURES
from jobs.release.signatures import check_signatures_told, signature_fields
from jobs.release.sums import DIGEST_BYTES, SUMS, release_digest
from party.agreement import Agreement
from party.costs import account_of, own_costs, public_costs
from party.net import control
from party.net.control import pieces
from party.net.waiting import in_thread
from party.owner.accounts import BEING_MADE, RELEASES, UNFINISHED, words_of
from party.owner.problems import tell_owner
from party.requests import Heard, Left, out_of_order
from party.states import Checked, Closed, Computed, Finished, Kept, Next, Session

_LAST_WORDS = 4
"""Signs of life within which a live party reports a kept release. Three are about enough to notice a loss."""


async def announce(session: Session, run: Computed, _: Next) -> Finished:
    """Report the end of the protocol: a digest of the result, and the public part of the run; send our parts.

    All parties have signed the result by now (:func:`jobs.release.signatures.attest`), so nobody is asked again.
    """
    if run.account.remark:
        session.log(run.account.remark)
    digest = hashlib.sha256(run.result.encoded).digest()
    costs = public_costs(session.task, run.meter, session.mesh.links)
    summary = {**run.result.told, **costs, SIGNATURES: signature_fields(run.signed)}
    await session.emit(control.Finished(digest, json.dumps(summary)))
    return Finished(run, await _sent(session, run))


async def _sent(session: Session, run: Computed) -> dict[str, bytes]:
    """Send our parts of the table to the coordinator; return the parts by name."""
    parts = {}
    for name in sorted(session.task.parts_of(session.me)):
        parts[name] = await asyncio.to_thread(_part, session, run, name)
        sent = {"to": session.coordinator, "part": name, "bytes": len(parts[name])}
        await in_thread(session.note, "sent", sent)
        for piece in pieces(name, parts[name]):
            await session.emit(control.ResultPart(piece))
    return parts


def _part(session: Session, run: Computed, name: str) -> bytes:
    source, task = session.source, session.task
    return task.mode.part(task, name, session.me, source, run.table, run.result, SystemRng())


async def check(session: Session, finished: Finished, first: control.Release) -> Checked:
    """Take the files, check the files and set them aside. Raises PartyError."""
    model, result = session.task.model, finished.run.result
    files = await _received(session, first, await asyncio.to_thread(model.most_bytes, session.task, result))
    folder = _folder(session)
    await in_thread(sweep, folder.parent)  # an earlier run could not remove its files: the disk was read-only
    try:
        folder = session.unfinished.enter_context(new_folder(folder))
    except ConfigError as error:
        # Its message names a folder of ours; the coordinator and the peers hear this one.
        message = "the coordinator gave the run the number of an earlier one"
        raise PartyError("peer-protocol", message) from error
    seen = await in_thread(_set_aside, session, finished, files, folder)
    return Checked(finished.run, release_digest(files[SUMS]), agreed=True, seen=seen)


async def _received(session: Session, first: control.Release, expected: int) -> dict[str, bytes]:
    """Return the files of the release, after the first piece. Raises PartyError for any other message.

    expected:  bytes of the table that follow from the result; ``limits.delivery_mb`` bounds the rest.
    """
    received = {name: bytearray() for name in session.task.delivered}
    missing = set(received)
    left = expected + session.config.limits.delivery_bytes
    said: Heard = first
    while True:
        match said:
            case control.Release(piece) if piece.name in missing:
                left -= len(piece.content)
                if left < 0:
                    raise _too_large(session)
                received[piece.name] += piece.content
                missing -= {piece.name} if piece.last else set()
            case _:
                raise out_of_order(said)
        if not missing:
            return {name: bytes(content) for name, content in received.items()}
        said = await session.hear()


def _too_large(session: Session) -> PartyError:
    return PartyError(
        "peer-protocol",
        f"{session.coordinator} delivers more than the table and {session.config.limits.delivery_mb} MiB "
        "(`limits.delivery_mb`)",
        remedy=f"at {session.config.name}: raise `limits.delivery_mb` if releases are so large",
    )


def _set_aside(session: Session, finished: Finished, files: Mapping[str, bytes], folder: Path) -> Any:
    """Check files against our own result, and write the files; return the release as readers see the release."""
    release = checked_release(session.task, finished.run.result, files, finished.parts)
    check_signatures_told(files[REPORT], finished.run.signed)
    write_files(folder, release.files)
    write_page(session.task, folder, release.seen)
    make_durable(folder)
    return release.seen


async def note(session: Session, finished: Finished, stored: control.Stored) -> Checked:
    """Note that the coordinator, the only receiver, has the files. Raises PartyError if parties receive files."""
    if session.task.job.deliver != "coordinator":
        raise out_of_order(stored)
    if len(stored.release) != DIGEST_BYTES:
        raise PartyError("peer-protocol", "the digest of a release has 32 bytes")
    return Checked(finished.run, stored.release, agreed=False)


async def keep(session: Session, checked: Checked, _: Next) -> Closed:
    """Make our files the release once every party has checked the same files. Raises JobFailed otherwise.

    The job ends here: the coordinator has nothing more to say.
    """
    timeouts = session.config.timeouts
    release = {"release": checked.release.hex()}
    head = await in_thread(_noted, session, "checked", release)
    async with Agreement(
        session.mesh.links,
        checked.release,
        head,
        patience_s=timeouts.coordinator_s,
        last_words_s=_LAST_WORDS * timeouts.keepalive_s,
    ) as agreement:
        await agreement.reached()
        await in_thread(session.unfinished.close)
        await _keep(session, Kept(checked.run, checked.seen))
        noted = {**release, "files": checked.agreed, "heads": session.new_heads()}
        await in_thread(_note_release, session, noted)
        agreement.kept()
        session.ends.add(partial(checked.run.account.deliver, checked.release, agreed=checked.agreed))
        await session.ends.note_or_tell(session.log)
        await session.emit(control.Delivered(checked.release))
        await agreement.ended()
    session.log("done")
    return Closed()


def _note_release(session: Session, facts: Mapping[str, Any]) -> None:
    """Add the last line of a run. All parties keep the release without the line, too: `checked` has its digest."""
    try:
        session.note("release", facts)
    except PartyError as error:
        session.log(f"the release is kept, but has no line of its own: {error.problem.cause}")


def _noted(session: Session, event: str, facts: Mapping[str, Any]) -> bytes:
    """Add a line to the audit; return the head, 32 bytes. Raises PartyError."""
    session.note(event, facts)
    return session.audit.head()


async def forgo(session: Session, finished: Finished, _: Left) -> Closed:
    """End without delivery, because the coordinator left: the computed result counts, whoever has the result.

    A peer may have the delivery, and wait for our check.
    """
    session.problem = Problem("cancelled", "the coordinator left before the delivery", session.me)
    await session.tell_peers(session.problem)
    if session.task.job.deliver == "coordinator":
        await _keep(session, Kept(finished.run))
    session.log("ended before a release was delivered: charged, not delivered")
    return Closed()


async def _keep(session: Session, kept: Kept) -> None:
    """Keep the run's result. From here on the run has an account, at least an unfinished account."""
    session.kept = kept
    await in_thread(begin_account, session)


def begin_account(session: Session, state: str = BEING_MADE) -> None:
    """Note that an account is unfinished, and why. If the disk does not take the note, the run stands anyway."""
    with suppress(OSError):
        write_own_account(_folder(session), {**_which(session), UNFINISHED: state})


def write_account(session: Session, kept: Kept) -> None:
    """Write the owner's page and private account of a completed run; nothing waits for them. Raises OSError.

    The account says what peers could find out about our own records. Computing the account can take longer than the
    run.
    """
    run = kept.run
    cost = own_costs(run.meter, session.mesh.links)
    fields = {**account_of(run.table, run.n_matched, run.result), "cost": cost, **_which(session)}
    _write_own_page(session, kept)
    path = write_own_account(_folder(session), fields)
    session.log(f"the owner's account of this run stands in {path}; shown by `party accounts`")
    tell_owner([f"  {line}" for line in words_of(fields)])


def _write_own_page(session: Session, kept: Kept) -> None:
    """Write the owner's page from the own rows, if the release is here. Raises OSError."""
    folder = _folder(session)
    if (folder / REPORT).is_file():
        place_own_page(own_page_of_folder(session.task, kept.run.table, folder, kept.seen), folder)


def _which(session: Session) -> dict[str, str]:
    run = session.key.run.hex()
    return {"job": session.task.job.name, "run": run, "coordinator": session.coordinator}


def _folder(session: Session) -> Path:
    name = f"{session.task.job.name}-{session.key.run.hex()[:12]}"
    return session.config.state_dir / RELEASES / name
