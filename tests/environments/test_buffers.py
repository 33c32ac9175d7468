"""Environments that write every observation into one array, or return read-only ones.

Whatever keeps an observation or a reward for later has a copy of its own.
"""

import dm_env
import fakes
import gymnasium
import jax
import numpy as np
import pytest

import explorax
from explorax import environments
from explorax.agents.bonuses import ngu, rnd
from explorax.agents.bonuses.wrappers import gymnasium_wrapper
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.replay import adder as adder_lib
from explorax.agents.wiring import actor as actor_lib

pytestmark = pytest.mark.newest


def fresh(array, buffer):
  return array


def reused(array, buffer):
  buffer[...] = array
  return buffer


def read_only(array, buffer):
  array.flags.writeable = False
  return array


class Walk(fakes.FakeEnvironment):
  """Its observations and rewards are returned as `give` says."""

  def __init__(self, give):
    super().__init__(episode_length=6, reward=lambda t, action: float(t + action))
    self._give = give
    self._arrays = np.zeros(3, np.float32), np.zeros(())

  def _observation(self):
    return self._give(super()._observation(), self._arrays[0])

  def step(self, action):
    timestep = super().step(action)
    if timestep.first():
      return timestep
    reward = self._give(np.array(timestep.reward), self._arrays[1])
    return timestep._replace(reward=reward)


class GymWalk(gymnasium.Env):
  action_space = gymnasium.spaces.Discrete(2)
  observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))

  def __init__(self, give):
    self._walk = Walk(give)

  def reset(self, *, seed=None, options=None):
    return self._walk.reset().observation, {}

  def step(self, action):
    timestep = self._walk.step(action)
    return timestep.observation, timestep.reward, timestep.last(), False, {}


def every_way(compute):
  """The result of `compute` is the same for all three environments."""
  expected, *others = [compute(give) for give in (fresh, reused, read_only)]
  for other in others:
    np.testing.assert_array_equal(other, expected)


@pytest.mark.parametrize(
  "bonus",
  [
    rnd.RND(hidden_sizes=(4,), output_size=3),
    ngu.NeverGiveUp(hidden_sizes=(4,), embedding_size=3, memory_capacity=9),
  ],
  ids=["rnd", "ngu"],
)
def test_a_bonus_around_gymnasium(bonus):
  def bonuses(give):
    env = gymnasium_wrapper.BonusWrapper(GymWalk(give), bonus, beta=1.0)
    rewards = []
    for step in range(14):
      if step % 6 == 0:
        env.reset()
      rewards.append(env.step(step % 2)[1])
    return rewards

  every_way(bonuses)


class Writer:
  """Keeps the rows of an adder."""

  def __init__(self):
    self.rows = []

  def append(self, row):
    self.rows.append({name: np.array(value) for name, value in row.items()})

  def pad(self):
    pass

  def create_window(self, priority):
    pass

  def end_episode(self):
    pass


def test_an_actor_and_its_adder_alone():
  config = q_config.QConfig(
    hidden_sizes=(4,), n_step=2, min_replay_size=8, replay_capacity=200, batch_size=4
  )
  environment = environments.wrap(Walk(fresh), seed=0)
  agent = q_agent.make_agent(config, environments.spec(environment))
  learner = agent.learner.params(agent.learner.init(np.zeros(2, np.uint32)))

  class Source:
    def get_variables(self, names):
      return [learner]

  def rows(give, wraps):
    raw = environments.wrap(Walk(give), seed=0)
    writer = Writer()
    adder = adder_lib.WindowAdder(agent, writer)
    timestep: dm_env.TimeStep
    if wraps:
      key = np.zeros(2, np.uint32)
      core = agent.actor()
      actor = actor_lib.Actor(agent, core, Source(), key, [adder])
      timestep = raw.reset()
      actor.observe_first(timestep)
      while not timestep.last():
        action = actor.select_action(timestep.observation)
        timestep = raw.step(action)
        actor.observe(action, timestep)
    else:
      adder.add_first(raw.reset())
      for step in range(6):
        adder.add(step % 2, raw.step(step % 2), {})
      adder.add_last({})
    return [[*row["observation"], row["reward"]] for row in writer.rows]

  for wraps in (False, True):
    every_way(lambda give, wraps=wraps: rows(give, wraps))


def test_whole_runs_with_evaluations():
  def weights(give):
    agent = explorax.make_agent(
      "ngu",
      Walk(give),
      settings=[
        *("hidden_sizes=8", "batch_size=4", "min_replay_size=20", "lstm_size=4"),
        *("head_size=4", "replay_capacity=95", "sequence_length=4"),
        *("sequence_period=2", "bonus.hidden_sizes=8", "bonus.memory_capacity=20"),
        "updates_per_step=1",
      ],
    )
    result = explorax.train(
      agent,
      Walk(give),
      steps=40,
      replay="memory",
      eval_every=20,
      eval_episodes=1,
      evaluation_env=Walk(give),
    )
    flat = jax.tree.leaves(result.weights)
    return np.concatenate(
      [*(np.ravel(x) for x in flat), result.evaluations["episode_return"]]
    )

  every_way(weights)


def test_images_and_parts():
  space = gymnasium.spaces.Dict(
    image=gymnasium.spaces.Box(0, 255, (3, 40, 40), np.uint8),
    place=gymnasium.spaces.Box(0, 9, (2,)),
  )

  def kept(give):
    class Parts(gymnasium.Env):
      action_space = gymnasium.spaces.Discrete(2)
      observation_space = space
      buffers = np.zeros((3, 40, 40), np.uint8), np.zeros(2, np.float32)

      def reset(self, *, seed=None, options=None):
        self._time = 0
        return self._observe(), {}

      def step(self, action):
        self._time += 1
        return self._observe(), 0.0, False, False, {}

      def _observe(self):
        return {
          "image": give(np.full((3, 40, 40), self._time, np.uint8), self.buffers[0]),
          "place": give(np.full(2, self._time, np.float32), self.buffers[1]),
        }

    whole = environments.wrap(Parts(), seed=0)
    only = gymnasium.wrappers.FilterObservation(Parts(), ["image"])
    image = environments.wrap(only, seed=0)
    encode = environments.make_encoding(image.observation_spec())
    seen = [whole.step(0).observation for _ in range(3)]
    images = [encode(image.step(0).observation) for _ in range(3)]
    return np.concatenate([np.ravel(x) for x in (*seen, *images)])

  every_way(kept)
