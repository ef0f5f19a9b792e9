"""Files with the values that they had, in other bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

OTHER_BYTES: Mapping[str, Callable[[bytes], bytes]] = {
    "a byte order mark": lambda table: b"\xef\xbb\xbf" + table,
    "other ends of lines": lambda table: table.replace(b"\n", b"\r\n"),
    "one other end of a line": lambda table: table.replace(b"\n", b"\r\n", 1),
    "a blank line": lambda table: table + b"\n",
    "no last end of a line": lambda table: table[:-1],
}
