"""Spark in tests: quick options of Java, and a standalone cluster of real processes on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.bare import bare

MASTER = "local[2]"
QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:CICompilerCount=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Options of Java for short programs: begin quickly, compile little, on one thread. Spark's classes are not verified:
that takes longer than the queries of a test.
"""

needs_java = pytest.mark.skipif(
    shutil.which("java") is None, reason="no Java here: apt-get install default-jre-headless"
)

_HERE = "127.0.0.1"
_PORT = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
_REGISTERED = "Successfully registered with master"
_WAIT_S = 60


@dataclass
class Standalone:
    """A master and its workers. logs: of the workers, which name their executors."""

    master: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def executors(self) -> list[int]:
        """Return the ids of the processes that workers started."""
        tasks = (task for worker in self.workers for task in Path(f"/proc/{worker.pid}/task").iterdir())
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


@contextmanager
def standalone(folder: Path, n_workers: int = 2) -> Iterator[Standalone]:
    """Run a cluster on ports that the system chooses, bound to this machine."""
    with ExitStack() as stack:
        _begin(stack, folder, "master", "org.apache.spark.deploy.master.Master", "--webui-port", "0")
        master = _awaited(folder / "master.log", _PORT)
        found = Standalone(master, folder)
        for i in range(n_workers):
            words = (
                "--cores",
                "1",
                "--memory",
                "2g",
                "--webui-port",
                "0",
                "--work-dir",
                f"{folder}/work-{i}",
            )
            worker = _begin(
                stack, folder, f"worker-{i}", "org.apache.spark.deploy.worker.Worker", *words, master
            )
            found.workers.append(worker)
        for i in range(n_workers):
            _awaited(folder / f"worker-{i}.log", re.compile(f"({_REGISTERED})"))
        yield found


def _begin(stack: ExitStack, folder: Path, name: str, main: str, *words: str) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    (core,) = (home / "jars").glob("spark-core_*.jar")
    options = [*QUICK.split(), "-Xmx256m", *_opened(), "-Dspark.master.rest.enabled=false"]
    java = ["java", *options, "-cp", f"{home}/jars/*", main]
    settings = {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": core.name.split("_")[1].split("-")[0],
        "SPARK_LOCAL_IP": _HERE,
        "SPARK_LOCAL_DIRS": str(folder),
    }
    log = stack.enter_context((folder / f"{name}.log").open("wb"))
    process = subprocess.Popen(
        [*java, "--host", _HERE, "--port", "0", *words],
        stdout=log,
        stderr=log,
        cwd=folder,
        env=bare() | settings,
    )
    stack.callback(_end, process)
    return process


def _opened() -> list[str]:
    """Return the options by which Spark opens modules of Java."""
    packages = ("java.lang", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch", "java.net")
    return [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in packages]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _awaited(log: Path, wanted: re.Pattern[str]) -> str:
    """Return what a program logs."""
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        if found := wanted.search(log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text(errors="replace")[-2000:])
