"""Ray, on this machine's cores or on a cluster, and the processes that do tasks."""

import contextlib
import fcntl
import importlib.util
import os
import pathlib
import secrets
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from explorax.experiments import errors, threads
from explorax.experiments.sweeps import tasks

if TYPE_CHECKING:
  from explorax.experiments.sweeps import unfinished

# Of a Ray that is started here: reachable from this machine alone, and there only with
# a token; nothing is reported or exported.
_LOCAL = {
  "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # On the loopback address.
  "RAY_AUTH_MODE": "token",
  "RAY_USAGE_STATS_ENABLED": "0",
  "RAY_enable_metrics_collection": "0",
}
# Of folders for what Ray writes: sockets among it, whose paths must be short.
_PARENT, _PREFIX = "/tmp", "explorax_ray_"
_YOUTH = 60.0  # Seconds after which the owner of such a folder has locked it.
_OBJECTS = 100 * 2**20  # Bytes for results under way, which are small.


def check_installed() -> None:
  """Raises a SetUpError if Ray is missing; does not import it, which takes a second."""
  if importlib.util.find_spec("ray") is None:
    raise errors.SetUpError(
      "Ray is missing, on which tasks run; install explorax[distributed]."
    )


def check_reachable(address: str | None) -> None:
  """Raises a SetUpError where nothing listens at a `host:port`: Ray would wait long."""
  host, _, port = (address or "").rpartition(":")
  if not host or not port.isdecimal() or "/" in host:
    return  # `auto` and `ray://…` are for Ray to look up.
  try:
    socket.create_connection((host, int(port)), timeout=5).close()
  except (OSError, OverflowError) as error:
    raise errors.SetUpError(
      f"no Ray cluster answers at --ray_address={address} ({error}); start one with "
      "`ray start --head`, or leave the flag out."
    ) from error


@contextlib.contextmanager
def connect(
  address: str | None,
  workers: int | None,
  *,
  num_gpus: int = 0,
  num_bytes: int = _OBJECTS,
) -> Iterator[int]:
  """Ray for as long as the block lasts; yields how many tasks fit side by side.

  A Ray that this process is connected to already is used, and left as it is.

  Args:
    address: of a cluster; None: Ray is started on this machine's cores.
    workers: at most so many side by side; None: as many as there are cores.
    num_gpus: that a Ray started here has.
    num_bytes: for the objects of a Ray started here, beyond which they go to disk.

  Raises:
    SetUpError: if Ray cannot be started, or nothing answers at the address, or it has
      no cores.
  """
  if "ray" in sys.modules and sys.modules["ray"].is_initialized():
    yield workers or len(os.sched_getaffinity(0))
    return
  if address is not None:
    check_reachable(address)
    import ray

    try:
      with _own_sigterm():
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
      reason = str(error).strip().splitlines()[0].rstrip(".")
      raise errors.SetUpError(
        f"the Ray cluster of --ray_address={address} was not joined ({reason}); "
        "RAY_AUTH_MODE, RAY_AUTH_TOKEN and Ray's version have to be those that it was "
        "started with."
      ) from error
    try:
      cores = int(ray.cluster_resources().get("CPU", 0))
      if not cores:
        raise errors.SetUpError(
          f"the Ray cluster of --ray_address={address} has no cores; add a machine "
          "with `ray start --address`."
        )
      yield min(cores, workers or cores)
    finally:
      ray.shutdown()
    return
  if "ray" not in sys.modules:  # It reads these when it is imported.
    os.environ.update(_LOCAL, RAY_AUTH_TOKEN=secrets.token_hex(32))
  import ray

  count = workers or len(os.sched_getaffinity(0))
  with _folder() as folder:
    try:
      try:
        with _own_sigterm():
          ray.init(
            address="local",
            num_cpus=count,
            num_gpus=num_gpus,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            object_store_memory=num_bytes,
            _temp_dir=folder,
          )
      except Exception as error:  # A bare one where its start took too long.
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise errors.SetUpError(
          f"Ray could not be started on this machine ({reason}); try again when it is "
          "less busy."
        ) from error
      yield count
    finally:
      ray.shutdown()


@contextlib.contextmanager
def _folder() -> Iterator[str]:
  """A folder for what Ray writes; those of processes that were killed are removed.

  Its owner locks it, and the system lets go of the lock however the owner ends.
  """
  parent = pathlib.Path(_PARENT)
  for left in parent.glob(f"{_PREFIX}*"):
    with contextlib.suppress(OSError):
      status = left.lstat()
      young = abs(time.time() - status.st_mtime) < _YOUTH  # Not yet locked, maybe.
      if young or status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        continue
      with _locked(left):
        shutil.rmtree(left, ignore_errors=True)
  folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
  with _locked(pathlib.Path(folder)):
    try:
      yield folder
    finally:
      shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: pathlib.Path) -> Iterator[None]:
  """Raises an OSError if another process has locked it."""
  descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    yield
  finally:
    os.close(descriptor)


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
  """Undoes that Ray's start takes SIGTERM away from whoever has it."""
  before = signal.getsignal(signal.SIGTERM)
  try:
    yield
  finally:
    if threading.current_thread() is threading.main_thread():
      signal.signal(signal.SIGTERM, before)


class Worker:
  """A process with one core, which does one task after another.

  What jax has compiled for one task serves the next ones of its shapes.
  """

  def __init__(
    self,
    directory: str,
    cache: str | None,
    mnist_dir: str,
    place: "unfinished.Place | None" = None,
  ):
    """Prepares the process.

    Args:
      directory: the current one of who asks, for modules of the user's; one that does
        not exist here (on another machine) is left out.
      cache: a folder for what jax compiles, shared with others; None for none.
      mnist_dir: where the MNIST files are.
      place: of the checkpoints of tasks; None for none.
    """
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if os.path.isdir(directory):
      os.chdir(directory)
      sys.path.append(directory)
    import jax

    threads.use_one_thread()
    jax.config.update("jax_platforms", "cpu")
    if cache is not None:
      jax.config.update("jax_compilation_cache_dir", cache)
      jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
      jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    self._mnist_dir = mnist_dir
    self._place = place
    self._share = 0.0

  def ready(self) -> bool:
    """True, once all is imported that tasks need."""
    from explorax.experiments.sweeps import perform

    return callable(perform.perform)

  def share(self) -> float:
    """How much of the task is done."""
    return self._share

  def perform(self, task: tasks.Task) -> Any:
    """A `perform.Outcome`."""
    from explorax.experiments.sweeps import perform

    def tick(share: float) -> None:
      self._share = share

    self._share = 0.0
    return perform.perform(task, self._mnist_dir, tick, self._place)


def start_worker(*arguments: Any) -> Any:
  """A `Worker` as a Ray actor; `share` is answered while it does a task."""
  import ray

  return ray.remote(Worker).options(num_cpus=1, max_concurrency=2).remote(*arguments)
