"""The actor: the TD errors of its own values, and whose policy is evaluated."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration, networks
from explorax.agents import types
from explorax.agents.bonuses import counts, ngu, td_error
from explorax.agents.q import values as values_lib

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


def h(x, eps=1e-3):
  return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + eps * x


def h_inv(x, eps=1e-3):
  root = (np.sqrt(1 + 4 * eps * (np.abs(x) + 1 + eps)) - 1) / (2 * eps)
  return np.sign(x) * (root**2 - 1)


NOVELTY = ngu.NeverGiveUp(
  hidden_sizes=(4,), embedding_size=2, memory_capacity=9, rnd_size=3
)
CASES = {
  "plain": {"reward_scale": 0.5, "max_abs_reward": 1.0},
  "mixture": {
    "bonus": NOVELTY,
    "beta": 0.7,
    "num_policies": 3,
    "min_discount": 0.6,
  },
  "explorers": {
    "bonus": counts.Counts(),
    "beta": 2.0,
    "num_members": 2,
    "num_explorers": 1,
  },
  # The learner's bonus is not known to the actor.
  "learner": {"bonus": td_error.AbsoluteTDError(), "beta": 2.0},
}


@pytest.mark.parametrize("case", CASES)
def test_td_errors_are_those_of_what_was_acted(sequence_config, make_agent, case):
  """In float64, from an unroll of the whole episode."""
  config = sequence_config(**CASES[case])
  agent = make_agent(config)
  core = agent.actor()
  weights = agent.learner.params(agent.learner.init(jax.random.PRNGKey(0)))
  params = types.ActorParams(weights, jnp.int32(0))
  select = jax.jit(core.select_action)
  state = core.init(jax.random.PRNGKey(1), 0, 1)
  rng = np.random.default_rng(0)
  for _ in range(2):  # Nothing of an episode comes into the next one.
    steps, actions, extras = list(episode(rng)), [], []
    for timestep in steps:
      action, state = select(params, timestep, state)
      actions.append(int(action))
      extras.append(jax.device_get(core.extras(state)))
  policy = int(extras[0]["policy"])
  r_int = np.array([x.get("r_int", 0.0) for x in extras], np.float64)
  rewards = np.array([step.reward for step in steps], np.float64)
  column = lambda values, dtype: jnp.asarray(values, dtype)[None]  # noqa: E731
  values = values_lib.make_values(
    config, agent.encoding.spec, 3, stores_r_int="r_int" in extras[0]
  )
  prediction, _ = values.unroll(
    weights,
    networks.StepInputs(
      column([step.observation for step in steps], jnp.float32),
      column([policy] * len(steps), jnp.int32),
      column([-1, *actions[:-1]], jnp.int32),
      column(rewards, jnp.float32),
      column([0.0, *r_int[:-1]], jnp.float32),
    ),
    jnp.zeros((1, values.state_size)),
    None,
  )
  q = np.asarray(prediction.q, np.float64)[:, 0]  # [M, T + 1, A]
  beta = {"mixture": [0.0, 0.7 / (1 + np.exp(-10)), 0.7][policy], "explorers": 2.0}
  beta = beta.get(case, 0.0)
  gamma = 0.9
  if case == "mixture":  # Evenly spaced in log(1 − γ), from 0.9 to 0.6.
    gamma = 1 - 0.1 ** ((2 - policy) / 2) * 0.4 ** (policy / 2)
  expected = [0.0]
  for t in range(STEPS):
    # NGU's novelty is of the state reached, a count of the one left.
    moved = r_int[t + 1] if case == "mixture" else r_int[t]
    deltas = []
    for member in range(len(q)):
      seen = moved if case == "mixture" or member == 2 else 0.0
      reward = rewards[t + 1] + beta * seen
      if case == "plain":
        reward = 0.5 * np.clip(rewards[t + 1], -1, 1)
      best = h_inv(q[member, t + 1]).max()
      target = h(reward + gamma * float(steps[t + 1].discount) * best)
      deltas.append(abs(target - q[member, t, actions[t]]))
    expected.append(np.mean(deltas))
  assert np.abs(rewards).max() > 1
  found = [float(x["td_error"]) for x in extras]
  np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("setting", "policy"), [(0, 0), (-1, 2)])
def test_the_policy_that_is_evaluated(sequence_config, make_agent, setting, policy):
  """Its index is what the network sees and what is reported."""
  config = sequence_config(
    bonus=NOVELTY,
    beta=0.7,
    num_policies=3,
    evaluation_policy=setting,
    exploration=exploration.EpsilonGreedy(1.0),
  )
  agent = make_agent(config)
  weights = agent.learner.params(agent.learner.init(jax.random.PRNGKey(0)))
  core = agent.actor(evaluation=True)
  state = core.init(jax.random.PRNGKey(1), 0, 1)
  (first, *_) = episode(np.random.default_rng(0))
  action, state = core.select_action(
    types.ActorParams(weights, jnp.int32(0)), first, state
  )
  assert int(core.extras(state)["policy"]) == policy
  values = values_lib.make_values(config, agent.encoding.spec, 3, stores_r_int=True)
  one = lambda x, dtype: jnp.asarray(x, dtype)[None, None]  # noqa: E731
  prediction, _ = values.unroll(
    weights,
    networks.StepInputs(
      one(first.observation, jnp.float32),
      one(policy, jnp.int32),
      one(-1, jnp.int32),
      one(0.0, jnp.float32),
      one(0.0, jnp.float32),
    ),
    jnp.zeros((1, values.state_size)),
    None,
  )
  assert int(action) == int(jnp.argmax(prediction.q[0, 0, 0]))
