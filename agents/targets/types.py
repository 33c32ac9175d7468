"""What a target is, and what it sees."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import losses, ranges


class Predictions(NamedTuple):
  """What one member predicts along T transitions in a row, transformed by h.

  Attributes:
    q_tm1: float32 `[T, A]`, the online network's values at the sources. The gradient
      passes through these.
    q_t: `[T, A]`, the target network's at the destinations.
    q_t_selector: `[T, A]`, the online network's at the destinations: they say which
      action is greedy in a double estimate. No gradient.
    logits_tm1, logits_t: `[T, A, N]`, of the distributions whose means q_tm1 and q_t
      are; None where the network has none.
  """

  q_tm1: jax.Array
  q_t: jax.Array
  q_t_selector: jax.Array
  logits_tm1: jax.Array | None = None
  logits_t: jax.Array | None = None


class Stream(NamedTuple):
  """What happened along T transitions in a row.

  Attributes:
    a_tm1: int32 `[T]`, the actions taken at the sources.
    a_t: int32 `[T]`, those taken at the destinations.
    r_t: float32 `[T]`, rewards, with the scaled bonus where the member sees it. For a
      target of single transitions they may be n-step returns.
    discount_t: float32 `[T]`, what multiplies the bootstrap, γ included.
    mu_t: float32 `[T]`, the probabilities with which a_t were drawn; None for targets
      of single transitions.
    continues_t: float32 `[T]`, 1 where a transition starts at time t. A trace must not
      pass an episode's last row nor padding, where this is 0.
    exploration_epsilon: float32 `[]`, ε of the exploration now, for targets whose
      policy follows it; None for others.
  """

  a_tm1: jax.Array
  a_t: jax.Array
  r_t: jax.Array
  discount_t: jax.Array
  mu_t: jax.Array | None
  continues_t: jax.Array
  exploration_epsilon: jax.Array | float | None = None


class Target(ranges.Checked, abc.ABC):
  """The base of a frozen dataclass of a target's parameters.

  Attributes:
    is_multi_step: whether it reads the transitions of a window one after the other.
      Others treat each transition by itself, and may be given n-step returns; their TD
      errors must be linear in the reward, as a bonus is added to the error.
    atoms: float32 `[N]`, the support of the distributions that it learns; None for
      targets of values.
    follows_exploration: whether its policy is ε-greedy with the ε that explores.
  """

  is_multi_step: ClassVar[bool] = False

  @property
  def atoms(self) -> np.ndarray | None:
    return None

  @property
  def follows_exploration(self) -> bool:
    return False

  @abc.abstractmethod
  def td_errors(
    self, predictions: Predictions, stream: Stream, tx_pair: losses.TxPair
  ) -> jax.Array:
    """TD errors `[T]`; for distributions, of their means.

    Args:
      predictions: the values, transformed by `tx_pair`.
      stream: the transitions.
      tx_pair: h and its inverse.
    """

  def divergences(self, predictions: Predictions, stream: Stream) -> jax.Array:
    """The losses `[T]` of a target of distributions."""
    raise NotImplementedError(f"{type(self).__name__} has no distributions.")


def over_members(
  function: Callable[[Predictions, Stream], jax.Array],
  predictions: Predictions,
  stream: Stream,
  r_t: jax.Array,
  exploration_epsilon: jax.Array | float | None,
) -> jax.Array:
  """A target's function over a batch, and over members with their own rewards.

  Args:
    function: a target's `td_errors`, given its tx_pair, or its `divergences`.
    predictions: `[M, B, T, ...]`.
    stream: `[B, T]`, whose r_t and exploration_epsilon are not read.
    r_t: `[M, B, T]`.
    exploration_epsilon: of the exploration now, or None.

  Returns:
    `[M, B, T]`.
  """

  def one(predictions: Predictions, r_t: jax.Array, stream: Stream) -> jax.Array:
    stream = stream._replace(r_t=r_t, exploration_epsilon=exploration_epsilon)
    return function(predictions, stream)

  stream = stream._replace(exploration_epsilon=None)
  over_batch = jax.vmap(one)
  return jax.vmap(over_batch, in_axes=(0, 0, None))(predictions, r_t, stream)


def arguments(predictions: Predictions, stream: Stream) -> dict[str, Any]:
  """The arguments that all functions of `losses` for single values have, by name."""
  return {
    "q_tm1": predictions.q_tm1,
    "a_tm1": stream.a_tm1,
    "r_t": stream.r_t,
    "discount_t": stream.discount_t,
    "q_t": predictions.q_t,
  }


@dataclasses.dataclass(frozen=True)
class MultiStep(Target):
  """The base of targets with a trace of λ."""

  is_multi_step: ClassVar[bool] = True

  # λ, or one for each row of the window.
  lambda_: ranges.Probability | tuple[ranges.Probability, ...] = 0.95

  def lambda_t(self, stream: Stream) -> jax.Array:
    """λ `[T]`: 0 on an episode's last row and on padding."""
    return jnp.asarray(self.lambda_, jnp.float32) * stream.continues_t
