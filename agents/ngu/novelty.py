"""Never Give Up's intrinsic reward, which the sequence engine plugs in as a bonus.

    r^i_t = r_t^episodic · min(max(α_t, 1), L)

The episodic novelty of x_t (`exploration.episodic_novelty`) forgets all at an
episode's end; the life-long modulation α, from random network distillation, never
does. Badia et al. (2020), section 2 and table 6, of which are the defaults.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import optax

from explorax import exploration, losses, networks
from explorax.agents import bonuses

STATES = ("learned", "random")


class TrainingState(NamedTuple):
  """What is trained, the random target of RND aside, and the optimisers' states."""

  embedding: Any
  predictor: Any
  target: Any
  embedding_opt: Any
  predictor_opt: Any


class Weights(NamedTuple):
  """What acting needs: f, and RND's two networks."""

  embedding: Any
  predictor: Any
  target: Any


class ActorState(NamedTuple):
  """What an actor's novelty remembers.

  Attributes:
    memory: the controllable states of the episode.
    moments: of RND's errors, since the run's start.
    episodes: int32 `[]`, how many episodes have begun.
  """

  memory: exploration.EpisodicMemory
  moments: exploration.Moments
  episodes: jax.Array


@dataclasses.dataclass(frozen=True)
class NeverGiveUp:
  """Episodic novelty of controllable states, modulated by life-long novelty."""

  # learned: f is trained by inverse dynamics. random: f stays as it was initialised
  # (the paper's random projections).
  states: str = "learned"
  torso: str = "auto"  # Of f and of RND's networks; auto: what fits the observations.
  hidden_sizes: tuple[int, ...] = ()  # Units between convolutions and last layers.
  embedding_size: int = 32  # Of f (table 6).
  inverse_size: int = 128  # Hidden units of h (appendix H).
  embedding_learning_rate: float = 5e-4  # Adam's (table 6).
  embedding_l2: float = 1e-5  # Weight of Σ w² / 2 (table 6).
  num_frames: int = 5  # The last ones of each sequence, which all of it is trained on.

  # Episodic novelty (table 6; where the text differs, the table is taken).
  memory_capacity: int = 30_000  # Agent steps.
  num_neighbors: int = 10  # k.
  kernel_epsilon: float = 1e-4  # ε (the text: 1e-3).
  cluster_distance: float = 8e-3  # ξ.
  pseudo_count: float = 1e-3  # c.
  max_similarity: float = 8.0  # s_m.
  episodes_per_memory: int = 1  # Episodes until the memory is emptied (table 9: 1, 3).

  # Life-long novelty.
  rnd: bool = True  # Whether it modulates; without it α is 1.
  rnd_size: int = 128  # Units of the last layers (appendix H).
  rnd_learning_rate: float = 5e-4  # Adam's (table 6).
  max_modulation: float = 5.0  # L.

  def __post_init__(self):
    if self.states not in STATES:
      raise ValueError(
        f"NeverGiveUp.states is {self.states!r}; use one of {', '.join(STATES)}."
      )
    for name in (
      "embedding_learning_rate",
      "rnd_learning_rate",
      "kernel_epsilon",
      "pseudo_count",
      "max_similarity",
    ):
      if not 0 < getattr(self, name) < math.inf:
        raise ValueError(
          f"NeverGiveUp.{name} is {getattr(self, name)}; make it positive and finite."
        )
    for name in ("embedding_l2", "cluster_distance"):
      if not 0 <= getattr(self, name) < math.inf:
        raise ValueError(
          f"NeverGiveUp.{name} is {getattr(self, name)}; it is finite and not negative."
        )
    for name in ("episodes_per_memory", "num_neighbors", "memory_capacity"):
      if getattr(self, name) < 1:
        raise ValueError(
          f"NeverGiveUp.{name} is {getattr(self, name)}; it must be at least 1."
        )
    if self.num_frames < 2:
      raise ValueError(
        f"NeverGiveUp.num_frames is {self.num_frames}; inverse dynamics need two in a "
        "row, so at least 2."
      )
    if not self.max_modulation >= 1:
      raise ValueError(
        f"NeverGiveUp.max_modulation is {self.max_modulation}; α is clipped to [1, L], "
        "so it must be at least 1."
      )

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> bonuses.ActorBonus:
    embedding = networks.make_embedding_networks(
      observation_spec,
      num_actions,
      torso=self.torso,
      hidden_sizes=self.hidden_sizes,
      embedding_size=self.embedding_size,
      hidden_size=self.inverse_size,
    )
    rnd = networks.make_rnd_networks(
      observation_spec, self.hidden_sizes, self.rnd_size, torso=self.torso
    )
    return bonuses.ActorBonus(
      end="destination",
      init=self._init,
      begin_episode=self._begin_episode,
      observe=self._make_observe(embedding, rnd),
      training=self._make_training(embedding, rnd),
      # f must not change while the memory holds what it made of earlier states.
      refresh=lambda held, fresh: fresh._replace(embedding=held.embedding),
    )

  def _init(self) -> ActorState:
    return ActorState(
      exploration.init_episodic_memory(self.memory_capacity, self.embedding_size),
      exploration.init_moments(),
      jnp.int32(0),
    )

  def _begin_episode(self, state: ActorState) -> ActorState:
    empty = exploration.clear_episodic_memory(state.memory)
    is_due = state.episodes % self.episodes_per_memory == 0
    added = jnp.where(is_due, empty.added, state.memory.added)
    return state._replace(
      memory=state.memory._replace(added=added), episodes=state.episodes + 1
    )

  def _make_observe(
    self, embedding: networks.EmbeddingNetworks, rnd: networks.RNDNetworks
  ) -> Any:
    def modulation(
      weights: Weights, moments: exploration.Moments, observation: jax.Array
    ) -> tuple[jax.Array, exploration.Moments]:
      error = losses.rnd_error(
        rnd.predictor.apply(weights.predictor, observation),
        rnd.target.apply(weights.target, observation),
      )
      moments = exploration.update_moments(moments, error)
      alpha = 1.0 + exploration.normalise(moments, error)[0]
      return jnp.clip(alpha, 1.0, self.max_modulation), moments

    def observe(
      weights: Weights,
      state: ActorState,
      observation: jax.Array,
      action: jax.Array,
      last: jax.Array,
    ) -> tuple[jax.Array, ActorState]:
      del action, last  # Novelty is the observation's, and the last one has it too.
      batch = observation[None]
      controllable = embedding.embed(
        networks.EmbeddingParams(weights.embedding, ()), batch
      )[0]
      r_int, memory = exploration.episodic_novelty(
        state.memory,
        controllable,
        num_neighbors=self.num_neighbors,
        kernel_epsilon=self.kernel_epsilon,
        cluster_distance=self.cluster_distance,
        pseudo_count=self.pseudo_count,
        max_similarity=self.max_similarity,
      )
      moments = state.moments
      if self.rnd:
        alpha, moments = modulation(weights, moments, batch)
        r_int = r_int * alpha
      return r_int, state._replace(memory=memory, moments=moments)

    return observe

  def _make_training(
    self, embedding: networks.EmbeddingNetworks, rnd: networks.RNDNetworks
  ) -> bonuses.Training:
    embedding_optimizer = optax.chain(
      optax.add_decayed_weights(self.embedding_l2),
      optax.adam(self.embedding_learning_rate),
    )
    predictor_optimizer = optax.adam(self.rnd_learning_rate)

    def init(key: jax.Array) -> TrainingState:
      keys = jax.random.split(key, 3)
      params = embedding.init(keys[0])
      predictor = rnd.predictor.init(keys[1])
      return TrainingState(
        embedding=params,
        predictor=predictor,
        target=rnd.target.init(keys[2]),
        embedding_opt=embedding_optimizer.init(params),
        predictor_opt=predictor_optimizer.init(predictor),
      )

    def inverse_loss(params: Any, frames: Frames) -> jax.Array:
      shape = frames.observation.shape
      flat = jnp.reshape(frames.observation, (-1, *shape[2:]))
      controllable = jnp.reshape(embedding.embed(params, flat), (*shape[:2], -1))
      pairs = (controllable[:, :-1], controllable[:, 1:])
      logits = embedding.action_logits(
        params, *(jnp.reshape(x, (-1, x.shape[-1])) for x in pairs)
      )
      action = jnp.reshape(frames.action[:, :-1], (-1,))
      # The action of a frame leads to the next one, if both are there.
      mask = jnp.reshape(frames.mask[:, :-1] * frames.mask[:, 1:], (-1,))
      return _masked_mean(losses.inverse_dynamics(logits, action), mask)

    def rnd_loss(params: Any, target: Any, frames: Frames) -> jax.Array:
      flat = jnp.reshape(frames.observation, (-1, *frames.observation.shape[2:]))
      errors = losses.rnd_error(
        rnd.predictor.apply(params, flat), rnd.target.apply(target, flat)
      )
      return _masked_mean(errors, jnp.reshape(frames.mask, (-1,)))

    def update(
      state: TrainingState,
      observation: jax.Array,
      action: jax.Array,
      num_transitions: jax.Array,
    ) -> tuple[TrainingState, dict[str, jax.Array]]:
      frames = last_frames(observation, action, num_transitions, self.num_frames)
      metrics = {}
      if self.states == "learned":
        value, gradients = jax.value_and_grad(inverse_loss)(state.embedding, frames)
        steps, embedding_opt = embedding_optimizer.update(
          gradients, state.embedding_opt, state.embedding
        )
        state = state._replace(
          embedding=optax.apply_updates(state.embedding, steps),
          embedding_opt=embedding_opt,
        )
        metrics["inverse_loss"] = value
      if self.rnd:
        value, gradients = jax.value_and_grad(rnd_loss)(
          state.predictor, state.target, frames
        )
        steps, predictor_opt = predictor_optimizer.update(
          gradients, state.predictor_opt
        )
        state = state._replace(
          predictor=optax.apply_updates(state.predictor, steps),
          predictor_opt=predictor_opt,
        )
        metrics["rnd_loss"] = value
      return state, metrics

    def weights(state: TrainingState) -> Weights:
      return Weights(state.embedding.embedding, state.predictor, state.target)

    return bonuses.Training(init, update, weights)


class Frames(NamedTuple):
  """The last F frames of windows: `[B, F, ...]`, mask 0 where there is none."""

  observation: jax.Array
  action: jax.Array
  mask: jax.Array


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
  return Frames(observation[batch, index], action[batch, index], mask)


def _masked_mean(x: jax.Array, mask: jax.Array) -> jax.Array:
  return jnp.sum(x * mask) / jnp.maximum(jnp.sum(mask), 1.0)
