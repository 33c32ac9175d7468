"""Targets that evaluate an ε-greedy policy, told apart by their traces.

Munos et al. (2016); expected SARSA(λ), which does not correct for the behaviour policy,
is Sutton and Barto's (2018, equation 12.20).
"""

import abc
import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from explorax import losses
from explorax.agents.targets import types
from explorax.losses import traces


@dataclasses.dataclass(frozen=True)
class EpsilonGreedyTarget(types.Target):
  """The parameters that these targets share, and their policy."""

  is_multi_step: ClassVar[bool] = True

  lambda_: float | tuple[float, ...] = 0.95  # λ, or one for each row of the window.
  # ε of the policy evaluated; 0: greedy; None: the ε that explores now (Munos et al.).
  epsilon: float | None = 0.0
  double: bool = True  # Whether the online network says which action is greedy.

  def __post_init__(self):
    types.check_lambda(self)
    if self.epsilon is not None and not 0 <= self.epsilon <= 1:
      raise ValueError(
        f"{type(self).__name__}.epsilon is {self.epsilon}; it must be in [0, 1], or "
        "None for the ε that explores."
      )

  @property
  def follows_exploration(self) -> bool:
    return self.epsilon is None

  def pi_t(self, predictions: types.Predictions, stream: types.Stream) -> jax.Array:
    """π `[T, A]` at the destinations."""
    epsilon = stream.exploration_epsilon if self.epsilon is None else self.epsilon
    assert epsilon is not None  # As the engine provides, and configs check.
    values = predictions.q_t_selector if self.double else predictions.q_t
    return epsilon_greedy_policy(values, epsilon)


@dataclasses.dataclass(frozen=True)
class OffPolicy(EpsilonGreedyTarget):
  """The base of those that one return and a trace make (`losses.off_policy_q`)."""

  @property
  @abc.abstractmethod
  def trace(self) -> traces.Trace:
    """(π(a), μ(a), λ) → c."""

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    assert stream.mu_t is not None  # Engines store it for multi-step targets.
    return losses.off_policy_q(
      self.trace,
      predictions.q_tm1,
      predictions.q_t,
      stream.a_tm1,
      stream.a_t,
      stream.r_t,
      stream.discount_t,
      self.pi_t(predictions, stream),
      stream.mu_t,
      types.trace_lambda(self.lambda_, stream),
      tx_pair,
    )


@dataclasses.dataclass(frozen=True)
class Retrace(OffPolicy):
  """Retrace(λ): c = λ min(1, π/μ)."""

  @property
  def trace(self) -> traces.Trace:
    return traces.retrace


@dataclasses.dataclass(frozen=True)
class TreeBackup(OffPolicy):
  """Tree-backup(λ): c = λ π (Precup et al., 2000)."""

  @property
  def trace(self) -> traces.Trace:
    return traces.tree_backup


@dataclasses.dataclass(frozen=True)
class Harutyunyan(OffPolicy):
  """Q^π(λ), and Q*(λ) with a greedy π (Harutyunyan et al., 2016): c = λ."""

  @property
  def trace(self) -> traces.Trace:
    return traces.harutyunyan_q_lambda


@dataclasses.dataclass(frozen=True)
class ExpectedSarsaLambda(EpsilonGreedyTarget):
  """Expected SARSA(λ), on-policy: λ-returns of the policy's values."""

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return losses.expected_sarsa_lambda(
      predictions.q_tm1,
      stream.a_tm1,
      stream.r_t,
      stream.discount_t,
      predictions.q_t,
      self.pi_t(predictions, stream),
      types.trace_lambda(self.lambda_, stream),
      tx_pair,
    )


def epsilon_greedy_policy(q: jax.Array, epsilon: jax.Array | float) -> jax.Array:
  """Probabilities `[..., A]` of the ε-greedy policy, the first of tied actions' own."""
  num_actions = q.shape[-1]
  greedy = jax.nn.one_hot(jnp.argmax(q, axis=-1), num_actions)
  return (1.0 - epsilon) * greedy + epsilon / num_actions
