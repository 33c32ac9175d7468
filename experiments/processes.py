"""Processes that compute with one thread, and the Ray that starts them.

A Ray started here listens on the loopback address and requires a token. Its folder,
which it makes writable for everyone, is inside one that only this user can enter.
"""

import contextlib
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from explorax.experiments import errors

_PRIVATE = {
  "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # On the loopback address.
  "RAY_AUTH_MODE": "token",
}
_LOCAL = {
  **_PRIVATE,
  "RAY_USAGE_STATS_ENABLED": "0",
  "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # Of calls whose results are not wanted any more.
  "RAY_enable_metrics_collection": "0",
  "RAY_worker_niceness": "0",  # Ray's default, 15, yields to all other processes.
}
_OBJECT_STORE_BYTES = 256 * 2**20  # For objects in transit; more spills to disk.


def use_one_thread() -> None:
  """Makes jax compute on the CPU with one thread; call it before jax computes anything.

  Several processes, one for each core, are faster this way: if XLA splits a loop of
  small computations over two threads, it waits for both of them in each one. XLA's
  flags have no effect on this; the variable for the size of its thread pool has.
  """
  import jax

  os.environ["PJRT_NPROC"] = "1"
  jax.config.update("jax_platforms", "cpu")
  # Compute in the calling thread: dispatching to another thread takes longer than a
  # small network does. This flag has no environment variable.
  jax.config.update("jax_cpu_enable_async_dispatch", False)


def prepare() -> None:
  """Sets the environment for a Ray started here: loopback address, with a token.

  Call this before a user's module is imported: Ray reads it at its import.
  """
  if "ray" not in sys.modules and not _is_prepared():
    os.environ.update(_LOCAL, RAY_AUTH_TOKEN=secrets.token_hex(32))


def _is_prepared() -> bool:
  is_private = all(os.environ.get(name) == value for name, value in _PRIVATE.items())
  return is_private and bool(os.environ.get("RAY_AUTH_TOKEN"))


@contextlib.contextmanager
def connect(address: str | None, workers: int | None) -> Iterator[None]:
  """Connects to Ray for the block.

  If this process is already connected to Ray, that connection is used and stays open.

  Args:
    address: of a cluster; None starts Ray on this machine.
    workers: the number of tasks that must be able to run at a time, each on a core. A
      Ray started here has at least so many, whatever the machine has.

  Raises:
    SetUpError: if Ray cannot be started or reached, or the cluster has too few
      cores.
  """
  if "ray" in sys.modules and sys.modules["ray"].is_initialized():
    yield
    return
  num_cores, workers = len(os.sched_getaffinity(0)), workers or 1
  with contextlib.ExitStack() as stack:
    if address is not None:
      host, _, port = address.rpartition(":")
      if host and port.isdecimal() and "/" not in host:  # Ray would retry for minutes.
        try:
          socket.create_connection((host, int(port)), timeout=5).close()
        except (OSError, OverflowError) as error:
          sentence = f"nothing answers at --ray_address={address} ({error})."
          raise errors.SetUpError(sentence) from error
      arguments: dict[str, Any] = {"address": address}
      where = f"of --ray_address={address} (with its RAY_AUTH_MODE and RAY_AUTH_TOKEN)"
    else:
      prepare()
      if not _is_prepared():
        raise errors.SetUpError(
          "Ray was imported before explorax could restrict it to this machine; import "
          "it inside your functions, or start your own cluster and give its "
          "--ray_address."
        )
      folder = tempfile.TemporaryDirectory(
        prefix="explorax_", dir="/tmp", ignore_cleanup_errors=True
      )
      arguments = {
        "address": "local",
        "num_cpus": max(num_cores, workers),
        "include_dashboard": False,
        "object_store_memory": _OBJECT_STORE_BYTES,
        "_temp_dir": f"{stack.enter_context(folder)}/ray",
      }
      where = "on this machine"
    num_cores = _start(where, arguments)
    stack.callback(sys.modules["ray"].shutdown)
    if num_cores < workers:
      raise errors.SetUpError(
        f"the Ray cluster of --ray_address={address} has {num_cores} cores, and "
        f"{workers} are needed; add a machine with `ray start --address`."
      )
    yield


def _start(where: str, arguments: dict[str, Any]) -> int:
  """Starts or joins Ray; returns its number of cores."""
  import ray

  # Ray replaces the handler, and JAX warns that Ray forks, which uses no JAX of ours.
  before = signal.getsignal(signal.SIGTERM)
  try:
    with warnings.catch_warnings():
      warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
      ray.init(log_to_driver=False, configure_logging=False, **arguments)
    return int(ray.cluster_resources().get("CPU", 0))
  except Exception as error:  # Ray raises a plain one if its start takes too long.
    why = str(error).strip().splitlines()[0].rstrip(".")
    raise errors.SetUpError(f"cannot connect to Ray {where}: {why}.") from error
  finally:
    if threading.current_thread() is threading.main_thread():
      signal.signal(signal.SIGTERM, before)
