# Made by docs/forms_stub.py: do not edit.
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

import jobs.dp.settings
import jobs.file.clusters
import jobs.file.columns
import jobs.file.job
import jobs.file.makers
import jobs.lkc.settings
import jobs.sequences.settings

Number: TypeAlias = int | float | str | Decimal | Fraction
Text: TypeAlias = str | int | float | bool

class Column(jobs.file.columns.Column):
    def __init__(
        self,
        *,
        role: Literal['id', 'qid', 'sensitive', 'class', 'plain', 'party', 'location', 'time', 'items'],
        taxonomy: str | Mapping[str, Any] | Sequence[Text] | None = ...,
        level: int | None = ...,
        publish: Literal['value', 'category'] | None = ...,
        refine: Literal['children', 'child'] | None = ...,
        weight: Number | None = ...,
        suppress: Iterable[Text] | None = ...,
        prefix: Prefix | Mapping[str, Any] | None = ...,
        order: Order | Mapping[str, Any] | None = ...,
        icd: Icd | Mapping[str, Any] | None = ...,
        ranges: Iterable[Number] | None = ...,
        numeric: Numeric | Mapping[str, Any] | None = ...,
        dates: Dates | Mapping[str, Any] | None = ...,
        set: Set | Mapping[str, Any] | None = ...,
        missing: Literal['leaf', 'drop', 'cell', 'never'] | None = ...,
        other: str | None = ...,
        outside: Literal['missing'] | None = ...,
        from_data: Literal['true', 'confirmed'] | None = ...,
        domain: Iterable[Text] | None = ...,
        values: Iterable[Text] | None = ...,
        C: Number | None = ...,
        at_most: int | None = ...,
        distance: Literal['equal', 'ordered'] | None = ...,
        shared_by: str | None = ...,
        publish_as_is: bool | None = ...,
        normalize: Normalize | Mapping[str, Any] | None = ...,
        spellings: Literal['distinct'] | None = ...,
        domain_file: str | None = ...,
        clock: Clock | Mapping[str, Any] | None = ...,
        relative: bool | None = ...,
        separator: str | None = ...,
    ) -> None:
        """Column of a job.

        role: The meaning of the column. `qid`: known to attackers, so it is generalized. `sensitive`:
            inferences of its values are bounded. `id`: names the person of a row; never published. `class`
            and `plain`: published as they are, and protected by nothing. `party`: names the party of a row,
            in one holder's table, for `colluders`; never published. Sequences: `location` and `time` of one
            reading a row, or `items`, the values of one record a row.
        taxonomy: qid, and sensitive in LKC jobs: the tree of values itself, or the path of an ARX hierarchy
            CSV, relative to the job file.
        level: qid with a taxonomy: the depth of the finest groups that may be published. sensitive with a
            taxonomy: the depth at which requirements and `values` speak of groups. 1: the children of the
            root. Default: single values. A value that stands higher in the tree is a group by itself. LKC in
            every partition and disclosure; at a qid without clusters.
        publish: sensitive with `level`: the published form. `value` (default): the value itself. `category`:
            its group at this level. A joint job counts every published value: a wide taxonomy needs
            `category` there.
        refine: qid with a taxonomy, LKC in every partition and disclosure: the step of a specialization.
            `children`: a value is replaced by all its children at once. `child`: one child leaves at a time,
            and the others stay together as `other VALUE`; more than 64 children leave all at once. Default:
            `children` with score infogain or tdr, else `child`.
        weight: qid, LKC jobs of one holder, `method: top-down`: the score of a specialization of the column
            counts so many times. A column with `weight: 3` keeps more detail, at the cost of others. Default
            1.
        suppress: qid, LKC in every partition and disclosure: the list of the column's values. Each value is
            published as it is, or suppressed as `*`. This is short for a `taxonomy` of these values below `*`
            with `refine: child`.
        prefix: Like `taxonomy`, and short for a tree of codes by their first characters, such as ZIP codes.
        order: Like `taxonomy`, and short for a tree of ordered values in neighbouring groups.
        icd: Like `taxonomy`, and short for a tree of ICD codes by chapter, block and category.
        ranges: Like `numeric`, and short for a grid by its edges, ascending: [0, 18, 40, 65, 120] has cells
            from [0,18) to [65,120).
        numeric: qid: domain and grid of a numeric column, at most 4,096 cells in sealed horizontal jobs and
            1,024 in strict ones. sensitive in LKC jobs: the cells of the grid are the column's values, and
            are published.
        dates: qid: domain and cells of a column of dates. Dates are read, cut and missing like numbers.
        set: qid, dp: a set-valued column.
        missing: The meaning of `?` and of an empty cell. Categorical qid: `leaf` (default) keeps the row
            under a leaf `?`; `drop` drops the row. Numeric qid: `drop` (default) drops the row; `leaf`, in
            LKC jobs, keeps the row under `?`, next to the highest numbers: `[60,100) or ?`. Class and
            sensitive: an error, unless `drop` is given; sensitive also takes `leaf`, which makes `?` one more
            value, published, and protected only if `values` names it. DP, single and horizontal: a row
            without a class is dropped, and sensitive columns are like categorical ones. DP, vertical: no row
            is dropped. A cell that is no number counts in the lowest cell of the grid. A class that is
            missing or outside the domain counts as `other`, else as the first value of the domain. `method:
            synthetic`: no row is dropped. `cell` (default) makes a value of its own: `?`, or an empty cell
            instead of a number. `never` leaves no missing cell in the synthetic table: a missing cell counts
            as `other`, else as the first value of the domain. A class is treated as in vertical jobs. For
            rows without an id see `max_records_per_person`.
        other: dp: the value that replaces every value outside the domain; with `missing: never` it replaces
            missing cells, too. Default: a value outside is treated as missing. A row with a class outside is
            dropped; in vertical jobs and with `method: synthetic` its class counts as the first value of the
            domain. A number outside moves to the nearest cell.
        outside: LKC jobs of one holder: `missing` treats a value outside the domain like a missing cell.
            Default: such a value is an error. In DP jobs see `other`.
        from_data: dp: `true` says that the domain was taken from the table, as `coordinator draft` does. No
            run starts then, because DP does not protect the domain. Replace the domain by a public one and
            remove the key, or write `confirmed` if the domain is public knowledge.
        domain: class, sensitive, location, items: all values, in canonical order; required in joint jobs.
            party: all parties, with rows or without; required.
        values: sensitive: the protected values; default all. With `level` these are groups, with a grid these
            are cells, as [lo,hi).
        C: sensitive: the C of this column; default the C of the model.
        at_most: sensitive, LKC with `ruled_out` or `diversity`: the most values of this column among those
            that are ruled out and inferred together; default no limit. A column with few values needs the
            key. 0 takes the column out of both. In all modes.
        distance: sensitive, LKC of one holder with `t`: the distance of two values. `equal` (default): all
            values are equally far apart. `ordered`, for `numeric`: the number of cells between them. No
            distance becomes greater by `ordered`.
        shared_by: class, vertical: the party that holds the class, and tells the others the class of every
            record.
        publish_as_is: plain, class: `true` consents to publish a column that tells of single people, by its
            name (id, name, email, ...) or because most rows have a value of their own. Nothing protects the
            column.
        normalize: id: how ids are changed before they are compared, besides Unicode NFKC and blanks around.
            Public, and the same for all parties.
        spellings: `distinct`: values that differ in case, blanks, invisible characters or letters that look
            alike are different values. Unset: two values that differ in this way are an error, in the table
            and in the job.
        domain_file: location, items: instead of `domain`, the path of a text file with one value a line,
            relative to the job file.
        clock: time: the cells of ISO local times (2026-01-31T14:05).
        relative: time: `true` counts time from the first reading of each record; default false. Joint jobs
            usually take it: hours since admission.
        separator: items: the text between the values of a cell; default `;`.
        """

class Numeric(jobs.file.columns.NumericDomain):
    def __init__(
        self,
        *,
        min: Number,
        max: Number,
        step: Number | None = ...,
        cuts: Iterable[Number] | None = ...,
    ) -> None:
        """Domain of numbers, and its cut points.

        min: Smallest value of the domain.
        max: First value above the domain.
        step: Cut points at min+step, min+2·step, ...
        cuts: Explicit cut points, ascending.
        """

class Dates(jobs.file.columns.DateDomain):
    def __init__(
        self,
        *,
        start: str,
        to: str,
        step: str | None = ...,
        levels: Iterable[Literal['decade', 'year', 'quarter', 'month', 'week', 'day']] | None = ...,
        form: str | None = ...,
        time: Literal['cut', 'keep'] | None = ...,
    ) -> None:
        """Domain of days, and its cells. `start` is the key `from`, a word that Python reserves.

        start: First day of the domain, e.g. 2024-01-01.
        to: First day after the domain, e.g. 2025-01-01.
        step: Length of a cell: a whole number with d (days), mo (months) or y (years), e.g. 7d, 1mo or 10y;
            or a unit of the calendar, on whose first day `from` lies: day, week (from a Monday), month,
            quarter, year. The last cell may be shorter. A column has either `step` or `levels`.
        levels: LKC jobs, instead of `step`: units of the calendar, e.g. [year, month]. A date is published as
            the day, week, month, quarter, year or decade that holds it: 2024-03-31, 2024-W13, 2024-03,
            2024-Q1, 2024, 2020s. ISO weeks lie in no month: with `week`, the only other level is `day`.
        form: The form of dates in table and release: YYYY, MM and DD, with `-`, `.`, `/` or nothing between
            them, e.g. DD.MM.YYYY or YYYYMMDD. Default YYYY-MM-DD, which is always read, too. A time of day
            may follow, as in 2024-01-31 10:00:00.
        time: The time of day. `cut` (default): left out. `keep`: synthetic tables have a time of day, too.
            Cells are whole days in either case.
        """

class Clock(jobs.file.columns.Clock):
    def __init__(
        self,
        *,
        start: str | None = ...,
        to: str,
        step: str,
        fold: str | None = ...,
    ) -> None:
        """Domain of local times, and its cells. `start` is the key `from`, a word that Python reserves.

        start: First moment of the domain, e.g. 2026-01-01T00:00. With `relative` the domain begins at 0, and
            this key is refused.
        to: First moment after the domain. With `relative`: the length of time after a record's first reading,
            e.g. 14d.
        step: Length of a cell: a whole number with s, m, h or d, e.g. 15m or 1h.
        fold: Period after which times repeat, counted from `from`: with `1d` cells are times of day. Refused
            with `relative`.
        """

class Set(jobs.file.columns.SetOf):
    def __init__(
        self,
        *,
        taxonomy: str | Mapping[str, Any] | Sequence[Text],
        separator: str | None = ...,
        max_items: int | None = ...,
    ) -> None:
        """Column whose cells hold several values.

        taxonomy: Path of an ARX hierarchy CSV, relative to the job file, or the tree itself.
        separator: The text between the values of a cell.
        max_items: The most values of a cell. Of a cell with more different values the first ones count.
            Unset: no bound, and many more empty combinations of values that need noise.
        """

class Normalize(jobs.file.columns.IdNormalization):
    def __init__(
        self,
        *,
        ignore_case: bool | None = ...,
        strip_prefix: str | None = ...,
        digits: bool | None = ...,
        zfill: int | None = ...,
    ) -> None:
        """Form of ids.

        ignore_case: `true`: upper and lower case are the same; default false.
        strip_prefix: A text that is left out at the beginning of an id, if the id has it: CUST-.
        digits: `true`: only the digits of an id count; default false.
        zfill: Zeros are put in front of an id up to this number of characters.
        """

class Prefix(jobs.file.makers.Prefix):
    def __init__(
        self,
        *,
        values: Iterable[Text],
        lengths: Iterable[int],
    ) -> None:
        """Tree of codes by their first characters.

        values: All values of the column, each once.
        lengths: Numbers of characters of the groups, e.g. [1, 3]: groups by the first character, and in these
            groups by the first three. A value that is no longer than a group's prefix stands alone.
        """

class Order(jobs.file.makers.Order):
    def __init__(
        self,
        *,
        values: Iterable[Text],
        groups: int | None = ...,
    ) -> None:
        """Tree of ordered values in neighbouring groups.

        values: All values of the column, each once, in their order.
        groups: Number of neighbours that a group joins on each level.
        """

class Icd(jobs.file.makers.Icd):
    def __init__(
        self,
        *,
        values: Iterable[Text],
        version: Literal['10', '9'],
    ) -> None:
        """Tree of ICD codes.

        values: All values of the column, each once: codes such as I21.4 or 410.71.
        version: `10`: ICD-10, also with the digits of national versions. `9`: ICD-9-CM, with V and E codes.
        """

class Lkc(jobs.lkc.settings.LkcModel):
    def __init__(
        self,
        *,
        columns: Iterable[Text] | None = ...,
        L: int | Literal['all'],
        K: int,
        C: Number | Mapping[str, Number] | None = ...,
        distinct: Mapping[str, int] | None = ...,
        t: Number | Mapping[str, Number] | None = ...,
        ruled_out: int | None = ...,
        diversity: int | None = ...,
        colluders: int | None = ...,
        unit: Literal['record', 'person'] | None = ...,
        method: Literal['top-down', 'kd'] | None = ...,
        split: Literal['public', 'median'] | None = ...,
        score: Literal['added', 'infogain', 'tdr', 'groups', 'records'] | None = ...,
        contexts: Literal['cells', 'partitions'] | None = ...,
        withhold: Number | None = ...,
        link: Literal['all', 'none'] | Iterable[Iterable[Text]] | None = ...,
        release: Literal['rows', 'anatomy'] | None = ...,
        quasi: Literal['generalized', 'exact'] | None = ...,
        files: Literal['csv', 'parquet'] | None = ...,
        clusters: Clusters | Mapping[str, Any] | None = ...,
        insider: bool | None = ...,
        secure_sum: Literal['masked', 'ring'] | None = ...,
    ) -> None:
        """LKC-privacy toward one kind of knowledge.

        columns: The quasi-identifiers that an attacker may know; default all. Some requirement must name
            every column of `role: qid`. An attacker who knows columns of different requirements is not
            considered.
        L: The number of quasi-identifiers that an attacker may know, or `all`. A larger L costs utility.
        K: The fewest records that agree on any L columns. 1 means no bound on linkage.
        C: Largest share of a protected value in any group, for all sensitive columns or by column; 1 means no
            bound. Required with a sensitive column that has no C of its own.
        distinct: By sensitive column, the fewest different values of any group, protected or not (distinct
            l-diversity). In all modes. Costs utility.
        t: Largest distance of the values of a group from the values of the whole table (t-closeness),
            protected or not, for all sensitive columns or by column; 1 means no bound. The key `distance` of
            a column says how far values are apart. One holder, `method: top-down` or `kd`. Costs much
            utility.
        ruled_out: 1: C also holds for an attacker who rules out any one sensitive value of a person, of any
            column, and looks at the records that are left; no records left is allowed. Default 0. In vertical
            jobs the columns are those of one holder, with at most 256 combinations of values. Costs utility.
        diversity: The l of l-diversity. An attacker who rules out any l - 2 sensitive values of a person, or
            fewer, does not find one protected value in all records that are left. 2: no group has one value
            in all records, and any C below 1 says more. Default: none. Single up to 6; leader, sealed, strict
            and vertical up to 3. In vertical jobs, above 2, the columns are those of one holder, with at most
            256 combinations of values. Costs utility.
        colluders: The requirement also holds for the rest of every group after any so many parties, or fewer,
            subtract their own rows; an empty rest is allowed. Less than the number of parties; default 0. For
            horizontal jobs with `disclosure: sealed`, and for one table with a column of `role: party`. Costs
            utility.
        unit: The unit of K. `record` (default). `person`: different people, whom the columns of `role: id`
            name, for a table with several records of a person. `person` is for one holder, and for horizontal
            jobs (`disclosure: sealed` or `leader`), where each party counts its own people. A vertical job
            has one record of each id. C counts records. Costs utility.
        method: The method of generalization. `top-down` (default): one cut of every column for the whole
            table, in every partition and disclosure. `kd`: every group of records is cut by itself
            (docs/semantics/kd.md, 11). It keeps far more detail where an attacker knows all quasi-
            identifiers. kd is for single and horizontal jobs (`disclosure: sealed`), one requirement with `L:
            all`, and goal general.
        split: method kd: the places of cuts. `public` (default): places that follow from published values, in
            all modes of kd. `median`: places that halve the records of a group, single only.
        score: method top-down: the score that compares candidates (docs/semantics/topdown.md §3.5, §10.6).
            goal classification: `added` (default), the information that a specialization adds to the present
            table; `infogain`, its information gain by itself, as published, and the default with `disclosure:
            strict`; `tdr`, information gain for each step of anonymity lost. goal general: `groups`
            (default), large groups first; `records`, values with most records first.
        contexts: score added: the groups that it counts in. `cells` (default): leaf partitions by sensitive
            values. `partitions`: leaf partitions alone (vertical: the only form, and default).
        withhold: single: the largest share of rows, at most 1/2, that may be left out, so that the other rows
            keep more detail. Rows are left out of groups that block a specialization
            (docs/semantics/topdown.md, 10.9). Only the number of these rows is published. Default 0. Refused
            in joint jobs, and with `plain` columns.
        link: The sensitive columns that the release links. `all` (default): the values of a record stand in
            one row. `none`: each column is a block by itself. Or blocks, as `[[diagnosis, drug], [outcome]]`,
            where a column that is not named is a block by itself. Every block is shuffled inside every group;
            the class stays with the quasi-identifiers. For single jobs, and for horizontal jobs of
            `disclosure: sealed` without `plain` columns, whose parties learn counts block by block. Other
            joint jobs count linked values, and refuse the key.
        release: The form of the release. `rows` (default): one row for every record. `anatomy`: `groups.csv`
            has the groups with their numbers of records; `sensitive.csv` has the counts of their sensitive
            values, block by block. So class and sensitive values are not linked. For single jobs, and for
            horizontal jobs without a class or with `link`. Refused in vertical jobs, and with `plain`
            columns.
        quasi: release anatomy, single: the quasi-identifiers in `groups.csv`. `generalized` (default): the
            common values of a group. `exact`: one row for every record, with its raw values and its group.
            Everybody then knows who is in the table, and K bounds inference only.
        files: The files of the table. `csv` (default): `anonymized.csv`, its rows in random order. `parquet`:
            the folder `anonymized` with parts of at most 16,777,216 rows, the rows in the order of their
            values, for tables larger than memory. Parquet is for single jobs and for `release: rows`.
            `coordinator verify` then needs `jointcut[duckdb]`.
        clusters: goal clusters: the model of the clusters, and the published column of clusters.
        insider: vertical: C, `distinct`, `ruled_out` and `diversity` also hold in every cell of the table:
            all generalized quasi-identifiers and the class. A party knows the cell of each person that it has
            matched. Default false. Usually costs utility.
        secure_sum: disclosure leader: the protocol of sums. `masked` (default) resists n-2 colluders; `ring`
            is as published.
        """

class Requirement(jobs.lkc.settings.Requirement):
    def __init__(
        self,
        *,
        columns: Iterable[Text] | None = ...,
        L: int | Literal['all'] | None = ...,
        K: int | None = ...,
        C: Number | Mapping[str, Number] | None = ...,
        distinct: Mapping[str, int] | None = ...,
        t: Number | Mapping[str, Number] | None = ...,
        ruled_out: int | None = ...,
        diversity: int | None = ...,
        colluders: int | None = ...,
    ) -> None:
        """Requirement of LKC-privacy among several.

        columns: The quasi-identifiers that an attacker may know; default all. Some requirement must name
            every column of `role: qid`. An attacker who knows columns of different requirements is not
            considered.
        L: The number of these columns that an attacker may know, or `all` (default). A larger L costs
            utility.
        K: The fewest records that agree on any L columns. 1 means no bound on linkage.
        C: Largest share of a protected value in any group, for all sensitive columns or by column; 1 means no
            bound. A column that is not named has its own C, else 1.
        distinct: By sensitive column, the fewest different values of any group, protected or not (distinct
            l-diversity). In all modes. Costs utility.
        t: Largest distance of the values of a group from the values of the whole table (t-closeness),
            protected or not, for all sensitive columns or by column; 1 means no bound. The key `distance` of
            a column says how far values are apart. One holder, `method: top-down` or `kd`. Costs much
            utility.
        ruled_out: 1: C also holds for an attacker who rules out any one sensitive value of a person, of any
            column, and looks at the records that are left; no records left is allowed. Default 0. In vertical
            jobs the columns are those of one holder, with at most 256 combinations of values. Costs utility.
        diversity: The l of l-diversity. An attacker who rules out any l - 2 sensitive values of a person, or
            fewer, does not find one protected value in all records that are left. 2: no group has one value
            in all records, and any C below 1 says more. Default: none. Single up to 6; leader, sealed, strict
            and vertical up to 3. In vertical jobs, above 2, the columns are those of one holder, with at most
            256 combinations of values. Costs utility.
        colluders: The requirement also holds for the rest of every group after any so many parties, or fewer,
            subtract their own rows; an empty rest is allowed. Less than the number of parties; default 0. For
            horizontal jobs with `disclosure: sealed`, and for one table with a column of `role: party`. Costs
            utility.
        """

class Requirements(jobs.lkc.settings.LkcList):
    def __init__(
        self,
        *,
        unit: Literal['record', 'person'] | None = ...,
        method: Literal['top-down', 'kd'] | None = ...,
        split: Literal['public', 'median'] | None = ...,
        score: Literal['added', 'infogain', 'tdr', 'groups', 'records'] | None = ...,
        contexts: Literal['cells', 'partitions'] | None = ...,
        withhold: Number | None = ...,
        link: Literal['all', 'none'] | Iterable[Iterable[Text]] | None = ...,
        release: Literal['rows', 'anatomy'] | None = ...,
        quasi: Literal['generalized', 'exact'] | None = ...,
        files: Literal['csv', 'parquet'] | None = ...,
        clusters: Clusters | Mapping[str, Any] | None = ...,
        insider: bool | None = ...,
        secure_sum: Literal['masked', 'ring'] | None = ...,
        requirements: Iterable[Requirement | Mapping[str, Any]],
    ) -> None:
        """LKC-privacy toward several kinds of knowledge.

        unit: The unit of K. `record` (default). `person`: different people, whom the columns of `role: id`
            name, for a table with several records of a person. `person` is for one holder, and for horizontal
            jobs (`disclosure: sealed` or `leader`), where each party counts its own people. A vertical job
            has one record of each id. C counts records. Costs utility.
        method: The method of generalization. `top-down` (default): one cut of every column for the whole
            table, in every partition and disclosure. `kd`: every group of records is cut by itself
            (docs/semantics/kd.md, 11). It keeps far more detail where an attacker knows all quasi-
            identifiers. kd is for single and horizontal jobs (`disclosure: sealed`), one requirement with `L:
            all`, and goal general.
        split: method kd: the places of cuts. `public` (default): places that follow from published values, in
            all modes of kd. `median`: places that halve the records of a group, single only.
        score: method top-down: the score that compares candidates (docs/semantics/topdown.md §3.5, §10.6).
            goal classification: `added` (default), the information that a specialization adds to the present
            table; `infogain`, its information gain by itself, as published, and the default with `disclosure:
            strict`; `tdr`, information gain for each step of anonymity lost. goal general: `groups`
            (default), large groups first; `records`, values with most records first.
        contexts: score added: the groups that it counts in. `cells` (default): leaf partitions by sensitive
            values. `partitions`: leaf partitions alone (vertical: the only form, and default).
        withhold: single: the largest share of rows, at most 1/2, that may be left out, so that the other rows
            keep more detail. Rows are left out of groups that block a specialization
            (docs/semantics/topdown.md, 10.9). Only the number of these rows is published. Default 0. Refused
            in joint jobs, and with `plain` columns.
        link: The sensitive columns that the release links. `all` (default): the values of a record stand in
            one row. `none`: each column is a block by itself. Or blocks, as `[[diagnosis, drug], [outcome]]`,
            where a column that is not named is a block by itself. Every block is shuffled inside every group;
            the class stays with the quasi-identifiers. For single jobs, and for horizontal jobs of
            `disclosure: sealed` without `plain` columns, whose parties learn counts block by block. Other
            joint jobs count linked values, and refuse the key.
        release: The form of the release. `rows` (default): one row for every record. `anatomy`: `groups.csv`
            has the groups with their numbers of records; `sensitive.csv` has the counts of their sensitive
            values, block by block. So class and sensitive values are not linked. For single jobs, and for
            horizontal jobs without a class or with `link`. Refused in vertical jobs, and with `plain`
            columns.
        quasi: release anatomy, single: the quasi-identifiers in `groups.csv`. `generalized` (default): the
            common values of a group. `exact`: one row for every record, with its raw values and its group.
            Everybody then knows who is in the table, and K bounds inference only.
        files: The files of the table. `csv` (default): `anonymized.csv`, its rows in random order. `parquet`:
            the folder `anonymized` with parts of at most 16,777,216 rows, the rows in the order of their
            values, for tables larger than memory. Parquet is for single jobs and for `release: rows`.
            `coordinator verify` then needs `jointcut[duckdb]`.
        clusters: goal clusters: the model of the clusters, and the published column of clusters.
        insider: vertical: C, `distinct`, `ruled_out` and `diversity` also hold in every cell of the table:
            all generalized quasi-identifiers and the class. A party knows the cell of each person that it has
            matched. Default false. Usually costs utility.
        secure_sum: disclosure leader: the protocol of sums. `masked` (default) resists n-2 colluders; `ring`
            is as published.
        requirements: What holds toward several kinds of knowledge, instead of L, K and C. In all modes.
        """

class Clusters(jobs.file.clusters.ClusterSettings):
    def __init__(
        self,
        *,
        model: str | Mapping[str, Any],
        publish: str | None = ...,
    ) -> None:
        """Settings of `goal: clusters`.

        model: Path of the file that `coordinator clusters fit` wrote, relative to the job file, or the
            content of the file. Everybody who sees the job sees the model.
        publish: Name of the published column with each record's cluster, from 0. single: optional.
            horizontal: required, because the parties see these counts. An attacker who knows a person's
            quasi-identifiers can compute the cluster.
        """

class Dp(jobs.dp.settings.DpModel):
    def __init__(
        self,
        *,
        method: Literal['diffgen'] | None = ...,
        epsilon: Number,
        specializations: int,
        utility: Literal['max', 'infogain'] | None = ...,
        noise: Literal['joint', 'each'] | None = ...,
        engine: Literal['circuit', 'thesis'] | None = ...,
        max_rows: int | None = ...,
        max_cells: int | None = ...,
        max_fanout: int | None = ...,
        max_records_per_person: int | None = ...,
        max_outside: Number | None = ...,
        accept_large_epsilon: bool | None = ...,
    ) -> None:
        """Differential privacy by DiffGen.

        method: The method. `diffgen` (default): chosen generalizations, and a noisy count of every cell.
            `synthetic`: rows drawn from noisy counts of columns and of pairs of columns, with other keys.
        epsilon: The whole privacy budget of the release, e.g. 1 or 0.5; from 0.001 to 100. Larger protects
            less; above 10 only with `accept_large_epsilon`.
        specializations: The number of specializations (h), fixed before any data is read. More
            specializations make smaller cells, in which the noise weighs more.
        utility: The utility that choices optimize. `max` (default) needs half the noise. `infogain` is
            refused in horizontal jobs.
        noise: Joint: the noise of counts. `joint` (default): one noise that nobody knows, drawn inside a
            circuit. `each`: leader and deputy add one noise each, which is less accurate and faster.
        engine: Joint: the protocols. `circuit` (default), or `thesis`: the published ones, for two parties
            and tables of some tens of rows.
        max_rows: Public bound on the rows of one holder; in joint jobs at least the bound in each owner's
            policy. A larger bound makes circuits wider, and with `infogain` adds noise.
        max_cells: Public limit on the cells of the release. A joint job does not make a specialization that
            would exceed the limit, and is refused if it must exceed the limit. A single holder then lists
            only cells above a threshold.
        max_fanout: The most children of a node of a set-valued column that is specialized.
        max_records_per_person: The number m of records of a person that each holder keeps, chosen at random.
            All noise is m times as large, so that epsilon is per person and holder. For single and horizontal
            jobs (engine circuit) with a column of `role: id`; ids are compared without blanks around them,
            and rows without an id are left out. Default: epsilon is per record. A vertical job has one record
            of each id.
        max_outside: Single holder: the largest share of a column's cells that may be outside its domain, from
            0 to 1; default 1/2. A table with more is refused before anything is charged. Missing cells are
            not counted. 1 refuses no table.
        accept_large_epsilon: `true` consents to an epsilon above 10, which protects very little.
        """

class Synthetic(jobs.dp.settings.SyntheticModel):
    def __init__(
        self,
        *,
        epsilon: Number,
        edges: int | Literal['auto'] | None = ...,
        max_rows: int | None = ...,
        max_records_per_person: int | None = ...,
        max_outside: Number | None = ...,
        order: Iterable[Text] | None = ...,
        accept_large_epsilon: bool | None = ...,
    ) -> None:
        """Differential privacy by synthetic rows.

        epsilon: The whole privacy budget of the release, e.g. 1 or 0.5; from 0.001 to 100. Larger protects
            less; above 10 only with `accept_large_epsilon`.
        edges: The number of pairs of columns that are measured together, at most one less than the columns
            besides the class. More pairs keep more relations between columns, in counts with more noise.
            `auto` (default): chosen by epsilon and the noisy number of rows.
        max_rows: Public bound on the rows of one holder; in joint jobs at least the bound in each owner's
            policy. A larger bound makes circuits wider.
        max_records_per_person: The number m of records of a person that each holder keeps, chosen at random.
            All noise is m times as large, so that epsilon is per person and holder. For single and horizontal
            jobs with a column of `role: id`; ids are compared without blanks around them, and rows without an
            id are left out. Default: epsilon is per record. A vertical job has one record of each id.
        max_outside: Single holder: the largest share of a column's cells that may be outside its domain, from
            0 to 1; default 1/2. A table with more is refused before anything is charged. Missing cells are
            not counted. 1 refuses no table.
        order: Columns of numbers or dates in their order, such as [admitted, discharged]: no drawn row has a
            later column below an earlier one. Rows that break the order are mended after the draw, which
            costs no epsilon; the report counts these rows.
        accept_large_epsilon: `true` consents to an epsilon above 10, which protects very little.
        """

class Sequences(jobs.sequences.settings.SequencesModel):
    def __init__(
        self,
        *,
        L: int,
        K: int,
        C: Number | Mapping[str, Number] | None = ...,
        suppress: Literal['local', 'global'] | None = ...,
        cost: Literal['instances', 'frequent'] | None = ...,
        frequent: Number | None = ...,
        places: Literal['several', 'first'] | None = ...,
        stays: Literal['keep', 'arrivals'] | None = ...,
        exclusion: Literal['refuse', 'report', 'repair'] | None = ...,
        max_items: int | None = ...,
        max_candidates: int | None = ...,
    ) -> None:
        """LKC-privacy of sequences.

        L: The number of items of a record that an attacker may know: a place and its time, or a value of a
            set. A larger L costs utility and time.
        K: The fewest records with any sequence of 1 to L items of the release. 1 means no bound on linkage.
        C: Largest share of a protected value among the records with a sequence, for all sensitive columns or
            by column; 1 means no bound. Required with a sensitive column that has no C of its own.
        suppress: The way of suppression. `local` (default): single records lose an item. `global`: all
            records lose the item, so the items that are left occur as often as before; single only, and loses
            far more.
        cost: suppress global: the cost of an item. `instances` (default): the records that have it.
            `frequent`: the maximal frequent sequences with it.
        frequent: The share of records that makes a sequence frequent; for metrics, and `cost: frequent`.
        places: The locations that a record keeps in one time cell. `several` (default): all. `first`: the
            earliest.
        stays: The readings of a record that stays at a location. `keep` (default): all. `arrivals`: a reading
            is dropped if the record has the same location in its time cell before. This protects less:
            dropped readings are not looked at.
        exclusion: The action where a reader can exclude records: a reader who knows up to L readings of a
            person, and that nobody is at two places at once, is left with fewer than K records or a share
            above C. `refuse` (default; single): the job ends. `report`: the report says it. `repair`
            (single): further records lose items. `report` and `repair` refuse a table with a record at two
            places in one time cell, which cannot be tested. Joint: `report`, in each owner's own-
            account.json.
        max_items: The most items of a record; a table with a longer record is refused. Work grows as the
            number of subsets of L items.
        max_candidates: The most sequences of one size; a run that needs more ends before it counts them.
        """

class Party(jobs.file.job.PartyEntry):
    def __init__(
        self,
        *,
        address: str | None = ...,
        columns: Iterable[Text] | None = ...,
    ) -> None:
        """Data holder of a joint job.

        address: host:port of this party, for others whose own configuration does not say it. Optional where
            every configuration says it.
        columns: vertical: the columns that this party contributes, besides id and class. Each column has one
            party.
        """

class Table(jobs.file.job.TableFile):
    def __init__(
        self,
        *,
        missing: Iterable[Text] | None = ...,
        true: Iterable[Text] | None = ...,
        false: Iterable[Text] | None = ...,
        decimal: Literal['.', ','] | None = ...,
        rename: Mapping[str, str] | None = ...,
        map: Mapping[str, Mapping[str, str]] | None = ...,
        dates: Mapping[str, str] | None = ...,
        delimiter: str | None = ...,
        quote: str | None = ...,
        encoding: str | None = ...,
        path: str,
        sheet: str | None = ...,
    ) -> None:
        """Table in a file, with facts for its reader.

        missing: Texts that mean a missing cell in every column, besides an empty cell and `?`: NA, -9, ...
        true: Texts that mean the value `true`: TRUE, 1, yes, ...
        false: Texts that mean the value `false`.
        decimal: The sign before the fraction of a number. Unset: found in the head of a CSV, with a note.
        rename: The job's name of a column, by its name in the table: {kunde: customer}.
        map: The job's values, by column (its name in the job) and value in the table: {sex: {1: M, 2: F}}.
            Other values stay.
        dates: The form of the dates in the table, by column (its name in the job), where the job has another
            form: {admitted: DD.MM.YYYY}.
        delimiter: csv: the separator, one ASCII character but no quote. Unset: found in the first lines (a
            comma, `;`, a tab or `|`), with a note.
        quote: csv: the sign around values that hold the separator.
        encoding: csv: the encoding of the text, such as utf-8, cp1252 or utf-16. Unset: UTF-8 or UTF-16; a
            text that is neither is read as cp1252 (Windows and Latin-1), with a note.
        path: The file, relative to the job file. The end of its name tells its kind.
        sheet: xlsx: the name of the sheet; default the first.
        """

MODELS: dict[type[BaseModel], str]
