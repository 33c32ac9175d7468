"""Multi-step targets of the greedy policy: n-step, Peng's Q(λ) and Watkins's Q(λ)."""

import dataclasses
from typing import ClassVar

import jax

from explorax import losses
from explorax.agents.targets import types


@dataclasses.dataclass(frozen=True)
class NStep(types.Target):
  """n rewards and the greedy value after them, without a correction (R2D2)."""

  is_multi_step: ClassVar[bool] = True

  n: int = 5  # Rewards in a return (R2D2).
  double: bool = True  # Whether the online network chooses the greedy action.

  def __post_init__(self):
    if self.n < 1:
      raise ValueError(f"NStep.n is {self.n}; it must be at least 1.")

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return losses.n_step_q(
      predictions.q_tm1,
      stream.a_tm1,
      stream.r_t,
      stream.discount_t,
      predictions.q_t,
      self.n,
      stream.continues_t,
      _selector(predictions, self.double),
      tx_pair,
    )


@dataclasses.dataclass(frozen=True)
class PengQ(types.Target):
  """Peng's Q(λ), which does not correct for the behaviour policy."""

  is_multi_step: ClassVar[bool] = True

  lambda_: float | tuple[float, ...] = 0.7  # λ, or one for each row of the window.
  double: bool = True  # Whether the online network chooses the greedy action.

  def __post_init__(self):
    types.check_lambda(self)

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return losses.peng_q_lambda(
      predictions.q_tm1,
      stream.a_tm1,
      stream.r_t,
      stream.discount_t,
      predictions.q_t,
      types.trace_lambda(self.lambda_, stream),
      _selector(predictions, self.double),
      tx_pair,
    )


@dataclasses.dataclass(frozen=True)
class WatkinsQ(types.Target):
  """Watkins's Q(λ): the trace is cut at actions that are not greedy."""

  is_multi_step: ClassVar[bool] = True

  lambda_: float | tuple[float, ...] = 0.95  # λ, or one for each row of the window.
  double: bool = True  # Whether the online network chooses the greedy action.

  def __post_init__(self):
    types.check_lambda(self)

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return losses.watkins_q_lambda(
      predictions.q_tm1,
      predictions.q_t,
      stream.a_tm1,
      stream.a_t,
      stream.r_t,
      stream.discount_t,
      types.trace_lambda(self.lambda_, stream),
      _selector(predictions, self.double),
      tx_pair,
    )


def _selector(predictions: types.Predictions, double: bool) -> jax.Array | None:
  return predictions.q_t_selector if double else None
