"""A LearnerCore as an `acme.core.Learner`."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import acme.core
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types

# Compiled updates that a process keeps.
_MAX_PROGRAMS = 16


class Learner(acme.core.Learner):
  """Takes batches from an iterator; jits the update once.

  The state is not donated: on a CPU, such an update returns only when it is done, and
  actors may keep weights for a while.

  Args:
    agent: whose learner runs.
    batches: of (keys, Sample), from a replay backend.
    update_priorities: (keys, priorities) → None, called after each update if the replay
      is prioritised.
    key: for the state's initialisation.
  """

  def __init__(
    self,
    agent: types.Agent,
    batches: Iterator[tuple[np.ndarray, types.Sample]],
    update_priorities: Callable[[np.ndarray, np.ndarray], None],
    key: jax.Array,
  ):
    self._core = agent.learner
    self._prioritised = agent.replay.priority_exponent > 0
    self._batches = batches
    self._update_priorities = update_priorities
    self._state = jax.jit(self._core.init)(key)
    self._changes = _jitted_changes(self._core.update)
    self._metrics: dict[str, jax.Array] = {}
    self.num_updates = 0

  def step(self) -> None:
    """Makes an update on the next batch; the device works while this returns.

    A non-finite update is the last: `num_updates` counts it, but the state does not.
    """
    keys, sample = next(self._batches)
    if self._core.copy_target and self.num_updates % self._core.target_period == 0:
      self._state = self._core.copy_target(self._state)
    changes, output = self._changes(self._state, sample)
    leaves, structure = jax.tree.flatten(self._state)
    kept = [o if n is None else n for n, o in zip(changes, leaves, strict=True)]
    self._state = structure.unflatten(kept)
    self._metrics = output.metrics
    self.num_updates += 1
    # Replay refuses a NaN; the caller learns about it from `is_finite`.
    if self._prioritised and self.is_finite():
      self._update_priorities(keys, np.asarray(output.priorities))

  def is_finite(self) -> bool:
    """Whether the last update was finite; waits for it."""
    return not self._metrics or bool(self._metrics["finite"])

  def check_finite(self) -> None:
    """Raises a FloatingPointError if the last update was not finite."""
    if not self.is_finite():
      raise FloatingPointError(
        f"the loss became {self.metrics()['loss']} in learner update "
        f"{self.num_updates}; lower the learning rate or clip the gradient."
      )

  def metrics(self) -> dict[str, float]:
    """Metrics of the last update; waits for it."""
    return {name: float(value) for name, value in self._metrics.items()}

  def get_variables(self, names: Sequence[str]) -> list[Any]:
    """The weights that actors need; `params` is the only variable."""
    if list(names) != ["params"]:
      raise ValueError(f"the only variable is 'params', not {list(names)}.")
    return [self._core.params(self._state)]

  def save(self) -> types.State:
    """The learner's state on the host."""
    return jax.device_get(self._state)

  def shapes(self) -> types.State:
    """The shapes of the result of `save`."""
    return jax.eval_shape(lambda: self._state)

  def restore(
    self,
    state: types.State,
    num_updates: int,
    metrics: Mapping[str, float] | None = None,
  ) -> None:
    """Resumes from a state of `save`.

    Args:
      state: the state.
      num_updates: made so far.
      metrics: of the last update.
    """
    self._state = jax.device_put(state)
    self.num_updates = num_updates
    self._metrics = {n: jnp.float32(value) for n, value in (metrics or {}).items()}


@functools.lru_cache(_MAX_PROGRAMS)
def _jitted_changes(update: types.Update) -> types.Update:
  """An update that returns the new state's leaves, with None for unchanged ones.

  XLA would copy those.
  """

  @jax.jit
  def changes(
    state: types.State, sample: types.Sample
  ) -> tuple[types.State, types.LearnerOutput]:
    new, output = update(state, sample)
    leaves = zip(jax.tree.leaves(new), jax.tree.leaves(state), strict=True)
    return [None if n is o else n for n, o in leaves], output

  return changes
