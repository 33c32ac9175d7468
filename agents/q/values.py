"""The members' action values, or distributions of them, including priors."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import dm_env
import haiku as hk
import jax

from explorax import networks
from explorax.agents.q import config as config_lib


class Weights(NamedTuple):
  """An actor's weights: the trained parameters, the fixed priors', the bonus's."""

  params: Any
  prior_params: Any
  bonus: Any = ()


class Prediction(NamedTuple):
  """The members' predictions for windows of observations.

  Attributes:
    q: `[M, B, T, A]`.
    logits: `[M, B, T, A, N]`, of the distributions with means q; None if the network
      has no distributions.
  """

  q: jax.Array
  logits: Any


class Values(NamedTuple):
  """M action-value functions of histories, evaluated together.

  Attributes:
    init: (key) → params, the trained ones.
    init_prior: (key) → prior_params, never trained.
    state_size: S, of the recurrent state; 0: the network is feed-forward, and its
      inputs are the observation and the policy only.
    unroll: (weights, StepInputs `[B, T, ...]`, state `[B, S]`, key) → (Prediction,
      state). Noisy members draw their noise from the key, once for the windows; with
      None they use their mean weights. Other members ignore the key.
    is_noisy: whether members are noisy, or samples of an epinet's index.
    has_index: whether they are samples of an index. An actor keeps the key for an
      episode, and all evaluations of an update have the same key; noise is drawn
      separately for each evaluation.
    sees_r_int: whether r^i_{t−1} is an input.
  """

  init: Callable[[jax.Array], Any]
  init_prior: Callable[[jax.Array], Any]
  state_size: int
  unroll: Callable[
    [Weights, networks.StepInputs, jax.Array, jax.Array | None],
    tuple[Prediction, jax.Array],
  ]
  is_noisy: bool
  has_index: bool
  sees_r_int: bool


def make_values(
  config: config_lib.QConfig,
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  knows_r_int: bool = False,
) -> Values:
  """Q_k = Q_θk + λ P_k for encoded observations of `observation_spec`.

  Args:
    config: the settings.
    observation_spec: of the encoded observations.
    num_actions: A.
    knows_r_int: whether actors compute r_int, which then is an input of an LSTM.
  """
  sees_r_int = knows_r_int and config.lstm_size > 0
  nets = _make_networks(config, observation_spec, num_actions, sees_r_int)
  atoms = config.target.atoms

  def unroll(
    weights: Weights,
    inputs: networks.StepInputs,
    state: jax.Array,
    key: jax.Array | None,
  ) -> tuple[Prediction, jax.Array]:
    outputs, state = nets.unroll(
      weights.params, weights.prior_params, inputs, state, key
    )
    if atoms is not None:
      return Prediction(jax.nn.softmax(outputs) @ atoms, outputs), state
    return Prediction(outputs, None), state

  has_index = config.index_dim > 0
  return Values(
    init=nets.init,
    init_prior=nets.init_prior,
    state_size=nets.state_size,
    unroll=unroll,
    is_noisy=has_index or config.noisy_sigma > 0,
    has_index=has_index,
    sees_r_int=sees_r_int,
  )


def _make_networks(
  config: config_lib.QConfig,
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  sees_r_int: bool,
) -> networks.QNetworks:
  def make_trunk(make_torso: Callable[[], Any], lstm_size: int) -> Any:
    return networks.make_trunk(
      make_torso,
      num_actions,
      lstm_size=lstm_size,
      num_policies=config.num_policies,
      sees_r_int=sees_r_int,
    )

  def make_members(width: float, is_prior: bool) -> networks.QNetworks:
    """Members with a share of the units, and noise if they are not priors."""
    size, lstm_size = config.ensemble_size, math.ceil(width * config.lstm_size)
    noise = None
    if config.noisy_sigma and not is_prior:
      noise = networks.Noise(config.noisy_sigma, config.noise_variance)
    make_torso = networks.make_torso(
      config.torso,
      observation_spec,
      config.hidden_sizes,
      width,
      noise if config.noisy_torso else None,
    )
    make_head = _make_head(config, num_actions, width, noise)
    # For a single member this is equivalent, without vectorised convolutions.
    shared_torso = config.shared_torso or size == 1
    if not config.learns_from_transitions or config.num_policies > 1:
      return networks.make_q_networks(
        make_trunk(make_torso, lstm_size),
        make_head,
        observation_spec,
        num_members=size,
        lstm_size=lstm_size,
        shared_torso=shared_torso,
      )
    # Networks that see a single observation and nothing else are faster by themselves,
    # and their fixed priors may be tables.
    torso = networks.resolve_torso(config.torso, observation_spec)
    if torso == "mlp" and not (
      config.head_size or noise is not None or config.target.atoms is not None
    ):
      hidden_sizes = tuple(
        max(1, round(width * units)) for units in config.hidden_sizes
      )
      members = networks.make_perceptrons(
        observation_spec, num_actions, size, hidden_sizes, config.shared_torso
      )
    else:
      members = networks.lift(
        make_torso, make_head, observation_spec, size, shared_torso
      )
    return networks.feed_forward(
      networks.freeze(members, observation_spec) if is_prior else members
    )

  if not config.index_dim:
    trained = make_members(1.0, is_prior=False)
    prior = make_members(config.prior_width, is_prior=True)
    return networks.with_prior(trained, config.prior_scale, prior)
  make_torso = networks.make_torso(config.torso, observation_spec, config.hidden_sizes)

  def make_epinet(num_indices: int) -> networks.QNetworks:
    return networks.make_epinet(
      make_trunk(make_torso, config.lstm_size),
      observation_spec,
      num_actions,
      num_indices,
      config.index_dim,
      config.epinet_hidden_sizes,
      config.prior_scale,
      config.lstm_size,
    )

  exploiters = make_epinet(config.num_members)
  if not config.num_explorers:
    return exploiters
  return networks.side_by_side(exploiters, make_epinet(config.num_explorers))


def _make_head(
  config: config_lib.QConfig,
  num_actions: int,
  width: float,
  noise: networks.Noise | None,
) -> Callable[[], Any]:
  def make_linear(size: int, name: str) -> Callable[[jax.Array], jax.Array]:
    if noise is None:
      return hk.Linear(size, name=name)
    return networks.NoisyLinear(size, noise, name=name)

  def make() -> Any:
    atoms = config.target.atoms
    num_atoms = None if atoms is None else atoms.size
    kind = networks.DuellingHead if config.duelling else networks.PlainHead
    size = math.ceil(width * config.head_size)
    return kind(num_actions, size, num_atoms, make_linear)

  return make
