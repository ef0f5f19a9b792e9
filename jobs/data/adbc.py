"""Statements over a connection of ADBC, with rows in Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jobs.data.arrow import pa

if TYPE_CHECKING:
    from adbc_driver_manager import AdbcConnection

_NO_OPTIONS: Mapping[str, str] = {}


@contextmanager
def rows_of(
    connection: AdbcConnection, sql: str, options: Mapping[str, str] = _NO_OPTIONS
) -> Iterator[pa.RecordBatchReader]:
    """Run a SELECT, and give its rows. Another statement before the last row ends the rows in an error.

    options:  of the driver, for the statement.
    """
    from adbc_driver_manager import AdbcStatement

    with AdbcStatement(connection) as statement:
        statement.set_options(**options)
        statement.set_sql_query(sql)
        handle, _ = statement.execute_query()
        with pa.RecordBatchReader.from_stream(handle) as rows:
            yield rows


def execute(connection: AdbcConnection, sql: str) -> None:
    """Run a statement without rows."""
    from adbc_driver_manager import AdbcStatement

    with AdbcStatement(connection) as statement:
        statement.set_sql_query(sql)
        statement.execute_update()
