"""A standalone Spark cluster of this machine: a master and its worker, processes of PySpark's own distribution."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.support.bare import bare

_START_S = 120
_PACKAGE = "org.apache.spark.deploy"


@contextmanager
def master(folder: Path) -> Iterator[str]:
    """Start a master on a free port of 127.0.0.1; yield its address."""
    with _running(folder, f"{_PACKAGE}.master.Master", r"Starting Spark master at (spark://\S+)") as address:
        yield address


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The same with a worker, which starts executors as applications ask for them."""
    with ExitStack() as stack:
        address = stack.enter_context(master(folder))
        work = ("--cores", "2", "--memory", "2g", "--work-dir", str(folder / "work"), address)
        registered = r"Successfully registered with master (\S+)"
        stack.enter_context(_running(folder, f"{_PACKAGE}.worker.Worker", registered, *work))
        yield address


@contextmanager
def _running(folder: Path, kind: str, said: str, *arguments: str) -> Iterator[str]:
    """Run one of Spark's servers; yield what it says when it is ready."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    home = Path(found.origin).parent
    options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dspark.master.rest.enabled=false"]
    command = ["java", *options, "-cp", f"{home}/jars/*", kind, "--host", "127.0.0.1", "--port", "0"]
    env = bare() | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder)}
    env["SPARK_SCALA_VERSION"] = "2.13"  # a worker looks for it where PySpark's distribution has nothing
    log = folder / f"{kind}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *arguments], cwd=folder, env=env, stdout=out, stderr=out
        )
    try:
        yield _waited_for(process, log, said)
    finally:
        process.terminate()
        process.wait(_START_S)


def _waited_for(process: subprocess.Popen[bytes], log: Path, said: str) -> str:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        found = re.search(said, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{os.path.basename(log)}:\n{log.read_text(errors='replace')}")
