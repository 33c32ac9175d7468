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


@checks.arguments(prediction="float [..., D]", embedding_t="float [..., D]")
def forward_dynamics(prediction: Array, embedding_t: Array) -> Array:
  """Error of a predicted embedding: ½ ‖f(φ(x_{t−1}), a) − φ(x_t)‖².

  The gradient passes to both arguments, as in the authors' code: the loss also trains
  φ to be predictable.

  Source: Pathak et al. 2017 (ICM).

  Args:
    prediction: f(φ(x_{t−1}), a_{t−1}). Float `[..., D]`.
    embedding_t: φ(x_t). Float `[..., D]`.

  Returns:
    The error. `[...]`.
  """
  difference = jnp.asarray(prediction) - jnp.asarray(embedding_t)
  return 0.5 * jnp.sum(jnp.square(difference), axis=-1)


@checks.arguments(predictions="float [K, D]")
def disagreement(predictions: Array) -> Array:
  """Mean over D of the variance over K of predictions of one embedding.

  Source: Pathak et al. 2019 (Self-supervised exploration via disagreement).

  Args:
    predictions: of K models. Float `[K, D]`.

  Returns:
    The variance, divided by K. `[]`.
  """
  return jnp.mean(jnp.var(predictions, axis=0))


@checks.arguments(novelty_tm1="number [...]", novelty_t="number [...]")
def novel_d(novelty_tm1: Array, novelty_t: Array, alpha: float) -> Array:
  """How much novelty rises: max(n(x_t) − α n(x_{t−1}), 0).

  With n = 1 / N and α = 1 it is BeBold's bonus.

  Source: Zhang et al. 2021 (NovelD), 2020 (BeBold).

  Args:
    novelty_tm1, novelty_t: n of both observations, at least 0. `[...]`.
    alpha: α, at least 0.

  Returns:
    The rise. `[...]`.
  """
  return jnp.maximum(jnp.asarray(novelty_t) - alpha * jnp.asarray(novelty_tm1), 0.0)
