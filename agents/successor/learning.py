"""The learner: successor features by TD, and the posterior of the reward's weights."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from explorax import exploration, losses
from explorax.agents import types, updates
from explorax.agents.successor import config as config_lib
from explorax.agents.successor import features as features_lib


class Params(NamedTuple):
  """The trained parameters, of φ and of ψ."""

  phi: Any
  psi: Any


class Weights(NamedTuple):
  """An actor's weights: ψ's parameters, and the posterior of w."""

  psi: Any
  posterior: exploration.WeightPosterior


class LearnerState(NamedTuple):
  """The state of the learner."""

  params: Params
  target_psi: Any
  opt_state: Any
  regression: exploration.Regression
  posterior: exploration.WeightPosterior
  num_updates: jax.Array
  max_abs_reward: jax.Array  # Of all updates so far, `[]`.
  key: jax.Array


@dataclasses.dataclass(frozen=True, eq=False)
class Learner:
  """The functions of a LearnerCore.

  With μ the mean of the posterior of w as the last update left it, the loss is

      ‖δ_ψ‖² / 2 + δ_Q² / 2 + (r − φᵀμ)² / 2,    averaged over the batch,

  where δ_ψ is the TD error of ψ(x, a) under the policy that draws w from the posterior
  and is greedy in ψᵀw (w is drawn for each transition; the target network selects the
  action), and δ_Q is Q-learning's on Q = ψᵀμ. No gradient passes through μ, nor
  through φ in δ_ψ. Then the batch's φ and rewards enter the regression, whose posterior
  is computed for as many observations as replay holds.

  Attributes:
    config: the settings.
    features: the networks of φ and ψ.
    optimizer: of both.
  """

  config: config_lib.SuccessorConfig
  features: features_lib.Features
  optimizer: optax.GradientTransformationExtraArgs

  def init(self, key: jax.Array) -> LearnerState:
    phi_key, psi_key, key = jax.random.split(key, 3)
    params = Params(self.features.phi.init(phi_key), self.features.psi.init(psi_key))
    regression = exploration.init_regression(self.config.feature_size)
    return LearnerState(
      params=params,
      target_psi=params.psi,
      opt_state=self.optimizer.init(params),
      regression=regression,
      posterior=self._posterior(regression, jnp.float32(0)),
      num_updates=jnp.int32(0),
      max_abs_reward=jnp.float32(0.0),
      key=key,
    )

  def loss(
    self, params: Params, state: LearnerState, sample: types.Sample
  ) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
    """The loss, and (φ, δ_Q, Q) of the batch."""
    features, mean, rows = self.features, state.posterior.mean, sample.rows
    observations = types.join_frames(rows["observation"], num_rows=2)
    observation_tm1, observation_t = observations[:, 0], observations[:, 1]
    a_tm1, r_t = jnp.asarray(rows["action"])[:, 0], jnp.asarray(rows["reward"])[:, 0]
    discount_t = self.config.discount * rows["discount"][:, 0]
    phi = features.phi.apply(params.phi, observation_tm1)
    phi_tm1 = jnp.take_along_axis(phi, a_tm1[:, None, None], axis=1)[:, 0]
    psi_tm1 = features.psi.apply(params.psi, observation_tm1)
    psi_t = features.psi.apply(state.target_psi, observation_t)

    key = jax.random.fold_in(state.key, state.num_updates)
    drawn = exploration.sample_weights(key, state.posterior, r_t.shape)
    greedy = jnp.argmax(jnp.einsum("bad,bd->ba", psi_t, drawn), axis=-1)
    pi_t = jax.nn.one_hot(greedy, psi_t.shape[1], dtype=psi_t.dtype)
    td_psi = jax.vmap(losses.successor_features)(
      psi_tm1, a_tm1, phi_tm1, discount_t, psi_t, pi_t
    )
    td_q = jax.vmap(losses.q_learning)(
      psi_tm1 @ mean, a_tm1, r_t, discount_t, psi_t @ mean
    )
    errors = r_t - phi_tm1 @ mean
    per_transition = (
      jnp.sum(jnp.square(td_psi), axis=-1) + jnp.square(td_q) + jnp.square(errors)
    ) / 2
    return jnp.mean(per_transition), (phi_tm1, td_q, psi_tm1 @ mean)

  def update(
    self, state: LearnerState, sample: types.Sample
  ) -> tuple[LearnerState, types.LearnerOutput]:
    gradient = jax.value_and_grad(self.loss, has_aux=True)
    (value, aux), gradients = gradient(state.params, state, sample)
    r_t = jnp.asarray(sample.rows["reward"])[:, 0]
    phi_tm1, td_q, q_tm1 = aux
    regression = exploration.update_regression(
      state.regression, phi_tm1, r_t, self.config.regression_decay
    )
    posterior = self._posterior(regression, jnp.float32(sample.population))
    largest = jnp.maximum(state.max_abs_reward, jnp.max(jnp.abs(r_t)))
    # If the Cholesky factor fails, it is NaN, and so is the mean.
    finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(posterior.mean))
    params, opt_state = updates.apply_if(
      finite, self.optimizer, gradients, state.params, state.opt_state
    )
    old = state._replace(params=params, opt_state=opt_state)
    new = old._replace(
      regression=regression,
      posterior=posterior,
      num_updates=state.num_updates + 1,
      max_abs_reward=largest,
    )
    sizes = jnp.abs(td_q)
    metrics = {"td_error": jnp.mean(sizes), "q": jnp.mean(q_tm1)}
    metrics |= updates.q_bound(largest, self.config.discount)
    return updates.finish(finite, new, old, value, sizes, metrics)

  def copy_target(self, state: LearnerState) -> LearnerState:
    return state._replace(target_psi=state.params.psi)

  def params(self, state: LearnerState) -> Weights:
    return Weights(state.params.psi, state.posterior)

  def _posterior(
    self, regression: exploration.Regression, count: jax.Array
  ) -> exploration.WeightPosterior:
    config = self.config
    return exploration.weight_posterior(
      regression, count, config.prior_variance, config.likelihood_variance
    )


def make_learner(
  config: config_lib.SuccessorConfig, features: features_lib.Features
) -> types.LearnerCore:
  """The LearnerCore of a config; the arguments are those of `Learner`."""
  learner = Learner(config, features, updates.adam(config.learning_rate))
  metrics = ("td_error", "q", *(("q_bound",) if config.discount < 1 else ()))
  return types.LearnerCore(
    learner.init,
    learner.update,
    learner.params,
    learner.copy_target,
    config.target_update_period,
    ("finite", "loss", *metrics),
  )
