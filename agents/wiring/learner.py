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
  """Takes batches from an iterator; jits the update once, with a donated state.

  Args:
    agent: whose learner runs.
    batches: of (keys, Sample), from a replay backend.
    update_priorities: (keys, priorities) → None, called after each update if the replay
      is prioritised.
    key: for the state's initialisation.
    donates: whether the update overwrites the state; None: except on a CPU, where such
      an update returns only when it is done, and XLA copies data that it reads later,
      so that a run takes a fifth longer. Elsewhere memory matters more.
  """

  def __init__(
    self,
    agent: types.Agent,
    batches: Iterator[tuple[np.ndarray, types.Sample]],
    update_priorities: Callable[[np.ndarray, np.ndarray], None],
    key: jax.Array,
    donates: bool | None = None,
  ):
    self._core = agent.learner
    self._prioritised = agent.replay.priority_exponent > 0
    if donates is None:
      donates = jax.default_backend() != "cpu"
    # Actors may keep their weights for a while, and must not keep donated buffers.
    self._copies = donates and (
      agent.actor_update_period > 1 or agent.refresh is not None
    )
    self._batches = batches
    self._update_priorities = update_priorities
    self._state = jax.jit(self._core.init)(key)
    self._target, update = self._core.target, self._core.update
    # Two leaves of a donated state cannot be the same array.
    if donates or self._target is None or self._target.whole is not update:
      self._target = None
    else:
      update = self._target.update
    self._update = _jitted_update(update, donates)
    self._changed: list[int] | None = None  # The leaves that an update changes.
    self._metrics: dict[str, jax.Array] = {}
    self.num_updates = 0

  def step(self) -> None:
    """Makes an update on the next batch; the device works while this returns.

    A non-finite update is the last: `num_updates` counts it, but the state does not.
    """
    keys, sample = next(self._batches)
    self._copy_if_due()
    new, output = self._update(self._state, sample)
    self._replace_changed(new)
    self._metrics = output.metrics
    self.num_updates += 1
    # Replay refuses a NaN; the caller learns about it from `is_finite`.
    if self._prioritised and self.is_finite():
      self._update_priorities(keys, np.asarray(output.priorities))

  def _replace_changed(self, new: types.State) -> None:
    """Takes the leaves of a new state that are not None."""
    if self._changed is None:
      leaves = jax.tree.leaves(new, is_leaf=lambda x: x is None)
      self._changed = [i for i, leaf in enumerate(leaves) if leaf is not None]
    leaves, structure = jax.tree.flatten(self._state)
    for index, leaf in zip(self._changed, jax.tree.leaves(new), strict=True):
      leaves[index] = leaf
    self._state = jax.tree.unflatten(structure, leaves)

  def _copy_if_due(self) -> None:
    if self._target is not None and self.num_updates % self._target.period == 0:
      self._state = self._target.copy(self._state)

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
    params = self._core.params(self._state)
    return [_copy(params) if self._copies else params]

  def save(self) -> types.State:
    """The learner's state on the host."""
    self._copy_if_due()  # Learners with a donated state include the copy in the update.
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
def _jitted_update(update: types.Update, donates: bool) -> types.Update:
  """A core's update; cached per core.

  Unless the state is donated, unchanged leaves of it are returned as None: XLA would
  copy them on a CPU.
  """

  def changed(
    state: types.State, sample: types.Sample
  ) -> tuple[types.State, types.LearnerOutput]:
    new, output = update(state, sample)
    if not donates:
      new = jax.tree.map(lambda n, o: None if n is o else n, new, state)
    return new, output

  return jax.jit(changed, donate_argnums=0 if donates else ())


@jax.jit
def _copy(params: types.Params) -> types.Params:
  return jax.tree.map(jnp.copy, params)
