"""What a network is: pure functions over a pytree of parameters."""

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


class QNetworks(NamedTuple):
  """K action-value functions, evaluated together.

  Attributes:
    init: (key) → params of all members, each initialised independently.
    apply: (params, observation `[B, ...]`) → q `[K, B, A]`, members leading.
  """

  init: Callable[[jax.Array], Params]
  apply: Callable[[Params, jax.Array], jax.Array]


class PriorQNetworks(NamedTuple):
  """K action-value functions, each the sum of a trained and a fixed function.

  The priors' parameters are a tree of their own: whoever holds them decides whether
  the online and the target networks have the same priors or distinct ones.

  Attributes:
    init: (key) → params, the trained ones.
    init_prior: (key) → prior_params, never trained.
    apply: (params, prior_params, observation `[B, ...]`) → q `[K, B, A]`.
  """

  init: Callable[[jax.Array], Params]
  init_prior: Callable[[jax.Array], Params]
  apply: Callable[[Params, Params, jax.Array], jax.Array]


class RNDNetworks(NamedTuple):
  """The two embeddings of random network distillation.

  Attributes:
    predictor: trained to predict the target; its error is the novelty.
    target: initialised at random and never trained.
  """

  predictor: Network
  target: Network
