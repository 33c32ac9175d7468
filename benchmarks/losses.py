"""Compares the speed of the losses with rlax's, where rlax has them.

Calls alternate, so that other load on the machine affects both equally. Before the
timing, a check ensures that both return the same TD errors.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import bench
import jax
import jax.numpy as jnp
import numpy as np
import rlax

from explorax import losses

BATCH, LENGTH, NUM_ACTIONS = 64, 80, 18
LAMBDA = 0.95
N_STEPS = 5

Loss = Callable[..., Any]


class Pair(NamedTuple):
  """A loss of ours for one sequence, and rlax's; None if rlax does not have it."""

  name: str
  ours: Loss
  peers: Loss | None


def _peers_off_policy(trace: Callable[..., jax.Array]) -> Loss:
  """A loss from rlax's off-policy returns, as a user of rlax would write it."""

  def loss(q_tm1, q_t, a_tm1, a_t, r_t, discount_t, pi_t, mu_t):
    pi_a_t = rlax.batched_index(pi_t, a_t)
    target = rlax.general_off_policy_returns_from_action_values(
      q_t, a_t, r_t, discount_t, trace(pi_a_t, mu_t), pi_t, stop_target_gradients=True
    )
    return target - rlax.batched_index(q_tm1, a_tm1)

  return loss


def _pairs() -> Iterator[Pair]:
  hyperbolic = losses.signed_hyperbolic_pair(1e-3)
  yield Pair(
    "retrace",
    lambda *a: losses.retrace(*a, LAMBDA),
    lambda *a: rlax.retrace(*a, LAMBDA),
  )
  yield Pair(
    "retrace, transformed",
    lambda *a: losses.retrace(*a, LAMBDA, hyperbolic),
    lambda *a: rlax.transformed_retrace(
      *a, LAMBDA, tx_pair=rlax.SIGNED_HYPERBOLIC_PAIR
    ),
  )
  yield Pair(
    "tree_backup",
    lambda *a: losses.tree_backup(*a, LAMBDA),
    _peers_off_policy(lambda pi_a_t, mu_t: LAMBDA * pi_a_t),
  )
  yield Pair(
    "harutyunyan_q_lambda",
    lambda *a: losses.harutyunyan_q_lambda(*a, LAMBDA),
    _peers_off_policy(lambda pi_a_t, mu_t: LAMBDA * jnp.ones_like(mu_t)),
  )
  yield Pair(
    "importance_sampling",
    losses.importance_sampling,
    _peers_off_policy(lambda pi_a_t, mu_t: pi_a_t / mu_t),
  )
  yield Pair(
    "peng_q_lambda",
    lambda q, q_t, a, a_t, r, d, *_: losses.peng_q_lambda(q, a, r, d, q_t, LAMBDA),
    lambda q, q_t, a, a_t, r, d, *_: rlax.q_lambda(q, a, r, d, q_t, LAMBDA),
  )
  yield Pair(
    "n_step_q",
    lambda q, q_t, a, a_t, r, d, *_: losses.n_step_q(q, a, r, d, q_t, N_STEPS),
    lambda q, q_t, a, a_t, r, d, *_: rlax.transformed_n_step_q_learning(
      q, a, q_t, jnp.argmax(q_t, axis=-1), r, d, N_STEPS
    ),
  )
  yield Pair(
    "n_step_q, double",
    lambda q, q_t, a, a_t, r, d, pi_t, _: losses.n_step_q(
      q, a, r, d, q_t, N_STEPS, q_t_selector=pi_t
    ),
    lambda q, q_t, a, a_t, r, d, pi_t, _: rlax.transformed_n_step_q_learning(
      q, a, q_t, jnp.argmax(pi_t, axis=-1), r, d, N_STEPS
    ),
  )
  yield Pair(
    "watkins_q_lambda",
    lambda q, q_t, a, a_t, r, d, *_: losses.watkins_q_lambda(
      q, q_t, a, a_t, r, d, LAMBDA
    ),
    None,
  )
  yield Pair(
    "non_markov_retrace", lambda *a: losses.non_markov_retrace(*a, LAMBDA), None
  )


def _batch(seed: int) -> tuple[jax.Array, ...]:
  """Arguments of `retrace` up to mu_t, with a batch axis first."""
  rng = np.random.default_rng(seed)
  steps = (BATCH, LENGTH)
  each_action = (*steps, NUM_ACTIONS)
  actions = rng.integers(0, NUM_ACTIONS, size=(2, *steps)).astype(np.int32)
  values = (
    rng.normal(size=each_action),
    rng.normal(size=each_action),
    *actions,
    rng.normal(size=steps),
    0.99 * (rng.uniform(size=steps) > 0.01),
    rng.dirichlet(np.ones(NUM_ACTIONS), size=steps),
    rng.uniform(0.1, 1.0, size=steps),
  )
  return tuple(
    jnp.asarray(x if x.dtype == np.int32 else x.astype(np.float32)) for x in values
  )


class Jitted:
  """A loss jitted over the batch: its errors, or the gradient of their squares."""

  def __init__(self, loss: Loss, with_gradient: bool):
    self.num_traces = 0

    def errors(*arguments: jax.Array) -> jax.Array:
      self.num_traces += 1
      return jax.vmap(loss)(*arguments)

    def mean_square(*arguments: jax.Array) -> jax.Array:
      return jnp.mean(jnp.square(errors(*arguments)))

    self.call = jax.jit(jax.grad(mean_square) if with_gradient else errors)


def _compare(pair: Pair, with_gradient: bool, repeats: int) -> bench.Row:
  contestants = {"explorax": Jitted(pair.ours, with_gradient)}
  if pair.peers is not None:
    contestants["rlax"] = Jitted(pair.peers, with_gradient)
  batches = [_batch(seed) for seed in range(4)]
  results = [np.asarray(each.call(*batches[0])) for each in contestants.values()]
  # rlax's transformed values have only three correct digits.
  scale = float(np.max(np.abs(results[0])))
  np.testing.assert_allclose(results[-1], results[0], rtol=2e-2, atol=2e-3 * scale)

  def calls_of(each: Jitted) -> Callable[[], Any]:
    batch = itertools.cycle(batches)
    return lambda: jax.block_until_ready(each.call(*next(batch)))

  calls = {name: calls_of(each) for name, each in contestants.items()}
  name = f"{pair.name}{', gradient' if with_gradient else ''}"
  row = bench.beside_rlax(name, calls, repeats)
  return {**row, "compilations_after_first": contestants["explorax"].num_traces - 1}


def measure(quick: bool = False) -> list[bench.Row]:
  """Median times of 300 calls with 64 sequences of 80 steps and 18 actions.

  Returns:
    A row for each loss, and one for its gradient.
  """
  return [
    _compare(pair, with_gradient, 30 if quick else 300)
    for pair in _pairs()
    for with_gradient in (False, True)
  ]


TABLES = (bench.Table("Losses, beside rlax", "losses:measure"),)
