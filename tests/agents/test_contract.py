"""The contracts, tried on the hardest agent there is: Never Give Up.

It has a recurrent state, an episodic memory, a novelty on every row and on the last
observation too, a mixture of policies, sequences with burn-in and a stored state, and
a policy of its own for evaluation. Acme's actor acts with it, and a vmapped scan, which
must not differ. `q/test_sequences.py` unrolls what replay holds.
"""

import dataclasses
import types as types_lib
from typing import Any

import fakes
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import ngu
from explorax.agents.q import agent as q_agent
from explorax.agents.targets import off_policy
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import factory, standard
from explorax.experiments.presets import r2d2 as r2d2_presets

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
  fake = fakes.FakeEnvironment(
    episode_length=LENGTH, reward=lambda t, action: 0.1 * t + action
  )
  return standard.StandardEnvironment(fake)


def make_agent() -> types.Agent:
  return q_agent.make_agent(CONFIG, factory.spec(make_environment()))


class Recorder:
  """All that an actor hands to its adder: (timestep, action, extras)."""

  def __init__(self):
    self.rows: list[list[Any]] = []

  def add_first(self, timestep):
    self.rows.append([timestep, None, None])

  def add(self, action, next_timestep, extras):
    self.rows[-1][1:] = [action, extras]
    self.rows.append([next_timestep, None, None])

  def add_last(self, extras):
    self.rows[-1][2] = extras


def test_actor_and_scan_do_the_same():
  agent, environment, recorder = make_agent(), make_environment(), Recorder()
  actor_key, learner_key = jax.random.split(jax.random.PRNGKey(3))
  weights = jax.jit(lambda key: agent.learner.params(agent.learner.init(key)))(
    learner_key
  )
  source = types_lib.SimpleNamespace(get_variables=lambda names: [weights])
  actor = actor_lib.Actor(agent, agent.actor(), source, actor_key, [recorder])
  for _ in range(8):
    timestep = environment.reset()
    actor.observe_first(timestep)
    while not timestep.last():
      action = actor.select_action(timestep.observation)
      timestep = environment.step(action)
      actor.observe(action, timestep)

  acting = agent.actor()
  timesteps, actions, extras = zip(*recorder.rows, strict=True)
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

  # Each episode follows one policy.
  firsts = [i for i, t in enumerate(timesteps) if t.first()]
  followed = [int(extras[i]["policy"]) for i in firsts]
  assert len(set(followed)) > 1
  for begin, policy in zip(firsts, followed, strict=True):
    rows = extras[begin : begin + LENGTH + 1]
    assert {int(e["policy"]) for e in rows} == {policy}
    # The memory is empty at its start, and something is new on its last row.
    assert rows[0]["r_int"] == 0.0 and rows[LENGTH]["r_int"] > 0.0
    np.testing.assert_array_equal(rows[0]["core_state"], 0.0)
