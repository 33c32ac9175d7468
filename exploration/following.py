"""Following one member of an ensemble at a time: Thompson sampling, and a bandit."""

import dataclasses
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax import ranges
from explorax.exploration import rules, schedules, selection, types
from explorax.losses import checks

# Folded into a step's key to draw the member, and into a draw's key to draw the group.
_MEMBER, _GROUP = 2, 3


class ThompsonState(NamedTuple):
  """The member being followed.

  Attributes:
    member: int32 `[]`.
    steps: int32 `[]`, agent steps taken with it.
    num_members: int32 `[]`, K.
  """

  member: jax.Array
  steps: jax.Array
  num_members: jax.Array


@dataclasses.dataclass(frozen=True)
class Explorers(ranges.Checked):
  """The last members of an ensemble, and how often one of them is followed.

  Flennerhag et al. (2020) "specify the probability of sampling this policy", that of
  the explorers, and do not give it.
  """

  number: ranges.PositiveInt = 1  # N, less than there are members.
  prob: ranges.Probability = 0.5  # That the next member is an explorer (ours).


def init_thompson(key: jax.Array, num_members: chex.Numeric) -> ThompsonState:
  """Draws one of at least 1 members uniformly: the state at an episode's start."""
  checks.check_in_range("init_thompson", "num_members", num_members, 1)
  member = jax.random.randint(key, (), 0, num_members, jnp.int32)
  return ThompsonState(member, jnp.int32(0), jnp.asarray(num_members, jnp.int32))


def _draw(
  key: jax.Array, num_members: chex.Numeric, explorers: Explorers | None
) -> ThompsonState:
  """Draws one of all members uniformly, or first the group to draw from."""
  if explorers is None:
    return init_thompson(key, num_members)
  num_exploiters = num_members - explorers.number
  explores = jax.random.bernoulli(jax.random.fold_in(key, _GROUP), explorers.prob)
  least = jnp.where(explores, num_exploiters, 0)
  most = jnp.where(explores, num_members, num_exploiters)
  member = jax.random.randint(key, (), least, most, jnp.int32)
  return ThompsonState(member, jnp.int32(0), jnp.asarray(num_members, jnp.int32))


def _follow(
  key: jax.Array,
  state: ThompsonState,
  period_steps: int | None,
  explorers: Explorers | None = None,
) -> ThompsonState:
  """Counts a step; first draws a new member if `period_steps` have been taken."""
  if period_steps is not None:
    drawn = _draw(jax.random.fold_in(key, _MEMBER), state.num_members, explorers)
    due = state.steps >= period_steps
    state = jax.tree.map(lambda a, b: jnp.where(due, a, b), drawn, state)
  return state._replace(steps=state.steps + 1)


@checks.arguments(q="float [K, A]")
def thompson(
  key: jax.Array, q: jax.Array, state: ThompsonState, period_steps: int | None = None
) -> tuple[jax.Array, ThompsonState]:
  """Follows one member greedily, ties at random, until another is drawn.

  Drawing a member at each episode's start is Bootstrapped DQN (Osband et al., 2016);
  drawing one every `period_steps` is what "Temporal Difference Uncertainties"
  (Flennerhag et al., 2020, appendix E.1) does on Atari, with 100 agent steps.

  Args:
    key: a random key.
    q: `[K, A]`, float.
    state: from `init_thompson`, or the last step.
    period_steps: agent steps after which a new member is drawn; None: never.

  Returns:
    The action (int32 `[]`) and the state.
  """
  if period_steps is not None:
    checks.check_in_range("thompson", "period_steps", period_steps, 1)
  state = _follow(key, state, period_steps)
  return selection.draw(key, selection.greedy_probs(q[state.member])).action, state


@dataclasses.dataclass(frozen=True)
class Thompson(rules.Score):
  """The values of one member, drawn uniformly (Bootstrapped DQN; see `thompson`).

  A new member is drawn at each episode's start, or every `period_steps`, which may end
  in another episode than they begin.
  """

  # Agent steps; None: one member per episode.
  period_steps: ranges.PositiveInt | None = None
  # How often an explorer is followed; None: as often as any member.
  explorers: Explorers | None = None

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: types.ActorIndex = types.SINGLE_ACTOR,
  ) -> ThompsonState:
    del num_actions, actor
    if self.explorers is not None and self.explorers.number >= num_members:
      raise ValueError(
        f"Thompson.explorers has {self.explorers.number} of the ensemble's "
        f"{num_members} members; leave at least one that is none."
      )
    return _draw(key, num_members, self.explorers)

  def begin_episode(
    self, key: jax.Array, state: ThompsonState, env_steps: jax.Array
  ) -> ThompsonState:
    del env_steps
    if self.period_steps is not None:
      return state
    return _draw(key, state.num_members, self.explorers)

  def score(
    self, key: jax.Array, q: jax.Array, state: ThompsonState, env_steps: jax.Array
  ) -> tuple[jax.Array, ThompsonState]:
    del env_steps
    state = _follow(key, state, self.period_steps, self.explorers)
    return q[state.member], state

  def policy(self, state: ThompsonState) -> jax.Array:
    return state.member


class Ucb1State(NamedTuple):
  """The statistics of a bandit's arms.

  Attributes:
    values: float32 `[K]`, V_k, the mean reward per environment step under arm k.
    counts: int32 `[K]`, n(k), environment steps taken under arm k.
  """

  values: jax.Array
  counts: jax.Array


def init_ucb1(num_arms: int) -> Ucb1State:
  """No arm was tried yet; there is at least 1."""
  checks.check_in_range("init_ucb1", "num_arms", num_arms, 1)
  return Ucb1State(
    jnp.zeros((num_arms,), jnp.float32), jnp.zeros((num_arms,), jnp.int32)
  )


@checks.arguments(scale="number []")
def ucb1(key: jax.Array, state: Ucb1State, scale: chex.Numeric) -> jax.Array:
  """Chooses the arm to follow: `argmax_k V_k + scale · sqrt(log n / n(k))`.

  n is `Σ_k n(k)`. Untried arms come first; ties are broken at random. "Temporal
  Difference Uncertainties" (Flennerhag et al., 2020), appendix D.2: an arm is a
  member, followed for an episode, and scale is η = 8.

  Args:
    key: a random key.
    state: the arms' statistics.
    scale: scalar, in units of reward per environment step.

  Returns:
    The arm, int32 `[]`.
  """
  counts = state.counts.astype(jnp.float32)
  total = jnp.maximum(jnp.sum(counts), 1.0)
  width = jnp.sqrt(jnp.log(total) / jnp.maximum(counts, 1.0))
  bounds = jnp.where(state.counts == 0, jnp.inf, state.values + scale * width)
  return selection.draw(key, selection.greedy_probs(bounds)).action


def update_ucb1(state: Ucb1State, arm: jax.Array, reward: jax.Array) -> Ucb1State:
  """Adds the reward (float32 `[]`) of an environment step under `arm`."""
  checks.check(
    "update_ucb1",
    values=(state.values, "float [A]"),
    arm=(arm, "int []"),
    reward=(reward, "number []"),
  )
  counts = state.counts.at[arm].add(1)
  step = (reward - state.values[arm]) / counts[arm]
  return Ucb1State(state.values.at[arm].add(step), counts)


class BanditState(NamedTuple):
  """The arm followed (int32 `[]`) and the statistics of all of them."""

  arm: jax.Array
  arms: Ucb1State


@dataclasses.dataclass(frozen=True)
class Ucb1(rules.Score):
  """The values of one member, chosen by a bandit for an episode (see `ucb1`).

  Each actor has its own bandit: n and n(k) count only this actor's environment steps.
  """

  scale: schedules.NonNegative = 8.0  # η, in reward per step (appendix D.2: the best).

  def init(
    self,
    key: jax.Array,
    num_members: int,
    num_actions: int,
    actor: types.ActorIndex = types.SINGLE_ACTOR,
  ) -> BanditState:
    del key, num_actions, actor
    return BanditState(jnp.int32(0), init_ucb1(num_members))

  def begin_episode(
    self, key: jax.Array, state: BanditState, env_steps: jax.Array
  ) -> BanditState:
    scale = schedules.at(self.scale, env_steps)
    return state._replace(arm=ucb1(key, state.arms, scale))

  def score(
    self, key: jax.Array, q: jax.Array, state: BanditState, env_steps: jax.Array
  ) -> tuple[jax.Array, BanditState]:
    del key, env_steps
    return q[state.arm], state

  def observe(self, reward: jax.Array, state: BanditState) -> BanditState:
    return state._replace(arms=update_ucb1(state.arms, state.arm, reward))

  def policy(self, state: BanditState) -> jax.Array:
    return state.arm
