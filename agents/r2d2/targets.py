"""The engine's targets by name: TD errors of one member on one sequence."""

import jax
import jax.numpy as jnp

from explorax import losses
from explorax.agents.r2d2 import config as config_lib

_OFF_POLICY = {
  "retrace": losses.retrace,
  "tree_backup": losses.tree_backup,
  "harutyunyan_q_lambda": losses.harutyunyan_q_lambda,
}


def tx_pair(config: config_lib.R2D2Config) -> losses.TxPair:
  """h and its inverse."""
  if config.transform_eps is None:
    return losses.identity_pair
  return losses.signed_hyperbolic_pair(config.transform_eps)


def epsilon_greedy_policy(q: jax.Array, epsilon: jax.Array | float) -> jax.Array:
  """Probabilities `[..., A]` of the ε-greedy policy, the first of tied actions' own."""
  num_actions = q.shape[-1]
  greedy = jax.nn.one_hot(jnp.argmax(q, axis=-1), num_actions)
  return (1.0 - epsilon) * greedy + epsilon / num_actions


def td_errors(
  config: config_lib.R2D2Config,
  q_tm1: jax.Array,
  q_t: jax.Array,
  selector_t: jax.Array,
  a_tm1: jax.Array,
  a_t: jax.Array,
  r_t: jax.Array,
  discount_t: jax.Array,
  mu_t: jax.Array,
  goes_on_t: jax.Array,
  target_epsilon: jax.Array | float,
) -> jax.Array:
  """TD errors `[T]` of the config's target.

  Args:
    config: names the target.
    q_tm1, q_t: online and target values, transformed, `[T, A]`.
    selector_t: the values that say which action is greedy, `[T, A]`.
    a_tm1, a_t, r_t, discount_t, mu_t: as in `losses.retrace`, `[T]`.
    goes_on_t: 1 where a transition starts at time t, `[T]`: a trace must not pass an
      episode's last row, nor padding.
    target_epsilon: ε of the target policy, of targets that have one.
  """
  tx = tx_pair(config)
  if config.target == "n_step":
    return losses.n_step_q(
      q_tm1, a_tm1, r_t, discount_t, q_t, config.n_step, goes_on_t, selector_t, tx
    )
  lambda_t = config.lambda_ * goes_on_t
  if config.target == "peng_q_lambda":
    return losses.peng_q_lambda(
      q_tm1, a_tm1, r_t, discount_t, q_t, lambda_t, selector_t, tx
    )
  if config.target == "watkins_q_lambda":
    return losses.watkins_q_lambda(
      q_tm1, q_t, a_tm1, a_t, r_t, discount_t, lambda_t, selector_t, tx
    )
  pi_t = epsilon_greedy_policy(selector_t, target_epsilon)
  if config.target == "expected_sarsa_lambda":
    return losses.expected_sarsa_lambda(
      q_tm1, a_tm1, r_t, discount_t, q_t, pi_t, lambda_t, tx
    )
  return _OFF_POLICY[config.target](
    q_tm1, q_t, a_tm1, a_t, r_t, discount_t, pi_t, mu_t, lambda_t, tx
  )
