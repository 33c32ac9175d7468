"""A process whose environment hangs ends, whatever the environment holds."""

import subprocess
import sys

import pytest

PROCESS = """
import time, sys
from explorax.experiments.runners.distributed import watchdog
dog = watchdog.Watchdog(lambda reason: print(reason, flush=True), timeout=0.4)
for _ in range(3):
  with dog:
    time.sleep(0.1)
time.sleep(0.8)
print("well", flush=True)
with dog:
  {hang}
"""


@pytest.mark.parametrize(
  "hang, said",
  [
    ("time.sleep(60)", "its environment did not answer for"),
    # In C, with Python's lock: no thread can run.
    ("import re; re.match(r'(a+)+$', 'a' * 60 + 'b')", ""),
  ],
)
def test_a_process_that_hangs_ends(hang, said):
  done = subprocess.run(
    [sys.executable, "-c", PROCESS.format(hang=hang)],
    capture_output=True,
    text=True,
    timeout=120,
  )
  lines = done.stdout.splitlines()
  assert lines[0] == "well" and done.returncode == 1
  assert [*lines[1:], ""][0].startswith(said) if said else not lines[1:]
