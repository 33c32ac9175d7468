"""Writes and reads the checkpoints of a distributed run."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from explorax.agents import types
from explorax.experiments.checkpoints import checkpointer, files
from explorax.experiments.runners.distributed import learner, messages, rate_limit

# Gets the results of calls of Ray actors; raises a RayError if a process has died.
Gather = Callable[[list[Any]], list[Any]]


class Checkpoints:
  """The learner's state, the board's counts, and optionally replay."""

  def __init__(
    self,
    agent: types.Agent,
    backend: str,
    checkpoints: checkpointer.Checkpointer,
    limit: rate_limit.RateLimit,
  ):
    """Args: agent: of the run; backend, limit: of replay."""
    self._agent = agent
    self._backend = backend
    self.checkpointer = checkpoints
    self._limit = limit

  def save(
    self,
    counts: Mapping[str, Any],
    state: messages.LearnerState,
    shards: Sequence[Any],
    gather: Gather,
    *,
    complete: bool,
  ) -> None:
    """Writes a checkpoint.

    Args:
      counts: the board's.
      state: the learner's, of about the same time; its count of updates is used.
      shards: the Ray actors.
      gather: gets the results of their calls.
      complete: whether the run is finished, so that replay is not needed any more.

    Raises:
      ray.exceptions.RayError: if a required process has died.
    """
    import ray

    counts = {**counts, "updates": state.updates, "metrics": state.metrics}
    groups: dict[str, Any] = {"state": {"learner": ray.get(state.reference[0])}}
    record: dict[str, Any] = {"board": counts}
    folders: dict[str, Callable[[pathlib.Path], None]] = {}
    if self.checkpointer.with_replay and not complete:
      record["num_shards"] = len(shards)
      record["limit"] = dataclasses.asdict(self._limit)
      if self._backend == "memory":
        saved = gather([shard.save.remote() for shard in shards])
        groups["replay"] = {str(i): each.arrays for i, each in enumerate(saved)}
        record["replay"] = [each.counts for each in saved]
      else:
        folders["replay"] = lambda folder: _save_reverb(shards, gather, folder)
    snapshot = checkpointer.Snapshot(groups, record, folders)
    self.checkpointer.save(counts["env_steps"], snapshot)

  def learner(self, checkpoint: files.Checkpoint) -> learner.Start:
    """What a learner starts from."""
    like = jax.eval_shape(self._agent.learner.init, jax.random.PRNGKey(0))
    state = checkpoint.restore("state", {"learner": like})["learner"]
    counts = checkpoint.record["counts"]["board"]
    return learner.Start(state, counts["updates"], counts["metrics"])

  def shard(self, checkpoint: files.Checkpoint, shard: int, num_shards: int) -> Any:
    """What one of `num_shards` shards starts from; None if the checkpoint differs."""
    counts = checkpoint.record["counts"]
    if counts.get("num_shards") != num_shards:
      return None
    if folder := checkpoint.folder("replay"):
      return str((folder / str(shard)).absolute())
    from explorax.experiments.runners.distributed import memory_shard

    prefix = f"{shard}/"
    arrays = {
      name.removeprefix(prefix): array
      for name, array in checkpoint.arrays("replay").items()
      if name.startswith(prefix)
    }
    saved = counts["replay"][shard]
    names = ("replay", "open", "steps")  # A checkpoint without one is refused here.
    return memory_shard.Saved(arrays, {name: saved[name] for name in names})


def limit(
  checkpoint: files.Checkpoint,
  backend: str,
  configured: rate_limit.RateLimit,
  num_shards: int,
) -> rate_limit.RateLimit:
  """The rate limit of a run that resumes from this checkpoint.

  Reverb's checkpoint contains the limiter's state, in units of its own limit.
  """
  counts = checkpoint.record["counts"]
  if backend == "memory" or counts.get("num_shards") != num_shards:
    return configured
  saved = counts["limit"]
  names = [field.name for field in dataclasses.fields(rate_limit.RateLimit)]
  return rate_limit.RateLimit(**{name: saved[name] for name in names})


def _save_reverb(shards: Sequence[Any], gather: Gather, folder: pathlib.Path) -> None:
  """Lets each shard write its own folder."""
  saving = []
  for i, shard in enumerate(shards):
    (folder / str(i)).mkdir()
    saving.append(shard.save.remote(str((folder / str(i)).absolute())))
  gather(saving)
