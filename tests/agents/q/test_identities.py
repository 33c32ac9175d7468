"""An ensemble against its members, a plain DQN, and QEx."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents.bonuses import tdu as tdu_lib

H, A = 4, 3
K, N = 2, 2
TDU = {
  "num_members": K,
  "num_explorers": N,
  "bonus": tdu_lib.TDUncertainty(),
  "beta": 1.0,
  "prior_scale": 1.0,
}


def member(params: Any, k: int) -> list[np.ndarray]:
  """Member k's own part of an ensemble's parameters."""
  layers = [*params.torso.values(), *params.heads.values()]
  return [np.array(layer[name][k]) for layer in layers for name in ("w", "b")]


def change_member(params: Any, k: int) -> Any:
  """The parameters with the output bias of member k moved, action by action."""
  ((name, head),) = params.heads.items()
  moved = jnp.asarray(head["b"]).at[k].add(jnp.arange(1.0, A + 1))
  return params._replace(heads={name: {**head, "b": moved}})


def equal_members(a: Any, b: Any, size: int) -> list[bool]:
  """Which members have the same parameters, to rounding in another program."""
  return [
    all(
      np.allclose(x, y, rtol=0.0, atol=1e-8)
      for x, y in zip(member(a, k), member(b, k), strict=True)
    )
    for k in range(size)
  ]


def samples_for(make_sample, config) -> list[Any]:
  return [make_sample(seed, config) for seed in range(3)]


def test_each_member_has_its_own_target_and_prior(make_config, make_sample, learn):
  """A change in member k's changes the learning of that member and, through the
  uncertainty of an exploiter, the explorers'."""
  config = make_config(**TDU)
  # Adam's first step is the gradient's sign alone.
  batches = [make_sample(seed, config) for seed in range(2)]
  before, _ = learn(config, batches)
  for part, k in itertools.product(("target_params", "prior_params"), range(K + N)):

    def change(state, part=part, k=k):
      return state._replace(**{part: change_member(getattr(state, part), k)})

    after, _ = learn(config, batches, change)
    expected = [j != k and (k >= K or j < K) for j in range(K + N)]
    assert equal_members(before.params, after.params, K + N) == expected


@pytest.mark.parametrize("kind", ["shared", "distinct"])
def test_the_targets_prior(make_config, make_sample, learn, kind):
  changes = {"target_prior": kind, "target_update_period": 1}
  config = make_config(**TDU, **changes)
  state, _ = learn(config, samples_for(make_sample, config))
  if kind == "shared":
    assert state.target_prior_params == ()
  else:
    same = equal_members(state.prior_params, state.target_prior_params, K + N)
    assert same == [False] * (K + N)
  # Priors are never trained, and never copied.
  start, _ = learn(config, [])
  for part in ("prior_params", "target_prior_params"):
    jax.tree.map(
      np.testing.assert_array_equal, getattr(start, part), getattr(state, part)
    )
