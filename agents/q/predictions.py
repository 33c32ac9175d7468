"""The networks' predictions for windows, prepared for targets."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from explorax.agents.q import config as config_lib
from explorax.agents.q import values as values_lib
from explorax.agents.q import windows as windows_lib
from explorax.agents.targets import types as target_types

Transitions = tuple[target_types.Predictions, target_types.Stream]


class Predictions(NamedTuple):
  """Values, and distributions if there are any, of windows with S sources.

  Attributes:
    tm1: the online network's, of the sources. `[M, B, S, ...]`
    t: the target network's, of the T rows after the first, or only of the S rows from
      which n-step returns bootstrap. `[M, B, T or S, ...]`
    online_t: the online network's, of the same rows, without a gradient.
  """

  tm1: values_lib.Prediction
  t: values_lib.Prediction
  online_t: values_lib.Prediction

  def each_transition(self, windows: windows_lib.Windows) -> Transitions:
    """The T transitions of each window, one after the other."""
    q_tm1, prob = self.tm1.q, windows.behaviour_prob
    num_sources, num_transitions = windows.num_sources, windows.reward.shape[1]
    if num_transitions > num_sources:
      later = self.online_t.q[:, :, num_sources - 1 : -1]
      q_tm1 = jnp.concatenate([q_tm1, later], axis=2)
    return target_types.Predictions(q_tm1, self.t.q, self.online_t.q), (
      target_types.Stream(
        a_tm1=windows.action[:, :-1],
        a_t=windows.action[:, 1:],
        r_t=windows.reward,
        discount_t=windows.discount,
        mu_t=None if prob is None else prob[:, 1:],
        continues_t=windows.real[:, 1:],
      )
    )

  def n_step_transitions(self, windows: windows_lib.Windows, n: int) -> Transitions:
    """From each source to the row from which its n-step return bootstraps."""
    row = windows.bootstrap_row(n)
    t, online_t = self.t, self.online_t
    if n > 1 and t.q.shape[2] > windows.num_sources:
      index = jnp.arange(row.shape[0])[:, None], row - 1
      t, online_t = jax.tree.map(lambda x: x[:, *index], (t, online_t))
    predictions = target_types.Predictions(
      self.tm1.q, t.q, online_t.q, self.tm1.logits, t.logits
    )
    return predictions, target_types.Stream(
      a_tm1=windows.action[:, : windows.num_sources],
      a_t=jnp.take_along_axis(windows.action, row, axis=1),
      r_t=windows.n_step_return(windows.reward, n),
      discount_t=windows.n_step_discount(n),
      mu_t=None,
      continues_t=jnp.zeros_like(windows.trained),
    )


def predict(
  config: config_lib.QConfig,
  values: values_lib.Values,
  online: values_lib.Weights,
  target: values_lib.Weights,
  windows: windows_lib.Windows,
  every_row: bool,
  noise_key: jax.Array | None,
) -> Predictions:
  """Evaluates both networks.

  Args:
    config: the settings.
    values: the members.
    online, target: weights of the online and of the target network.
    windows: with S sources.
    every_row: whether predictions are needed at every row.
    noise_key: of noisy networks. Each evaluation has separate noise, the online
      network two for single rows (Fortunato et al., 2018, section 3.1), and one for
      sequences, which it unrolls once; but all have the same index of an epinet.
  """
  noise: Any = [noise_key] * 3
  if noise_key is not None and not values.has_index:
    noise = jax.random.split(noise_key, 3)
  if not config.learns_from_transitions:
    q, target_q = (
      _unroll(config, values, weights, windows, key)
      for weights, key in ((online, noise[0]), (target, noise[1]))
    )
    return Predictions(
      tm1=jax.tree.map(lambda x: x[:, :, : windows.num_sources], q),
      t=jax.tree.map(lambda x: jax.lax.stop_gradient(x[:, :, 1:]), target_q),
      online_t=jax.tree.map(lambda x: jax.lax.stop_gradient(x[:, :, 1:]), q),
    )
  rows = None
  if config.n_step > 1 and not every_row:
    last = windows.bootstrap_row(config.n_step)[:, 0]
    rows = jnp.stack([jnp.zeros_like(last), last], axis=1)
  inputs = windows.inputs(rows)
  tm1 = jax.tree.map(lambda x: x[:, :1], inputs)
  t = jax.tree.map(lambda x: x[:, 1:], inputs)
  state = windows.core_state
  return Predictions(
    tm1=values.unroll(online, tm1, state, noise[0])[0],
    t=values.unroll(target, t, state, noise[1])[0],
    online_t=jax.lax.stop_gradient(values.unroll(online, t, state, noise[2])[0]),
  )


def _unroll(
  config: config_lib.QConfig,
  values: values_lib.Values,
  weights: values_lib.Weights,
  windows: windows_lib.Windows,
  key: jax.Array | None,
) -> values_lib.Prediction:
  """Predictions `[M, B, R, ...]`; no gradient passes into the burn-in.

  If a window starts an episode, its burn-in is trained on and the gradient passes.
  """
  inputs = windows.inputs()

  def part(rows: slice, state: jax.Array) -> tuple[values_lib.Prediction, jax.Array]:
    return values.unroll(
      weights, jax.tree.map(lambda x: x[:, rows], inputs), state, key
    )

  if not config.burn_in:
    return part(slice(None), windows.core_state)[0]
  assert windows.starts_episode is not None
  warm_up, state = part(slice(0, config.burn_in), windows.core_state)
  starts = windows.starts_episode[:, None]
  state = jnp.where(starts, state, jax.lax.stop_gradient(state))
  rest, _ = part(slice(config.burn_in, None), state)
  return jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=2), warm_up, rest)
