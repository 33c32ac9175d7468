"""Windows of raw rows, prepared for the learner; a transition is one of length 1."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax import networks
from explorax.agents import types
from explorax.agents.bonuses import scaling
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.q import config as config_lib

# The inputs of a recurrent network from before a window's first row, stored with it.
RECURRENT_EXTRAS = (
  "starts_episode",
  "previous_action",
  "previous_reward",
  "previous_r_int",
  "core_state",
)


class Windows(NamedTuple):
  """A batch of windows of R rows, and of the T = R − 1 transitions between them.

  The first S = `burn_in + sequence_length` rows are the sources, whose values are
  trained after the burn-in; the rows after them only supply targets.

  Attributes:
    frames: `[B, num_frames − 1 + R, ...]`, as replay has them; see `inputs`.
    action: int32 `[B, R]`.
    reward: float32 `[B, T]`, extrinsic: r_t of the transition out of each row, clipped
      and scaled.
    discount: float32 `[B, T]`, γ times the environment's; 0 on padding.
    policy: int32 `[B]`, of a mixture, with which the window is trained.
    behaviour_prob: float32 `[B, R]`, μ of the action of each row; None if not stored.
    stored: float32 `[B, T]`, the bonus's stored value of each transition; or 0.
    real: float32 `[B, R]`, 1 where a transition starts at the row.
    valid: float32 `[B, T]`, 1 if the transition is real and not in the burn-in. A
      window that starts an episode has no burn-in, since nothing comes before it.
    member_mask: float32 `[B, S, M]`, which members learn from each source.
    before: StepInputs' lagged ones, `[B, R, ...]`; None for feed-forward networks.
    core_state: float32 `[B, H]`, the recurrent state before the first row.
    starts_episode: bool `[B]`; None for feed-forward networks.
  """

  frames: jax.Array
  action: jax.Array
  reward: jax.Array
  discount: jax.Array
  policy: jax.Array
  behaviour_prob: jax.Array | None
  stored: jax.Array
  real: jax.Array
  valid: jax.Array
  member_mask: jax.Array
  before: tuple[jax.Array, ...] | None
  core_state: jax.Array
  starts_episode: jax.Array | None

  @property
  def num_sources(self) -> int:
    """S."""
    return self.member_mask.shape[1]

  @property
  def trained(self) -> jax.Array:
    """float32 `[B, S]`, 1 if the source is in the loss."""
    return self.valid[:, : self.num_sources]

  def observations(self, rows: jax.Array | None = None) -> jax.Array:
    """Observations of all rows, `[B, R, ...]`, or of rows int32 `[B, K]`."""
    return types.join_frames(self.frames, self.action.shape[1], rows)

  def inputs(self, rows: jax.Array | None = None) -> networks.StepInputs:
    """A network's inputs at all rows, or at rows int32 `[B, K]` if it has no state."""
    observation = self.observations(rows)
    policy = jnp.broadcast_to(self.policy[:, None], observation.shape[:2])
    return networks.StepInputs(observation, policy, *(self.before or ()))

  def n_step_return(self, r_t: jax.Array, n: int) -> jax.Array:
    """Σ_i γ^i r, up to n or the episode's end: `[..., B, T]` → `[..., B, S]`."""
    real = self._shifted(self.real, n)
    weights = jnp.stack(self._discounts(n)[:n], axis=-1) * jnp.stack(real, axis=-1)
    rewards = jnp.stack(self._shifted(r_t, n), axis=-1)
    leading = (1,) * (rewards.ndim - weights.ndim)
    return jnp.sum(jnp.reshape(weights, leading + weights.shape) * rewards, axis=-1)

  def n_step_discount(self, n: int) -> jax.Array:
    """`[B, S]`, what multiplies the value after n steps, or at the episode's end."""
    return self._discounts(n)[-1]

  def bootstrap_row(self, n: int) -> jax.Array:
    """int32 `[B, S]`, the row from which the return of each source bootstraps.

    It is n rows later, or the episode's last row before it, where the discount is 0 if
    the episode terminated.
    """
    source = jnp.arange(self.num_sources)[None]
    if n == 1:
      return jnp.broadcast_to(source + 1, self.trained.shape)
    num_real = jnp.sum(jnp.stack(self._shifted(self.real, n)), axis=0)
    return source + num_real.astype(jnp.int32)

  def _shifted(self, x: jax.Array, n: int) -> list[jax.Array]:
    """x of the rows 0 to n − 1 after each source: n arrays, `[..., B, S]`."""
    return [x[..., i : i + self.num_sources] for i in range(n)]

  def _discounts(self, n: int) -> list[jax.Array]:
    """The products of the first 0 to n discounts after each source, 1 on padding."""
    discount = jnp.where(self.real[:, :-1] > 0, self.discount, 1.0)
    products = [jnp.ones_like(discount[:, : self.num_sources])]
    for x in self._shifted(discount, n):  # n is small, so the loop unrolls.
      products.append(products[-1] * x)
    return products


def make_windows(
  sample: types.Sample,
  config: config_lib.QConfig,
  gamma: jax.Array,
  policy: jax.Array,
  bonus: bonus_types.IntrinsicReward | None = None,
) -> Windows:
  """Windows of a sample of R rows.

  Args:
    sample: from replay.
    config: the settings.
    gamma: γ of each policy of the mixture, `[N]`.
    policy: int32 `[B]`, with which each window is trained.
    bonus: of which stored values are read; None: there is none.
  """
  rows, first = sample.rows, sample.first
  real = jnp.asarray(rows["mask"])
  size, num_rows = real.shape
  num_sources = config.burn_in + config.sequence_length
  stored, end = jnp.zeros_like(real), "transition"
  if bonus is not None and bonus.acting is not None:
    stored, end = jnp.asarray(rows[bonus.column]), bonus.end
  valid, before, starts = real[:, :-1], None, None
  core_state = jnp.zeros((size, 0), jnp.float32)
  if config.lstm_size:
    core_state, starts = jnp.asarray(first["core_state"]), first["starts_episode"] > 0
    after_burn_in = jnp.arange(num_rows - 1)[None] >= config.burn_in
    valid = valid * (after_burn_in | starts[:, None])
    before = tuple(
      jnp.concatenate([first[name][:, None], column[:, :-1]], axis=1)
      for name, column in (
        ("previous_action", rows["action"]),
        ("previous_reward", rows["reward"]),
        ("previous_r_int", stored),
      )
    )
  return Windows(
    frames=jnp.asarray(rows["observation"]),
    action=jnp.asarray(rows["action"]),
    reward=extrinsic_reward(rows["reward"][:, :-1], config),
    discount=gamma[policy][:, None] * rows["discount"][:, :-1],
    policy=policy,
    behaviour_prob=rows.get("behaviour_prob"),
    stored=scaling.align(jnp.swapaxes(stored, 0, 1), end).T,
    real=real,
    valid=valid,
    member_mask=_member_mask(sample, (size, num_sources, config.ensemble_size)),
    before=before,
    core_state=core_state,
    starts_episode=starts,
  )


def extrinsic_reward(reward: jax.Array, config: config_lib.QConfig) -> jax.Array:
  """The environment's reward, clipped and scaled."""
  bound = config.max_abs_reward
  if bound is not None:
    reward = jnp.clip(reward, -bound, bound)
  return jnp.asarray(config.reward_scale * reward, jnp.float32)


def _member_mask(sample: types.Sample, shape: tuple[int, int, int]) -> jax.Array:
  """Drawn for each window, for each row, or everyone learns: `[B, S, M]`."""
  if "bootstrap_mask" in sample.first:
    return jnp.broadcast_to(sample.first["bootstrap_mask"][:, None], shape)
  if "bootstrap_mask" in sample.rows:
    return jnp.asarray(sample.rows["bootstrap_mask"])[:, : shape[1]]
  return jnp.ones(shape, jnp.float32)
