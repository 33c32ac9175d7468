"""Parts of DQN on windows of steps, and parts of Never Give Up on transitions.

Each loss is computed in numpy from what the networks predict.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import dynamics, ngu, ride
from explorax.agents.q import config as q_config
from explorax.agents.q import values as values_lib
from explorax.agents.q import windows as windows_lib
from explorax.agents.targets import categorical, one_step

A, ATOMS, LIMIT = 3, 5, 2.0
SUPPORT = np.linspace(-LIMIT, LIMIT, ATOMS)
# What R2D2 has and a DQN has not.
PLAIN = {
  "transform_eps": None,
  "priority_eta": None,
  "max_gradient_norm": None,
  "importance_exponent": 0.0,
}
RIDE = ride.RIDE(
  dynamics.Dynamics(
    embedding_size=4,
    hidden_size=5,
    inverse_weight=0.1,
    forward_weight=10.0,
    forward_error="distance",
  )
)
EPINET = {"index_dim": 2, "num_members": 4, "head_size": 0, "duelling": False}


def start(agent):
  """A state whose target network is not the online one."""
  init = jax.jit(agent.learner.init)
  state, other = (init(jax.random.PRNGKey(seed)) for seed in (1, 2))
  return state._replace(target_params=other.params)


def unroll(agent, state, sample, key=None):
  """The predictions of both networks, `[M, B, R, ...]`, for windows without burn-in."""
  config = agent.config
  values = values_lib.make_values(
    config, agent.encoding.spec, A, "r_int" in agent.extras_spec
  )
  policy = sample.rows.get("policy", np.zeros_like(sample.rows["action"]))[:, 0]
  gamma = jnp.full(config.num_policies, config.discount)
  bonus = config.bonus and config.bonus.build(agent.encoding.spec, A)
  windows = windows_lib.make_windows(sample, config, gamma, policy, bonus)
  return [
    jax.device_get(
      values.unroll(
        values_lib.Weights(params, state.prior_params),
        windows.inputs(),
        windows.core_state,
        key,
      )[0]
    )
    for params in (state.params, state.target_params)
  ]


def n_step(rows, b, t, n, gamma):
  """(return, what multiplies the value after it, the row of that value)."""
  total, scale = 0.0, 1.0
  for _ in range(n):
    if rows["mask"][b, t] == 0:
      break
    total += scale * float(rows["reward"][b, t])
    scale *= gamma * float(rows["discount"][b, t])
    t += 1
  return total, scale, t


def test_distributions_with_an_lstm(sequence_config, make_agent, sequence_sample):
  """Divergences of three-step returns, summed over the trained rows of a window."""
  config = sequence_config(
    **PLAIN,
    burn_in=0,
    n_step=3,
    target=categorical.CategoricalDoubleQ(ATOMS, LIMIT),
  )
  agent = make_agent(config)
  state, sample = start(agent), sequence_sample(0, agent)
  online, target = unroll(agent, state, sample)
  rows, expected, priorities = sample.rows, [], []
  for b in range(config.batch_size):
    divergences = []
    for t in range(config.sequence_length):
      if rows["mask"][b, t] == 0:
        continue
      total, scale, last = n_step(rows, b, t, 3, config.discount)
      best = np.argmax(online.q[0, b, last])
      probs = np.float64(jax.nn.softmax(target.logits[0, b, last, best]))
      m = oracles.project(SUPPORT, total + scale * SUPPORT, probs)
      log_p = jax.nn.log_softmax(online.logits[0, b, t, rows["action"][b, t]])
      divergences.append(np.sum(m * (np.log(np.maximum(m, 1e-30)) - log_p)))
    expected.append(np.sum(divergences))
    priorities.append(np.mean(divergences))
  _, output = jax.jit(agent.learner.update)(state, sample)
  np.testing.assert_allclose(output.metrics["loss"], np.mean(expected), rtol=1e-4)
  np.testing.assert_allclose(output.priorities, priorities, rtol=1e-4)


@pytest.mark.parametrize(
  "changes", [{"noisy_sigma": 0.5}, EPINET], ids=["noise", "epinet"]
)
def test_noise_and_epinets_with_an_lstm(
  sequence_config, make_agent, sequence_sample, changes
):
  """One draw for each unroll, the same for both networks of an epinet."""
  config = sequence_config(**PLAIN, burn_in=0, target=one_step.DoubleQ(), **changes)
  agent = make_agent(config)
  state, sample = start(agent), sequence_sample(0, agent)
  key = jax.random.fold_in(state.key, 0)
  if config.index_dim:
    online, target = unroll(agent, state, sample, key)
  else:
    keys = jax.random.split(key, 3)
    online = unroll(agent, state, sample, keys[0])[0]
    target = unroll(agent, state, sample, keys[1])[1]
  rows, total = sample.rows, 0.0
  for k, b, t in np.ndindex(config.num_members, config.batch_size, 4):
    if rows["mask"][b, t] == 0:
      continue
    reward, scale, last = n_step(rows, b, t, 1, config.discount)
    value = target.q[k, b, last, np.argmax(online.q[k, b, last])]
    td = reward + scale * value - online.q[k, b, t, rows["action"][b, t]]
    total += 0.5 * td**2 / (config.num_members * config.batch_size)
  update = jax.jit(agent.learner.update)
  _, output = update(state, sample)
  np.testing.assert_allclose(output.metrics["loss"], total, rtol=1e-4)
  again = update(state._replace(num_updates=jnp.int32(1)), sample)[1]
  assert again.metrics["loss"] != output.metrics["loss"]


def test_a_window_of_transitions_is_their_sum(
  sequence_config, make_agent, sequence_sample
):
  """With a one-step target, a window of 4 is four windows of length 1."""
  changes = {**PLAIN, "lstm_size": 0, "burn_in": 0, "target": one_step.DoubleQ()}
  changes |= {"n_step": 2, "exploration": exploration.Greedy()}
  agent = make_agent(sequence_config(**changes))
  sample = sequence_sample(0, agent)
  single = make_agent(
    sequence_config(**changes, sequence_length=1, sequence_period=1, batch_size=24)
  )
  rows = {
    name: np.concatenate([column[:, t : t + 3] for t in range(4)])
    for name, column in sample.rows.items()
  }
  state, other = start(agent), start(single)
  jax.tree.map(np.testing.assert_array_equal, state.params, other.params)
  repeated = np.full(24, 0.1, np.float32)
  transitions = types.Sample(rows, {}, repeated, np.int32(20))
  _, output = jax.jit(agent.learner.update)(state, sample)
  _, of_each = jax.jit(single.learner.update)(other, transitions)
  np.testing.assert_allclose(
    output.metrics["loss"], 4 * of_each.metrics["loss"], rtol=1e-5
  )


def test_never_give_up_on_transitions(sequence_config, make_agent, sequence_sample):
  """β and γ of the policy, and the novelty of the state that is reached."""
  bonus = ngu.NeverGiveUp(hidden_sizes=(4,), embedding_size=2, memory_capacity=9)
  config = dataclasses.replace(
    q_config.QConfig(),
    hidden_sizes=(4,),
    batch_size=6,
    bonus=bonus,
    beta=0.4,
    num_policies=3,
    discount=0.95,
    min_discount=0.8,
  )
  agent = make_agent(config)
  assert agent.replay.first_row_extras == ()
  assert set(agent.replay.extras) == {"policy", "r_int"}
  state, sample = start(agent), sequence_sample(0, agent)
  online, target = unroll(agent, state, sample)
  rows, total = sample.rows, 0.0
  betas = exploration.mixture_betas(3, 0.4)
  gammas = exploration.mixture_discounts(3, 0.95, 0.8)
  for b in range(6):
    policy = rows["policy"][b, 0]
    reward = rows["reward"][b, 0] + betas[policy] * rows["r_int"][b, 1]
    scale = gammas[policy] * rows["discount"][b, 0]
    td = reward + scale * target.q[0, b, 1].max()
    total += 0.5 * (td - online.q[0, b, 0, rows["action"][b, 0]]) ** 2 / 6
  new, output = jax.jit(agent.learner.update)(state, sample)
  np.testing.assert_allclose(output.metrics["loss"], total, rtol=1e-4)
  assert output.metrics["inverse_loss"] > 0
  moved = jax.tree.map(
    lambda a, b: np.any(a != b),
    *(s.bonus_state.training.embedding for s in (state, new)),
  )
  assert all(jax.tree.leaves(moved))


def test_ride_on_sequences_with_burn_in(sequence_config, make_agent, sequence_sample):
  """R2D2's windows: the impact of each transition over the root of its visits."""
  agent = make_agent(sequence_config(bonus=RIDE, beta=0.3))
  assert "stored_bonus" in agent.replay.extras
  sample = sequence_sample(0, agent)
  state = start(agent)
  new, output = jax.jit(agent.learner.update)(state, sample)
  rows = {k: np.asarray(v, np.float64) for k, v in sample.rows.items()}
  (layer,) = state.bonus_state.learning.params.embedding.embedding.values()
  w = np.asarray(layer["w"], np.float64)
  impact = np.linalg.norm(np.diff(rows["observation"], axis=1) @ w, axis=-1)
  valid = rows["mask"][:, :-1].copy()
  valid[sample.first["starts_episode"] == 0, : agent.config.burn_in] = 0.0
  expected = np.sum(impact * rows["stored_bonus"][:, 1:] * valid) / valid.sum()
  np.testing.assert_allclose(output.metrics["r_int"], expected, rtol=1e-4)
  moved = jax.tree.map(
    lambda a, b: np.any(a != b), state.bonus_state.learning, new.bonus_state.learning
  )
  assert all(jax.tree.leaves(moved.params))
