"""Spark as an application of this process: quiet, on no public port, and gone with its last table.

The driver is a Java process of its own. Spark's logs are off in driver and executors, because logs may hold values.
All that Spark leaves in a current folder stands in a temporary folder of mode 0700, which goes away with the process.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from logging import CRITICAL, getLogger
from pathlib import Path
from threading import RLock, current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.app.name": "jointcut",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
}
_LOGGERS = "SQLQueryContextLogger", "DataFrameQueryContextLogger"
"""Loggers of the Python package. They would write queries and Java's words to the console."""
_LOCAL = re.compile(r"local(?:\[(?:\d+|\*)\])?")
_STANDALONE = re.compile(r"spark://([^/,\s]+(?:,[^/,\s]+)*)")
_LOOPBACK = re.compile(r"localhost|127\.[\d.]+")
_REACHED_S, _GRANTED_S, _ENDED_S = 10, 60, 30
_POLL_S = 0.2
_JAVA = "Spark needs Java 17 or newer, as `java` on the PATH or in JAVA_HOME"
_lock = RLock()
"""Held while an application begins or ends. A thread that begins an application may collect another as garbage."""


@dataclass(frozen=True, eq=False)
class _Application:
    """Application that this program began. folder: Java's. process: the process that began the application."""

    context: SparkContext
    folder: tempfile.TemporaryDirectory[str]
    process: int


class Unavailable(Exception):
    """No application of Spark. The message is for the owner."""


class Cluster:
    """Running application of Spark.

    The application ends with the last reference to the object.
    """

    def __init__(self, master: str) -> None:
        """Start the application, unless this process has an application there. Raises Unavailable."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        running = SparkContext._active_spark_context
        if running is None:
            running = self._started(master)
        elif running.master != master:
            raise Unavailable(f"this process already runs Spark at {running.master}")
        self._context = running
        self._session = SparkSession(running)

    def session(self, settings: Mapping[str, str]) -> SparkSession:
        """Return a session with settings and temporary views of its own."""
        session = self._session.newSession()
        for key, value in settings.items():
            session.conf.set(key, value)
        return session

    def _started(self, master: str) -> SparkContext:
        _require_java()
        _require_reached(master)
        folder = tempfile.TemporaryDirectory(prefix="jointcut-")
        try:
            context = _begun(master, folder.name)
        except BaseException:
            _end_java()
            folder.cleanup()
            raise
        application = _Application(context, folder, os.getpid())
        _running.add(application)
        end = weakref.finalize(self, _end, application)
        try:
            _require_executors(context, master)
        except Unavailable:
            end()
            raise
        return context


_clusters: weakref.WeakValueDictionary[str, Cluster] = weakref.WeakValueDictionary()
_running: set[_Application] = set()
"""Applications that this program began: at most one."""


def cluster(master: str) -> Cluster:
    """Return the application at a master: tables share the application. Raises Unavailable."""
    with _lock:
        found = _clusters.get(master)
        if found is None:
            if not list(_clusters.values()):
                for application in list(_running):
                    _end(
                        application
                    )  # its last table went just now, in another thread, which waits for the lock
            found = _clusters[master] = Cluster(master)
        return found


def _begun(master: str, folder: str) -> SparkContext:
    """Start Java and the application. Raises Unavailable. folder: Java's current folder."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    _quiet()
    conf = SparkConf(loadDefaults=False)
    for key, value in {**_SETTINGS, "spark.master": master, "spark.local.dir": folder}.items():
        conf.set(key, value)
    if _is_here(master):
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    if _has_metastore():
        conf.set("spark.sql.catalogImplementation", "hive")
    unheard = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    with _undisturbed():
        try:
            gateway = SparkContext._gateway or launch_gateway(conf, unheard)
        except (PySparkException, OSError):
            raise Unavailable(f"Java did not start: {_JAVA}") from None
        try:
            return SparkContext(gateway=gateway, conf=conf)
        except (Py4JError, OSError):
            raise Unavailable(f"Spark at {master} takes no application") from None


def _quiet() -> None:
    """Keep the Python packages from the console."""
    from pyspark.logger import PySparkLogger

    getLogger("py4j").setLevel(
        CRITICAL + 1
    )  # at DEBUG it writes each call of Java: paths, queries, texts of cells
    for name in _LOGGERS:
        PySparkLogger.getLogger(name)  # otherwise the package would make the logger later, with its own level
        getLogger(name).setLevel(CRITICAL + 1)
    with warnings.catch_warnings():
        # The package imports this module with its first query, and warns of versions of pandas. Pandas is not used.
        warnings.simplefilter("ignore")
        import_module("pyspark.testing.utils")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Undo what Spark changes in this process: the action on an interrupt, and the paths of modules."""
    paths, action = list(sys.path), signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        sys.path[:] = paths
        if current_thread() is main_thread() and action is not None:
            signal.signal(signal.SIGINT, action)


def _require_java() -> None:
    """Raise Unavailable where Java is missing."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java" if not home else str(Path(home) / "bin" / "java"))
    if found is None:
        raise Unavailable(f"Java is missing: {_JAVA}")


def _require_reached(master: str) -> None:
    """Raise Unavailable if no master of a standalone cluster answers: Spark would try for a minute."""
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return
    for place in found[1].split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_S).close()
        except (OSError, ValueError, OverflowError):
            continue
        return
    raise Unavailable(
        f"no master answers at {master}; write spark://HOST:PORT as the page of the master says"
    )


def _require_executors(context: SparkContext, master: str) -> None:
    """Raise Unavailable if a standalone cluster gives no executor: a query would wait forever."""
    from py4j.protocol import Py4JError

    conf: SparkConf = context.getConf()
    if not _STANDALONE.fullmatch(master) or conf.get("spark.dynamicAllocation.enabled") == "true":
        return
    until = time.monotonic() + _GRANTED_S
    try:
        while context._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver is there
            if time.monotonic() > until:
                raise Unavailable(
                    f"{master} gives no executor within {_GRANTED_S} s: the workers are busy, away, or have less "
                    "memory than spark.executor.memory"
                )
            time.sleep(_POLL_S)
    except (Py4JError, AttributeError):  # a stopped context has no part in Java
        raise Unavailable(f"Spark at {master} ended the application: see the logs of its workers") from None


def _is_here(master: str) -> bool:
    """Return True if nothing of the cluster is on another machine."""
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return _LOCAL.fullmatch(master) is not None
    return all(_LOOPBACK.fullmatch(place.rpartition(":")[0]) for place in found[1].split(","))


def _has_metastore() -> bool:
    """Return True if the owner's Spark is configured for a Hive metastore."""
    folders = [os.environ.get("SPARK_CONF_DIR"), os.environ.get("SPARK_HOME", "") + "/conf"]
    return any(each and Path(each, "hive-site.xml").is_file() for each in folders)


def _end(application: _Application) -> None:
    """End an application and Java, and take the temporary folder away; in a forked process do nothing."""
    if os.getpid() != application.process:
        return
    with _lock:
        if application in _running:
            _running.remove(application)
            application.context.stop()
            _end_java()
            application.folder.cleanup()


def _end_java() -> None:
    """End the Java process, if there is a process, so that the next application starts a new process."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None or gateway.proc is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.terminate()  # Java would end with the pipe, but forked processes of ours may hold the pipe, too
    try:
        gateway.proc.wait(_ENDED_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
