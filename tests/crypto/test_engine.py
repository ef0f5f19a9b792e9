"""Which engine is in force, and that the reference is the default."""

from __future__ import annotations

import subprocess
import sys

from crypto import engine


def test_whoever_waits_for_the_first_need_hears_of_it_once_and_before() -> None:
    heard: list[str] = []
    other = engine.Reference()

    def act() -> None:
        heard.append("needed")
        engine.use(other)

    engine.once_needed(act)
    assert heard == []
    assert engine.in_force() is other
    assert engine.in_force() is other
    assert heard == ["needed"]


def test_an_engine_is_in_force_for_what_begins_then() -> None:
    other = engine.Reference()
    engine.use(other)
    assert engine.in_force() is other


def test_without_a_choice_it_is_the_reference_and_no_compiler_is_imported() -> None:
    code = (
        "import sys, crypto.two_party; from crypto import engine;"
        "assert type(engine.in_force()) is engine.Reference; assert 'llvmlite' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
