"""What the engines' updates have in common."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax

from explorax import exploration, losses, networks
from explorax.agents import types
from explorax.exploration import schedules

Tree = TypeVar("Tree")


class Step(NamedTuple):
  """A step of gradient descent.

  Attributes:
    params, opt_state: after the step.
    loss, aux: what the loss returned before it.
    gradients: of the loss, as they were before the optimizer.
  """

  params: Any
  opt_state: Any
  loss: jax.Array
  aux: Any
  gradients: Any


def clipped(
  optimizer: optax.GradientTransformation, max_gradient_norm: float | None
) -> optax.GradientTransformation:
  """The optimizer on gradients clipped to a global norm; None: not clipped."""
  if max_gradient_norm is None:
    return optimizer
  return optax.chain(optax.clip_by_global_norm(max_gradient_norm), optimizer)


def with_torso_divided(
  optimizer: optax.GradientTransformation, num_members: int
) -> optax.GradientTransformation:
  """The optimizer on `networks.EnsembleParams`, the torso's gradient divided by M.

  With a loss that is the sum over M heads, the heads learn as networks of their own do,
  and the torso that they share from the mean of what they want.

  Source: Osband et al. 2016 (Deep exploration via bootstrapped DQN), whose network
  normalises the heads' gradients into the shared layers by 1/K.
  """

  def divide(gradients: networks.EnsembleParams, params: Any) -> Any:
    del params
    return gradients._replace(
      torso=jax.tree.map(lambda x: x / num_members, gradients.torso)
    )

  return optax.chain(optax.stateless(divide), optimizer)


def step(
  optimizer: optax.GradientTransformation,
  loss: Callable[..., tuple[jax.Array, Any]],
  params: Any,
  opt_state: Any,
  *args: Any,
) -> Step:
  """One step of an optimizer on `loss(params, *args) → (loss, aux)`."""
  (value, aux), gradients = jax.value_and_grad(loss, has_aux=True)(params, *args)
  steps, opt_state = optimizer.update(gradients, opt_state, params)
  return Step(optax.apply_updates(params, steps), opt_state, value, aux, gradients)


def finish(
  finite: jax.Array,
  new: Tree,
  old: Tree,
  loss: jax.Array,
  priorities: jax.Array,
  metrics: dict[str, jax.Array],
) -> tuple[Tree, types.LearnerOutput]:
  """What an update returns: the new state if all is `finite`, else the old one."""
  metrics = {"loss": loss, "finite": finite.astype(jnp.float32), **metrics}
  return keep_if(finite, new, old), types.LearnerOutput(priorities, metrics)


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


def make_learner(
  init: Callable[[jax.Array], Any],
  update: Callable[..., tuple[Any, types.LearnerOutput]],
  copy: Callable[[Any], Any],
  params: Callable[[Any], Any],
  period: int,
) -> types.LearnerCore:
  """The core of a learner whose state counts `num_updates` and has a target network.

  Args:
    init: of the core; the target network is the online one.
    update: (state, sample, copied) → (state, output). It applies `copied` to the new
      state, before an update that is not finite is dropped.
    copy: (state) → the state whose target network is the online one.
    params: of the core.
    period: learner updates between two copies.
  """

  def copied_if_due(new: Any) -> Any:
    return keep_if(new.num_updates % period == 0, copy(new), new)

  def whole(state: Any, sample: types.Sample) -> tuple[Any, types.LearnerOutput]:
    return update(state, sample, copied_if_due)

  def part(state: Any, sample: types.Sample) -> tuple[Any, types.LearnerOutput]:
    return update(state, sample, lambda new: new)

  target = types.TargetNetwork(whole, period, part, copy)
  return types.LearnerCore(init, whole, params, target)


def keep_if(condition: jax.Array, new: Tree, old: Tree) -> Tree:
  """`new` where the condition holds, else `old`.

  Leaves that are the same array in both, such as fixed priors, are returned as they
  are. Selecting the others fuses into what computes them.
  """
  return jax.tree.map(
    lambda n, o: o if n is o else jnp.where(condition, n, o), new, old
  )


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
