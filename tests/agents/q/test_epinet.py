"""An epinet as members: one index an episode, and one set of indices an update."""

import dm_env
import jax
import numpy as np
import pytest

from explorax import exploration, networks
from explorax.agents import types
from explorax.agents.bonuses import tdu
from explorax.agents.q import values as values_lib
from explorax.agents.targets import one_step

K, A, B = 5, 3, 6  # Exploiters, actions, and observations.
EPINET = {
  "num_members": K,
  "num_explorers": 3,
  "index_dim": 2,
  "epinet_hidden_sizes": (6,),
  "prior_scale": 1.5,
  "exploration": exploration.Thompson(),
  "bonus": tdu.TDUncertainty(),
  "beta": 0.7,
  "target": one_step.DoubleQ(),
  "learning_rate": 0.05,
}


@pytest.fixture(scope="module")
def config(make_config):
  return make_config(**EPINET)


@pytest.fixture(scope="module")
def q_values(config, make_agent):
  """(params, prior_params, observations `[B, 2]`, key) → `[M, B, A]`."""
  values = values_lib.make_values(config, make_agent(config).encoding.spec, A)

  @jax.jit
  def apply(params, prior_params, x, key):
    weights = values_lib.Weights(params, prior_params)
    inputs = networks.StepInputs(x[:, None], np.zeros((B, 1), np.int32))
    prediction, _ = values.unroll(weights, inputs, np.zeros((B, 0), np.float32), key)
    return prediction.q[:, :, 0]

  return apply


def test_loss_of_an_update(config, compiled, make_sample, q_values):
  """Both networks have the same indices, which are new in each update.

  Explorers learn from the deviation of the exploiters' errors, too.
  """
  num_members = config.ensemble_size
  init, update = compiled(config)
  state = init(jax.random.PRNGKey(0))
  for step in range(2):
    sample = make_sample(0, config)
    rows = sample.rows
    key = jax.random.fold_in(state.key, step)
    now, after = rows["observation"][:, 0], rows["observation"][:, 1]
    q_tm1, selector, q_t = (
      np.asarray(q_values(params, state.prior_params, x, key), np.float64)
      for params, x in (
        (state.params, now),
        (state.params, after),
        (state.target_params, after),
      )
    )
    assert len(np.unique(q_tm1[:, 0, 0])) == num_members
    td = np.zeros((num_members, B))
    for k, b in np.ndindex(num_members, B):
      value = q_t[k, b, np.argmax(selector[k, b])]
      reward, discount = rows["reward"][b, 0], 0.99 * rows["discount"][b, 0]
      td[k, b] = reward + discount * value - q_tm1[k, b, rows["action"][b, 0]]
    for b in range(B):
      spread = sum((td[k, b] - np.mean(td[:K, b])) ** 2 for k in range(K))
      td[K:, b] += 0.7 * np.sqrt(spread / (K - 1))
    total, errors = np.mean(0.5 * td**2), np.mean(abs(td), axis=0)
    state, output = update(state, sample)
    np.testing.assert_allclose(output.metrics["loss"], total, rtol=1e-4)
    np.testing.assert_allclose(output.priorities, errors, rtol=1e-4)


def test_an_index_is_followed_for_an_episode(config, make_agent, compiled, q_values):
  state = compiled(config)[0](jax.random.PRNGKey(0))
  # With different biases, so that no observation has equal values.
  params = jax.tree.map(
    lambda p: p + 0.1 * np.arange(p.shape[-1], dtype=p.dtype),
    jax.device_get(state.params),
  )
  weights = values_lib.Weights(params, state.prior_params)
  x = np.random.default_rng(0).normal(size=(B, 2)).astype(np.float32)
  core = make_agent(config).actor()
  step = jax.jit(core.select_action)
  state = jax.jit(core.init)(jax.random.PRNGKey(4), 0, 1)
  followed, taken = [], []
  for episode in range(6):
    keys, actions = [], []
    for t in range(B):
      kind = dm_env.StepType.FIRST if t == 0 else dm_env.StepType.MID
      timestep = dm_env.TimeStep(np.int32(kind), np.float32(0), np.float32(1), x[t])
      env_steps = np.int32(B * episode + t)
      action, state = step(types.ActorParams(weights, env_steps), timestep, state)
      actions.append(int(action))
      keys.append(np.asarray(state.index_key))
    assert np.all(np.array(keys) == keys[0])
    q = q_values(weights.params, weights.prior_params, x, keys[0])
    member = state.rule_state.member
    np.testing.assert_array_equal(actions, np.argmax(q[member], axis=1))
    followed.append(keys[0])
    taken.append(actions)
  assert len(np.unique(followed, axis=0)) == 6
  assert len(np.unique(taken, axis=0)) > 1
