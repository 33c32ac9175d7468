"""Losses of the networks that measure novelty."""

import jax
import jax.numpy as jnp

from explorax.losses import checks, indexing

Array = jax.Array


@checks.arguments(prediction="float [..., D]", target="float [..., D]")
def rnd_error(prediction: Array, target: Array) -> Array:
  """Squared distance to the output of a random network: ‖ĝ(x) − g(x)‖².

  The loss of the predictor ĝ, and the novelty of x. No gradient passes to g(x).

  Source: Burda et al. 2018 (RND); Badia et al. 2020 (NGU), section 2.

  Args:
    prediction: ĝ(x). Float `[..., D]`.
    target: g(x). Float `[..., D]`.

  Returns:
    The sum over D of squared differences. `[...]`.
  """
  difference = jnp.asarray(prediction) - jax.lax.stop_gradient(target)
  return jnp.sum(jnp.square(difference), axis=-1)


@checks.arguments(logits="float [..., A]", action="int [...]")
def inverse_dynamics(logits: Array, action: Array) -> Array:
  """Cross entropy of the action between two observations: −log p(a | x_t, x_{t+1}).

  Source: Badia et al. 2020 (NGU), section 2, which trains its embedding with this loss.

  Args:
    logits: of p(· | x_t, x_{t+1}). Float `[..., A]`.
    action: a_t, taken at x_t. Int `[...]`.

  Returns:
    The loss. `[...]`.
  """
  log_probs = jax.nn.log_softmax(jnp.asarray(logits), axis=-1)
  return -indexing.select(log_probs, action)
