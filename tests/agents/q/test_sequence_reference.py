"""The whole update of Never Give Up against plain numpy, a sequence at a time.

The reference unrolls the network step by step, sums the returns term by term as the
paper prints them, and knows no automatic differentiation: its gradient is taken by
finite differences, the targets and whatever lies in the burn-in held fixed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from explorax import exploration
from explorax.agents.bonuses import ngu as ngu_lib
from explorax.agents.q import learning
from explorax.agents.targets import off_policy

pytestmark = pytest.mark.core

NUM_POLICIES, BETA, GAMMA_MAX, GAMMA_MIN = 3, 0.4, 0.95, 0.8
LAMBDA, EPS, TARGET_EPSILON, ETA = 0.9, 1e-2, 0.1, 0.9


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


def one_hot(index, size):
  return np.array([float(i == index) for i in range(size)])


def linear(p, x):
  return x @ p["w"] + p["b"]


def step(params, x, action, reward, r_int, policy, hidden, cell):
  """One step of the network: values `[A]` and its next state."""
  torso, heads = params
  features = np.maximum(linear(torso["perceptron_torso"], x), 0)
  policy = one_hot(policy, NUM_POLICIES)
  inputs = np.concatenate([features, one_hot(action, 3), [reward], [r_int], policy])
  of_input, w_h = linear(torso["lstm/input"], inputs), torso["lstm"]["w_h"]
  hidden, cell = oracles.lstm_step(of_input, w_h, hidden, cell)

  def branch(name):
    p = {k: {n: w[0] for n, w in v.items()} for k, v in heads.items()}
    middle = np.maximum(linear(p[f"duelling_head/{name}_hidden"], hidden), 0)
    return linear(p[f"duelling_head/{name}"], middle)

  advantage = branch("advantage")
  return branch("value") + advantage - advantage.mean(), hidden, cell


class Window:
  """One window of a sample, in float64."""

  def __init__(self, sample, b, policy, burn_in):
    self.rows = {k: np.asarray(v[b], np.float64) for k, v in sample.rows.items()}
    self.first = {k: np.asarray(v[b], np.float64) for k, v in sample.first.items()}
    self.policy, self.largest = policy, 0.0
    self.num_rows = len(self.rows["mask"])
    self.actions = [int(a) for a in self.rows["action"]]
    starts = self.first["starts_episode"] == 1
    self.burn_in = 0 if starts else burn_in
    self.trained = [
      t
      for t in range(self.num_rows - 1)
      if self.rows["mask"][t] == 1 and t >= self.burn_in
    ]

  def unroll(self, params, burn_in_params):
    """Values `[R, A]`; the burn-in is unrolled with parameters of its own."""
    rows, first = self.rows, self.first
    action, reward = int(first["previous_action"]), first["previous_reward"]
    r_int = first["previous_r_int"]
    hidden, cell = np.split(first["core_state"], 2)
    values = []
    for t in range(self.num_rows):
      now = burn_in_params if t < self.burn_in else params
      x = rows["observation"][t]
      q, hidden, cell = step(now, x, action, reward, r_int, self.policy, hidden, cell)
      values.append(q)
      action, reward, r_int = self.actions[t], rows["reward"][t], rows["r_int"][t]
    return np.array(values)

  def targets(self, q, target_q, beta, gamma):
    """h of transformed Retrace's returns (appendix E), `[T]`."""
    rows, targets = self.rows, []
    values = oracles.h_inv(target_q, EPS)

    def policy(t):
      pi = np.full(3, TARGET_EPSILON / 3)
      pi[np.argmax(q[t])] += 1 - TARGET_EPSILON
      return pi

    def delta(s):
      # The novelty of x_{s+1} belongs to the transition into it, as the reward does.
      reward = rows["reward"][s] + beta * rows["r_int"][s + 1]
      self.largest = max(self.largest, abs(reward))
      follow = gamma * rows["discount"][s] * policy(s + 1) @ values[s + 1]
      return reward + follow - values[s][self.actions[s]]

    for t in range(self.num_rows - 1):
      total, product = values[t][self.actions[t]], 1.0
      for s in range(t, self.num_rows - 1):
        if rows["mask"][s] == 0:
          break  # No transition starts here: the trace ends with the episode.
        if s > t:
          ratio = policy(s)[self.actions[s]] / rows["behaviour_prob"][s]
          product *= gamma * rows["discount"][s - 1] * LAMBDA * min(1.0, ratio)
        total += product * delta(s)
      targets.append(oracles.h(total, EPS))
    return np.array(targets)

  def errors(self, q, targets):
    """TD errors of the transitions trained on."""
    return np.array([targets[t] - q[t][self.actions[t]] for t in self.trained])


class Reference:
  """The update on a batch, at the parameters of a learner's state."""

  def __init__(self, agent, state, sample):
    config = agent.config
    self.sample, self.config = sample, config
    self.size = len(sample.probabilities)
    policies = learning.trained_policies(config, state, sample)
    i = np.arange(NUM_POLICIES)
    self.betas = [0.0, BETA * sigmoid(10), BETA]  # i = 1: 10 (2 − 1) / (3 − 2).
    log_gap = (2 - i) * np.log(1 - GAMMA_MAX) + i * np.log(1 - GAMMA_MIN)
    self.gammas = 1 - np.exp(log_gap / 2)
    self.windows = [
      Window(sample, b, int(policies[b]), config.burn_in) for b in range(self.size)
    ]
    weights = 1 / (float(sample.population) * sample.probabilities.astype(np.float64))
    weights **= config.importance_exponent
    self.weights = weights / weights.max()
    self.base = wide(state.params)
    target = wide(state.target_params)
    self.targets = [
      w.targets(
        w.unroll(self.base, self.base),
        w.unroll(target, target),
        self.betas[w.policy],
        self.gammas[w.policy],
      )
      for w in self.windows
    ]

  def td(self, params):
    return [
      w.errors(w.unroll(params, self.base), targets)
      for w, targets in zip(self.windows, self.targets, strict=True)
    ]

  def loss(self, params):
    halves = [0.5 * np.sum(td**2) for td in self.td(params)]
    return np.mean(self.weights * halves)

  def priorities(self):
    return [
      ETA * np.max(abs(td)) + (1 - ETA) * np.mean(abs(td)) if len(td) else 0.0
      for td in self.td(self.base)
    ]

  def slope(self, leaf, index, width=1e-5):
    """Of the loss by one entry of `changed`, which is put back afterwards."""
    kept, sides = leaf[index], []
    for sign in (1, -1):
      leaf[index] = kept + sign * width
      sides.append(self.loss_of_changed())
    leaf[index] = kept
    return (sides[0] - sides[1]) / (2 * width)

  def loss_of_changed(self):
    halves = [
      0.5 * np.sum(w.errors(w.unroll(self.changed, self.base), targets) ** 2)
      for w, targets in zip(self.windows, self.targets, strict=True)
    ]
    return np.mean(self.weights * halves)


def wide(tree):
  return jax.tree.map(lambda x: np.array(x, np.float64), tuple(tree))


def frame_losses(state, sample, num_frames=2):
  """The losses of inverse dynamics and of RND on the last frames, by hand."""
  embedding, inverse = wide(state.embedding)
  predictor, target = (
    wide((p,))[0] if "embedding" in p else None for p in (state.predictor, state.target)
  )

  def embed(x):
    hidden = np.maximum(linear(embedding["perceptron_torso"], x), 0)
    return linear(embedding["embedding"], hidden)

  def random_network(p, x):
    return linear(p["embedding"], np.maximum(linear(p["perceptron_torso"], x), 0))

  cross_entropies, errors = [], []
  for b in range(len(sample.probabilities)):
    x = np.asarray(sample.rows["observation"][b], np.float64)
    last = min(int(sample.rows["mask"][b].sum()), len(x) - 1)
    first = max(0, last - num_frames + 1)
    for t in range(first, last + 1):
      difference = random_network(predictor, x[t]) - random_network(target, x[t])
      errors.append(np.sum(difference**2))
    for t in range(first, last):
      both = np.concatenate([embed(x[t]), embed(x[t + 1])])
      hidden = np.maximum(linear(inverse["mlp/~/linear_0"], both), 0)
      logits = linear(inverse["mlp/~/linear_1"], hidden)
      action = int(sample.rows["action"][b, t])
      cross_entropies.append(np.log(np.sum(np.exp(logits))) - logits[action])
  return np.mean(cross_entropies), np.mean(errors)


@pytest.fixture(scope="module")
def ngu(sequence_config, make_agent, compiled):
  """The agent, a state whose target network is not the online one, and the update.

  β is a schedule that has come to `BETA`.
  """
  bonus = ngu_lib.NeverGiveUp(
    hidden_sizes=(4,), embedding_size=2, inverse_size=3, rnd_size=2, num_frames=3
  )
  config = sequence_config(
    burn_in=2,
    bonus=bonus,
    beta=exploration.Linear(0.0, 2 * BETA, 4),
    num_policies=NUM_POLICIES,
    discount=GAMMA_MAX,
    min_discount=GAMMA_MIN,
    target=off_policy.Retrace(lambda_=LAMBDA, epsilon=TARGET_EPSILON),
    transform_eps=EPS,
    priority_eta=ETA,
    cross_mixture_ratio=0.5,
    optimizer_eps=1.0,
    max_gradient_norm=None,
  )
  init, update = compiled(config)
  state, other = (init(jax.random.PRNGKey(seed)) for seed in (1, 2))
  state = state._replace(target_params=other.params, num_updates=jnp.int32(2))
  return make_agent(config), state, update


def test_losses_targets_and_priorities(ngu, sequence_sample):
  agent, state, update = ngu
  for seed in range(3):
    sample = sequence_sample(seed, agent)
    reference = Reference(agent, state, sample)
    _, output = update(state, sample)
    every = np.concatenate(reference.td(reference.base))
    np.testing.assert_allclose(
      output.metrics["loss"], reference.loss(reference.base), rtol=1e-4
    )
    np.testing.assert_allclose(
      output.metrics["td_error"], np.mean(abs(every)), rtol=1e-4
    )
    bound = max(window.largest for window in reference.windows) / (1 - GAMMA_MAX)
    np.testing.assert_allclose(
      output.metrics["q_bound"], oracles.h(bound, EPS), rtol=1e-4
    )
    np.testing.assert_allclose(
      output.priorities, reference.priorities(), rtol=1e-4, atol=1e-6
    )
    inverse, rnd = frame_losses(state.bonus_state.training, sample, num_frames=3)
    np.testing.assert_allclose(output.metrics["inverse_loss"], inverse, rtol=1e-5)
    np.testing.assert_allclose(output.metrics["rnd_loss"], rnd, rtol=1e-5)


def test_the_gradient_is_that_of_finite_differences(ngu, sequence_sample):
  """Adam's first step is −α g / (|g| + ε): with ε = 1, it tells what g was."""
  agent, state, update = ngu
  sample = sequence_sample(7, agent)
  new, _ = update(state, sample)
  reference = Reference(agent, state, sample)
  reference.changed = wide(state.params)
  steps = jax.tree.map(
    lambda a, b: (np.float64(b) - np.float64(a)) / agent.config.learning_rate,
    tuple(state.params),
    tuple(new.params),
  )
  rng, largest = np.random.default_rng(0), 0.0
  for leaf, taken in zip(
    jax.tree.leaves(reference.changed), jax.tree.leaves(steps), strict=True
  ):
    for flat in rng.permutation(leaf.size)[:5]:
      index = np.unravel_index(flat, leaf.shape)
      slope = reference.slope(leaf, index)
      expected = -slope / (abs(slope) + 1.0)
      np.testing.assert_allclose(taken[index], expected, rtol=2e-2, atol=2e-3)
      largest = max(largest, abs(expected))
  assert largest > 0.02


def test_padding_changes_nothing(ngu, sequence_sample):
  """Whatever stands in rows after an episode's end: the update is the same."""
  agent, state, update = ngu
  sample = sequence_sample(0, agent)
  beyond = np.cumsum(sample.rows["mask"] == 0, axis=1) > 1  # The last row is real.
  assert beyond.any()
  rows = {name: column.copy() for name, column in sample.rows.items()}
  for name in ("observation", "reward", "behaviour_prob", "r_int"):
    rows[name][beyond] = 7.0
  results = [update(state, x) for x in (sample, sample._replace(rows=rows))]
  expected, found = (
    (new.params, new.bonus_state, output.priorities) for new, output in results
  )
  jax.tree.map(np.testing.assert_array_equal, expected, found)
