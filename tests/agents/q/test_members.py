"""Who learns from what, for windows of one transition and of several rows alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents.bonuses import rnd, tdu

TDU = {"num_members": 2, "num_explorers": 2, "bonus": tdu.TDUncertainty()}


def members_alike(a, b) -> list[bool]:
  """Which members have the same head, to rounding in another program."""
  pairs = [*zip(*map(jax.tree.leaves, (a.heads, b.heads)), strict=True)]
  return [
    all(np.allclose(x[k], y[k], rtol=0.0, atol=1e-8) for x, y in pairs)
    for k in range(len(pairs[0][0]))
  ]


def after(num_updates):
  return lambda state: state._replace(num_updates=jnp.int32(num_updates))


def test_a_bonus_without_beta_is_the_base_agent(problem, learn):
  """To the bit, after two updates."""
  config = problem.make_config()
  samples = [problem.make_sample(seed, config) for seed in range(2)]
  expected, _ = learn(config, samples)
  bonus = rnd.RND(hidden_sizes=(3,), output_size=2)
  state, output = learn(problem.make_config(bonus=bonus, beta=0.0), samples)
  jax.tree.map(np.testing.assert_array_equal, expected.params, state.params)
  assert output.metrics["r_int"] != 0


def test_explorers_alone_see_the_bonus(problem, learn):
  """β matters to them, and not to the exploiters."""
  apart = {"shared_torso": False, "max_gradient_norm": None}
  config = problem.make_config(**TDU, **apart, beta=exploration.Linear(1.0, 3.0, 9))
  sample = problem.make_sample(0, config)
  # Adam's first step is the sign of the gradient alone.
  (a, output), (b, _) = (learn(config, [sample] * 3, after(n)) for n in (0, 9))
  assert output.metrics["r_int"] > 0
  assert members_alike(a.params, b.params) == [True, True, False, False]


@pytest.mark.parametrize("per_step", [False, True])
def test_a_masked_member_does_not_learn(problem, learn, per_step):
  config = problem.make_config(num_members=2, mask_prob=0.5, mask_per_step=per_step)
  sample = problem.make_sample(0, config)
  column = "rows" if "bootstrap_mask" in sample.rows else "first"
  kept = getattr(sample, column)
  mask = np.zeros_like(kept["bootstrap_mask"])
  mask[..., 1] = 1.0
  start, _ = learn(config, [])
  sample = sample._replace(**{column: {**kept, "bootstrap_mask": mask}})
  state, _ = learn(config, [sample])
  assert members_alike(start.params, state.params) == [True, False]
