"""Sheets of Excel workbooks, read by openpyxl, which is an optional package."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import date, datetime, time
from itertools import repeat
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile
from zlib import error as PackError

from anonymize.errors import DataError
from jobs.data.table_file import unreadable

_MOST_CELLS = 20
"""Largest number of cells without a stored value that are named at once."""
_DAMAGE = (BadZipFile, PackError, EOFError, SyntaxError, LookupError, ValueError, TypeError, AttributeError)
"""Errors of openpyxl and of its readers of ZIP and XML (SyntaxError) over a damaged workbook."""
_FORMULA = re.compile(rb"<(?:[a-z0-9]+:)?f[ />]")
_BLOCK_BYTES = 1 << 20


def sheets_of(path: Path) -> list[str]:
    """Return the names of the sheets with cells, in order. Raises DataError as :func:`rows_of_sheet`."""
    with _undamaged(path), closing(_opened(path)) as book:
        return [sheet.title for sheet in book.worksheets]


def rows_of_sheet(path: Path, sheet: str | None, used: Collection[str] = ()) -> Iterator[list[str]]:
    """Yield the rows of a sheet as texts, the header first, each as long as the header; blank rows are left out.

    sheet:  name of the sheet; None: the first.
    used:   names of columns that hold no formula without a stored value: such a cell would count as empty.

    Raises DataError, also without openpyxl.
    """
    with _undamaged(path), ExitStack() as stack:
        values = _cells(stack, path, sheet)
        formulas: Iterator[Sequence[Any]] = repeat(())
        if used and _has_formulas(path):
            formulas = _cells(stack, path, sheet, data_only=False)
        width, places = 0, list[int]()
        empty: list[str] = []
        for number, (cells, written_cells) in enumerate(zip(values, formulas, strict=False), 1):
            texts = [_text(cell) for cell in cells]
            empty += [
                f"{_letters(place)}{number}"
                for place in places
                if place < len(written_cells) and cells[place] is None and written_cells[place] is not None
            ]
            if any(texts) and not empty:
                if not width:
                    width = max(place for place, text in enumerate(texts, 1) if text)
                    places = [place for place, name in enumerate(texts) if name in used]
                yield (texts + [""] * width)[:width]
        if empty:
            raise _without_value(path, empty)


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise unreadable(
            f"{path} is a damaged or incomplete Excel workbook: save or copy the file again, whole ({error})"
        ) from error


def _cells(
    stack: ExitStack, path: Path, sheet: str | None, *, data_only: bool = True
) -> Iterator[Sequence[Any]]:
    """Return the rows of a sheet, until a stack closes the workbook. Raises DataError."""
    book = stack.enter_context(closing(_opened(path, data_only=data_only)))
    rows: Iterator[Sequence[Any]] = stack.enter_context(
        closing(_sheet(path, book, sheet).iter_rows(values_only=True))
    )
    return rows


def _without_value(path: Path, cells: Sequence[str]) -> DataError:
    """Return the error about formulas whose value no program has stored."""
    more = f" and {len(cells) - _MOST_CELLS:,} more" if len(cells) > _MOST_CELLS else ""
    return unreadable(
        f"{path}: formulas without a stored value in {', '.join(cells[:_MOST_CELLS])}{more}: open the "
        "workbook in Excel or LibreOffice, which calculate the values, and save it; or write values in place of "
        "formulas",
    )


def _letters(place: int) -> str:
    """Return the letters of a column, from place 0: A."""
    letters = chr(ord("A") + place % 26)
    return letters if place < 26 else _letters(place // 26 - 1) + letters


def _has_formulas(path: Path) -> bool:
    """Return True if a sheet of a workbook has a formula."""
    with ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with archive.open(name) as file:
                    before = b""
                    while block := file.read(_BLOCK_BYTES):
                        if _FORMULA.search(before + block):
                            return True
                        before = block[-16:]
    return False


def _opened(path: Path, *, data_only: bool = True) -> Any:
    """Open a workbook with its stored values, or with its formulas. Raises DataError."""
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
        return load_workbook(path, read_only=True, data_only=data_only)
    except (BadZipFile, InvalidFileException, KeyError, ValueError) as error:
        raise unreadable(f"{path} is no Excel workbook: {error}") from error


def _sheet(path: Path, book: Any, sheet: str | None) -> Any:
    """Return a sheet of a workbook, the first without a name. Raises DataError."""
    sheets = {each.title: each for each in book.worksheets}  # sheets of charts have no cells
    name = next(iter(sheets), None) if sheet is None else sheet
    if name not in sheets:
        asked = "" if sheet is None else f" {sheet!r}"
        raise unreadable(
            f"{path} has no sheet{asked} with cells; it has {', '.join(map(repr, sheets)) or 'none'}",
        )
    return sheets[name]


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
