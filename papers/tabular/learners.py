"""Learners that update at every step: tables, linear features, and a model."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax import losses

State = Any  # A pytree of arrays of fixed shapes.
Encoded = Any  # A state's index, or its features.
# The environment's state and its observation → what the learner sees of them.
Encode = Callable[[Any, jax.Array], Encoded]


class Transition(NamedTuple):
  """One step, and the action chosen after it; scalars, int32 and float32."""

  source: Encoded  # x_t.
  action: jax.Array  # a_t.
  reward: jax.Array  # r_{t+1}.
  discount: jax.Array  # The environment's, 0 if the episode terminated.
  destination: Encoded  # x_{t+1}; also at an episode's end.
  # a_{t+1}, for learners that are `on_policy`. It is also drawn at an episode's last
  # observation, to bootstrap from it after a truncation.
  next_action: jax.Array
  # False: there was no such step (at an episode's start, or after the end of a run in a
  # batch), and the learner's state does not change. Selecting between the states before
  # and after would copy a table at every step.
  learns: jax.Array | bool = True


class Learner(NamedTuple):
  """Pure functions that learn from single steps, in the order in which they happen."""

  init: Callable[[jax.Array], State]  # Of a random key.
  encode: Encode
  q_values: Callable[[State, Encoded], jax.Array]  # float32 `[A]`.
  update: Callable[[State, Transition], State]
  begin_episode: Callable[[State], State] = lambda state: state
  discount: float = 1.0  # γ, which also discounts the returns of a run.
  # Whether the update needs the next action, which the rule chooses with the values
  # before it (Sutton and Barto, 2018, section 12.7); otherwise it chooses with those
  # after it (section 6.5).
  on_policy: bool = False
  sequential: bool = False  # Whether seeds are slow as a batch.


class Visits(NamedTuple):
  """The steps taken, and the steps of first visits."""

  steps: jax.Array  # int32 `[]`.
  first: jax.Array  # int32 `[C]`, or `[C, A]` of pairs.


NEVER = jnp.iinfo(jnp.int32).max  # Of what has no visit.


def first_visits(
  encode: Encode, num_cells: int, num_actions: int, greedy_action: int, pairs: bool
) -> Learner:
  """Records first visits, and does not learn: one action is greedy in all states.

  A cell, as `encode` numbers them from 0 to C − 1, is visited when the agent arrives,
  also at an episode's last timestep, and at step 0 if it starts there. With `pairs`,
  a visit of (cell, action) counts after the action, at step 1 at the earliest.
  """

  def init(key: jax.Array) -> Visits:
    del key
    shape = (num_cells, num_actions) if pairs else (num_cells,)
    return Visits(jnp.int32(0), jnp.full(shape, NEVER, jnp.int32))

  def update(state: Visits, transition: Transition) -> Visits:
    steps = state.steps + transition.learns
    source: Any = transition.source
    visited = [((source, transition.action), steps)]
    if not pairs:
      visited = [(source, state.steps), (transition.destination, steps)]
    first = state.first
    for cell, step in visited:
      at = jnp.where(transition.learns, step, NEVER)
      first = first.at[cell].min(at, mode="drop")
    return Visits(steps, first)

  action = jax.nn.one_hot(greedy_action, num_actions)
  return Learner(init, encode, lambda state, encoded: action, update)


def q_learning(
  encode: Encode,
  num_states: int,
  num_actions: int,
  *,
  step_size: float,
  discount: float,
  initial_std: float = 0.0,
) -> Learner:
  """Q-learning (Watkins, 1989): Q(s, a) ← Q(s, a) + α·(r + γ·max_b Q(s', b) − Q(s, a)).

  The initial values are ~ N(0, std²). The state is the table, float32 `[S, A]`.
  """

  def init(key: jax.Array) -> jax.Array:
    values_key, _ = jax.random.split(key)
    shape = num_states, num_actions
    return initial_std * jax.random.normal(values_key, shape, jnp.float32)

  def update(table: jax.Array, transition: Transition) -> jax.Array:
    source, action = transition.source, transition.action
    td_error = losses.q_learning(
      table[source],
      action,
      transition.reward,
      discount * transition.discount,
      table[transition.destination],
    )
    change = jnp.where(transition.learns, step_size * td_error, 0.0)
    return table.at[source, action].add(change)

  return Learner(init, encode, lambda table, s: table[s], update, discount=discount)


class Model(NamedTuple):
  """The data of each state and action, and the values computed from them."""

  table: jax.Array  # Action values, float32 `[S, A]`.
  counts: jax.Array  # Visits, up to the threshold m, int32 `[S, A]`.
  rewards: jax.Array  # The sum of the rewards of these visits, float32 `[S, A]`.
  successors: jax.Array  # Of each visit, int32 `[m, S, A]`; S: the episode terminated.


def r_max(
  encode: Encode,
  num_states: int,
  num_actions: int,
  *,
  threshold: int,
  reward_max: float,
  discount: float,
  tolerance: float,
) -> Learner:
  """R-MAX (Brafman and Tennenholtz, 2002) with discounted values.

  A state-action pair is known after m visits; later visits change nothing. The values
  solve

    Q(s, a) = mean over the m visits of r + γ·max_b Q(s', b)  if known,
              R_max/(1 − γ)                                   otherwise,

  where Q(s', b) is 0 if the episode terminated. When a pair becomes known, value
  iteration starts from the old values, which are at least the new ones, and stops when
  no value changes by more than `tolerance`. Act with `exploration.Greedy`.

  The original uses undiscounted values of a finite horizon; the discounted form is that
  of Strehl and Littman.
  """
  shape = num_states, num_actions
  optimism = jnp.float32(reward_max) / (1.0 - jnp.float32(discount))

  def init(key: jax.Array) -> Model:
    del key
    return Model(
      table=jnp.full(shape, optimism, jnp.float32),
      counts=jnp.zeros(shape, jnp.int32),
      rewards=jnp.zeros(shape, jnp.float32),
      successors=jnp.zeros((threshold, *shape), jnp.int32),
    )

  def update(model: Model, transition: Transition) -> Model:
    pair = transition.source, transition.action
    count = model.counts[pair]
    new = (count < threshold) & transition.learns
    # A visit beyond m has an index out of bounds, so that nothing is written.
    visit = jnp.where(new, count, threshold), *pair
    ended = transition.discount == 0
    successor = jnp.where(ended, num_states, transition.destination)
    model = model._replace(
      counts=model.counts.at[pair].add(new.astype(jnp.int32)),
      rewards=model.rewards.at[pair].add(jnp.where(new, transition.reward, 0.0)),
      successors=model.successors.at[visit].set(successor, mode="drop"),
    )
    becomes_known = new & (count + 1 == threshold)
    table = jax.lax.cond(becomes_known, solve, lambda model: model.table, model)
    return model._replace(table=table)

  def solve(model: Model) -> jax.Array:
    known = model.counts == threshold
    rewards = model.rewards / threshold

    def improve(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
      values = jnp.max(carry[0], axis=1)
      following = jnp.append(values, 0.0)[model.successors]
      worth = rewards + jnp.sum(discount / threshold * following, axis=0)
      better = jnp.where(known, worth, optimism)
      return better, jnp.max(jnp.abs(jnp.max(better, axis=1) - values))

    start = improve((model.table, jnp.float32(0.0)))
    table, _ = jax.lax.while_loop(lambda x: x[1] > tolerance, improve, start)
    return table

  return Learner(
    init,
    encode,
    lambda model, s: model.table[s],
    update,
    discount=discount,
    sequential=True,  # In a batch, each seed's value iteration would be all seeds'.
  )


@dataclasses.dataclass(frozen=True)
class FourierBasis:
  """The Fourier basis of order n (Konidaris et al., 2011, section 3).

    φ_c(x) = cos(π c · x̂), c ∈ {0, …, n}^d, x̂_i = (x_i − low_i)/(high_i − low_i)

  The basis has all (n + 1)^d features, or, with `total_order`, those with Σ_i c_i ≤ n,
  like a polynomial of degree n. The last element of c changes fastest between features.
  Observations are clipped to the bounds.

  In more than two dimensions, each feature of the full basis is computed as
  cos α cos β − sin α sin β, where β is the angle of the last two dimensions: 32768
  features need the cosines and sines of only 576 angles.
  """

  order: int  # n.
  low: tuple[float, ...]  # Mapped to 0, for each of the d dimensions.
  high: tuple[float, ...]  # Mapped to 1.
  total_order: bool = False

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
  return np.indices((order + 1,) * dimensions).reshape(dimensions, -1).T.astype("f4")


class Weights(NamedTuple):
  """Of features, and their traces, float32 `[A, F]` each."""

  weights: jax.Array
  traces: jax.Array


def sarsa_lambda(
  features: FourierBasis,
  num_actions: int,
  *,
  step_size: float,
  discount: float,
  trace_decay: float,
  initial_variance: float = 0.0,
  scale_steps: bool = False,
) -> Learner:
  """SARSA(λ) with accumulating traces (Sutton and Barto, 2018, section 12.7).

  With q(x, a) = w_a · φ(x), at each step, whether a' explores or not,

    e_b ← γλ·e_b + 1[b = a]·φ(x) for every action b,
    w ← w + α·(r + γ·q(x', a') − q(x, a))·e.

  If the episode terminated, q(x', a') counts as 0; if it was truncated, a' is the
  action that the rule selects at x'. Initial weights are ~ N(0, `initial_variance`).

  Dabney et al. (2021), appendix B, use it in MountainCar and CartPole. They do not
  specify the traces: accumulating ones are the standard form for features that are not
  binary. `scale_steps` divides the step size by ‖c‖, as Konidaris et al. (2011) do.
  """

  def init(key: jax.Array) -> Weights:
    shape = num_actions, len(features.indices())
    spread = math.sqrt(initial_variance)
    weights = spread * jax.random.normal(key, shape, jnp.float32)
    return Weights(weights, jnp.zeros(shape, jnp.float32))

  def begin_episode(state: Weights) -> Weights:
    return state._replace(traces=jnp.zeros_like(state.traces))

  def q_values(state: Weights, encoded: jax.Array) -> jax.Array:
    return jnp.sum(state.weights * encoded[None], axis=1)

  def update(state: Weights, transition: Transition) -> Weights:
    value = q_values(state, transition.source)[transition.action]
    following = q_values(state, transition.destination)[transition.next_action]
    target = transition.reward + discount * transition.discount * following
    taken = jnp.arange(num_actions, dtype=jnp.int32) == transition.action
    seen = jnp.where(taken[:, None], transition.source[None, :], 0.0)
    decay = jnp.float32(discount) * jnp.float32(trace_decay)
    traces = decay * state.traces + seen
    steps = step_size * (target - value) * traces
    if scale_steps:
      steps = steps * jnp.asarray(features.step_scales())[None, :]
    learnt = Weights(state.weights + steps, traces)
    return jax.tree.map(lambda a, b: jnp.where(transition.learns, a, b), learnt, state)

  return Learner(
    init,
    lambda state, observation: features(observation),
    q_values,
    update,
    begin_episode,
    discount,
    on_policy=True,
  )
