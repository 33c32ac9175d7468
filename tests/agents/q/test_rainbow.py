"""Distributions, noise, and random actions at first."""

import functools
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import oracles

from explorax import exploration
from explorax.agents import types
from explorax.agents.targets import categorical, one_step

A, N = 3, 5  # Actions and atoms.
LIMIT = 2.0
C51 = {
  "target": categorical.CategoricalDoubleQ(N, LIMIT),
  "n_step": 2,
  "priority_exponent": 0.5,
  "importance_exponent": 0.4,
}
NOISY = {"noisy_sigma": 0.5, "exploration": exploration.Greedy()}
Tree = dict[str, dict[str, np.ndarray]]


def to_float64(params: Any) -> Tree:
  """Torso and heads of one member, by the names of their layers."""
  heads = jax.tree.map(lambda x: x[0], params.heads)
  modules = jax.device_get({**params.torso, **heads})
  return {
    module.split("/")[-1]: {k: np.asarray(v, np.float64) for k, v in values.items()}
    for module, values in modules.items()
  }


def log_probs(params: Tree, x: np.ndarray) -> np.ndarray:
  """log p(z_i | x, a) `[A, N]` of a duelling head on one hidden layer."""

  def linear(name, x):
    return x @ params[name]["w"] + params[name]["b"]

  features = np.maximum(linear("perceptron_torso", x), 0)
  value = linear("value", np.maximum(linear("value_hidden", features), 0))
  hidden = np.maximum(linear("advantage_hidden", features), 0)
  advantage = linear("advantage", hidden).reshape(A, N)
  logits = value[None] + advantage - advantage.mean(axis=0, keepdims=True)
  logits = logits - logits.max(axis=1, keepdims=True)
  return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


ATOMS = np.linspace(-LIMIT, LIMIT, N)


def targets(config, params: Tree, target_params: Tree, rows: dict) -> np.ndarray:
  """m of every transition, `[B, N]`."""
  result = []
  for b in range(rows["reward"].shape[0]):
    total, scale, t = 0.0, 1.0, 0
    while t < config.n_step and rows["mask"][b, t] == 1.0:
      total += scale * float(rows["reward"][b, t])
      scale *= config.discount * float(rows["discount"][b, t])
      t += 1
    x = rows["observation"][b, t].astype(np.float64)
    selector = np.exp(log_probs(params, x)) @ ATOMS
    probs = np.exp(log_probs(target_params, x)[np.argmax(selector)])
    result.append(oracles.project(ATOMS, total + scale * ATOMS, probs))
  return np.array(result)


def divergences(params: Tree, rows: dict, m: np.ndarray) -> np.ndarray:
  result = []
  for b, target in enumerate(m):
    log_p = log_probs(params, rows["observation"][b, 0].astype(np.float64))
    log_p = log_p[rows["action"][b, 0]]
    terms = [p * (np.log(p) - q) for p, q in zip(target, log_p, strict=True) if p > 0]
    result.append(sum(terms))
  return np.array(result)


def test_an_update_of_distributions(make_config, compiled, make_sample, gradient_of):
  """Loss, priorities and the first step of Adam, which tells the gradient."""
  of_head = {"head_size": 3, "duelling": True}
  config = make_config(**C51, **of_head, optimizer_eps=1.0, learning_rate=1.0)
  init, update = compiled(config)
  state = init(jax.random.PRNGKey(2))
  # Biases begin at zero, and the target at the online network: other ones tell more.
  state = state._replace(
    params=jax.tree.map(lambda p: p + 0.1, state.params),
    target_params=jax.tree.map(lambda p: 1.5 * p - 0.1, state.target_params),
  )
  sample = make_sample(3, config)
  new, output = update(state, sample)

  params, rows = to_float64(state.params), sample.rows
  m = targets(config, params, to_float64(state.target_params), rows)
  np.testing.assert_allclose(m.sum(axis=1), 1.0, rtol=1e-9)
  weights = (1 / (sample.population * sample.probabilities.astype(np.float64))) ** 0.4
  weights = weights / weights.max()
  # The window of padding alone has a source like any other: its mask is 0 after it.
  assert np.all(rows["mask"][:, 0] == 1)

  def loss(params):
    return np.mean(weights * divergences(params, rows, m))

  np.testing.assert_allclose(output.metrics["loss"], loss(params), rtol=1e-4)
  np.testing.assert_allclose(
    output.priorities, divergences(params, rows, m), rtol=1e-4, atol=1e-6
  )
  changed = to_float64(new.params)
  for layer, name in (("value", "b"), ("advantage", "w"), ("perceptron_torso", "w")):
    gradient = gradient_of(
      lambda moved, layer=layer: loss({**params, layer: moved}), params[layer], name
    )
    assert np.abs(gradient).max() > 1e-3
    step = -gradient / (np.abs(gradient) + 1.0)  # Adam's first, with an ε of 1.
    np.testing.assert_allclose(
      changed[layer][name] - params[layer][name], step, atol=1e-5
    )


def silenced(params: Any) -> Any:
  """The parameters without the scales of the noise."""
  return jax.tree_util.tree_map_with_path(
    lambda path, p: 0 * p if "sigma" in str(path[-1]) else p, params
  )


def test_each_update_draws_new_noise(make_config, compiled, make_sample):
  config = make_config(**NOISY, target=one_step.DoubleQ())
  init, update = compiled(config)
  start = init(jax.random.PRNGKey(2))
  sample = make_sample(0, config)

  def loss(state):
    return float(update(state, sample)[1].metrics["loss"])

  first = loss(start)
  assert first == loss(start)
  assert first != loss(start._replace(num_updates=jnp.int32(1)))
  assert first != loss(start._replace(key=jax.random.PRNGKey(5)))
  silent = silenced(start.params)
  state = start._replace(params=silent, target_params=silent)
  assert loss(state) == loss(state._replace(key=jax.random.PRNGKey(5)))
  # Only the target network's noise is left, then only the online one's.
  for part in ("params", "target_params"):
    noisy = state._replace(**{part: start.params})
    assert loss(noisy) != loss(noisy._replace(key=jax.random.PRNGKey(5)))


def test_a_drawn_network_explores_and_its_actions_are_certain(
  make_config, make_agent, compiled
):
  """After uniform actions at first; the evaluation policy has neither."""
  # Larger noise than is usual, so that few steps show it.
  config = make_config(**{**NOISY, "noisy_sigma": 3.0}, random_steps=10)
  agent, (init, _) = make_agent(config), compiled(config)
  weights = agent.learner.params(init(jax.random.PRNGKey(0)))
  timestep = dm_env.TimeStep(
    jnp.int32(dm_env.StepType.MID), jnp.float32(0), jnp.float32(1), jnp.ones(2)
  )

  @functools.partial(jax.jit, static_argnums=0)
  def act(evaluation, env_steps):
    """Acts on one observation over and over: actions, and their probabilities."""
    core = agent.actor(evaluation=evaluation)
    params = types.ActorParams(weights, env_steps)

    def step(state, _):
      action, state = core.select_action(params, timestep, state)
      return state, (action, core.extras(state)["behaviour_prob"])

    state = core.init(jax.random.PRNGKey(1), 0, 1)
    return jax.lax.scan(step, state, length=300)[1]

  action, prob = jax.device_get(act(False, 9))
  np.testing.assert_allclose(np.bincount(action) / 300, 1 / A, atol=0.1)
  np.testing.assert_allclose(prob, 1 / A, rtol=1e-6)

  action, prob = jax.device_get(act(False, 10))
  assert len(set(action)) > 1
  assert np.all(prob == 1.0)
  # Drawn at each step, not once in a while: a change is as likely as for independent
  # draws of the same frequencies.
  frequencies = np.bincount(action, minlength=A) / action.size
  changes = np.mean(action[1:] != action[:-1])
  np.testing.assert_allclose(changes, 1 - np.sum(frequencies**2), atol=0.15)
  assert changes > 0.05

  action, prob = jax.device_get(act(True, 0))
  assert len(set(action)) == 1 and np.all(prob == 1.0)
