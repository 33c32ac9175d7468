"""Losses beside rlax's: calls alternate in one process.

Other load on the machine so affects both equally. Before the timing, a check ensures
that both compute the same TD errors.
"""

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import bench
import jax
import jax.numpy as jnp
import numpy as np
import rlax

from explorax import losses

BATCH, LENGTH, NUM_ACTIONS = 64, 80, 18
LAMBDA, N_STEPS = 0.95, 5
_HYPERBOLIC = losses.signed_hyperbolic_pair(1e-3)

# Ours for one sequence, with the arguments of `retrace` up to mu_t, and rlax's.
PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
  "retrace": (
    lambda *a: losses.retrace(*a, LAMBDA),
    lambda *a: rlax.retrace(*a, LAMBDA),
  ),
  "retrace, transformed": (
    lambda *a: losses.retrace(*a, LAMBDA, _HYPERBOLIC),
    lambda *a: rlax.transformed_retrace(
      *a, LAMBDA, tx_pair=rlax.SIGNED_HYPERBOLIC_PAIR
    ),
  ),
  "n_step_q, double": (
    lambda q, q_t, a, _, r, d, pi_t, __: losses.n_step_q(
      q, a, r, d, q_t, N_STEPS, q_t_selector=pi_t
    ),
    lambda q, q_t, a, _, r, d, pi_t, __: rlax.transformed_n_step_q_learning(
      q, a, q_t, jnp.argmax(pi_t, axis=-1), r, d, N_STEPS
    ),
  ),
}


def loss(name: str, gradient: bool, repeats: int) -> dict[str, float]:
  """Median microseconds of a call with 64 sequences of 80 steps and 18 actions."""

  def jitted(pure: Callable[..., Any]) -> Callable[..., Any]:
    def mean_square(*arguments: jax.Array) -> jax.Array:
      return jnp.mean(jnp.square(jax.vmap(pure)(*arguments)))

    return jax.jit(jax.grad(mean_square) if gradient else jax.vmap(pure))

  programs = dict(zip(("explorax", "rlax"), map(jitted, PAIRS[name]), strict=True))
  batches = [_batch(seed) for seed in range(4)]
  ours, theirs = (np.asarray(call(*batches[0])) for call in programs.values())
  # rlax's transformed values have only three correct digits.
  scale = float(np.max(np.abs(ours)))
  np.testing.assert_allclose(theirs, ours, rtol=2e-2, atol=2e-3 * scale)
  batch = itertools.cycle(batches)

  def timed(call: Callable[..., Any]) -> float:
    arguments = next(batch)
    start = time.perf_counter()
    jax.block_until_ready(call(*arguments))
    return 1e6 * (time.perf_counter() - start)

  calls = {k: lambda call=call: timed(call) for k, call in programs.items()}
  medians = {k: statistics.median(x) for k, x in bench.in_turn(calls, repeats).items()}
  measures = {f"{k}, µs": x for k, x in medians.items()}
  return {**measures, "times as fast": medians["rlax"] / medians["explorax"]}


def _batch(seed: int) -> tuple[Any, ...]:
  """Arguments of `retrace` up to mu_t, with a batch axis first."""
  rng = np.random.default_rng(seed)
  values = rng.normal(size=(2, BATCH, LENGTH, NUM_ACTIONS)).astype(np.float32)
  actions = rng.integers(0, NUM_ACTIONS, size=(2, BATCH, LENGTH)).astype(np.int32)
  rewards, uniform = rng.normal(size=(2, BATCH, LENGTH)).astype(np.float32)
  pi_t = jax.nn.softmax(values[0])
  return (*values, *actions, rewards, 0.99 * (uniform < 2), pi_t, np.exp(-(uniform**2)))
