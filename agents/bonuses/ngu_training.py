"""The networks that the learner trains for Never Give Up's intrinsic reward."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from explorax import losses, networks
from explorax.agents import updates
from explorax.agents.bonuses import ngu_states, types


class TrainingState(NamedTuple):
  """Parameters and optimizer states.

  Attributes:
    embedding: parameters of f and h.
    predictor, target: of RND's networks; the target never changes.
    opt_states: of the trained parts, by these names.

  A missing part is `()`.
  """

  embedding: Any
  predictor: Any
  target: Any
  opt_states: dict[str, Any]


class Weights(NamedTuple):
  """The weights for acting: f, and RND's two networks; a missing part is `()`."""

  embedding: Any
  predictor: Any
  target: Any


class Frames(NamedTuple):
  """The last F frames of windows: `[B, F, ...]`, with mask 0 for missing ones."""

  observation: jax.Array
  action: jax.Array
  mask: jax.Array


@dataclasses.dataclass(frozen=True, eq=False)
class Training:
  """Trains f and h, and RND's predictor, on the last frames of windows.

  Attributes:
    f: and h; None if controllable states are not learnt.
    rnd: None without life-long novelty.
    optimizers: of the trained parts, by their names in `TrainingState`.
    look: observations → the part that networks see.
    num_frames: F, counted from the end of each window.
  """

  f: networks.EmbeddingNetworks | None
  rnd: networks.RNDNetworks | None
  optimizers: Mapping[str, optax.GradientTransformation]
  look: ngu_states.ObservationFn
  num_frames: int

  def inverse_dynamics(
    self, params: networks.EmbeddingParams, state: TrainingState, frames: Frames
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Loss of f and h: the action between two consecutive real frames."""
    assert self.f is not None
    flat = self.f.embed(params, _flat(self.look(frames.observation)))
    controllable = jnp.reshape(flat, (*frames.mask.shape, -1))  # [B, F, D]
    logits = self.f.action_logits(
      params, _flat(controllable[:, :-1]), _flat(controllable[:, 1:])
    )
    # A frame's action leads to the next frame.
    action = _flat(frames.action[:, :-1])
    mask = _flat(frames.mask[:, :-1] * frames.mask[:, 1:])
    value = updates.masked_mean(losses.inverse_dynamics(logits, action), mask)
    return value, {"inverse_loss": value}

  def distillation(
    self, params: Any, state: TrainingState, frames: Frames
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Loss of RND's predictor: the random target's output for each frame."""
    assert self.rnd is not None
    seen = _flat(self.look(frames.observation))
    errors = losses.rnd_error(
      self.rnd.predictor.apply(params, seen), self.rnd.target.apply(state.target, seen)
    )
    value = updates.masked_mean(errors, _flat(frames.mask))
    return value, {"rnd_loss": value}

  def init(self, key: jax.Array) -> TrainingState:
    f, rnd, keys = self.f, self.rnd, jax.random.split(key, 3)
    state = TrainingState(
      embedding=() if f is None else f.init(keys[0]),
      predictor=() if rnd is None else rnd.predictor.init(keys[1]),
      target=() if rnd is None else rnd.target.init(keys[2]),
      opt_states={},
    )
    return state._replace(
      opt_states={
        name: optimizer.init(getattr(state, name))
        for name, optimizer in self.optimizers.items()
      }
    )

  def update(
    self,
    state: TrainingState,
    observation: jax.Array,
    action: jax.Array,
    num_transitions: jax.Array,
  ) -> tuple[TrainingState, dict[str, jax.Array]]:
    frames = last_frames(observation, action, num_transitions, self.num_frames)
    loss_of = {"embedding": self.inverse_dynamics, "predictor": self.distillation}
    trained, opt_states = {}, {}
    metrics: dict[str, jax.Array] = {}
    for name, optimizer in self.optimizers.items():
      params, opt_state = getattr(state, name), state.opt_states[name]
      step = updates.step(optimizer, loss_of[name], params, opt_state, state, frames)
      trained[name], opt_states[name] = step.params, step.opt_state
      metrics.update(step.aux)
    return state._replace(**trained, opt_states=opt_states), metrics

  def weights(self, state: TrainingState) -> Weights:
    embedding = () if self.f is None else state.embedding.embedding
    return Weights(embedding, state.predictor, state.target)

  def of_acting_half(self) -> types.Training:
    names = {"embedding": "inverse_loss", "predictor": "rnd_loss"}
    metrics = tuple(names[part] for part in self.optimizers)
    return types.Training(self.init, self.update, self.weights, metrics)


def last_frames(
  observation: jax.Array, action: jax.Array, num_transitions: jax.Array, num: int
) -> Frames:
  """The last `num` real frames.

  Args:
    observation: `[B, R, ...]`.
    action: int `[B, R]`.
    num_transitions: int32 `[B]`, n: frames 0 to n are real, and frame n is the
      destination of the last transition.
    num: F. Windows with fewer frames have them at the end, with a mask.
  """
  last = jnp.minimum(num_transitions, observation.shape[1] - 1)
  index = last[:, None] - (num - 1) + jnp.arange(num)[None]  # [B, F]
  mask = (index >= 0).astype(jnp.float32)
  index = jnp.maximum(index, 0)
  batch = jnp.arange(observation.shape[0])[:, None]
  return Frames(
    jnp.asarray(observation)[batch, index], jnp.asarray(action)[batch, index], mask
  )


def _flat(x: jax.Array) -> jax.Array:
  """`[B, F, ...]` → `[B · F, ...]`."""
  return jnp.reshape(x, (-1, *x.shape[2:]))
