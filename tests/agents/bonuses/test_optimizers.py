"""The bonuses' optimisers, in float64 and by hand (Badia et al., 2020, table 6)."""

import dm_env
import jax
import numpy as np
import pytest

from explorax.agents.bonuses import rnd
from explorax.agents.bonuses import types as bonus_types

SPEC = dm_env.specs.Array((3,), np.float32)
WIDTH = 3


def linear(params):
  """(w, b) of a linear network, float64."""
  (layer,) = params.values()
  return np.array(layer["w"], np.float64), np.array(layer["b"], np.float64)


class Adam:
  """Kingma & Ba (2015), algorithm 1, on gradients clipped to a global norm."""

  def __init__(self, rate, eps, clip):
    self.rate, self.eps, self.clip = rate, eps, clip
    self.m, self.v, self.t = 0.0, 0.0, 0
    self.norms = []

  def step(self, x, gradient):
    self.norms.append(np.linalg.norm(gradient))
    if self.clip is not None and self.norms[-1] > self.clip:
      gradient = gradient * self.clip / self.norms[-1]
    self.t += 1
    self.m = 0.9 * self.m + 0.1 * gradient
    self.v = 0.999 * self.v + 0.001 * gradient**2
    m, v = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
    return x - self.rate * m / (np.sqrt(v) + self.eps)


def distil(adam, predictor, target, batches):
  """The predictor (w, b) after a step on each batch `[N, 3]`."""
  (w, b), (w_g, b_g) = predictor, target
  for x in batches:
    difference = x @ (w - w_g) + b - b_g
    dw, db = 2 * x.T @ difference / len(x), 2 * difference.mean(axis=0)
    flat = adam.step(np.concatenate([w.ravel(), b]), np.concatenate([dw.ravel(), db]))
    w, b = flat[: w.size].reshape(w.shape), flat[w.size :]
  return w, b


# Far from the target at first, whose gradient is clipped; then small gradients, near ε.
SCALES = (30.0, 1.0, 1e-3, 1e-4)


def test_never_give_ups_predictor(make_bonus):
  bonus = make_bonus(SPEC, states="random", rnd_size=WIDTH, num_frames=2)
  rng = np.random.default_rng(0)
  start = state = bonus.training.init(jax.random.PRNGKey(0))
  update = jax.jit(bonus.training.update)
  batches = [scale * rng.normal(size=(4, 2, 3)) for scale in SCALES]
  for x in batches:
    x = x.astype(np.float32)
    state, _ = update(state, x, np.zeros((4, 2), np.int32), np.full(4, 2, np.int32))
  adam = Adam(5e-4, 1e-4, 40.0)
  flat = [x.astype(np.float32).astype(np.float64).reshape(-1, 3) for x in batches]
  expected = distil(adam, linear(start.predictor), linear(start.target), flat)
  assert adam.norms[0] > 40 and adam.norms[-1] < 1
  for x, y in zip(linear(state.predictor), expected, strict=True):
    np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("num_trained", [None, 2])
def test_rnds_predictor_and_the_rows_it_learns_from(num_trained):
  """Windows that end at different rows; the last transitions of each are trained on."""
  settings = {"optimizer_eps": 1e-4, "max_gradient_norm": 40.0, "end": "destination"}
  bonus = rnd.RND(
    hidden_sizes=(),
    output_size=WIDTH,
    learning_rate=5e-4,
    normalisation="none",
    num_trained=num_trained,
    **settings,
  ).build(SPEC, 2)
  assert bonus.end == "destination"
  rng = np.random.default_rng(0)
  first_real, num_real = [0, 0, 1, 0], [4, 1, 3, 0]  # One has a row of burn-in.
  row = np.arange(4)
  mask = np.array(
    [(row >= f) & (row < f + n) for f, n in zip(first_real, num_real, strict=True)],
    np.float32,
  )
  start = state = bonus.learning.init(jax.random.PRNGKey(0))
  values = np.zeros((1, 4, 4, 2), np.float32)

  @jax.jit
  def step(state, observation):
    return bonus_types.compute_on_windows(
      bonus,
      state,
      td=values[..., 0],
      action=np.zeros((4, 5), np.int32),
      q_tm1=values,
      q_t=values,
      observation=observation,
      stored=mask,
      mask=mask,
    )

  trained = []
  for scale in SCALES:
    x = (scale * rng.normal(size=(4, 5, 3))).astype(np.float32)
    w, b = linear(state.predictor)
    w_g, b_g = linear(start.target)
    r_int, state = step(state, x)
    x = x.astype(np.float64)
    novelty = np.square(x[:, 1:] @ (w - w_g) + b - b_g).sum(axis=-1)
    np.testing.assert_allclose(r_int, novelty, rtol=1e-3, atol=1e-6)
    last = slice(None) if num_trained is None else slice(-num_trained, None)
    chosen = [x[i, 1:][mask[i] > 0][last] for i in range(4)]
    trained.append(np.concatenate(chosen))
  assert len(trained[0]) == (8 if num_trained is None else 5)
  adam = Adam(5e-4, 1e-4, 40.0)
  expected = distil(adam, linear(start.predictor), linear(start.target), trained)
  assert adam.norms[0] > 40
  for x, y in zip(linear(state.predictor), expected, strict=True):
    np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-7)
