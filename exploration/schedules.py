"""How ε changes over a run."""

import chex
import jax
import jax.numpy as jnp


def check_epsilon(
  rule: str,
  epsilon: float,
  final_epsilon: float | None = None,
  decay_steps: int = 0,
) -> None:
  """Refuses a schedule of ε that makes no sense.

  Raises:
    ValueError: if an ε is no probability, or if only one of `final_epsilon` and
      `decay_steps` is given.
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
