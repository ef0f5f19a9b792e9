"""Tables in Arrow's own file format, which Feather (version 2) is, too.

Source: the Arrow columnar format, "IPC File Format".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from anonymize.errors import changed
from jobs.data.arrow import pa, pa_ipc
from jobs.data.sources import FileSource
from jobs.data.texts import as_text

_ROWS = 1 << 16


@dataclass(frozen=True)
class ArrowFile(FileSource):
    """An Arrow IPC file; cells have the texts of those of a Parquet file of the same table.

    It is read, not mapped into memory: whoever cuts a mapped file short ends the process that reads it.
    """

    def settings(self) -> dict[str, Any]:
        return {"arrow": {"path": self.identity}}

    def _names(self) -> list[str]:
        with pa.OSFile(str(self.path)) as file, pa_ipc.open_file(file) as reader:
            return list(reader.schema.names)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        names = self._names()
        if not set(columns) <= set(names):
            raise changed()
        options = pa_ipc.IpcReadOptions(included_fields=sorted(names.index(name) for name in columns))
        with pa.OSFile(str(self.path)) as file, pa_ipc.open_file(file, options=options) as reader:
            for i in range(reader.num_record_batches):
                whole = reader.get_batch(i).select(list(columns))
                whole.validate(full=True)  # what is damaged would be read from beside the file's bytes
                for begins in range(0, whole.num_rows, _ROWS):
                    batch = whole.slice(begins, _ROWS)
                    yield pa.RecordBatch.from_arrays(list(map(as_text, batch.columns)), list(columns))
