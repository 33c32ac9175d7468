"""A Ray process that does a sweep's tasks."""

import os
import sys
from typing import TYPE_CHECKING, Any

from explorax.experiments import threads
from explorax.experiments.sweeps import tasks

if TYPE_CHECKING:
  from explorax.experiments.sweeps import unfinished


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
