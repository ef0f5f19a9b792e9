"""The owner's page of one party, served from this process, and whoever calls it over HTTP."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from crypto.rng import SystemRng
from jobs.task import Task
from party.owner.approvals import Proposal, binding_of
from party.owner.config import PartyConfig
from party.queue import Place
from party.web.app import application
from party.web.house import House
from party.web.server import PageServer
from party.web.sessions import Sessions
from party.web.tokens import Tokens
from tests.support.approving import approvals_of
from tests.support.loopback import HOST, free_ports
from tests.support.network import Network

PATIENCE_S = 20.0


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Said:
    """An answer. head: by names in small letters; a name that comes twice has both, with a comma."""

    status: int
    head: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def value(self, name: str) -> str:
        """What a field of a form on this page has."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found, f"no field {name}"
        return found[1]


@dataclass
class Caller:
    """A browser as a test wants it."""

    port: int
    cookie: str = ""

    def ask(
        self, method: str, path: str, body: bytes | None = None, head: Mapping[str, str | None] | None = None
    ) -> Said:
        """Ask for a path; ``head`` changes what a browser says, None leaves it out."""
        said: dict[str, str | None] = {"Host": f"{HOST}:{self.port}"}
        if self.cookie:
            said["Cookie"] = self.cookie
        if method == "POST":
            said |= {
                "Origin": f"http://{HOST}:{self.port}",
                "Content-Type": "application/x-www-form-urlencoded",
                "Sec-Fetch-Site": "same-origin",
            }
        said |= head or {}
        connection = http.client.HTTPConnection(HOST, self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, {k: v for k, v in said.items() if v is not None})
            answer = connection.getresponse()
            got: dict[str, str] = {}
            for name, value in answer.getheaders():
                got[name.lower()] = f"{got[name.lower()]}, {value}" if name.lower() in got else value
            return Said(answer.status, got, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **head: str | None) -> Said:
        return self.ask("GET", path, head=head)

    def post(
        self, path: str, fields: Mapping[str, str], head: Mapping[str, str | None] | None = None
    ) -> Said:
        return self.ask("POST", path, urlencode(fields).encode(), head)

    def sign_in(self, token: str) -> Said:
        """Send the form; what the answer gives the browser to keep is kept."""
        said = self.post("/sign-in", {"token": token})
        if "set-cookie" in said.head:
            self.cookie = said.head["set-cookie"].partition(";")[0]
        return said


@dataclass
class Site:
    """A page, with what a test changes below it."""

    net: Network
    party: str
    port: int
    clock: Clock = field(default_factory=Clock)
    place: Place = field(default_factory=lambda: Place("hospital"))
    why_not: tuple[str, ...] = ()

    @property
    def config(self) -> PartyConfig:
        return self.net.config(self.party)

    @property
    def state(self) -> Path:
        return self.config.state_dir

    def token(self, who: str = "anna") -> str:
        return Tokens(self.state).issue(who, SystemRng())

    def caller(self) -> Caller:
        return Caller(self.port)

    def signed_in(self, who: str = "anna") -> Caller:
        caller = self.caller()
        assert caller.sign_in(self.token(who)).status == 303
        return caller

    def proposed(self, task: Task) -> Proposal:
        """As if the coordinator had proposed it."""
        binding = binding_of(self.config, task.digest.hex(), task.job.roster, "coordinator")
        approvals = approvals_of(self.net, self.party)
        approvals.propose(task, binding)
        return approvals.found(task.digest.hex())


@contextmanager
def page_of(net: Network, party: str) -> Iterator[Site]:
    """Serve the page of a party's state folder while the block runs; no daemon stands behind it."""
    site = Site(net, party, free_ports([party])[party])
    house = House(lambda: site.config, lambda: site.why_not, site.place)
    app = application(house, HOST, site.port, Sessions(clock=site.clock))
    server = PageServer(app, socket.create_server((HOST, site.port)))
    server.start()
    try:
        yield site
    finally:
        server.stop()
