"""Owner's policy: every request of a job must be listed, or :mod:`jobs.owner.objections` refuses the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo

from jobs.data.texts import alike
from jobs.file.columns import NumericDomain
from jobs.file.fields import Confidence, Epsilon, Fields, Level, Name

M = TypeVar("M", bound=Mapping[str, Any])

Role = Literal["id", "qid", "sensitive", "class", "plain", "location", "time", "items"]
"""Possible roles of a column in a job between parties."""

JobHash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
"""SHA-256 of a job with its taxonomies, as printed by `coordinator validate`."""

_PEER_IDS_FACTOR, _PEER_IDS_LEAST = 10, 1000
"""Bounds without ``max_peer_ids``: ids of a peer for each of ours, and a number that is always allowed."""


Domain = Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | NumericDomain
"""Domain pinned by an owner: the digest of a taxonomy (:mod:`jobs.owner.domains`), or a grid."""


def _spelled_once(protected: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    columns = alike(protected)
    if columns is not None:
        raise ValueError(
            f"{columns[0]!r} and {columns[1]!r} are two spellings of the same column: keep a single spelling"
        )
    for name, values in protected.items():
        two = alike(values)
        if two is not None:
            raise ValueError(
                f"{name} lists {two[0]!r} and {two[1]!r}, two spellings of the same value: keep a single spelling"
            )
    return protected


def _of_columns(value: M, info: ValidationInfo) -> M:
    """Refuse a column without roles: in another spelling the key would hold for no column."""
    unknown = [name for name in value if name not in info.data.get("columns", value)]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not in `policy.columns`: list the column there, in the same spelling"
        )
    return value


class Policy(Fields):
    """Rules of the owner of the data. A job is refused unless the policy allows it."""

    coordinators: tuple[Name, ...] = Field(default=(), description="The coordinators allowed to start jobs.")
    parties: tuple[Name, ...] = Field(
        default=(), description="The parties allowed to take part in a job with us."
    )
    approval: Literal["required", "automatic"] = Field(
        default="required",
        description="`required`: a job waits until you approve the job (`party jobs`, `party show`, `party approve`)."
        " `automatic`: each job that the policy allows may run.",
    )
    jobs: tuple[JobHash, ...] | None = Field(
        default=None,
        description="The hashes of jobs that count as approved, as `coordinator validate` prints them. The jobs "
        "still have to meet the rest of the policy. With `approval: automatic` all other jobs are refused. Unset: no "
        "job counts as approved; with `approval: automatic` any job does.",
    )
    leaders: tuple[Name, ...] | None = Field(
        default=None,
        description="The parties besides us allowed to lead a job. Unset: all of `parties`; but with `disclosure: "
        "leader`, where the leader learns more than the rest, only we.",
    )
    pairs: tuple[tuple[Name, Name], ...] = Field(
        default=(),
        description="Pairs of parties, in either order, allowed to compute with everybody's shares, or to mix rows "
        "with `plain` columns, without us in the pair. A pair could together read our counts, or recognize our "
        "rows. A pair with us needs no entry.",
    )
    columns: dict[str, tuple[Role, ...]] = Field(
        default_factory=dict,
        description="By column, the allowed roles. `plain` publishes raw values.",
    )
    min_l: int = Field(default=1, ge=1, description="The smallest accepted L.")
    min_k: int | None = Field(default=None, ge=1, description="The smallest accepted K. Unset: no LKC job.")
    min_colluders: int = Field(
        default=0,
        ge=0,
        description="horizontal LKC: the smallest accepted `colluders`. K and C then hold for the rest of a group "
        "after so many parties subtract their own rows.",
    )
    per_person: bool = Field(
        default=False,
        description="`true`: our table has several records of a person. We then accept only LKC jobs with `unit: "
        "person`, and DP jobs with `max_records_per_person`. Vertical jobs have a single record of each id, "
        "and are exempt.",
    )
    max_c: Confidence | None = Field(
        default=None,
        description="The largest accepted C of a sensitive column. Unset: no sensitive column.",
    )
    min_diversity: int = Field(
        default=1,
        ge=1,
        description="LKC: the smallest accepted `diversity` of jobs with sensitive columns of ours. A job in which "
        "all these columns have a C below 1 counts as 2. A column with an `at_most` below `diversity` - 1 "
        "counts as `at_most` + 1 (0: no requirement). In joint jobs with `link` more than 2 counts as 2: "
        "values of a single block are ruled out.",
    )
    protected: Annotated[
        dict[str, tuple[str, ...]], AfterValidator(_spelled_once), AfterValidator(_of_columns)
    ] = Field(
        default_factory=dict,
        description="By sensitive column, the values that a job must protect if the job does not protect all. A "
        "job may leave further values unprotected.",
    )
    match_ids: bool = Field(
        default=False,
        description="vertical: `true` lets peers learn which of their ids we have, too, and the generalized record "
        "of each common person.",
    )
    require_insider: bool = Field(
        default=False, description="vertical: `true` accepts only jobs with `insider: true`."
    )
    share_class: bool = Field(
        default=False,
        description="vertical: `true` lets us tell peers the class of every common record.",
    )
    min_common: int = Field(
        default=20,
        ge=1,
        description="vertical: the fewest common records for which classes are compared or told. A job with fewer "
        "common records ends. With few common records, asking for a single person's class is easier.",
    )
    max_alignments: int = Field(
        default=10,
        ge=0,
        description="vertical: the most alignments of the data set, ever. Each alignment tells peers which of "
        "their ids we have, and whether the classes are the same.",
    )
    max_peer_ids: int | None = Field(
        default=None,
        ge=1,
        description="vertical: the most ids that each peer may enter. A job with more ids ends before we send "
        "anything made from our ids, and counts as an alignment. A peer that enters a whole register would "
        "know all our people. Unset: 10 times as many as we enter, and at least 1,000.",
    )
    max_questions: int = Field(
        default=10,
        ge=0,
        description="The most jobs that may read the data set without coming to a result, ever. A refusal"
        " tells about values, and so does an admission. The same job of the same coordinator "
        "on the same file counts once.",
    )
    secure_sum: tuple[Literal["masked", "ring"], ...] = Field(
        default=("masked",),
        description="disclosure leader: the allowed protocols for sums of our counts. `ring` resists single "
        "parties only.",
    )
    max_epsilon: Epsilon | None = Field(
        default=None, description="The largest epsilon of a DP job. Unset: no DP job."
    )
    epsilon_budget: Epsilon | None = Field(
        default=None,
        description="The largest sum of epsilon over all DP jobs on the data set, ever. Unset: "
        "`max_epsilon`. Spent epsilon never comes back.",
    )
    noise: tuple[Literal["joint", "each"], ...] = Field(
        default=("joint",),
        description="joint DP: the allowed noise of counts. With `each`, leader and deputy can each subtract their "
        "own noise.",
    )
    max_rows: int = Field(
        default=1_000_000,
        ge=1,
        lt=1 << 31,
        description="joint DP: our bound on the rows of our table, known to peers. A job with a smaller `max_rows` "
        "is refused. A table with more rows stops every DP job here.",
    )
    partial_requirements: bool = Field(
        default=False,
        description="LKC: `true` accepts jobs without a requirement on all quasi-identifiers. An attacker who "
        "knows columns of different requirements may then find anybody. If false, a requirement on all "
        "quasi-identifiers must meet `min_l`, `min_k`, `min_colluders`, `min_diversity` and `max_c`. If true, "
        "each requirement must meet these bounds on its columns, and have a C within `max_c` or no C.",
    )
    max_lkc_releases: int = Field(
        default=1,
        ge=0,
        description="The most LKC releases of the data set, of tables or sequences, ever. Releases do not"
        " compose: the difference of two tables can tell the values of single people. Unset: "
        "1.",
    )
    domains: Annotated[dict[str, Domain], AfterValidator(_of_columns)] = Field(
        default_factory=dict,
        description="By column, the domain required of a job: `min`, `max` and `step` or `cuts` of a numeric "
        "column; the SHA-256 of a taxonomy, as `party check --job` prints it. A column that is not listed gets "
        "the domain of the first LKC release of the data set.",
    )
    other_domains: bool = Field(
        default=False,
        description="LKC: `true` lets a later release give a column a different domain than an earlier release. "
        "Two tables whose grids differ by a cut tell about the few people between the cuts.",
    )
    max_items: int = Field(
        default=64,
        ge=1,
        description="sequences: the largest accepted `max_items`. Work here grows as the number of a record's "
        "subsets of L items.",
    )
    max_candidates: int = Field(
        default=4_000_000,
        ge=1,
        description="sequences: the largest accepted `max_candidates`: memory and time of a run.",
    )
    methods: tuple[Literal["top-down", "kd"], ...] = Field(
        default=("top-down",),
        description="LKC: the accepted methods (`method` in jobs). A `kd` table keeps much more detail of each "
        "record than a `top-down` table of the same K and C. The sealed run tells nothing beside the table.",
    )
    releases: tuple[Literal["rows", "anatomy"], ...] = Field(
        default=("rows",),
        description="LKC: the accepted forms of a release (`release` in jobs): rows, or counts of groups and of "
        "their sensitive values.",
    )
    cluster_labels: bool = Field(
        default=False,
        description="LKC, goal clusters: `true` lets a release publish the cluster of each of our "
        "records. Anybody who knows a person's raw quasi-identifiers can compute the cluster.",
    )
    own_k: int = Field(
        default=1,
        ge=1,
        description="horizontal LKC: the fewest records of ours in any group with records of ours, on any L "
        "columns. An attacker who subtracts all records of the remaining parties is left with groups of so "
        "many. A run that would publish a group with fewer ends: the end reveals a group with fewer, and "
        "counts as a release. With earlier LKC releases of the data set, the bound also holds for the groups "
        "that the differences of all releases give. 1: off. In vertical jobs the records are common to all, "
        "and the key is ignored.",
    )
    disclosure: tuple[Level, ...] = Field(
        default=(),
        description="The accepted levels of `disclosure` (docs/reveals.md). `sealed` allows `strict`, too, which "
        "opens less.",
    )

    def needs_approval(self, job_sha256: str) -> bool:
        """Return True if a job waits for the owner, who neither pinned the job nor lets the policy decide."""
        return self.approval == "required" and job_sha256 not in (self.jobs or ())

    def peer_ids(self, own: int) -> int:
        """Return the largest number of ids of each peer if we enter ``own``."""
        if self.max_peer_ids is not None:
            return self.max_peer_ids
        return max(_PEER_IDS_FACTOR * own, _PEER_IDS_LEAST)
