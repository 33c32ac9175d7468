"""The host's half of a run on the device, wherever its environments are."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from explorax.agents import types
from explorax.experiments.checkpoints import files, keeper
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import device_agent, device_report, local

STEPS_PER_REPORT = 100  # Of each environment, between two looks at the device.


class Training(abc.ABC):
  """Asks the device for steps and updates; a variable source of its weights.

  Each program is given the state for good (its buffers are donated) and returns it
  anew. Who calls one assigns the state, and counts what was done, within
  `signals.deferred`, so that no interrupt comes between.

  Attributes:
    account: what was done so far.
    state: on the device, of all seeds.
  """

  def __init__(
    self,
    agent: types.Agent,
    account: device_report.Account,
    state: device_agent.State,
  ):
    """Begins.

    Args:
      agent: trained with all seeds.
      account: of these seeds.
      state: with a leading axis for the seeds if there is more than one.
    """
    self._agent = agent
    self.account = account
    self.state = state

  @property
  def clock(self) -> clock_lib.Clock:
    return self.account.clock

  @property
  def env_steps(self) -> int:
    """Of each seed."""
    return self.account.env_steps

  @abc.abstractmethod
  def run(
    self,
    num_episodes: int | None,
    num_steps: int | None,
    stop: Callable[[], bool],
    after_report: Callable[[], None] = lambda: None,
  ) -> bool:
    """Acts and learns until it is enough; returns whether it was stopped before."""

  def save(self, *, with_replay: bool) -> keeper.Snapshot:
    """What goes into a checkpoint, between two reports.

    Args:
      with_replay: whether replay is part of it.
    """
    groups: dict[str, Any] = {"state": self.state._replace(replay=())}  # type: ignore[arg-type]
    if with_replay:
      groups["replay"] = self.state.replay
    return keeper.Snapshot(groups, {"account": self.account.save()})

  def restore(self, checkpoint: files.Checkpoint) -> None:
    """Goes on from a checkpoint; replay is empty if it holds none."""
    counts = checkpoint.record["counts"]
    has_replay = "replay" in checkpoint.groups
    shapes = jax.eval_shape(lambda: self.state)
    replay = self.state.replay
    if has_replay:
      # Both at once may not fit into memory.
      del replay
      self.state = self.state._replace(replay=())  # type: ignore[arg-type]
      replay = on_device(checkpoint.restore("replay", shapes.replay))
    state = checkpoint.restore("state", shapes._replace(replay=()))
    self.state = on_device(state)._replace(replay=replay)
    self.account.restore(counts["account"], with_replay=has_replay)

  def results(self, interrupted: bool) -> list[local.Result]:
    """What was learnt with each seed."""
    return [
      self.account.result(i, weights, interrupted)
      for i, weights in enumerate(self.weights())
    ]

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    """The weights of the only seed, for Acme's actors."""
    params = self._agent.learner.params(self.state.learner)
    # The state is donated to the next program.
    return [jax.tree.map(jnp.copy, params) for _ in names]

  def weights(self) -> list[types.Params]:
    """Each seed's, on the host."""
    num_seeds, params = self.account.num_seeds, self._agent.learner.params
    if num_seeds == 1:
      return [jax.device_get(params(self.state.learner))]
    weights = jax.device_get(jax.vmap(params)(self.state.learner))
    return [jax.tree.map(lambda x, i=i: x[i], weights) for i in range(num_seeds)]


def on_device(tree: Any) -> Any:
  """Copies of a tree's arrays that may be donated."""
  return jax.tree.map(lambda x: jnp.array(x, copy=True), tree)
