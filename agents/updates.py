"""Parts of an update that learners share."""

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
    loss, aux: the result of the loss before the step.
  """

  params: Any
  opt_state: Any
  loss: jax.Array
  aux: Any


def adam(
  learning_rate: optax.ScalarOrSchedule,
  b1: float = 0.9,
  b2: float = 0.999,
  eps: float = 1e-8,
) -> optax.GradientTransformationExtraArgs:
  """`optax.adam` for `apply_if`, with the same results.

  The step is computed from the moments that are kept: on a CPU, selecting all results
  afterwards takes an eighth of a small network's update.
  """
  inner = optax.scale_by_adam(b1, b2, eps)

  def update(
    gradients: Any, state: Any, params: Any = None, *, finite: jax.Array, **_: Any
  ) -> tuple[Any, Any]:
    new = select_tree(finite, inner.update(gradients, state, params)[1], state)
    scale_m, scale_v = 1 - b1**new.count, 1 - b2**new.count
    steps = jax.tree.map(
      lambda m, v: m / scale_m / (jnp.sqrt(v / scale_v) + eps), new.mu, new.nu
    )
    return steps, new

  scale = skip_nonfinite(optax.scale_by_learning_rate(learning_rate))
  return optax.chain(optax.GradientTransformationExtraArgs(inner.init, update), scale)


def skip_nonfinite(
  optimizer: optax.GradientTransformation,
) -> optax.GradientTransformationExtraArgs:
  """The optimizer for `apply_if`: its state is kept unless all is `finite`."""

  def update(
    gradients: Any, state: Any, params: Any = None, *, finite: jax.Array, **_: Any
  ) -> tuple[Any, Any]:
    steps, new = optimizer.update(gradients, state, params)
    return steps, select_tree(finite, new, state)

  return optax.GradientTransformationExtraArgs(optimizer.init, update)


def apply_if(
  finite: jax.Array,
  optimizer: optax.GradientTransformationExtraArgs,
  gradients: Any,
  params: Tree,
  opt_state: Any,
) -> tuple[Tree, Any]:
  """The parameters and the optimizer's state after a step, if all is `finite`.

  Args:
    finite: bool `[]`, whether to make the step.
    optimizer: `adam`, or another one through `skip_nonfinite`.
    gradients, params, opt_state: of a learner.
  """
  steps, opt_state = optimizer.update(gradients, opt_state, params, finite=finite)
  return select_tree(finite, optax.apply_updates(params, steps), params), opt_state


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
  """The optimizer on `networks.EnsembleParams`, with the torso's gradient divided by M.

  With a loss that sums over M heads, each head learns like a separate network, and the
  shared torso learns from the mean of their gradients.

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
  return Step(optax.apply_updates(params, steps), opt_state, value, aux)


def finish(
  finite: jax.Array,
  new: Tree,
  old: Tree,
  loss: jax.Array,
  priorities: jax.Array,
  metrics: dict[str, jax.Array],
) -> tuple[Tree, types.LearnerOutput]:
  """The result of an update: the new state if all is `finite`, else the old one."""
  metrics = {"loss": loss, "finite": finite.astype(jnp.float32), **metrics}
  return select_tree(finite, new, old), types.LearnerOutput(priorities, metrics)


def q_bound(
  max_abs_reward: jax.Array, discount: float, tx: losses.TxPair = losses.identity_pair
) -> dict[str, jax.Array]:
  """The metric `q_bound` = h(R / (1 − γ)), which no value exceeds under any policy.

  With transformed values, h(r + γ h⁻¹(q)) does not exceed it either.

  Args:
    max_abs_reward: R, the largest |r| that the learner has seen, with its bonus, `[]`.
    discount: γ, the largest of a mixture. Values with γ = 1 have no such bound, and
      there is no metric.
    tx: the transformation h of the values.
  """
  if discount == 1.0:
    return {}
  return {"q_bound": tx.apply(max_abs_reward / (1.0 - discount))}


def importance_weights(
  sample: types.Sample, exponent: jax.typing.ArrayLike
) -> jax.Array:
  """(1 / (n p))^exponent, divided by the batch's largest; ones at exponent 0."""
  weights = (1.0 / (sample.population * sample.probabilities)) ** exponent
  return weights / jnp.max(weights)


def exploration_epsilon(config: Any, num_updates: jax.Array) -> jax.Array | None:
  """The exploration's ε after so many updates, if the target's policy follows it.

  The number of updates determines the time: a run makes `updates_per_step` updates per
  environment step once replay has its minimum size.
  """
  if not config.target.follows_exploration:
    return None
  rule = config.exploration
  assert isinstance(rule, exploration.EpsilonGreedy)  # The config has checked this.
  steps = num_updates / config.updates_per_step
  env_steps = config.min_replay_size + steps.astype(jnp.int32)
  return jnp.asarray(schedules.at(rule.epsilon, env_steps))


def select_tree(condition: jax.Array, new: Tree, old: Tree) -> Tree:
  """`new` where the condition holds, else `old`.

  Leaves that are the same array in both, such as fixed priors, are returned unchanged.
  The selection of the others fuses into their computation.
  """
  return jax.tree.map(
    lambda n, o: o if n is o else jnp.where(condition, n, o), new, old
  )


def ensemble_loss(
  td: jax.Array, mask: jax.Array, max_abs_td: float | None
) -> jax.Array:
  """Σ_k m_k l(δ_k) / M, with Huber's loss l: δ² / 2, and linear beyond `max_abs_td`.

  Args:
    td: `[M, N]`, the members' TD errors.
    mask: `[N, M]`, which members learn from each.
    max_abs_td: the bound of the gradient with respect to δ; None: not bounded.

  Returns:
    `[N]`.
  """
  if max_abs_td is None:
    return jax.vmap(losses.bootstrapped_td, (1, 0))(td, mask)
  return mean_over_members(optax.losses.huber_loss(td, delta=max_abs_td), mask)


def mean_over_members(loss: jax.Array, mask: jax.Array) -> jax.Array:
  """Mean of losses `[M, N]` → `[N]` over the learning members of the mask `[N, M]`."""
  mask = mask.T
  return jnp.sum(jnp.where(mask != 0, mask * loss, 0.0), axis=0) / mask.shape[0]


def masked_mean(x: jax.Array, mask: jax.Array) -> jax.Array:
  """The mean over the entries with mask 1 (of x's shape); 0 if there are none."""
  return jnp.sum(x * mask) / jnp.maximum(jnp.sum(mask), 1.0)
