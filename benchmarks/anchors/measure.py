"""Measures of a table by pyCANON and anonypy, and their time; run by :mod:`benchmarks.bench_kd_anchors`.

The module runs in a separate environment (requirements.txt), so it imports nothing of ours. It takes a JSON object
on standard input and prints a JSON object. pyCANON's recursive (c, l)-diversity is never used: pyCANON takes the
smallest count first.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = run()
    return found, time.process_time() - start


def checked(table: Any, qid: Sequence[str], sensitive: Sequence[str]) -> dict[str, Any]:
    """Return pyCANON's k, and by sensitive column distinct l and t, each with its CPU seconds."""
    anonymity = import_module("pycanon.anonymity")
    k, of_k = timed(lambda: anonymity.k_anonymity(table, list(qid)))
    found: dict[str, Any] = {"k": int(k), "seconds": {"k": of_k}, "l": {}, "t": {}}
    for name in sensitive:
        least, of_l = timed(lambda name=name: anonymity.l_diversity(table, list(qid), [name]))
        far, of_t = timed(lambda name=name: anonymity.t_closeness(table, list(qid), [name]))
        found["l"][name], found["t"][name] = int(least), float(far)
        found["seconds"] |= {f"l({name})": of_l, f"t({name})": of_t}
    return found


def partitioned(table: Any, qid: Sequence[str], sensitive: str, k: int) -> dict[str, Any]:
    """Return the groups of anonypy's Mondrian, and its CPU seconds."""
    for name in qid:
        if table[name].dtype == object:
            table[name] = table[name].astype("category")
    table[sensitive] = table[sensitive].astype("category")
    mondrian = import_module("anonypy").Mondrian(table, list(qid), sensitive)
    groups, seconds = timed(lambda: mondrian.partition(k))
    return {"sizes": [len(group) for group in groups], "seconds": seconds}


def main() -> None:
    asked = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    table = import_module("pandas").DataFrame(asked["rows"], columns=asked["columns"])
    if asked["what"] == "checks":
        found = checked(table, asked["qid"], asked["sensitive"])
    else:
        found = partitioned(table, asked["qid"], asked["sensitive"][0], asked["k"])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
