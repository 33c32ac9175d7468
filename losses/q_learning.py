"""TD errors and losses of single transitions; use `jax.vmap` for batches."""

import jax
import jax.numpy as jnp

from explorax.losses import checks, indexing

Array = jax.Array

_DISTRIBUTIONS = {
  "q_atoms_tm1": "float [N]",
  "q_logits_tm1": "float [A, N]",
  "a_tm1": "int []",
  "r_t": "float []",
  "discount_t": "float []",
  "q_atoms_t": "float [M]",
  "q_logits_t": "float [A, M]",
  "q_t_selector": "float [A]",
}


def _of_one_dtype(q: Array, *scalars: float | Array) -> tuple[Array, ...]:
  """Arrays of q's dtype, which a traced action can index."""
  q = jnp.asarray(q)
  return q, *(jnp.asarray(scalar, q.dtype) for scalar in scalars)


@checks.arguments(
  q_tm1="float [A]",
  a_tm1="int []",
  r_t="float []",
  discount_t="float []",
  q_t_value="float [A]",
)
def q_learning(
  q_tm1: Array,
  a_tm1: Array,
  r_t: float | Array,
  discount_t: float | Array,
  q_t_value: Array,
) -> Array:
  """TD error of Q-learning: r_t + γ_t max_a q_t(a) − q_tm1(a_tm1).

  Source: Watkins 1989; with a target network, Mnih et al. 2015.

  Args:
    q_tm1: online network's values at time 0. Float `[A]`.
    a_tm1: action taken at time 0. Int `[]`.
    r_t: reward, or n-step return, at time 1. `[]`.
    discount_t: the factor of the bootstrap: γ times the environment's discount, or the
      product of n of them. `[]`.
    q_t_value: target network's values at time 1 (or n); no gradient. Float `[A]`.

  Returns:
    The TD error. `[]`.
  """
  q_tm1, r_t, discount_t = _of_one_dtype(q_tm1, r_t, discount_t)
  target = r_t + discount_t * jnp.max(jnp.asarray(q_t_value))
  return jax.lax.stop_gradient(target) - indexing.index(q_tm1, a_tm1)


@checks.arguments(
  q_tm1="float [A]",
  a_tm1="int []",
  r_t="float []",
  discount_t="float []",
  q_t_value="float [A]",
  q_t_selector="float [A]",
)
def double_q(
  q_tm1: Array,
  a_tm1: Array,
  r_t: float | Array,
  discount_t: float | Array,
  q_t_value: Array,
  q_t_selector: Array,
) -> Array:
  """TD error of double Q-learning.

      r_t + γ_t q_t_value(argmax_a q_t_selector(a)) − q_tm1(a_tm1)

  Source: van Hasselt 2010; with a target network, van Hasselt et al. 2016.

  Args:
    q_tm1, a_tm1, r_t, discount_t, q_t_value: as in `q_learning`.
    q_t_selector: online network's values at the time of `q_t_value`, which select the
      action; no gradient. Float `[A]`.

  Returns:
    The TD error. `[]`.
  """
  q_tm1, r_t, discount_t = _of_one_dtype(q_tm1, r_t, discount_t)
  best = jnp.argmax(jnp.asarray(q_t_selector))
  target = r_t + discount_t * jnp.asarray(q_t_value)[best]
  return jax.lax.stop_gradient(target) - indexing.index(q_tm1, a_tm1)


@checks.arguments(**_DISTRIBUTIONS)
def categorical_double_q(
  q_atoms_tm1: Array,
  q_logits_tm1: Array,
  a_tm1: Array,
  r_t: float | Array,
  discount_t: float | Array,
  q_atoms_t: Array,
  q_logits_t: Array,
  q_t_selector: Array,
) -> Array:
  """Loss of double Q-learning on distributions over atoms (C51).

      −Σ_i m_i log p_tm1(z_i | a_tm1)

  where m is the target distribution projected onto the atoms z: its atoms are
  r_t + γ_t z', with the probabilities of the action that is greedy in q_t_selector.

  Source: Bellemare et al. 2017, algorithm 1, with the selection of van Hasselt 2010.

  Args:
    q_atoms_tm1: atoms z that the online network predicts, increasing. Float `[N]`.
    q_logits_tm1: online network's logits at time 0. Float `[A, N]`.
    a_tm1: action taken at time 0. Int `[]`.
    r_t: reward, or n-step return, at time 1. `[]`.
    discount_t: the factor of the bootstrap. `[]`.
    q_atoms_t: atoms z' of the target network. Float `[M]`.
    q_logits_t: target network's logits at time 1; no gradient. Float `[A, M]`.
    q_t_selector: values that select the action, at time 1; no gradient. Float `[A]`.

  Returns:
    The cross entropy. `[]`.
  """
  target, log_probs = _projected_target(
    q_atoms_tm1,
    q_logits_tm1,
    a_tm1,
    r_t,
    discount_t,
    q_atoms_t,
    q_logits_t,
    q_t_selector,
  )
  return -jnp.sum(target * log_probs)


@checks.arguments(**_DISTRIBUTIONS)
def categorical_double_q_kl(
  q_atoms_tm1: Array,
  q_logits_tm1: Array,
  a_tm1: Array,
  r_t: float | Array,
  discount_t: float | Array,
  q_atoms_t: Array,
  q_logits_t: Array,
  q_t_selector: Array,
) -> Array:
  """Divergence of the prediction from the target of double Q-learning (C51).

      KL(m ‖ p_tm1(· | a_tm1)) = Σ_i m_i (log m_i − log p_tm1(z_i | a_tm1))

  with m as in `categorical_double_q`. It differs from that loss by the target's
  entropy: the gradient is the same, but this is 0 if the prediction is exact, and so
  ranks transitions by what remains to be learnt.

  Source: Hessel et al. 2018 (Rainbow), section "The Integrated Agent": the loss, and
  the priorities of replay.

  Args:
    q_atoms_tm1, ..., q_t_selector: as in `categorical_double_q`.

  Returns:
    The divergence, at least 0 up to rounding. `[]`.
  """
  target, log_probs = _projected_target(
    q_atoms_tm1,
    q_logits_tm1,
    a_tm1,
    r_t,
    discount_t,
    q_atoms_t,
    q_logits_t,
    q_t_selector,
  )
  # An atom of mass 0 contributes nothing; its logarithm must not give NaN.
  log_target = jnp.log(jnp.where(target > 0, target, 1.0))
  return jnp.sum(target * (log_target - log_probs))


def _projected_target(
  q_atoms_tm1: Array,
  q_logits_tm1: Array,
  a_tm1: Array,
  r_t: float | Array,
  discount_t: float | Array,
  q_atoms_t: Array,
  q_logits_t: Array,
  q_t_selector: Array,
) -> tuple[Array, Array]:
  """The target m `[N]`, without gradient, and log p_tm1(· | a_tm1) `[N]`."""
  logits_t = jnp.asarray(q_logits_t)[jnp.argmax(q_t_selector)]
  target = _project(
    r_t + discount_t * jnp.asarray(q_atoms_t),
    jax.nn.softmax(logits_t),
    jnp.asarray(q_atoms_tm1),
  )
  log_probs = jax.nn.log_softmax(indexing.index(q_logits_tm1, a_tm1))
  return jax.lax.stop_gradient(target), log_probs


def _project(atoms: Array, probs: Array, onto: Array) -> Array:
  """A distribution on other atoms, in the sense of the Cramér distance.

  Each probability is divided among the two atoms beside it, in proportion to how near
  they are, or goes to the last atom there is (Bellemare et al., 2017, equation 7). It
  is not rlax's, which needs distrax and a nightly build of TensorFlow Probability.

  Args:
    atoms: `[M]`.
    probs: theirs, `[M]`.
    onto: the other atoms `[N]`, in increasing order.
  """
  units = jnp.eye(onto.size, dtype=probs.dtype)
  return jax.vmap(lambda unit: jnp.interp(atoms, onto, unit))(units) @ probs
