"""The example of OMOP: its README, to the letter, against a real PostgreSQL server."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import examples.omop.generate as generator
from jobs.loading import load_task
from jobs.release.csv import REPORT, TABLE
from tests.support.bare import bare
from tests.support.network import GUARD_S, call, command
from tests.support.postgres import SUPERUSER, Server, serving

EXAMPLE = Path(generator.__file__).parent
README = (EXAMPLE / "README.md").read_text()
JOBS = ("persons", "visits", "conditions")
VARIABLE = "JOINTCUT_DSN"


def blocks(language: str) -> list[str]:
    """Return the code blocks of README in a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@dataclass(frozen=True)
class Done:
    """End of README's commands. folder: the copy of the example in which they ran."""

    server: Server
    folder: Path
    out: str

    def rows(self, job: str) -> list[dict[str, str]]:
        """Return a released table."""
        with (self.folder / job / TABLE).open(newline="") as file:
            return list(csv.DictReader(file))

    def sql(self, *statements: str, role: str = SUPERUSER, database: str = "clinic") -> str:
        """Run statements; return what psql prints, or the error."""
        words = [word for each in statements for word in ("-c", each)]
        psql = [str(self.server.binaries / "psql"), "-qAtX", "-d", database, "-v", "ON_ERROR_STOP=1", *words]
        ended = subprocess.run(
            psql,
            env={**bare(), **reached(self.server), "PGUSER": role},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.stdout if ended.returncode == 0 else ended.stderr


def reached(server: Server) -> Mapping[str, str]:
    """Return the variables by which programs of PostgreSQL find a server."""
    path = f"{server.binaries}{os.pathsep}{os.environ['PATH']}"
    return {"PGHOST": str(server.folder), "PGUSER": SUPERUSER, "PATH": path}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Run the commands in a copy of the folder, in a shell where `coordinator` is ours."""
    folder = tmp_path_factory.mktemp("omop") / "omop"
    shutil.copytree(EXAMPLE, folder)
    (commands,) = blocks("sh")
    ours = f'coordinator() {{ {shlex.join(command())} "$@"; }}'
    with serving() as server:
        ended = subprocess.run(
            ["/bin/sh", "-e"],
            input=f"{ours}\n{commands}",
            cwd=folder,
            env={**bare(), **reached(server)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        yield Done(server, folder, ended.stdout)


def test_the_tables_are_what_the_generator_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "HERE", tmp_path)
    generator.main()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(path.name for path in EXAMPLE.glob("*.csv"))
    for name in names:
        assert (tmp_path / name).read_bytes() == (EXAMPLE / name).read_bytes()


def test_readme_has_five_commands_and_shows_their_output(done: Done) -> None:
    (commands,) = blocks("sh")
    assert len([line for line in commands.splitlines() if not line.startswith("export")]) == 5
    (shown,) = blocks("text")
    left = iter(done.out.splitlines())
    assert all(line in left for line in shown.splitlines())


def test_releases_are_verified_from_the_files_alone(done: Done) -> None:
    for job in JOBS:
        ended = call("verify", done.folder / f"{job}.yaml", done.folder / job)
        assert ended.code == 0, ended.err


def test_the_server_and_the_views_are_named_in_no_release(done: Done) -> None:
    written = "".join(
        path.read_text(errors="replace")
        for job in JOBS
        for path in (done.folder / job).iterdir()
        if path.is_file()
    )
    assert not [
        word for word in (VARIABLE, "anonymizable", "postgres", done.server.folder.name) if word in written
    ]


def test_the_rows_of_the_page_are_a_person_and_the_release(done: Done) -> None:
    lines = re.findall(r"^\| (FEMALE .+) \|$", README, re.MULTILINE)
    before, after = ([cell.replace("\\|", "|") for cell in re.split(r" (?<!\\)\| ", line)] for line in lines)
    known = "sex, born, race, first_visit, visits, disease, protected"
    raw = done.sql(f"COPY (SELECT {known} FROM anonymizable.persons) TO STDOUT (FORMAT csv)")  # noqa: S608
    assert before in list(csv.reader(io.StringIO(raw)))
    assert after in [list(row.values()) for row in done.rows("persons")]


def test_the_tables_keep_detail(done: Done) -> None:
    """README says how many visits and diseases are left. No column of persons is all at its root."""
    kept = {job: json.loads((done.folder / job / REPORT).read_text()) for job in JOBS}
    counts = re.findall(r"keeps\s+([0-9,]+)\s+of\s+([0-9,]+)", README)
    asked = [
        "SELECT count(DISTINCT (visit, least(day - first, 1079) / 90, person)) FROM anonymizable.visits "
        "JOIN (SELECT person, min(day) AS first FROM anonymizable.visits GROUP BY person) AS f USING (person)",
        "SELECT sum(cardinality(string_to_array(diseases, ';'))) FROM anonymizable.conditions",
    ]
    for (left, all_items), job, query in zip(counts, JOBS[1:], asked, strict=True):
        assert kept[job]["instances"] == int(left.replace(",", ""))
        assert int(done.sql(query)) == int(all_items.replace(",", ""))
    persons = done.rows("persons")
    roots = {"sex": "Any", "born": "[1925,2030)", "race": "Any", "visits": "[1,50)", "disease": "*"}
    for name, root in roots.items():
        assert sum(row[name] == root for row in persons) < len(persons) / 20


def test_no_view_shows_a_protected_disease_in_another_column(done: Done) -> None:
    task = load_task(EXAMPLE / "conditions.yaml")
    codes = set(task.job.columns["diseases"].domain)
    assert codes == {each.code for each in generator.DISEASES if not each.group}
    assert {row["protected"] for row in done.rows("persons")} == {"none", *generator.PROTECTED}
    shown = done.sql(
        "SELECT diseases FROM anonymizable.conditions", "SELECT disease FROM anonymizable.persons"
    )
    assert set(re.split(r"[;\n]", shown.strip())) == codes


def test_views_over_another_schema_and_a_role_that_reads_the_views_alone(done: Done) -> None:
    (statements,) = blocks("sql")

    def own(*asked: str, role: str = SUPERUSER) -> str:
        deadline = (
            time.monotonic() + GUARD_S
        )  # the role may have few connections, and each ends a little later
        while done.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'jointcut'").strip() != "0":
            assert time.monotonic() < deadline
        return done.sql(*asked, role=role, database="own")

    assert done.sql("CREATE DATABASE own TEMPLATE clinic") == ""
    assert own('ALTER SCHEMA omop RENAME TO "cdm 5"', "DROP SCHEMA anonymizable CASCADE") == ""
    made = [str(done.server.binaries / "psql"), "-qX", "-d", "own", "-v", "cdm=cdm 5", "-f", "views.sql"]
    subprocess.run(made, cwd=done.folder, env={**bare(), **reached(done.server)}, check=True)
    assert own(statements) == ""
    for job in JOBS:
        assert int(own(f"SELECT count(*) FROM anonymizable.{job}", role="jointcut")) >= generator.PERSONS  # noqa: S608
    assert "permission denied for schema" in own('SELECT * FROM "cdm 5".person', role="jointcut")
    assert "permission denied for view" in own("SELECT * FROM anonymizable.open_condition", role="jointcut")


def test_people_without_a_visit_or_an_open_disease_stay_in_the_view(done: Done) -> None:
    assert done.sql("CREATE DATABASE few TEMPLATE clinic") == ""
    shown = done.sql(
        "DELETE FROM omop.visit_occurrence WHERE person_id = 1",
        "DELETE FROM omop.condition_occurrence WHERE person_id = 2",
        "SELECT count(*), count(visits), count(disease) FROM anonymizable.persons",
        database="few",
    )
    assert shown == f"{generator.PERSONS}|{generator.PERSONS - 1}|{generator.PERSONS - 1}\n"


def test_a_misspelled_group_is_an_error(done: Done, tmp_path: Path) -> None:
    folder = tmp_path / "omop"
    shutil.copytree(EXAMPLE, folder)
    listed = folder / "protected.sql"
    listed.write_text(listed.read_text().replace("'Mental disorder'", "'Mental disorders'"))
    assert done.sql("CREATE DATABASE misspelled") == ""
    psql = [str(done.server.binaries / "psql"), "-qX", "-d", "misspelled", "-f", "load.sql"]
    ended = subprocess.run(
        psql,
        cwd=folder,
        env={**bare(), **reached(done.server)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert "protected.sql lists 'Mental disorders', which is no concept with descendants" in ended.stderr
