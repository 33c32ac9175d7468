"""Embeddings φ(x) that are trained by models of the dynamics (ICM, RIDE, E3B)."""

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import optax

from explorax import losses, networks, ranges
from explorax.agents import updates
from explorax.agents.bonuses import types
from explorax.exploration import schedules


class Params(NamedTuple):
  """Parameters of φ and h, the inverse model, and of g, the forward model."""

  embedding: networks.EmbeddingParams
  forward: Any  # `()` without it.


class State(NamedTuple):
  """What is trained, and the optimizer's state."""

  params: Params
  opt_state: Any


class Errors(NamedTuple):
  """Of N transitions, before an update.

  Attributes:
    embedding_tm1, embedding_t: φ(x) and φ(x'), `[N, D]`.
    inverse: −log p(a | φ(x), φ(x')), `[N]`.
    forward: the forward error, `[N]`; 0 without a forward model.
  """

  embedding_tm1: jax.Array
  embedding_t: jax.Array
  inverse: jax.Array
  forward: jax.Array


class Models(NamedTuple):
  """φ and its models, as pure functions.

  Attributes:
    init: (key) → State.
    embed: (parameters of φ, observation `[N, ...]`) → `[N, D]`.
    update: (state, observation_tm1 `[N, ...]`, a_tm1 int32 `[N]`, observation_t, mask
      `[N]`) → (Errors, without gradient, state).
    training: of φ for acting, on windows of rows.
  """

  init: Callable[[jax.Array], State]
  embed: Callable[[Any, jax.Array], jax.Array]
  update: Callable[..., tuple[Errors, State]]
  training: types.Training


@dataclasses.dataclass(frozen=True)
class Dynamics(ranges.Checked):
  """Settings of φ, of a model of the action, and of one of the next embedding.

      loss = −w_h log h(a | φ(x), φ(x')) + w_g e(g(φ(x), a), φ(x'))

  The mean over transitions is minimised by Adam; φ gets the gradient of both terms,
  through φ(x) and φ(x'). φ is a torso and one linear layer; h and g have one hidden
  layer each. With w_g = 0 there is no g.
  """

  # Before the linear layers (`networks.make_torso`).
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  hidden_sizes: tuple[ranges.PositiveInt, ...] = ()  # Linear layers before the last.
  embedding_size: ranges.PositiveInt = 128  # D.
  hidden_size: ranges.PositiveInt = 256  # Of h and g (ICM, RIDE, E3B).
  inverse_weight: ranges.NonNegativeFloat = 1.0  # w_h.
  forward_weight: ranges.NonNegativeFloat = 0.0  # w_g.
  # e: half the squared distance (ICM), or the distance (RIDE).
  forward_error: Literal["half_squared", "distance"] = "half_squared"
  # Adam's; a schedule's time is in learner updates.
  learning_rate: schedules.LearningRate = 1e-4
  max_gradient_norm: ranges.PositiveFloat | None = 40.0  # (ICM, RIDE, E3B.)

  def build(self, observation_spec: dm_env.specs.Array, num_actions: int) -> Models:
    """The models, for encoded observations of this spec."""
    nets = networks.make_embedding_networks(
      observation_spec,
      num_actions,
      self.torso,
      self.hidden_sizes,
      self.embedding_size,
      self.hidden_size,
    )
    forward_model = networks.make_forward_model(
      num_actions, self.embedding_size, self.hidden_size
    )
    optimizer = updates.clipped(optax.adam(self.learning_rate), self.max_gradient_norm)

    def init(key: jax.Array) -> State:
      embedding_key, forward_key = jax.random.split(key)
      forward = forward_model.init(forward_key) if self.forward_weight else ()
      params = Params(nets.init(embedding_key), forward)
      return State(params, optimizer.init(params))

    def errors(
      params: Params,
      observation_tm1: jax.Array,
      a_tm1: jax.Array,
      observation_t: jax.Array,
    ) -> Errors:
      tm1 = nets.embed(params.embedding, observation_tm1)
      t = nets.embed(params.embedding, observation_t)
      logits = nets.action_logits(params.embedding, tm1, t)
      forward = jnp.zeros(a_tm1.shape, jnp.float32)
      if self.forward_weight:
        predicted = forward_model.apply(params.forward, tm1, a_tm1)
        if self.forward_error == "half_squared":
          forward = losses.forward_dynamics(predicted, t)
        else:  # The gradient of a distance of 0 is 0.
          forward = optax.safe_norm(predicted - t, 1e-8, axis=-1)
      return Errors(tm1, t, losses.inverse_dynamics(logits, a_tm1), forward)

    def loss(
      params: Params, mask: jax.Array, *transitions: jax.Array
    ) -> tuple[jax.Array, Errors]:
      of_both = errors(params, *transitions)
      inverse = self.inverse_weight * of_both.inverse
      per_transition = inverse + self.forward_weight * of_both.forward
      return updates.masked_mean(per_transition, mask), of_both

    def update(
      state: State,
      observation_tm1: jax.Array,
      a_tm1: jax.Array,
      observation_t: jax.Array,
      mask: jax.Array,
    ) -> tuple[Errors, State]:
      step = updates.step(
        optimizer, loss, *state, mask, observation_tm1, a_tm1, observation_t
      )
      return jax.lax.stop_gradient(step.aux), State(step.params, step.opt_state)

    def update_on_rows(
      state: State,
      observation: jax.Array,
      action: jax.Array,
      num_transitions: jax.Array,
    ) -> tuple[State, dict[str, jax.Array]]:
      flat = lambda x: jnp.reshape(x, (-1, *x.shape[2:]))  # noqa: E731
      mask = jnp.arange(action.shape[1] - 1)[None] < num_transitions[:, None]
      mask = flat(mask.astype(jnp.float32))
      tm1, a_tm1, t = observation[:, :-1], action[:, :-1], observation[:, 1:]
      before, state = update(state, flat(tm1), flat(a_tm1), flat(t), mask)
      return state, {"inverse_loss": updates.masked_mean(before.inverse, mask)}

    def embed(params: Any, observation: jax.Array) -> jax.Array:
      return nets.embed(networks.EmbeddingParams(params, ()), observation)

    training = types.Training(
      init,
      update_on_rows,
      lambda state: state.params.embedding.embedding,
      ("inverse_loss",),
    )
    return Models(init, embed, update, training)
