"""`coordinator`: the command line of who asks for a joint table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from anonymize.noisy_table import most_cells
from coordinator.dp_run import NO_OPTIONS, UNLIMITED, DpOptions
from coordinator.run import run_alone, run_in_process, run_joint
from coordinator.simulate import run_simulated, source_of, sources_of
from coordinator.verify import verify_folder
from party import __version__
from party.bundle import Bundle, load_bundle
from party.config import CoordinatorConfig, load_config
from party.console import format_option, run_command, say, set_up_logs
from party.dp_release import COUNTS
from party.errors import ConfigError
from party.job import positive
from party.peer_files import CERTIFICATE, set_up
from party.peers_cli import peers_group
from party.release_file import REPORT, TABLE

DEFAULT_CONFIG = Path("coordinator.yaml")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

_TEMPLATE = """\
# Configuration of a Jointcut coordinator. Relative paths are relative to this file.
version: 1
name: {name}
tls:
  certificate: tls/certificate.pem   # send this file to every party, and its fingerprint on another channel
  key: tls/key.pem                   # never leaves this machine
peers: {{}}                            # coordinator peers add NAME CERTIFICATE [--address HOST:PORT]
"""

_path = click.Path(path_type=Path)
config_option = click.option(
    "--config", "-c", type=_path, default=DEFAULT_CONFIG, show_default=True, help="Configuration file."
)
out_option = click.option("--out", type=_path, required=True, help="New folder for table and report.")
job_argument = click.argument("job", type=_path)
as_records_option = click.option(
    "--as-records", is_flag=True, help="DP: write rows, too, as many as the counts say after Norm-Sub."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def app() -> None:
    """Ask data holders for one anonymous table."""


@app.command()
@click.option("--name", default="coordinator", show_default=True, help="Our name, as parties will know us.")
@click.option("--dir", "folder", type=_path, default=Path(), help="Folder to set up.")
@format_option
def init(name: str, folder: Path) -> None:
    """Make an identity and a configuration."""
    text = _TEMPLATE.format(name=json.dumps(name))
    found = set_up(folder, name, folder / DEFAULT_CONFIG, CoordinatorConfig, text)
    say(
        f"{name} is set up in {folder}\n"
        f"  configuration  {folder / DEFAULT_CONFIG}\n"
        f"  certificate    {folder / CERTIFICATE}  (send it to every party)\n"
        f"  fingerprint    {found}  (tell it to every party on another channel)",
        {"name": name, "certificate": str(folder / CERTIFICATE), "fingerprint": found},
    )


app.add_command(peers_group(CoordinatorConfig, config_option))


@app.command()
@job_argument
@format_option
def validate(job: Path) -> None:
    """Check a job file and its taxonomies; nothing is sent and no data is read."""
    bundle = load_bundle(job)
    fields = _describe(bundle)
    say(
        f"{job} is valid\n" + "\n".join(f"  {key:12} {_line(value)}" for key, value in fields.items()),
        fields,
    )


def _line(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _describe(bundle: Bundle) -> dict[str, Any]:
    job = bundle.job
    fields = {
        "job": job.name,
        "job_sha256": bundle.digest.hex(),
        "partition": job.partition,
        "requirement": _requirement(bundle),
        "goal": job.goal,
        "qid": list(job.names("qid")),
        "sensitive": list(job.names("sensitive")),
        "class": list(job.names("class")),
        "plain": list(job.names("plain")),
        "parties": list(job.roster),
    }
    if job.partition == "vertical":
        fields["matched by"] = list(job.names("id"))
        fields |= {party: list(job.contributed_by(party)) for party in job.roster}
    return {key: value for key, value in fields.items() if value != []}


def _requirement(bundle: Bundle) -> str:
    if bundle.job.model.dp is not None:
        model = bundle.job.model.dp
        most = "" if any(c.sets for c in bundle.schema().qid) else f", at most {_cells(bundle)} cells"
        return f"epsilon={model.epsilon} specializations={model.specializations}{most}"
    lkc = bundle.lkc
    return f"L={lkc.L} K={lkc.K} C={lkc.C}"


def _cells(bundle: Bundle) -> int:
    most = most_cells(bundle.schema(), bundle.dp.specializations)
    return most if bundle.job.partition == "single" else min(most, bundle.dp.max_cells)


@app.command()
@job_argument
@out_option
@as_records_option
@click.option(
    "--budget", help="DP, single holder: the most epsilon that all releases of the table may spend."
)
@click.option(
    "--ledger",
    type=_path,
    help="Single holder: the privacy ledger; default beside the table. LKC: begun only if named.",
)
@config_option
@format_option
def run(
    job: Path, out: Path, as_records: bool, budget: str | None, ledger: Path | None, config: Path
) -> None:
    """Run a job: alone on its own table, or with its parties' daemons."""
    set_up_logs("WARNING")
    bundle = load_bundle(job)
    options = DpOptions(as_records, _budget(budget), ledger)
    if bundle.job.partition == "single":
        assert bundle.job.data is not None
        run_alone(bundle, source_of(job.parent / bundle.job.data), out, options)
    else:
        run_joint(bundle, load_config(CoordinatorConfig, config), out, options)
    _show_result(out)


def _budget(text: str | None) -> Fraction:
    try:
        return UNLIMITED if text is None else positive(text)
    except ValueError as error:
        raise ConfigError("usage", f"--budget {text}: {error}") from error


@app.command()
@job_argument
@click.option("--data", "tables", multiple=True, metavar="NAME=FILE", help="A party's table; once per party.")
@out_option
@click.option("--in-process", is_flag=True, help="All parties in this process, without daemons and network.")
@as_records_option
@format_option
def simulate(job: Path, tables: tuple[str, ...], out: Path, in_process: bool, as_records: bool) -> None:
    """Run a joint job with all its parties on this machine: real daemons, throw-away certificates.

    Privacy ledgers are thrown away, too: what a simulation of a DP job spends is on nobody's account.
    """
    set_up_logs("WARNING")
    _simulate(job, tables, out, in_process, DpOptions(as_records))
    _show_result(out)


def _simulate(
    job: Path,
    tables: tuple[str, ...],
    out: Path,
    in_process: bool,
    options: DpOptions = NO_OPTIONS,
) -> None:
    bundle = load_bundle(job)
    if bundle.job.partition == "single":
        raise ConfigError("usage", "the job has a single holder", remedy="coordinator run JOB --out DIR")
    given = {}
    for entry in tables:
        name, found, file = entry.partition("=")
        if not found or not file:
            raise ConfigError("usage", f"--data {entry}: write NAME=FILE")
        if name in given:
            raise ConfigError("usage", f"--data {name} is given twice")
        given[name] = Path(file)
    sources = sources_of(bundle, given)
    (run_in_process if in_process else run_simulated)(bundle, sources, out, options)


@app.command()
@click.option("--out", type=_path, help="New folder for table and report; default a new one under out/.")
@format_option
def demo(out: Path | None) -> None:
    """Three hospitals on this machine make one anonymous table of their blood transfusions."""
    set_up_logs("WARNING")
    folder = EXAMPLES / "transfusion"
    if not folder.is_dir():
        raise ConfigError("file-missing", f"no examples at {folder}", remedy="run the demo from a checkout")
    out = out or Path("out") / f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    hospitals = tuple(f"hospital-{x}={folder / f'hospital-{x}.csv'}" for x in "abc")
    _simulate(folder / "job.yaml", hospitals, out, in_process=False)
    _show_result(out, rows=6)


@app.command()
@job_argument
@click.argument("out", type=_path)
@format_option
def verify(job: Path, out: Path) -> None:
    """Check a released table (a result folder, or a CSV) against the job's requirement, from its rows alone."""
    checked = verify_folder(load_bundle(job), out)
    say(checked.text, checked.fields)


def _show_result(out: Path, rows: int = 0) -> None:
    """Say what came out and where it is."""
    report = json.loads((out / REPORT).read_text(encoding="utf-8"))
    # In vertical runs discarded candidates are known to their owners only.
    # DP runs discard none.
    silent = report["partition"] == "vertical" or "privacy" in report
    discarded = "" if silent else f", {len(report['discarded'])} discarded"
    lines = [
        f"{report['job']}: {report['rows']} rows, {len(report['specializations'])} specializations{discarded}; "
        "verified",
        *_privacy_lines(report.get("privacy")),
        "cut:",
        *(f"  {name:16} {_cut_line(labels)}" for name, labels in report["cut"].items()),
    ]
    if rows:
        with (out / TABLE).open(encoding="utf-8") as file:
            lines += [
                "rows:",
                *(f"  {line.rstrip()}" for _, line in zip(range(rows + 1), file, strict=False)),
            ]
    made = [name for name in (COUNTS, TABLE) if (out / name).is_file()]
    lines += [*(f"table:  {out / name}" for name in made), f"report: {out / REPORT}"]
    say("\n".join(lines), {"out": str(out), "rows": report["rows"], "job_sha256": report["job_sha256"]})


def _privacy_lines(privacy: Mapping[str, Any] | None) -> list[str]:
    if privacy is None:
        return []
    lines = [f"epsilon {privacy['epsilon']}, delta {privacy['delta']}, per record"]
    return lines + [f"  {words}" for words in privacy["guarantees"]]


def _cut_line(labels: list[str], most: int = 8) -> str:
    shown = "  ".join(labels[:most])
    return shown if len(labels) <= most else f"{shown}  … ({len(labels)} values)"


def main() -> None:
    """The console script."""
    run_command(app, "coordinator")
