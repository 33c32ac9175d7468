"""Joins the parts of Successor Uncertainties into an Agent."""

from explorax.agents import engine, types
from explorax.agents.successor import acting, learning
from explorax.agents.successor import config as config_lib
from explorax.agents.successor import features as features_lib
from explorax.environments import encodings


@engine.cached
def make_agent(
  config: config_lib.SuccessorConfig, spec: types.EnvironmentSpec
) -> types.Agent:
  """The Agent of a config in an environment of this spec."""
  encoding = encodings.make(spec.observations)
  num_actions = int(spec.actions.num_values)
  features = features_lib.make_features(config, encoding.spec, num_actions)

  return engine.make_agent(
    config,
    spec,
    lambda evaluation: acting.make_actor(config, features, evaluation),
    learning.make_learner(config, features),
    replay={},
  )
