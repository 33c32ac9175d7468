"""Linear layers with noisy weights, for exploration."""

import math
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from explorax.networks import inputs as inputs_lib


class Noise(NamedTuple):
  """The noise of linear layers.

  Attributes:
    sigma: σ_0, its trained scale at first, at least 0 (Fortunato et al., 2018, and
      Hessel et al., 2018: 0.5).
    variance: β of white noise; None: the noise is factorised.
  """

  sigma: float = 0.5
  variance: float | None = None


class NoisyLinear(hk.Module):
  """A linear layer with Gaussian noise of trained scale.

      y = (μ_w + σ_w ⊙ ε_w)ᵀ x + μ_b + σ_b ⊙ ε_b

  Noise is drawn once for a whole batch, from the key of `hk.transform`'s apply; with
  None there is no noise, and y is the layer's mean. Factorised noise is

      ε_w[i, j] = f(ε_i) f(ε_j),    ε_b[j] = f(ε_j),    f(z) = sign(z) √|z|

  with ε standard normal, one for each input and output. The weights' noise matrix is
  never formed: (f(ε_i) x_i) is multiplied by σ_w, and the product by f(ε_j). For
  encoded observations, which may be indices, σ_w is multiplied by f(ε_i) instead.

  White noise is independent: ε_w[i, j] and ε_b[j] ~ N(0, β), of variance β (Flennerhag
  et al., 2020, appendix D.1).

  Source: Fortunato et al. (2018), section 3: initially, μ is uniform within ±1/√p and σ
  is σ_0/√p, for p inputs.
  """

  def __init__(
    self,
    size: int,
    noise: Noise = Noise(),  # noqa: B008
    inputs: inputs_lib.Inputs | None = None,
    name: str | None = None,
  ):
    """Makes the layer.

    Args:
      size: of the output.
      noise: of the weights and biases.
      inputs: how encoded observations become vectors, if the layer's inputs are
        observations; None: its inputs are vectors.
      name: of the module.
    """
    super().__init__(name)
    if size < 1:
      raise ValueError(f"a noisy layer has {size} outputs; use at least 1.")
    if not 0 <= noise.sigma < math.inf:
      raise ValueError(
        f"the initial noise of a noisy layer is {noise.sigma}; it must be finite and "
        "not negative."
      )
    if noise.variance is not None and not 0 < noise.variance < math.inf:
      raise ValueError(
        f"the variance of a layer's white noise is {noise.variance}; it must be finite "
        "and positive."
      )
    self._size = size
    self._noise = noise
    self._inputs = inputs

  def __call__(self, x: jax.Array) -> jax.Array:
    """float `[..., p]`, or observations `[B, ...]` → `[..., size]`."""
    inputs = self._inputs
    if inputs is None:
      fan_in, dtype, rank = x.shape[-1], x.dtype, x.ndim
    else:
      fan_in, dtype, rank = inputs.num_features, jnp.dtype(jnp.float32), 2
    bound = fan_in**-0.5
    uniform = hk.initializers.RandomUniform(-bound, bound)
    constant = hk.initializers.Constant(self._noise.sigma * bound)

    def parameters(
      kind: str, init: hk.initializers.Initializer
    ) -> tuple[jax.Array, jax.Array]:
      if inputs is None:
        w = hk.get_parameter(f"w_{kind}", (fan_in, self._size), dtype, init)
      else:
        w = inputs.weights(f"w_{kind}", self._size, init)
      b = hk.get_parameter(f"b_{kind}", (self._size,), dtype, init)
      return w, jnp.expand_dims(b, range(rank - 1))

    w_mu, b_mu = parameters("mu", uniform)
    w_sigma, b_sigma = parameters("sigma", constant)
    linear = jnp.matmul if inputs is None else inputs.linear
    mean = linear(x, w_mu) + b_mu
    key = hk.maybe_next_rng_key()
    if key is None:
      return mean
    in_key, out_key = jax.random.split(key)
    if self._noise.variance is not None:
      deviation = self._noise.variance**0.5
      noise_w = deviation * jax.random.normal(in_key, (fan_in, self._size), dtype)
      noise_b = deviation * jax.random.normal(out_key, b_mu.shape, dtype)
      noise_w = noise_w if inputs is None else inputs.rows(noise_w)
      return mean + linear(x, noise_w * w_sigma) + noise_b * b_sigma
    noise_in = _scaled_normal(in_key, (*(1,) * (rank - 1), fan_in), dtype)
    noise_out = _scaled_normal(out_key, b_mu.shape, dtype)
    if inputs is None:
      noisy = (x * noise_in) @ w_sigma
    else:
      noisy = inputs.linear(x, inputs.rows(noise_in.T) * w_sigma)
    return mean + (noisy + b_sigma) * noise_out


def _scaled_normal(
  key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype
) -> jax.Array:
  """f(ε) of standard normal ε."""
  z = jax.random.normal(key, shape, dtype)
  return jnp.sign(z) * jnp.sqrt(jnp.abs(z))
