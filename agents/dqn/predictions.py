"""The networks' predictions for windows, prepared for targets."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from explorax.agents.dqn import values as values_lib
from explorax.agents.dqn import windows as windows_lib
from explorax.agents.targets import types as target_types


class Predictions(NamedTuple):
  """Values, and distributions if there are any, of windows of n + 1 rows.

  Attributes:
    tm1: the online network's, of the first row. `[M, B, 1, ...]`
    t: the target network's, of S rows after it: all n, or only the one that n-step
      returns bootstrap from. `[M, B, S, ...]`
    online_t: the online network's, of the same rows, without a gradient.
  """

  tm1: values_lib.Prediction
  t: values_lib.Prediction
  online_t: values_lib.Prediction

  def each_transition(
    self, windows: windows_lib.Windows
  ) -> tuple[target_types.Predictions, target_types.Stream]:
    """The n transitions of each window; S must be n."""
    q_tm1 = jnp.concatenate([self.tm1.q, self.online_t.q[:, :, :-1]], axis=2)
    prob = windows.behaviour_prob
    return target_types.Predictions(q_tm1, self.t.q, self.online_t.q), (
      target_types.Stream(
        a_tm1=windows.action[:, :-1],
        a_t=windows.action[:, 1:],
        r_t=windows.r_t,
        discount_t=windows.discount_t,
        mu_t=None if prob is None else prob[:, 1:],
        continues_t=windows.real[:, 1:],
      )
    )

  def n_step_transition(
    self, windows: windows_lib.Windows
  ) -> tuple[target_types.Predictions, target_types.Stream]:
    """Each window as one transition, to the row from which its return bootstraps."""
    row = windows.bootstrap_row()
    t, online_t = self.t, self.online_t
    if t.q.shape[2] > 1:
      index = jnp.arange(row.shape[0]), row - 1
      t, online_t = jax.tree.map(lambda x: x[:, *index][:, :, None], (t, online_t))
    predictions = target_types.Predictions(
      self.tm1.q, t.q, online_t.q, self.tm1.logits, t.logits
    )
    return predictions, target_types.Stream(
      a_tm1=windows.action[:, :1],
      a_t=windows.action[jnp.arange(row.shape[0]), row][:, None],
      r_t=windows.n_step_return(windows.r_t)[:, None],
      discount_t=windows.before[:, -1:],
      mu_t=None,
      continues_t=jnp.zeros_like(windows.before[:, -1:]),
    )


def predict(
  values: values_lib.Values,
  online: values_lib.Weights,
  target: values_lib.Weights,
  windows: windows_lib.Windows,
  every_row: bool,
  noise_key: jax.Array | None,
) -> Predictions:
  """Evaluates both networks.

  Args:
    values: the members.
    online, target: parameters of the online and of the target network.
    windows: with n transitions each.
    every_row: whether S is n.
    noise_key: of noisy networks. Each evaluation has separate noise, the online
      network two (Fortunato et al., 2018, section 3.1); but all have the same index.
  """
  noise: Any = [noise_key] * 3
  if noise_key is not None and not values.has_index:
    noise = jax.random.split(noise_key, 3)
  if windows.n == 1 or every_row:
    observations = windows.observations()
  else:
    last = windows.bootstrap_row()
    observations = windows.observations(jnp.stack([jnp.zeros_like(last), last], axis=1))
  observation_tm1, observation_t = observations[:, :1], observations[:, 1:]

  def evaluate(
    weights: values_lib.Weights, observation: jax.Array, key: Any
  ) -> values_lib.Prediction:
    batch = observation.shape[:2]
    flat = jnp.reshape(observation, (-1, *observation.shape[2:]))
    prediction = values.apply(weights.params, weights.prior_params, flat, key)
    return jax.tree.map(
      lambda x: jnp.reshape(x, (x.shape[0], *batch, *x.shape[2:])), prediction
    )

  return Predictions(
    tm1=evaluate(online, observation_tm1, noise[0]),
    t=evaluate(target, observation_t, noise[1]),
    online_t=jax.lax.stop_gradient(evaluate(online, observation_t, noise[2])),
  )
