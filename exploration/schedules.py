"""How ε changes over a run."""

import math

import chex
import jax
import jax.numpy as jnp


def check_epsilon(
  rule: str,
  epsilon: float,
  final_epsilon: float | None = None,
  decay_steps: int = 0,
  ladder: float = 0.0,
) -> None:
  """Refuses a schedule of ε that makes no sense.

  Raises:
    ValueError: if an ε is no probability, if only one of `final_epsilon` and
      `decay_steps` is given, or if the ladder is negative or not finite.
  """
  for name, value in (("epsilon", epsilon), ("final_epsilon", final_epsilon)):
    if value is not None and not 0.0 <= value <= 1.0:
      raise ValueError(
        f"{rule}.{name} is {value}, but it is a probability; use a value in [0, 1]."
      )
  if decay_steps < 0:
    raise ValueError(
      f"{rule}.decay_steps is {decay_steps} environment steps; use 0 for a fixed "
      "epsilon."
    )
  if (final_epsilon is not None) != (decay_steps > 0):
    raise ValueError(
      f"{rule} has final_epsilon={final_epsilon} and decay_steps={decay_steps}; a "
      "schedule needs both, a fixed epsilon neither."
    )
  if not 0.0 <= ladder < math.inf:
    raise ValueError(
      f"{rule}.ladder is {ladder}; use a finite value of at least 0 (0: all actors "
      "have one epsilon)."
    )


def linear_epsilon(
  epsilon: float,
  final_epsilon: float | None,
  decay_steps: int,
  env_steps: chex.Numeric,
) -> chex.Numeric:
  """ε after `env_steps`: linear from `epsilon` to `final_epsilon`, then constant."""
  if final_epsilon is None:
    return epsilon
  share = jnp.minimum(jnp.asarray(env_steps, jnp.float32) / decay_steps, 1.0)
  return jax.lax.stop_gradient(epsilon + share * (final_epsilon - epsilon))


def ladder_power(
  ladder: float, actor_id: chex.Numeric, num_actors: chex.Numeric
) -> jax.Array:
  """The power of ε that actor j of J explores with: `1 + ladder · j / (J − 1)`.

  A single actor has the power 1. Ape-X and R2D2 have 0.4 for ε and 7 for the ladder
  (Kapturowski et al., 2019), so that a few actors explore and most hardly do.

  Args:
    ladder: at least 0; 0: all actors have one ε.
    actor_id: j, int.
    num_actors: J, int.

  Returns:
    float32 `[]`.
  """
  last = jnp.maximum(jnp.asarray(num_actors, jnp.float32) - 1.0, 1.0)
  return 1.0 + ladder * jnp.asarray(actor_id, jnp.float32) / last
