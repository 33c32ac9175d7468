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
  arguments = types.arguments(predictions, stream)
  if tx_pair is not losses.identity_pair:
    return losses.n_step_q(
      **arguments, n=1, lambda_=0.0, q_t_selector=q_t_selector, tx_pair=tx_pair
    )
  if q_t_selector is None:
    return jax.vmap(losses.q_learning)(*arguments.values())
  return jax.vmap(losses.double_q)(*[*arguments.values(), q_t_selector])
