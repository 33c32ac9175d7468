"""What the engines' updates have in common."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax

from explorax import exploration, losses
from explorax.agents import types
from explorax.exploration import schedules

Tree = TypeVar("Tree")


def importance_weights(
  sample: types.Sample, exponent: jax.typing.ArrayLike
) -> jax.Array:
  """(1 / (n p))^exponent, divided by the batch's largest; ones at exponent 0."""
  weights = (1.0 / (sample.population * sample.probabilities)) ** exponent
  return weights / jnp.max(weights)


def exploration_epsilon(config: Any, num_updates: jax.Array) -> jax.Array | None:
  """ε of the exploration after so many updates, if the target's policy follows it.

  Updates tell the time: a run makes `updates_per_step` of them per environment step,
  once replay has its minimum.
  """
  if not config.target.follows_exploration:
    return None
  rule = config.exploration
  assert isinstance(rule, exploration.EpsilonGreedy)  # As the config has checked.
  steps = num_updates / config.updates_per_step
  env_steps = config.min_replay_size + steps.astype(jnp.int32)
  return jnp.asarray(schedules.at(rule.epsilon, env_steps))


def copy_every(period: int, num_updates: jax.Array, params: Tree, target: Tree) -> Tree:
  """The target's parameters, which become the online ones every `period` updates."""
  copy = num_updates % period == 0
  return jax.tree.map(lambda new, old: jnp.where(copy, new, old), params, target)


def keep_if(condition: jax.Array, new: Tree, old: Tree) -> Tree:
  """`new` where the condition holds, else `old`: the last good state.

  Selecting fuses into the update itself.
  """
  return jax.tree.map(lambda n, o: jnp.where(condition, n, o), new, old)


def ensemble_loss(
  td: jax.Array, mask: jax.Array, max_abs_td: float | None
) -> jax.Array:
  """Σ_k m_k l(δ_k) / M, l(δ) = δ² / 2, and linear beyond `max_abs_td` (Huber's loss).

  Args:
    td: `[M, N]`, the members' TD errors.
    mask: `[N, M]`, which members learn from each.
    max_abs_td: the greatest size of a gradient by δ; None: not bounded.

  Returns:
    `[N]`.
  """
  if max_abs_td is None:
    return jax.vmap(losses.bootstrapped_td, (1, 0))(td, mask)
  return mean_over_members(optax.losses.huber_loss(td, delta=max_abs_td), mask)


def mean_over_members(loss: jax.Array, mask: jax.Array) -> jax.Array:
  """Losses `[M, N]` → `[N]`: those of the members that learn, by the mask `[N, M]`."""
  mask = mask.T
  return jnp.sum(jnp.where(mask != 0, mask * loss, 0.0), axis=0) / mask.shape[0]


def masked_mean(x: jax.Array, mask: jax.Array) -> jax.Array:
  """The mean of what the mask (of x's shape) lets through; 0 where it lets nothing."""
  return jnp.sum(x * mask) / jnp.maximum(jnp.sum(mask), 1.0)
