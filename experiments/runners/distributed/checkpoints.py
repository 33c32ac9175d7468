"""Writes and reads the checkpoints of a distributed run."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import ray

from explorax.agents import types
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments import errors
from explorax.experiments.runners.distributed import messages, rate_limit


class MemoryState(NamedTuple):
  """What a shard of replay in memory resumes from: name → array, and its counts."""

  arrays: Mapping[str, np.ndarray]
  counts: Mapping[str, Any]


def save(
  to: checkpoint_lib.Checkpointer,
  run: messages.Run,
  counts: messages.Counts,
  learner: messages.LearnerState,
  shards: Sequence[Any],
) -> None:
  """Writes a checkpoint, or warns that this failed.

  Args:
    to: writes it.
    run: whose state it is.
    counts: the board's.
    learner: the learner's state, of about the same time; its updates are counted.
    shards: the Ray actors of replay, or none if replay is not stored.

  Raises:
    ray.exceptions.RayError: if the process of a shard cannot be restarted.
  """
  counts = dataclasses.replace(counts, updates=learner.updates, metrics=learner.metrics)
  groups: dict[str, Any] = {"learner": learner.state}
  record: dict[str, Any] = {"board": dataclasses.asdict(counts)}
  save_replay: Callable[[pathlib.Path], None] | None = None
  if shards:
    record["num_shards"] = len(shards)
    record["limit"] = dataclasses.asdict(run.limit)
    if run.config.replay == "memory":
      saved = ray.get([shard.save.remote() for shard in shards])
      groups["replay"] = {str(i): each.arrays for i, each in enumerate(saved)}
      record["replay"] = [each.counts for each in saved]
    else:
      save_replay = functools.partial(_save_reverb, shards)
  to.save(counts.env_steps, checkpoint_lib.Snapshot(groups, record, save_replay))


def newest(run: messages.Run, number: int) -> checkpoint_lib.Checkpoint | None:
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
  return checkpoint_lib.newest(run.checkpoints)[0]


def counts(checkpoint: checkpoint_lib.Checkpoint | None) -> messages.Counts:
  """The counts from which a run resumes."""
  if checkpoint is None:
    return messages.Counts()
  saved = checkpoint.record["counts"]["board"]
  names = [field.name for field in dataclasses.fields(messages.Counts)]
  return messages.Counts(**{name: saved[name] for name in names})


def limit(
  checkpoint: checkpoint_lib.Checkpoint | None,
  config: config_lib.RunConfig,
  configured: rate_limit.RateLimit,
) -> rate_limit.RateLimit:
  """The rate limit of a run that resumes from this checkpoint.

  Reverb's checkpoint contains the limiter's state, in units of its own limit.
  """
  if checkpoint is None or config.replay == "memory":
    return configured
  if not _has_replay(checkpoint, config):
    return configured
  saved = checkpoint.record["counts"]["limit"]
  names = [field.name for field in dataclasses.fields(rate_limit.RateLimit)]
  return rate_limit.RateLimit(**{name: saved[name] for name in names})


def learner(
  checkpoint: checkpoint_lib.Checkpoint | None, agent: types.Agent
) -> messages.LearnerState | None:
  """What a learner starts from."""
  if checkpoint is None:
    return None
  like = jax.eval_shape(agent.learner.init, jax.random.PRNGKey(0))
  state = checkpoint.restore("learner", like)
  saved = counts(checkpoint)
  return messages.LearnerState(state, saved.updates, saved.metrics)


def shard(
  checkpoint: checkpoint_lib.Checkpoint | None,
  config: config_lib.RunConfig,
  number: int,
) -> Any:
  """What a shard of replay starts from.

  Returns:
    With Reverb the folder that its `save` has written, in memory a `MemoryState`; None
    if the checkpoint has no replay, or in another number of shards.
  """
  if checkpoint is None or not _has_replay(checkpoint, config):
    return None
  if folder := checkpoint.replay_folder:
    return folder / str(number)
  prefix = f"{number}/"
  arrays = {
    name.removeprefix(prefix): array
    for name, array in checkpoint.arrays("replay").items()
    if name.startswith(prefix)
  }
  return MemoryState(arrays, checkpoint.record["counts"]["replay"][number])


def _has_replay(
  checkpoint: checkpoint_lib.Checkpoint, config: config_lib.RunConfig
) -> bool:
  """Whether the checkpoint contains replay, in as many shards as the run has."""
  num_shards = checkpoint.record["counts"].get("num_shards")
  return num_shards == (config.replay_shards or 1)


def _save_reverb(shards: Sequence[Any], folder: pathlib.Path) -> None:
  """Lets each shard write its own folder."""
  saving = []
  for i, shard in enumerate(shards):
    (folder / str(i)).mkdir()
    saving.append(shard.save.remote(str((folder / str(i)).absolute())))
  ray.get(saving)
