"""Joins the parts of the sequence engine into an Agent."""

import math

import dm_env

from explorax import networks
from explorax.agents import engine, sharing, types
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.r2d2 import acting, learning
from explorax.agents.r2d2 import config as config_lib
from explorax.agents.r2d2 import sequences as sequences_lib
from explorax.environments import specs


@sharing.shared
def make_agent(
  config: config_lib.R2D2Config, spec: types.EnvironmentSpec
) -> types.Agent:
  """The Agent of a config in an environment of this spec."""
  encoding = specs.make_encoding(spec.observations)
  num_actions = int(spec.actions.num_values)
  bonus = None
  if config.bonus is not None:
    bonus = config.bonus.build(encoding.spec, num_actions)
  acts_with_bonus = isinstance(bonus, bonus_types.ActorBonus)
  values = make_values(config, encoding.spec, num_actions, acts_with_bonus)

  def actor(evaluation: bool = False) -> types.ActorCore:
    return acting.make_actor(config, values, bonus, num_actions, evaluation)

  stored = ["behaviour_prob"]
  if config.num_policies > 1:
    stored.append("policy")
  if acts_with_bonus:
    stored.append("r_int")
  at_first = list(sequences_lib.FIRST_ROW_EXTRAS)
  if values.state_size:
    at_first.append("core_state")
  if config.mask_prob < 1:
    (stored if config.mask_per_step else at_first).append("bootstrap_mask")
  refresh = None
  if isinstance(bonus, bonus_types.ActorBonus) and bonus.training is not None:
    refresh = _make_refresh(bonus)
  return engine.make_agent(
    config,
    spec,
    actor,
    learning.make_learner(config, values, bonus),
    _policy_names(config),
    refresh,
    length=config.sequence_length,
    burn_in=config.burn_in,
    period=config.sequence_period,
    priority_exponent=config.priority_exponent,
    priority_eta=config.priority_eta if config.priority_exponent else None,
    extras=tuple(stored),
    first_row_extras=tuple(at_first),
  )


def make_values(
  config: config_lib.R2D2Config,
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  sees_r_int: bool,
) -> networks.SequenceQNetworks:
  """Q_k = Q_θk + λ P_k on histories of encoded observations."""

  def make(width: float) -> networks.SequenceQNetworks:
    def cut(units: int) -> int:
      return math.ceil(width * units)

    return networks.make_sequence_q_networks(
      networks.make_torso(config.torso, observation_spec, config.hidden_sizes, width),
      observation_spec,
      num_actions,
      num_members=config.ensemble_size,
      lstm_size=cut(config.lstm_size),
      head_size=cut(config.head_size),
      num_policies=config.num_policies,
      sees_r_int=sees_r_int,
    )

  return networks.with_sequence_prior(
    make(1.0), config.prior_scale, make(config.prior_width)
  )


def _make_refresh(bonus: bonus_types.ActorBonus) -> types.Refresh:
  def refresh(held: learning.Weights, fresh: learning.Weights) -> learning.Weights:
    return fresh._replace(bonus=bonus.refresh(held.bonus, fresh.bonus))

  return refresh


def _policy_names(config: config_lib.R2D2Config) -> tuple[str, ...]:
  if config.num_policies > 1:
    return tuple(f"policy {i}" for i in range(config.num_policies))
  return engine.policy_names(config)
