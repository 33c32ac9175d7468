"""Successor Uncertainties: whole updates against numpy, and episodes."""

from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.successor import agent as successor_agent
from explorax.agents.successor import config as successor_config
from explorax.agents.successor import learning
from explorax.environments import specs

A, D, H, S, B = 3, 2, 4, 5, 6  # Actions, features, hidden units, states, a batch.
SPEC = specs.EnvironmentSpec(
  specs.OneHotArray((S, 1), "observation"), dm_env.specs.DiscreteArray(A)
)


# A decay of 0: the last batch is all that counts.
CONFIG = successor_config.SuccessorConfig(
  feature_size=D,
  hidden_sizes=(H,),
  replay_capacity=20,
  batch_size=B,
  min_replay_size=6,
  regression_decay=0.0,
  likelihood_variance=0.3,
  learning_rate=exploration.Linear(0.05, 0.01, 2),
  target_update_period=2,
  discount=0.8,
)


@pytest.fixture(scope="module")
def agent() -> types.Agent:
  return successor_agent.make_agent(CONFIG, SPEC)


@pytest.fixture(scope="module")
def start(agent) -> Any:
  """A learner's first state."""
  return jax.jit(agent.learner.init)(jax.random.PRNGKey(0))


def make_sample(seed: int, population: int) -> types.Sample:
  """Six transitions, one of which terminates in what is no state."""
  rng = np.random.default_rng(seed)
  rows = {
    "observation": rng.integers(0, S, (B, 2)).astype(np.int32),
    "action": rng.integers(0, A, (B, 2)).astype(np.int32),
    "reward": rng.normal(size=(B, 2)).astype(np.float32),
    "discount": np.ones((B, 2), np.float32),
    "mask": np.ones((B, 2), np.float32),
  }
  rows["observation"][0, 1], rows["discount"][0, 0] = -1, 0.0
  probabilities = np.full(B, 1 / B, np.float32)
  return types.Sample(rows, {}, probabilities, np.int32(population))


def flat(params: Any) -> dict[str, np.ndarray]:
  """Parameters of φ and ψ in float64, by network and layer."""
  (psi,) = params.psi.values()
  layers = {
    "phi0" if "torso" in name else "phi1": layer for name, layer in params.phi.items()
  }
  assert len(layers) == 2
  layers["psi"] = psi
  return {
    f"{name}_{key}": np.asarray(value, np.float64)
    for name, layer in layers.items()
    for key, value in layer.items()
  }


def one_hot(index: int) -> np.ndarray:
  return np.eye(S + 1, S)[index]


def phi(params: dict, x: int, a: int) -> np.ndarray:
  hidden = np.maximum(one_hot(x) @ params["phi0_w"] + params["phi0_b"], 0)
  outputs = np.maximum(hidden @ params["phi1_w"] + params["phi1_b"], 0)
  return outputs.reshape(A, D)[a]


def psi(params: dict, x: int) -> np.ndarray:
  return (one_hot(x) @ params["psi_w"] + params["psi_b"]).reshape(A, D)


def constants(params: dict, target: dict, mean: np.ndarray, rows: dict) -> list:
  """For each transition what no gradient passes through: targets of ψ and of Q."""
  result = []
  for b in range(B):
    x, x_t = rows["observation"][b]
    discount = CONFIG.discount * rows["discount"][b, 0]
    psi_t = psi(target, x_t)
    values = psi_t @ mean
    target_psi = phi(params, x, rows["action"][b, 0]) + (
      discount * psi_t[np.argmax(values)]
    )
    result.append((target_psi, rows["reward"][b, 0] + discount * max(values)))
  return result


def loss(params: dict, targets: list, mean: np.ndarray, rows: dict) -> float:
  total = 0.0
  for b, (target_psi, target_q) in enumerate(targets):
    x, a = rows["observation"][b, 0], rows["action"][b, 0]
    psi_tm1 = psi(params, x)[a]
    total += sum((target_psi - psi_tm1) ** 2) / 2
    total += (target_q - psi_tm1 @ mean) ** 2 / 2
    total += (rows["reward"][b, 0] - phi(params, x, a) @ mean) ** 2 / 2
  return total / B


def closed_form(features, rewards, population) -> tuple[np.ndarray, np.ndarray]:
  """Bayesian regression on a batch, one observation at a time.

  It stands for all that replay holds.
  """
  precision, product = np.eye(D) / CONFIG.prior_variance, np.zeros(D)
  variance = CONFIG.likelihood_variance * B / population
  for f, r in zip(features, rewards, strict=True):
    precision += np.outer(f, f) / variance
    product += f * r / variance
  covariance = np.linalg.inv(precision)
  return covariance @ product, covariance


def test_three_updates_and_their_posteriors(agent, start, adam, gradient_of):
  """The draws of w are taken out: every posterior is narrowed to its mean first."""
  learner, state = agent.learner, start
  update = jax.jit(learner.update)
  rng = np.random.default_rng(7)
  state = state._replace(
    params=jax.tree.map(
      lambda p: jnp.asarray(0.5 * rng.normal(size=p.shape), p.dtype), state.params
    ),
    target_psi=jax.tree.map(
      lambda p: jnp.asarray(0.5 * rng.normal(size=p.shape), p.dtype), state.target_psi
    ),
    posterior=state.posterior._replace(mean=jnp.array([1.0, -0.5])),
  )
  params, mean = flat(state.params), np.array([1.0, -0.5])
  target = flat(state.params._replace(psi=state.target_psi))
  optimizer = adam(params)
  largest = 0.0
  for t, rate, population in ((1, 0.05, 6), (2, 0.03, 60), (3, 0.01, 20)):
    state = state._replace(
      posterior=state.posterior._replace(scale=jnp.zeros((D, D), jnp.float32))
    )
    sample = make_sample(t, population)
    rows = sample.rows
    targets = constants(params, target, mean, rows)
    state, output = update(state, sample)
    if t % learner.target_period == 0:
      state = learner.copy_target(state)
    expected = loss(params, targets, mean, rows)
    np.testing.assert_allclose(output.metrics["loss"], expected, rtol=1e-4)
    largest = max(largest, np.max(np.abs(rows["reward"][:, 0])))
    bound = largest / (1 - CONFIG.discount)
    np.testing.assert_allclose(output.metrics["q_bound"], bound, rtol=1e-5)
    features = [
      phi(params, rows["observation"][b, 0], rows["action"][b, 0]) for b in range(B)
    ]
    gradients = {
      name: gradient_of(lambda p: loss(p, targets, mean, rows), params, name)  # noqa: B023
      for name in params
    }
    params = optimizer.step(params, gradients, rate)
    mean, covariance = closed_form(features, rows["reward"][:, 0], population)
    if t == 2:
      target = dict(params)
    np.testing.assert_allclose(state.posterior.mean, mean, rtol=1e-3, atol=1e-4)
    scale = np.asarray(state.posterior.scale, np.float64)
    np.testing.assert_allclose(scale @ scale.T, covariance, rtol=1e-3, atol=1e-4)
    for name, value in flat(state.params).items():
      np.testing.assert_allclose(value, params[name], atol=2e-4, err_msg=name)
    online = state.params._replace(psi=state.target_psi)
    np.testing.assert_allclose(flat(online)["psi_w"], target["psi_w"], atol=2e-4)
  assert state.num_updates == 3 and output.priorities.shape == (B,)


def act(agent, posterior, psi_params, episodes: int, evaluation: bool = False):
  """Actions, weights and probabilities of episodes of three steps, `[E, 3]`."""
  weights = learning.Weights(psi_params, posterior)
  core = agent.actor(evaluation=evaluation)
  params = types.ActorParams(weights, jnp.int32(0))

  def step(state, step_type):
    timestep = dm_env.TimeStep(step_type, jnp.float32(0), jnp.float32(1), jnp.int32(2))
    action, state = core.select_action(params, timestep, state)
    return state, (action, state.weights, core.extras(state)["behaviour_prob"])

  kinds = [dm_env.StepType.FIRST, dm_env.StepType.MID, dm_env.StepType.LAST]
  step_types = jnp.array([int(kind) for kind in kinds] * episodes, jnp.int32)
  state = core.init(jax.random.PRNGKey(1), 0, 1)
  outputs = jax.jit(lambda s: jax.lax.scan(step, s, step_types)[1])(state)
  return [np.asarray(x).reshape(episodes, 3, *x.shape[1:]) for x in outputs]


def test_one_draw_of_weights_is_followed_for_an_episode(agent, start):
  rng = np.random.default_rng(0)
  psi_params = jax.tree.map(
    lambda p: jnp.asarray(rng.normal(size=p.shape), p.dtype), start.params.psi
  )
  mean = jnp.array([0.5, -0.2], jnp.float32)
  scale = jnp.array([[1.0, 0.0], [0.5, 2.0]], jnp.float32)
  posterior = exploration.WeightPosterior(mean, scale)
  episodes = 400
  action, weights, prob = act(agent, posterior, psi_params, episodes)
  np.testing.assert_array_equal(weights, np.repeat(weights[:, :1], 3, axis=1))
  assert len(np.unique(weights[:, 0, 0])) == episodes
  np.testing.assert_allclose(weights[:, 0].mean(axis=0), mean, atol=0.3)
  np.testing.assert_allclose(np.cov(weights[:, 0].T), scale @ scale.T, atol=0.7)
  # Greedy in ψᵀw, with certainty.
  (layer,) = psi_params.values()
  table = np.asarray(layer["w"][2] + layer["b"]).reshape(A, D)
  np.testing.assert_array_equal(action, np.argmax(weights @ table.T, axis=-1))
  assert np.all(prob == 1.0) and len(set(action[:, 0])) > 1
  action, _, prob = act(agent, posterior, psi_params, 5, evaluation=True)
  np.testing.assert_array_equal(action, np.argmax(table @ mean))
  assert np.all(prob == 1.0)
