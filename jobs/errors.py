"""Errors of the daemon and its tools, the catalogue of all error ids, and the form in which errors travel.

A :class:`Problem` is an error fit to leave a party: a stable id, the party, the phase, a message with public names
only, and a remedy. Text for the data's owner alone stays in ``private`` and is never sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from anonymize.errors import AnonymizeError
from jobs.json_text import read_json

MAX_SHARED_CHARS = 500
"""Most characters of a text to or from a peer."""
MAX_LINE_CHARS = 4000
"""Most characters of a line of a log."""
MAX_HOPS = 100


class Exit(IntEnum):
    """Exit codes of every command (semantics §9.6)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4
    BUDGET = 5
    IDENTITY = 6
    DATA = 7
    UNSAID = 8
    BUG = 70


@dataclass(frozen=True)
class Kind:
    """Entry of the catalogue.

    remedy:    for the person who requested the job or runs the command.
    at_owner:  for the owner of the party where the error arose, if the remedy differs.
    """

    exit_code: Exit
    meaning: str
    remedy: str
    at_owner: str = ""


BUG = "bug"

CATALOGUE: Mapping[str, Kind] = {
    # jobs and configuration
    "file-missing": Kind(
        Exit.USAGE,
        "a named file does not exist or cannot be read",
        "check the path; the path of a table stands in the configuration of the table's owner",
        "check the path",
    ),
    "yaml-invalid": Kind(Exit.USAGE, "a file is not valid YAML", "correct the line named"),
    "unknown-key": Kind(
        Exit.USAGE, "a job or configuration has a key that does not exist", "remove or correct the key"
    ),
    "job-invalid": Kind(Exit.USAGE, "a job contradicts itself or lacks something", "correct the key named"),
    "exclusion-unmet": Kind(
        Exit.FAILED,
        "sequences: a reader who discards records seen elsewhere at a known time is left with fewer than K or "
        "above C, or the run cannot test this (`exclusion`)",
        "say `exclusion: repair` or `report`, take coarser times, a smaller L or a smaller K; if the run cannot "
        "test `exclusion`, say `places: first`",
    ),
    "exclusion-untested": Kind(
        Exit.FAILED,
        "sequences: too many sequences to test `exclusion`",
        "take coarser times or a smaller L, or say `exclusion: report`",
    ),
    "sequences-vertical": Kind(
        Exit.USAGE,
        "a vertical job asks for sequences: each party would recognize people by its half of a path",
        "make the table at one holder, or ask for a DP job",
    ),
    "job-too-few-parties": Kind(
        Exit.USAGE,
        "`disclosure: leader` with fewer than three parties: the sum minus a party's own counts is the peer's "
        "counts",
        "use `disclosure: sealed`, or three parties",
    ),
    "config-invalid": Kind(Exit.USAGE, "a configuration file is not as documented", "correct the key named"),
    "taxonomy-invalid": Kind(
        Exit.USAGE, "a taxonomy is malformed", "correct the taxonomy of the column named"
    ),
    "taxonomy-two-parents": Kind(Exit.USAGE, "a taxonomy lists a value twice", "keep one line per value"),
    "grid-invalid": Kind(
        Exit.USAGE,
        "a numeric domain or its cut points make no sense",
        "correct `min`, `max`, `step` or `cuts` of the column named",
    ),
    "domain-too-large": Kind(
        Exit.USAGE,
        "class and sensitive domains multiply to too many cells, or a grid has too many cells for a sealed run",
        "publish fewer or coarser columns, or a coarser grid",
    ),
    "output-exists": Kind(
        Exit.USAGE, "the output folder exists", "name a new folder; no file is overwritten"
    ),
    "usage": Kind(Exit.USAGE, "the command line is not understood", "see the command with --help"),
    "extra-missing": Kind(
        Exit.USAGE,
        "a command needs a package that the plain installation leaves out",
        "pip install 'jointcut[evaluate]'",
    ),
    # data
    "data-unreadable": Kind(
        Exit.DATA,
        "the table cannot be read or is malformed",
        "the table's owner finds file and cause with `party problems`",
        "correct what the message names: a file, a permission, or a key under `data`",
    ),
    "data-missing-column": Kind(
        Exit.DATA, "the table lacks a column of the job", "add the column or change the job"
    ),
    "data-empty": Kind(
        Exit.DATA, "the table has no usable row", "check the file and the missing-value rules"
    ),
    "data-unknown-value": Kind(
        Exit.DATA,
        "a value is not a leaf of the column's taxonomy, or not in the column's domain",
        "list the value at the column (`taxonomy`, `suppress` or `domain`), or correct the value; in an LKC job of a "
        "single holder, `outside: missing` counts such values as missing",
    ),
    "data-published-as-is": Kind(
        Exit.DATA,
        "most rows of a `plain` column have a value of fewer than 5 rows, and the column is published unchanged",
        "say `role: id` or leave the column out; or `publish_as_is: true` at the column if you mean to publish the "
        "column",
    ),
    "data-two-spellings": Kind(
        Exit.DATA,
        "a column has two spellings of the same value: the spellings differ in case, blanks, invisible characters "
        "or letters that look alike",
        "write the same spelling in all rows, or `spellings: distinct` at the column if the spellings mean "
        "different things",
    ),
    "data-outside-domain": Kind(
        Exit.DATA,
        "a value is outside the column's public domain, or not a number",
        "correct the value, or widen `min` and `max`; if the value means a missing "
        "cell, list the value in `missing`, beside the path or query in `data`",
    ),
    "data-missing-value": Kind(
        Exit.DATA,
        "a class or sensitive cell is empty",
        "fill the cell, or say `missing: drop` at the column; at a sensitive column of an LKC job `missing: leaf` "
        "keeps the row, with the value `?`",
    ),
    "data-missing-id": Kind(
        Exit.DATA,
        "a row has no id, and rows with the same id belong together",
        "give every row the id of its person, or leave the row out of the table",
    ),
    "data-duplicate-id": Kind(
        Exit.DATA,
        "two rows have the same id",
        "keep one row of each id; or say `unit: person` in a single or horizontal LKC job whose people have "
        "several rows",
    ),
    "data-record-varies": Kind(
        Exit.DATA,
        "sequences: the rows of one id differ in a sensitive or plain column",
        "give all rows of an id the same value",
    ),
    "path-too-long": Kind(
        Exit.DATA,
        "sequences: a record has more items than `max_items`",
        "take a coarser time, or leave out or split the record; a larger `max_items` costs time",
    ),
    "no-common-records": Kind(
        Exit.DATA,
        "vertical: no id is common to all parties",
        "compare the id columns: the same ids in the same spelling",
    ),
    "class-mismatch": Kind(
        Exit.DATA,
        "vertical: the parties have different class values for a common id",
        "in LKC jobs, `shared_by` lets a party give the class; or find the records and correct them (below)",
    ),
    "too-many-rows": Kind(
        Exit.DATA,
        "the table has 2^31 rows or more; dp: or more than the owner's bound, or a single holder's `max_rows`",
        "split the job; in DP jobs the owner raises `policy.max_rows`, and the job's author `max_rows`",
    ),
    "row-too-long": Kind(
        Exit.DATA,
        "horizontal: rows with `plain` columns, which the mix brings to the same width, are too long",
        "shorten the texts, or leave out the column",
    ),
    # requirement
    "requirement-unmet": Kind(
        Exit.FAILED,
        "the fully generalized table violates the requirement (horizontal, sealed: or is too large for exact tests)",
        "lower K, `ruled_out`, `distinct`, `diversity` or `colluders`, raise C or `t`, set `at_most`, protect fewer "
        "values, or bring more records",
    ),
    "too-many-sequences": Kind(
        Exit.FAILED,
        "sequences: a run would count more sequences of the same size than `max_candidates`, or (joint) would need "
        "more than 32 sweeps",
        "take a coarser time, fewer locations or a smaller L, or raise `max_candidates`",
    ),
    "confidence-too-fine": Kind(
        Exit.USAGE, "C has too many digits for exact arithmetic", "write C with fewer digits"
    ),
    "too-many-cells": Kind(
        Exit.USAGE,
        "dp: the release could have more cells than the job's public limit",
        "raise `max_cells`, or lower `specializations`",
    ),
    "budget-exceeded": Kind(
        Exit.BUDGET,
        "dp: the job asks for more epsilon than the data set's privacy budget has left",
        "lower epsilon; the data's owner sees the epsilon spent so far: `party budget`",
        "ask for a lower epsilon, or raise `epsilon_budget`; the epsilon spent so far: `party budget`",
    ),
    "budget-overdrawn": Kind(
        Exit.BUDGET,
        "dp: a run tried to spend more than the job's epsilon and was stopped",
        "report the error with the log",
    ),
    "budget-ledger": Kind(
        Exit.BUDGET,
        "the privacy ledger cannot be read or written, or its contents are invalid",
        "the data's owner finds the cause with `party problems`",
        "free space at the path named, correct its permissions, or restore the ledger from a backup",
    ),
    "verification-failed": Kind(
        Exit.FAILED,
        "a table does not meet the requirement of its job",
        "do not use the table; report the error if Jointcut made the table",
    ),
    "cluster-too-small": Kind(
        Exit.FAILED,
        "a cluster of a model to be fitted has too few records: the model would tell the averages of few records",
        "fit fewer clusters, look at fewer columns, or lower --min-cluster",
    ),
    # other parties
    "peer-unreachable": Kind(
        Exit.UNREACHABLE,
        "a party cannot be reached by the party that is named before it",
        "check that the party runs, and its address at the party that cannot reach it",
    ),
    "daemon-not-ready": Kind(
        Exit.UNREACHABLE,
        "`party probe`, `party web`: the daemon on this machine does not answer, or says no",
        "look at the daemon's log; if no daemon runs, start one: party serve",
    ),
    "version": Kind(
        Exit.FAILED,
        "a peer's version of Jointcut does not talk with ours: the first numbers differ, the second numbers by more "
        "than one, or, in a run, the protocols",
        "agree on a day to install the same version",
    ),
    "check-failed": Kind(
        Exit.FAILED, "`party check` found an obstacle to jobs", "do what each line with FAIL says"
    ),
    "address-missing": Kind(
        Exit.USAGE,
        "nobody says where a party is reached",
        "give the party an `address` in `peers`, or in the job",
    ),
    "config-changed": Kind(
        Exit.FAILED,
        "a party's configuration changed and the daemon cannot take the change over",
        "at that party: party check; correct the file, or restart the daemon",
    ),
    "peer-lost": Kind(
        Exit.UNREACHABLE, "a party went away during the job", "look at the party's log; start the job again"
    ),
    "peer-timeout": Kind(
        Exit.UNREACHABLE, "a party did not answer in time", "look at the party's log; raise the timeout"
    ),
    "peer-protocol": Kind(
        Exit.FAILED,
        "a party sent a message that the protocol does not allow",
        "compare the versions of Jointcut at the parties",
    ),
    "job-hash-mismatch": Kind(
        Exit.FAILED, "a message belongs to a different job", "start all parties on one bundle"
    ),
    "result-mismatch": Kind(
        Exit.FAILED, "parties ended with different results", "do not use the table; report the error"
    ),
    "busy": Kind(
        Exit.FAILED,
        "the party is running a different job",
        "let the job wait for its turn with `--wait 30m`",
    ),
    "cancelled": Kind(Exit.FAILED, "the job was cancelled", "start the job again"),
    "policy-refused": Kind(
        Exit.REFUSED,
        "a party's policy does not allow the job",
        "change the job, or ask the party's owner to allow the job",
        "to allow the job, change the key of `policy` in the message",
    ),
    "approval-waiting": Kind(
        Exit.REFUSED,
        "the owner of a party's table has not approved the job",
        "ask the owner to look at the job with `party show`; then start the job again",
        "party show HASH, then party approve HASH or party deny HASH",
    ),
    "approval-denied": Kind(
        Exit.REFUSED,
        "the owner of a party's table denied the job",
        "change the job as the owner says",
        "to allow the job after all: party approve HASH --despite-denial",
    ),
    "proposals-full": Kind(
        Exit.REFUSED,
        "too many proposals of the coordinator wait for a decision",
        "ask the owner of the table to decide; a proposal that waits for 30 days goes away",
        "decide on the proposals that `party jobs` lists",
    ),
    "identity-unknown": Kind(
        Exit.IDENTITY, "a certificate belongs to no known peer", "at the party named: party peers add"
    ),
    "identity-mismatch": Kind(
        Exit.IDENTITY,
        "a certificate does not belong to the name that came with it",
        "compare names and certificates of the peers",
    ),
    "tls-failed": Kind(
        Exit.IDENTITY,
        "a TLS handshake failed",
        "compare the clocks of the machines with the time, then certificates and fingerprints",
    ),
    "io-failed": Kind(
        Exit.FAILED,
        "a file could not be written or read",
        "the owner of the machine named finds the path with `party problems`; then start again",
        "free space at the path named, correct its permissions, or name a path below a folder; then start again",
    ),
    "output-lost": Kind(
        Exit.UNSAID,
        "the work was done; standard output did not take the lines about it",
        "look at the files of the result; start the command again only if it writes none",
    ),
    BUG: Kind(
        Exit.BUG,
        "an error that we did not foresee",
        "report the place in our code (of a party: in its log); read a traceback before you send the report, "
        "because a traceback may quote values",
    ),
}

ANSWERS: Mapping[str, str] = {
    "data-unreadable": "question",
    "data-missing-column": "question",
    "data-empty": "question",
    "data-unknown-value": "question",
    "data-outside-domain": "question",
    "data-missing-value": "question",
    "data-missing-id": "question",
    "data-duplicate-id": "question",
    "row-too-long": "question",
    "data-record-varies": "question",
    "path-too-long": "question",
    "requirement-unmet": "question",
    "no-common-records": "question, alignment",
    "class-mismatch": "question, alignment",
}
"""Errors of a joint job with information about a party's table, with the ledger's categories.

`file-missing`, `extra-missing` and `too-many-rows` come from a table, too, but do not depend on the job.
`data-two-spellings` and `data-published-as-is` concern a single holder's table: joint jobs list all values, and
owners allow plain columns.
"""


_OF_THE_UNION = {"requirement-unmet", "confidence-too-fine", "too-many-sequences"}
"""Errors about all parties' rows together. No single party is at fault, so the error names no party."""


@dataclass(frozen=True)
class Problem:
    """Error as the program shows, logs and sends it.

    party:    the party where the error arose, or the peer that reported the error; None if the peer only
              passed the error on.
    about:    hearsay: the party named by the peer, if different from the peer.
    hops:     number of parties on the error's way to us; 0 if the error arose here.
    private:  text for the data's owner alone; never logged, never sent.
    cause:    message of the operating system, with paths; may stand in the owner's log, never sent.
    """

    error_id: str
    message: str
    party: str | None = None
    phase: str | None = None
    column: str | None = None
    remedy: str = ""
    private: str = field(default="", repr=False)
    cause: str = field(default="", repr=False)
    about: str | None = None
    hops: int = field(default=0, compare=False)

    def advice(self, *, to_owner: bool) -> str:
        """Return the remedy for the owner of the party where the error arose, or for everybody else."""
        kind = CATALOGUE[self.error_id]
        return self.remedy or (to_owner and kind.at_owner) or kind.remedy

    @property
    def is_bug_here(self) -> bool:
        """True for a bug of this process: only then the place of the error is in code that ran here."""
        return self.error_id == BUG and not self.hops

    @property
    def named(self) -> str | None:
        """Party behind the problem, as far as known."""
        return self.about or self.party

    @property
    def exit_code(self) -> Exit:
        """Exit code of a command on the problem."""
        return CATALOGUE[self.error_id].exit_code

    def shared(self) -> dict[str, Any]:
        """Return the fields that may leave the party."""
        fields = {
            "error": self.error_id,
            "message": self.message,
            "party": self.party,
            "phase": self.phase,
            "column": self.column,
            "remedy": self.advice(to_owner=False),
            "hops": self.hops,
        }
        return {key: value for key, value in fields.items() if value}

    def for_others(self, **more: str) -> str:
        """Return the shared fields as JSON of bounded length; :meth:`told` reads the JSON.

        more:  further fields, for a reader who knows them.
        """
        fields = {**self.shared(), **more}.items()
        return json.dumps(
            {key: printable(value) if isinstance(value, str) else value for key, value in fields}
        )

    @staticmethod
    def received(fields: Mapping[str, Any]) -> Problem:
        """Read a problem from a peer. An unknown id counts as a breach of protocol by the peer.

        The remedy comes from our own catalogue: an owner would follow a peer's advice as if the advice were ours.
        """
        error_id = str(fields.get("error", ""))
        text = {
            key: printable(fields[key]) for key in ("message", "party", "phase", "column") if fields.get(key)
        }
        return Problem(
            error_id if error_id in CATALOGUE else "peer-protocol",
            text.get("message", ""),
            text.get("party"),
            text.get("phase"),
            text.get("column"),
            hops=min(hops, MAX_HOPS) if isinstance(hops := fields.get("hops"), int) and hops > 0 else 0,
        )

    @staticmethod
    def told(text: str | bytes, peer: str) -> Problem:
        """Read the JSON reason of a stopped ``peer``. A statement about another party is the peer's statement.

        If ``peer`` only passed the error on, only the text names a party: the first reporter speaks for itself.
        """
        fields = json_object(text)
        if fields is None:
            return Problem("peer-protocol", f"{peer} stopped without a reason", peer)
        said = Problem.received(fields)
        if said.error_id in _OF_THE_UNION:
            return replace(said, party=None, hops=said.hops + 1)
        if said.hops:
            message = f"passed on by {peer}: {said.message}"
            return replace(said, message=message, party=None, hops=said.hops + 1)
        about = said.party if said.party not in (None, peer) else None
        message = f"{peer} says of {about}: {said.message}" if about else said.message
        return replace(said, message=message, party=peer, about=about, hops=1)

    def at(self, party: str | None, phase: str | None) -> Problem:
        """Fill in party and phase where unknown.

        An error of all records together, or an error that was passed on to us, names no party.
        """
        party = None if self.error_id in _OF_THE_UNION or self.hops else party
        return replace(self, party=self.party or party, phase=self.phase or phase)

    def __str__(self) -> str:
        return self.text(to_owner=self.party is None and not self.hops)

    def text(self, *, to_owner: bool) -> str:
        """Return the whole problem in one line, with the owner's private text if present."""
        where = ", ".join(part for part in (self.party, self.phase and f"phase {self.phase}") if part)
        own = "".join(f" [{part}]" for part in (self.cause, self.private) if part)
        said = f"{self.error_id}{f' ({where})' if where else ''}: {self._fault}{own}"
        return f"{said}. What to do: {self.advice(to_owner=to_owner)}"

    @property
    def own_message(self) -> str:
        """Message with the owner's private text if present."""
        return f"{self.message} [{self.private}]" if self.private else self.message

    @property
    def _fault(self) -> str:
        """Message without the remedy that ends the message: the text says the remedy once."""
        message = self.message.rstrip(".")
        if not self.remedy or not message.casefold().endswith(self.remedy.casefold()):
            return message
        return message[: -len(self.remedy)].rstrip(" :;.,") or message


def printable(text: object, most: int | None = MAX_SHARED_CHARS) -> str:
    """Return text of a foreign writer as one line of at most ``most`` characters, safe for our terminal and log.

    Unprintable characters become blanks: control characters steer a terminal, other characters reverse the
    direction of writing, and line ends would let a name look like a line of ours.
    """
    line = str(text)[:most]
    return line if line.isprintable() else "".join(c if c.isprintable() else " " for c in line)


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Read a JSON object from a peer; return None for anything else, or for a repeated key."""
    try:
        fields = read_json(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


class PartyError(Exception):
    """Error with a problem."""

    def __init__(self, error_id: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.problem = Problem(error_id, message, **fields)


class BudgetError(PartyError):
    """Refusal by the privacy ledger."""


class ConfigError(PartyError):
    """Error in a job, a configuration or a command line, found before any data is read."""


class TransportError(PartyError):
    """Unreachable, silent or vanished peer: the only retriable error."""


class IdentityError(PartyError):
    """Unexpected certificate."""


class PolicyError(PartyError):
    """Refusal by the owner's policy."""


class JobFailed(PartyError):
    """Failure of a job with a problem reported by a peer or the coordinator."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.error_id, problem.message)
        self.problem = problem


def problem_of(error: BaseException) -> Problem:
    """Map any error to the problem for display and sending: the only table of the kind."""
    from crypto.errors import LocalProtocolError, RemoteProtocolError

    match error:
        case PartyError():
            return error.problem
        case AnonymizeError():
            return Problem(
                error.error_id,
                str(error),
                column=error.column,
                remedy=error.remedy,
                private=error.private,
                cause=error.cause,
            )
        case RemoteProtocolError():
            return Problem("peer-protocol", f"at step {error.step}: {error.reason}", party=error.culprit)
        case LocalProtocolError():
            return Problem(BUG, f"a protocol was called wrongly: {error}")
        case OSError(errno=int() as number, filename=path) if not isinstance(error, TimeoutError):
            reason = os.strerror(number)  # not a library's own words, which may quote data
            return Problem("io-failed", reason, cause=f"{path}: {reason}" if path else "")
        case OSError() if not isinstance(error, TimeoutError):
            return Problem("io-failed", type(error).__name__, private=str(error))
        case _:
            # The text of an unforeseen error may quote data: only the type leaves the process.
            return Problem(BUG, f"unexpected {type(error).__name__}", private=str(error))
