"""The mixture of policies of Never Give Up: a β and a γ for each (paper 2)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from explorax import exploration
from explorax.agents.q import config as config_lib
from explorax.exploration import schedules


def discounts(config: config_lib.QConfig) -> jax.Array:
  """γ of each policy, `[N]`; a single policy without exploration has the longest."""
  n, longest = config.num_policies, config.discount
  if config.min_discount is None or (n == 1 and not config.beta):
    return jnp.full((n,), longest, jnp.float32)
  return exploration.mixture_discounts(n, longest, config.min_discount)


def betas(config: config_lib.QConfig, num_updates: jax.Array | int) -> jax.Array:
  """β of each policy after so many updates, `[N]`."""
  if isinstance(config.beta, schedules.Schedule):
    shares = exploration.mixture_betas(config.num_policies, 1.0)
    return config.beta(jnp.asarray(num_updates)) * shares
  return exploration.mixture_betas(config.num_policies, config.beta)


def relabel(
  key: jax.Array, policy: jax.Array, ratio: float, num_policies: int
) -> jax.Array:
  """Relabels the first `ratio` of a batch with policies drawn uniformly.

  Windows are drawn independently, so the first ones are a random choice.

  Args:
    key: a random key.
    policy: int32 `[B]`, the policies that acted.
    ratio: the cross mixture ratio (Badia et al., 2020, appendix F); the number of
      windows is rounded.
    num_policies: N; more than one unless the ratio is 0.
  """
  size = policy.shape[0]
  num_relabelled = round(ratio * size)
  if num_relabelled == 0:
    return policy
  step = jax.random.randint(key, (size,), 1, num_policies, jnp.int32)
  other = (policy + step) % num_policies
  return jnp.where(jnp.arange(size) < num_relabelled, other, policy)


class Assignment(NamedTuple):
  """The policy that an actor follows, int32 `[]`.

  Attributes:
    fixed: the one that it always follows; −1: it draws one for each episode.
    policy: the current one.
  """

  fixed: jax.Array
  policy: jax.Array


def assign(
  config: config_lib.QConfig, actor: exploration.ActorIndex, evaluation: bool
) -> Any:
  """Actor j follows policy j mod N, and evaluation `evaluation_policy`.

  With fewer actors than policies, each actor draws one per episode. Without a mixture
  the result is `()`.
  """
  n = config.num_policies
  if n == 1:
    return ()
  if evaluation:
    fixed = jnp.int32(config.evaluation_policy % n)
  else:
    own = jnp.asarray(actor.actor_id, jnp.int32) % n
    fixed = jnp.where(jnp.asarray(actor.num_actors) >= n, own, -1)
  return Assignment(fixed, jnp.int32(0))


def begin_episode(key: jax.Array, assignment: Assignment, n: int) -> Assignment:
  """Draws the policy of an episode, if none is fixed."""
  drawn = jax.random.randint(key, (), 0, n, jnp.int32)
  policy = jnp.where(assignment.fixed >= 0, assignment.fixed, drawn)
  return assignment._replace(policy=policy)
