"""Task, the value that all functions take, and the interfaces behind the task.

A :class:`Task` is a bundle with its model, partition and mode. Every function that runs, reads, checks or reports a
job takes a task, and never asks again for the kind of job. A new model is a folder beside the present models, and
an entry of :data:`jobs.loading.MODELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from anonymize.errors import DataError
from anonymize.table import QidColumn, Schema, SensitiveColumn
from jobs.file.bundle import Bundle
from jobs.file.job import Job
from jobs.file.schema import Domains, Taxonomies, holders_of, qid_of, schema_of, taxonomies_of
from jobs.release.csv import REPORT
from jobs.release.sums import SUMS

if TYPE_CHECKING:
    from anonymize.clusters import Clusters
    from anonymize.joint.columns import Columns
    from anonymize.joint.disclosure import Allowed
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
    from jobs.page.parts import Section
    from jobs.stopwatch import Stopwatch

_SAY = (
    "say under `data` in the configuration of the table's owner what the value means (`map`: a value of the job; "
    "`missing`: a missing cell), correct the value, or ask the author of the job to"
)
_AT_PARTY: Mapping[str, str] = {
    "data-unknown-value": f"{_SAY} list the value",
    "data-outside-domain": f"{_SAY} widen the domain",
}
"""Remedies in joint jobs, where the owner of a table does not write the job."""


@dataclass(frozen=True)
class Task:
    """Bundle opened once."""

    bundle: Bundle
    model: Model
    partition: Partition
    mode: Mode

    @property
    def job(self) -> Job:
        return self.bundle.job

    @property
    def digest(self) -> bytes:
        """Job hash, 32 bytes."""
        return self.bundle.digest

    @cached_property
    def taxonomies(self) -> Taxonomies:
        """Value hierarchy of every column that is specialized or has a hierarchy. Raises SchemaError."""
        return taxonomies_of(self.job, self.bundle.files)

    @cached_property
    def qid(self) -> tuple[QidColumn, ...]:
        """Specialized columns, in job order. Raises SchemaError."""
        return qid_of(self.job, self.taxonomies)

    @cached_property
    def clusters(self) -> Clusters | None:
        """Model that tells records apart where the goal is clusters. Raises SchemaError."""
        asked = self.job.clusters
        if asked is None:
            return None
        from jobs.clusters import clusters_of

        return clusters_of(asked.opened, self.qid)

    @cached_property
    def schema(self) -> Schema:
        """Public schema of a job whose domains are all listed. Raises SchemaError."""
        return self.schema_with({})

    def schema_with(self, found: Domains) -> Schema:
        """Return the public schema, completed by the domains that a single holder's job leaves to the data.

        Raises SchemaError if a taxonomy or grid is malformed, DataError if a protected value is not in the domain
        of the data.
        """
        sensitive = self.model.sensitive(self, found)
        return schema_of(self.job, self.taxonomies, sensitive, found)

    @cached_property
    def result_schema(self) -> Schema:
        """Return the schema of a joint run's T_g."""
        return self.partition.result_schema(self)

    @cached_property
    def holders(self) -> Columns:
        """Holders of the columns of a vertical job."""
        return holders_of(self.job)

    @cached_property
    def reveals(self) -> tuple[Allowed, ...]:
        """Reveals of a joint run: the mode's list, and the model's additions for the job."""
        return (*self.mode.reveals, *self.model.reveals(self))

    @property
    def delivered(self) -> tuple[str, ...]:
        """Files that the coordinator sends to the parties: tables that they cannot make, report and digests."""
        return (*self.mode.sent(self), REPORT, SUMS)

    @property
    def paired(self) -> bool:
        """True if the peers need to know both leader and deputy."""
        return self.mode.paired or self.mode.mixed(self)

    def roster(self, me: str) -> Roster:
        """Return the parties of a joint job, as party ``me`` sees the parties."""
        from anonymize.joint.roster import Roster

        return Roster(me, self.job.roster, self.job.leader_name, self.job.deputy_name)

    def parts_of(self, party: str) -> frozenset[str]:
        """Return the coordinator's parts from a party: `result` from the leader, and the mode's parts."""
        result = {"result"} if party == self.job.leader_name else set()
        return self.mode.parts(self, party) | result

    def load(self, source: Source, me: str) -> Table:
        """Pass 1 of party ``me``. Raises DataError."""
        try:
            return self.partition.load(self, source, me)
        except DataError as error:
            if self.job.roster and not error.remedy:
                error.remedy = _AT_PARTY.get(error.error_id, "")
            raise

    def held_by(self, party: str | None) -> tuple[str, ...]:
        """Return the required columns of a party's table, in job order; None: the columns of all parties."""
        return self.partition.held_by(self.job, party)


@dataclass(frozen=True)
class RunInputs:
    """Inputs of a party to a joint run besides its table.

    source:     what pass 1 read, for a second pass.
    recipient:  the coordinator's public key for the run, 32 bytes, if only the coordinator receives the
                release.
    """

    source: Source | None = field(default=None, repr=False)
    recipient: bytes | None = None


NO_RUN_INPUTS = RunInputs()


class Result(Protocol):
    """Result of a run, at a party or as the coordinator reads the result."""

    @property
    def encoded(self) -> bytes:
        """Canonical bytes that parties compare and the coordinator collects."""
        ...

    @property
    def reveals(self) -> Sequence[Mapping[str, Any]]:
        """Reveals that every party saw happen; public."""
        ...

    @property
    def told(self) -> Mapping[str, Any]:
        """Fields that a party sends the coordinator besides the bytes: the reveals and the like; public."""
        ...

    @property
    def own(self) -> Mapping[str, Any]:
        """Fields of :attr:`told`, and the entries of the party's own reveal ledger; for its owner."""
        ...

    @property
    def repeated(self) -> bool:
        """True for the result of an earlier run, given again."""
        ...

    def completed(self, told: Sequence[Mapping[str, Any]]) -> Result:
        """Return the coordinator's result, with all parties' :attr:`told` fields. Raises PartyError on a
        difference.
        """
        ...


@dataclass(frozen=True)
class Collected:
    """Outcome of a joint run at the coordinator.

    parts:    parts besides the result, by name and party (:meth:`Task.parts_of`).
    parties:  each party's account of the cost of the run.
    signatures: signatures of all parties, as reports say (:mod:`jobs.release.signatures`); None where
                nobody signs.
    key:      opens boxes sealed to the coordinator in the run, if only the coordinator receives the
              release.
    """

    result: Any
    parts: Mapping[str, Mapping[str, bytes]] = field(repr=False)
    parties: Mapping[str, Any]
    signatures: Mapping[str, Any] | None = field(default=None, repr=False)
    key: OpeningKey | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Rendered:
    """Release as far as it follows from the job and the result.

    tables:  contents of the tables, by file name.
    report:  report without the keys of the maker (:data:`jobs.release.report.BY_MAKER`) and without
             `files`.
    beside:  tables for the maker alone: listed in `SHA256SUMS`, not sent to parties.
    seen:    what readers see in the tables, as of :meth:`Model.seen`; None: to be read from the tables.
    """

    tables: Mapping[str, bytes] = field(repr=False)
    report: Mapping[str, Any] = field(repr=False)
    beside: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    seen: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Checked:
    """Findings of a verification, for people and as fields.

    result:  of a joint run, SHA-256, hexadecimal, of the result with these files, as its parties sign the
             result; None if the result does not follow from the files.
    """

    text: str
    fields: dict[str, Any]
    result: str | None = None

    def also(self, lines: Sequence[str], fields: Mapping[str, Any]) -> Checked:
        """Return the findings with further lines and fields at the end."""
        return replace(self, text="\n".join([self.text, *lines]), fields={**self.fields, **fields})


class Coders(Protocol):
    """Rules for reading columns."""

    def __call__(self, task: Task, name: str, found: Sequence[str] | None = None) -> Coder:
        """Return the rule of a column. ``found``: the domain that pass 1 took from the data, once known."""
        ...


@dataclass(frozen=True)
class Reading:
    """A model's way of reading a table, and its checks of rows.

    load:     pass 1 of a holder of whole records. Raises DataError.
    coder:    the rules of columns.
    checked:  refuse a table without a usable row, or with a repeated id. False where the refusal would tell
              peers about rows.
    outside:  count rows with a value outside a domain, for the owner alone. If False, refuse such values.
    per_person: True if the records with the same id belong to the same person. Otherwise a table has a
                single record of each id.
    """

    load: Callable[[Source, Task], Table]
    coder: Coders
    checked: bool = True
    outside: bool = False
    per_person: Callable[[Job], bool] = lambda job: False


@dataclass(frozen=True)
class Described:
    """Part of a job's description that its model gives.

    requirement:  in a line.
    settings:     under the model's key; empty if the requirement says all settings.
    columns:      by name, besides the job file's own words on the column.
    notes:        a sentence for each setting with less effect than the author may think.
    release:      published tables, in words.
    promises:     statements on the release that hold for every reader, in words.
    """

    requirement: str
    settings: Mapping[str, Any]
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    release: str = ""
    promises: Sequence[str] = ()


@dataclass(frozen=True)
class Shown:
    """Part of a report that the console shows.

    size:     size of the release, in words, with its specializations; ``fields``: the same as a field.
    lines:    facts about the release.
    verified: a sentence for each requirement that was counted again in the release.
    """

    size: str
    fields: Mapping[str, Any]
    lines: Sequence[str]
    verified: Sequence[str] = ()


@dataclass(frozen=True)
class Spent:
    """Spent part of a data set, and the rest that the owner's policy leaves; for the owner, in words and fields."""

    words: str
    fields: Mapping[str, Any]


class Account(Protocol):
    """A run's place in the ledger of a data set. Every model has an account."""

    def check(self) -> None:
        """Raise BudgetError or PolicyError, before a table is read, if the run would be refused."""
        ...

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """Raise as :meth:`check`, after the table is read, if the run would be refused now."""
        ...

    def conducted(
        self,
        task: Task,
        peers: Sequence[str],
        protocol: Callable[[Observer], Rounds[Result]],
        shown: Observer,
    ) -> Rounds[Result]:
        """Run the protocol under the account: charge before, keep after, give a kept result again."""
        ...

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        """Note that the files of the release are in place. ``release``: their digest; ``agreed``: by all parties."""
        ...

    @property
    def number(self) -> int | None:
        """Entry of the ledger that is charged for the run; None before the charge, and where nothing is kept."""
        ...

    @property
    def keeps(self) -> bool:
        """True if the ledger keeps a result of the job. A kept result is given again without a run."""
        ...

    @property
    def remark(self) -> str:
        """Line for the log after the run on whether the run cost less than a new run; may be empty."""
        ...


class Charges(Protocol):
    """Charges of runs in the ledger of a data set, and the messages about charges to the owner."""

    def account(self, ledger: PrivacyLedger, policy: Policy, task: Task, run: bytes) -> Account:
        """Return the run's place in a party's ledger. ``run``: 16 bytes, the same at all parties, new for each
        run.
        """
        ...

    def spent(self, entries: Sequence[Entry], policy: Policy) -> Spent:
        """Return the part of a ledger's entries that counts against the owner's policy."""
        ...

    def forecast(
        self, ledger: PrivacyLedger, policy: Policy, task: Task, me: str, table: Table | None, rng: Rng
    ) -> str:
        """Return the forecast of a requested run for the owner, in a sentence; may be empty.

        table:  the party's table after pass 1; None if the table could not be read.

        Raises BudgetError or PolicyError if the run would have to be refused. Nothing is charged.
        """
        ...


@dataclass(frozen=True)
class HiddenCosts:
    """Part of a run's costs that does not leave a party.

    phases:  whole phases.
    seconds: seconds of some phases, None for all.
    links:   traffic by peer.
    """

    phases: frozenset[str] = frozenset()
    seconds: frozenset[str] | None = frozenset()
    links: bool = False


Sentences: TypeAlias = dict[str, list[str]]
"""Sentences by key of a report."""


def _of_nothing(*_: Any) -> None:
    """Check nothing."""


def _no_words(*_: Any) -> Sentences:
    return {}


def _no_fields(*_: Any) -> dict[str, Any]:
    return {}


def _no_costs(task: Task) -> list[str]:
    return []


def _no_parts(*_: Any) -> frozenset[str]:
    return frozenset()


def _result(task: Task, name: str, me: str, source: Source, table: Table, result: Any, rng: Rng) -> bytes:
    """Return the result, the only part in most modes."""
    encoded: bytes = result.encoded
    return encoded


def _no_tables(*_: Any) -> dict[str, str]:
    """Return no tables: readers make the result from the tables, so the digest of the result is enough."""
    return {}


def _no_files(task: Task) -> tuple[str, ...]:
    """Return no names: every party makes the tables from its result."""
    return ()


def _nobody_apart(task: Task) -> frozenset[frozenset[str]]:
    return frozenset()


def _nothing_mixed(task: Task) -> bool:
    return False


def _as_it_is(
    task: Task, me: str, table: Table, result: Any, run_inputs: RunInputs, rng: Rng, observer: Observer
) -> Rounds[Any]:
    return result
    yield


@dataclass(frozen=True)
class Mode:
    """Mode of a model, a partition and a level: how a job runs, reveals and reports.

    level:    the level of disclosure of a job (:meth:`Model.level`).
    name:     the key of a joint mode in :data:`anonymize.joint.disclosure.ALLOWED`.
    run:      a party's side of a joint run: task, party, table, coins, observer.
    least:    the fewest parties that the mode protects from each other; ``least_because``: for a mode that
              needs more than any joint job, which setting asks for how many, why, and what else to say.
    paired:   joint: leader and deputy compute with each other on behalf of all; reports name the deputy.
    shared:   leader and deputy hold shares of the counts of all parties.
    check:    refuses a job that the mode cannot compute, without data. Raises SchemaError or PrivacyError.
    apart:    pairs of parties, outside the compute pair, whose messages the pair must not carry: task.
    mixed:    True if leader and deputy combine the rows of all parties, whatever else the pair does: task.
    finish:   a party's side after the run and before the signature: task, party, table, result, further
              inputs, coins, observer.
    parts:    names of the parts that a party sends the coordinator besides the result: task, party.
    part:     how a party makes a part, or the result: task, name, party, source, table, result, coins.
              Raises DataError if the source changed since pass 1.
    digests:  SHA-256 by name of tables that follow from the result to the byte, but do not give the result
              back; parties sign the digests: task, result.
    sent:     tables that the coordinator sends to the parties, because they do not follow from the result.
    words:    the report's sentences on who is protected from whom: task, result.
    fields:   further fields of the report: task, result, released table.
    costs:    sentences on the cost of a run that follow from the job alone.
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
    withheld: HiddenCosts = HiddenCosts()
    apart: Callable[[Task], frozenset[frozenset[str]]] = _nobody_apart
    mixed: Callable[[Task], bool] = _nothing_mixed
    finish: Callable[[Task, str, Table, Any, RunInputs, Rng, Observer], Rounds[Any]] = _as_it_is
    parts: Callable[[Task, str], frozenset[str]] = _no_parts
    part: Callable[[Task, str, str, Source, Table, Any, Rng], bytes] = _result
    digests: Callable[[Task, Any], dict[str, str]] = _no_tables
    sent: Callable[[Task], tuple[str, ...]] = _no_files
    words: Callable[[Task, Any], Sentences] = _no_words
    fields: Callable[[Task, Any, Any], dict[str, Any]] = _no_fields
    costs: Callable[[Task], list[str]] = _no_costs


class Model(Protocol):
    """Everything that differs between privacy models, and nothing else.

    A model has no state. The file of the model's folder that does the work explains each method. A method with a
    body here serves the models without their own answer.
    """

    @property
    def name(self) -> str:
        """Key under `model` in a job file."""
        ...

    # The request.

    def check_first(self, job: Job) -> None:
        """Refuse a wrong goal or partition before looking for further inputs. Raises ValueError or ConfigError."""
        return

    def check(self, job: Job) -> None:
        """Refuse errors that the job file alone shows. Raises ValueError."""
        ...

    def check_opened(self, task: Task) -> None:
        """Refuse errors that job and taxonomies show, without data. Raises SchemaError or PrivacyError."""
        ...

    def level(self, job: Job) -> str:
        """Return the job's level: how much is revealed during the run; empty where nothing is."""
        ...

    def modes(self, partition: str) -> tuple[Mode, ...]:
        """Return the model's modes for a partition, by level."""
        ...

    def reveals(self, task: Task) -> tuple[Allowed, ...]:
        """Return the reveals of a joint run of the job besides the mode's list."""
        return ()

    def sensitive(self, task: Task, found: Domains) -> tuple[SensitiveColumn, ...]:
        """Return the columns of the schema with values counted in every cell.

        Raises DataError if a protected value is not in the domain ``found``, SchemaError as :attr:`Task.schema`.
        """
        ...

    def rules(self, task: Task, held: Collection[str]) -> Sequence[Rule]:
        """Return the model's requirements on an owner's policy. ``held``: the columns of the owner's table."""
        ...

    def described(self, task: Task) -> Described:
        """Describe a job for the person who approves the job."""
        ...

    @property
    def reading(self) -> Reading:
        """Way of reading a table."""
        ...

    # A run.

    @property
    def charges(self) -> Charges:
        """Rules for the charge of a run in the ledger of an owner."""
        ...

    def for_owner(self, task: Task, table: Table) -> tuple[str, ...]:
        """Tell a table's owner alone the effects of the job on the table, from raw records."""
        return ()

    def run_single(
        self, task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
    ) -> Noted:
        """Make a single holder's release in the new folder ``out``; return the notes for the holder alone.

        Raises DataError, BudgetError, or ConfigError if the folder exists.
        """
        ...

    # The release.

    def decode(self, task: Task, encoded: bytes, sender: str) -> Result:
        """Read :attr:`Result.encoded`. Raises PartyError (peer-protocol) for anything malformed."""
        ...

    @property
    def tells_seconds(self) -> bool:
        """True if reports give the seconds of each phase."""
        ...

    def made_of(self, task: Task, collected: Collected, options: Options) -> Rendered:
        """Make the release of a joint run, and verify the release. Raises PartyError."""
        ...

    def expected_of(
        self, task: Task, result: Any, files: Mapping[str, bytes], parts: Mapping[str, bytes]
    ) -> Rendered:
        """Return the release that a party with the result expects. Raises PartyError.

        files:  sent files. Tables that do not follow from the result are taken from the files, and
                checked.
        parts:  parts that the party sent.
        """
        ...

    def most_bytes(self, task: Task, result: Any) -> int:
        """Return the largest size of the tables sent, as far as our own result tells; otherwise 0."""
        return 0

    def verify(self, task: Task, out: Path) -> Checked:
        """Verify a result folder, or the file of a release, against its own statements. Raises PartyError."""
        ...

    def shown(self, task: Task, report: Mapping[str, Any]) -> Shown:
        """Return the part of a report that the console shows after the run."""
        ...

    def seen(self, task: Task, folder: Path) -> Any:
        """Read what readers see in the tables of a release. Raises PartyError."""
        ...

    def sections(self, task: Task, report: Mapping[str, Any], seen: Any) -> Iterable[Section]:
        """Return the sections of the page of a release: from its requirement to its worth.

        report:  of the release, checked.
        seen:    as of :meth:`seen`.
        """
        ...

    def own_sections(
        self, task: Task, table: Table, report: Mapping[str, Any], seen: Any
    ) -> Iterable[Section]:
        """Return the sections of the page for the owner of a table.

        table:   of pass 1; in a joint job the own table.
        report:  of the release, checked.
        seen:    as of :meth:`seen`.
        """
        ...

    @property
    def made(self) -> tuple[str, ...]:
        """Files that a release may have, apart from report and digests."""
        ...


class Partition(Protocol):
    """Everything that differs by who holds what."""

    @property
    def name(self) -> str:
        """Value of `partition` in a job file."""
        ...

    @property
    def matched(self) -> bool:
        """True if records are matched by id between parties. Parties then see which of their records take part."""
        ...

    def check(self, job: Job) -> None:
        """Refuse errors that the job file alone shows. Raises ValueError."""
        ...

    def held_by(self, job: Job, party: str | None) -> tuple[str, ...]:
        """Return the required columns of a party's table, in job order; None: the columns of all parties."""
        ...

    def rules(self, job: Job) -> Sequence[Rule]:
        """Return the partition's requirements on an owner's policy."""
        ...

    def described(self, job: Job) -> dict[str, Any]:
        """Describe the roles in a joint job, and who receives what in the end."""
        ...

    def described_columns(self, job: Job) -> dict[str, Any]:
        """Describe the contribution of each party."""
        ...

    def result_schema(self, task: Task) -> Schema:
        """Return the schema of a joint run's T_g."""
        ...

    def load(self, task: Task, source: Source, me: str) -> Table:
        """Pass 1 of party ``me``. Raises DataError."""
        ...
