"""Writes and reads the checkpoints of a distributed run."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments import errors
from explorax.experiments.checkpoints import checkpointer, files
from explorax.experiments.runners.distributed import messages, rate_limit


class MemoryState(NamedTuple):
  """What replay in memory resumes from: name → array, and its counts."""

  arrays: Mapping[str, np.ndarray]
  counts: Mapping[str, Any]


def save(
  to: checkpointer.Checkpointer,
  run: messages.Run,
  counts: messages.Counts,
  learner: messages.LearnerState,
  store: Any,
) -> None:
  """Writes a checkpoint, or warns that this failed.

  Args:
    to: writes it.
    run: whose state it is.
    counts: the board's.
    learner: the learner's state, of about the same time; its updates are counted.
    store: the Ray actor of replay; None if replay is not stored.

  Raises:
    ray.exceptions.RayError: if the process of replay cannot be restarted.
  """
  import ray

  counts = dataclasses.replace(counts, updates=learner.updates, metrics=learner.metrics)
  groups: dict[str, Any] = {"state": {"learner": learner.state}}
  record: dict[str, Any] = {"board": dataclasses.asdict(counts)}
  folders: dict[str, Callable[[pathlib.Path], None]] = {}
  if store is not None:
    record["limit"] = dataclasses.asdict(run.limit)
    if run.config.replay == "memory":
      groups["replay"], record["replay"] = ray.get(store.save.remote())
    else:
      folders["replay"] = lambda folder: ray.get(
        store.save.remote(str(folder.absolute()))
      )
  to.save(counts.env_steps, checkpointer.Snapshot(groups, record, folders))


def newest(run: messages.Run, number: int) -> files.Checkpoint | None:
  """The checkpoint from which a process starts; None to start from nothing.

  Args:
    run: of the process.
    number: how many processes have had its role before.

  Raises:
    OutputError: if a process before may have left one that this machine cannot read.
  """
  if run.checkpoints is None:
    return None
  if number and not run.checkpoints.parent.is_dir():
    raise errors.OutputError(
      f"{run.checkpoints.parent} does not exist on the machine of a process that "
      "resumes; --output must be a directory that all machines share."
    )
  return checkpointer.newest(run.checkpoints, lambda text: None)


def counts(checkpoint: files.Checkpoint | None) -> messages.Counts:
  """The counts from which a run resumes."""
  if checkpoint is None:
    return messages.Counts()
  saved = checkpoint.record["counts"]["board"]
  names = [field.name for field in dataclasses.fields(messages.Counts)]
  return messages.Counts(**{name: saved[name] for name in names})


def limit(
  checkpoint: files.Checkpoint | None,
  config: config_lib.RunConfig,
  configured: rate_limit.RateLimit,
) -> rate_limit.RateLimit:
  """The rate limit of a run that resumes from this checkpoint.

  Reverb's checkpoint contains the limiter's state, in units of its own limit.
  """
  saved = None if checkpoint is None else checkpoint.record["counts"].get("limit")
  if saved is None or config.replay == "memory":
    return configured
  return rate_limit.RateLimit(**saved)


def learner(
  checkpoint: files.Checkpoint | None, agent: types.Agent
) -> messages.LearnerState | None:
  """What a learner starts from."""
  if checkpoint is None:
    return None
  like = jax.eval_shape(agent.learner.init, jax.random.PRNGKey(0))
  state = checkpoint.restore("state", {"learner": like})["learner"]
  saved = counts(checkpoint)
  return messages.LearnerState(state, saved.updates, saved.metrics)


def replay(checkpoint: files.Checkpoint | None) -> Any:
  """What replay starts from.

  Returns:
    With Reverb the folder that its `save` has written, in memory a `MemoryState`; None
    if the checkpoint has no replay.
  """
  if checkpoint is None or "limit" not in checkpoint.record["counts"]:
    return None
  if folder := checkpoint.folder("replay"):
    return folder
  counts = checkpoint.record["counts"]["replay"]
  return MemoryState(checkpoint.arrays("replay"), counts)
