"""The device runner around environments that the host steps, beside the local one."""

import dataclasses

import dm_env
import jax
import numpy as np
import pytest

from explorax import environments, exploration
from explorax.agents import types
from explorax.agents.bonuses import ngu
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.environments import batched_types, specs
from explorax.experiments import checkpoint
from explorax.experiments import config as config_lib
from explorax.experiments.presets import r2d2 as r2d2_presets
from explorax.experiments.runners import common, device

DQN = q_config.QConfig(
  hidden_sizes=(8,),
  n_step=2,
  exploration=exploration.EpsilonGreedy(0.3),
  replay_capacity=600,
  min_replay_size=24,
  batch_size=4,
  updates_per_step=0.3,
)
NGU = dataclasses.replace(
  r2d2_presets.ATARI,
  hidden_sizes=(8,),
  lstm_size=4,
  head_size=4,
  exploration=exploration.EzGreedy(0.5),
  sequence_length=3,
  burn_in=0,
  sequence_period=2,
  replay_capacity=600,
  min_replay_size=90,
  batch_size=4,
  updates_per_step=0.25,
  actor_update_period=3,
  bonus=ngu.NeverGiveUp(
    hidden_sizes=(4,), embedding_size=3, rnd_size=3, memory_capacity=20
  ),
  beta=0.3,
  num_policies=3,
)


class Counting(dm_env.Environment):
  """Shows how far three steps ago, two, and so on were; ends after `length` steps."""

  def __init__(self, length, truncate):
    self._length, self._truncate = length, truncate
    self._shown = None

  def reset(self):
    self._steps, self._return = 0, 0.0
    self._shown = np.array([0, 0, 1], np.uint8).reshape(1, 1, 3)
    return dm_env.restart(self._shown)

  def step(self, action):
    self._steps += 1
    newest = np.full((1, 1, 1), 1 + self._steps * (2 + action), np.uint8)
    self._shown = np.concatenate([self._shown[..., 1:], newest], axis=-1)
    reward = float(action) + 0.5
    self._return += reward
    if self._steps < self._length:
      return dm_env.transition(reward, self._shown)
    end = dm_env.truncation if self._truncate else dm_env.termination
    return end(reward, self._shown)

  def episode_metrics(self):
    return {"twice": 2 * self._return}

  def observation_spec(self):
    return specs.StackedFrames((1, 1, 3), np.uint8, 3)

  def action_spec(self):
    return dm_env.specs.DiscreteArray(2)


class SideBySide:
  """dm_env environments as a batch; keeps the actions that it was sent."""

  def __init__(self, singles):
    self.singles = singles
    self.sent = []

  @property
  def num_envs(self):
    return len(self.singles)

  def observation_spec(self):
    return self.singles[0].observation_spec()

  def action_spec(self):
    return self.singles[0].action_spec()

  def reset(self):
    return self._frames([single.reset() for single in self.singles])

  def send(self, actions):
    self.sent.append(np.array(actions))

  def recv(self):
    answers = [s.step(a) for s, a in zip(self.singles, self.sent[-1], strict=True)]
    last = np.array([answer.last() for answer in answers])
    metrics = {i: self.singles[i].episode_metrics() for i in np.flatnonzero(last)}
    frames, first = self._frames(answers), None
    if last.any():
      first = np.full_like(frames, 99)  # Not looked at where none has ended.
      for i in np.flatnonzero(last):
        first[i] = self._frames([self.singles[i].reset()])[0]
    return batched_types.Step(
      np.array([a.reward for a in answers], np.float32),
      np.array([a.discount for a in answers], np.float32),
      last,
      frames,
      first,
      metrics,
    )

  def close(self):
    pass

  def _frames(self, timesteps):
    channels = timesteps[0].observation.shape[-1]
    channels //= specs.num_frames(self.observation_spec())
    return np.stack([t.observation[..., -channels:] for t in timesteps])


def make_batch():
  # The second environment is truncated while the others continue.
  return SideBySide([Counting(7, False), Counting(4, True), Counting(7, False)])


def make_agent(config, environment) -> types.Agent:
  return q_agent.make_agent(config, environments.spec(environment))


def test_acts_stores_and_reports_as_the_local_runner_does(act_locally, same_rows):
  """With its keys and weights, an Acme actor takes the same actions in each of the
  environments, and its adder makes the same rows."""
  batch, key = make_batch(), jax.random.PRNGKey(3)
  agent = make_agent(NGU, batch)
  config = config_lib.RunConfig(runner="device", seed=3, episodes=20)
  run = device.SteppedRun(agent, batch, config)
  while run.env_steps < 60:
    run.advance()
  learner_key, actor_key, _ = jax.random.split(key, 3)
  weights = agent.learner.params(jax.jit(agent.learner.init)(learner_key))
  for env, single in enumerate(make_batch().singles):
    own_key = jax.random.split(actor_key, 3)[env]
    place = {"actor_ids": (env,), "num_actors": 3}
    memory, actions = act_locally(agent, weights, own_key, single, 20, **place)
    np.testing.assert_array_equal(actions, np.stack(batch.sent)[:, env])
    # The batch has shown the last row of an episode that ended in its last step.
    same_rows(run.state.replay, env, memory)

  while not run.is_done:
    run.advance()
  actions, episodes = np.stack(batch.sent), run.ended
  expected = []
  for env, length in enumerate((7, 4, 7)):
    for end in range(length, len(actions) + 1, length):
      rewards = actions[end - length : end, env] + 0.5
      expected.append((3 * end, env, length, rewards.sum()))
  expected.sort()
  assert [e.episode for e in episodes] == list(range(1, len(episodes) + 1))
  assert 20 <= len(episodes) == len(expected)
  for episode, (env_steps, _, length, episode_return) in zip(
    episodes, expected, strict=True
  ):
    assert (episode.env_steps, episode.episode_length) == (env_steps, length)
    assert episode.episode_return == episode_return
    assert episode.metrics["twice"] == 2 * episode_return
    assert episode.metrics["intrinsic_return"] > 0
    assert episode.policy in agent.policy_names
  assert len({e.policy for e in episodes}) > 1
  assert episodes[-1].metrics["finite"] == 1 and episodes[-1].steps_per_second > 0


def test_resumes_from_a_checkpoint_at_the_start_of_episodes(tmp_path):
  episodes, agent = [], make_agent(DQN, make_batch())

  def train(batch, **hooks):
    restored = checkpoint.recover(tmp_path)
    kept = checkpoint.Checkpointer(tmp_path, restored, with_replay=True, every=50)
    config = config_lib.RunConfig(runner="device", steps=120, eval_episodes=0)
    hooks = common.Hooks(on_episodes=episodes.extend, checkpoints=kept, **hooks)
    (result,) = device.run(agent, batch, config, hooks)
    return result

  asked = iter([False] * 20 + [True])
  before = train(make_batch(), stop=lambda: next(asked))
  assert before.interrupted and before.env_steps == 60
  again = make_batch()
  assert checkpoint.recover(tmp_path).record["env_steps"] == 60
  result = train(again)
  assert result.env_steps == 120 and len(again.sent) == 20
  assert [e.episode for e in episodes] == list(range(1, len(episodes) + 1))
  # Those of lengths 4 and 7 restart with the environments.
  assert [e.env_steps for e in episodes if e.env_steps > 60][:3] == [72, 81, 81]
  # There are 0.9 updates a step.
  more = result.learner_updates - before.learner_updates
  assert more == pytest.approx(0.9 * 20, abs=1)
