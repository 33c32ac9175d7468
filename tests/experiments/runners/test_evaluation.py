"""Evaluation: when it runs, with which policy, and that training is unaffected."""

import dataclasses
from typing import Any

import dm_env
import fakes
import jax
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import counts
from explorax.environments import standard
from explorax.experiments.runners import common, course


def choice() -> fakes.FakeEnvironment:
  """Rewards the number of the action."""
  return fakes.FakeEnvironment(
    num_actions=50, reward=lambda t, action: float(t * action)
  )


@pytest.mark.parametrize(
  "every, episodes, expected",
  [
    (12, 6, [15, 25, 30]),  # Passed at 12, 24; and the end.
    (None, 3, [15]),
  ],
)
def test_an_episode_that_passes_the_period_is_followed_by_an_evaluation(
  train, every, episodes, expected
):
  evaluations: list[common.Evaluation] = []
  result = train(
    fakes.fake(),
    episodes=episodes,
    evaluation_environment=fakes.FakeEnvironment(episode_length=3),
    eval_every=every,
    eval_episodes=2,
    on_evaluation=evaluations.append,
  )
  assert [each.env_steps for each in evaluations] == expected
  for each in evaluations:
    assert [e.episode for e in each.episodes] == [1, 2]
    assert [e.env_steps for e in each.episodes] == [each.env_steps] * 2
    assert [(e.episode_return, e.episode_length) for e in each.episodes] == [(3, 3)] * 2
    assert (each.mean_return, each.mean_length) == (3.0, 3.0)
  assert (result.env_steps, result.episodes) == (5 * episodes, episodes)


def test_an_evaluation_of_so_many_steps(train):
  """It ends with the episode in which they are reached; these have 3 steps."""
  evaluations: list[common.Evaluation] = []
  train(
    fakes.fake(),
    episodes=1,
    evaluation_environment=fakes.FakeEnvironment(episode_length=3),
    eval_steps=7,
    on_evaluation=evaluations.append,
  )
  assert [len(each.episodes) for each in evaluations] == [3]


def test_evaluations_leave_training_alone_and_use_its_weights(train, bits):
  """With a bonus counted while acting, priorities, and random actions: training is the
  same to the bit. The last evaluation is the greedy policy of the final weights."""
  agents: list[types.Agent] = []

  def keep(agent: types.Agent) -> types.Agent:
    agents.append(agent)
    return agent

  evaluations: list[common.Evaluation] = []
  changes = {
    "seed": 4,
    "episodes": 6,
    "change_agent": keep,
    "dqn": {
      "min_replay_size": 6,
      "bonus": counts.Counts(),
      "beta": 1.0,
      "priority_exponent": 0.6,
      "exploration": exploration.EpsilonGreedy(epsilon=1.0),
    },
  }
  evaluates = {
    "evaluation_environment": choice(),
    "eval_every": 7,
    "eval_episodes": 3,
    "on_evaluation": evaluations.append,
  }
  results, histories = [], []
  for extra in ({}, evaluates):
    seen: list[Any] = []
    results.append(train(choice(), on_episodes=seen.extend, **extra, **changes))
    histories.append([(e.episode_return, e.env_steps, e.metrics) for e in seen])
  assert bits(results[0].weights) == bits(results[1].weights)
  assert histories[0][1:] == histories[1][1:] and len(histories[0]) == 6
  assert results[0].learner_updates == results[1].learner_updates > 0

  policy = agents[0].actor(evaluation=True)
  environment = standard.StandardEnvironment(choice())
  state = policy.init(jax.random.PRNGKey(9), 0, 1)
  timestep, expected = environment.reset(), 0.0
  select_action = jax.jit(policy.select_action)
  while not timestep.last():
    arrays = timestep._replace(
      step_type=np.int32(timestep.step_type),
      reward=np.float32(timestep.reward or 0),
      discount=np.float32(1),
    )
    params = types.ActorParams(results[0].weights, np.int32(30))
    action, state = select_action(params, arrays, state)
    timestep = environment.step(int(action))
    expected += float(timestep.reward)
  returns = [episode.episode_return for episode in evaluations[-1].episodes]
  assert returns == [expected] * 3 and expected > 0


def with_env_steps(agent: types.Agent) -> types.Agent:
  """Lets evaluations choose, as the action, the env_steps that the core is told."""

  def actor(evaluation: bool = False) -> types.ActorCore:
    policy = agent.actor(evaluation=evaluation)
    if not evaluation:
      return policy

    def select_action(params, timestep, state):
      _, state = policy.select_action(params, timestep, state)
      return params.env_steps, state

    return policy._replace(select_action=select_action)

  return dataclasses.replace(agent, actor=actor)


def test_schedules_in_evaluation_go_by_the_steps_of_training(train):
  evaluations: list[common.Evaluation] = []
  train(
    choice(),
    evaluation_environment=fakes.FakeEnvironment(
      num_actions=50, episode_length=2, reward=lambda t, action: float(action)
    ),
    eval_every=10,
    eval_episodes=2,
    on_evaluation=evaluations.append,
    change_agent=with_env_steps,
  )
  returns = [[x.episode_return for x in done.episodes] for done in evaluations]
  assert returns == [[10 + 11] * 2, [20 + 21] * 2]


def test_a_stop_in_mid_evaluation_leaves_it_unreported(train):
  """After 10 steps of training; 12 steps of evaluation are two episodes and two."""
  steps = 0

  class Counting(fakes.FakeEnvironment):
    def step(self, action: Any) -> dm_env.TimeStep:
      nonlocal steps
      steps += 1
      return super().step(action)

  evaluations: list[common.Evaluation] = []
  result = train(
    fakes.fake(),
    evaluation_environment=Counting(),
    eval_every=10,
    on_evaluation=evaluations.append,
    stop=lambda: steps >= 12,
  )
  assert steps == 12 and not evaluations
  assert (result.env_steps, result.episodes) == (10, 2)


def test_the_clock_leaves_evaluations_out():
  now = 0.0
  clock = course.Clock(lambda: now)
  clock.leave_out(7.0)  # Before it is warm, nothing counts anyway.
  clock.mark_warm(env_steps=10)
  now = 2.0
  assert clock.steps_per_second(30) == 10.0
  now = 102.0
  clock.leave_out(100.0)
  assert clock.steps_per_second(30) == 10.0
