"""Errors about tables, schemas and privacy requirements.

``str(error)`` may be shown to every party: it names columns and public settings, never a value or a count from data.
``private`` is for the data's owner alone. ``cause`` is the operating system's message, with paths: no data, but also
for the owner alone.
"""

from __future__ import annotations


class AnonymizeError(Exception):
    """Error about a table or a requirement; ``error_id`` is stable (docs/errors.md).

    line:  line of the column's hierarchy file with the error, from 1.
    """

    def __init__(
        self,
        error_id: str,
        message: str,
        *,
        column: str | None = None,
        remedy: str = "",
        private: str = "",
        cause: str = "",
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.error_id = error_id
        self.column = column
        self.remedy = remedy
        self.private = private
        self.cause = cause
        self.line = line


class SchemaError(AnonymizeError):
    """Error for an invalid taxonomy, domain or requirement, found without data."""


class DataError(AnonymizeError):
    """Error for a table that does not fit its schema."""


class PrivacyError(AnonymizeError):
    """Error for a privacy requirement that cannot be met."""
