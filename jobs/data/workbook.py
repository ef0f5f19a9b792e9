"""Sheets of Excel workbooks, read by openpyxl, which is an optional package."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from zipfile import BadZipFile

from anonymize.errors import DataError


def rows_of_sheet(path: Path, sheet: str | None) -> Iterator[list[str]]:
    """Yield the rows of a sheet as texts, the header first, each as long as the header; blank rows are left out.

    sheet:  name of the sheet; None: the first. Raises DataError, also without openpyxl.
    """
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise DataError(
            "extra-missing",
            f"{path.name} is an Excel workbook, and openpyxl is not installed",
            remedy="pip install openpyxl, or save the table as CSV UTF-8",
        ) from error
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, InvalidFileException, KeyError, ValueError) as error:
        raise DataError(
            "data-unreadable", "the table cannot be read", private=f"{path} is no Excel workbook: {error}"
        ) from error
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError(
                "data-unreadable",
                "the table cannot be read",
                private=f"{path} has no sheet {sheet!r}; it has {', '.join(map(repr, book.sheetnames))}",
            )
        width = 0
        for cells in (book[sheet] if sheet is not None else book.worksheets[0]).iter_rows(values_only=True):
            texts = [_text(cell) for cell in cells]
            if any(texts):
                width = width or len(texts) - texts[::-1].index(next(filter(None, reversed(texts))))
                yield (texts + [""] * width)[:width]
    finally:
        book.close()


def _text(cell: object) -> str:
    """Return a cell as a CSV would have it: dates in ISO form, whole numbers without `.0`, empty cells empty."""
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case float() if cell.is_integer():
            return str(int(cell))
        case datetime() if cell.time() == time():
            return cell.date().isoformat()
        case datetime():
            return cell.isoformat(" ", "seconds")
        case date():
            return cell.isoformat()
        case _:
            return str(cell)
