"""Multi-step targets of the greedy policy: n-step, Peng's Q(λ) and Watkins's Q(λ)."""

import dataclasses
from typing import ClassVar

import jax

from explorax import losses, ranges
from explorax.agents.targets import types


@dataclasses.dataclass(frozen=True)
class NStep(types.Target):
  """n rewards and the greedy value after them, without a correction (R2D2)."""

  is_multi_step: ClassVar[bool] = True

  n: ranges.PositiveInt = 5  # Rewards in a return (R2D2).
  double: bool = True  # Whether the online network says which action is greedy.

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return losses.n_step_q(
      **types.arguments(predictions, stream),
      n=self.n,
      lambda_=stream.continues_t,
      q_t_selector=predictions.q_t_selector if self.double else None,
      tx_pair=tx_pair,
    )


@dataclasses.dataclass(frozen=True)
class PengQ(types.MultiStep):
  """Peng's Q(λ), which does not correct for the behaviour policy."""

  lambda_: ranges.Probability | tuple[ranges.Probability, ...] = 0.7  # λ.
  double: bool = True  # Whether the online network says which action is greedy.

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return losses.peng_q_lambda(
      **types.arguments(predictions, stream),
      lambda_=self.lambda_t(stream),
      q_t_selector=predictions.q_t_selector if self.double else None,
      tx_pair=tx_pair,
    )
