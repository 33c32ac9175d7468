"""One inference for several environments, beside an actor in each of them."""

import dataclasses

import dm_env
import jax
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import ngu
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import specs
from explorax.experiments.presets import r2d2 as r2d2_presets

NUM_ENVS, NUM_ACTORS, FIRST_ID = 3, 9, 3
SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((2,), np.float32), dm_env.specs.DiscreteArray(4)
)
DQN = q_config.QConfig(
  hidden_sizes=(8,),
  num_members=3,
  exploration=exploration.Thompson(),
  min_replay_size=8,
)
R2D2 = dataclasses.replace(
  r2d2_presets.ATARI,
  hidden_sizes=(8,),
  lstm_size=4,
  head_size=4,
  exploration=exploration.EzGreedy(0.5),
  sequence_length=4,
  burn_in=2,
  sequence_period=2,
)
NGU = dataclasses.replace(
  R2D2,
  bonus=ngu.NeverGiveUp(
    hidden_sizes=(4,), embedding_size=3, rnd_size=3, memory_capacity=20
  ),
  beta=0.3,
  num_policies=NUM_ACTORS,
)


class Variables:
  """Weights that others replace."""

  def __init__(self, weights):
    self.weights = weights

  def get_variables(self, names):
    assert list(names) == ["params"]
    return [self.weights]


class Numbers:
  """Episodes of random numbers, of three to six steps."""

  def __init__(self, seed):
    self._rng = np.random.default_rng(seed)

  def observation(self):
    return self._rng.normal(size=2).astype(np.float32)

  def reset(self):
    self._left = int(self._rng.integers(3, 7))
    return dm_env.restart(self.observation())

  def step(self, action):
    self._left -= 1
    reward = float(action) - 0.5
    if self._left:
      return dm_env.transition(reward, self.observation())
    return dm_env.termination(reward, self.observation())


def make_agent(config):
  return q_agent.make_agent(config, SPEC)


@pytest.mark.parametrize("config", [DQN, NGU], ids=["dqn", "ngu"])
def test_each_environment_has_an_actor_of_its_own(config):
  agent = make_agent(config)
  keys = jax.random.split(jax.random.PRNGKey(0), 4)
  versions = [agent.learner.params(agent.learner.init(key)) for key in keys]
  source, key = Variables(versions[0]), jax.random.PRNGKey(7)
  ids = range(FIRST_ID, FIRST_ID + NUM_ENVS)
  batch = actor_lib.Actor(
    agent, agent.actor(), source, key, actor_ids=ids, num_actors=NUM_ACTORS
  )
  alone = [
    actor_lib.Actor(
      agent, agent.actor(), source, each, actor_ids=(i,), num_actors=NUM_ACTORS
    )
    for each, i in zip(jax.random.split(key, NUM_ENVS), ids, strict=True)
  ]
  worlds = [Numbers(seed) for seed in ids]
  rng = np.random.default_rng(1)
  num_ended = 0
  for step in range(40):
    if step and step % 10 == 0:
      source.weights = versions[step // 10]
      batch.fetch()
      for actor in alone:
        actor.fetch()
    for env, (world, actor) in enumerate(zip(worlds, alone, strict=True)):
      # Some environments are reset later than others.
      if batch.timesteps[env] is None and (
        rng.random() < 0.7 or env == step % NUM_ENVS
      ):
        timestep = world.reset()
        batch.observe_first(timestep, env)
        actor.observe_first(timestep)
    acting = [env for env, t in enumerate(batch.timesteps) if t is not None]
    if not acting:
      continue
    batch.env_steps = 5 * step
    actions = batch.select_actions()
    for env in acting:
      alone[env].env_steps = 5 * step
      assert alone[env].select_action(None) == actions[env]
      assert_same(batch.extras[env], alone[env].extras[0])
      timestep = worlds[env].step(actions[env])
      batch.observe_step(env, actions[env], timestep)
      alone[env].observe_step(0, actions[env], timestep)
    for env in range(NUM_ENVS):
      alone[env].env_steps = batch.env_steps
    ended = batch.end_episodes()
    assert ended == [env for env in range(NUM_ENVS) if alone[env].end_episodes()]
    for env in ended:
      assert_same(batch.extras[env], alone[env].extras[0])
    num_ended += len(ended)
  assert num_ended > 10


def assert_same(extras, expected):
  assert set(extras) == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(extras[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
