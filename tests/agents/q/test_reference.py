"""Whole updates against float64 numpy: loops, differences for gradients, and Adam."""

from typing import Any

import jax
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import td_error, tdu
from explorax.agents.targets import one_step

pytestmark = pytest.mark.core

Tree = dict[str, np.ndarray]


def flat(params: Any) -> Tree:
  """The parameters of both layers in float64, each `[K, ...]` but a shared torso's."""
  layers = [*params.torso.values(), *params.heads.values()]
  return {
    f"{name}_{i}": np.asarray(value, np.float64)
    for i, layer in enumerate(layers)
    for name, value in layer.items()
  }


def q_values(params: Tree, x: np.ndarray, k: int) -> np.ndarray:
  """Member k's values `[A]` of one observation."""
  own = k if params["b_0"].ndim == 2 else ...
  hidden = x @ params["w_0"][own] + params["b_0"][own]
  return np.maximum(hidden, 0.0) @ params["w_1"][k] + params["b_1"][k]


def at(setting: Any, time: int) -> float:
  """A number, or a linear schedule's value."""
  if not isinstance(setting, exploration.Linear):
    return setting
  share = min(max((time - setting.begin) / setting.steps, 0.0), 1.0)
  return setting.start + share * (setting.end - setting.start)


class Reference:
  """One learner, one transition and one member at a time."""

  def __init__(self, config, state, adam, gradient_of):
    self.config, self.gradient_of = config, gradient_of
    self.params, self.target = flat(state.params), flat(state.target_params)
    if config.prior_scale:
      self.prior = flat(state.prior_params)
      self.target_prior = flat(state.target_prior_params or state.prior_params)
    self.adam = adam(self.params, config.adam_b2, config.optimizer_eps)
    self.num_updates, self.largest = 0, 0.0

  def q(self, params: Tree, prior_name: str, x: np.ndarray, k: int) -> np.ndarray:
    q = q_values(params, x, k)
    if self.config.prior_scale:
      q = q + self.config.prior_scale * q_values(getattr(self, prior_name), x, k)
    return q

  def reward(self, rows: Tree, b: int, t: int, k: int) -> float:
    """What member k sees of it, without a bonus."""
    if k >= self.config.num_members and not self.config.explorers_see_reward:
      return 0.0
    limit = self.config.max_abs_reward or np.inf
    return min(max(rows["reward"][b, t], -limit), limit)

  def value(self, x: np.ndarray, k: int) -> float:
    """What member k bootstraps from."""
    q_t = self.q(self.target, "target_prior", x, k)
    selector = q_t
    if isinstance(self.config.target, one_step.DoubleQ):
      selector = self.q(self.params, "prior", x, k)
    return q_t[np.argmax(selector)]

  def beta(self) -> float:
    return at(self.config.beta, self.num_updates)

  def bonus(self, rows: Tree, b: int, t: int) -> float:
    """β r_int of one transition, from the exploiters' errors in one step."""
    td = []
    for k in range(self.config.num_members):
      source = self.q(self.params, "prior", rows["observation"][b, t], k)
      discount = self.config.discount * rows["discount"][b, t]
      target = self.reward(rows, b, t, k) + discount * self.value(
        rows["observation"][b, t + 1], k
      )
      td.append(target - source[rows["action"][b, t]])
    if isinstance(self.config.bonus, tdu.TDUncertainty):
      spread = sum((d - np.mean(td)) ** 2 for d in td)
      return self.beta() * np.sqrt(spread / (len(td) - 1))
    if isinstance(self.config.bonus, td_error.AbsoluteTDError):
      return self.beta() * np.mean([abs(d) for d in td])
    return 0.0

  def targets(self, rows: Tree) -> np.ndarray:
    """Of every member and window, `[M, B]`, the bonus of every step included."""
    config, num = self.config, rows["reward"].shape[0]
    targets = np.zeros((config.ensemble_size, num))
    for k, b in np.ndindex(targets.shape):
      scale, t = 1.0, 0
      while t < config.n_step and rows["mask"][b, t] == 1.0:
        reward = self.reward(rows, b, t, k)
        if k >= config.num_members:
          reward += self.bonus(rows, b, t)
        self.largest = max(self.largest, abs(reward))
        targets[k, b] += scale * reward
        scale *= config.discount * rows["discount"][b, t]
        t += 1
      targets[k, b] += scale * self.value(rows["observation"][b, t], k)
    return targets

  def loss(self, params: Tree, sample: Any, targets: np.ndarray) -> float:
    rows, config = sample.rows, self.config
    exponent = at(config.importance_exponent, self.num_updates)
    weights = (1 / (sample.population * sample.probabilities.astype(np.float64))) ** (
      exponent
    )
    weights = weights / weights.max()
    size, num = targets.shape
    total = 0.0
    for k in range(size):
      for b in range(num):
        mask = sample.first["bootstrap_mask"][b, k] if config.mask_prob < 1 else 1.0
        q = self.q(params, "prior", rows["observation"][b, 0], k)
        td = targets[k, b] - q[rows["action"][b, 0]]
        total += weights[b] * mask * self.member_loss(td)
    return total / num if config.sum_over_members else total / (size * num)

  def member_loss(self, td: float) -> float:
    limit = self.config.max_abs_td
    if limit is None or abs(td) <= limit:
      return 0.5 * td**2
    return limit * (abs(td) - 0.5 * limit)

  def update(self, sample: Any) -> tuple[float, np.ndarray]:
    """The loss and the priorities, of the parameters before the update."""
    rows = {k: np.asarray(v, np.float64) for k, v in sample.rows.items()}
    rows["action"] = sample.rows["action"]
    sample = sample._replace(rows=rows)
    targets = self.targets(rows)
    value = self.loss(self.params, sample, targets)
    td = np.zeros_like(targets)
    for k, b in np.ndindex(targets.shape):
      q = self.q(self.params, "prior", rows["observation"][b, 0], k)
      td[k, b] = targets[k, b] - q[rows["action"][b, 0]]
    gradients = self.clipped(
      {
        name: self.gradient_of(
          lambda p: self.loss(p, sample, targets), self.params, name
        )
        for name in self.params
      }
    )
    if self.config.sum_over_members and self.config.shared_torso:
      for name in ("w_0", "b_0"):
        gradients[name] = gradients[name] / self.config.ensemble_size
    rate = at(self.config.learning_rate, self.num_updates)
    self.params = self.adam.step(self.params, gradients, rate)
    self.num_updates += 1
    if self.num_updates % self.config.target_update_period == 0:
      self.target = {k: v.copy() for k, v in self.params.items()}
    return value, np.abs(td).mean(axis=0)

  def clipped(self, gradients: Tree) -> Tree:
    limit = self.config.max_gradient_norm or np.inf
    norm = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    return {k: g * min(1.0, limit / norm) for k, g in gradients.items()}


DOUBLE = {"target": one_step.DoubleQ(), "n_step": 3, "num_members": 2, "mask_prob": 0.5}
TDU = {
  "num_members": 3,
  "num_explorers": 2,
  "bonus": tdu.TDUncertainty(),
  "beta": 0.7,
  "prior_scale": 1.5,
  "exploration": exploration.Thompson(),
}
QEX = {
  "num_explorers": 1,
  "explorers_see_reward": False,
  "bonus": td_error.AbsoluteTDError(),
  "beta": exploration.Linear(0.7, 0.1, 2),
  "exploration": exploration.EpsilonGreedy(0.05, of=exploration.Thompson()),
}
EVERYTHING = {
  **TDU,
  "target": one_step.DoubleQ(),
  "target_prior": "distinct",
  "mask_prob": 0.5,
  "n_step": 2,
  "max_gradient_norm": 0.05,
  "priority_exponent": 0.6,
  "importance_exponent": 0.4,
  "adam_b2": 0.9,
  "discount": 0.8,
}
CLIPPED_AND_SCHEDULED = {
  "target": one_step.DoubleQ(),
  "n_step": 2,
  "max_abs_reward": 0.4,
  "max_abs_td": 0.3,
  "learning_rate": exploration.Linear(0.05, 0.01, steps=3, begin=1),
  "priority_exponent": 0.6,
  "importance_exponent": exploration.Linear(0.4, 1.0, 2),
}


# Of Chen et al. (2017), section 2.4, on the torso of Osband et al. (2016).
HEADS = {
  "target": one_step.DoubleQ(),
  "num_members": 3,
  "shared_torso": True,
  "sum_over_members": True,
  "max_abs_td": 0.3,
}


@pytest.mark.parametrize(
  "changes", [{}, DOUBLE, TDU, QEX, EVERYTHING, CLIPPED_AND_SCHEDULED, HEADS]
)
def test_three_updates(
  make_config, make_agent, compiled, make_sample, adam, gradient_of, changes
):
  # A large ε keeps Adam's steps continuous where a gradient is about zero.
  settings = {"optimizer_eps": 1e-2, "learning_rate": 0.05, "target_update_period": 2}
  config = make_config(**(settings | changes))
  learner = make_agent(config).learner
  init, update = compiled(config)
  state = init(jax.random.PRNGKey(1))
  # Biases begin at zero: other ones tell more. Targets of their own, too.
  state = state._replace(
    params=jax.tree.map(lambda p: p + 0.1, state.params),
    target_params=jax.tree.map(lambda p: 0.8 * p + 0.05, state.target_params),
  )
  reference = Reference(config, state, adam, gradient_of)
  for seed in range(3):
    sample = make_sample(seed, config)
    loss, priorities = reference.update(sample)
    state, output = update(state, sample)
    if state.num_updates % learner.target_period == 0:
      state = learner.copy_target(state)
    np.testing.assert_allclose(output.metrics["loss"], loss, rtol=1e-4)
    bound = reference.largest / (1 - config.discount)
    np.testing.assert_allclose(output.metrics["q_bound"], bound, rtol=1e-4)
    np.testing.assert_allclose(output.priorities, priorities, rtol=1e-4, atol=1e-5)
    for name, value in flat(state.params).items():
      np.testing.assert_allclose(value, reference.params[name], atol=2e-5)
    for name, value in flat(state.target_params).items():
      np.testing.assert_allclose(value, reference.target[name], atol=2e-5)
  assert state.num_updates == 3
