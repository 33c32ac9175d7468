"""The bonus of the disagreement of forward models."""

import dataclasses
from typing import Annotated, Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import optax

from explorax import exploration, losses, networks, ranges
from explorax.agents import updates
from explorax.agents.bonuses import types
from explorax.exploration import schedules


class State(NamedTuple):
  """The models' parameters `[M, ...]`, the fixed φ, and what training needs."""

  members: Any
  target: Any
  opt_state: Any
  moments: exploration.Moments
  key: jax.Array


@dataclasses.dataclass(frozen=True)
class Disagreement(types.Bonus):
  """Var_m g_m(φ(x), a) / σ, averaged over the features of φ.

  Each of M forward models g_m learns φ(x'), with φ random and fixed, from its share of
  a batch's transitions. If the next state is noisy, all of them learn its mean, so that
  the bonus vanishes, unlike ICM's. σ is the bonus's deviation since the start; the mean
  is not subtracted.

  Source: Pathak et al. (2019), and its code (exploration-by-disagreement), whose models
  have four residual blocks. There σ is the deviation of the bonus's discounted sums.
  """

  num_models: ranges.AtLeastTwo = 5  # M (all defaults: the code's).
  # Share of the transitions of a batch from which each model learns.
  keep_prob: Annotated[float, ranges.Range(gt=0, le=1)] = 0.8
  embedding_size: ranges.PositiveInt = 512  # Of φ.
  hidden_size: ranges.PositiveInt = 512  # Of g_m, one hidden layer.
  # Of φ, before its last layer.
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  hidden_sizes: tuple[ranges.PositiveInt, ...] = ()  # Of φ, likewise.
  # Adam's; a schedule's time is in learner updates.
  learning_rate: schedules.LearningRate = 1e-4

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    features = networks.make_random_features(
      observation_spec, self.hidden_sizes, self.embedding_size, self.torso
    )
    model = networks.make_forward_model(
      num_actions, self.embedding_size, self.hidden_size
    )
    optimizer = optax.adam(self.learning_rate)

    def init(key: jax.Array) -> State:
      members_key, target_key, key = jax.random.split(key, 3)
      members = jax.vmap(model.init)(jax.random.split(members_key, self.num_models))
      return State(
        members,
        features.init(target_key),
        optimizer.init(members),
        exploration.init_moments(),
        key,
      )

    def loss(
      members: Any, tm1: jax.Array, a_tm1: jax.Array, t: jax.Array, mask: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
      """The sum over models of their mean errors, and predictions `[M, N, D]`."""
      predictions = jax.vmap(model.apply, (0, None, None))(members, tm1, a_tm1)
      errors = jnp.mean(jnp.square(predictions - t[None]), axis=-1)
      return jnp.sum(jax.vmap(updates.masked_mean)(errors, mask)), predictions

    def compute(state: State, inputs: types.Inputs) -> tuple[jax.Array, State]:
      key, kept_key = jax.random.split(state.key)
      shape = (self.num_models, *inputs.mask.shape)
      kept = jax.random.bernoulli(kept_key, self.keep_prob, shape)
      tm1, t = (
        features.apply(state.target, x)
        for x in (inputs.observation_tm1, inputs.observation_t)
      )
      step = updates.step(
        optimizer,
        loss,
        state.members,
        state.opt_state,
        tm1,
        inputs.a_tm1,
        t,
        kept * inputs.mask[None],
      )
      r_int = jax.vmap(losses.disagreement, in_axes=1)(jax.lax.stop_gradient(step.aux))
      moments = exploration.update_moments(state.moments, r_int, inputs.mask)
      state = State(step.params, state.target, step.opt_state, moments, key)
      return exploration.over_deviation(moments, r_int), state

    return types.IntrinsicReward("transition", learning=types.Learning(init, compute))
