"""Arrow, imported when it is used, and alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
