"""An ensemble against its members, a plain DQN, and QEx."""

import itertools
from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import rlax

from explorax.agents.bonuses import td_error
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


def at(num_updates: int) -> Callable[[Any], Any]:
  """Changes a state's number of updates, the time of schedules."""
  return lambda state: state._replace(num_updates=jnp.int32(num_updates))


QEX = {
  "num_explorers": 1,
  "explorers_see_reward": False,
  "bonus": td_error.AbsoluteTDError(),
}


def test_the_explorer_of_qex_learns_from_the_bonus_alone(
  make_config, make_sample, learn, stairs
):
  """The exploiter learns as the first member of an ensemble without explorers."""
  plain_config = make_config(num_members=2)
  samples = samples_for(make_sample, plain_config)
  plain, _ = learn(plain_config, samples)
  config = make_config(**QEX, beta=stairs((0.0, 0.5, 5.0)))
  states = [learn(config, samples, at(time))[0] for time in (0, 1000, 2000)]
  for state in states:
    assert equal_members(plain.params, state.params, 2) == [True, False]
  assert not np.array_equal(*(member(state.params, 1)[2] for state in states[1:]))
  # Without a bonus nothing pays the explorer, so other rewards teach it nothing else.
  doubled = [
    sample._replace(rows={**sample.rows, "reward": 2 * sample.rows["reward"]})
    for sample in samples
  ]
  after, _ = learn(config, doubled)
  assert equal_members(states[0].params, after.params, 2) == [False, True]
  # If it sees the reward, it is one member more of an ensemble without a bonus.
  augmented, _ = learn(
    make_config(**{**QEX, "explorers_see_reward": True}, beta=0.0), samples
  )
  jax.tree.map(np.testing.assert_array_equal, plain.params, augmented.params)


def test_one_member_is_plain_dqn(make_config, make_sample, learn):
  """Against a DQN of Haiku's own perceptron, rlax's loss and optax's Adam."""
  config = make_config(learning_rate=0.05, optimizer_eps=1e-2, target_update_period=2)
  samples = samples_for(make_sample, config)
  start = None

  def keep(state):
    nonlocal start
    start = state.params
    return state

  state, _ = learn(config, samples, keep)
  network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([H, A])(x)))
  w_0, b_0, w_1, b_1 = member(start, 0)
  params = {
    "mlp/~/linear_0": {"w": w_0, "b": b_0},
    "mlp/~/linear_1": {"w": w_1, "b": b_1},
  }
  optimizer = optax.adam(0.05, eps=1e-2)
  target_params, opt_state = params, optimizer.init(params)

  def loss(params, target_params, rows):
    q_tm1 = network.apply(params, rows["observation"][:, 0])
    q_t = network.apply(target_params, rows["observation"][:, 1])
    discount_t = 0.99 * rows["discount"][:, 0]
    td = jax.vmap(rlax.q_learning)(
      q_tm1, rows["action"][:, 0], rows["reward"][:, 0], discount_t, q_t
    )
    return jnp.mean(rlax.l2_loss(td))

  for i, sample in enumerate(samples):
    gradients = jax.grad(loss)(params, target_params, sample.rows)
    updates, opt_state = optimizer.update(gradients, opt_state)
    params = optax.apply_updates(params, updates)
    if (i + 1) % 2 == 0:
      target_params = params
  expected = [params[m][name] for m in params for name in ("w", "b")]
  for value, e in zip(member(state.params, 0), expected, strict=True):
    np.testing.assert_allclose(value, e, atol=1e-6)


def test_equal_members_leave_no_uncertainty(make_config, make_sample, learn):
  config = make_config(**{**TDU, "prior_scale": 0.0})

  def make_equal(state):
    equal = jax.tree.map(
      lambda x: jnp.broadcast_to(x[:1], x.shape).copy(), state.params
    )
    return state._replace(params=equal, target_params=equal)

  state, output = learn(config, [make_sample(0, config)], make_equal)
  assert output.metrics["r_int"] == 0.0
  assert output.metrics["td_error"] > 0.0
  first = member(state.params, 0)
  for k in range(1, K + N):
    for a, b in zip(first, member(state.params, k), strict=True):
      np.testing.assert_allclose(a, b, atol=1e-6)


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
