"""Targets of single transitions, whose reward may be an n-step return."""

import dataclasses

import jax

from explorax import losses
from explorax.agents.targets import types


@dataclasses.dataclass(frozen=True)
class QLearning(types.Target):
  """r + γ max_a q_t(a) (Mnih et al., 2015)."""

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return _td_errors(predictions, stream, None, tx_pair)


@dataclasses.dataclass(frozen=True)
class DoubleQ(types.Target):
  """r + γ q_t(a*), the online network choosing a* (van Hasselt et al., 2016)."""

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return _td_errors(predictions, stream, predictions.q_t_selector, tx_pair)


def _td_errors(
  predictions: types.Predictions,
  stream: types.Stream,
  q_t_selector: jax.Array | None,
  tx_pair: losses.TxPair,
) -> jax.Array:
  if tx_pair is losses.identity_pair:
    arguments = (
      predictions.q_tm1,
      stream.a_tm1,
      stream.r_t,
      stream.discount_t,
      predictions.q_t,
    )
    if q_t_selector is None:
      return jax.vmap(losses.q_learning)(*arguments)
    return jax.vmap(losses.double_q)(*arguments, q_t_selector)
  return losses.n_step_q(
    predictions.q_tm1,
    stream.a_tm1,
    stream.r_t,
    stream.discount_t,
    predictions.q_t,
    n=1,
    lambda_=0.0,
    q_t_selector=q_t_selector,
    tx_pair=tx_pair,
  )
