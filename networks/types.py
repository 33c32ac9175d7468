"""The interface of networks: pure functions of a pytree of parameters."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

# A pytree of arrays.
Params = Any


class Network(NamedTuple):
  """One function of observations.

  Attributes:
    init: (key) → params.
    apply: (params, observation `[B, ...]`) → `[B, F]`.
  """

  init: Callable[[jax.Array], Params]
  apply: Callable[[Params, jax.Array], jax.Array]


class EnsembleParams(NamedTuple):
  """Parameters of K networks.

  Attributes:
    torso: the torsos', `[K, ...]`; a shared torso's have no such axis.
    heads: the heads', with a leading axis of members, `[K, ...]`.
  """

  torso: Params
  heads: Params


class Ensemble(NamedTuple):
  """K functions of observations, evaluated together.

  Attributes:
    init: (key) → params of all members, each initialised independently.
    apply: (params, observation `[B, ...]`, key=None) → `[K, B, ...]`, with a leading
      axis of members, such as action values `[K, B, A]`. Noisy members draw their noise
      from the key, once per batch, and so does a shared torso; with None there is no
      noise.
  """

  init: Callable[[jax.Array], Params]
  apply: Callable[..., jax.Array]


class RNDNetworks(NamedTuple):
  """The two embeddings of random network distillation.

  Attributes:
    predictor: trained to predict the target; its error is the novelty.
    target: initialised at random and never trained.
  """

  predictor: Network
  target: Network
