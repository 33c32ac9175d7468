"""Parts that all agents share: checks of settings, and the Agent."""

from collections.abc import Callable
from typing import Any

from explorax.agents import types
from explorax.environments import encodings, specs


def check_replay(config: Any) -> None:
  """Refuses a batch or a first update that needs more than replay's capacity."""
  for name in ("batch_size", "min_replay_size"):
    if getattr(config, name) > config.replay_capacity:
      raise ValueError(
        f"{name} is {getattr(config, name)} with a replay_capacity of "
        f"{config.replay_capacity}; it must not exceed the capacity."
      )


def make_agent(
  config: Any,
  spec: types.EnvironmentSpec,
  actor: Callable[..., types.ActorCore],
  learner: types.LearnerCore,
  policy_names: tuple[str, ...] = ("policy",),
  refresh: types.Refresh | None = None,
  initial_priority: types.InitialPriority | None = None,
  **replay: Any,
) -> types.Agent:
  """Joins the parts of an agent.

  Args:
    config, spec, actor, learner, policy_names, refresh, initial_priority: as in
      `types.Agent`.
    **replay: the engine's arguments of the `types.ReplaySpec`.
  """
  encoding = encodings.make(spec.observations)
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
    initial_priority=initial_priority,
  )
