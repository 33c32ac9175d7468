"""Joins the parts of the engine into an Agent."""

from explorax.agents import engine, types
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.q import acting, learning, priorities
from explorax.agents.q import config as config_lib
from explorax.agents.q import values as values_lib
from explorax.agents.q import windows as windows_lib
from explorax.environments import encodings


@engine.cached
def make_agent(config: config_lib.QConfig, spec: types.EnvironmentSpec) -> types.Agent:
  """The Agent of a config in an environment of this spec."""
  encoding = encodings.make(spec.observations)
  num_actions = int(spec.actions.num_values)
  bonus = None
  if config.bonus is not None:
    bonus = config.bonus.build(encoding.spec, num_actions)
  knows_r_int = bonus is not None and bonus.acting_gives_reward
  values = values_lib.make_values(config, encoding.spec, num_actions, knows_r_int)
  on_rows, at_first = _stored(config, bonus)
  has_priorities = config.priority_eta is not None and config.priority_exponent > 0
  predicted = ("q",) if config.target.atoms is None else ("q", "logits")
  of_priorities = (*on_rows, *predicted) if has_priorities else ()
  stored = {*on_rows, *at_first, *of_priorities}

  def make_actor(evaluation: bool) -> types.ActorCore:
    return acting.make_actor(config, values, bonus, num_actions, stored, evaluation)

  refresh = initial_priority = None
  if has_priorities:
    initial_priority = priorities.make_initial_priority(config, bonus)
  if bonus is not None and bonus.acting is not None and bonus.acting.refresh:
    refresh = _make_refresh(bonus.acting.refresh)
  return engine.make_agent(
    config,
    spec,
    make_actor,
    learning.make_learner(config, values, bonus),
    {
      "length": config.sequence_length,
      "bootstrap": config.n_step,
      "burn_in": config.burn_in,
      "period": config.sequence_period,
      "priority_exponent": config.priority_exponent,
      "extras": on_rows,
      "first_row_extras": at_first,
      "priority_extras": of_priorities,
    },
    policy_names=_policy_names(config),
    refresh=refresh,
    initial_priority=initial_priority,
  )


def _stored(
  config: config_lib.QConfig, bonus: bonus_types.IntrinsicReward | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
  """The extras that replay stores on every row, and at a window's first row."""
  masks = ["bootstrap_mask"] if config.mask_prob < 1 else []
  on_rows = ["behaviour_prob"] if config.target.is_multi_step else []
  on_rows += ["policy"] if config.num_policies > 1 else []
  on_rows += [] if bonus is None or bonus.acting is None else [bonus.column]
  at_first = list(windows_lib.RECURRENT_EXTRAS) if config.lstm_size else []
  if config.mask_per_step:
    return (*on_rows, *masks), tuple(at_first)
  return tuple(on_rows), (*at_first, *masks)


def _make_refresh(of_bonus: types.Refresh) -> types.Refresh:
  def refresh(
    current: values_lib.Weights, new: values_lib.Weights
  ) -> values_lib.Weights:
    return new._replace(bonus=of_bonus(current.bonus, new.bonus))

  return refresh


def _policy_names(config: config_lib.QConfig) -> tuple[str, ...]:
  """The group of each policy, or member, that an actor may follow."""
  if config.num_policies > 1:
    return tuple(f"policy {i}" for i in range(config.num_policies))
  if not config.num_explorers:
    return ("policy",) * config.num_members
  return ("exploiter",) * config.num_members + ("explorer",) * config.num_explorers
