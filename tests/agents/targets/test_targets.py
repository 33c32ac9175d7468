"""Targets on windows of the transition engine, and the bonuses in their returns."""

import dataclasses

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.bonuses import scaling
from explorax.agents.bonuses import types as bonuses
from explorax.agents.dqn import agent as dqn_agent
from explorax.agents.dqn import config as dqn_config
from explorax.agents.targets import greedy, off_policy, one_step
from explorax.environments import specs

DIM, NUM_ACTIONS, SIZE, GAMMA = 2, 3, 5, 0.9
SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((DIM,), np.float32), dm_env.specs.DiscreteArray(NUM_ACTIONS)
)


def make_sample(n: int, seed: int = 0) -> types.Sample:
  """Windows of n + 1 rows: the first terminates, and the second is cut after a step."""
  rng = np.random.default_rng(seed)
  rows = {
    "observation": rng.normal(size=(SIZE, n + 1, DIM)).astype(np.float32),
    "action": rng.integers(0, NUM_ACTIONS, (SIZE, n + 1)).astype(np.int32),
    "reward": rng.normal(size=(SIZE, n + 1)).astype(np.float32),
    "discount": np.ones((SIZE, n + 1), np.float32),
    "mask": np.ones((SIZE, n + 1), np.float32),
    "behaviour_prob": rng.uniform(0.2, 1.0, (SIZE, n + 1)).astype(np.float32),
  }
  rows["discount"][0, n - 1] = 0.0
  for column in ("reward", "discount", "mask", "behaviour_prob"):
    rows[column][0, n] = 0.0
    rows[column][1, 1:] = 0.0
  return types.Sample(rows, {}, np.full(SIZE, 0.2, np.float32), np.int32(SIZE))


def update(sample: types.Sample, **changes):
  """The output of an update whose target network is not the online one."""
  config = dqn_config.DQNConfig(
    hidden_sizes=(4,),
    discount=GAMMA,
    replay_capacity=20,
    min_replay_size=1,
    batch_size=SIZE,
    n_step=sample.rows["reward"].shape[1] - 1,
    **changes,
  )
  learner = dqn_agent.make_agent(config, SPEC).learner

  @jax.jit
  def run():
    state = learner.init(jax.random.PRNGKey(0))
    target = jax.tree.map(lambda p: 0.5 * p + 0.1, state.params)
    return learner.update(state._replace(target_params=target), sample)[1]

  return jax.device_get(run())


@pytest.mark.parametrize(
  ("whole", "each"),
  [
    (one_step.QLearning(), greedy.NStep(n=3, double=False)),
    (one_step.DoubleQ(), greedy.NStep(n=3)),
    (one_step.DoubleQ(), greedy.PengQ(lambda_=1.0)),
    (one_step.DoubleQ(), greedy.PengQ(lambda_=(1.0, 1.0, 0.3))),
  ],
)
def test_a_window_step_by_step_is_its_n_step_return(whole, each):
  sample = make_sample(3)
  expected, found = update(sample, target=whole), update(sample, target=each)
  np.testing.assert_allclose(found.priorities, expected.priorities, rtol=1e-5)
  np.testing.assert_allclose(found.metrics["loss"], expected.metrics["loss"], rtol=1e-5)


@pytest.mark.parametrize(
  "target",
  [
    off_policy.Retrace(lambda_=0.0),
    off_policy.TreeBackup(lambda_=0.0),
    off_policy.ExpectedSarsaLambda(lambda_=0.0),
    off_policy.Harutyunyan(lambda_=0.0),
    greedy.WatkinsQ(lambda_=0.0),
  ],
)
def test_without_a_trace_the_first_step_counts_alone(target):
  sample = make_sample(2)
  one = sample._replace(rows={k: v[:, :2] for k, v in sample.rows.items()})
  expected = update(one, target=one_step.DoubleQ())
  found = update(sample, target=target)
  np.testing.assert_allclose(found.priorities, expected.priorities, rtol=1e-5)


def test_a_trace_depends_on_what_was_likely():
  sample = make_sample(3)
  rows = {**sample.rows, "behaviour_prob": np.full((SIZE, 4), 0.3, np.float32)}
  target = off_policy.Retrace(lambda_=1.0, epsilon=0.5)
  a, b = (update(s, target=target) for s in (sample, sample._replace(rows=rows)))
  changed = ~np.isclose(a.priorities, b.priorities)
  assert changed.any() and not changed[1]  # The second has a single step.


@dataclasses.dataclass(frozen=True)
class FirstNumber(bonuses.Bonus):
  """The first number of the observation at the bonus's end, seen by the learner."""

  end: str

  def build(self, observation_spec, num_actions):
    return bonuses.stateless(self.end, lambda inputs: inputs.observation[:, 0])


@dataclasses.dataclass(frozen=True)
class StoredFirstNumber(bonuses.Bonus):
  """The same, computed by the actor."""

  end: str

  def build(self, observation_spec, num_actions):
    return bonuses.ActorBonus(
      self.end, lambda: (), lambda state: state, lambda w, s, x, a, last: (x[0], s)
    )


@pytest.mark.parametrize("target", [one_step.DoubleQ(), off_policy.Retrace()])
@pytest.mark.parametrize("end", ["source", "transition", "destination"])
def test_a_learners_bonus_counts_as_an_actors_does(end, target):
  """At the end that it names, and in each step of a return."""
  sample = make_sample(3)
  rows = {**sample.rows, "r_int": sample.rows["observation"][:, :, 0]}
  settings = {"beta": 0.7, "target": target}
  found = update(sample, bonus=FirstNumber(end), **settings)
  stored = update(sample._replace(rows=rows), bonus=StoredFirstNumber(end), **settings)
  shifted = rows["r_int"][:, 1:] if end == "destination" else rows["r_int"][:, :-1]
  paid = rows["reward"].copy()
  paid[:, :-1] += 0.7 * shifted * rows["mask"][:, :-1]
  plain = update(sample._replace(rows={**rows, "reward": paid}), target=target)
  for other in (stored, plain):
    np.testing.assert_allclose(found.priorities, other.priorities, rtol=1e-4)


def test_beta_scales_for_those_that_see_it():
  r_int = jnp.array([[1.0, 2.0], [3.0, 4.0]])
  one = scaling.scaled_bonus(r_int, 0.5, np.array([False, True]))
  np.testing.assert_allclose(one, [np.zeros((2, 2)), 0.5 * r_int])
  each = scaling.scaled_bonus(r_int, jnp.array([0.0, 2.0]), np.array([True]))
  np.testing.assert_allclose(each, [[[0.0, 0.0], [6.0, 8.0]]])
