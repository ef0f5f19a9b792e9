"""The one Java machine with Spark that a process has: it starts with the first table, and ends with the process.

What Spark says of a query may quote cells, so nothing of it reaches our console or log. Whatever it writes is in a
temporary folder of its own until the end.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from anonymize.errors import DataError
from jobs.data.arrow import pa
from jobs.data.errors import library, not_there, unreadable

ROWS = 1 << 16
"""Of a batch."""
CONNECT_S = 10
WORKERS_S = 60
"""How long a master, and then its workers, are waited for."""
_END_S = 30
"""How long Java may take to end by itself."""
_SETTINGS = {
    "spark.app.name": "jointcut",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS),
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's own, which write errors to the console, with cells."""
_MANY_CHARS = 2000
"""Of what Spark says, for the owner."""


def is_local(master: str) -> bool:
    """Whether Spark computes in its Java machine alone."""
    return master.partition("[")[0] == "local"


def unreachable(cause: str) -> DataError:
    """``cause``: for the owner's log."""
    return DataError("data-unreachable", "Spark, which has the table, cannot be used", cause=cause)


class _Process:
    """Java with Spark in it. PySpark has one for all threads, so have we."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._folder = ""
        self._gateway: Any = None
        self._context: Any = None
        self._master = ""

    def session(self, master: str) -> Any:
        """A Spark session at ``master``. Raises DataError."""
        with self._starting, quiet():
            pyspark = _library()
            if not self.lasts() or self._master != master:
                self._start(pyspark, master)
            return import_module("pyspark.sql").SparkSession(self._context)

    def lasts(self) -> bool:
        """Whether Spark is there and works."""
        if self._context is None or self._gateway.proc.poll() is not None:
            return False
        try:
            return not self._context._jsc.sc().isStopped()
        except _errors():
            return False

    def _answers(self) -> bool:
        """Whether Java is there. One that was killed may still be ending: then it is a process, but says nothing."""
        try:
            return bool(self._gateway.jvm.java.lang.System.currentTimeMillis())
        except _errors():
            return False

    def _start(self, pyspark: Any, master: str) -> None:
        _look_for(master)
        self._stop()
        conf = pyspark.SparkConf(loadDefaults=False).setMaster(master)
        if self._gateway is None:
            self._launch(pyspark, conf, master)
        for name, value in _settings(self._folder, master).items():
            conf.set(name, value)
        try:
            self._context = pyspark.SparkContext(conf=conf, gateway=self._gateway)
            self._master = master
            _wait_for_workers(self._context, master)
        except DataError:
            self._stop()
            raise
        except _errors() as error:
            raise unreachable(f"Spark did not start at {master}: {_first_line(error)}") from None

    def _launch(self, pyspark: Any, conf: Any, master: str) -> None:
        """Start Java, deaf and dumb: it ends when the pipe to it is closed, which it is with our end."""
        self._folder = tempfile.mkdtemp(prefix="jointcut-spark-")
        for name, value in _settings(self._folder, master).items():
            conf.set(name, value)
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            self._gateway = import_module("pyspark.java_gateway").launch_gateway(conf, silent)
        except pyspark.errors.PySparkRuntimeError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise unreachable("Java did not start Spark, which needs Java 17 or newer") from None
        atexit.register(self.end)

    def _stop(self) -> None:
        """End what was computed with; of Java that is gone, forget all."""
        if self._context is not None:
            with suppress(Exception):  # it may have ended by itself
                self._context.stop()
        self._context = None
        if self._gateway is not None and not self._answers():
            self.end()

    def end(self) -> None:
        """End Java, and remove what it wrote."""
        atexit.unregister(self.end)
        if self._gateway is None:
            return
        with suppress(Exception):
            if self._context is not None and self._gateway.proc.poll() is None:
                self._context.stop()
            self._gateway.shutdown()
        self._gateway.proc.stdin.close()
        try:
            self._gateway.proc.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._gateway.proc.kill()
            self._gateway.proc.wait()
        kind = import_module("pyspark").SparkContext
        kind._gateway = kind._jvm = kind._active_spark_context = None
        self._gateway = self._context = None
        shutil.rmtree(self._folder, ignore_errors=True)


PROCESS = _Process()


def _library() -> Any:
    """PySpark, silenced. Raises DataError without it, or without Java."""
    pyspark = library("pyspark", "PySpark", "spark")
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        message = "this table needs Java, which is not installed"
        remedy = "its owner: install Java 17 or newer (Debian: default-jre-headless)"
        raise DataError("extra-missing", message, remedy=remedy)
    for name in _LOGGERS:
        import_module("pyspark.logger").PySparkLogger.getLogger(name).disabled = True
    import_module("logging").getLogger("py4j").disabled = True
    return pyspark


def _errors() -> tuple[type[Exception], ...]:
    """What PySpark raises over what Spark cannot do, or a connection to Java that is broken."""
    spark, java = import_module("pyspark.errors"), import_module("py4j.protocol")
    return spark.PySparkException, java.Py4JError, OSError


def _settings(folder: str, master: str) -> dict[str, str]:
    own = {
        "spark.master": master,
        "spark.local.dir": folder,
        "spark.driver.extraJavaOptions": f'-XX:-UsePerfData "-Djava.io.tmpdir={folder}"',
    }
    if is_local(master):
        own |= _LOCAL | {"spark.sql.warehouse.dir": f"{folder}/warehouse"}
    return _SETTINGS | own


def _look_for(master: str) -> None:
    """Raise DataError if a master is not there; Spark itself would ask for minutes."""
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        with (
            suppress(OSError),
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S),
        ):
            return
    raise unreachable(f"nobody answers at {master}")


def _wait_for_workers(context: Any, master: str) -> None:
    """Raise DataError if the cluster has nobody who computes; jobs would wait without end."""
    if is_local(master) or context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    until = time.monotonic() + WORKERS_S
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver is one
        if time.monotonic() > until:
            raise unreachable(f"no worker of {master} took the work within {WORKERS_S} s")
        time.sleep(0.2)


def _first_line(error: Exception) -> str:
    """What Spark said, without where in its code."""
    return next(filter(None, map(str.strip, str(error).partition("\n\tat ")[0].splitlines())), "")


@contextmanager
def told() -> Iterator[None]:
    """What Spark, or Arrow with what it gave, cannot do; in their words for the owner alone."""
    try:
        yield
    except (*_errors(), pa.ArrowException) as error:
        if not PROCESS.lasts():
            raise unreachable("Spark went away") from None
        said = str(error).partition("\n\tat ")[0].partition("JVM stacktrace:")[0].strip()
        raise _as_ours(getattr(error, "getCondition", str)(), said[:_MANY_CHARS]) from None


def _as_ours(condition: str | None, said: str) -> DataError:
    if condition in ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"):
        return not_there("path or table", private=said)
    return unreadable(said)


@contextmanager
def quiet() -> Iterator[None]:
    """PySpark warns of versions of pandas, which is not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
