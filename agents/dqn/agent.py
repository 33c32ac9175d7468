"""Joins the parts of the transition-based engine into an Agent."""

from explorax.agents import engine, sharing, types
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.dqn import acting, learning
from explorax.agents.dqn import config as config_lib
from explorax.agents.dqn import values as values_lib
from explorax.environments import specs


@sharing.shared
def make_agent(
  config: config_lib.DQNConfig, spec: types.EnvironmentSpec
) -> types.Agent:
  """The Agent of a config in an environment of this spec."""
  encoding = specs.make_encoding(spec.observations)
  num_actions = int(spec.actions.num_values)
  values = values_lib.make_values(config, encoding.spec, num_actions)
  bonus = None
  if config.bonus is not None:
    bonus = config.bonus.build(encoding.spec, num_actions)
  if isinstance(bonus, bonus_types.ActorBonus) and bonus.training is not None:
    raise ValueError(
      f"the bonus {type(config.bonus).__name__} trains networks on windows of steps, "
      "but this engine learns from transitions; use it with the sequence engine "
      "(agents/r2d2)."
    )

  def actor(evaluation: bool = False) -> types.ActorCore:
    return acting.make_actor(config, values, bonus, num_actions, evaluation)

  stored = []
  if config.mask_prob < 1:
    stored.append("bootstrap_mask")
  if isinstance(bonus, bonus_types.ActorBonus):
    stored.append("r_int")
  if config.target.is_multi_step:
    stored.append("behaviour_prob")
  return engine.make_agent(
    config,
    spec,
    actor,
    learning.make_learner(config, values, bonus),
    engine.policy_names(config),
    bootstrap=config.n_step,
    priority_exponent=config.priority_exponent,
    extras=tuple(stored),
  )
