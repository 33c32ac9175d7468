"""Measurements in processes of their own, and what such a process sees of itself."""

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

_TIMEOUT = 1800  # Seconds for one sample.
_COMPILATION = "/jax/core/compile/backend_compile_duration"


def sample(
  script: pathlib.Path, what: str, platform: str | None = "cpu", **flags: Any
) -> dict[str, Any]:
  """What a script measured, in a fresh process: its last line, as JSON.

  Args:
    script: takes the name of a measurement, and `--flag=value`s.
    what: that name.
    platform: of JAX; None: the one that JAX takes by itself in this shell.
    **flags: the others.

  Raises:
    RuntimeError: if it failed, with the end of what it printed.
  """
  command = [sys.executable, str(script), what]
  command += [f"--{name}={value}" for name, value in flags.items()]
  # All contestants with XLA's own settings, whatever this shell's are.
  environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
  environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
  if platform is not None:
    environment["JAX_PLATFORMS"] = platform
  done = subprocess.run(
    command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT
  )
  if done.returncode:
    raise RuntimeError(
      f"`{' '.join(command)}` ended with code {done.returncode}:\n{done.stderr[-2000:]}"
    )
  return json.loads(done.stdout.splitlines()[-1])


def status_mib(field: str) -> float:
  """A size in /proc/self/status, in MiB: `VmRSS` is now, `VmHWM` the peak.

  The peak is this program's own, where `ru_maxrss` begins with that of the process
  which started it.
  """
  status = pathlib.Path("/proc/self/status").read_text()
  found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
  if found is None:
    raise RuntimeError(f"/proc/self/status has no {field}; this needs Linux.")
  return int(found[1]) / 1024


class CompilationCounter:
  """Counts, in `count`, what XLA has compiled in this process since it was made."""

  def __init__(self) -> None:
    # Here, so that whoever only starts processes does not load it.
    import jax

    self.count = 0
    jax.monitoring.register_event_duration_secs_listener(self._hear)

  def _hear(self, event: str, duration: float, **kwargs: Any) -> None:
    del duration, kwargs
    self.count += event == _COMPILATION
