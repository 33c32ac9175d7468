"""Parts that the engines share: checks of settings, members, and the Agent."""

from collections.abc import Callable
from typing import Any

import numpy as np

from explorax import exploration
from explorax.agents import types
from explorax.environments import specs


def check_replay(config: Any) -> None:
  """Refuses a batch or a first update that needs more than replay's capacity."""
  for name in ("batch_size", "min_replay_size"):
    if getattr(config, name) > config.replay_capacity:
      raise ValueError(
        f"{name} is {getattr(config, name)} with a replay_capacity of "
        f"{config.replay_capacity}; it must not exceed the capacity."
      )


def check_ensemble(config: Any) -> None:
  """Refuses impossible combinations of ensemble, bonus, target and replay.

  Args:
    config: a DQNConfig or an R2D2Config.

  Raises:
    ValueError: with the field, its value, and what to do.
  """
  check_replay(config)
  if config.importance_exponent and not config.priority_exponent:
    raise ValueError(
      f"importance_exponent is {config.importance_exponent}, but replay is uniform; "
      "also set priority_exponent, or leave it at 0."
    )
  _check_bonus(config)
  _check_target(config)


def _check_bonus(config: Any) -> None:
  if config.bonus is not None:
    if config.num_members < config.bonus.min_members:
      raise ValueError(
        f"num_members is {config.num_members}, but {type(config.bonus).__name__} needs "
        f"at least {config.bonus.min_members}; use more members, or another bonus."
      )
    return
  for name in ("beta", "num_explorers"):
    if getattr(config, name):
      raise ValueError(
        f"{name} is {getattr(config, name)}, but there is no bonus to scale or learn "
        f"from; set one, or leave {name} at 0."
      )


def _check_target(config: Any) -> None:
  """Refuses a target that follows the exploration's ε if there is no single ε."""
  rule = config.exploration
  has_one_epsilon = (
    isinstance(rule, exploration.EpsilonGreedy)
    and isinstance(rule.of, exploration.Greedy)
    and not rule.ladder
  )
  if config.target.follows_exploration and not has_one_epsilon:
    raise ValueError(
      f"target.epsilon is None (the exploration's epsilon), but the exploration {rule} "
      "does not have one epsilon for all actors; give a number, or another rule."
    )


def sees_bonus(config: Any) -> np.ndarray:
  """bool `[M]`: the explorers if there are any, else all members."""
  size = config.num_members + config.num_explorers
  return np.arange(size) >= (config.num_members if config.num_explorers else 0)


def policy_names(config: Any) -> tuple[str, ...]:
  """The group of each member that an actor may follow."""
  if not config.num_explorers:
    return ("policy",) * config.num_members
  return ("exploiter",) * config.num_members + ("explorer",) * config.num_explorers


def make_agent(
  config: Any,
  spec: types.EnvironmentSpec,
  actor: Callable[..., types.ActorCore],
  learner: types.LearnerCore,
  policy_names: tuple[str, ...] = ("policy",),
  refresh: types.Refresh | None = None,
  **replay: Any,
) -> types.Agent:
  """Joins the parts of an agent.

  Args:
    config, spec, actor, learner, policy_names, refresh: as in `types.Agent`.
    **replay: the engine's arguments of the `types.ReplaySpec`.
  """
  encoding = specs.make_encoding(spec.observations)
  return types.Agent(
    config=config,
    spec=spec,
    encoding=encoding,
    extras_spec=types.extras_spec(actor()),
    actor=actor,
    learner=learner,
    replay=types.ReplaySpec(
      capacity=config.replay_capacity,
      min_size=config.min_replay_size,
      batch_size=config.batch_size,
      updates_per_step=config.updates_per_step,
      num_frames=specs.num_frames(encoding.spec),
      **replay,
    ),
    actor_update_period=config.actor_update_period,
    policy_names=policy_names,
    refresh=refresh,
  )
