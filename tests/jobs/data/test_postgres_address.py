"""Addresses of databases: what is read of them, and that no part of a password ends anywhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.data.postgres_address import read_address

NAME = "postgresql://db.example:5433/omop"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://reader:pw@db.example:5433/omop",
        "postgres://other@db.example:5433/omop?sslmode=verify-full&application_name=x",
        " postgresql:///omop?host=db.example&port=5433\n",
        "host=db.example port = 5433 dbname=omop user=reader password='a b\\'c'",
        "host='db.example' port=5433 dbname=omop",
    ],
)
def test_a_database_has_one_name_whoever_reads_it(text: str) -> None:
    assert read_address(text).name == NAME


def test_what_is_left_out_is_what_libpq_takes_for_it() -> None:
    assert read_address("postgresql://h/d").name == "postgresql://h:5432/d"
    assert read_address("postgresql://[::1]/d").name == "postgresql://[::1]:5432/d"
    assert read_address("postgresql://%2Fvar%2Frun/d").name == "postgresql:///var/run:5432/d"
    assert read_address("hostaddr=10.0.0.1 dbname=d").host == "10.0.0.1"


def test_every_part_reaches_the_driver() -> None:
    address = read_address("postgresql://a%40b:p%27%5C%2F%3A@h:1/d?sslmode=require")
    expected = {
        "user": "a@b",
        "password": "p'\\/:",
        "host": "h",
        "port": "1",
        "dbname": "d",
        "sslmode": "require",
    }
    assert address.parameters == expected
    assert "password='p\\'\\\\/:'" in address.conninfo()
    assert "connect_timeout='10'" in address.conninfo()
    assert "connect_timeout='2'" in read_address("host=h dbname=d connect_timeout=2").conninfo()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1))
def test_what_the_driver_is_handed_reads_as_the_same(password: str) -> None:
    quoted = password.replace("\\", "\\\\").replace("'", "\\'")
    address = read_address(f"host=h dbname=d password='{quoted}'")
    assert address.parameters["password"] == password
    again = read_address(address.conninfo())
    assert again.parameters["password"] == password
    assert again.name == address.name


SECRET = "hush"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:x@hush@h/d",
        "postgresql://u:hush/y@h/d",
        "postgresql://u:hush#y@h/d",
        "postgresql://u:hush?y@h/d",
        "postgresql://u:hush%zz@h/d",
        "postgresql://u:hush y@h/d",
        "postgresql://u:p@h:12hush/d",
        "postgresql://u:p@h/d?hush=1",
        "postgresql://u:p@h/d?host=a@hush",
        "postgresql://u:hush@/d",
        "postgresql://u:hush@h",
        "mysql://u:hush@h/d",
        "host=h dbname=d password=x hush",
        "host=h dbname=d password=x hush=1",
        "host=h dbname=d password='hush",
        "host=h dbname=d port=hush",
        "host=h dbname='d password=hush'",
        "host=h dbname=d options='-c hush'",
        "dbname=d password=hush",
        "hush",
    ],
)
def test_an_address_that_is_not_understood_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_address(text)
    assert SECRET not in str(caught.value)


def test_a_repr_has_no_password() -> None:
    assert SECRET not in repr(read_address(f"postgresql://u:{SECRET}@h/d"))
