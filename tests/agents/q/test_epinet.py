"""An epinet as members: one index an episode, and one set of indices an update."""

import dm_env
import jax
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import tdu
from explorax.agents.q import values as values_lib
from explorax.agents.targets import one_step

K, DIM, A = 5, 2, 3
EPINET = {
  "num_members": K,
  "index_dim": 2,
  "epinet_hidden_sizes": (6,),
  "prior_scale": 1.5,
  "exploration": exploration.Thompson(),
}
TDU = {"num_explorers": 3, "bonus": tdu.TDUncertainty(), "beta": 0.7}
X = np.random.default_rng(0).normal(size=(8, DIM)).astype(np.float32)


@pytest.mark.parametrize(
  ("target", "explorers"), [(one_step.QLearning(), {}), (one_step.DoubleQ(), TDU)]
)
def test_loss_of_an_update(
  make_config, compiled, make_sample, evaluate, target, explorers
):
  """Both networks have the same indices, which are new in each update.

  Explorers learn from the deviation of the exploiters' errors, too.
  """
  config = make_config(**EPINET, **explorers, target=target, learning_rate=0.05)
  num_members = config.ensemble_size
  init, update = compiled(config)
  spec = dm_env.specs.Array((DIM,), np.float32)
  apply = evaluate(values_lib.make_values(config, spec, A))
  state = init(jax.random.PRNGKey(0))
  for step in range(2):
    sample = make_sample(0, config)
    rows, size = sample.rows, 6
    key = jax.random.fold_in(state.key, step)
    now, after = rows["observation"][:, 0], rows["observation"][:, 1]
    q_tm1, selector, q_t = (
      np.asarray(apply(params, state.prior_params, x, key).q, np.float64)
      for params, x in (
        (state.params, now),
        (state.params, after),
        (state.target_params, after),
      )
    )
    assert len(np.unique(q_tm1[:, 0, 0])) == num_members
    td = np.zeros((num_members, size))
    for k, b in np.ndindex(num_members, size):
      chosen = selector if isinstance(target, one_step.DoubleQ) else q_t
      value = q_t[k, b, np.argmax(chosen[k, b])]
      reward, discount = rows["reward"][b, 0], 0.99 * rows["discount"][b, 0]
      td[k, b] = reward + discount * value - q_tm1[k, b, rows["action"][b, 0]]
    if explorers:
      for b in range(size):
        spread = sum((td[k, b] - np.mean(td[:K, b])) ** 2 for k in range(K))
        td[K:, b] += 0.7 * np.sqrt(spread / (K - 1))
    total, errors = np.mean(0.5 * td**2), np.mean(abs(td), axis=0)
    state, output = update(state, sample)
    np.testing.assert_allclose(output.metrics["loss"], total, rtol=1e-4)
    np.testing.assert_allclose(output.priorities, errors, rtol=1e-4)


def make_weights(compiled, config):
  """Weights with different biases, so that no observation has equal values."""
  state = compiled(config)[0](jax.random.PRNGKey(0))
  params = jax.tree.map(
    lambda p: p + 0.1 * np.arange(p.shape[-1], dtype=p.dtype),
    jax.device_get(state.params),
  )
  return values_lib.Weights(params, state.prior_params)


def act(core, params, num_episodes):
  """Actions `[episodes, steps]`, and the states after them."""
  step = jax.jit(core.select_action)
  state = jax.jit(core.init, static_argnums=2)(jax.random.PRNGKey(4), 0, 1)
  actions, states = [], []
  for i in range(num_episodes * len(X)):
    t = i % len(X)
    kind = dm_env.StepType.FIRST if t == 0 else dm_env.StepType.MID
    timestep = dm_env.TimeStep(np.int32(kind), np.float32(0), np.float32(1), X[t])
    action, state = step(types.ActorParams(params, np.int32(i)), timestep, state)
    actions.append(int(action))
    states.append(state)
  return np.reshape(actions, (num_episodes, -1)), states


def test_an_index_is_followed_for_an_episode(
  make_config, make_agent, compiled, evaluate
):
  config = make_config(**EPINET, **TDU)
  agent = make_agent(config)
  weights = make_weights(compiled, config)
  actions, states = act(agent.actor(), weights, num_episodes=6)
  spec = dm_env.specs.Array((DIM,), np.float32)
  apply = evaluate(values_lib.make_values(config, spec, A))
  keys = np.array([state.index_key for state in states]).reshape(6, len(X), -1)
  assert np.all(keys == keys[:, :1])
  assert len(np.unique(keys[:, 0], axis=0)) == 6
  for episode in range(6):
    index_key = states[episode * len(X)].index_key
    member = states[episode * len(X)].rule_state.member
    q = apply(weights.params, weights.prior_params, X, index_key).q[member]
    np.testing.assert_array_equal(actions[episode], np.argmax(q, axis=1))
  assert len(np.unique(actions, axis=0)) > 1
