"""RND's predictor: its optimiser, and the rows it learns from, in float64."""

import dm_env
import jax
import numpy as np

from explorax.agents.bonuses import rnd
from explorax.agents.bonuses import types as bonus_types

# Far from the target at first, whose gradient is clipped; then small gradients, near ε.
SCALES = (30.0, 1.0, 1e-3, 1e-4)
CLIP = 40.0


def linear(params):
  """A linear network's layer, float64."""
  (layer,) = params.values()
  return {name: np.array(layer[name], np.float64) for name in ("w", "b")}


def distil(adam, predictor, target, batches):
  """The predictor after a step on each batch `[N, 3]`, and the gradients' norms."""
  optimizer, norms = adam(predictor, eps=1e-4), []
  for x in batches:
    difference = x @ (predictor["w"] - target["w"]) + predictor["b"] - target["b"]
    gradients = {"w": 2 * x.T @ difference / len(x), "b": 2 * difference.mean(axis=0)}
    norms.append(np.sqrt(sum(np.sum(g**2) for g in gradients.values())))
    scale = min(1.0, CLIP / norms[-1])
    gradients = {name: scale * g for name, g in gradients.items()}
    predictor = optimizer.step(predictor, gradients, 5e-4)
  return predictor, norms


def test_rnds_predictor_and_the_rows_it_learns_from(adam):
  """Windows that end at different rows; the last two of each are trained on."""
  bonus = rnd.RND(
    hidden_sizes=(),
    output_size=3,
    learning_rate=5e-4,
    normalisation="none",
    num_trained=2,
    optimizer_eps=1e-4,
    max_gradient_norm=CLIP,
    end="destination",
  ).build(dm_env.specs.Array((3,), np.float32), 2)
  rng = np.random.default_rng(0)
  first_real, num_real = [0, 0, 1, 0], [4, 1, 3, 0]  # One has a row of burn-in.
  row = np.arange(4)
  mask = np.array(
    [(row >= f) & (row < f + n) for f, n in zip(first_real, num_real, strict=True)],
    np.float32,
  )
  start = state = jax.jit(bonus.learning.init)(jax.random.PRNGKey(0))
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

  trained, target = [], linear(start.target)
  for scale in SCALES:
    x = (scale * rng.normal(size=(4, 5, 3))).astype(np.float32)
    predictor = linear(state.predictor)
    r_int, state = step(state, x)
    x = x.astype(np.float64)
    difference = x[:, 1:] @ (predictor["w"] - target["w"])
    novelty = np.square(difference + predictor["b"] - target["b"]).sum(axis=-1)
    np.testing.assert_allclose(r_int, novelty, rtol=1e-3, atol=1e-6)
    trained.append(np.concatenate([x[i, 1:][mask[i] > 0][-2:] for i in range(4)]))
  assert len(trained[0]) == 5
  expected, norms = distil(adam, linear(start.predictor), target, trained)
  assert norms[0] > CLIP > norms[-1]
  for name, value in linear(state.predictor).items():
    np.testing.assert_allclose(value, expected[name], rtol=2e-5, atol=1e-7)
