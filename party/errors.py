"""Errors of the daemon and its tools, the catalogue of all error ids, and the form in which errors travel.

An error that leaves a party is a :class:`Problem`: a stable id, the party, the phase, a message with public
names only, and what to do. What only the data's owner may read stays in ``private`` and is never sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from anonymize.errors import AnonymizeError
from crypto.errors import LocalProtocolError, RemoteProtocolError

MAX_SHARED_CHARS = 500


class Exit(IntEnum):
    """Exit codes of every command (DESIGN §9)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4
    BUDGET = 5
    IDENTITY = 6
    DATA = 7
    BUG = 70


@dataclass(frozen=True)
class Kind:
    """One entry of the catalogue."""

    exit_code: Exit
    meaning: str
    remedy: str


CATALOGUE: Mapping[str, Kind] = {
    # jobs and configuration
    "file-missing": Kind(Exit.USAGE, "a named file does not exist or cannot be read", "check the path"),
    "yaml-invalid": Kind(Exit.USAGE, "a file is not valid YAML", "mend the line named"),
    "unknown-key": Kind(
        Exit.USAGE, "a job or configuration has a key that does not exist", "remove or correct it"
    ),
    "job-invalid": Kind(Exit.USAGE, "a job contradicts itself or lacks something", "mend the key named"),
    "job-too-few-parties": Kind(
        Exit.USAGE,
        "`disclosure: leader` with fewer than three parties: the sum minus one's own counts is the other's",
        "use `disclosure: sealed`, or three parties",
    ),
    "config-invalid": Kind(Exit.USAGE, "a configuration file is not as documented", "mend the key named"),
    "taxonomy-invalid": Kind(Exit.USAGE, "a taxonomy is malformed", "see the message"),
    "taxonomy-two-parents": Kind(Exit.USAGE, "a taxonomy lists a value twice", "keep one line per value"),
    "grid-invalid": Kind(Exit.USAGE, "a numeric domain or its cut points make no sense", "see the message"),
    "domain-too-large": Kind(
        Exit.USAGE,
        "class and sensitive domains multiply to too many cells, or a grid has too many for a sealed run",
        "publish fewer or coarser columns, or a coarser grid",
    ),
    "output-exists": Kind(
        Exit.USAGE, "the output folder exists", "name a new folder; nothing is overwritten"
    ),
    "usage": Kind(Exit.USAGE, "the command line is not understood", "see --help"),
    # data
    "data-unreadable": Kind(Exit.DATA, "the table cannot be read or is malformed", "see the owner's console"),
    "data-missing-column": Kind(Exit.DATA, "the table lacks a column of the job", "add it or change the job"),
    "data-empty": Kind(
        Exit.DATA, "the table has no usable row", "check the file and the missing-value rules"
    ),
    "data-unknown-value": Kind(
        Exit.DATA,
        "a value is no leaf of its taxonomy or not in its domain",
        "extend the taxonomy or mend the value",
    ),
    "data-outside-domain": Kind(
        Exit.DATA,
        "a number is outside its public domain or no number",
        "widen min and max, or mend the value",
    ),
    "data-missing-value": Kind(
        Exit.DATA, "a class or sensitive cell is empty", "declare `missing: drop` or fill the cell"
    ),
    "data-duplicate-id": Kind(Exit.DATA, "two rows have the same id", "one row per id"),
    "no-common-records": Kind(
        Exit.DATA,
        "vertical: no id is common to all parties",
        "compare the id columns: the same ids in the same spelling",
    ),
    "class-mismatch": Kind(
        Exit.DATA,
        "vertical: the parties have different class values for a common id",
        "reconcile the class column; in LKC jobs, `shared_by` lets one party give it",
    ),
    "too-many-rows": Kind(
        Exit.DATA,
        "the table has 2^31 rows or more, or more than `max_rows` of a DP job",
        "split the job, or raise `max_rows`",
    ),
    # requirement
    "requirement-unmet": Kind(
        Exit.FAILED,
        "even the fully generalized table violates K or C (horizontal, sealed: or is too large for exact arithmetic)",
        "lower K, raise C, protect fewer values, or bring more records",
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
        "dp: the job asks for more than is left of a data set's privacy budget",
        "lower epsilon; its owner sees what is spent: party budget",
    ),
    "budget-overdrawn": Kind(
        Exit.BUDGET,
        "dp: a run tried to spend more than its own epsilon and was stopped",
        "report it with the log",
    ),
    "budget-ledger": Kind(
        Exit.BUDGET, "dp: the privacy ledger is not in the state it should be in", "see the owner's log"
    ),
    "verification-failed": Kind(
        Exit.FAILED, "a table is not what its job requires", "do not use the table; report it if we made it"
    ),
    # other parties
    "peer-unreachable": Kind(
        Exit.UNREACHABLE, "a party cannot be reached", "check that it runs, and its address"
    ),
    "peer-lost": Kind(
        Exit.UNREACHABLE, "a party went away during the job", "look at its log; start the job again"
    ),
    "peer-timeout": Kind(
        Exit.UNREACHABLE, "a party did not answer in time", "look at its log; raise the timeout"
    ),
    "peer-protocol": Kind(
        Exit.FAILED, "a party sent what the protocol does not prescribe", "compare versions"
    ),
    "job-hash-mismatch": Kind(
        Exit.FAILED, "a message belongs to another job", "start all parties on one bundle"
    ),
    "result-mismatch": Kind(
        Exit.FAILED, "parties ended with different results", "do not use the table; report it"
    ),
    "busy": Kind(Exit.FAILED, "the party is running another job", "wait for it, or cancel it"),
    "cancelled": Kind(Exit.FAILED, "the job was cancelled", "start it again"),
    "policy-refused": Kind(Exit.REFUSED, "a party's policy does not allow the job", "ask its owner"),
    "identity-unknown": Kind(Exit.IDENTITY, "a certificate belongs to no known peer", "party peers add"),
    "identity-mismatch": Kind(
        Exit.IDENTITY, "a certificate is not the one of the name it comes with", "check peers"
    ),
    "tls-failed": Kind(Exit.IDENTITY, "a TLS handshake failed", "compare certificates and fingerprints"),
    "io-failed": Kind(
        Exit.FAILED,
        "a file could not be written or read",
        "check permissions and free space, then start again",
    ),
    "bug": Kind(Exit.BUG, "something we did not foresee", "report it with the log"),
}


_OF_THE_UNION = {"requirement-unmet", "confidence-too-fine"}


@dataclass(frozen=True)
class Problem:
    """An error as it is shown, logged and sent. ``private`` never leaves the party it arose at."""

    error_id: str
    message: str
    party: str | None = None
    phase: str | None = None
    column: str | None = None
    remedy: str = ""
    private: str = ""

    @property
    def exit_code(self) -> Exit:
        """The exit code of a command that ends with this problem."""
        return CATALOGUE[self.error_id].exit_code

    def shared(self) -> dict[str, Any]:
        """What may leave the party."""
        fields = {
            "error": self.error_id,
            "message": self.message,
            "party": self.party,
            "phase": self.phase,
            "column": self.column,
            "remedy": self.remedy or CATALOGUE[self.error_id].remedy,
        }
        return {key: value for key, value in fields.items() if value}

    @staticmethod
    def received(fields: Mapping[str, Any]) -> Problem:
        """Read a problem a peer sent; an id we do not know counts as the peer breaking the protocol."""
        error_id = str(fields.get("error", ""))
        text = {
            key: printable(fields[key])
            for key in ("message", "party", "phase", "column", "remedy")
            if fields.get(key)
        }
        return Problem(
            error_id if error_id in CATALOGUE else "peer-protocol",
            text.get("message", ""),
            text.get("party"),
            text.get("phase"),
            text.get("column"),
            text.get("remedy", ""),
        )

    @staticmethod
    def told(text: str | bytes, peer: str) -> Problem:
        """Read the JSON in which ``peer`` says why it stopped."""
        fields = json_object(text)
        if fields is None:
            return Problem("peer-protocol", f"{peer} stopped without a reason", peer)
        return Problem.received(fields).at(peer, None)

    def at(self, party: str | None, phase: str | None) -> Problem:
        """Fill in where it happened, unless that is known, or what all rows together give: nobody's fault."""
        party = None if self.error_id in _OF_THE_UNION else party
        return replace(self, party=self.party or party, phase=self.phase or phase)

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.party, self.phase and f"phase {self.phase}") if part)
        remedy = self.remedy or CATALOGUE[self.error_id].remedy
        own = f" [{self.private}]" if self.private else ""
        said = f"{self.error_id}{f' ({where})' if where else ''}: {self.message.rstrip('.')}{own}"
        return f"{said}. What to do: {remedy}"


def printable(text: object) -> str:
    """Text of a peer, made fit for our terminal and log: bounded, and without control characters."""
    return "".join(c if c.isprintable() else " " for c in str(text)[:MAX_SHARED_CHARS])


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Read a JSON object that a peer sent; None where it is anything else."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


class PartyError(Exception):
    """An error with its problem."""

    def __init__(self, error_id: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.problem = Problem(error_id, message, **fields)


class BudgetError(PartyError):
    """The privacy ledger does not allow it."""


class ConfigError(PartyError):
    """A job, a configuration or a command line is wrong; found before any data is read."""


class TransportError(PartyError):
    """A peer is unreachable, timed out or went away: the only retriable one."""


class IdentityError(PartyError):
    """A certificate is not the one it should be."""


class PolicyError(PartyError):
    """The owner's policy does not allow it."""


class JobFailed(PartyError):
    """A job ended with a problem that another party, or the coordinator, told us."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.error_id, problem.message)
        self.problem = problem


def problem_of(error: BaseException) -> Problem:
    """Map any error to the problem that is shown and sent: the one table of its kind."""
    match error:
        case PartyError():
            return error.problem
        case AnonymizeError():
            return Problem(
                error.error_id, str(error), column=error.column, remedy=error.remedy, private=error.private
            )
        case RemoteProtocolError():
            return Problem("peer-protocol", f"at step {error.step}: {error.reason}", party=error.culprit)
        case LocalProtocolError():
            return Problem("bug", f"a protocol was called wrongly: {error}")
        case OSError() if not isinstance(error, TimeoutError):
            return Problem("io-failed", error.strerror or type(error).__name__, private=str(error))
        case _:
            # The text of an unforeseen error may quote data: only its type leaves the process.
            return Problem("bug", f"unexpected {type(error).__name__}", private=str(error))
