"""Memory that a daemon gives back."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import threading
from party.memory import give_back, use_one_arena

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

use_one_arena()
before = resident()

def work():
    kept.append([b"x" * 100_000 for _ in range(1000)])

kept = []
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
held = resident() - before
last = [each.pop() for each in kept]  # keeps the end of the memory in use
kept.clear()
give_back()
print(held, resident() - before)
"""


def test_memory_of_all_threads_goes_back() -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    held, left = map(int, ran.stdout.split())
    assert held > 300_000_000
    assert left < held / 4
