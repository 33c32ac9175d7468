"""The members' action values, or distributions of them, including priors."""

from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import haiku as hk
import jax

from explorax import networks
from explorax.agents.dqn import config as config_lib


class Weights(NamedTuple):
  """An actor's weights: the trained parameters and the fixed priors'."""

  params: Any
  prior_params: Any


class Prediction(NamedTuple):
  """The members' predictions for a batch of observations.

  Attributes:
    q: `[M, B, A]`.
    logits: `[M, B, A, N]`, of the distributions with means q; None if the network has
      no distributions.
  """

  q: jax.Array
  logits: Any


class Values(NamedTuple):
  """M action-value functions, evaluated together.

  Attributes:
    init: (key) → params, the trained ones.
    init_prior: (key) → prior_params, never trained.
    apply: (params, prior_params, observation `[B, ...]`, key) → Prediction. Noisy
      members draw their noise from the key, once for the batch; with None they use
      their mean weights. Other members ignore the key.
    is_noisy: whether members are noisy, or samples of an epinet's index.
    has_index: whether they are samples of an index. An actor keeps the key for an
      episode, and all evaluations of an update have the same key; noise is drawn
      separately for each evaluation.
  """

  init: Callable[[jax.Array], Any]
  init_prior: Callable[[jax.Array], Any]
  apply: Callable[[Any, Any, jax.Array, jax.Array | None], Prediction]
  is_noisy: bool
  has_index: bool


def make_values(
  config: config_lib.DQNConfig, observation_spec: dm_env.specs.Array, num_actions: int
) -> Values:
  """Q_k = Q_θk + λ P_k for encoded observations of `observation_spec`."""
  has_index = config.index_dim > 0
  make = _make_epinet if has_index else _make_with_prior
  values = make(config, observation_spec, num_actions)
  atoms = config.target.atoms

  def apply(
    params: Any, prior_params: Any, observation: jax.Array, key: jax.Array | None
  ) -> Prediction:
    outputs = values.apply(params, prior_params, observation, key)
    if atoms is not None:
      return Prediction(jax.nn.softmax(outputs) @ atoms, outputs)
    return Prediction(outputs, None)

  is_noisy = has_index or config.noisy_sigma > 0
  return Values(values.init, values.init_prior, apply, is_noisy, has_index)


def _make_epinet(
  config: config_lib.DQNConfig, observation_spec: dm_env.specs.Array, num_actions: int
) -> networks.PriorEnsemble:
  return networks.make_epinet(
    networks.make_torso(config.torso, observation_spec, config.hidden_sizes),
    observation_spec,
    num_actions,
    config.num_members,
    config.index_dim,
    config.epinet_hidden_sizes,
    config.prior_scale,
  )


def _make_with_prior(
  config: config_lib.DQNConfig, observation_spec: dm_env.specs.Array, num_actions: int
) -> networks.PriorEnsemble:
  """An ensemble with fixed random functions."""
  trained = _make_ensemble(config, observation_spec, num_actions, config.noisy_sigma)
  fixed = _make_ensemble(config, observation_spec, num_actions, noisy_sigma=0.0)
  prior = networks.freeze(fixed, observation_spec)
  return networks.with_prior(trained, config.prior_scale, prior)


def _make_ensemble(
  config: config_lib.DQNConfig,
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  noisy_sigma: float,
) -> networks.Ensemble:
  """The members, without priors."""
  torso = networks.resolve_torso(config.torso, observation_spec)
  if torso == "mlp" and config.has_linear_heads:
    return networks.make_perceptrons(
      observation_spec,
      num_actions,
      config.ensemble_size,
      config.hidden_sizes,
      config.shared_torso,
    )

  def make_linear(size: int, name: str) -> Callable[[jax.Array], jax.Array]:
    if noisy_sigma:
      return networks.NoisyLinear(size, noisy_sigma, name=name)
    return hk.Linear(size, name=name)

  def make_head() -> Callable[[jax.Array], jax.Array]:
    atoms = config.target.atoms
    num_atoms = None if atoms is None else atoms.size
    kind = networks.DuellingHead if config.duelling else networks.PlainHead
    return kind(num_actions, config.head_size, num_atoms, make_linear)

  torso_sigma = noisy_sigma if config.noisy_torso else 0.0
  return networks.lift(
    networks.make_torso(
      config.torso, observation_spec, config.hidden_sizes, noisy_sigma=torso_sigma
    ),
    make_head,
    observation_spec,
    config.ensemble_size,
    # For a single member this is equivalent, without vectorised convolutions.
    shared_torso=config.shared_torso or config.ensemble_size == 1,
  )
