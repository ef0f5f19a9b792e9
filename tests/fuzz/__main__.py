"""`make fuzz PARSER=… RUNS=…`: inputs made of the corpus of a parser, guided by coverage where there is Atheris.

Ends with the first input that leads to an error that is not documented, or takes too long, and writes it down.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None

_SLOW_S = 10.0


def _main(parser: str, runs: int) -> None:
    if atheris is not None:
        with atheris.instrument_imports(include=["anonymize", "jobs", "party", "coordinator", "crypto"]):
            from tests.fuzz.targets import TARGETS, handed
    else:
        from tests.fuzz.targets import TARGETS, handed
    from tests.fuzz.mutation import CORPUS, WORDS, corpus_of, mutated

    target, count, began = TARGETS[parser], 0, time.monotonic()

    def one(data: bytes) -> None:
        nonlocal count
        since = time.monotonic()
        try:
            handed(target, data)
            assert time.monotonic() - since < _SLOW_S
        except BaseException:
            found = Path(f"fuzz-{parser}-{count}")
            found.write_bytes(data)
            print(f"{parser}: written down in {found}", file=sys.stderr)
            raise
        count += 1
        if count >= runs:
            print(f"{parser}: {count} inputs in {time.monotonic() - began:.0f} s, no finding", flush=True)
            os._exit(0)

    if atheris is None:
        rng = random.Random(0)  # noqa: S311  inputs, no secrets
        corpus = corpus_of(parser)
        while True:
            one(mutated(corpus, rng))
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    (folder / "new").mkdir()
    words = ('"' + "".join(f"\\x{byte:02x}" for byte in word[:60]) + '"\n' for word in WORDS)
    (folder / "words").write_text("".join(words))
    options = [f"-dict={folder / 'words'}", "-max_len=6000", "-verbosity=0", "-rss_limit_mb=3000"]
    atheris.Setup([sys.argv[0], str(folder / "new"), str(CORPUS / parser), *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
