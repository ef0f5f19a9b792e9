"""Hook of the documentation site: files of the repository that are no pages are named, and not linked."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]\n]+)\]\(((?:\.\./)+[^)\s]*)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return a page without links out of the folder of documents: the path stands beside the text instead."""
    folder = posixpath.dirname(page.file.src_uri)

    def named(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if target.startswith("docs/"):
            return link[0]
        text = link[1].strip("`")
        return f"`{target}`" if target.endswith(text) else f"{link[1]} (`{target}`)"

    return _LINK.sub(named, markdown)
