"""An embedding of observations, and models of its dynamics, inverse and forward."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from explorax.networks import ensemble, torsos, types


class EmbeddingParams(NamedTuple):
  """Parameters of the embedding and of the inverse dynamics.

  Attributes:
    embedding: f's; acting needs only these.
    inverse: h's.
  """

  embedding: types.Params
  inverse: types.Params


class EmbeddingNetworks(NamedTuple):
  """Controllable states f(x), and the actions h(f(x_{t−1}), f(x_t)) between them.

  Attributes:
    init: (key) → EmbeddingParams.
    embed: (params, observation `[N, ...]`) → `[N, D]`; reads only `params.embedding`.
    action_logits: (params, embedding_tm1 `[N, D]`, embedding_t `[N, D]`) → `[N, A]`, of
      the action between them; reads only `params.inverse`.
  """

  init: Callable[[jax.Array], EmbeddingParams]
  embed: Callable[[EmbeddingParams, jax.Array], jax.Array]
  action_logits: Callable[[EmbeddingParams, jax.Array, jax.Array], jax.Array]


def make_embedding_networks(
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  torso: str = "auto",
  hidden_sizes: Sequence[int] = (),
  embedding_size: int = 32,
  hidden_size: int = 128,
) -> EmbeddingNetworks:
  """f, a torso and one linear layer; h, one hidden layer on two embeddings.

      p(a | x_{t−1}, x_t) = softmax(h(f(x_{t−1}), f(x_t)))

  Neither ends in a ReLU: embeddings are compared by distance, and logits may be
  negative.

  Source: Badia et al. (2020), section 2 and appendix H (the sizes of h and f).

  Args:
    observation_spec: of the encoded observations.
    num_actions: A.
    torso: of f, see `torsos.make_torso`.
    hidden_sizes: units of linear layers between the torso's convolutions and the last
      layer of f; the paper has none.
    embedding_size: D.
    hidden_size: units of h's hidden layer.

  Raises:
    ValueError: if a size or A is less than 1, or if the torso does not support the
      observations.
  """
  for name, size in (
    ("num_actions", num_actions),
    ("embedding_size", embedding_size),
    ("hidden_size", hidden_size),
  ):
    if size < 1:
      raise ValueError(f"{name} is {size}; it must be at least 1.")
  make_torso = torsos.make_torso(torso, observation_spec, hidden_sizes)
  embedding = ensemble.from_haiku(
    lambda: hk.Sequential([make_torso(), hk.Linear(embedding_size, name="embedding")]),
    observation_spec,
  )
  inverse = ensemble.from_haiku(
    lambda: hk.nets.MLP((hidden_size, num_actions)),
    dm_env.specs.Array((2 * embedding_size,), np.float32),
  )

  def init(key: jax.Array) -> EmbeddingParams:
    embedding_key, inverse_key = jax.random.split(key)
    return EmbeddingParams(embedding.init(embedding_key), inverse.init(inverse_key))

  def embed(params: EmbeddingParams, observation: jax.Array) -> jax.Array:
    return embedding.apply(params.embedding, observation)

  def action_logits(
    params: EmbeddingParams, embedding_tm1: jax.Array, embedding_t: jax.Array
  ) -> jax.Array:
    both = jnp.concatenate([embedding_tm1, embedding_t], axis=-1)
    return inverse.apply(params.inverse, both)

  return EmbeddingNetworks(init, embed, action_logits)


class ForwardModel(NamedTuple):
  """A model of the next embedding, g(φ(x_{t−1}), a).

  Attributes:
    init: (key) → params.
    apply: (params, embedding_tm1 `[N, D]`, action int32 `[N]`) → `[N, D]`.
  """

  init: Callable[[jax.Array], types.Params]
  apply: Callable[[types.Params, jax.Array, jax.Array], jax.Array]


def make_forward_model(
  num_actions: int, embedding_size: int, hidden_size: int
) -> ForwardModel:
  """One hidden layer on the embedding and the one-hot action.

  Source: Pathak et al. (2017), whose hidden layer has 256 units.

  Args:
    num_actions: A.
    embedding_size: D.
    hidden_size: units of the hidden layer.
  """
  network = ensemble.from_haiku(
    lambda: hk.nets.MLP((hidden_size, embedding_size)),
    dm_env.specs.Array((embedding_size + num_actions,), np.float32),
  )

  def apply(
    params: types.Params, embedding_tm1: jax.Array, action: jax.Array
  ) -> jax.Array:
    one_hot = jax.nn.one_hot(action, num_actions, dtype=embedding_tm1.dtype)
    return network.apply(params, jnp.concatenate([embedding_tm1, one_hot], axis=-1))

  return ForwardModel(network.init, apply)
