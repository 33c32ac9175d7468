"""What the learner trains for Never Give Up's intrinsic reward."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from explorax import losses, networks
from explorax.agents import updates
from explorax.agents.ngu import probe, rows_of_state


class TrainingState(NamedTuple):
  """What is trained, and what is not.

  Attributes:
    embedding: parameters of f and h.
    predictor, target: of RND's networks, of which the target never changes.
    probe: of the linear probe.
    opt_states: of the parts that are trained, by these names.

  `()` stands for a part that there is not.
  """

  embedding: Any
  predictor: Any
  target: Any
  probe: Any
  opt_states: dict[str, Any]


class Weights(NamedTuple):
  """What acting needs: f, and RND's two networks; `()` for what there is not."""

  embedding: Any
  predictor: Any
  target: Any


class Frames(NamedTuple):
  """The last F frames of windows: `[B, F, ...]`, mask 0 where there is none."""

  observation: jax.Array
  action: jax.Array
  mask: jax.Array


class Objective(NamedTuple):
  """A part that is trained by itself.

  Attributes:
    loss: (its params, TrainingState, Frames) → (loss, metrics).
    optimizer: of its own.
  """

  loss: Callable[[Any, TrainingState, Frames], tuple[jax.Array, dict[str, jax.Array]]]
  optimizer: optax.GradientTransformation


def make_training(
  embedding: networks.EmbeddingNetworks | None,
  rnd: networks.RNDNetworks | None,
  probe_size: int | None,
  objectives: Mapping[str, Objective],
  num_frames: int,
) -> tuple[Callable[..., TrainingState], Callable[..., Any], Callable[..., Weights]]:
  """Trains each part on the last frames of windows.

  Args:
    embedding: f and h; None where controllable states are no function that is learnt.
    rnd: None without life-long novelty.
    probe_size: of the embedding that the probe reads; None without a probe.
    objectives: of the parts to be trained, by their names in `TrainingState`.
    num_frames: F, of the end of each window.

  Returns:
    The functions of a `bonuses.types.Training`: init, update and weights.
  """

  def init(key: jax.Array) -> TrainingState:
    keys = jax.random.split(key, 3)
    state = TrainingState(
      embedding=() if embedding is None else embedding.init(keys[0]),
      predictor=() if rnd is None else rnd.predictor.init(keys[1]),
      target=() if rnd is None else rnd.target.init(keys[2]),
      probe=() if probe_size is None else probe.init(probe_size),
      opt_states={},
    )
    opt_states = {
      name: part.optimizer.init(getattr(state, name))
      for name, part in objectives.items()
    }
    return state._replace(opt_states=opt_states)

  def update(
    state: TrainingState,
    observation: jax.Array,
    action: jax.Array,
    num_transitions: jax.Array,
  ) -> tuple[TrainingState, dict[str, jax.Array]]:
    frames = last_frames(observation, action, num_transitions, num_frames)
    trained, opt_states = {}, {}
    metrics: dict[str, jax.Array] = {}
    for name, part in objectives.items():
      params = getattr(state, name)
      step = updates.step(
        part.optimizer, part.loss, params, state.opt_states[name], state, frames
      )
      trained[name], opt_states[name] = step.params, step.opt_state
      metrics.update(step.aux)
    return state._replace(**trained, opt_states=opt_states), metrics

  def weights(state: TrainingState) -> Weights:
    f = () if embedding is None else state.embedding.embedding
    return Weights(f, state.predictor, state.target)

  return init, update, weights


def inverse_dynamics(
  embedding: networks.EmbeddingNetworks,
  look: rows_of_state.Look,
  optimizer: optax.GradientTransformation,
) -> Objective:
  """f and h: the action between two frames in a row, if both are there."""

  def loss(
    params: networks.EmbeddingParams, state: TrainingState, frames: Frames
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    del state
    controllable = _embed(embedding, params, look, frames)
    pairs = (controllable[:, :-1], controllable[:, 1:])
    logits = embedding.action_logits(
      params, *(jnp.reshape(x, (-1, x.shape[-1])) for x in pairs)
    )
    # A frame's action leads to the next frame.
    action = jnp.reshape(frames.action[:, :-1], (-1,))
    mask = jnp.reshape(frames.mask[:, :-1] * frames.mask[:, 1:], (-1,))
    value = updates.masked_mean(losses.inverse_dynamics(logits, action), mask)
    return value, {"inverse_loss": value}

  return Objective(loss, optimizer)


def distillation(
  rnd: networks.RNDNetworks,
  look: rows_of_state.Look,
  optimizer: optax.GradientTransformation,
) -> Objective:
  """RND's predictor: the random target's output for each frame."""

  def loss(
    params: Any, state: TrainingState, frames: Frames
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    flat = _flat(look(frames.observation))
    errors = losses.rnd_error(
      rnd.predictor.apply(params, flat), rnd.target.apply(state.target, flat)
    )
    value = updates.masked_mean(errors, jnp.reshape(frames.mask, (-1,)))
    return value, {"rnd_loss": value}

  return Objective(loss, optimizer)


def linear_probe(
  embedding: networks.EmbeddingNetworks,
  look: rows_of_state.Look,
  read: rows_of_state.Look,
  optimizer: optax.GradientTransformation,
) -> Objective:
  """The probe, on f as it is before this update; `read` gives its targets."""

  def loss(
    params: Any, state: TrainingState, frames: Frames
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    controllable = _flat(_embed(embedding, state.embedding, look, frames))
    targets = _flat(read(frames.observation))
    return probe.loss(params, controllable, targets, jnp.reshape(frames.mask, (-1,)))

  return Objective(loss, optimizer)


def last_frames(
  observation: jax.Array, action: jax.Array, num_transitions: jax.Array, num: int
) -> Frames:
  """The last `num` frames that are no padding.

  Args:
    observation: `[B, R, ...]`.
    action: int `[B, R]`.
    num_transitions: int32 `[B]`, n: frames 0 to n are real, of which frame n is the
      one that the last transition reaches.
    num: F. Windows with fewer frames have what there is, at the end, and a mask.
  """
  last = jnp.minimum(num_transitions, observation.shape[1] - 1)
  index = last[:, None] - (num - 1) + jnp.arange(num)[None]  # [B, F]
  mask = (index >= 0).astype(jnp.float32)
  index = jnp.maximum(index, 0)
  batch = jnp.arange(observation.shape[0])[:, None]
  return Frames(
    jnp.asarray(observation)[batch, index], jnp.asarray(action)[batch, index], mask
  )


def _embed(
  embedding: networks.EmbeddingNetworks,
  params: networks.EmbeddingParams,
  look: rows_of_state.Look,
  frames: Frames,
) -> jax.Array:
  """Controllable states `[B, F, D]`."""
  flat = embedding.embed(params, _flat(look(frames.observation)))
  return jnp.reshape(flat, (*frames.mask.shape, -1))


def _flat(x: jax.Array) -> jax.Array:
  """`[B, F, ...]` → `[B · F, ...]`."""
  return jnp.reshape(x, (-1, *x.shape[2:]))
