"""A process whose environment hangs ends, whatever the environment holds."""

import subprocess
import sys
import types

import pytest

from explorax.experiments.runners.distributed import watchdog

PROCESS = """
import time
from explorax.experiments.runners.distributed import watchdog
dog = watchdog.Watchdog(lambda reason: print(reason, flush=True), timeout=0.8)
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


def test_only_a_single_call_counts(monkeypatch):
  """With a clock and a thread of the test's own."""
  now, said = 0.0, []

  class Ended(BaseException):
    """Ends the thread, where the process would end."""

  def end(code):
    raise Ended(code)

  def sleep(seconds):
    nonlocal now
    now += seconds
    next(events, lambda: None)()

  clock = types.SimpleNamespace(monotonic=lambda: now, sleep=sleep)
  thread = types.SimpleNamespace(start=lambda: None)
  monkeypatch.setattr(watchdog, "time", clock)
  monkeypatch.setattr(watchdog.threading, "Thread", lambda **_: thread)
  monkeypatch.setattr(watchdog.faulthandler, "dump_traceback_later", lambda *_, **__: 0)
  monkeypatch.setattr(watchdog.os, "_exit", end)
  dog = watchdog.Watchdog(said.append, timeout=4.0)
  calls = [dog.__enter__, dog.__exit__] * 9  # Of a second each.
  events = iter([*calls, *[lambda: None] * 9, dog.__enter__])
  with pytest.raises(Ended, match="1"):
    dog._run()
  assert now == 18 + 9 + 1 + 4
  assert said == ["its environment did not answer for 4 s (--environment_timeout)"]
