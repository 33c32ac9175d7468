"""Measurements in processes of their own, and what such a process sees of itself."""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
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


def cpu_seconds(pid: int) -> float:
  """That a process has computed since its start, on all cores."""
  stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
  return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


class Proxy:
  """Passes on what comes to its port to another port of this machine, and counts it.

  Attributes:
    port: its own.
    sent: bytes from those who connect.
    received: bytes to them.
  """

  def __init__(self, port: int):
    """Begins; `port`: where it connects to."""
    self._to = port
    self._listening = socket.create_server(("localhost", 0))
    self._open: list[socket.socket] = [self._listening]
    self.port = self._listening.getsockname()[1]
    self.sent = self.received = 0
    self._lock = threading.Lock()
    threading.Thread(target=self._accept, daemon=True).start()

  def __enter__(self) -> "Proxy":
    return self

  def __exit__(self, *error: Any) -> None:
    for each in self._open:
      with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
      each.close()

  def _accept(self) -> None:
    with contextlib.suppress(OSError):
      while True:
        theirs, _ = self._listening.accept()
        ours = socket.create_connection(("localhost", self._to))
        self._open += [theirs, ours]
        for source, target, what in (
          (theirs, ours, "sent"),
          (ours, theirs, "received"),
        ):
          threading.Thread(
            target=self._pass_on, args=(source, target, what), daemon=True
          ).start()

  def _pass_on(self, source: socket.socket, target: socket.socket, what: str) -> None:
    with contextlib.suppress(OSError):
      while data := source.recv(1 << 16):
        with self._lock:
          setattr(self, what, getattr(self, what) + len(data))
        target.sendall(data)
      target.shutdown(socket.SHUT_WR)
