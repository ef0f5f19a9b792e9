"""Error of the Python interface, with the stable id of every other interface (docs/errors.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from anonymize.errors import AnonymizeError
from crypto.errors import ProtocolError
from jobs.errors import ConfigError, PartyError, Problem, problem_of
from jointcut.api.wording import in_python


class Error(Exception):
    """Error of Jointcut. The text has names of columns and parties, and no data value.

    >>> import jointcut as jc
    >>> try:
    ...     jc.Column(role="qdi")
    ... except jc.Error as error:
    ...     print(error.id)
    job-invalid
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._problem = problem

    def __str__(self) -> str:
        """Return the error in a line: the id, the place, what is wrong, and what to do."""
        shared = replace(self._problem, private="", cause="")
        more = " More for the owner of the table: `error.private`." if self.private else ""
        return f"{self._worded(shared.text(to_owner=self._is_own)).rstrip('.')}.{more}"

    @property
    def id(self) -> str:
        """Stable id, such as `data-unknown-value`."""
        return self._problem.error_id

    @property
    def message(self) -> str:
        """Description of the fault."""
        return self._worded(self._problem.message)

    @property
    def remedy(self) -> str:
        """Advice."""
        return self._worded(self._problem.advice(to_owner=self._is_own))

    @property
    def where(self) -> str:
        """Party, phase and column of the error, as far as known."""
        found = self._problem
        parts = (
            found.named,
            found.phase and f"phase {found.phase}",
            found.column and f"column {found.column}",
        )
        return ", ".join(part for part in parts if part)

    @property
    def column(self) -> str | None:
        """Column of the error."""
        return self._problem.column

    @property
    def party(self) -> str | None:
        """Party behind the error."""
        return self._problem.named

    @property
    def private(self) -> str:
        """Details for the owner of the table alone, with values and rows."""
        return "; ".join(part for part in (self._problem.cause, self._problem.private) if part)

    @property
    def exit_code(self) -> int:
        """Exit code of a command on the error."""
        return int(self._problem.exit_code)

    def _worded(self, text: str) -> str:
        return in_python(text, [self.column] if self.column else [])

    @property
    def _is_own(self) -> bool:
        return self._problem.party is None and not self._problem.hops


@contextmanager
def told() -> Iterator[None]:
    """Turn errors of Jointcut into :class:`Error`; usable as a decorator. Other errors pass.

    The inner error is not shown, because the texts of readers may quote values.
    """
    try:
        yield
    except (PartyError, AnonymizeError, ProtocolError, OSError) as error:
        raise Error(problem_of(error)) from None


def path_of(value: str | Path) -> Path:
    """Return a path as Path, with `~` expanded. Raises ConfigError for anything else."""
    if not isinstance(value, str | Path):
        raise ConfigError("usage", f"a {type(value).__name__} is no path", remedy="give a text or a Path")
    return Path(value).expanduser()
