"""`python -m tests.fuzz PARSER RUNS SECONDS`: inputs made of the corpus of a parser, guided by coverage.

Atheris guides them; where there is none they are changed at random.

Half of them are changed by their structure where they have one (:mod:`tests.fuzz.structure`). Ends when so many runs
or seconds are over, or with the first input that leads to an error that is not documented, or takes too long, and
writes it down. ``all`` as the parser takes one after the other, each for so long.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None

_SLOW_S = 10.0
"""Of processor time: others may be using the machine, too."""
_STRUCTURED = 0.5
"""Share of the inputs that are altered in their structure, where they have one."""


def _main(parser: str, runs: int, seconds: float) -> None:
    # A folder for all folders: `os._exit` below ends without taking them away.
    own = tempfile.tempdir = tempfile.mkdtemp(prefix="fuzz-")
    if atheris is not None:
        with atheris.instrument_imports(include=["anonymize", "jobs", "party", "coordinator", "crypto"]):
            from tests.fuzz.targets import TARGETS, handed
    else:
        from tests.fuzz.targets import TARGETS, handed

    target, count, began, slowest = TARGETS[parser], 0, time.monotonic(), 0.0

    def one(data: bytes) -> None:
        nonlocal count, slowest
        since = time.process_time()
        try:
            handed(target, data)
            slowest = max(slowest, time.process_time() - since)
            assert slowest < _SLOW_S
        except BaseException:
            found = Path(f"fuzz-{parser}-{count}")
            found.write_bytes(data)
            print(f"{parser}: written down in {found}", file=sys.stderr)
            raise
        count += 1
        if count >= runs or time.monotonic() - began >= seconds:
            took = f"in {time.monotonic() - began:.0f} s, the slowest {slowest:.2f} s"
            print(f"{parser}: {count} inputs {took}, no finding", flush=True)
            shutil.rmtree(own)
            os._exit(0)

    if atheris is None:
        _at_random(parser, one)
    else:
        _by_coverage(parser, one)


def _at_random(parser: str, one: Callable[[bytes], None]) -> None:
    from tests.fuzz.structure import any_change

    rng = random.Random(0)  # noqa: S311  inputs, no secrets
    while True:
        one(any_change(parser, rng))


def _by_coverage(parser: str, one: Callable[[bytes], None]) -> None:
    from tests.fuzz.mutation import CORPUS, WORDS
    from tests.fuzz.structure import STRUCTURES, restructured

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)  # noqa: S311  inputs, no secrets
        other = restructured(parser, data, rng) if rng.random() < _STRUCTURED else None
        changed: bytes = atheris.Mutate(data, max_size) if other is None else other[:max_size]
        return changed

    folder = Path(tempfile.mkdtemp())
    (folder / "new").mkdir()
    words = ('"' + "".join(f"\\x{byte:02x}" for byte in word[:60]) + '"\n' for word in WORDS)
    (folder / "words").write_text("".join(words))
    options = [f"-dict={folder / 'words'}", "-max_len=6000", "-verbosity=0", "-rss_limit_mb=3000"]
    structured = {"custom_mutator": mutate} if parser in STRUCTURES else {}
    atheris.Setup([sys.argv[0], str(folder / "new"), str(CORPUS / parser), *options], one, **structured)
    atheris.Fuzz()


def _all(runs: int, seconds: float) -> int:
    from tests.fuzz.targets import TARGETS

    command = [sys.executable, "-m", "tests.fuzz"]
    codes = [subprocess.call([*command, parser, str(runs), str(seconds)]) for parser in TARGETS]
    return max(codes)


if __name__ == "__main__":
    name, most, longest = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if name == "all":
        sys.exit(_all(most, longest))
    _main(name, most, longest)
