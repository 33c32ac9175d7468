"""Starts Ray on this machine, or joins a cluster.

A Ray started here listens on the loopback address and requires a token. Ray makes its
folder readable and writable for everyone, so the folder is put inside one that only
this user can enter.
"""

import contextlib
import importlib.util
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from explorax.experiments import errors

_LOCAL = {
  "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # On the loopback address.
  "RAY_AUTH_MODE": "token",
  "RAY_USAGE_STATS_ENABLED": "0",
  "RAY_enable_metrics_collection": "0",
  "RAY_worker_niceness": "0",  # Ray's default, 15, yields to all other processes.
}
_WATCHER = """
import sys
if not sys.stdin.read():
  sys.stderr.write(
    "explorax: the process ended at once: it was killed, or Ray's raylet was, which "
    "ends it; the same command goes on from what is complete.\\n"
  )
"""
_SERVERS = ("gcs_server", "raylet")
_PARENT = "/tmp"  # Paths of sockets must be short.
_OBJECT_STORE_BYTES = 100 * 2**20  # For small results.


def check_installed() -> None:
  """Raises a SetUpError if Ray is missing; does not import it, which takes a second."""
  if importlib.util.find_spec("ray") is None:
    raise errors.SetUpError("Ray is missing; install explorax[distributed].")


def prepare() -> None:
  """Sets the environment for a Ray started here: loopback address, with a token.

  Call this before a user's module is imported: Ray reads it at its import.
  """
  if "ray" not in sys.modules and not _is_prepared():
    os.environ.update(_LOCAL, RAY_AUTH_TOKEN=secrets.token_hex(32))


def _is_prepared() -> bool:
  private = ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_AUTH_MODE")
  is_private = all(os.environ.get(name) == _LOCAL[name] for name in private)
  return is_private and bool(os.environ.get("RAY_AUTH_TOKEN"))


def check_reachable(address: str | None) -> None:
  """Raises a SetUpError if nothing listens at a `host:port`; Ray would retry long."""
  host, _, port = (address or "").rpartition(":")
  if not host or not port.isdecimal() or "/" in host:
    return  # Ray resolves `auto` and `ray://…`.
  try:
    socket.create_connection((host, int(port)), timeout=5).close()
  except (OSError, OverflowError) as error:
    raise errors.SetUpError(
      f"no Ray cluster answers at --ray_address={address} ({error}); start one with "
      "`ray start --head`, or leave the flag out."
    ) from error


class Server(NamedTuple):
  """A process of Ray's own, started by this one."""

  pid: int
  name: str

  def is_running(self) -> bool:
    return _server(self.pid) == self


def servers() -> list[Server]:
  """Those that run."""
  pids = [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")]
  return [server for pid in pids if (server := _server(pid)) is not None]


def _server(pid: int) -> Server | None:
  try:
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
  except OSError:  # It has ended.
    return None
  name, _, fields = text.partition(" (")[2].rpartition(") ")
  state, parent, *_ = fields.split()
  is_server = name in _SERVERS and parent == str(os.getpid()) and state not in "ZX"
  return Server(pid, name) if is_server else None


@contextlib.contextmanager
def connect(
  address: str | None,
  workers: int | None,
  *,
  num_gpus: int = 0,
  num_bytes: int = _OBJECT_STORE_BYTES,
) -> Iterator[int]:
  """Connects to Ray for the block; yields how many one-core tasks can run at a time.

  If this process is already connected to Ray, that connection is used and stays open.

  Args:
    address: of a cluster; None starts Ray on this machine's cores.
    workers: the largest number of tasks at a time; None: one per core.
    num_gpus: offered by a Ray started here.
    num_bytes: object store size of a Ray started here; more spills to disk.

  Raises:
    SetUpError: if Ray cannot be started, or nothing answers at the address, or the
      cluster has no cores.
  """
  if "ray" in sys.modules and sys.modules["ray"].is_initialized():
    yield workers or len(os.sched_getaffinity(0))
  elif address is not None:
    with _joined(address) as cores:
      yield min(cores, workers or cores)
  else:
    count = workers or len(os.sched_getaffinity(0))
    with _started(count, num_gpus, num_bytes):
      yield count


@contextlib.contextmanager
def _joined(address: str) -> Iterator[int]:
  """A connection to a cluster; yields its number of cores."""
  check_reachable(address)
  import ray

  try:
    with _without_side_effects():
      ray.init(address=address, log_to_driver=False, configure_logging=False)
  except (OSError, RuntimeError, ValueError) as error:
    raise errors.SetUpError(
      f"cannot join the Ray cluster of --ray_address={address} "
      f"({_first_line(error)}); RAY_AUTH_MODE, RAY_AUTH_TOKEN and Ray's version must "
      "be the same as the cluster's."
    ) from error
  try:
    cores = int(ray.cluster_resources().get("CPU", 0))
    if not cores:
      raise errors.SetUpError(
        f"the Ray cluster of --ray_address={address} has no cores; add a machine "
        "with `ray start --address`."
      )
    yield cores
  finally:
    ray.shutdown()


@contextlib.contextmanager
def _started(num_cpus: int, num_gpus: int, num_bytes: int) -> Iterator[None]:
  """Starts Ray for this process."""
  prepare()
  if not _is_prepared():
    raise errors.SetUpError(
      "Ray was imported before explorax could restrict it to this machine; import it "
      "inside your functions, or start your own cluster and give its --ray_address."
    )
  import ray

  with contextlib.ExitStack() as stack:
    folder = stack.enter_context(
      tempfile.TemporaryDirectory(
        prefix="explorax_", dir=_PARENT, ignore_cleanup_errors=True
      )
    )
    stack.enter_context(_announcing_a_sudden_end())
    stack.callback(ray.shutdown)
    try:
      with _without_side_effects():
        ray.init(
          address="local",
          num_cpus=num_cpus,
          num_gpus=num_gpus,
          include_dashboard=False,
          log_to_driver=False,
          configure_logging=False,
          object_store_memory=num_bytes,
          _temp_dir=f"{folder}/ray",
        )
    except Exception as error:  # Ray raises a plain one if its start takes too long.
      raise errors.SetUpError(
        f"Ray could not be started on this machine ({_first_line(error)}); try again "
        "when the machine is less busy."
      ) from error
    # Ray prints paragraphs about processes that die, where the run says it in a line.
    ray._private.worker.print_to_stdstream = lambda *args, **kwargs: None
    yield


@contextlib.contextmanager
def _announcing_a_sudden_end() -> Iterator[None]:
  """Lets another process say that this one has ended without a word.

  Ray ends it so if its raylet dies.
  """
  watcher = subprocess.Popen(
    [sys.executable, "-S", "-c", _WATCHER],
    stdin=subprocess.PIPE,
    start_new_session=True,
  )
  try:
    yield
  finally:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
      watcher.communicate(b"ended", timeout=5)


@contextlib.contextmanager
def _without_side_effects() -> Iterator[None]:
  """Restores the SIGTERM handler that Ray's start replaces, and hides a warning.

  JAX warns because Ray forks to start programs, which use no JAX of ours.
  """
  before = signal.getsignal(signal.SIGTERM)
  try:
    with warnings.catch_warnings():
      warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
      yield
  finally:
    if threading.current_thread() is threading.main_thread():
      signal.signal(signal.SIGTERM, before)


def _first_line(error: Exception) -> str:
  return str(error).strip().splitlines()[0].rstrip(".")
