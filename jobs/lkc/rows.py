"""Row of a joint table with plain columns as bytes of fixed width, for the shuffle (:mod:`crypto.mixing`).

First come the numbers of public labels in job order, each in as few bytes as all labels need; then the texts of
plain columns, each behind its length of 4 bytes; then zeros. Whole numbers are big-endian, so rows sorted by bytes
are sorted by numbers. Every row has a single encoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anonymize.release import LabelledColumn, Release
from crypto.encoding import bytes_for, digits_of, of_digits
from crypto.mixing import Rows
from jobs.errors import PartyError
from jobs.lkc.result import Made
from jobs.task import Task

TEXT_WIDTHS = tuple(1 << bits for bits in range(4, 15))
"""Possible widths in bytes of the texts of a row, lengths included."""
_LENGTH_BYTES = 4


@dataclass(frozen=True)
class RowCoding:
    """Coding of rows. labels: of every column with public labels. names: all columns, in job order."""

    names: Sequence[str]
    labels: Mapping[str, Sequence[str]]

    @property
    def plain(self) -> list[str]:
        return [name for name in self.names if name not in self.labels]

    @property
    def coded_bytes(self) -> int:
        """Number of bytes of the numbers of a row."""
        return sum(_bytes_for(labels) for labels in self.labels.values())

    def text_bytes(self, release: Release) -> int:
        """Return the largest size of the texts of a row."""
        return max(map(len, self._texts(release)), default=0)

    def encoded(self, release: Release, text_width: int) -> Rows:
        """Return rows of ``coded_bytes + text_width`` bytes; the texts of each row fit."""
        texts = b"".join(text.ljust(text_width, b"\0") for text in self._texts(release))
        coded = [self._numbers(release.columns[name], name) for name in self.names if name in self.labels]
        return np.hstack([*coded, np.frombuffer(texts, dtype=np.uint8).reshape(-1, text_width)])

    def _numbers(self, column: LabelledColumn, name: str) -> Rows:
        """Return the numbers of a column's cells, big-endian, shape (n_rows, bytes)."""
        place = {label: i for i, label in enumerate(self.labels[name])}
        numbers = np.array([place[label] for label in column.labels] or [0], dtype=np.int64)[column.codes]
        return digits_of(numbers, _bytes_for(self.labels[name]))

    def _texts(self, release: Release) -> list[bytes]:
        """Return the texts of every row, each behind its length."""
        cells = []
        for name in self.plain:
            column = release.columns[name]
            framed = [_framed(label) for label in column.labels]
            cells.append([framed[code] for code in column.codes.tolist()])
        return [b"".join(row) for row in zip(*cells, strict=True)]

    def decoded(self, rows: Rows) -> Release:
        """Return the table. Raises PartyError for an impossible row; nobody knows the party of the row."""
        columns, start = {}, 0
        for name in self.names:
            if name in self.labels:
                width, labels = _bytes_for(self.labels[name]), self.labels[name]
                numbers = of_digits(rows[:, start : start + width])
                if (numbers >= len(labels)).any():
                    raise _malformed()
                columns[name] = LabelledColumn(tuple(labels), numbers)
                start += width
        texts = [self._split(row.tobytes()) for row in rows[:, start:]]
        for i, name in enumerate(self.plain):
            columns[name] = _labelled([row[i] for row in texts])
        return Release(columns).ordered(self.names)

    def _split(self, text: bytes) -> list[str]:
        """Return the texts of a row."""
        found, start = [], 0
        for _ in self.plain:
            end = start + _LENGTH_BYTES
            start, end = end, end + int.from_bytes(text[start:end], "big")
            try:
                found.append(text[start:end].decode())
            except UnicodeDecodeError as error:
                raise _malformed() from error
            start = end
        if start > len(text) or any(text[start:]):
            raise _malformed()
        return found


def row_coding(task: Task, result: Made) -> RowCoding:
    """Return the coding of rows for the result of a run."""
    names, labels = task.job.published, result.public_labels
    return RowCoding(names, {name: labels[name] for name in names if name in labels})


def _bytes_for(labels: Sequence[str]) -> int:
    return bytes_for(len(labels) - 1)


def _framed(label: str) -> bytes:
    text = label.encode()
    return len(text).to_bytes(_LENGTH_BYTES, "big") + text


def _labelled(texts: Sequence[str]) -> LabelledColumn:
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return LabelledColumn(tuple(place), np.array([place[text] for text in texts], dtype=np.int64))


def _malformed() -> PartyError:
    return PartyError(
        "result-mismatch", "a row that was mixed is none of this table; whose it is, nobody knows"
    )
