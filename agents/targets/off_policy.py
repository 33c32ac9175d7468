"""Targets that evaluate an ε-greedy policy; they differ in their traces.

Munos et al. (2016); expected SARSA(λ), which does not correct for the behaviour policy,
is Sutton and Barto's (2018, equation 12.20).
"""

import abc
import dataclasses

import jax
import jax.numpy as jnp

from explorax import losses, ranges
from explorax.agents.targets import types
from explorax.losses import traces


@dataclasses.dataclass(frozen=True)
class EpsilonGreedyTarget(types.MultiStep):
  """The base of targets that evaluate an ε-greedy policy."""

  # ε of the policy evaluated; 0: greedy; None: the ε that explores now (Munos et al.).
  epsilon: ranges.Probability | None = 0.0
  double: bool = True  # Whether the online network says which action is greedy.

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

  @staticmethod
  @abc.abstractmethod
  def trace(
    pi_a_t: jax.Array, mu_t: jax.Array, lambda_: float | jax.Array
  ) -> jax.Array:
    """c, from π(a_t), μ(a_t) and λ, all `[T]`."""

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    assert stream.mu_t is not None  # Engines store it for multi-step targets.
    return losses.off_policy_q(
      self.trace,
      **types.arguments(predictions, stream),
      a_t=stream.a_t,
      pi_t=self.pi_t(predictions, stream),
      mu_t=stream.mu_t,
      lambda_=self.lambda_t(stream),
      tx_pair=tx_pair,
    )


@dataclasses.dataclass(frozen=True)
class Retrace(OffPolicy):
  """Retrace(λ): c = λ min(1, π/μ)."""

  trace = staticmethod(traces.retrace)


@dataclasses.dataclass(frozen=True)
class TreeBackup(OffPolicy):
  """Tree-backup(λ): c = λ π (Precup et al., 2000)."""

  trace = staticmethod(traces.tree_backup)


@dataclasses.dataclass(frozen=True)
class Harutyunyan(OffPolicy):
  """Q^π(λ), and Q*(λ) with a greedy π (Harutyunyan et al., 2016): c = λ."""

  trace = staticmethod(traces.harutyunyan_q_lambda)


@dataclasses.dataclass(frozen=True)
class ExpectedSarsaLambda(EpsilonGreedyTarget):
  """Expected SARSA(λ), on-policy: λ-returns of the policy's values."""

  def td_errors(
    self, predictions: types.Predictions, stream: types.Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    return losses.expected_sarsa_lambda(
      **types.arguments(predictions, stream),
      pi_t=self.pi_t(predictions, stream),
      lambda_=self.lambda_t(stream),
      tx_pair=tx_pair,
    )


def epsilon_greedy_policy(q: jax.Array, epsilon: jax.Array | float) -> jax.Array:
  """Probabilities `[..., A]` of the ε-greedy policy, the first of tied actions' own."""
  num_actions = q.shape[-1]
  greedy = jax.nn.one_hot(jnp.argmax(q, axis=-1), num_actions, dtype=q.dtype)
  return (1.0 - epsilon) * greedy + epsilon / num_actions
