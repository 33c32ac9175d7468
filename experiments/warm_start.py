"""An agent whose learner starts from the weights of an earlier run."""

import dataclasses
import os

import jax
import jax.numpy as jnp

from explorax.agents import types
from explorax.environments import atari_profiles
from explorax.experiments import errors, playing, trained, weights

# Fields of an Atari profile that change what the agent sees, or what its actions do.
_SEEN = ("height", "width", "grey", "stack", "action_repeat", "full_actions", "oracle")


def starting_from(
  path: str | os.PathLike[str], agent: types.Agent, env: str
) -> types.Agent:
  """The agent, with the weights of a run or of an exported file at its start.

  The target network starts with the same weights. All else starts as usual: the
  optimiser, replay, and schedules.

  Args:
    path: as for `trained.read`.
    agent: made for the environment.
    env: the environment's name.

  Raises:
    SetUpError: if the weights, or the observations, are of another kind.
  """
  learner = agent.learner
  try:
    found = trained.read(path)
    found.check_spec(agent.spec, env)
    _check_profile(found, env)
    fitted = weights.fitted(path, found.arrays, playing.weights_of(agent))
  except (errors.SetUpError, OSError, ValueError) as error:
    raise errors.SetUpError(f"--init_weights={path}: {error}") from error
  by_name = dict(weights.named(fitted))
  # Name in the learner's state → the array.
  given = {name: by_name[of] for of, name in weights.sources(learner).items()}

  def init(key: jax.Array) -> types.State:
    state = learner.init(key)
    leaves = [jnp.asarray(given.get(n, leaf)) for n, leaf in weights.named(state)]
    state = jax.tree.unflatten(jax.tree.structure(state), leaves)
    return state if learner.target is None else learner.target.copy(state)

  return dataclasses.replace(agent, learner=learner._replace(init=init))


def _check_profile(found: trained.Trained, env: str) -> None:
  """Refuses an Atari game whose preprocessing differs from that of the weights."""
  kinds = [name.partition(":") for name in (found.record["env"], env)]
  if any(kind != "atari" for kind, _, _ in kinds):
    return
  theirs, ours = (atari_profiles.parse(name)[1] for _, _, name in kinds)
  for field in _SEEN:
    if getattr(theirs, field) != getattr(ours, field):
      raise errors.SetUpError(
        f"--init_weights={found.path} was trained in {found.record['env']}, whose "
        f"{field} is {getattr(theirs, field)}; that of {env} is {getattr(ours, field)}."
      )
