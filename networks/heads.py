"""Heads: map features to a value, or a distribution, for every action."""

from collections.abc import Callable

import haiku as hk
import jax
import jax.numpy as jnp

# (units, name) → a linear layer of that many units.
MakeLinear = Callable[[int, str], Callable[[jax.Array], jax.Array]]


def plain_linear(size: int, name: str) -> Callable[[jax.Array], jax.Array]:
  """Haiku's linear layer."""
  return hk.Linear(size, name=name)


class DuellingHead(hk.Module):
  """Q(a) = V + A(a) − mean_b A(b), with separate layers for V and A.

  With N atoms, this applies to the logits of each atom (Hessel et al., 2018).

  Source: Wang et al. (2016), equation 9.
  """

  def __init__(
    self,
    num_actions: int,
    hidden_size: int,
    num_atoms: int | None = None,
    make_linear: MakeLinear = plain_linear,
    name: str | None = None,
  ):
    """Makes the head.

    Args:
      num_actions: A.
      hidden_size: units of the hidden layers of V and of A.
      num_atoms: N, of a distribution's support; None: a single value.
      make_linear: builds the four linear layers.
      name: of the module.
    """
    super().__init__(name)
    self._num_actions = num_actions
    self._hidden_size = hidden_size
    self._num_atoms = num_atoms
    self._make_linear = make_linear

  def __call__(self, features: jax.Array) -> jax.Array:
    """float `[..., F]` → q `[..., A]`, or logits `[..., A, N]`."""

    def branch(size: int, name: str) -> jax.Array:
      hidden = self._make_linear(self._hidden_size, f"{name}_hidden")(features)
      return self._make_linear(size, name)(jax.nn.relu(hidden))

    if self._num_atoms is None:
      value, actions_axis = branch(1, "value"), -1
      advantage = branch(self._num_actions, "advantage")
    else:
      value, actions_axis = branch(self._num_atoms, "value")[..., None, :], -2
      advantage = branch(self._num_actions * self._num_atoms, "advantage")
      advantage = jnp.reshape(
        advantage, (*advantage.shape[:-1], self._num_actions, self._num_atoms)
      )
    return value + advantage - jnp.mean(advantage, axis=actions_axis, keepdims=True)


class PlainHead(hk.Module):
  """A linear layer, optionally after a hidden layer with ReLU."""

  def __init__(
    self,
    num_actions: int,
    hidden_size: int = 0,
    num_atoms: int | None = None,
    make_linear: MakeLinear = plain_linear,
    name: str | None = None,
  ):
    """Makes the head; see `DuellingHead`. A hidden size of 0 means no hidden layer."""
    super().__init__(name)
    self._num_actions = num_actions
    self._hidden_size = hidden_size
    self._num_atoms = num_atoms
    self._make_linear = make_linear

  def __call__(self, features: jax.Array) -> jax.Array:
    """float `[..., F]` → q `[..., A]`, or logits `[..., A, N]`."""
    if self._hidden_size:
      features = jax.nn.relu(self._make_linear(self._hidden_size, "hidden")(features))
    outputs = self._make_linear(self._num_actions * (self._num_atoms or 1), "q")(
      features
    )
    if self._num_atoms is None:
      return outputs
    return jnp.reshape(
      outputs, (*outputs.shape[:-1], self._num_actions, self._num_atoms)
    )
