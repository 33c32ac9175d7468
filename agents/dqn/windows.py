"""Windows of n + 1 raw rows, and their n-step transitions."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax.agents import types
from explorax.agents.bonuses import scaling


class Windows(NamedTuple):
  """A batch of windows of n + 1 rows, and of the n transitions between them.

  Attributes:
    frames: `[B, num_frames + n, ...]`, as replay has them; see `observations`.
    action: int32 `[B, n + 1]`.
    r_t: float32 `[B, n]`, clipped.
    discount_t: float32 `[B, n]`, γ times the environment's; 1 on padding.
    before: float32 `[B, n + 1]`, the product of the first i discounts.
    behaviour_prob: float32 `[B, n + 1]`; None if it is not stored.
    r_int: float32 `[B, n]`, stored by an actor; or 0.
    real: float32 `[B, n + 1]`, 1 where a transition starts at the row.
    member_mask: float32 `[B, M]`, which members learn from the window.
  """

  frames: jax.Array
  action: jax.Array
  r_t: jax.Array
  discount_t: jax.Array
  before: jax.Array
  behaviour_prob: jax.Array | None
  r_int: jax.Array
  real: jax.Array
  member_mask: jax.Array

  @property
  def n(self) -> int:
    return self.r_t.shape[-1]

  def observations(self, rows: jax.Array | None = None) -> jax.Array:
    """Observations of all rows, `[B, n + 1, ...]`, or of rows int32 `[B, K]`."""
    return types.join_frames(self.frames, self.n + 1, rows)

  def n_step_return(self, r_t: jax.Array) -> jax.Array:
    """Σ_i γ^i r, up to n or the episode's end. `[..., B, n]` → `[..., B]`."""
    weights = self.before[:, : self.n] * self.real[:, : self.n]
    leading = (1,) * (r_t.ndim - weights.ndim)
    return jnp.sum(jnp.reshape(weights, leading + weights.shape) * r_t, axis=-1)

  def bootstrap_row(self) -> jax.Array:
    """int32 `[B]`, the row from which an n-step return bootstraps.

    It is row n, or the episode's last row before it, where the discount is 0 if the
    episode terminated.
    """
    if self.n == 1:
      return jnp.ones_like(self.action[:, 0])
    return jnp.sum(self.real[:, : self.n], axis=1).astype(jnp.int32)


def make_windows(
  sample: types.Sample,
  discount: float,
  ensemble_size: int,
  bonus_end: str = "transition",
  max_abs_reward: float | None = None,
) -> Windows:
  """Windows of a sample of n + 1 rows.

  Args:
    sample: from replay.
    discount: γ.
    ensemble_size: M.
    bonus_end: the end of an actor's bonus, if there is one.
    max_abs_reward: rewards are clipped to ± this; bonuses are not. None: neither.
  """
  rows = sample.rows
  n = rows["reward"].shape[1] - 1
  real = rows["mask"]
  discounts = jnp.where(real[:, :n] > 0, discount * rows["discount"][:, :n], 1.0)
  rewards = rows["reward"][:, :n]
  if max_abs_reward is not None:
    rewards = jnp.clip(rewards, -max_abs_reward, max_abs_reward)
  products = [jnp.ones_like(discounts[:, 0])]
  for i in range(n):  # n is small, so the loop unrolls.
    products.append(products[-1] * discounts[:, i])
  r_int = jnp.zeros_like(discounts)
  if "r_int" in rows:
    r_int = scaling.align(jnp.moveaxis(rows["r_int"], 0, 1), bonus_end).T
  mask = jnp.broadcast_to(real[:, :1], (real.shape[0], ensemble_size))
  if "bootstrap_mask" in rows:
    mask = mask * rows["bootstrap_mask"][:, 0]
  return Windows(
    frames=jnp.asarray(rows["observation"]),
    action=jnp.asarray(rows["action"]),
    r_t=rewards,
    discount_t=discounts,
    before=jnp.stack(products, axis=1),
    behaviour_prob=rows.get("behaviour_prob"),
    r_int=r_int,
    real=real,
    member_mask=mask,
  )
