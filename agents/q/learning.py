"""The learner: TD errors of all members on windows, in one program."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from explorax.agents import types, updates
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.q import config as config_lib
from explorax.agents.q import mixture, priorities, td_errors
from explorax.agents.q import predictions as predictions_lib
from explorax.agents.q import values as values_lib
from explorax.agents.q import windows as windows_lib
from explorax.exploration import schedules


class LearnerState(NamedTuple):
  """The state of the learner.

  Missing parts are `()`: target_prior_params are the target network's own priors if
  they are distinct. Keys of an update are folded into `key`.
  """

  params: Any
  target_params: Any
  prior_params: Any
  target_prior_params: Any
  opt_state: Any
  bonus_state: bonus_types.LearnerState
  key: jax.Array
  num_updates: jax.Array
  max_abs_reward: jax.Array  # Of all updates so far, with the bonus, `[]`.


class Aux(NamedTuple):
  """What an update needs of its loss, besides the gradient."""

  bonus_state: Any  # Of the learning half.
  priorities: jax.Array
  largest: jax.Array
  metrics: dict[str, jax.Array]


# Folded into a learner's key for relabelling; larger than any number of updates.
_RELABEL = np.uint32(1 << 31)


@dataclasses.dataclass(frozen=True, eq=False)
class Learner:
  """The functions of a LearnerCore.

  The loss of a batch is `Σ_b w_b Σ_t Σ_k m_k l_k / (M D)` over its trained transitions
  (paper 4, algorithm 2), with the weights w_b of importance and D by `loss_mean_over`:
  the number of windows B, their length S, B S or 1. With `sum_over_members` it has no
  1 / M (paper 3, section 2.4), and a shared torso's gradient is divided by M. l_k is
  δ_k² / 2, linear beyond `max_abs_td`, where δ_k is member k's TD error; or the
  divergence of member k's distribution from its target. Both use r + β r_int for the
  members that see the bonus: the explorers if there are any, else all members.
  Explorers that do not see the reward learn from β r_int.

  Attributes:
    config: the settings.
    values: the members.
    bonus: built from the config's; None without one.
    optimizer: from `make_optimizer`.
    gammas: γ of each policy of the mixture, `[N]`.
  """

  config: config_lib.QConfig
  values: values_lib.Values
  bonus: bonus_types.IntrinsicReward | None
  optimizer: optax.GradientTransformationExtraArgs
  gammas: jax.Array

  @property
  def training(self) -> bonus_types.Training | None:
    """Of the bonus's acting half."""
    return self.bonus.acting.training if self.bonus and self.bonus.acting else None

  def init(self, key: jax.Array) -> LearnerState:
    params_key, prior_key, *keys = jax.random.split(key, 4)
    # The order with which published results were made.
    if self.config.learns_from_transitions:
      keys.reverse()
    bonus_key, target_prior_key = keys
    params = self.values.init(params_key)
    bonus_state, target_prior_params = bonus_types.LearnerState(), ()
    if self.bonus is not None:
      bonus_state = self.bonus.init(bonus_key)
    if self.config.target_prior == "distinct":
      target_prior_params = self.values.init_prior(target_prior_key)
    return LearnerState(
      params=params,
      target_params=params,
      prior_params=self.values.init_prior(prior_key),
      target_prior_params=target_prior_params,
      opt_state=self.optimizer.init(params),
      bonus_state=bonus_state,
      key=jax.random.fold_in(key, 4),
      num_updates=jnp.int32(0),
      max_abs_reward=jnp.float32(0.0),
    )

  def predict(
    self, params: Any, state: LearnerState, windows: windows_lib.Windows
  ) -> predictions_lib.Predictions:
    priors = target_priors = state.prior_params
    if self.config.target_prior == "distinct":
      target_priors = state.target_prior_params
    noise_key = None
    if self.values.is_noisy:  # Drawn for each update.
      noise_key = jax.random.fold_in(state.key, state.num_updates)
    return predictions_lib.predict(
      self.config,
      self.values,
      values_lib.Weights(params, priors),
      values_lib.Weights(state.target_params, target_priors),
      windows,
      every_row=self.config.target.is_multi_step
      or bool(self.bonus and self.bonus.learning),
      noise_key=noise_key,
    )

  def loss(
    self,
    params: Any,
    state: LearnerState,
    windows: windows_lib.Windows,
    weights: jax.Array,
  ) -> tuple[jax.Array, Aux]:
    config = self.config
    predictions = self.predict(params, state, windows)
    errors = td_errors.TdErrors(config, predictions, windows, state.num_updates)
    learned = errors.learned(self.bonus, state.bonus_state.learning)
    per_window = window_losses(config, learned.deltas, windows)
    largest = jnp.max(jnp.abs(learned.rewards.total))
    largest = jnp.maximum(state.max_abs_reward, largest)
    sizes = jnp.mean(jnp.abs(learned.td), axis=0)
    metrics = {
      "td_error": updates.masked_mean(sizes, windows.trained),
      "q": updates.masked_mean(jnp.mean(predictions.tm1.q, (0, 3)), windows.trained),
      "r_int": updates.masked_mean(learned.r_int, windows.valid),
      **updates.q_bound(largest, config.discount, td_errors.tx_pair(config)),
    }
    if config.target.atoms is not None:
      metrics |= _target_range(predictions, learned.td, windows)
    window_priorities = priorities.window_priorities(
      config, learned.deltas, windows.trained
    )
    aux = Aux(learned.bonus_state, window_priorities, largest, metrics)
    over_windows = config.loss_mean_over in ("windows", "transitions")
    mean = jnp.mean if over_windows else jnp.sum
    return mean(weights * per_window), aux

  def update(
    self, state: LearnerState, sample: types.Sample
  ) -> tuple[LearnerState, types.LearnerOutput]:
    config = self.config
    policy = trained_policies(config, state, sample)
    windows = windows_lib.make_windows(sample, config, self.gammas, policy, self.bonus)
    weights = updates.importance_weights(
      sample, schedules.at(config.importance_exponent, state.num_updates)
    )
    gradient = jax.value_and_grad(self.loss, has_aux=True)
    (value, aux), gradients = gradient(state.params, state, windows, weights)
    trained_bonus, bonus_metrics = self._train_bonus(state, windows)
    finite = jnp.all(jnp.isfinite(jnp.array([value, *bonus_metrics.values()])))
    # The gradient of a squared error is finite if the square is, but not that of h or
    # of an LSTM.
    if config.lstm_size or config.transform_eps is not None:
      finite &= jnp.isfinite(optax.global_norm(gradients))
    params, opt_state = updates.apply_if(
      finite, self.optimizer, gradients, state.params, state.opt_state
    )
    old = state._replace(params=params, opt_state=opt_state)
    new = old._replace(
      bonus_state=bonus_types.LearnerState(aux.bonus_state, trained_bonus),
      num_updates=state.num_updates + 1,
      max_abs_reward=aux.largest,
    )
    metrics = aux.metrics | bonus_metrics
    if config.priority_exponent > 0:
      metrics["priority"] = jnp.mean(aux.priorities)
      metrics["max_priority"] = jnp.max(aux.priorities)
    return updates.finish(finite, new, old, value, aux.priorities, metrics)

  def _train_bonus(
    self, state: LearnerState, windows: windows_lib.Windows
  ) -> tuple[Any, dict[str, jax.Array]]:
    """The state and the metrics of the training of the bonus's acting half."""
    if self.training is None:
      return state.bonus_state.training, {}
    num_real = jnp.sum(windows.real, axis=1).astype(jnp.int32)
    return self.training.update(
      state.bonus_state.training, windows.observations(), windows.action, num_real
    )

  def copy_target(self, state: LearnerState) -> LearnerState:
    return state._replace(target_params=state.params)

  def params(self, state: LearnerState) -> values_lib.Weights:
    bonus: Any = ()
    if self.training is not None:
      bonus = self.training.weights(state.bonus_state.training)
    return values_lib.Weights(state.params, state.prior_params, bonus)


def make_learner(
  config: config_lib.QConfig,
  values: values_lib.Values,
  bonus: bonus_types.IntrinsicReward | None,
) -> types.LearnerCore:
  """The LearnerCore of a config; the arguments are those of `Learner`."""
  optimizer, gammas = make_optimizer(config), mixture.discounts(config)
  learner = Learner(config, values, bonus, optimizer, gammas)
  metrics = metric_names(config)
  if learner.training is not None:
    metrics += learner.training.metrics
  return types.LearnerCore(
    learner.init,
    learner.update,
    learner.params,
    learner.copy_target,
    config.target_update_period,
    ("finite", "loss", *metrics),
  )


def metric_names(config: config_lib.QConfig) -> tuple[str, ...]:
  """The metrics of an update besides the loss and those of the bonus."""
  names = ["td_error", "q", "r_int"]
  if config.discount < 1:
    names.append("q_bound")
  if config.target.atoms is not None:
    names += ["target_min", "target_max"]
  if config.priority_exponent > 0:
    names += ["priority", "max_priority"]
  return tuple(names)


def _target_range(
  predictions: predictions_lib.Predictions, td: jax.Array, windows: windows_lib.Windows
) -> dict[str, jax.Array]:
  """The least and the greatest expected target, which atoms should include."""
  action = windows.action[None, :, : windows.num_sources, None]
  q_a = jnp.take_along_axis(predictions.tm1.q, action, axis=-1)[..., 0]
  target, trained = q_a + td, windows.trained[None] > 0
  return {
    "target_min": jnp.min(jnp.where(trained, target, jnp.inf)),
    "target_max": jnp.max(jnp.where(trained, target, -jnp.inf)),
  }


def make_optimizer(config: config_lib.QConfig) -> optax.GradientTransformationExtraArgs:
  rate, eps = config.learning_rate, config.optimizer_eps
  if config.optimizer == "adam":
    optimizer = updates.adam(rate, b2=config.adam_b2, eps=eps)
  else:
    optimizer = updates.skip_nonfinite(optax.rmsprop(rate, decay=0.99, eps=eps))
  optimizer = updates.clipped(optimizer, config.max_gradient_norm)
  if config.sum_over_members and config.shared_torso:
    return updates.with_torso_divided(optimizer, config.ensemble_size)
  return optimizer


def trained_policies(
  config: config_lib.QConfig, state: LearnerState, sample: types.Sample
) -> jax.Array:
  """The policy of a mixture with which each window is trained, int32 `[B]`."""
  if config.num_policies == 1:
    return jnp.zeros(sample.rows["action"].shape[:1], jnp.int32)
  key = jax.random.fold_in(jax.random.fold_in(state.key, _RELABEL), state.num_updates)
  acted = jnp.asarray(sample.rows["policy"])[:, 0]
  return mixture.relabel(key, acted, config.cross_mixture_ratio, config.num_policies)


def window_losses(
  config: config_lib.QConfig, deltas: jax.Array, windows: windows_lib.Windows
) -> jax.Array:
  """The losses `[B]` of TD errors or divergences `[M, B, S]`."""
  size, *shape = deltas.shape
  mask = windows.trained[..., None] * windows.member_mask
  flat, mask = jnp.reshape(deltas, (size, -1)), jnp.reshape(mask, (-1, size))
  if config.target.atoms is None:
    per_source = updates.ensemble_loss(flat, mask, config.max_abs_td)
  else:
    per_source = updates.mean_over_members(flat, mask)
  per_window = jnp.sum(jnp.reshape(per_source, shape), axis=1)
  if config.loss_mean_over in ("time", "transitions"):
    per_window /= shape[1]
  return size * per_window if config.sum_over_members else per_window
