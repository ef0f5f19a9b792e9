"""Kept results of runs whose releases do not compose. A repetition gives the result again and opens nothing.

A kept result is the party's reveal ledger, followed by the canonical bytes, which are the same at all parties. Two
kinds of results are not kept. A job with plain columns publishes raw values, which no digest of pass 1 covers. A
job that matches people tells the parties their common people, in each run anew.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any, Self

from jobs.errors import BudgetError
from jobs.json_text import read_json
from jobs.task import Task

_LENGTH_BYTES = 4


def keeps(task: Task) -> bool:
    """Return whether results of a job are kept."""
    return not task.partition.matched and not task.job.names("plain")


@dataclass(frozen=True)
class Kept:
    """Result in the ledger of a party.

    number:  of the charged entry.
    told:    `reveals` and `own_reveals` of the run.
    encoded: the canonical bytes of the result.
    """

    number: int
    told: dict[str, Any]
    encoded: bytes = field(repr=False)

    @property
    def digest(self) -> bytes:
        """Digest by which parties compare kept results: 32 bytes."""
        return hashlib.sha256(self.encoded).digest()

    @classmethod
    def read(cls, number: int, content: bytes) -> Self:
        """Read the bytes of :func:`written`. Raises BudgetError for other content of the ledger."""
        length = int.from_bytes(content[:_LENGTH_BYTES], "big")
        try:
            told = read_json(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
        except (ValueError, RecursionError) as error:
            raise _no_result(number) from error
        if not isinstance(told, dict) or set(told) != {"reveals", "own_reveals"}:
            raise _no_result(number)
        return cls(number, told, content[_LENGTH_BYTES + length :])

    def again(self, task: Task) -> Any:
        """Return the result. Raises PartyError where the ledger has something else than a result of the job."""
        result: Any = task.model.decode(task, self.encoded, "this party")
        told = {name: tuple(reveals) for name, reveals in self.told.items()}
        return replace(result, repeated=True, **told)


def _no_result(number: int) -> BudgetError:
    return BudgetError(
        "budget-ledger",
        f"entry {number} of the privacy ledger has no result",
        remedy="restore the ledger from a copy",
    )


def written(result: Any) -> bytes:
    """Return a result of a run in the form of the ledger."""
    told = json.dumps({"reveals": result.reveals, "own_reveals": result.own_reveals}).encode()
    encoded: bytes = result.encoded
    return len(told).to_bytes(_LENGTH_BYTES, "big") + told + encoded
