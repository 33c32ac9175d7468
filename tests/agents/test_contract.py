"""The contracts, tried on the hardest agent there is: Never Give Up.

It has a recurrent state, an episodic memory, a novelty on every row and on the last
observation too, a mixture of policies, sequences with burn-in and a stored state, and
a policy of its own for evaluation. It is acted with by the local runner and by a
vmapped scan, which must not differ. `r2d2/test_sequences.py` unrolls what replay holds.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import ngu
from explorax.agents.q import agent as q_agent
from explorax.agents.replay import adder as adder_lib
from explorax.agents.targets import off_policy
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import factory, standard, testing
from explorax.experiments import config as config_lib
from explorax.experiments.presets import r2d2 as r2d2_presets
from explorax.experiments.runners import core, local

pytestmark = pytest.mark.newest

STILL = exploration.Linear(0.0, 0.0, 1)  # A learning rate that leaves all as it is.
LENGTH = 7  # Steps of an episode.
CONFIG = dataclasses.replace(
  r2d2_presets.ATARI,
  hidden_sizes=(4,),
  lstm_size=3,
  head_size=8,  # With fewer units, all may be dead, and the actions' values tied.
  exploration=exploration.EpsilonGreedy(0.5),
  num_policies=4,
  min_discount=0.9,
  beta=0.3,
  bonus=ngu.NeverGiveUp(
    hidden_sizes=(4,),
    embedding_size=2,
    memory_capacity=8,
    embedding_learning_rate=STILL,
    rnd_learning_rate=STILL,
  ),
  target=off_policy.Retrace(),
  learning_rate=STILL,
  sequence_length=2,
  burn_in=1,
  sequence_period=2,
  replay_capacity=40,
  min_replay_size=4,
  batch_size=6,
  updates_per_step=1.0,
  actor_update_period=3,
)


def make_environment() -> standard.StandardEnvironment:
  fake = testing.FakeEnvironment(
    episode_length=LENGTH, reward=lambda t, action: 0.1 * t + action
  )
  return standard.StandardEnvironment(fake)


def make_agent() -> types.Agent:
  return q_agent.make_agent(CONFIG, factory.spec(make_environment()))


@pytest.fixture
def recorded(monkeypatch):
  """All that the runner's actor hands to its adder: (timestep, action, extras)."""
  rows: list[list[Any]] = []
  add_first = adder_lib.WindowAdder.add_first
  add, add_last = adder_lib.WindowAdder.add, adder_lib.WindowAdder.add_last

  def record_first(self, timestep):
    rows.append([timestep, None, None])
    add_first(self, timestep)

  def record(self, action, next_timestep, extras):
    rows[-1][1:] = [action, extras]
    rows.append([next_timestep, None, None])
    add(self, action, next_timestep, extras)

  def record_last(self, extras):
    rows[-1][2] = extras
    add_last(self, extras)

  monkeypatch.setattr(adder_lib.WindowAdder, "add_first", record_first)
  monkeypatch.setattr(adder_lib.WindowAdder, "add", record)
  monkeypatch.setattr(adder_lib.WindowAdder, "add_last", record_last)
  return rows


def test_runner_and_scan_do_the_same(recorded):
  agent, episodes = make_agent(), []
  result = local.run(
    agent,
    make_environment(),
    config_lib.RunConfig(seed=3, episodes=8, replay="memory"),
    core.Hooks(on_episode=episodes.append),
  )
  assert result.learner_updates > 0

  # The same keys, and the weights, which a learning rate of 0 has left as they were.
  actor_key, learner_key = jax.random.split(jax.random.PRNGKey(3))
  weights = jax.jit(lambda key: agent.learner.params(agent.learner.init(key)))(
    learner_key
  )
  jax.tree.map(np.testing.assert_array_equal, weights, result.weights)
  acting = agent.actor()
  timesteps, actions, extras = zip(*recorded, strict=True)
  steps_before = np.cumsum([0] + [not t.first() for t in timesteps[1:]])
  stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *timesteps)

  # A second actor beside the first, whose episodes begin three steps later.
  shifted = jax.tree.map(lambda x: np.roll(x, 3, axis=0), stacked)
  both = jax.tree.map(lambda a, b: np.stack([a, b], axis=1), stacked, shifted)

  def step(states, x):
    timestep, env_steps = x
    params = types.ActorParams(weights, env_steps)
    action, states = jax.vmap(acting.select_action, (None, 0, 0))(
      params, timestep, states
    )
    return states, (action, jax.vmap(acting.extras)(states))

  states = jax.vmap(lambda i: acting.init(actor_key, i, 2))(jnp.arange(2))
  _, (scanned, scanned_extras) = jax.jit(lambda s, xs: jax.lax.scan(step, s, xs))(
    states, (both, steps_before.astype(np.int32))
  )

  taken = [i for i, action in enumerate(actions) if action is not None]
  np.testing.assert_array_equal(scanned[taken, 0], [actions[i] for i in taken])
  for name in extras[0]:
    np.testing.assert_allclose(
      scanned_extras[name][:, 0], [e[name] for e in extras], rtol=1e-4, atol=1e-5
    )
  assert not np.array_equal(scanned[:, 0], scanned[:, 1])

  # Each episode follows one policy, whose name is reported.
  firsts = [i for i, t in enumerate(timesteps) if t.first()]
  followed = [int(extras[i]["policy"]) for i in firsts]
  assert [e.policy for e in episodes] == [f"policy {i}" for i in followed]
  assert len(set(followed)) > 1
  for begin, policy in zip(firsts, followed, strict=True):
    rows = extras[begin : begin + LENGTH + 1]
    assert {int(e["policy"]) for e in rows} == {policy}
    # The memory is empty at its start, and something is new on its last row.
    assert rows[0]["r_int"] == 0.0 and rows[LENGTH]["r_int"] > 0.0
    np.testing.assert_array_equal(rows[0]["core_state"], 0.0)


def test_evaluation_has_a_policy_of_its_own():
  environment, builder = make_environment(), builder_lib.Builder(make_agent())
  replay = builder.make_replay_tables("memory", 0)
  learner = builder.make_learner(jax.random.PRNGKey(0), replay.batches(), replay)
  histories = []
  for seed in range(3):
    key = jax.random.PRNGKey(seed)
    actor = builder.make_actor(key, learner, evaluation=True)
    actions = []
    for _ in range(2):
      timestep = environment.reset()
      actor.observe_first(timestep)
      while not timestep.last():
        actions.append(int(actor.select_action(timestep.observation)))
        timestep = environment.step(actions[-1])
        actor.observe(actions[-1], timestep)
        assert actor.extras[0]["policy"] == 0
    histories.append(actions)
  assert histories[0] == histories[1] == histories[2]  # Nothing is left to chance.
