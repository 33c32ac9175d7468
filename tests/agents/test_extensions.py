"""What users' rules, targets and bonuses return is checked before a run begins."""

import dataclasses

import jax.numpy as jnp
import pytest

from explorax import environments
from explorax.agents.bonuses import types as bonuses
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.targets import one_step, types
from explorax.exploration import dithering, rules

pytestmark = pytest.mark.newest

frozen = dataclasses.dataclass(frozen=True)


@frozen
class Median(rules.Score):
  def score(self, key, q, state, env_steps):
    return jnp.median(q, axis=0), state


@frozen
class NoState(rules.Score):
  def score(self, key, q, state, env_steps):
    return jnp.median(q, axis=0)


@frozen
class OfMembers(rules.Score):
  def score(self, key, q, state, env_steps):
    return q, state


@frozen
class Uniform(rules.Policy):
  def probs(self, key, q, state, env_steps):
    return jnp.ones(q.shape[1]) / q.shape[1]


@frozen
class OtherState(rules.Policy):
  def probs(self, key, q, state, env_steps):
    return jnp.ones(q.shape[1]) / q.shape[1], jnp.zeros(2)


@frozen
class Failing(rules.Score):
  def score(self, key, q, state, env_steps):
    raise KeyError("mine")


@frozen
class Good(one_step.DoubleQ):
  pass


@frozen
class Summed(types.Target):
  def td_errors(self, predictions, stream, tx_pair):
    return jnp.sum(predictions.q_tm1)


@frozen
class Novel(bonuses.Bonus):
  shape: str = "good"

  def build(self, observation_spec, num_actions):
    if self.shape == "none":
      return None
    axis = 0 if self.shape == "good" else None
    return bonuses.of_values("source", lambda x: jnp.mean(x.q_tm1[..., 0], axis))


def make(**fields):
  environment = environments.make("jax:chain/5", seed=0)
  config = q_config.QConfig(num_members=2, hidden_sizes=(4,), **fields)
  return q_agent.make_agent(config, environments.spec(environment))


@pytest.mark.parametrize(
  "fields",
  [
    {"exploration": Median()},
    {"exploration": dithering.EpsilonGreedy(0.1, of=Median())},
    {"target": Good()},
    {"bonus": Novel(), "beta": 0.1},
  ],
)
def test_what_fits_is_taken(fields):
  make(**fields)


@pytest.mark.parametrize(
  ("fields", "named"),
  [
    ({"exploration": NoState()}, ("NoState.score", "[2]", "state")),
    ({"exploration": OfMembers()}, ("OfMembers.score", "[2, 2]", "state")),
    ({"exploration": Uniform()}, ("Uniform.probs", "[2]", "state")),
    ({"exploration": OtherState()}, ("OtherState.probs", "state")),
    (
      {"exploration": dithering.EpsilonGreedy(0.1, of=NoState())},
      ("NoState.score", "state"),
    ),
    ({"evaluation": NoState()}, ("NoState.score", "state")),
    ({"exploration": Failing()}, ("Failing.score", "mine", "test_extensions.py:")),
    ({"target": Summed()}, ("Summed.td_errors", "[T]")),
    ({"bonus": Novel("bad"), "beta": 0.1}, ("Novel.compute", "[N]", "state")),
    ({"bonus": Novel("none"), "beta": 0.1}, ("Novel.build", "IntrinsicReward")),
  ],
)
def test_what_does_not_is_refused_in_a_sentence_with_the_method(fields, named):
  with pytest.raises(TypeError) as raised:
    make(**fields)
  for word in named:
    assert word in str(raised.value)
  assert "\n" not in str(raised.value)
