"""Priorities of windows: the learner's, and those that new windows begin with."""

import jax
import jax.numpy as jnp
import numpy as np

from explorax import losses
from explorax.agents import types, updates
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.q import config as config_lib
from explorax.agents.q import mixture, td_errors
from explorax.agents.q import predictions as predictions_lib
from explorax.agents.q import values as values_lib
from explorax.agents.q import windows as windows_lib


def window_priorities(
  config: config_lib.QConfig, deltas: jax.Array, trained: jax.Array
) -> jax.Array:
  """η max_t |δ| + (1 − η) mean_t |δ| over the trained sources, or the mean: `[B]`.

  |δ| is the mean over the members `[M, B, S]`.
  """
  if config.target.atoms is None:
    sizes = jnp.mean(jnp.abs(deltas), axis=0)
  else:  # Divergences are negative only by rounding.
    sizes = jnp.mean(jnp.maximum(deltas, 0.0), axis=0)
  if config.priority_eta is None:
    return jax.vmap(updates.masked_mean)(sizes, trained)
  return jax.vmap(losses.sequence_priority, in_axes=(0, 0, None))(
    sizes, trained, config.priority_eta
  )


def make_initial_priority(
  config: config_lib.QConfig, bonus: bonus_types.IntrinsicReward | None
) -> types.InitialPriority:
  """The priorities of new windows: the learner's function of the actor's values.

  The values with which the actor chose, its extra `q` (and `logits`), take the place of
  both networks' values; the target's errors, the rewards and the mixture over time are
  the learner's. With the weights that acted, an equal target network and no noise,
  these are the learner's priorities (Horgan et al., 2018; Kapturowski et al., 2019).
  A bonus is included if the actor has stored r_int, or if its learning half needs
  nothing but values; schedules have their first value.
  """
  gammas = mixture.discounts(config)
  if bonus is not None and bonus.learning and not bonus.learning.needs_values_only:
    bonus = None

  def initial_priority(rows: types.Rows, starts_episode: jax.Array) -> jax.Array:
    mask = jnp.asarray(rows["mask"])
    zeros = jnp.zeros(mask.shape[:1], jnp.float32)
    first = dict.fromkeys(windows_lib.RECURRENT_EXTRAS, zeros)
    first["starts_episode"] = jnp.asarray(starts_episode, jnp.float32)
    # Nothing reads the observations.
    sample = types.Sample({**rows, "observation": mask}, first, zeros, np.int32(1))
    policy = jnp.zeros(mask.shape[:1], jnp.int32)
    if config.num_policies > 1:
      policy = jnp.asarray(rows["policy"])[:, 0]
    windows = windows_lib.make_windows(sample, config, gammas, policy, bonus)
    predicted = {name: rows[name] for name in ("q", "logits") if name in rows}
    predicted = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), predicted)
    prediction = values_lib.Prediction(predicted["q"], predicted.get("logits"))
    after = jax.tree.map(lambda x: x[:, :, 1:], prediction)
    predictions = predictions_lib.Predictions(
      tm1=jax.tree.map(lambda x: x[:, :, : windows.num_sources], prediction),
      t=after,
      online_t=after,
    )
    errors = td_errors.TdErrors(config, predictions, windows, jnp.int32(0))
    return window_priorities(config, errors.learned(bonus, ()).deltas, windows.trained)

  return jax.jit(initial_priority)
