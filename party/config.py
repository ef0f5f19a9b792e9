"""The configuration of a party and of a coordinator: frozen models, built once from YAML (DESIGN §9).

Each field says what it means, its unit, and what a bad value costs. Relative paths are relative to the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from party.budget import Budget, data_set
from party.data import Source
from party.errors import ConfigError
from party.identity import Credentials, Peer, load_credentials, load_peer
from party.job import Address, Confidence, Epsilon, Model, Name, parse_model
from party.yaml_text import parse_yaml, read_text

C = TypeVar("C", bound="NodeConfig")

LEDGER = "privacy.sqlite"

FilePath = Annotated[Path, BeforeValidator(lambda value: Path(str(value))), PlainSerializer(str)]


class Tls(Model):
    """Our own identity."""

    certificate: FilePath = Field(description="PEM; our certificate, made by `init`.")
    key: FilePath = Field(description="PEM; our private key. Never leaves this machine.", repr=False)


class PeerEntry(Model):
    """A peer: another party, or the coordinator."""

    certificate: FilePath = Field(
        description="PEM; the peer's own certificate. Others behind it, as its authority's, are not trusted."
    )
    address: Address | None = Field(
        default=None, description="host:port where we reach it; overrides the job's address."
    )


class Timeouts(Model):
    """How long to wait. Few on purpose; the defaults suit a local network and jobs of minutes."""

    connect_s: float = Field(
        default=6, gt=0, le=600, description="Seconds to reach a peer. Too short: slow starts fail."
    )
    round_s: float = Field(
        default=600,
        gt=0,
        description="Seconds to wait for a live peer's next message. Too short: large jobs fail.",
    )
    keepalive_s: float = Field(
        default=2,
        ge=1,
        le=60,
        description="Seconds between signs of life; a peer is lost after about three times that.",
    )


class TableFile(Model):
    """A table in a file."""

    path: FilePath = Field(description="The file; a CSV may end in .gz.")
    delimiter: str = Field(
        default=",",
        pattern=r"^[\t !#-~]$",
        description="csv: the separator, one ASCII character but no quote.",
    )


class Data(Model):
    """Where the table is: exactly one of these."""

    name: Name | None = Field(
        default=None,
        description="Name of the data set in the privacy ledger; default its path behind all links. Another name is "
        "another budget.",
    )
    csv: TableFile | None = Field(default=None, description="UTF-8 text with a header line.")
    parquet: TableFile | None = Field(default=None, description="An Apache Parquet file.")

    @model_validator(mode="after")
    def _exactly_one(self) -> Data:
        if (self.csv is None) == (self.parquet is None):
            raise ValueError("give exactly one of `csv` and `parquet`")
        return self


class Policy(Model):
    """What the owner of the data allows. What is not listed is refused."""

    coordinators: tuple[Name, ...] = Field(default=(), description="Who may start jobs.")
    parties: tuple[Name, ...] = Field(default=(), description="Who may take part in a job with us.")
    columns: dict[str, tuple[Literal["id", "qid", "sensitive", "class", "plain"], ...]] = Field(
        default_factory=dict, description="Per column the roles it may have. `plain` publishes raw values."
    )
    min_l: int = Field(
        default=1, ge=1, description="Smallest L we accept: attackers who know that many columns."
    )
    min_k: int | None = Field(
        default=None, ge=1, description="Smallest K we accept; unset accepts no LKC job."
    )
    max_c: Confidence | None = Field(
        default=None,
        description="Largest C we accept for a sensitive column; unset accepts no sensitive column.",
    )
    protected: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Per sensitive column the values that a job must protect, if it does not protect all. What is "
        "not listed a job may leave unprotected.",
    )
    match_ids: bool = Field(
        default=False,
        description="vertical: whether others may find out which of our ids they have, too, and be told the "
        "generalized record of each person that all parties have.",
    )
    require_insider: bool = Field(
        default=False, description="vertical: accept only jobs with `insider: true`."
    )
    share_class: bool = Field(
        default=False,
        description="vertical: whether we may give the class of every common record to the other parties.",
    )
    max_epsilon: Epsilon | None = Field(
        default=None, description="Largest epsilon of one DP job; unset accepts no DP job."
    )
    epsilon_budget: Epsilon | None = Field(
        default=None,
        description="Largest sum of epsilon over all DP jobs on the data set, ever; unset: `max_epsilon`. What is "
        "spent never comes back.",
    )
    max_lkc_releases: int | None = Field(
        default=None,
        ge=0,
        description="How many LKC releases of the data set there may be in all: they do not compose. Unset: no "
        "limit.",
    )
    disclosure: tuple[Literal["sealed", "leader"], ...] = Field(
        default=(), description="How much may be disclosed on the way (docs/security.md)."
    )


class NodeConfig(Model):
    """What a party and a coordinator have in common."""

    version: Literal["1"] = Field(description="Version of this format.")
    name: Name = Field(description="Our name, as in our certificate and in job files.")
    tls: Tls = Field(description="Our identity.")
    peers: dict[Name, PeerEntry] = Field(default_factory=dict, description="Everybody we know, by name.")
    timeouts: Timeouts = Field(default_factory=Timeouts, description="How long to wait.")

    @model_validator(mode="after")
    def _no_peer_like_us(self) -> NodeConfig:
        if self.name in self.peers:
            raise ValueError("`peers` must not hold our own name")
        return self


class PartyConfig(NodeConfig):
    """The configuration of a data holder."""

    listen: Address = Field(default="127.0.0.1:7400", description="host:port to listen on.")
    data: Data = Field(description="Our table.")
    policy: Policy = Field(default_factory=Policy, description="What we allow; nothing by default.")
    state_dir: FilePath = Field(
        default=Path("state"), description="Folder for releases delivered to us, and the privacy ledger."
    )

    @property
    def budget(self) -> Budget:
        """The privacy ledger of our data set."""
        return Budget(self.state_dir / LEDGER, self.data.name or data_set(self.source.path))

    @property
    def source(self) -> Source:
        """Where the table is, as the readers want it."""
        if self.data.parquet is not None:
            return Source("parquet", self.data.parquet.path)
        assert self.data.csv is not None
        return Source("csv", self.data.csv.path, self.data.csv.delimiter)


class CoordinatorConfig(NodeConfig):
    """The configuration of who starts jobs."""


def load_config(model: type[C], path: Path) -> C:
    """Read a configuration; paths in it become absolute. Raises ConfigError that names every wrong key."""
    config = parse_model(model, parse_yaml(read_text(path), str(path)), str(path), "config-invalid")
    return _anchored(config, path.resolve().parent)


def _anchored(config: C, base: Path) -> C:
    """Resolve every relative path against the folder of the file."""

    def place(value: object) -> object:
        if isinstance(value, Path):
            return base / value
        if isinstance(value, Model):
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
    """Load every peer; two names must not share a certificate."""
    peers = {name: load_peer(name, entry.certificate, entry.address) for name, entry in config.peers.items()}
    if len({peer.fingerprint for peer in peers.values()}) != len(peers):
        raise ConfigError("config-invalid", "two peers have the same certificate")
    return peers
