"""Digests of the files of a release: in `report.json` of every file beside it, in `SHA256SUMS` of all files.

The SHA-256 of `SHA256SUMS` stands for the whole release. Each party computes the digest from the delivery and sends
it back. The coordinator commits only if all digests are equal, and each party keeps the digest in its privacy
ledger. Anybody with a folder can therefore ask a party whether the parties agreed on these files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jobs.errors import PartyError

SUMS = "SHA256SUMS"
DIGEST_BYTES = 32
_PLAIN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_LINE = re.compile(rf"([0-9a-f]{{64}})  ({_PLAIN}(?:/{_PLAIN})?)")
"""Digest and name of a file, or of a file in a folder beside the list."""
_IN_FOLDER = re.compile(f"{_PLAIN}/{_PLAIN}")


Digests = dict[str, str]
"""SHA-256, hexadecimal, by name of a file, or of a party."""


def digests_of(files: Mapping[str, bytes]) -> Digests:
    """Return the SHA-256 of each file, by name."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def file_fields(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Return the report's fields of the remaining files of its release: digest and size in bytes."""
    digests = digests_of(files)
    return {name: {"sha256": digests[name], "bytes": len(files[name])} for name in sorted(files)}


def fields_of_file(path: Path) -> dict[str, Any]:
    """Return digest and size of a file, possibly larger than memory."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def sums_of(files: Mapping[str, bytes]) -> bytes:
    """Return the content of `SHA256SUMS`, as `sha256sum -c` reads it: a line for each file, by name."""
    return sums_text(digests_of(files))


def sums_text(digests: Mapping[str, str]) -> bytes:
    """Return the content of `SHA256SUMS` for hexadecimal digests by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


def read_sums(content: bytes) -> dict[str, str]:
    """Read `SHA256SUMS`: digests by name. Raises PartyError unless written as :func:`sums_text` does."""
    lines = [_LINE.fullmatch(line) for line in content.decode("ascii", "replace").splitlines()]
    digests = {match[2]: match[1] for match in lines if match}
    if not digests or sums_text(digests) != content:
        raise PartyError("verification-failed", f"{SUMS} is malformed")
    return digests


def release_digest(sums: bytes) -> bytes:
    """Return the digest of a whole release: 32 bytes."""
    return hashlib.sha256(sums).digest()


def write_sums(folder: Path, names: tuple[str, ...]) -> bytes:
    """Write `SHA256SUMS` of the given files in a folder; return the digest of the release."""
    return place_sums(folder, {name: fields_of_file(folder / name)["sha256"] for name in names})


def place_sums(folder: Path, digests: Mapping[str, str]) -> bytes:
    """Write `SHA256SUMS` of files with the given digests into a folder; return the digest of the release."""
    content = sums_text(digests)
    (folder / SUMS).write_bytes(content)
    return release_digest(content)


def check_folder(folder: Path, made: tuple[str, ...]) -> bytes:
    """Compare each listed file of a folder with its digest; return the digest of the release.

    made:  possible names of files and folders of a release. A file in the folder with such a name, or in such a
           folder, must be in the list.

    Raises PartyError for a changed, missing or unlisted file.
    """
    content = (folder / SUMS).read_bytes()
    listed = read_sums(content)
    for name, digest in listed.items():
        path = folder / name
        if not path.is_file():
            raise PartyError("verification-failed", f"{path} is missing; {SUMS} lists it")
        if fields_of_file(path)["sha256"] != digest:
            raise PartyError(
                "verification-failed", f"{path} is not the file that {SUMS} lists: it was changed"
            )
    for name in (file for each in made for file in files_named(folder, each)):
        if name not in listed:
            raise PartyError("verification-failed", f"{folder / name} is not listed in {SUMS}")
    return release_digest(content)


def files_named(folder: Path, name: str) -> list[str]:
    """Return the name of a file in a folder, or of each file in a folder there; nothing where nothing is."""
    path = folder / name
    if path.is_dir():
        return [f"{name}/{each.name}" for each in sorted(path.iterdir())]
    return [name] if path.exists() else []


def is_of(name: str, made: Collection[str]) -> bool:
    """Return True for the name of a possible file of a release. made: as of :func:`check_folder`."""
    return name in made or (_IN_FOLDER.fullmatch(name) is not None and name.partition("/")[0] in made)


def unlisted(folder: Path) -> list[str]:
    """Return the names beside `SHA256SUMS` in a folder that are not listed; folders with a slash.

    Raises PartyError for a malformed list.
    """
    names = read_sums((folder / SUMS).read_bytes())
    listed = {SUMS, *(name.partition("/")[0] for name in names)}
    found = {path.name: path for path in folder.iterdir()}
    return [f"{name}/" if found[name].is_dir() else name for name in sorted(found.keys() - listed)]
