"""What joins the parts of an agent, once for equal arguments."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from explorax.agents import types
from explorax.environments import encodings, specs

# Equal arguments return the same agent, whose programs are then compiled once: JAX
# compares functions by identity. A process keeps this many; configs must be hashable.
cached = functools.lru_cache(16)


def make_agent(
  config: Any,
  spec: types.EnvironmentSpec,
  make_actor: Callable[[bool], types.ActorCore],
  learner: types.LearnerCore,
  replay: Mapping[str, Any],
  **optional: Any,
) -> types.Agent:
  """Joins the parts of an agent.

  Args:
    config, spec, learner: as in `types.Agent`.
    make_actor: (evaluation) → ActorCore.
    replay: the engine's arguments of the `types.ReplaySpec`.
    **optional: others of `types.Agent`.
  """
  encoding = encodings.make(spec.observations)
  acting, evaluating = make_actor(False), make_actor(True)

  def actor(evaluation: bool = False) -> types.ActorCore:
    return evaluating if evaluation else acting

  return types.Agent(
    config=config,
    spec=spec,
    encoding=encoding,
    extras_spec=types.extras_spec(acting),
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
    **optional,
  )
