"""Windows of raw rows, prepared for the learner."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from explorax import networks
from explorax.agents import types
from explorax.agents.bonuses import scaling

# The extras stored for a window's first row: the network's inputs from before it.
FIRST_ROW_EXTRAS = (
  "starts_episode",
  "previous_action",
  "previous_reward",
  "previous_r_int",
)


class Sequences(NamedTuple):
  """A batch of windows of R rows, and of the T = R − 1 transitions between them.

  Attributes:
    inputs: of the networks, `[B, R, ...]`.
    core_state: float32 `[B, S]`, the recurrent state before the first row.
    starts_episode: bool `[B]`, whether the first row is the first of an episode.
    action: int32 `[B, R]`.
    reward: float32 `[B, T]`, r_t of the transition out of each row.
    discount: float32 `[B, T]`, the environment's.
    behaviour_prob: float32 `[B, R]`, μ of the action of each row.
    r_int: float32 `[B, T]`, the stored bonus of each transition; or 0.
    real: float32 `[B, R]`, 1 where a transition starts at the row.
    trained: float32 `[B, T]`, 1 if the transition is in the loss: it is real, and not
      in the burn-in.
    member_mask: float32 `[B, T, M]`, which members learn from each transition.
  """

  inputs: networks.StepInputs
  core_state: jax.Array
  starts_episode: jax.Array
  action: jax.Array
  reward: jax.Array
  discount: jax.Array
  behaviour_prob: jax.Array
  r_int: jax.Array
  real: jax.Array
  trained: jax.Array
  member_mask: jax.Array


def make_sequences(
  sample: types.Sample, burn_in: int, ensemble_size: int, bonus_end: str
) -> Sequences:
  """Lags the lagged inputs, and masks transitions that are not trained on.

  The row before the window's first one is not in the window; the inputs that the
  network needs of it were stored with the first row. If the window starts an episode,
  the learner also trains on the burn-in, since nothing comes before it.
  """
  rows, first = sample.rows, sample.first
  real = rows["mask"]
  num_rows = real.shape[1]
  starts = first["starts_episode"] > 0

  def lagged(name: str, column: jax.Array) -> jax.Array:
    return jnp.concatenate([first[name][:, None], column[:, :-1]], axis=1)

  r_int = rows["r_int"] if "r_int" in rows else jnp.zeros_like(real)
  policy = rows["policy"] if "policy" in rows else jnp.zeros_like(rows["action"])
  inputs = networks.StepInputs(
    observation=types.join_frames(rows["observation"], num_rows),
    previous_action=lagged("previous_action", rows["action"]),
    previous_reward=lagged("previous_reward", rows["reward"]),
    previous_r_int=lagged("previous_r_int", r_int),
    policy=policy,
  )
  aligned = scaling.align(jnp.swapaxes(r_int, 0, 1), bonus_end)
  # One mask per window, or one per row.
  shape = (*real[:, :-1].shape, ensemble_size)
  member_mask = jnp.ones(shape)
  if "bootstrap_mask" in first:
    member_mask = jnp.broadcast_to(first["bootstrap_mask"][:, None], shape)
  elif "bootstrap_mask" in rows:
    member_mask = rows["bootstrap_mask"][:, :-1]
  after_burn_in = jnp.arange(num_rows - 1)[None] >= burn_in
  size = real.shape[0]
  return Sequences(
    inputs=inputs,
    core_state=first.get("core_state", jnp.zeros((size, 0), jnp.float32)),
    starts_episode=starts,
    action=rows["action"],
    reward=rows["reward"][:, :-1],
    discount=rows["discount"][:, :-1],
    behaviour_prob=rows["behaviour_prob"],
    r_int=jnp.swapaxes(aligned, 0, 1),
    real=real,
    trained=real[:, :-1] * (after_burn_in | starts[:, None]),
    member_mask=member_mask,
  )


def unroll(
  values: networks.SequenceQNetworks,
  params: types.Params,
  prior_params: types.Params,
  batch: Sequences,
  burn_in: int,
) -> jax.Array:
  """Values `[M, B, R, A]`; no gradient passes into the burn-in.

  If a window starts an episode, its burn-in is trained on and the gradient passes.
  """

  def part(rows: slice, state: jax.Array) -> tuple[jax.Array, jax.Array]:
    inputs = jax.tree.map(lambda x: x[:, rows], batch.inputs)
    return values.unroll(params, prior_params, inputs, state)

  if burn_in == 0:
    return part(slice(None), batch.core_state)[0]
  warm_up, state = part(slice(0, burn_in), batch.core_state)
  starts = batch.starts_episode[:, None]
  state = jnp.where(starts, state, jax.lax.stop_gradient(state))
  q, _ = part(slice(burn_in, None), state)
  return jnp.concatenate([warm_up, q], axis=2)
