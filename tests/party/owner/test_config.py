"""Configurations: safe defaults, unknown keys by name, paths relative to the file, nothing secret shown."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.data.sources import Csv, Parquet
from jobs.errors import ConfigError, Exit, IdentityError, Problem
from jobs.owner.ledger import ChargedJob
from party.owner.config import (
    CoordinatorConfig,
    PartyConfig,
    credentials_of,
    load_config,
    peers_of,
    usable_peer,
)
from party.owner.identity import is_loopback, make_credentials
from tests.support.configs import party_fields
from tests.support.identities import write_credentials


def written(folder: Path, fields: Any) -> Path:
    path = folder / "party.yaml"
    path.write_text(yaml.safe_dump(fields))
    return path


def loaded(folder: Path, **changes: Any) -> PartyConfig:
    return load_config(PartyConfig, written(folder, party_fields(**changes)))


def refused(folder: Path, **changes: Any) -> Problem:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, **changes)
    problem = caught.value.problem
    assert problem.exit_code == Exit.USAGE
    assert str(folder / "party.yaml") in problem.message
    return problem


def test_defaults_are_safe(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert is_loopback(config.listen)
    assert config.peers == {}
    policy = config.policy
    assert (policy.coordinators, policy.parties, policy.columns, policy.disclosure) == ((), (), {}, ())
    assert policy.min_k is None
    assert policy.max_c is None


def test_a_party_that_is_lost_is_noticed_well_within_ten_seconds(tmp_path: Path) -> None:
    timeouts = loaded(tmp_path).timeouts
    assert 3 * timeouts.keepalive_s <= 7
    assert timeouts.connect_s <= 8


def test_relative_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, party_fields(peers={"b": {"certificate": "peers/b.pem"}}))
    monkeypatch.chdir(tmp_path.parent)
    config = load_config(PartyConfig, path.relative_to(tmp_path.parent))
    assert config.source == Csv(tmp_path / "table.csv")
    assert config.tls.key == tmp_path / "tls" / "key.pem"
    assert config.peers["b"].certificate == tmp_path / "peers" / "b.pem"
    assert config.state_dir == tmp_path / "state"
    assert loaded(tmp_path, data={"parquet": {"path": "/data/t.parquet"}}).source == Parquet(
        Path("/data/t.parquet")
    )


def test_a_dropped_key_of_policies_is_to_be_left_out(tmp_path: Path) -> None:
    problem = refused(tmp_path, policy={"diversity_by_block": True})
    assert "unknown key `policy.diversity_by_block`: leave the key out; with `link`" in problem.message
    assert problem.advice(to_owner=False).startswith("leave the key out; with `link`")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"colour": "red"}, "colour"),
        ({"data": {"csv": {"path": "t", "sheet": 1}}}, "data.csv.sheet"),
        ({"policy": {"max_k": 3}}, "policy.max_k"),
        ({"timeouts": {"round": 3}}, "timeouts.round"),
        ({"tls": {"certificate": "c", "key": "k", "off": True}}, "tls.off"),
        ({"peers": {"b": {"certificate": "c", "adress": "h:1"}}}, "peers.b.adress"),
    ],
)
def test_unknown_keys_are_named(tmp_path: Path, changes: dict[str, Any], path: str) -> None:
    problem = refused(tmp_path, **changes)
    assert problem.error_id == "unknown-key"
    assert f"unknown key `{path}`" in problem.message


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"version": "2"}, "`version`"),
        ({"name": "a b"}, "`name`"),
        ({"name": None}, "`name` is missing"),
        ({"tls": None}, "`tls` is missing"),
        ({"data": None}, "`data` is missing"),
        ({"data": {}}, "give exactly one of"),
        ({"data": {"csv": {"path": "a"}, "parquet": {"path": "b"}}}, "give exactly one of"),
        ({"data": {"csv": {"path": "a", "delimiter": ""}}}, "`data.csv.delimiter`"),
        ({"data": {"csv": {"path": "a", "delimiter": ";;"}}}, "`data.csv.delimiter`"),
        ({"data": {"csv": {"path": "a", "delimiter": '"'}}}, "`data.csv.delimiter`"),
        ({"data": {"csv": {"path": "a", "delimiter": "\n"}}}, "`data.csv.delimiter`"),
        ({"data": {"csv": {"path": "a", "delimiter": "§"}}}, "`data.csv.delimiter`"),
        ({"listen": "7401"}, "`listen`: write host:port"),
        ({"listen": "0.0.0.0:77777"}, "`listen`: write host:port"),
        ({"peers": {"b": {"certificate": "c", "address": "nowhere"}}}, "`peers.b.address`"),
        ({"peers": {"hospital-a": {"certificate": "c"}}}, "must not hold our own name"),
        ({"timeouts": {"connect_s": "0"}}, "`timeouts.connect_s`"),
        ({"timeouts": {"round_s": "-1"}}, "`timeouts.round_s`"),
        ({"timeouts": {"round_s": "nan"}}, "`timeouts.round_s`"),
        ({"timeouts": {"keepalive_s": "0.1"}}, "`timeouts.keepalive_s`"),
        ({"policy": {"min_k": "0"}}, "`policy.min_k`"),
        ({"policy": {"max_c": "2"}}, "`policy.max_c`"),
        ({"policy": {"columns": {"age": ["everything"]}}}, "policy.columns.age"),
        ({"policy": {"disclosure": ["all"]}}, "policy.disclosure"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    problem = refused(tmp_path, **changes)
    assert problem.error_id == "config-invalid"
    assert says in problem.message


@pytest.mark.parametrize("fields", [[], "text", None])
def test_a_configuration_is_a_mapping(tmp_path: Path, fields: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(CoordinatorConfig, written(tmp_path, fields))
    assert "expected keys and values" in caught.value.problem.message


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(PartyConfig, tmp_path / "absent.yaml")
    assert caught.value.problem.error_id == "file-missing"


def test_a_coordinator_has_no_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(CoordinatorConfig, written(tmp_path, party_fields()))
    assert "unknown key `data`" in caught.value.problem.message
    config = load_config(CoordinatorConfig, written(tmp_path, party_fields(data=None)))
    assert config.name == "hospital-a"


def test_the_policy_is_exact(tmp_path: Path) -> None:
    assert loaded(tmp_path, policy={"max_c": "1/3", "min_k": "20"}).policy.max_c == Fraction(1, 3)


def test_the_place_of_the_key_is_no_part_of_the_repr(tmp_path: Path) -> None:
    config = loaded(tmp_path, tls={"certificate": "c.pem", "key": "very-private.pem"})
    assert "very-private" not in repr(config)
    assert "c.pem" in repr(config)


def test_a_configuration_cannot_be_changed(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        config.listen = "0.0.0.0:1"


def test_the_schema_is_closed_and_describes_every_key() -> None:
    for model in (PartyConfig, CoordinatorConfig):
        schema = model.model_json_schema()
        for part in (schema, *schema["$defs"].values()):
            assert part["additionalProperties"] is False
            for name, field in part["properties"].items():
                assert field.get("description"), f"{part['title']}.{name} has no description"


def test_identities_are_loaded_and_compared(tmp_path: Path) -> None:
    own, b = make_credentials("hospital-a"), make_credentials("b")
    write_credentials(tmp_path / "tls", own)
    write_credentials(tmp_path / "b", b)
    config = loaded(tmp_path, peers={"b": {"certificate": "b/certificate.pem", "address": "h:1"}})
    assert credentials_of(config) == own
    assert {name: peer.address for name, peer in peers_of(config).items()} == {"b": "h:1"}
    wrong = loaded(tmp_path, peers={"c": {"certificate": "b/certificate.pem"}})
    assert peers_of(wrong) == {}
    with pytest.raises(IdentityError) as caught:
        usable_peer(wrong, "c")
    assert caught.value.problem.error_id == "identity-mismatch"
    assert caught.value.problem.message == "the certificate installed for c belongs to a different name"
    assert caught.value.problem.private == f"{tmp_path / 'b' / 'certificate.pem'} is for b"


@pytest.mark.parametrize("where", ["certificate", "key"])
def test_a_key_in_place_of_its_path_is_not_repeated(tmp_path: Path, where: str) -> None:
    pem = make_credentials("hospital-a").key.decode()
    for text in (pem, " ".join(pem.split("\n"))):
        with pytest.raises(ConfigError) as caught:
            loaded(tmp_path, tls={"certificate": "c.pem", "key": "k.pem", where: text})
        problem = caught.value.problem
        assert f"`tls.{where}`: write the path of a file, not the content" in problem.message
        assert pem.split("\n")[1] not in str(problem)


def test_a_link_to_the_table_is_no_new_budget(tmp_path: Path) -> None:
    """A charge through one path counts for every other that leads to the table; not for another name."""
    for name in ("table.csv", "other.csv"):
        (tmp_path / name).write_text("patient\n1\n")
    (tmp_path / "link.csv").symlink_to("table.csv")
    (tmp_path / "state").mkdir()
    loaded(tmp_path).ledger.reserve(ChargedJob("dp", "flu", bytes(32), Fraction(1)), Fraction(1))
    spent = {
        name: loaded(tmp_path, data={"csv": {"path": name}}).ledger.spent()
        for name in ("table.csv", "link.csv", "other.csv")
    }
    assert spent == {"table.csv": 1, "link.csv": 1, "other.csv": 0}
    assert loaded(tmp_path, data={"name": "mine", "csv": {"path": "link.csv"}}).ledger.spent() == 0
