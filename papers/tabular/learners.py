"""Learners that update at every step: tables, linear features, and a model.

`QLearning`, `SarsaLambda` on a `FourierBasis`, and `RMax`. A learner is a frozen
dataclass of its settings; all methods are pure.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from explorax import losses
from explorax.environments import jax_types

State = Any  # A pytree of arrays of fixed shapes.
Encoded = Any  # A state's index, or its features.


class Transition(NamedTuple):
  """One step, and the action chosen after it.

  Attributes:
    source: x_t, encoded by the learner.
    action: a_t, int32 `[]`.
    reward: r_{t+1}, float32 `[]`.
    discount: the environment's, 0 if the episode terminated, float32 `[]`.
    destination: x_{t+1}, encoded; also at an episode's end.
    next_action: a_{t+1}, int32 `[]`, for learners that are `on_policy`. It is also
      drawn at an episode's last observation, to bootstrap from it after a truncation.
    learns: bool `[]`; False: there was no such step (at an episode's start, or after
      the end of a run in a batch), and the learner's state does not change. Selecting
      between the states before and after would copy a table at every step.
  """

  source: Encoded
  action: jax.Array
  reward: jax.Array
  discount: jax.Array
  destination: Encoded
  next_action: jax.Array
  learns: jax.Array | bool = True


class Learner(Protocol):
  """Learns action values from single steps, in the order in which they happen.

  An on-policy learner needs the next action, which the rule chooses with the values
  before the update (Sutton and Barto, 2018, section 12.7); otherwise the rule chooses
  with those after it (section 6.5). Learners that are `sequential` are faster one seed
  after another than as a batch.
  """

  @property
  def discount(self) -> float:
    """γ, which also discounts the returns of a run."""

  @property
  def on_policy(self) -> bool:
    """Whether the update needs the next action."""

  @property
  def sequential(self) -> bool:
    """Whether seeds run one after another."""

  def init(self, key: jax.Array) -> State:
    """The state before the first episode."""

  def begin_episode(self, state: State) -> State:
    """The state at an episode's start: traces are cleared."""

  def encode(self, state: jax_types.State, observation: jax.Array) -> Encoded:
    """What the learner sees of an environment's state or observation."""

  def q_values(self, state: State, encoded: Encoded) -> jax.Array:
    """Action values, float32 `[A]`."""

  def update(self, state: State, transition: Transition) -> State:
    """Learns from one step, if `transition.learns`."""


@dataclasses.dataclass(frozen=True)
class _Tabular:
  """A learner whose table has a row for each index that `index` gives a state."""

  index: Callable[[Any], jax.Array]
  num_states: int  # S.
  num_actions: int  # A.

  on_policy = False
  sequential = False

  def begin_episode(self, state: State) -> State:
    return state

  def encode(self, state: jax_types.State, observation: jax.Array) -> jax.Array:
    del observation
    return self.index(state)


@dataclasses.dataclass(frozen=True)
class Fixed(_Tabular):
  """Does not learn: the same action is greedy in all states.

  Figure 1's greedy policy always goes down. With ε = 1, the greedy action has no
  effect.
  """

  action: int = 0
  discount: float = 1.0

  def init(self, key: jax.Array) -> tuple[()]:
    del key
    return ()

  def q_values(self, state: tuple[()], encoded: jax.Array) -> jax.Array:
    del state, encoded
    return jax.nn.one_hot(self.action, self.num_actions)

  def update(self, state: tuple[()], transition: Transition) -> tuple[()]:
    del transition
    return state


@dataclasses.dataclass(frozen=True)
class QLearning(_Tabular):
  """Q-learning (Watkins, 1989): Q(s, a) ← Q(s, a) + α·(r + γ·max_b Q(s', b) − Q(s, a)).

  Dabney et al. (2021), appendix B, use it in DeepSea and GridWorld. They give neither γ
  nor the initial values, here ~ N(0, std²). The state is the table, float32 `[S, A]`.
  """

  step_size: float = 1.0  # α.
  discount: float = 1.0  # γ.
  initial_std: float = 0.0

  def init(self, key: jax.Array) -> jax.Array:
    values_key, _ = jax.random.split(key)
    shape = self.num_states, self.num_actions
    return self.initial_std * jax.random.normal(values_key, shape, jnp.float32)

  def q_values(self, state: jax.Array, encoded: jax.Array) -> jax.Array:
    return state[encoded]

  def update(self, state: jax.Array, transition: Transition) -> jax.Array:
    source, action = transition.source, transition.action
    td_error = losses.q_learning(
      state[source],
      action,
      transition.reward,
      self.discount * transition.discount,
      state[transition.destination],
    )
    change = jnp.where(transition.learns, self.step_size * td_error, 0.0)
    return state.at[source, action].add(change)


class Model(NamedTuple):
  """The data of each state and action, and the values computed from them.

  Attributes:
    table: float32 `[S, A]`, action values.
    counts: int32 `[S, A]`, visits, up to the threshold m.
    rewards: float32 `[S, A]`, the sum of the rewards of these visits.
    successors: int32 `[m, S, A]`, the next states of these visits.
    discounts: float32 `[m, S, A]`, the environment's discounts at these visits.
  """

  table: jax.Array
  counts: jax.Array
  rewards: jax.Array
  successors: jax.Array
  discounts: jax.Array


@dataclasses.dataclass(frozen=True)
class RMax(_Tabular):
  """R-MAX (Brafman and Tennenholtz, 2002) with discounted values.

  A state-action pair is known after m visits; later visits change nothing. The values
  solve

    Q(s, a) = mean over the m visits of r + γ·d·max_b Q(s', b)  if known,
              R_max/(1 − γ)                                     otherwise,

  where d is 0 if the episode terminated. When a pair becomes known, value iteration
  starts from the old values, which are at least the new ones. Act with
  `exploration.Greedy`.

  Dabney et al. (2021), figure 15, compare it on GridWorld with thresholds of 1 and 10.
  They give neither γ nor R_max. The original uses undiscounted values of a finite
  horizon; the discounted form is that of Strehl and Littman.
  """

  threshold: int  # m.
  reward_max: float  # R_max, the greatest reward of a step.
  discount: float  # γ, below 1.
  tolerance: float = 1e-4  # Value iteration stops when no value changes by more.

  sequential = True  # In a batch, each seed's value iteration would be all seeds'.

  @property
  def _optimism(self) -> jax.Array:
    return jnp.float32(self.reward_max) / (1.0 - jnp.float32(self.discount))

  def init(self, key: jax.Array) -> Model:
    del key
    shape = self.num_states, self.num_actions
    samples = self.threshold, *shape
    return Model(
      table=jnp.full(shape, self._optimism, jnp.float32),
      counts=jnp.zeros(shape, jnp.int32),
      rewards=jnp.zeros(shape, jnp.float32),
      successors=jnp.zeros(samples, jnp.int32),
      discounts=jnp.zeros(samples, jnp.float32),
    )

  def q_values(self, state: Model, encoded: jax.Array) -> jax.Array:
    return state.table[encoded]

  def update(self, state: Model, transition: Transition) -> Model:
    place = transition.source, transition.action
    count = state.counts[place]
    new = (count < self.threshold) & transition.learns
    # A visit beyond m has an index out of bounds, so that nothing is written.
    visit = jnp.where(new, count, self.threshold), *place
    state = state._replace(
      counts=state.counts.at[place].add(new.astype(jnp.int32)),
      rewards=state.rewards.at[place].add(jnp.where(new, transition.reward, 0.0)),
      successors=state.successors.at[visit].set(transition.destination, mode="drop"),
      discounts=state.discounts.at[visit].set(transition.discount, mode="drop"),
    )
    becomes_known = new & (count + 1 == self.threshold)
    table = jax.lax.cond(becomes_known, self._solve, lambda state: state.table, state)
    return state._replace(table=table)

  def _solve(self, state: Model) -> jax.Array:
    """Value iteration: the action values, float32 `[S, A]`."""
    known = state.counts == self.threshold
    rewards = state.rewards / self.threshold
    weights = self.discount * state.discounts / self.threshold

    def improve(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
      values = jnp.max(carry[0], axis=1)
      following = jnp.sum(weights * values[state.successors], axis=0)
      better = jnp.where(known, rewards + following, self._optimism)
      return better, jnp.max(jnp.abs(jnp.max(better, axis=1) - values))

    start = improve((state.table, jnp.float32(0.0)))
    table, _ = jax.lax.while_loop(lambda x: x[1] > self.tolerance, improve, start)
    return table


@dataclasses.dataclass(frozen=True)
class FourierBasis:
  """The Fourier basis of order n (Konidaris et al., 2011, section 3).

    φ_c(x) = cos(π c · x̂), c ∈ {0, …, n}^d, x̂_i = (x_i − low_i)/(high_i − low_i)

  The basis has all (n + 1)^d features, or, with `total_order`, those with Σ_i c_i ≤ n,
  like a polynomial of degree n. The last element of c changes fastest between features.
  Observations are clipped to the bounds, so that x̂ ∈ [0, 1]^d.

  In more than two dimensions, each feature of the full basis is computed as
  cos α cos β − sin α sin β, where β is the angle of the last two dimensions: 32768
  features need the cosines and sines of only 576 angles.
  """

  order: int  # n.
  low: tuple[float, ...]  # Mapped to 0, for each of the d dimensions.
  high: tuple[float, ...]  # Mapped to 1.
  total_order: bool = False

  @property
  def num_features(self) -> int:
    return len(self.indices())

  def __call__(self, observation: jax.Array) -> jax.Array:
    """The features, float32 `[F]`."""
    low = jnp.asarray(self.low, jnp.float32)
    width = jnp.asarray(self.high, jnp.float32) - low
    scaled = jnp.clip((jnp.asarray(observation, jnp.float32) - low) / width, 0.0, 1.0)
    num_heads = max(len(self.low) - 2, 0)
    if self.total_order or not num_heads:
      return jnp.cos(_angles(self.indices(), scaled))
    heads = _angles(_multi_indices(self.order, num_heads), scaled[:num_heads])
    tails = _angles(_multi_indices(self.order, 2), scaled[num_heads:])
    # As a matrix product, whose factors' elements are computed only once.
    return jnp.dot(
      jnp.stack([jnp.cos(heads), -jnp.sin(heads)], axis=1),
      jnp.stack([jnp.cos(tails), jnp.sin(tails)]),
      precision="highest",
    ).reshape(-1)

  def step_scales(self) -> np.ndarray:
    """1/‖c‖, or 1 if c = 0 (Konidaris et al., 2011, section 3.1), float32 `[F]`."""
    norms = np.linalg.norm(self.indices(), axis=1)
    return (1.0 / np.where(norms == 0.0, 1.0, norms)).astype(np.float32)

  def indices(self) -> np.ndarray:
    """c of every feature, float32 `[F, d]`."""
    indices = _multi_indices(self.order, len(self.low))
    return indices[indices.sum(axis=1) <= self.order] if self.total_order else indices


def _angles(indices: np.ndarray, scaled: jax.Array) -> jax.Array:
  """π c · x̂ for each of the c `[C, dims]`, float32 `[C]`."""
  frequencies = np.float32(np.pi) * indices
  return sum(
    (jnp.asarray(c) * scaled[i] for i, c in enumerate(frequencies.T)),
    start=jnp.float32(0.0),
  )


def _multi_indices(order: int, dimensions: int) -> np.ndarray:
  """All c with elements up to n, float32 `[(order + 1)^dimensions, dimensions]`."""
  values = range(order + 1)
  return np.asarray(list(itertools.product(values, repeat=dimensions)), np.float32)


class Weights(NamedTuple):
  """Weights and traces, float32 `[A, F]` each."""

  weights: jax.Array
  traces: jax.Array


@dataclasses.dataclass(frozen=True)
class SarsaLambda:
  """SARSA(λ) with accumulating traces (Sutton and Barto, 2018, section 12.7).

  With q(x, a) = w_a · φ(x), at each step, whether a' explores or not,

    e_b ← γλ·e_b + 1[b = a]·φ(x) for every action b,
    w ← w + α·(r + γ·q(x', a') − q(x, a))·e.

  If the episode terminated, q(x', a') counts as 0; if it was truncated, a' is the
  action that the rule selects at x'.

  Dabney et al. (2021), appendix B, use it in MountainCar and CartPole. They do not
  specify the traces: accumulating ones are the standard form for features that are not
  binary. They do not say whether the step size is divided by ‖c‖, as in Konidaris et
  al. (2011): `scale_steps` does this, and α is then that of the constant feature.
  """

  features: FourierBasis
  num_actions: int  # A.
  step_size: float  # α.
  discount: float  # γ.
  trace_decay: float  # λ.
  initial_variance: float = 0.0  # Of the weights, whose mean is 0.
  scale_steps: bool = False
  sequential: bool = False

  on_policy = True

  def init(self, key: jax.Array) -> Weights:
    shape = self.num_actions, self.features.num_features
    spread = math.sqrt(self.initial_variance)
    weights = spread * jax.random.normal(key, shape, jnp.float32)
    return Weights(weights, jnp.zeros(shape, jnp.float32))

  def begin_episode(self, state: Weights) -> Weights:
    return state._replace(traces=jnp.zeros_like(state.traces))

  def encode(self, state: jax_types.State, observation: jax.Array) -> jax.Array:
    del state
    return self.features(observation)

  def q_values(self, state: Weights, encoded: jax.Array) -> jax.Array:
    return jnp.sum(state.weights * encoded[None], axis=1)

  def update(self, state: Weights, transition: Transition) -> Weights:
    value = self.q_values(state, transition.source)[transition.action]
    following = self.q_values(state, transition.destination)[transition.next_action]
    target = transition.reward + self.discount * transition.discount * following
    taken = jnp.arange(self.num_actions, dtype=jnp.int32) == transition.action
    decay = jnp.float32(self.discount) * jnp.float32(self.trace_decay)
    seen = jnp.where(taken[:, None], transition.source[None, :], 0.0)
    traces = decay * state.traces + seen
    steps = self.step_size * (target - value) * traces
    if self.scale_steps:
      steps = steps * jnp.asarray(self.features.step_scales())[None, :]
    learnt = Weights(state.weights + steps, traces)
    return jax.tree.map(lambda a, b: jnp.where(transition.learns, a, b), learnt, state)
