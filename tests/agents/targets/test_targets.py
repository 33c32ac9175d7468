"""Targets on windows of transitions, and bonuses in their returns."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import losses
from explorax.agents.bonuses import types as bonuses
from explorax.agents.targets import greedy, off_policy, one_step
from explorax.agents.targets import types as target_types


@pytest.fixture(scope="session")
def make_windows(make_config, make_sample):
  """(n) → windows of n + 1 rows, with the probabilities of actions."""
  return lambda n: make_sample(0, make_config(n_step=n, target=greedy.NStep(n=n)))


@pytest.fixture(scope="session")
def update(make_config, compiled):
  """(sample, changes) → an update's output; target and online network differ."""

  def run(sample, **changes):
    n = sample.rows["reward"].shape[1] - 1
    init, update = compiled(make_config(n_step=n, **changes))
    state = init(jax.random.PRNGKey(0))
    target = jax.tree.map(lambda p: 0.5 * p + 0.1, state.params)
    return jax.device_get(update(state._replace(target_params=target), sample)[1])

  return run


@pytest.mark.parametrize(
  ("whole", "each"),
  [
    (one_step.QLearning(), greedy.NStep(n=3, double=False)),
    (one_step.DoubleQ(), greedy.NStep(n=3)),
    (one_step.DoubleQ(), greedy.PengQ(lambda_=(1.0, 1.0, 0.3))),
  ],
)
def test_a_window_step_by_step_is_its_n_step_return(make_windows, update, whole, each):
  sample = make_windows(3)
  expected, found = update(sample, target=whole), update(sample, target=each)
  np.testing.assert_allclose(found.priorities, expected.priorities, rtol=1e-5)
  np.testing.assert_allclose(found.metrics["loss"], expected.metrics["loss"], rtol=1e-5)


def td_errors(target, tx_pair):
  """A target's TD errors of five transitions, the third the last of its episode."""
  rng = np.random.default_rng(0)
  q_tm1, q_t, selector = jnp.asarray(rng.normal(size=(3, 5, 3)), jnp.float32)
  stream = target_types.Stream(
    a_tm1=jnp.array([0, 1, 2, 1, 0]),
    a_t=jnp.array([1, 2, 0, 0, 2]),
    r_t=jnp.asarray(rng.normal(size=5), jnp.float32),
    discount_t=jnp.array([0.9, 0.9, 0.0, 0.9, 0.9]),
    mu_t=jnp.array([0.3, 1.0, 0.5, 0.8, 0.2]),
    continues_t=jnp.array([1.0, 1.0, 0.0, 1.0, 0.0]),
  )
  predictions = target_types.Predictions(q_tm1, q_t, selector)
  return np.asarray(target.td_errors(predictions, stream, tx_pair))


@pytest.mark.parametrize(
  "tx_pair", [losses.identity_pair, losses.signed_hyperbolic_pair(1e-2)]
)
def test_without_a_trace_each_is_double_q_learning(tx_pair):
  expected = td_errors(one_step.DoubleQ(), tx_pair)
  for target in (
    greedy.NStep(n=1),
    greedy.PengQ(lambda_=0.0),
    off_policy.Retrace(lambda_=0.0),
    off_policy.TreeBackup(lambda_=0.0),
    off_policy.Harutyunyan(lambda_=0.0),
    off_policy.ExpectedSarsaLambda(lambda_=0.0),
  ):
    found = td_errors(target, tx_pair)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
  single = td_errors(one_step.QLearning(), tx_pair)
  found = td_errors(greedy.NStep(n=1, double=False), tx_pair)
  np.testing.assert_allclose(found, single, rtol=1e-5, atol=1e-6)
  assert np.any(single != expected)


@dataclasses.dataclass(frozen=True)
class FirstNumber(bonuses.Bonus):
  """The first number of the observation at the bonus's end, seen by the learner."""

  end: str

  def build(self, observation_spec, num_actions):
    half = bonuses.Learning(lambda key: (), lambda s, x: (x.observation[:, 0], s))
    return bonuses.IntrinsicReward(self.end, learning=half)


@pytest.mark.parametrize(
  ("end", "target"),
  [
    ("source", one_step.DoubleQ()),
    ("destination", one_step.DoubleQ()),
    ("transition", off_policy.Retrace()),
  ],
)
def test_a_learners_bonus_counts_as_a_reward_does(make_windows, update, end, target):
  """At the end that it names, and in each step of a return."""
  sample = make_windows(3)
  found = update(sample, target=target, bonus=FirstNumber(end), beta=0.7)
  rows = {**sample.rows, "reward": sample.rows["reward"].copy()}
  first = np.arange(3) + (end == "destination")
  bonus = rows["observation"][:, first, 0]
  rows["reward"][:, :-1] += 0.7 * bonus * rows["mask"][:, :-1]
  expected = update(sample._replace(rows=rows), target=target)
  np.testing.assert_allclose(found.priorities, expected.priorities, rtol=1e-4)
