"""Duelling heads: a value and an advantage for every action."""

from collections.abc import Callable

import haiku as hk
import jax
import jax.numpy as jnp


class DuellingHead(hk.Module):
  """Q(a) = V + A(a) − mean_b A(b), each of the two a layer of its own.

  Source: Wang et al. (2016), equation 9.
  """

  def __init__(self, num_actions: int, hidden_size: int, name: str | None = None):
    """Makes one.

    Args:
      num_actions: A.
      hidden_size: units of the hidden layer of the value, and of the advantage.
      name: of the module.
    """
    super().__init__(name)
    self._num_actions = num_actions
    self._hidden_size = hidden_size

  def __call__(self, features: jax.Array) -> jax.Array:
    """float `[..., F]` → q `[..., A]`."""

    def branch(size: int, name: str) -> jax.Array:
      hidden = jax.nn.relu(
        hk.Linear(self._hidden_size, name=f"{name}_hidden")(features)
      )
      return hk.Linear(size, name=name)(hidden)

    value = branch(1, "value")
    advantage = branch(self._num_actions, "advantage")
    return value + advantage - jnp.mean(advantage, axis=-1, keepdims=True)


def make_head(num_actions: int, hidden_size: int) -> Callable[[jax.Array], jax.Array]:
  """A duelling head, or a linear layer if it has no units: `[..., F]` → `[..., A]`."""
  if hidden_size == 0:
    return hk.Linear(num_actions, name="head")
  return DuellingHead(num_actions, hidden_size)
