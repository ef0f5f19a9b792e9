"""Monitor of a daemon: HTTP on this machine alone, for probes and for Prometheus. Nothing depends on a table.

``/livez``: 200 if the event loop answers. ``/readyz``: 200 if a job could begin, else 503 with the reasons.
``/metrics``: counts in Prometheus's text format.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import socketserver
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jobs.errors import ConfigError, PartyError
from jobs.version import __version__
from party.owner.approvals import Approvals
from party.owner.asked import state_of
from party.owner.config import PartyConfig, credentials_of, installed_peers
from party.owner.counts import TOLD, Watched
from party.owner.identity import Peer, validity

log = logging.getLogger("party")

_LOOP_S = 2.0
"""Longest time for the event loop to answer."""
_CLIENT_S = 5.0
_CLIENTS, _MOST = 8, 32
"""Longest time of a client of the monitor; clients at a time, and with those that wait."""
_HOSTS = ("", "127.0.0.1", "[::1]", "localhost")
"""Hosts in requests. Another host is a web page that had its name changed to our address."""


class Monitor:
    """HTTP server of a monitor, in threads of its own: it answers while the event loop hangs."""

    def __init__(self, watched: Watched, listen: str) -> None:
        """Listen, without an answer yet. Raises ConfigError if the address is not available."""
        self._watched = watched
        self._logged = ""
        self._loop = asyncio.get_running_loop()
        registry = CollectorRegistry()
        registry.register(_Metrics(watched))
        self._metrics = make_wsgi_app(registry)
        host, port = listen.rsplit(":", 1)
        try:
            self._server = _Server((host.strip("[]"), int(port)))
        except OSError as error:
            raise ConfigError(
                "config-invalid",
                f"cannot listen on {listen} (`monitor`): {error.strerror}",
                remedy="choose a different port, or stop the process that uses the port",
            ) from error
        self._server.set_app(self._answer)
        self._thread = threading.Thread(target=self._server.serve_forever, name="monitor", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if re.sub(":[0-9]+$", "", environ.get("HTTP_HOST", "")) not in _HOSTS:
            return _said(start, "403 Forbidden", ["ask this machine by its loopback address"])
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _said(start, "405 Method Not Allowed", ["only GET is answered"])
        match environ["PATH_INFO"]:
            case "/livez":
                return _probe(start, [] if self._is_alive() else ["the event loop does not answer"])
            case "/readyz":
                return _probe(start, self._obstacles())
            case "/metrics":
                found: Iterable[bytes] = self._metrics(environ, start)
                return found
        return _said(start, "404 Not Found", ["ask for /livez, /readyz or /metrics"])

    def _is_alive(self) -> bool:
        answered = threading.Event()
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:  # the loop is closed
            return False
        return answered.wait(_LOOP_S)

    def _obstacles(self) -> list[str]:
        """Return the reasons that no job could begin. A running job is none: the next job waits."""
        found = [] if self._is_alive() else ["the event loop does not answer"]
        if self._watched.jobs.closed:
            found.append("the daemon is about to stop")
        reason = ""
        try:
            self._watched.in_force.refresh()
            _n_proposals(self._watched)
        except PartyError as error:
            found.append(f"{error.problem.error_id}: see the log")
            reason = error.problem.text(to_owner=True)
        self._log(reason)
        return found

    def _log(self, reason: str) -> None:
        """Log why no job could begin, once until the reason changes: probes ask every few seconds."""
        before, self._logged = self._logged, reason
        if reason and reason != before:
            log.warning("not ready for a job: %s", reason)


def _probe(start: StartResponse, obstacles: Sequence[str]) -> Iterable[bytes]:
    return _said(start, "503 Service Unavailable" if obstacles else "200 OK", obstacles or ["ok"])


def _said(start: StartResponse, status: str, lines: Sequence[str]) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")])
    return ["".join(f"{line}\n" for line in lines).encode()]


class _Metrics(Collector):
    """Metrics of a daemon, made at each question."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._since = time.time()

    def collect(self) -> Iterator[Metric]:
        jobs, counts = self._watched.jobs, self._watched.counts
        config = self._watched.in_force.latest().config
        build = GaugeMetricFamily("jointcut_build_info", "Version of the daemon.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield GaugeMetricFamily("jointcut_start_time_seconds", "Start of the daemon.", self._since)
        yield GaugeMetricFamily("jointcut_job_running", "1 while a job has the place.", jobs.taken)
        yield GaugeMetricFamily("jointcut_jobs_queued", "Jobs that wait for the place.", jobs.n_waiting)
        yield GaugeMetricFamily("jointcut_stopping", "1 once no further job begins.", jobs.closed)
        yield CounterMetricFamily("jointcut_jobs_begun", "Jobs that got the place.", jobs.n_begun)
        yield CounterMetricFamily("jointcut_jobs_ended", "Jobs that left the place.", jobs.n_ended)
        yield CounterMetricFamily(
            "jointcut_strangers",
            "Connections without a call or with an unknown certificate.",
            counts.strangers,
        )
        problems = CounterMetricFamily(
            "jointcut_problems", "Refusals and failures that do not depend on a table.", labels=["error"]
        )
        for error_id in sorted(TOLD):
            problems.add_metric([error_id], counts.problems[error_id])
        yield problems
        with suppress(PartyError):  # `/readyz` says so
            waiting = _n_proposals(self._watched)
            yield GaugeMetricFamily("jointcut_proposals_waiting", "Jobs that wait for their owner.", waiting)
        yield _expiries(config)


def _n_proposals(watched: Watched) -> int:
    """Return the number of jobs that wait for their owner. Raises PartyError if the approvals cannot be read."""
    config, now = watched.in_force.latest().config, datetime.now(UTC)
    proposals = Approvals(config.state_dir).waiting(now)
    return sum(state_of(config, each, now)[0] == "waiting" for each in proposals)


def _expiries(config: PartyConfig) -> Metric:
    """Return the end of the validity of each certificate that can be read."""
    ends = GaugeMetricFamily(
        "jointcut_certificate_expiry_timestamp_seconds", "End of validity of a certificate.", labels=["peer"]
    )
    own = {config.name: credentials_of(config).certificate}
    peers = {
        name: peer.certificate for name, peer in installed_peers(config).items() if isinstance(peer, Peer)
    }
    for name, certificate in (own | peers).items():
        ends.add_metric([name], validity(certificate)[1].timestamp())
    return ends


class _Server(WSGIServer):
    """Server with a bounded number of threads and clients. A client beyond is hung up on."""

    allow_reuse_address = True
    request_queue_size = (
        _MOST  # with fewer the system drops calls of a burst, and they come again after seconds
    )

    def __init__(self, address: tuple[str, int]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._threads = ThreadPoolExecutor(_CLIENTS, "monitor")
        self._free = threading.BoundedSemaphore(_MOST)
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without looking up a name for the address."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            self._threads.submit(self._process, request, client_address)
        else:
            self.shutdown_request(request)

    def _process(self, request: Any, client_address: Any) -> None:
        hanging_up = threading.Timer(_CLIENT_S, _hang_up, [request])  # a client may send a byte now and then
        hanging_up.start()
        try:
            self.finish_request(request, client_address)
        except OSError as error:  # the client went away, or took too long
            log.debug("the monitor lost a client: %s", error.strerror)
        finally:
            hanging_up.cancel()
            self.shutdown_request(request)
            self._free.release()

    def server_close(self) -> None:
        super().server_close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _hang_up(request: socket.socket) -> None:
    with suppress(OSError):  # the client has gone
        request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    """Handler of a request, which prints no line."""

    def log_message(self, *_: Any) -> None:
        """Say nothing: probes come every few seconds."""
