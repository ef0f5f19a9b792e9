"""The owner's policy: everything a job asks for must be listed, or it is refused by :mod:`jobs.owner.objections`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from jobs.data.texts import alike
from jobs.file.columns import NumericDomain
from jobs.file.fields import Confidence, Epsilon, Fields, Level, Name

Role = Literal["id", "qid", "sensitive", "class", "plain", "location", "time", "items"]
"""What a column may be in a job between parties."""

JobHash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
"""SHA-256 of a job with its taxonomies, as `coordinator validate` prints it."""

_PEER_IDS_FACTOR, _PEER_IDS_LEAST = 10, 1000
"""Where ``max_peer_ids`` is unset: ids of another party for each of ours, and how many are never too many."""


Domain = Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | NumericDomain
"""A domain that an owner pins: of a taxonomy its digest (:mod:`jobs.owner.domains`), or a grid."""


def _spelled_once(protected: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    columns = alike(protected)
    if columns is not None:
        raise ValueError(
            f"{columns[0]!r} and {columns[1]!r} are two spellings of one column: keep one of them"
        )
    for name, values in protected.items():
        two = alike(values)
        if two is not None:
            raise ValueError(
                f"{name} lists {two[0]!r} and {two[1]!r}, two spellings of one value: keep one of them"
            )
    return protected


class Policy(Fields):
    """What the owner of the data allows. What is not listed is refused."""

    coordinators: tuple[Name, ...] = Field(default=(), description="Who may start jobs.")
    parties: tuple[Name, ...] = Field(default=(), description="Who may take part in a job with us.")
    jobs: tuple[JobHash, ...] | None = Field(
        default=None,
        description="The job hashes that are admitted, as `coordinator validate` prints them; all other jobs are "
        "refused, and these still need the rest of the policy. Unset: any job that the rest allows.",
    )
    leaders: tuple[Name, ...] | None = Field(
        default=None,
        description="Who besides us may lead a job. Unset: whoever may take part; but with `disclosure: leader`, "
        "where the leader learns more than the others, nobody but us.",
    )
    pairs: tuple[tuple[Name, Name], ...] = Field(
        default=(),
        description="Which two parties, in either order, may compute with everybody's shares, or mix rows with "
        "`plain` columns, while we are neither of them: together they could read our counts, or tell which rows are "
        "ours. A pair that we are one of needs no entry.",
    )
    columns: dict[str, tuple[Role, ...]] = Field(
        default_factory=dict, description="Per column the roles it may have. `plain` publishes raw values."
    )
    min_l: int = Field(
        default=1, ge=1, description="Smallest L we accept: attackers who know that many columns."
    )
    min_k: int | None = Field(
        default=None, ge=1, description="Smallest K we accept; unset accepts no LKC job."
    )
    min_colluders: int = Field(
        default=0,
        ge=0,
        description="horizontal LKC: smallest `colluders` we accept: K and C hold for what remains after so many "
        "parties subtract their own rows.",
    )
    per_person: bool = Field(
        default=False,
        description="Our table has several records of a person: accept only LKC jobs with `unit: person`, and DP "
        "jobs with `max_records_per_person`. Vertical jobs have one record of each id and are not concerned.",
    )
    max_c: Confidence | None = Field(
        default=None,
        description="Largest C we accept for a sensitive column; unset accepts no sensitive column.",
    )
    min_diversity: int = Field(
        default=1,
        ge=1,
        description="LKC: smallest `diversity` we accept of jobs with sensitive columns of ours; where all of these "
        "have a C below 1, that is 2. A column with an `at_most` below `diversity` - 1 counts with `at_most` + 1 (0: "
        "nothing is asked of it). In joint jobs with `link` more than 2 counts as 2: values of one block alone are "
        "ruled out.",
    )
    protected: Annotated[dict[str, tuple[str, ...]], AfterValidator(_spelled_once)] = Field(
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
    min_common: int = Field(
        default=20,
        ge=1,
        description="vertical: how many records must be common to all parties before classes are compared or given; "
        "a job with fewer ends. Fewer make it easier to ask for one person's class.",
    )
    max_alignments: int = Field(
        default=10,
        ge=0,
        description="vertical: how many alignments of the data set there may be, ever. Each tells the other parties "
        "which of the ids they entered we have, and whether the classes are the same.",
    )
    max_peer_ids: int | None = Field(
        default=None,
        ge=1,
        description="vertical: how many ids each other party may enter; a job with more ends before anything made "
        "from our ids is sent, and counts as an alignment. An alignment tells a party which of the ids it enters we "
        "have: one that enters a whole register knows all our people. Unset: 10 times as many as we enter, and at "
        "least 1,000.",
    )
    max_questions: int = Field(
        default=10,
        ge=0,
        description="How many jobs may read the data set without coming to a result, ever: a refusal tells about "
        "values, and so does an admission. The same job of the same coordinator on the same file counts once.",
    )
    secure_sum: tuple[Literal["masked", "ring"], ...] = Field(
        default=("masked",),
        description="disclosure leader: how our counts may be summed. `ring` resists no two parties together.",
    )
    max_epsilon: Epsilon | None = Field(
        default=None, description="Largest epsilon of one DP job; unset accepts no DP job."
    )
    epsilon_budget: Epsilon | None = Field(
        default=None,
        description="Largest sum of epsilon over all DP jobs on the data set, ever; unset: `max_epsilon`. What is "
        "spent never comes back.",
    )
    noise: tuple[Literal["joint", "each"], ...] = Field(
        default=("joint",),
        description="joint DP: how counts may get their noise. With `each`, leader and deputy can subtract their own "
        "share of it.",
    )
    max_rows: int = Field(
        default=1_000_000,
        ge=1,
        lt=1 << 31,
        description="joint DP: our bound on the rows of our table, which others may know. A job with a smaller "
        "`max_rows` is refused; a table with more rows stops every DP job here.",
    )
    partial_requirements: bool = Field(
        default=False,
        description="LKC: accept jobs of which no requirement is of all quasi-identifiers: who knows columns of "
        "different requirements may then find anybody. If false, one requirement of all quasi-identifiers must meet "
        "`min_l`, `min_k`, `min_colluders`, `min_diversity` and `max_c`; if true, each must, of its own columns, and "
        "have a C within `max_c` or none.",
    )
    max_lkc_releases: int = Field(
        default=1,
        ge=0,
        description="How many LKC releases of the data set, of tables or sequences, there may be in all. They do not "
        "compose: the difference of two tables can tell the values of single people. Unset: 1.",
    )
    domains: dict[str, Domain] = Field(
        default_factory=dict,
        description="Per column the domain that a job must give it: `min`, `max` and `step` or `cuts` of a numeric "
        "column; of a taxonomy its SHA-256, as `party check --job` prints it. Columns that are not listed get the "
        "domain of the first LKC release of the data set.",
    )
    other_domains: bool = Field(
        default=False,
        description="LKC: whether a later release may give a column another domain than an earlier one. Two tables "
        "whose grids differ by one cut tell of the few people between the cuts.",
    )
    max_items: int = Field(
        default=64,
        ge=1,
        description="sequences: largest `max_items` of a job we accept. Work here grows as a record's subsets of L.",
    )
    max_candidates: int = Field(
        default=4_000_000,
        ge=1,
        description="sequences: largest `max_candidates` of a job we accept: memory and time of a run.",
    )
    methods: tuple[Literal["top-down", "kd"], ...] = Field(
        default=("top-down",),
        description="LKC: the methods we accept (`method` in jobs). A `kd` table keeps much more detail of each "
        "record than a `top-down` one of the same K and C, and its sealed run tells nothing beside it.",
    )
    releases: tuple[Literal["rows", "anatomy"], ...] = Field(
        default=("rows",),
        description="LKC: what a release may be written as (`release` in jobs): rows, or counts of groups and of "
        "their sensitive values.",
    )
    cluster_labels: bool = Field(
        default=False,
        description="LKC, goal clusters: whether the cluster of each of our records may be published beside it. It "
        "is computed from raw quasi-identifiers, also by whoever knows those of a person.",
    )
    own_k: int = Field(
        default=1,
        ge=1,
        description="horizontal LKC: how many records of ours every group on any L columns must have that has any, "
        "so that who subtracts all others' records is left with groups of so many. A run that would publish a group "
        "with fewer ends, which tells that there is one; it counts as a release. With earlier LKC releases of the "
        "data set it holds for the groups of all of them together, which their differences give. 1: off. In vertical "
        "jobs the records are common to all, and it is ignored.",
    )
    disclosure: tuple[Level, ...] = Field(
        default=(),
        description="How much may be disclosed on the way (docs/security.md). `sealed` allows `strict`, too, which "
        "discloses less.",
    )

    def peer_ids(self, own: int) -> int:
        """Return how many ids each other party may enter where we enter ``own``."""
        if self.max_peer_ids is not None:
            return self.max_peer_ids
        return max(_PEER_IDS_FACTOR * own, _PEER_IDS_LEAST)
