"""Parts of DQN on windows of steps, and parts of Never Give Up on transitions.

Each loss is computed in numpy from what the networks predict.
"""

import jax
import jax.numpy as jnp
import numpy as np
import oracles

from explorax import exploration
from explorax.agents import types
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
