"""What a distributed run puts into its checkpoints, and takes out of them."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from explorax.agents import types
from explorax.agents.wiring import adder
from explorax.experiments.checkpoints import files, keeper
from explorax.experiments.distributed import (
  learner_process,
  messages,
  replay_server,
)


class Archive:
  """A run's checkpoints: the learner's state, what is counted, and replay maybe."""

  def __init__(self, agent: types.Agent, replay: str, checkpoints: keeper.Keeper):
    """Begins with what there is.

    Args:
      agent: of the run.
      replay: `reverb` or `memory`.
      checkpoints: their keeper.
    """
    self._agent = agent
    self._replay = replay
    self._keeper = checkpoints

  @property
  def with_replay(self) -> bool:
    """Whether replay is to be part of them."""
    return self._keeper.with_replay

  def is_due(self, env_steps: int) -> bool:
    return self._keeper.is_due(env_steps)

  def save(
    self,
    state: Mapping[str, Any],
    saved: messages.Saved,
    servers: Sequence[Any],
    *,
    complete: bool,
  ) -> bool:
    """Writes a checkpoint; returns whether that was possible.

    Args:
      state: the collector's.
      saved: the learner's, given at about the same time; its updates count.
      servers: the Ray actors of replay's shards.
      complete: whether the run is, which needs no replay any more.

    Raises:
      ray.exceptions.RayError: if a process has died that is needed.
    """
    import ray

    state = {**state, "rates": {**state["rates"], "updates": saved.updates}}
    groups: dict[str, Any] = {"state": {"learner": ray.get(saved.reference[0])}}
    counts: dict[str, Any] = {"collector": state, "metrics": saved.metrics}
    folders: dict[str, Callable[[pathlib.Path], None]] = {}
    sizes: dict[str, int] = {}
    if self.with_replay and not complete:
      if self._replay == "memory":
        kept = ray.get([server.save.remote() for server in servers])
        groups["replay"] = {str(i): arrays for i, (arrays, _) in enumerate(kept)}
        counts["replay"] = [each for _, each in kept]
      else:
        folders["replay"] = lambda folder: _write_all(servers, folder)
        windows = sum(state["rates"]["windows"])
        sizes["replay"] = adder.replay_bytes(self._agent, windows)
    snapshot = keeper.Snapshot(groups, counts, folders, sizes)
    return self._keeper.save(state["rates"]["env_steps"], snapshot)

  def first(self) -> files.Checkpoint | None:
    """The one that the run goes on from; None if it begins."""
    return self._keeper.found

  def newest(self) -> files.Checkpoint | None:
    """The newest good one by now."""
    return self._keeper.find()

  def learner(self, checkpoint: files.Checkpoint) -> learner_process.Start:
    """What a learner goes on from."""
    like = jax.eval_shape(self._agent.learner.init, jax.random.PRNGKey(0))
    state = checkpoint.restore("state", {"learner": like})["learner"]
    counts = checkpoint.record["counts"]
    updates = counts["collector"]["rates"]["updates"]
    return learner_process.Start(state, updates, counts["metrics"])

  def windows(self, checkpoint: files.Checkpoint, num_shards: int) -> list[int]:
    """In each of so many shards of replay that begin with a checkpoint."""
    windows = checkpoint.record["counts"]["collector"]["rates"]["windows"]
    held = "replay" in checkpoint.groups or checkpoint.folder("replay") is not None
    return windows if held and len(windows) == num_shards else [0] * num_shards

  def shard(self, checkpoint: files.Checkpoint, shard: int) -> Any:
    """What the server of a shard in it goes on from."""
    if folder := checkpoint.folder("replay"):
      return str((folder / str(shard)).absolute())
    prefix = f"{shard}/"
    arrays = checkpoint.arrays("replay").items()
    own = {
      name.removeprefix(prefix): x for name, x in arrays if name.startswith(prefix)
    }
    return replay_server.Kept(own, checkpoint.record["counts"]["replay"][shard])


def _write_all(servers: Sequence[Any], folder: pathlib.Path) -> None:
  """Has each server write its own part."""
  import ray

  writing = []
  for shard, server in enumerate(servers):
    (folder / str(shard)).mkdir()
    writing.append(server.save_to.remote(str((folder / str(shard)).absolute())))
  ray.get(writing)
