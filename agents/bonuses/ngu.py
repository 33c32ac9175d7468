"""Never Give Up's intrinsic reward.

    r^i_t = r_t^episodic · min(max(α_t, 1), L)

The memory of the episodic novelty of x_t (`exploration.episodic_novelty`) is cleared at
an episode's end; the life-long modulation α comes from random network distillation.
The defaults are those of Badia et al. (2020), section 2 and table 6.
"""

import dataclasses
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import optax

from explorax import exploration, losses, networks, ranges
from explorax.agents import updates
from explorax.agents.bonuses import ngu_states, ngu_training, types
from explorax.exploration import schedules


class ActorState(NamedTuple):
  """The novelty state of an actor.

  Attributes:
    memory: the controllable states of the episode.
    moments: of RND's errors, since the start of the run.
    episodes: int32 `[]`, number of episodes started.
  """

  memory: exploration.EpisodicMemory
  moments: exploration.Moments
  episodes: jax.Array


@dataclasses.dataclass(frozen=True)
class NeverGiveUp(types.Bonus):
  """Episodic novelty of controllable states, modulated by life-long novelty.

  Schedules of learning rates count learner updates.
  """

  # Adam's ε of all networks trained here ("for all losses", table 6).
  optimizer_eps: ranges.PositiveFloat = 1e-4
  # Of each loss; None: not clipped.
  max_gradient_norm: ranges.PositiveFloat | None = 40.0

  ## Controllable states
  # learned: f(x), f trained by inverse dynamics. random: f has its initial parameters
  # (random projections). oracle: read from a row below the image (appendix I).
  states: Literal["learned", "random", "oracle"] = "learned"
  # Of f and of RND's networks; auto: depends on the observations.
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  # Units between convolutions and last layers.
  hidden_sizes: tuple[ranges.PositiveInt, ...] = ()
  embedding_size: ranges.PositiveInt = 32  # Of f (table 6).
  inverse_size: ranges.PositiveInt = 128  # Hidden units of h (appendix H).
  embedding_learning_rate: schedules.LearningRate = 5e-4  # Adam's (table 6).
  embedding_l2: ranges.NonNegativeFloat = 1e-5  # Weight of Σ w² / 2 (table 6).
  # The last ones of each sequence; all losses train on them. Inverse dynamics need two.
  num_frames: ranges.AtLeastTwo = 5

  ## Episodic novelty (table 6, which has precedence over the text)
  memory_capacity: ranges.PositiveInt = 30_000  # Agent steps.
  num_neighbors: ranges.PositiveInt = 10  # k.
  kernel_epsilon: ranges.PositiveFloat = 1e-4  # ε (the text: 1e-3).
  cluster_distance: ranges.NonNegativeFloat = 8e-3  # ξ.
  pseudo_count: ranges.PositiveFloat = 1e-3  # c.
  max_similarity: ranges.PositiveFloat = 8.0  # s_m.
  # Episodes until the memory is cleared (table 9: 1, 3). Actors take a new f in each
  # episode (table 6), and then compare embeddings of different f's.
  episodes_per_memory: ranges.PositiveInt = 1

  ## Life-long novelty
  rnd: bool = True  # Whether RND modulates the novelty; without it α is 1.
  rnd_size: ranges.PositiveInt = 128  # Units of the last layers (appendix H).
  rnd_learning_rate: schedules.LearningRate = 5e-4  # Adam's (table 6).
  max_modulation: Annotated[float, ranges.Range(ge=1)] = 5.0  # L.

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    """The bonus for encoded observations of this spec.

    Raises:
      ValueError: for oracle states if observations do not contain them, and for
        observations that the torso does not support.
    """
    seen, look = ngu_states.make_network_view(observation_spec)
    f = rnd = None
    optimizers = {}
    if self.states != "oracle":
      f = networks.make_embedding_networks(
        seen,
        num_actions,
        torso=self.torso,
        hidden_sizes=self.hidden_sizes,
        embedding_size=self.embedding_size,
        hidden_size=self.inverse_size,
      )
    if self.states == "learned":
      optimizers["embedding"] = optax.chain(
        optax.add_decayed_weights(self.embedding_l2),
        self._adam(self.embedding_learning_rate),
      )
    if self.rnd:
      rnd = networks.make_rnd_networks(
        seen, self.hidden_sizes, self.rnd_size, torso=self.torso
      )
      optimizers["predictor"] = self._adam(self.rnd_learning_rate)
    training = ngu_training.Training(f, rnd, optimizers, look, self.num_frames)
    acting = types.Acting(
      init=self._init,
      begin_episode=self._begin_episode,
      observe=self._make_observe(f, rnd, observation_spec),
      training=training.of_acting_half(),
      # f must not change within an episode: the memory contains its embeddings.
      refresh=lambda held, fresh: fresh._replace(embedding=held.embedding),
    )
    return types.IntrinsicReward("destination", acting)

  def _adam(self, rate: exploration.Setting) -> optax.GradientTransformation:
    adam = optax.adam(rate, eps=self.optimizer_eps)
    return updates.clipped(adam, self.max_gradient_norm)

  def _init(self) -> ActorState:
    size = ngu_states.ORACLE_SIZE if self.states == "oracle" else self.embedding_size
    return ActorState(
      exploration.init_episodic_memory(self.memory_capacity, size),
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
    self,
    f: networks.EmbeddingNetworks | None,
    rnd: networks.RNDNetworks | None,
    observation_spec: dm_env.specs.Array,
  ) -> Callable[..., tuple[jax.Array, ActorState]]:
    look = ngu_states.make_network_view(observation_spec)[1]
    oracle = None if f else ngu_states.make_oracle(observation_spec)

    def controllable(
      weights: ngu_training.Weights, observation: jax.Array
    ) -> jax.Array:
      """The controllable state of x, float32 `[D]`."""
      if oracle is not None:
        return oracle(observation)
      assert f is not None
      params = networks.EmbeddingParams(weights.embedding, ())
      return f.embed(params, look(observation)[None])[0]

    def observe(
      weights: ngu_training.Weights,
      state: ActorState,
      observation: jax.Array,
      *_: jax.Array,
    ) -> tuple[jax.Array, ActorState]:
      r_int, memory = exploration.episodic_novelty(
        state.memory,
        controllable(weights, observation),
        num_neighbors=self.num_neighbors,
        kernel_epsilon=self.kernel_epsilon,
        cluster_distance=self.cluster_distance,
        pseudo_count=self.pseudo_count,
        max_similarity=self.max_similarity,
      )
      moments = state.moments
      if rnd is not None:
        seen = look(observation)[None]
        error = losses.rnd_error(
          rnd.predictor.apply(weights.predictor, seen),
          rnd.target.apply(weights.target, seen),
        )
        moments = exploration.update_moments(moments, error)
        alpha = 1.0 + exploration.normalise(moments, error)[0]
        r_int *= jnp.clip(alpha, 1.0, self.max_modulation)
      return r_int, state._replace(memory=memory, moments=moments)

    return observe
