"""An LSTM unrolled over windows of steps."""

import haiku as hk
import jax
import jax.numpy as jnp


class LSTM(hk.Module):
  """A long short-term memory that computes the input products for all steps at once.

  The loop over time only contains the products with the hidden state:

      i, g, f, o = x_t W_x + h_{t−1} W_h + b
      c_t = σ(f + 1) c_{t−1} + σ(i) tanh(g),    h_t = σ(o) tanh(c_t)

  Source: Hochreiter & Schmidhuber (1997), with the forget gate of Gers et al. (2000),
  which is open at first; the order of the gates is Haiku's.
  """

  def __init__(self, size: int, name: str | None = None):
    """Makes one of `size` units, at least 1."""
    super().__init__(name)
    if size < 1:
      raise ValueError(f"an LSTM of {size} units is empty; use at least 1.")
    self._size = size

  def __call__(self, x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Unrolls over time.

    Args:
      x: float32 `[B, T, F]`.
      state: float32 `[B, 2 H]`, h and c before the first step, joined.

    Returns:
      h `[B, T, H]`, and the state after the last step `[B, 2 H]`.
    """
    from_input = hk.Linear(4 * self._size, name="input")(x)
    scale = self._size**-0.5
    w_h = hk.get_parameter(
      "w_h",
      (self._size, 4 * self._size),
      x.dtype,
      hk.initializers.TruncatedNormal(scale),
    )

    def step(
      carry: tuple[jax.Array, jax.Array], gates: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
      h, c = carry
      i, g, f, o = jnp.split(gates + h @ w_h, 4, axis=-1)
      c = jax.nn.sigmoid(f + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
      h = jax.nn.sigmoid(o) * jnp.tanh(c)
      return (h, c), h

    h, c = jnp.split(state, 2, axis=-1)
    if x.shape[1] == 1:  # An actor's step: no loop.
      (h, c), output = step((h, c), from_input[:, 0])
      return output[:, None], jnp.concatenate([h, c], axis=-1)
    (h, c), outputs = jax.lax.scan(step, (h, c), jnp.swapaxes(from_input, 0, 1))
    return jnp.swapaxes(outputs, 0, 1), jnp.concatenate([h, c], axis=-1)
