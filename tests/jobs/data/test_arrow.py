"""Arrow, imported when it is used, and alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bare import bare

ROOT = Path(__file__).resolve().parents[3]
GUARD_S = 120

RUNNING = """
import sys
from jointcut import isolated
sys.argv = ["", "coordinator", "run", *sys.argv[1:]]
try:
    isolated.run()
except SystemExit as ended:
    assert not ended.code
assert "pyarrow" in sys.modules
print("pandas" in sys.modules, end="; ")
import pandas
print(pandas.DataFrame({"a": [1]}).to_dict(), pandas.__spec__.loader is pandas.__loader__, end="; ")
series = pandas.Series([1.0, None]), pandas.Series(["a"], dtype="category")
print(*[sys.modules["pyarrow"].array(each).null_count for each in series], end="; ")
print(sys.modules["pyarrow"].types.is_dictionary(sys.modules["pyarrow"].array(series[1]).type))
"""


def test_a_run_imports_no_pandas_and_takes_it_from_nobody(tmp_path: Path) -> None:
    """Arrow, too, knows a pandas that is imported after a run: NaN is missing, categories stay categories."""
    job = ROOT / "examples" / "discharges" / "job.yaml"
    options = ["--out", str(tmp_path / "out"), "--ledger", str(tmp_path / "ledger.sqlite")]
    done = subprocess.run(
        [sys.executable, "-c", RUNNING, str(job), *options],
        capture_output=True,
        text=True,
        env=bare(),
        timeout=GUARD_S,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False; {'a': {0: 1}} True; 1 0; True"


AT_ONCE = """
import sys, threading
from jobs.data.arrow import pa
at_once = threading.Barrier(4)
def use():
    at_once.wait()
    pa.array([1])
def take():
    at_once.wait()
    import pandas
threads = [threading.Thread(target=work, daemon=True) for work in (use, use, use, [use, take][int(sys.argv[1])])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
print(*[thread.is_alive() for thread in threads])
import pandas
print(sys.modules["pyarrow"].array(pandas.Series([1.0, None])).null_count)
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("with_pandas", [1, 0])
def test_threads_that_use_arrow_at_once_do_not_wait_for_each_other(with_pandas: int) -> None:
    """Two parties in one process read their tables at once; a notebook may import pandas meanwhile."""
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, str(with_pandas)],
        capture_output=True,
        text=True,
        env=bare(),
        timeout=GUARD_S,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.split() == ["False"] * 4 + ["1"]
