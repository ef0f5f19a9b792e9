"""The owner's page of a party, served from a thread of this process, and a client that sends what a test says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

from crypto.rng import SystemRng
from jobs.loading import open_task
from jobs.task import Task
from party.owner.approvals import Approvals
from party.owner.current import CurrentJob
from party.owner.in_force import InForce
from party.web.server import WebServer
from party.web.signing_in import SignIns
from tests.support import jobs
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, Network
from tests.support.samples import PARTIES, joint_job

ME = PARTIES[0]
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Answer:
    """Answer of the page. headers: the last of each name, in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    def hidden(self, path: str) -> dict[str, str]:
        """The hidden fields of the form that is sent to a path."""
        (form,) = re.findall(rf'<form[^>]+action="{re.escape(path)}".*?</form>', self.text, re.DOTALL)
        return dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form))

    def tokens(self) -> dict[str, str]:
        """The token of each form, by the path that the form is sent to."""
        found = re.findall(r'action="([^"]+)".*?name="csrf" value="([0-9a-f]+)"', self.text, re.DOTALL)
        return dict(found)


@dataclass
class Site:
    """Page of a party, with a browser's cookie."""

    net: Network
    listen: str
    current: CurrentJob | None = None
    cookie: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        return f"http://{self.listen}"

    @property
    def approvals(self) -> Approvals:
        return Approvals(self.net.config(ME).state_dir)

    @property
    def sign_ins(self) -> SignIns:
        return SignIns(self.net.config(ME).state_dir, SystemRng())

    def ask(
        self, method: str, path: str, form: Mapping[str, str] | bytes | None = None, **headers: str | None
    ) -> Answer:
        """Send a request; underscores of header names stand for hyphens, and None leaves a header out."""
        body = form if isinstance(form, bytes) else urlencode(form or {}).encode()
        sent: dict[str, str | None] = {"host": self.listen, "cookie": self.cookie or None}
        sent |= {"content_type": FORM, "content_length": str(len(body))} if method == "POST" else {}
        connection = HTTPConnection(*_place(self.listen), timeout=GUARD_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (sent | headers).items():
                if value is not None:
                    connection.putheader(name.replace("_", "-"), value)
            connection.endheaders(body if method == "POST" else None)
            got = connection.getresponse()
            told = {name.lower(): value for name, value in got.getheaders()}
            return Answer(got.status, told, got.read().decode())
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.ask("GET", path, **headers)

    def send(self, page: str, path: str, form: Mapping[str, str]) -> Answer:
        """Send a form of a page, with the hidden fields that stand there."""
        return self.ask("POST", path, {**self.get(page).hidden(path), **form})

    def token(self) -> str:
        return self.sign_ins.token(datetime.now(UTC))

    def sign_in(self) -> None:
        answer = self.ask("POST", "/sign-in", {"token": self.token()})
        assert answer.status == 303, answer.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def propose(self, coordinator: str = "coordinator", **job: Any) -> str:
        """Keep a proposal; return the path of its page."""
        task = task_of(**job)
        self.approvals.propose(task, coordinator, datetime.now(UTC))
        return f"/jobs/{task.digest.hex()}/{coordinator}"


def task_of(**job: Any) -> Task:
    return open_task(jobs.bundle_of(joint_job(**job)))


def _place(listen: str) -> tuple[str, int]:
    host, port = listen.rsplit(":", 1)
    return host, int(port)


def with_page(net: Network, party: str = ME) -> str:
    """Configure the page of a party; return its address."""
    listen = f"{HOST}:{free_ports(['page'])['page']}"
    net.change(party, lambda fields: fields.update(web={"listen": listen}))
    return listen


@contextmanager
def served_page(net: Network) -> Iterator[Site]:
    """Serve the page of a party without its daemon, signed in."""
    site = Site(net, with_page(net))
    net.change(ME, lambda fields: fields["policy"].pop("approval", None))
    started: Future[Callable[[], object]] = Future()

    async def serve() -> None:
        in_force = InForce(net.config(ME), net.config_path(ME))
        in_force.status.hold(in_force.settings)  # as a daemon does, before it shows a page
        server = WebServer(net.config(ME), site.listen, lambda: net.config(ME), lambda: site.current)
        server.start()
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        started.set_result(lambda: loop.call_soon_threadsafe(stop.set))
        await stop.wait()
        await server.stop()
        in_force.status.remove()

    with ThreadPoolExecutor(1) as thread:
        work = thread.submit(asyncio.run, serve())
        work.add_done_callback(
            lambda done: None if started.done() else started.set_exception(done.exception())
        )
        stop = started.result(GUARD_S)
        try:
            site.sign_in()
            yield site
        finally:
            stop()
            work.result(GUARD_S)
