"""`coordinator verify`: check of a released table by own statements, and of a folder by digests.

The statements of a folder's files can be checked without anybody's help. So can the signatures of a report: the
signatures show the run and the parties, as far as the certificates are known. Parties sign their result, before
there are files, and the tables that follow from the result. If the result follows from the files, or the tables
were signed, the files are compared with the signed content. Otherwise, anybody who changes a table may change
report and digests, too, and keep the signatures. Against such a change there is the digest of the release, which
every party keeps.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.data.counted import noun
from jobs.errors import ConfigError, PartyError, json_object, printable
from jobs.loading import MADE
from jobs.page.page import PAGE, page_of_folder
from jobs.release.csv import REPORT
from jobs.release.folder import OWN, OWN_ACCOUNT, OWN_PAGE
from jobs.release.maker import first_malformed
from jobs.release.report import SIGNATURES, versions
from jobs.release.signatures import Statement, read_signatures
from jobs.release.sums import SUMS, check_folder, fields_of_file, is_of, unlisted
from jobs.task import Checked, Task
from party.owner.signing import check_signed


def verify_folder(
    task: Task,
    out: Path,
    expected: str | None = None,
    known: Mapping[str, bytes] | None = None,
    earlier: Mapping[str, Mapping[bytes, str]] | None = None,
) -> Checked:
    """Verify a result folder, or the CSV file of a release. Raises PartyError for the first error.

    expected:  the digest of the release that a party keeps, hexadecimal: the folder must be the release.
    known:     the installed certificates (DER) of parties, by name.
    earlier:   earlier installed certificates (:func:`party.owner.signing.earlier_certificates`).
    """
    joint = bool(task.job.roster)
    if expected is not None:
        expected = _digest(expected)
    checked = _with_digests(task.model.verify(task, out), out, expected, joint=joint)
    report = json_object((out / REPORT).read_bytes()) if out.is_dir() and (out / REPORT).is_file() else None
    if report is None:
        return checked
    if (key := first_malformed(report, task.job.roster)) is not None:
        raise PartyError("verification-failed", f"the report's `{key}` is missing or malformed")
    checked = _with_page(checked, task, out, report)
    if joint:
        checked = _with_signatures(checked, task, out, report, known or {}, earlier or {})
    warned = checked.fields.get("page") is False
    return checked.also([f"WARNING: {out / PAGE} {_CHANGED_PAGE}"], {}) if warned else checked


def _digest(text: str) -> str:
    """Return a digest of a release as `verify` prints digests. Raises ConfigError for a part of a digest."""
    digest = text.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise ConfigError(
            "usage",
            "the digest of a release has 64 hexadecimal digits: nothing was compared",
            remedy="write the whole digest",
        )
    return digest


def _with_page(checked: Checked, task: Task, out: Path, report: Mapping[str, Any]) -> Checked:
    """Make the page of a release again, and compare.

    No digest covers the page, so a changed page does not make the release wrong: a warning is the last line.
    """
    page = out / PAGE
    if not page.is_file():
        return checked
    if page.read_bytes() == page_of_folder(task, out).encode():
        return checked.also([f"{page}: as job, report and table say"], {"page": True})
    if report.get("versions", {}).get("jointcut") == versions()["jointcut"]:
        return checked.also([], {"page": False})
    return checked.also([f"not checked: {page}, which another version of the program made"], {"page": None})


def _with_signatures(
    checked: Checked,
    task: Task,
    out: Path,
    report: Mapping[str, Any],
    known: Mapping[str, bytes],
    earlier: Mapping[str, Mapping[bytes, str]],
) -> Checked:
    """Check the signatures of a joint run's parties, and name the certificates. Raises PartyError."""
    if SIGNATURES not in report:
        raise PartyError(
            "verification-failed",
            "the report of a joint run has no signatures, but all parties sign every run between parties",
            remedy="ask a party for its files of the release",
        )
    if report[SIGNATURES] is None:
        return checked.also([_IN_ONE_PROCESS], {"signed": None})
    signed = read_signatures(report[SIGNATURES], task.digest, task.job.roster)
    compared = check_signed(signed, known, earlier)
    lines = [_held_against(checked.result, signed[0].statement, out)]
    found = {each.statement.party: hashlib.sha256(each.certificate).hexdigest() for each in signed}
    for party, fingerprint in found.items():
        how = "as installed here" if party in compared else "not compared: no certificate is installed here"
        if until := compared.get(party):
            how = f"as was installed here until {until}: an earlier certificate"
        lines.append(f"  {party}  {fingerprint}  {how}")
    told: dict[str, Any] = {"signed": found, "compared": list(compared)}
    if checked.result is None and not signed[0].statement.tables:
        told["not_verified"] = [*checked.fields.get("not_verified", ()), _SIGNED_RESULT]
    return checked.also(lines, told)


def _held_against(result: str | None, statement: Statement, out: Path) -> str:
    """Say in words what the signatures show of the files. result: the files' own result, or None.

    Raises PartyError if the parties signed a different result, or different tables.
    """
    run = f"run {printable(statement.run)}"
    if statement.tables:
        for name, digest in statement.tables.items():
            if (
                not is_of(name, MADE)
                or not (out / name).is_file()
                or fields_of_file(out / name)["sha256"] != digest
            ):
                raise PartyError(
                    "verification-failed",
                    f"the parties signed a different {printable(name)} than the file here",
                    remedy="do not use the file; ask a party for its files of the release",
                )
        return f"signed by all parties, {run}: {', '.join(statement.tables)}, byte for byte"
    if result is None:
        return (
            f"not verified: whether the files belong to the result that all parties of {run} signed, since the "
            f"result does not follow from the files (`{_SIGNED_RESULT}`)"
        )
    if statement.result != result:
        raise PartyError(
            "verification-failed",
            "the parties signed a different result than the result of the files",
            remedy="do not use the files; ask a party for its files of the release",
        )
    return f"signed by all parties, {run}: the result of the files"


def _with_digests(checked: Checked, out: Path, expected: str | None, *, joint: bool) -> Checked:
    """Compare every file with its digest, and say what the comparison proves and does not prove.

    Further files beside the release are named in a warning, because the digest does not cover further files.
    """
    found = [name for name in (REPORT, SUMS) if out.is_dir() and (out / name).is_file()]
    if not found:
        if expected is not None:
            raise PartyError(
                "verification-failed",
                f"{out} has no {SUMS}: a comparison with a digest needs the file",
                remedy=_WHOLE,
            )
        return checked.also([_ONLY_ROWS], {"release": None, "agreed": None})
    if len(found) < 2:
        missing = SUMS if found[0] == REPORT else REPORT
        message = f"{out} has a {found[0]}, but not the {missing} made with it"
        raise PartyError("verification-failed", message, remedy=_WHOLE)
    _check_files_of_report(out)
    release = check_folder(out, (*MADE, REPORT)).hex()
    if expected is not None and release != expected:
        raise PartyError(
            "verification-failed",
            "the files do not have the digest: somebody changed them, or they belong to a different release",
            remedy=f"do not use the files; ask {'a party' if joint else 'the holder'} for the files of the release",
        )
    beside = unlisted(out)
    beside = [name for name in beside if name != PAGE]
    own = [name for name in beside if name in (f"{OWN}/", OWN_PAGE, OWN_ACCOUNT)]
    others = [name for name in beside if name not in own]
    lines = [f"{out / SUMS}: every file listed has the bytes listed"]
    if others:
        lines.append(f"warning: not part of the release, and not checked: {_named(others)}")
    if own:
        lines.append(
            f"from raw rows, and only for the owner: {_named(own)}. Do not publish {noun(len(own), 'it', 'them')}"
        )
    lines.append(f"digest of the release: {release}")
    if expected is not None:
        lines.append("the digest matches")
    else:
        lines.append(_UNASKED if joint else _UNASKED_ALONE)
    told = {"release": release, "agreed": None if expected is None else True, "unlisted": beside}
    return checked.also(lines, told)


_CHANGED_PAGE = (
    "is not the page of this release: somebody changed the page. Do not read the page, and do not decide by the "
    "page: delete it. Only the other files are checked, and the lines above hold for them"
)
_WHOLE = "take the whole folder of the release"
_SIGNED_RESULT = f"report.{SIGNATURES}.result"
_ONLY_ROWS = (
    "not checked: who made the file and whether somebody changed it; a report and digests are missing"
)
_CHANGED_TOGETHER = (
    "If somebody changed all files together, only a comparison of this digest shows the change: compare with the "
    "digest"
)
_UNASKED = (
    f"not checked: whether the parties agreed on the files. {_CHANGED_TOGETHER} that a party keeps (at a party: "
    "party verify FOLDER, or party budget; here: --release DIGEST)"
)
_UNASKED_ALONE = (
    f"not checked: whether somebody changed the files. {_CHANGED_TOGETHER} that `coordinator run` printed "
    "(--release DIGEST)"
)
_IN_ONE_PROCESS = (
    "not signed: according to the report, one process computed the result, for a trial. In a run between parties, "
    "the parties sign: do not take the files for a release of a run between parties"
)
_MOST_NAMED = 10


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(map(printable, names[:_MOST_NAMED]))
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def _check_files_of_report(out: Path) -> None:
    """Require that the digests in the report fit the files beside the report."""
    report = json_object((out / REPORT).read_bytes()) or {}
    files = report.get("files")
    if not isinstance(files, dict) or not files:
        raise PartyError("verification-failed", f"{out / REPORT} has no digests of the files made with it")
    for name, fields in files.items():
        if not is_of(name, MADE) or not (out / name).is_file() or fields_of_file(out / name) != fields:
            raise PartyError(
                "verification-failed", f"{out / REPORT} was made with a different {printable(name)}"
            )
