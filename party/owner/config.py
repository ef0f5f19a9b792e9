"""Configuration of a party and of a coordinator: frozen models, built once from YAML (semantics §9.4).

Each field states its meaning, its unit, and the cost of a bad value. Relative paths are relative to the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from jobs.data.sources import Source
from jobs.errors import CATALOGUE, ConfigError, IdentityError, PartyError, Problem
from jobs.file.fields import ADDRESS, Address, Fields, FilePath, Name, check_address, parse_model
from jobs.file.job import Job
from jobs.file.yaml_text import parse_yaml, read_text
from jobs.owner.ledger import PrivacyLedger
from jobs.owner.policy import Policy
from party.owner.data import Data
from party.owner.identity import (
    Credentials,
    Peer,
    expires_soon,
    in_words,
    is_loopback,
    load_credentials,
    load_peer,
    read_peer,
    validity,
)
from party.owner.proxy import ProxyUrl
from party.owner.telling import Telling, TellingByCommand, TellingByMail, TellingNobody

C = TypeVar("C", bound="NodeConfig")

LEDGER = "privacy.sqlite"

RELAYED = "relay"
"""Address of a peer that is reached through the relay."""


class Tls(Fields):
    """Our own identity."""

    certificate: FilePath = Field(description="Path of our certificate (PEM), made by `init`.")
    key: FilePath = Field(
        description="Path of our private key (PEM). The key never leaves this machine.", repr=False
    )


def _peer_address(value: object) -> str:
    return RELAYED if value == RELAYED else check_address(value)


PeerAddress = Annotated[str, Field(pattern=f"{ADDRESS}|^{RELAYED}$"), BeforeValidator(_peer_address)]


class PeerEntry(Fields):
    """A peer: another party, or the coordinator."""

    certificate: FilePath = Field(
        description="Path of the peer's own certificate (PEM). Other certificates in the file, as its "
        "authority's, are not trusted."
    )
    address: PeerAddress | None = Field(
        default=None,
        description="host:port of the peer, or `relay` for a peer that is reached through the relay. Unset: the "
        "address of the job, if `addresses_from_jobs` says so.",
    )


class RelayEntry(Fields):
    """A relay (`coordinator relay`): a party keeps connections to the relay, and needs no port of its own that others
    can reach.
    """

    name: Name = Field(default="relay", description="Name of the relay, as in its certificate.")
    address: Address = Field(description="host:port of the relay.")
    certificate: FilePath = Field(description="Path of the relay's own certificate (PEM).")


class Timeouts(Fields):
    """Times to wait. Few on purpose; the defaults suit a local network and jobs of minutes."""

    connect_s: float = Field(
        default=6, gt=0, le=600, description="Seconds to reach a peer. Too short: slow starts fail."
    )
    round_s: float = Field(
        default=600,
        gt=0,
        description="Seconds to wait for a live peer's next message. Too short: large jobs fail.",
    )
    hello_s: float = Field(
        default=10,
        gt=0,
        le=600,
        description="Seconds for a connection or a stream to name its party. Too short: slow networks fail.",
    )
    submit_s: float = Field(
        default=60, gt=0, description="Seconds to receive a job's bundle. Too short: large bundles fail."
    )
    coordinator_s: float = Field(
        default=600,
        gt=0,
        description="Seconds to wait for the coordinator to start the job or deliver, and for "
        "other parties to check the delivery. Too short: jobs fail where another party, or "
        "the coordinator, needs long.",
    )
    job_s: float = Field(
        default=14400,
        gt=0,
        description="Seconds that a whole job may take. Too long: a slow party keeps others waiting.",
    )
    stop_s: float = Field(
        default=60,
        ge=0,
        description="Seconds that a daemon waits for the running job when it is told to stop (SIGTERM). Too short: "
        "restarts end jobs.",
    )
    keepalive_s: float = Field(
        default=2,
        ge=1,
        le=60,
        description="Seconds between signs of life; a peer is lost after about three times that.",
    )


class Limits(Fields):
    """Limits on what others may send. A job that needs more ends, and its message names the key to raise."""

    message_mb: int = Field(
        default=64,
        ge=1,
        le=2047,
        description="MiB of the largest message of a peer. Too small: jobs with millions of rows fail. "
        "Too large: a peer can fill our memory.",
    )
    delivery_mb: int = Field(
        default=64,
        ge=1,
        le=2047,
        description="MiB of what a coordinator sends of a release, besides a table whose size follows "
        "from the result; at a coordinator, MiB that it takes of one party. Too small: jobs"
        " with millions of rows fail at their end.",
    )

    @property
    def message_bytes(self) -> int:
        return self.message_mb << 20

    @property
    def delivery_bytes(self) -> int:
        return self.delivery_mb << 20


def on_this_machine(address: str) -> str:
    """Return an address that other machines cannot reach. Raises ValueError for any other address."""
    if not is_loopback(address):
        port = address.rsplit(":", 1)[1]
        raise ValueError(
            f"{address} is not on this machine alone: write 127.0.0.1:{port}, and from another machine come "
            f"through `ssh -L {port}:127.0.0.1:{port} HOST`"
        )
    host, port = address.rsplit(":", 1)
    if host.lower() == "localhost":
        # A browser may take the name for [::1], where somebody else may listen and would get the link.
        raise ValueError(f"localhost has two addresses: write 127.0.0.1:{port} or [::1]:{port}")
    if int(port) == 0:
        raise ValueError("the port is 0: name the port, such as 127.0.0.1:7480")
    return address


class Web(Fields):
    """The owner's page."""

    listen: Annotated[Address, AfterValidator(on_this_machine)] = Field(
        default="127.0.0.1:7480",
        description="host:port of the page, on this machine: 127.0.0.1 or [::1].",
    )


class NodeConfig(Fields):
    """Configuration that a party and a coordinator have in common."""

    PROGRAM: ClassVar[str]
    """Command line with this kind of configuration."""

    version: Literal["1"] = Field(description="Version of this format.")
    name: Name = Field(description="Our own name, as in our certificate and in job files.")
    tls: Tls = Field(description="Our identity.")
    peers: dict[Name, PeerEntry] = Field(default_factory=dict, description="The peers by name.")
    timeouts: Timeouts = Field(default_factory=Timeouts, description="Times to wait.")
    limits: Limits = Field(default_factory=Limits, description="Limits on what others may send.")
    proxy: ProxyUrl | None = Field(
        default=None,
        description="HTTP proxy of all connections to peers and to the relay: `http://proxy.example:3128`, or with "
        "credentials `http://USER:PASSWORD@proxy.example:3128`. The proxy has to allow CONNECT. Unset: no proxy, "
        "whatever the environment says.",
        repr=False,
    )
    relay: RelayEntry | None = Field(
        default=None,
        description="Relay of the peers with `address: relay`. A party waits for callers there, too.",
    )

    @property
    def dials_what_jobs_say(self) -> bool:
        """True if a job's address counts for a peer without an address here."""
        return True

    @model_validator(mode="after")
    def _no_peer_like_us(self) -> NodeConfig:
        if self.name in self.peers:
            raise ValueError("`peers` must not hold our own name")
        return self

    @model_validator(mode="after")
    def _relay_is_there(self) -> NodeConfig:
        relayed = [name for name, entry in self.peers.items() if entry.address == RELAYED]
        if relayed and self.relay is None:
            raise ValueError(
                f"`peers.{relayed[0]}.address` is {RELAYED}, and no relay is named: add `relay: "
                "{address: HOST:PORT, certificate: FILE}`"
            )
        return self


_MAIL_ADDRESS = r"^[^@\s<>\"]+@[^@\s<>\"]+$"


class Mail(Fields):
    """An e-mail to the owner, through a relay that asks for no password."""

    to: str = Field(pattern=_MAIL_ADDRESS, description="Address of the owner.")
    sender: str = Field(
        default="jointcut@localhost", pattern=_MAIL_ADDRESS, description="Address of the sender."
    )
    relay: Address = Field(
        default="127.0.0.1:25", description="host:port of the relay, on this machine or in the own network."
    )


class PartyConfig(NodeConfig):
    """The configuration of a data holder."""

    PROGRAM: ClassVar[str] = "party"

    listen: Address = Field(default="127.0.0.1:7400", description="host:port to listen on.")
    data: Data = Field(description="Our table.")
    policy: Policy = Field(default_factory=Policy, description="The jobs that we allow; none by default.")
    state_dir: FilePath = Field(
        default=Path("state"),
        description="Folder for releases delivered to us, the privacy ledger, approvals, the audit, and sign-ins to "
        "the owner's page.",
    )

    on_proposal: Annotated[tuple[str, ...], Field(min_length=1)] | Mail | None = Field(
        default=None,
        description="How the owner hears that a job waits for approval. A command: a list of program and arguments, "
        "without a shell; the command gets the job hash on its standard input. Or an e-mail, as `{to: "
        "officer@example.org}`. Unset: `party jobs` lists the jobs that wait.",
    )
    addresses_from_jobs: bool = Field(
        default=False,
        description="`true` calls a peer without an address in `peers` at the address in the job. Whoever"
        " may start jobs then decides where this daemon connects to.",
    )

    web: Web | None = Field(
        default=None,
        description="The owner's page in a browser on this machine; unset: no page. Needs `jointcut[web]`. The "
        "command `party web` prints a link for signing in.",
    )

    monitor: Annotated[Address, AfterValidator(on_this_machine)] | None = Field(
        default=None,
        description="host:port on this machine for probes and for Prometheus: /livez, /readyz, /metrics; unset: no "
        "monitor. Also answers `grpc.health.v1` to peers. Needs `jointcut[monitor]`.",
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="Least level of the daemon's log. A change is in force with the next job, or at once after "
        "SIGHUP.",
    )

    @property
    def dials_what_jobs_say(self) -> bool:
        return self.addresses_from_jobs

    @property
    def ledger(self) -> PrivacyLedger:
        """Privacy ledger of our data set."""
        place = self.data.source.held_at
        return PrivacyLedger(self.state_dir / LEDGER, self.data.data_set, place=place)

    @property
    def telling(self) -> Telling:
        """Way of telling the owner that a job waits."""
        match self.on_proposal:
            case None:
                return TellingNobody()
            case Mail(to=to, sender=sender, relay=relay):
                host, _, port = relay.rpartition(":")
                return TellingByMail(self.name, sender, to, (host.strip("[]"), int(port)))
            case words:
                return TellingByCommand(words)

    @property
    def source(self) -> Source:
        """Our table, in the form for the two passes."""
        return self.data.source


class CoordinatorConfig(NodeConfig):
    """The configuration of who starts jobs."""

    PROGRAM: ClassVar[str] = "coordinator"


def load_config(model: type[C], path: Path) -> C:
    """Read a configuration; its paths become absolute. Raises ConfigError with every wrong key."""
    try:
        text = read_text(path)
    except ConfigError as error:
        remedy = (
            f"run the command in the folder of {path.name}, or name the file with --config; `init` makes one"
        )
        raise ConfigError("file-missing", error.problem.message, remedy=remedy) from error
    return _anchored(parse_config(model, text, path), path.resolve().parent)


def parse_config(model: type[C], text: str, path: Path) -> C:
    """Read the text of a configuration. Raises ConfigError with every wrong key."""
    return parse_model(model, parse_yaml(text, str(path)), str(path), "config-invalid", _advice)


_DROPPED: Mapping[tuple[str, ...], str] = {
    (
        "policy",
        "diversity_by_block",
    ): "leave the key out; with `link` in a joint job `diversity` above 2 counts as 2",
}
"""Advice on keys of version 0.1, by path."""


def _advice(keys: Sequence[str], fields: Any) -> str:
    return _DROPPED.get(tuple(keys), "")


def _anchored(config: C, base: Path) -> C:
    """Resolve every relative path against the folder of the file."""

    def place(value: object) -> object:
        if isinstance(value, Path):
            return base / value
        if isinstance(value, Fields):
            return value.model_copy(
                update={key: place(getattr(value, key)) for key in type(value).model_fields}
            )
        if isinstance(value, dict):
            return {key: place(item) for key, item in value.items()}
        return value

    anchored = place(config)
    assert isinstance(anchored, type(config))
    return anchored


def credentials_of(config: NodeConfig) -> Credentials:
    """Load our own identity."""
    return load_credentials(config.name, config.tls.certificate, config.tls.key)


def peers_of(config: NodeConfig) -> dict[str, Peer]:
    """Return the usable peers. Raises ConfigError if two names share a certificate."""
    return {name: peer for name, peer in installed_peers(config).items() if isinstance(peer, Peer)}


def installed_peers(config: NodeConfig) -> dict[str, Peer | Problem]:
    """Return every peer by name, or the reason against working with the peer now. An unusable peer stops only
    itself.

    Raises ConfigError if two names share a certificate.
    """
    trusted_peers(config)
    return {name: _usable_or_why(config, name) for name in config.peers}


def _relay_or_why(config: NodeConfig) -> dict[str, Peer | Problem]:
    """Return the relay by name, or the reason against its use, if a relay is configured."""
    if config.relay is None:
        return {}
    try:
        return {config.relay.name: relay_of(config)}
    except PartyError as error:
        remedy = error.problem.remedy or CATALOGUE[error.problem.error_id].remedy
        return {config.relay.name: replace(error.problem, remedy=remedy)}


def _usable_or_why(config: NodeConfig, name: str) -> Peer | Problem:
    try:
        return usable_peer(config, name)
    except PartyError as error:
        return error.problem


def usable_peer(config: NodeConfig, name: str) -> Peer:
    """Return a usable peer. Raises PartyError, with peer and remedy, for an unusable peer."""
    entry, at = config.peers.get(name), f"at {config.name}: "
    if entry is None:
        raise IdentityError(
            "identity-unknown",
            f"{config.name} has no certificate of {name}",
            party=config.name,
            remedy=f"{at}{config.PROGRAM} peers add {name} CERTIFICATE",
        )
    try:
        return load_peer(name, entry.certificate, entry.address)
    except PartyError as error:
        remedy = at + (error.problem.remedy or CATALOGUE[error.problem.error_id].remedy)
        error.problem = replace(error.problem, party=config.name, remedy=remedy)
        raise


def trusted_peers(config: NodeConfig) -> dict[str, Peer]:
    """Return the peers with readable certificates, valid now or not: TLS checks validity.

    Raises ConfigError if two names share a certificate.
    """
    peers = {}
    for name, entry in config.peers.items():
        with suppress(PartyError):  # `installed_peers` reports the error
            peers[name] = read_peer(name, entry.certificate, entry.address)
    if len({peer.fingerprint for peer in peers.values()}) != len(peers):
        raise ConfigError(
            "config-invalid",
            "two peers have the same certificate",
            remedy="name each peer's own certificate under `peers`",
        )
    return peers


def relay_of(config: NodeConfig) -> Peer:
    """Return the relay. Raises PartyError if its certificate is not usable now."""
    entry = config.relay
    assert entry is not None
    return load_peer(entry.name, entry.certificate, entry.address)


def certificate_warnings(config: NodeConfig) -> dict[str, str]:
    """Return warnings for the owner, by name, on certificates that cannot be used or expire soon.

    Raises the errors of loading our own identity.
    """
    own = {config.name: credentials_of(config).certificate}
    found = installed_peers(config) | _relay_or_why(config)
    usable = own | {name: peer.certificate for name, peer in found.items() if isinstance(peer, Peer)}
    unusable = {name: _unusable(name, why) for name, why in found.items() if isinstance(why, Problem)}
    soon = {
        name: f"expires at {in_words(validity(pem)[1])}" for name, pem in usable.items() if expires_soon(pem)
    }
    if config.name in soon:
        soon[config.name] += f"; {config.PROGRAM} renew makes a new one, which every peer has to install"
    return unusable | soon


def _unusable(name: str, why: Problem) -> str:
    """Return the end of a sentence about `the certificate of NAME`, with the private cause if present."""
    cause = why.private or why.message.removeprefix(f"the certificate of {name} ")
    return f"cannot be used: {cause}. What to do: {why.remedy}"


def address_of(config: NodeConfig, job: Job, party: str) -> str:
    """Return the address of a party of a job, from our own configuration or, if allowed, from the job.

    Raises ConfigError without an address.
    """
    entry = config.peers.get(party)
    address = entry.address if entry else None
    if address is None and config.dials_what_jobs_say:
        address = (job.parties or {})[party].address
    if address is None:
        raise ConfigError(
            "address-missing",
            f"the configuration of {config.name} does not say where {party} is reached",
            party=config.name,
            remedy=f"at {config.name}: give {party} an `address` under `peers`",
        )
    return address
