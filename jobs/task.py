"""The value that everything takes, and the interfaces behind it: what is asked, opened once.

A :class:`Task` is a bundle with its model, its partition and its mode. Whoever runs, reads, checks or reports a job
is handed one and takes from it what is needed; nobody asks again which kind of job it is. A new model is a folder
beside the others, and an entry of :data:`jobs.loading.MODELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from anonymize.joint.disclosure import Allowed
from anonymize.table import QidColumn, Schema, SensitiveColumn
from jobs.file.bundle import Bundle
from jobs.file.clusters import clusters_of
from jobs.file.job import Job
from jobs.file.schema import Domains, Taxonomies, holders_of, qid_of, schema_of, taxonomies_of

if TYPE_CHECKING:
    from anonymize.clusters import Clusters
    from anonymize.joint.columns import Columns
    from anonymize.joint.roster import Roster
    from anonymize.tds import Observer
    from crypto.mixing import OpeningKey
    from crypto.rng import Rng
    from crypto.rounds import Rounds
    from jobs.data.coders import Coder
    from jobs.data.sources import Source
    from jobs.data.tables import Table
    from jobs.options import Noted, Options
    from jobs.owner.ledger import Entry, PrivacyLedger
    from jobs.owner.policy import Policy
    from jobs.owner.rules import Rule
    from jobs.stopwatch import Stopwatch


@dataclass(frozen=True)
class Task:
    """A bundle opened once."""

    bundle: Bundle
    model: Model
    partition: Partition
    mode: Mode

    @property
    def job(self) -> Job:
        return self.bundle.job

    @property
    def digest(self) -> bytes:
        """The job hash, 32 bytes."""
        return self.bundle.digest

    @cached_property
    def taxonomies(self) -> Taxonomies:
        """The value hierarchy of every column that is specialized, or has one. Raises SchemaError."""
        return taxonomies_of(self.job, self.bundle.files)

    @cached_property
    def qid(self) -> tuple[QidColumn, ...]:
        """The columns that are specialized, in job order. Raises SchemaError."""
        return qid_of(self.job, self.taxonomies)

    @cached_property
    def clusters(self) -> Clusters | None:
        """By what records are told apart where the goal is clusters. Raises SchemaError."""
        asked = self.job.clusters
        return None if asked is None else clusters_of(asked.opened, self.qid)

    @cached_property
    def schema(self) -> Schema:
        """The public schema of a job whose domains are all listed. Raises SchemaError."""
        return self.schema_with({})

    def schema_with(self, found: Domains) -> Schema:
        """The public schema, completed by the domains that a single holder's job leaves to its data.

        Raises SchemaError if a taxonomy or grid is malformed, DataError if a protected value is not in the domain
        that the data gave.
        """
        sensitive = self.model.sensitive(self, found)
        return schema_of(self.job, self.taxonomies, sensitive, found)

    @cached_property
    def result_schema(self) -> Schema:
        """The schema of a joint run's T_g."""
        return self.partition.result_schema(self)

    @cached_property
    def holders(self) -> Columns:
        """Return the holders of the columns of a vertical job."""
        return holders_of(self.job)

    @cached_property
    def reveals(self) -> tuple[Allowed, ...]:
        """Return the reveals of a joint run: those that its mode lists, and those that its model adds for
        this job.
        """
        return (*self.mode.reveals, *self.model.reveals(self))

    @property
    def delivered(self) -> tuple[str, ...]:
        """The files that parties receive in the end: the release, its report, and their digests."""
        return self.mode.delivered(self)

    @property
    def paired(self) -> bool:
        """Return True if it matters to the other parties who leader and deputy both are."""
        return self.mode.paired or self.mode.mixed(self)

    def roster(self, me: str) -> Roster:
        """Return the parties of a joint job, as party ``me`` sees them."""
        from anonymize.joint.roster import Roster

        return Roster(me, self.job.roster, self.job.leader_name, self.job.deputy_name)

    def parts_of(self, party: str) -> frozenset[str]:
        """Return the parts that the coordinator fetches from a party: `result` from the leader, and what the
        mode lists.
        """
        result = {"result"} if party == self.job.leader_name else set()
        return self.mode.parts(self, party) | result

    def load(self, source: Source, me: str) -> Table:
        """Pass 1 of party ``me``. Raises DataError."""
        return self.partition.load(self, source, me)

    def held_by(self, party: str | None) -> tuple[str, ...]:
        """The columns that a party's table must have, in job order; None: those of all parties."""
        return self.partition.held_by(self.job, party)


@dataclass(frozen=True)
class Besides:
    """Inputs of a party to a joint run besides its table.

    source:     what pass 1 read, for a second pass.
    recipient:  the coordinator's public key for this run, 32 bytes, where it alone receives the release.
    """

    source: Source | None = field(default=None, repr=False)
    recipient: bytes | None = None


NOTHING_BESIDES = Besides()


class Result(Protocol):
    """Result of a run, at a party or as the coordinator reads it."""

    @property
    def encoded(self) -> bytes:
        """The canonical bytes that parties compare and the coordinator collects."""
        ...

    @property
    def reveals(self) -> Sequence[Mapping[str, Any]]:
        """Return the reveals that every party saw happen; public."""
        ...

    @property
    def told(self) -> Mapping[str, Any]:
        """Return what a party tells the coordinator besides: the reveals, and what is not in the bytes;
        public.
        """
        ...

    @property
    def own(self) -> Mapping[str, Any]:
        """The same with what only this party's reveal ledger has; for its owner."""
        ...

    @property
    def repeated(self) -> bool:
        """Return True for the result of an earlier run, given again."""
        ...

    def completed(self, told: Sequence[Mapping[str, Any]]) -> Result:
        """As the coordinator read it, with what all parties :attr:`told`. Raises PartyError if they differ."""
        ...


@dataclass(frozen=True)
class Collected:
    """Outcome of a joint run at the coordinator.

    parts:    by name and party what the parties sent besides the result (:meth:`Task.parts_of`).
    parties:  what each of them says the run cost it.
    signatures: what all of them signed, as reports say it (:mod:`jobs.release.signatures`); None where nobody signs.
    key:      opens what was sealed to the coordinator in this run, where it alone receives the release.
    """

    result: Any
    parts: Mapping[str, Mapping[str, bytes]] = field(repr=False)
    parties: Mapping[str, Any]
    signatures: Mapping[str, Any] | None = field(default=None, repr=False)
    key: OpeningKey | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Rendered:
    """A release as far as it follows from its job and its result.

    tables:  the contents of its tables, by file name.
    report:  its report without the keys of the maker (:data:`jobs.release.report.BY_MAKER`) and without `files`.
    beside:  tables that the maker keeps for itself: they are listed in `SHA256SUMS`, and parties do not receive them.
    """

    tables: Mapping[str, bytes] = field(repr=False)
    report: Mapping[str, Any] = field(repr=False)
    beside: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Checked:
    """Findings of a verification, for people and as fields.

    result:  of a joint run, SHA-256, hexadecimal, of the result that has these files, as its parties sign it; None
             where that does not follow from the files.
    """

    text: str
    fields: dict[str, Any]
    result: str | None = None

    def also(self, lines: Sequence[str], fields: Mapping[str, Any]) -> Checked:
        """With more words and fields, in the end."""
        return replace(self, text="\n".join([self.text, *lines]), fields={**self.fields, **fields})


class Coders(Protocol):
    """Rules by which columns are read."""

    def __call__(self, task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
        """Return the rule of a column. ``found``: the domain that pass 1 took from the data, once it is known."""
        ...


@dataclass(frozen=True)
class Reading:
    """A model's way to have a table read, and what is noticed of its rows.

    load:     pass 1 of a holder of whole records. Raises DataError.
    coder:    the rules of columns.
    checked:  a table without a usable row, or with an id twice, is refused. Where it is not, the refusal would tell
              others of rows.
    outside:  the rows with a value outside a domain are counted, for the owner alone; elsewhere such a value is
              refused.
    per_person: whether records with the same id are one person's; a table has one record of each id otherwise.
    """

    load: Callable[[Source, Task], Table]
    coder: Coders
    checked: bool = True
    outside: bool = False
    per_person: Callable[[Job], bool] = lambda job: False


@dataclass(frozen=True)
class Described:
    """The part of a job's description that its model gives.

    requirement:  in a line.
    settings:     under the model's key; empty if the requirement says them all.
    columns:      by name, besides what the job file says of the column.
    notes:        a sentence for each setting that has less effect than its author may think.
    """

    requirement: str
    settings: Mapping[str, Any]
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Shown:
    """The part of a report that the console shows.

    size:     how large the release is, in words, with its specializations; ``fields``: the same as a field.
    lines:    what is to be known of the release.
    verified: a sentence for each requirement that was counted again in the release.
    """

    size: str
    fields: Mapping[str, Any]
    lines: Sequence[str]
    verified: Sequence[str] = ()


@dataclass(frozen=True)
class Spent:
    """Spent part of a data set and the part that its owner's policy leaves, for the owner: in words, and as
    fields.
    """

    words: str
    fields: Mapping[str, Any]


class Account(Protocol):
    """A run's place in the ledger of one data set; every model has one."""

    def check(self) -> None:
        """Before a table is read: raise BudgetError or PolicyError if the run would have to be refused."""
        ...

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """The table is read: raise as :meth:`check` if the run would have to be refused now."""
        ...

    def conducted(
        self,
        task: Task,
        peers: Sequence[str],
        protocol: Callable[[Observer], Rounds[Result]],
        shown: Observer,
    ) -> Rounds[Result]:
        """Run the protocol under this account: charge before, keep after, give again what is kept."""
        ...

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        """The files of the release are in place. ``release``: their digest; ``agreed``: by all parties."""
        ...

    @property
    def number(self) -> int | None:
        """The entry of the ledger that the run is charged to; None before, and where nothing is kept."""
        ...

    @property
    def keeps(self) -> bool:
        """Return True if a result of this job is kept, which may be given again without a run."""
        ...

    @property
    def remark(self) -> str:
        """For the log, after the run: whether it cost less than a new one. Empty if there is nothing to say."""
        ...


class Charges(Protocol):
    """Charges of runs in the ledger of a data set, and what its owner is told of them."""

    def account(self, ledger: PrivacyLedger, policy: Policy, task: Task, run: bytes) -> Account:
        """The run's place in a party's ledger. ``run``: 16 bytes, the same at all parties, new for each run."""
        ...

    def spent(self, entries: Sequence[Entry], policy: Policy) -> Spent:
        """Return the part of the entries of a ledger that counts against its owner's policy."""
        ...

    def outlook(
        self, ledger: PrivacyLedger, policy: Policy, task: Task, me: str, table: Table | None, rng: Rng
    ) -> str:
        """Say what the owner should know of a run before it is asked for, in a sentence; empty if there is
        nothing.

        table:  what pass 1 made of ours; None if it could not be read.

        Raises BudgetError or PolicyError if the run would have to be refused. Nothing is charged.
        """
        ...


@dataclass(frozen=True)
class Withheld:
    """The part of a run's costs that does not leave a party.

    phases:  these at all. seconds: those of these, None for all. links: traffic by peer.
    """

    phases: frozenset[str] = frozenset()
    seconds: frozenset[str] | None = frozenset()
    links: bool = False


Sentences: TypeAlias = dict[str, list[str]]
"""By key of a report, sentences."""


def _of_nothing(*_: Any) -> None:
    """There is nothing to check."""


def _no_words(*_: Any) -> Sentences:
    return {}


def _no_fields(*_: Any) -> dict[str, Any]:
    return {}


def _no_costs(task: Task) -> list[str]:
    return []


def _no_parts(*_: Any) -> frozenset[str]:
    return frozenset()


def _result(task: Task, name: str, me: str, source: Source, table: Table, result: Any, rng: Rng) -> bytes:
    """The only part that most modes have."""
    encoded: bytes = result.encoded
    return encoded


def _no_tables(*_: Any) -> dict[str, bytes]:
    """Readers make the result of the tables, so its digest is enough."""
    return {}


def _delivered(task: Task) -> tuple[str, ...]:
    return task.model.delivered


def _nothing_mixed(task: Task) -> bool:
    return False


def _as_it_is(
    task: Task, me: str, table: Table, result: Any, besides: Besides, rng: Rng, observer: Observer
) -> Rounds[Any]:
    return result
    yield


@dataclass(frozen=True)
class Mode:
    """One row for a model, a partition and a level: how it is run, what it reveals, what is said of it.

    level:    what of a job says how much is revealed (:meth:`Model.level`).
    name:     the key of a joint mode in :data:`anonymize.joint.disclosure.ALLOWED`.
    run:      one party's side of a joint run: task, party, table, coins, observer.
    least:    the fewest parties that it protects from each other; ``least_because``: which setting asks for how many,
              why, and what else to say, where it is more than any joint job has.
    paired:   joint: leader and deputy compute with each other on behalf of all; reports name the deputy.
    shared:   leader and deputy hold shares of the counts of all parties.
    check:    refuses what this mode cannot compute, without data. Raises SchemaError or PrivacyError.
    mixed:    whether rows of all parties are put together by leader and deputy, whatever else those two do: task.
    finish:   one party's side of what follows the run before its result is signed: task, party, table, result, what
              it has besides, coins, observer.
    parts:    what a party sends the coordinator besides the result: task, party.
    part:     how a party makes one of these, or the result: task, name, party, source, table, result, coins. Raises
              DataError if the source is no longer what pass 1 read.
    signed:   the tables that follow from the result to the byte, but from which readers cannot make it: parties sign
              them; task, result.
    delivered: the files that parties receive in the end, where a job has a say in them.
    words:    the report's sentences on who is protected from whom: task, result.
    fields:   what the report says besides: task, result, released table.
    costs:    a sentence for each thing that the job alone tells of what a run will take.
    """

    model: str
    partition: str
    level: str
    name: str
    run: Callable[[Task, str, Table, Rng, Observer], Rounds[Any]]
    reveals: tuple[Allowed, ...] = ()
    least: int = 2
    least_because: str = ""
    paired: bool = True
    shared: bool = False
    check: Callable[[Task], None] = _of_nothing
    withheld: Withheld = Withheld()
    mixed: Callable[[Task], bool] = _nothing_mixed
    finish: Callable[[Task, str, Table, Any, Besides, Rng, Observer], Rounds[Any]] = _as_it_is
    parts: Callable[[Task, str], frozenset[str]] = _no_parts
    part: Callable[[Task, str, str, Source, Table, Any, Rng], bytes] = _result
    signed: Callable[[Task, Any], Mapping[str, bytes]] = _no_tables
    delivered: Callable[[Task], tuple[str, ...]] = _delivered
    words: Callable[[Task, Any], Sentences] = _no_words
    fields: Callable[[Task, Any, Any], dict[str, Any]] = _no_fields
    costs: Callable[[Task], list[str]] = _no_costs


class Model(Protocol):
    """Everything that differs between privacy models, and nothing else.

    Its objects have no state; each method is told in the file of the model's folder that does the work. A method that
    answers something here is for the models that have another answer.
    """

    @property
    def name(self) -> str:
        """The key under `model` in a job file."""
        ...

    # What is asked.

    def check_first(self, job: Job) -> None:
        """Refuse a goal or partition that is not for it, before what these need is looked for. Raises ValueError or
        ConfigError.
        """
        return

    def check(self, job: Job) -> None:
        """Refuse what the job file alone shows to be wrong. Raises ValueError."""
        ...

    def check_opened(self, task: Task) -> None:
        """Refuse what job and taxonomies show to be wrong, without data. Raises SchemaError or PrivacyError."""
        ...

    def level(self, job: Job) -> str:
        """Return the job's level: how much is revealed during the run; empty where nothing is."""
        ...

    def modes(self, partition: str) -> tuple[Mode, ...]:
        """Return the ways to compute its jobs of a partition, by level."""
        ...

    def reveals(self, task: Task) -> tuple[Allowed, ...]:
        """Return the reveals of a joint run of this job beside those that its mode lists."""
        return ()

    def sensitive(self, task: Task, found: Domains) -> tuple[SensitiveColumn, ...]:
        """The columns of the schema whose values are counted in every cell.

        Raises DataError if a protected value is not in the domain ``found``, SchemaError as :attr:`Task.schema`.
        """
        ...

    def rules(self, task: Task, held: Collection[str]) -> Sequence[Rule]:
        """Return what the model needs of an owner's policy. ``held``: the columns of the owner's table."""
        ...

    def described(self, task: Task) -> Described:
        """Describe a job to whoever is asked to approve it."""
        ...

    @property
    def reading(self) -> Reading:
        """Return the way to read a table."""
        ...

    # A run.

    @property
    def charges(self) -> Charges:
        """Return the way to charge runs."""
        ...

    def for_owner(self, task: Task, table: Table) -> tuple[str, ...]:
        """Say what a table's owner alone is told of what the job will make of it, from its raw records."""
        return ()

    def run_alone(
        self, task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
    ) -> Noted:
        """Make one holder's release in the new folder ``out``; return what the holder alone is told.

        Raises DataError, BudgetError, or ConfigError if there is such a folder.
        """
        ...

    # What comes of it.

    def decode(self, task: Task, encoded: bytes, sender: str) -> Result:
        """Read :attr:`Result.encoded`. Raises PartyError (peer-protocol) for anything malformed."""
        ...

    @property
    def tells_seconds(self) -> bool:
        """Return True if reports say how long each phase took."""
        ...

    def made_of(self, task: Task, collected: Collected, options: Options) -> Rendered:
        """Make the release of a joint run, and verify it. Raises PartyError."""
        ...

    def expected_of(
        self, task: Task, result: Any, files: Mapping[str, bytes], parts: Mapping[str, bytes]
    ) -> Rendered:
        """Return the release that a party with this result expects. Raises PartyError.

        files:  what is delivered: tables that do not follow from the result are taken from there, and checked.
        parts:  what the party sent.
        """
        ...

    def most_bytes(self, task: Task, result: Any) -> int:
        """Return the largest size of the delivered table, as far as our own result tells; 0 where it does
        not.
        """
        ...

    def verify(self, task: Task, out: Path) -> Checked:
        """Verify a result folder, or the file of a release, by what it says. Raises PartyError."""
        ...

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        """Return the part of a report that the console shows when the run is over."""
        ...

    @property
    def made(self) -> tuple[str, ...]:
        """The files that a release may have besides report and digests."""
        ...

    @property
    def delivered(self) -> tuple[str, ...]:
        """The files that parties receive in the end: the release, its report, and their digests."""
        ...


class Partition(Protocol):
    """Everything that differs by who holds what."""

    @property
    def name(self) -> str:
        """The value of `partition` in a job file."""
        ...

    @property
    def matched(self) -> bool:
        """Return True if records are matched by id with those of other parties, who see which of theirs take
        part.
        """
        ...

    def check(self, job: Job) -> None:
        """Refuse what the job file alone shows to be wrong. Raises ValueError."""
        ...

    def held_by(self, job: Job, party: str | None) -> tuple[str, ...]:
        """The columns that a party's table must have, in job order; None: those of all parties."""
        ...

    def rules(self, job: Job) -> Sequence[Rule]:
        """Return what the partition needs of an owner's policy."""
        ...

    def described(self, job: Job) -> dict[str, Any]:
        """Say who does what in a joint job, and who is told what in the end."""
        ...

    def described_columns(self, job: Job) -> dict[str, Any]:
        """Say who contributes what."""
        ...

    def result_schema(self, task: Task) -> Schema:
        """The schema of a joint run's T_g."""
        ...

    def load(self, task: Task, source: Source, me: str) -> Table:
        """Pass 1 of party ``me``. Raises DataError."""
        ...
