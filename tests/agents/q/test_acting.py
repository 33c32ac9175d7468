"""The actor: what new windows are worth, and whose policy is evaluated."""

import collections

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.bonuses import ngu, rnd, tdu
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import packing
from explorax.agents.targets import categorical, greedy, off_policy, one_step

STEPS = 6


def episode(rng):
  """(step type, reward, discount, observation) of an episode that terminates."""
  for t in range(STEPS + 1):
    step_type = (
      dm_env.StepType.FIRST
      if t == 0
      else dm_env.StepType.LAST
      if t == STEPS
      else dm_env.StepType.MID
    )
    reward = 0.0 if t == 0 else 3 * rng.normal()
    discount = 0.0 if t == STEPS else 0.5 if t == 2 else 1.0
    yield dm_env.TimeStep(
      np.int32(step_type),
      np.float32(reward),
      np.float32(discount),
      rng.normal(size=2).astype(np.float32),
    )


NOVELTY = ngu.NeverGiveUp(
  hidden_sizes=(4,), embedding_size=2, memory_capacity=9, rnd_size=3
)
MIXTURE = {
  "target": off_policy.Retrace(0.9, 0.1),
  "bonus": NOVELTY,
  "beta": 0.7,
  "num_policies": 3,
  "min_discount": 0.6,
  "evaluation_policy": -2,
}
FEED_FORWARD = {"lstm_size": 0, "burn_in": 0}
EXPLORERS = {
  "bonus": tdu.TDUncertainty(),
  "beta": 2.0,
  "num_members": 2,
  "num_explorers": 1,
}


class Newest:
  """A writer that keeps the windows of an adder."""

  def __init__(self, agent):
    self.layouts = packing.layouts(agent)
    self.rows = collections.deque(maxlen=agent.replay.window_rows)
    self.windows, self.priorities = [], []

  def append(self, records):
    self.rows.append(records)

  def pad(self):
    of_rows, _ = self.layouts
    self.rows.append(
      {kind: np.zeros(layout.num_words, np.int32) for kind, layout in of_rows.items()}
    )

  def create_window(self, priority):
    self.windows.append(list(self.rows))
    self.priorities.append(priority)

  def end_episode(self):
    self.rows.clear()

  def sample(self):
    """All windows, as replay gives them."""
    of_rows, of_first = self.layouts
    rows = {
      kind: np.stack([[row[kind] for row in window] for window in self.windows])
      for kind in of_rows
    }
    first = {
      kind: np.stack([window[0][kind] for window in self.windows]) for kind in of_first
    }
    size = len(self.windows)
    return types.Sample(
      packing.Rows(of_rows, rows),
      packing.Rows(of_first, first),
      np.full(size, 1 / size),
      np.int32(size),
    )


def act(agent, weights):
  """Two episodes: (the adder's windows, and steps, actions, extras of the last)."""
  newest = Newest(agent)
  adder = adder_lib.WindowAdder(agent, newest)
  core = agent.actor()
  params = types.ActorParams(weights, jnp.int32(0))
  select = jax.jit(core.select_action)
  state = jax.jit(core.init)(jax.random.PRNGKey(1), 0, 1)
  rng = np.random.default_rng(0)
  for _ in range(2):  # Nothing of an episode comes into the next one.
    steps, actions, extras = list(episode(rng)), [], []
    newest.windows.clear(), newest.priorities.clear()
    adder.add_first(steps[0])
    for t, timestep in enumerate(steps):
      if t > 0:
        adder.add(actions[-1], timestep, extras[-1])
      action, state = select(params, timestep, state)
      actions.append(int(action))
      extras.append(jax.device_get(core.extras(state)))
    adder.add_last(extras[-1])
  return newest, steps, actions, extras


@pytest.mark.parametrize(
  "changes",
  [
    MIXTURE,
    {"target": greedy.PengQ(0.7), **EXPLORERS, **FEED_FORWARD},
    {
      "target": categorical.CategoricalDoubleQ(5, 2.0),
      "transform_eps": None,
      "n_step": 3,
      "priority_eta": 0.5,
      **FEED_FORWARD,
    },
    {
      "target": one_step.QLearning(),
      "sequence_length": 1,
      "sequence_period": 1,
      "n_step": 2,
      **FEED_FORWARD,
    },
  ],
)
def test_first_priorities_are_the_learners(
  sequence_config, make_agent, compiled, changes
):
  """With the weights that acted, and a target network like them."""
  config = sequence_config(**changes)
  agent, (init, update) = make_agent(config), compiled(config)
  state = init(jax.random.PRNGKey(0))
  newest, *_ = act(agent, agent.learner.params(state))
  _, output = update(state, newest.sample())
  np.testing.assert_allclose(newest.priorities, output.priorities, rtol=1e-4)
  assert np.min(newest.priorities) > 0 and len(agent.replay.priority_extras) > 0


def test_a_bonus_with_a_state_is_not_in_first_priorities(
  sequence_config, make_agent, sequence_sample
):
  """The actor does not have its networks."""
  plain, bonus = (
    make_agent(sequence_config(**changes))
    for changes in ({}, {"bonus": rnd.RND(hidden_sizes=(3,)), "beta": 2.0})
  )
  sample = sequence_sample(0, plain)
  q = np.random.default_rng(0).normal(size=(*sample.rows["mask"].shape, 1, 3))
  rows = {**sample.rows, "q": q.astype(np.float32)}
  first, second = (
    agent.initial_priority(rows, sample.first["starts_episode"])
    for agent in (plain, bonus)
  )
  np.testing.assert_array_equal(first, second)


def test_policies_of_a_mixture(sequence_config, make_agent, compiled):
  """Actor j follows policy j mod N; too few actors draw one for each episode."""
  config = sequence_config(**MIXTURE)
  agent, (init, _) = make_agent(config), compiled(config)
  weights = agent.learner.params(init(jax.random.PRNGKey(0)))
  (first, *_) = episode(np.random.default_rng(0))

  def make_policies(evaluation):
    core = agent.actor(evaluation=evaluation)

    def step(state, _):
      params = types.ActorParams(weights, jnp.int32(0))
      _, state = core.select_action(params, first, state)
      return state, core.extras(state)["policy"]

    @jax.jit
    def policies(actor_id, num_actors):
      state = core.init(jax.random.PRNGKey(3), actor_id, num_actors)
      return jax.lax.scan(step, state, None, 40)[1]

    return lambda *place: set(np.asarray(policies(*place)).tolist())

  acting, evaluating = make_policies(False), make_policies(True)
  assert acting(4, 6) == {1}
  assert acting(2, 3) == {2}
  assert acting(0, 1) == {0, 1, 2}
  assert evaluating(0, 1) == {1}
  assert agent.policy_names == ("policy 0", "policy 1", "policy 2")
